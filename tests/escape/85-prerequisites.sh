# shellcheck shell=bash disable=SC2034,SC2154
# What carrel depends on is removed: the run is refused and the missing part named. Less is accepted
# only if the caller asked for it by name, and then result and journal say so.
# shellcheck source=journals.sh
source "$here/journals.sh"

prepare() {
    prepare_journals
    me mkdir "$T/planted" "$T/disk"
    echo 'sandbox: {fallback: [process], minimum_isolation: none}' | me tee "$T/weaker.yaml"
    echo 'sandbox: {fallback: [process]}' | me tee "$T/below.yaml"
    echo 'sandbox: {require: [landlock]}' | me tee "$T/landlock.yaml"
    me cp "$T/weaker.yaml" "$T/planted/carrel.yaml"
    me git init -q -b main "$T/repository"
    me git -C "$T/repository" -c user.name=a -c user.email=a@b commit -q --allow-empty -m first
    # A machine whose AppArmor restricts user namespaces, for a caller without privileges.
    me tee "$T/apparmor" >/dev/null <<'END'
mount -t tmpfs none /proc/sys/kernel &&
    echo 1 >/proc/sys/kernel/apparmor_restrict_unprivileged_userns &&
    exec unshare -U --map-user=1000 --map-group=1000 "$@"
END
    # Directories in mount namespaces of their own: without cgroups, and with the state on a file
    # system that cannot be an overlay's upper. What is recorded there is copied.
    alone=(unshare -m)
    [ "$who" = root ] || alone=(unshare -rm)
    me tee "$T/cgroups" >/dev/null <<'END'
mount -t tmpfs none /sys/fs/cgroup && exec "$@"
END
    me tee "$T/overlays" >/dev/null <<'END'
here=${0%/*}
cd "$here" && mount -t tmpfs none disk && mkdir disk/lower disk/upper disk/work || exit
mount -t overlay -o "lowerdir=disk/lower,upperdir=disk/upper,workdir=disk/work" none state || exit
status=0
"$@" || status=$?
cat state/carrel/runs/*/journal.jsonl >"$here/recorded" 2>/dev/null
exit "$status"
END
    me unshare -rm bash "$T/overlays" true
}

# without WHAT CMD...
without() {
    case $1 in
    cgroups) me "${alone[@]}" bash "$T/cgroups" "${@:2}" ;;
    # With a user namespace also for root, who would need mounts that this file system does not
    # support.
    overlays) me unshare -rm bash "$T/overlays" "${@:2}" ;;
    apparmor-*) me unshare -rm bash "$T/apparmor" "$A/85-prerequisites" without "${1#*-}" "${@:2}" ;;
    *) me "$A/85-prerequisites" without "$1" "${@:2}" ;;
    esac
}

# recorded WHAT PATTERN: by the last run.
recorded() {
    local file=$T/recorded
    [ "$1" = overlays ] || file=$runs/$(carrel journal list | tail -n 1 | cut -d' ' -f1)/journal.jsonl
    grep -qE "$2" "$file" || {
        echo "it is not recorded: $2"
        cat "$file"
        return 1
    }
}

# go WHAT ARG...: carrel run, without it.
go() {
    without "$1" /usr/bin/timeout -k 5 60 /usr/bin/env -C "${directory:-$T}" HOME="$T" \
        XDG_STATE_HOME="$T/state" XDG_CONFIG_HOME="$T/config" "$tool" run "${@:2}" </dev/null
}

bare() {
    local what
    for what in user-namespaces capabilities seccomp filter-room mount-api landlock; do
        without "$what" "$A/85-prerequisites" attack "$what"
    done
    without cgroups /bin/sh -c '[ -n "$(ls /sys/fs/cgroup)" ] || echo SUCCEEDED cgroups'
    without overlays /bin/sh -c 'cd "$1" && mkdir state/upper state/work disk/merged && mount -t overlay \
        -o lowerdir=disk/lower,upperdir=state/upper,workdir=state/work none disk/merged 2>/dev/null ||
        echo SUCCEEDED overlays' - "$T"
}

# With everything present, there is no fallback.
control() {
    me "$A/85-prerequisites" attack user-namespaces seccomp mount-api >/dev/null || return
    me "$A/85-prerequisites" attack capabilities >/dev/null || return
    carrel run --quiet --json --policy "$T/weaker.yaml" -- /bin/true | has \
        '"runtime":"local","isolation":"kernel",.*"seccomp",.*"fallback_from":null' &&
        echo WORKS not-weaker
    carrel run --quiet --json --repo "$T/repository" --on-success discard -- /bin/true |
        grep -q '"tree":"overlay"' && echo WORKS overlay
}

