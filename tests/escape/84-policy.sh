# shellcheck shell=bash disable=SC2034,SC2154
# A run leaves a policy in its directory, and the next run there uses it. If the caller names the
# file with --policy, it applies in full.
prepare() {
    me mkdir "$T/work" "$T/outside"
    echo secret | me tee "$T/outside/sentinel" >/dev/null
    widen=(
        "network|sandbox: {network: host}"
        "no-isolation|sandbox: {type: process}"
        "callers-variables|sandbox: {environment: {pass: [SECRET]}}"
        "planted-variable|sandbox: {environment: {set: {LD_PRELOAD: /planted}}}"
        "raised-limit|sandbox: {limits: {files: 4097}}"
    )
    # What each of them would allow.
    effect='case $1 in
        network) [ "$(readlink /proc/self/ns/net)" = "$2" ] ;;
        no-isolation) [ -r "$3/outside/sentinel" ] ;;
        callers-variables) [ "$SECRET" = hunter2 ] ;;
        planted-variable) [ "$LD_PRELOAD" = /planted ] ;;
        raised-limit) [ "$(ulimit -n)" -eq 4097 ] ;;
        esac'
}

# go OPTION... -- PROGRAM ARG...: carrel run, in the directory that the first run could write to.
go() {
    me timeout -k 5 60 env -u XDG_CONFIG_HOME -C "$T/work" HOME="$T" SECRET=hunter2 "$tool" run \
        --quiet --timeout "$limit" "$@" </dev/null
}

# The first run; only the sandbox writes the file.
plant() { # plant SHELL_LINE [ARG...]
    me rm -rf "$T/work/carrel.yaml"
    go --workdir "$T/work" -- /bin/sh -c "cd /workspace && $1" sh "${@:2}"
}

second_run() { # second_run NAME OPTION...
    go "${@:2}" -- /bin/sh -c "$effect" sh "$1" "$(readlink /proc/self/ns/net)" "$T"
}

bare() {
    local entry
    for entry in "${widen[@]}"; do
        plant 'printf "%s\n" "$1" >carrel.yaml' "${entry#*|}"
        second_run "${entry%%|*}" --policy "$T/work/carrel.yaml" && echo "SUCCEEDED ${entry%%|*}"
    done
}

control() {
    plant 'echo "sandbox: {limits: {pids: 20}}" >carrel.yaml'
    go -- /bin/sh -c 'echo WORKS tighter-policy'
    # A caller that does not want it says so.
    plant 'echo "sandbox: {network: host}" >carrel.yaml'
    go --policy none -- /bin/sh -c 'echo WORKS set-aside'
}

# try NAME REASON: the second run must be refused, and for this reason.
try() {
    local output status=0
    output=$(second_run "$1" 2>&1) || status=$?
    if [ "$status" -eq 125 ] && [[ $output == *"carrel: $T/work/carrel.yaml"*"$2"* ]]; then
        echo "REFUSED $1 ${output##*$'\n'}"
    elif [ "$status" -eq 0 ]; then
        echo "SUCCEEDED $1"
    else
        echo "OTHER $1 status $status: $output"
    fi
}

attack() {
    local entry
    for entry in "${widen[@]}"; do
        plant 'printf "%s\n" "$1" >carrel.yaml' "${entry#*|}"
        try "${entry%%|*}" "may only tighten"
    done
}

malformed() {
    plant 'echo "sandbox: {netwrok: host}" >carrel.yaml'
    try unknown-key ":1:11: unknown key 'sandbox.netwrok' (did you mean 'network'?)"
    plant 'echo "sandbox: {limits: {memory: [1G]}}" >carrel.yaml'
    try wrong-type ":1:28: sandbox.limits.memory: expected a size"
    plant 'printf "sandbox: {network: none}\nsandbox: {network: host}\n" >carrel.yaml'
    try key-twice ":2:1: the key 'sandbox' is here twice"
    plant 'printf "a: &a [x, x]\nb: &b [*a, *a]\nc: [*b, *b]\n" >carrel.yaml'
    try aliases ":1:4: anchors are not accepted"
    plant 'head -c 100000 /dev/zero | tr "\0" "[" >carrel.yaml'
    try deep-nesting ":1:33: the file is nested too deeply"
    plant 'head -c 300000 /dev/zero | tr "\0" "#" >carrel.yaml'
    try large ": is larger than 262144 bytes"
    plant 'head -c 100 /dev/zero >carrel.yaml'
    try nul ":1:1: the file holds a NUL byte"
    plant 'ln -s "$1/outside/sentinel" carrel.yaml' "$T"
    try link ": is a symbolic link"
    plant 'mkfifo carrel.yaml'
    try fifo ": a policy must be a regular file"
}

more() {
    all_attempts=no
    held "a file that is no policy" within 60 malformed
}
