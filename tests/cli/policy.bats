#!/usr/bin/env bats
# shellcheck disable=SC2030,SC2031,SC2154  # cli.bash sets $status, $out and others
# carrel policy: what it shows, finds wrong and begins.

load cli

# A home and a repository of the present identity's own; no file of the machine gets in the way.
place() {
    me mkdir -p home/.config/carrel repo/.git repo/deep/down
}

policy() { # policy ARG...: from the depth of the repository, with that home
    status=0
    me env -u XDG_CONFIG_HOME -C "$T/repo/deep/down" HOME="$T/home" "$CARREL" policy "$@" \
        >"$T/.out" 2>"$T/.err" || status=$?
    _collect policy "$@"
}

put() { # put FILE TEXT
    me mkdir -p "$(dirname "$1")"
    me sh -c 'printf "%s\n" "$2" >"$1"' sh "$1" "$2"
}

no_file() {
    place
    policy show
    [ "$status" -eq 0 ]
    [ -z "$err" ]
    [[ "$out" == "no policy file found"* ]]
    [[ "$out" == *$'\n  sandbox.limits.memory       512M  '*'built in'* ]]
    not grep -q '^\* sandbox' <<<"$out"
}
@test "without a file all is built in" { both no_file; }

show_places() {
    place
    put "$T/home/.config/carrel/policy.yaml" 'sandbox: {limits: {memory: {default: 1G, maximum: 2G}}}'
    put "$T/repo/carrel.yaml" 'sandbox: {limits: {pids: 10}}'
    policy show
    [ "$status" -eq 0 ]
    [[ "$out" == *"values and bounds: $T/repo/carrel.yaml (repository)"* ]]
    [[ "$out" == *"values and bounds: $T/home/.config/carrel/policy.yaml (user)"* ]]
    grep -qE "^\* sandbox.limits.memory +1G +2G +$T/home/.config/carrel/policy.yaml:1:38$" <<<"$out"
    grep -qE "^\* sandbox.limits.pids +10 +- +$T/repo/carrel.yaml:1:26$" <<<"$out"
    grep -qE '^  sandbox.limits.cpu +1.0 +- +built in$' <<<"$out"
}
@test "every value is shown with where it is from" { both show_places; }

show_json() {
    place
    put "$T/named.yaml" 'sandbox: {network: true, limits: {cpu: 1.5, timeout: 2s}}
profiles: {small: {sandbox: {limits: {memory: {maximum: 1M}}}}}'
    policy show --json --policy "$T/named.yaml" --profile small
    [ "$status" -eq 0 ]
    holds "r['keys']['sandbox.network']['value'] == 'host'"
    holds "r['keys']['sandbox.limits.cpu']['value'] == 1.5"
    holds "r['keys']['sandbox.limits.timeout']['value'] == 2000"
    holds "r['keys']['sandbox.limits.memory']['value'] == 1048576"
    holds "r['keys']['sandbox.limits.memory']['maximum_from'] == '$T/named.yaml:2:57'"
    holds "r['keys']['sandbox.mounts.allow'] == {'value': None, 'from': None, 'maximum': None, 'maximum_from': None}"
    holds "len(r['hash']) == 64 and len(r['keys']) > 50"
    holds "r['files'] == [{'file': '$T/named.yaml', 'authority': 'user', 'gives_values': True}]"
}
@test "the same as JSON, with a named file and a profile" { both show_json; }

hash_of() {
    policy show --json "$@"
    [ "$status" -eq 0 ]
    json "r['hash']"
}

same_hash() {
    place
    put "$T/a.yaml" 'sandbox: {limits: {memory: 1G}}'
    put "$T/b.yaml" $'# elsewhere\nsandbox:\n  limits:\n    memory: 1024M'
    [ "$(hash_of --policy "$T/a.yaml" | tail -n 1)" = "$(hash_of --policy "$T/b.yaml" | tail -n 1)" ]
    [ "$(hash_of --policy "$T/a.yaml" | tail -n 1)" != "$(hash_of --policy none | tail -n 1)" ]
}
@test "the hash is of what counts" { both same_hash; }