# refuses WHAT REASON OPTION...: nothing runs, and message and journal say why.
refuses() {
    local what=$1 reason=$2 output status=0 missing
    shift 2
    output=$(go "$what" --quiet "$@" -- /bin/echo ran 2>&1) || status=$?
    if [ "$status" -ne 125 ] || [[ $output == *ran ]]; then
        echo "SUCCEEDED $what $*: status $status: $output"
    elif [[ $output != *"$reason"* ]]; then
        echo "OTHER $what $*: $output"
    elif ! missing=$(recorded "$what" "\"event\":\"run_ended\",\"reason\":\"infrastructure\".*$reason"); then
        echo "OTHER $what $*: $missing"
    else
        echo "REFUSED $what ${output##*$'\n'}"
    fi
}

# health_names WHAT REMEDY: on one line, however it is broken.
health_names() {
    local output status=0
    output=$(without "$1" "$tool" health 2>&1 | tr -s ' \n' ' ') || status=$?
    if [[ $output == *"$2"* ]]; then
        echo "REFUSED $1-health names the remedy"
    else
        echo "OTHER $1-health status $status: $output"
    fi
}

attack() {
    local directory=
    refuses user-namespaces "cannot make a user namespace"
    refuses capabilities "clone into new namespaces: Function not implemented"
    refuses apparmor-user-namespaces "AppArmor restricts them to programs with a profile; run "
    health_names apparmor-capabilities "AppArmor profile of carrel is for that path only"
    refuses seccomp "install the seccomp filter: "
    refuses seccomp "install the seccomp filter: " --policy "$T/weaker.yaml" --runtime local
    refuses filter-room "as root, raise net.core.bpf_jit_limit"
    health_names filter-room "raise net.core.bpf_jit_limit (sysctl)"
    refuses mount-api "Function not implemented"
    refuses landlock "required protections are missing: landlock" --require landlock
    refuses landlock "required protections are missing: landlock" --policy "$T/landlock.yaml"
    refuses cgroups "the memory limit cannot be enforced here: " --memory 64M
    refuses cgroups "the pids limit cannot be enforced here: " --pids 50
    refuses cgroups "the cpu limit cannot be enforced here: " --cpu 1
    refuses cgroups "required protections are missing: memory" --require memory
    refuses cgroups "the memory limit cannot be enforced here: " --memory 64M --best-effort pids
    refuses overlays "overlayfs does not work here" --repo "$T/repository" --tree overlay
}

# stands_against NAME REASON OPTION...: a policy that asks for less, and must be refused.
stands_against() {
    local output status=0
    output=$(go user-namespaces --quiet "${@:3}" -- /bin/echo ran 2>&1) || status=$?
    if [ "$status" -eq 125 ] && [[ $output == *"$2"* ]]; then
        echo "REFUSED $1 $output"
    else
        echo "SUCCEEDED $1 status $status: $output"
    fi
}

policies() {
    local directory=
    stands_against below-the-minimum "below.yaml:1:21: sandbox.fallback process isolates less" \
        --policy "$T/below.yaml"
    directory=$T/planted # where a run has left one for the next
    stands_against planted "may only tighten"
}

# admits WHAT RESULT RECORD OPTION...: it runs, and result and journal match these patterns.
admits() {
    local directory='' output
    output=$(go "$1" --quiet --json "${@:4}" -- /bin/echo ran) || {
        echo "status $?: $output"
        return 1
    }
    grep -qE "$2" <<<"$output" || {
        echo "the result does not tell: $output"
        return 1
    }
    recorded "$1" "$3"
}

more() {
    all_attempts=no
    held "a policy that may not ask for less" policies
    check "$title, as $who: no isolation where the policy's list names it, recorded" admits \
        user-namespaces '"runtime":"process","isolation":"none",.*"fallback_from":"local"' \
        '"event":"fallback_taken","from":"local","to":"process","why":"[^"]*user namespace' \
        --policy "$T/weaker.yaml"
    check "$title, as $who: without Landlock it is not claimed" admits landlock \
        '"isolation":"kernel","protections":\[[^]]*"seccomp","no_nesting"' \
        '"event":"sandbox_made",[^]]*"seccomp","no_nesting"'
    check "$title, as $who: less than a cgroup where it is accepted by name, recorded" admits cgroups \
        '"held_by":\{"memory":"rlimit","pids":"rlimit","cpu":"nothing"' \
        '"event":"sandbox_made",.*"held_by":\{"memory":"rlimit"' \
        --memory 256M --best-effort memory
    check "$title, as $who: a copy where there is no overlay, recorded" admits overlays \
        '"tree":"copy"' '"event":"workspace_made",.*"tree":"copy"' \
        --repo "$T/repository" --on-success discard
}