environment() {
    place
    export SANDBOX_TIMEOUT_SEC=2.5
    policy show
    grep -qE '^\* sandbox.limits.timeout +2.5s +- +environment SANDBOX_TIMEOUT_SEC$' <<<"$out"
    put "$T/repo/carrel.yaml" 'sandbox: {limits: {timeout: {maximum: 2s}}}'
    policy show
    is_one_error 125 "carrel: environment SANDBOX_TIMEOUT_SEC: sandbox.limits.timeout 2.5s is more than the maximum 2s of $T/repo/carrel.yaml:1:39"
    export SANDBOX_TIMEOUT_SEC=soon
    policy show
    is_one_error 125 "*environment SANDBOX_TIMEOUT_SEC: 'soon' is not a number of seconds*"
    unset SANDBOX_TIMEOUT_SEC
}
@test "variables override files, within the maxima" { both environment; }

repository_tightens() {
    place
    put "$T/repo/carrel.yaml" 'sandbox: {network: host}'
    policy show
    is_one_error 125 "carrel: $T/repo/carrel.yaml:1:20: sandbox.network host: is looser than none (built in); a policy found in a repository may only tighten: put it into your own policy, or name this file with --policy to vouch for it"
    policy show --json
    [ "$status" -eq 125 ]
    holds "r['ok'] is False and 'may only tighten' in r['error']"
    policy show --policy "$T/repo/carrel.yaml"
    [ "$status" -eq 0 ]
    policy show --policy none
    [ "$status" -eq 0 ]
}
@test "a repository's policy may only tighten" { both repository_tightens; }

links() {
    place
    put "$T/real.yaml" 'sandbox: {limits: {pids: 10}}'
    me ln -s ../real.yaml repo/carrel.yaml
    policy show
    is_one_error 125 "carrel: $T/repo/carrel.yaml: is a symbolic link; a policy must be a regular file"
    policy show --policy "$T/repo/carrel.yaml"
    is_one_error 125 "carrel: policy: '$T/repo/carrel.yaml': is a link; carrel does not follow links there*"
    policy show --policy "$T/real.yaml"
    [ "$status" -eq 0 ]
}
@test "a symlinked policy is refused, named or not" { both links; }

hostile_text() {
    place
    put "$T/repo/carrel.yaml" $'workspace: {setup: "\\e[2Jls\\nrm"}\nsandbox: {environment: {set: {A: "\\u202e"}}}'
    policy show --policy "$T/repo/carrel.yaml"
    [ "$status" -eq 0 ]
    [[ "$out" == *'\x1b[2Jls\x0arm'* ]]
    [[ "$out" == *'[A=\xe2\x80\xae]'* ]]
    put "$T/repo/carrel.yaml" $'"\\e[2J": 1'
    policy show
    [ "$status" -eq 125 ]
    [[ "$err" != *$'\e'* ]]
}
@test "nothing of a policy reaches the terminal raw" { both hostile_text; }

check_files() {
    place
    put "$T/good.yaml" 'sandbox: {enabled: true, type: local, network: false}'
    carrel policy check good.yaml
    [ "$status" -eq 0 ]
    [ "$out" = "good.yaml: ok" ]
    carrel policy check good.yaml --json
    holds "r == {'ok': True, 'file': 'good.yaml'}"
    put "$T/bad.yaml" 'sandbox: {limits: {memroy: 1G}}'
    carrel policy check bad.yaml
    is_one_error 125 "carrel: bad.yaml:1:20: unknown key 'sandbox.limits.memroy' (did you mean 'memory'?)"
    carrel policy check --json bad.yaml
    [ "$status" -eq 125 ]
    holds "not r['ok'] and r['error'].startswith('bad.yaml:1:20: ')"
    put "$T/bad.yaml" $'sandbox: {enabled: true}\nsandbox: {enabled: false}'
    carrel policy check bad.yaml
    is_one_error 125 "carrel: bad.yaml:2:1: the key 'sandbox' is here twice; the first is in line 1"
    carrel policy check missing.yaml
    is_one_error 125 "carrel: policy: 'missing.yaml': No such file or directory"
    me mkfifo pipe.yaml
    carrel policy check pipe.yaml
    is_one_error 125 "carrel: policy: 'pipe.yaml': is a FIFO; expected a regular file"
}
@test "check says ok, or the one line that is wrong" { both check_files; }

# What carrel run takes for --require and --best-effort, a policy takes too, and nothing else.
same_names() { # same_names OPTION KEY
    place
    local names
    carrel run "$1" '?' -- true
    names=${err##*expected one of: }
    [ -n "$names" ]
    put "$T/names.yaml" "sandbox: {$2: [${names// /, }]}"
    carrel policy check names.yaml
    [ "$status" -eq 0 ]
    put "$T/names.yaml" "sandbox: {$2: ['?']}"
    carrel policy check names.yaml
    [ "$status" -eq 125 ]
}
protections() { same_names --require require; }
limits() { same_names --best-effort best_effort; }
@test "a policy knows the protections that a run knows" { only user protections; }
@test "a policy knows the limits that a run knows" { only user limits; }

init() {
    place
    policy init
    [ "$status" -eq 0 ]
    [[ "$out" == "wrote carrel.yaml;"* ]]
    [ -f "$T/repo/deep/down/carrel.yaml" ]
    policy check carrel.yaml
    [ "$status" -eq 0 ]
    policy show
    [ "$status" -eq 0 ]
    [[ "$out" == *"$T/repo/deep/down/carrel.yaml (repository)"* ]]
    not grep -q '^\* sandbox' <<<"$out"
    me sed -i 's/^\( *\)#\([^ ]\)/\1\2/' repo/deep/down/carrel.yaml
    policy check carrel.yaml
    [ "$status" -eq 0 ]
    policy init
    is_one_error 125 "carrel: 'carrel.yaml' exists and is not overwritten"
    policy init "$T/other.yaml"
    [ "$status" -eq 0 ]
    me ln -s nowhere.yaml link.yaml
    policy init "$T/link.yaml"
    is_one_error 125 "*link.yaml' exists and is not overwritten"
    [ ! -e "$T/nowhere.yaml" ]
    policy init "$T/missing/carrel.yaml"
    is_one_error 125 "carrel: create '$T/missing/carrel.yaml': No such file or directory"
}
@test "init writes a policy that is right, and overwrites nothing" { both init; }

wrong_words() {
    carrel policy
    is_one_error 125 "carrel: no subcommand; try 'carrel policy show', or 'carrel policy --help'"
    carrel policy shwo
    is_one_error 125 "carrel: unknown subcommand 'shwo' (did you mean 'policy show'?)"
    carrel policy check
    is_one_error 125 "carrel: missing argument; usage: carrel policy check * FILE"
    carrel policy show now
    is_one_error 125 "carrel: unexpected argument 'now'; usage: carrel policy show *"
    carrel policy init --profile x
    is_one_error 125 "carrel: unknown option '--profile'*"
    carrel policy show --profile nothing --policy none
    is_one_error 125 "carrel: there is no profile 'nothing': no policy file gives values"
    for word in show check init; do
        carrel policy "$word" --help
        [ "$status" -eq 0 ]
        [[ "$out" == "Usage: carrel policy $word "* ]]
    done
}
@test "wrong words get one line each" { both wrong_words; }

full_output() {
    status=0
    me sh -c '"$1" policy show >/dev/full' sh "$CARREL" 2>"$T/.err" || status=$?
    [ "$status" -eq 125 ]
}
@test "a report that cannot be written is a failure" { both full_output; }
