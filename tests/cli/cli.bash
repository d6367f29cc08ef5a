# shellcheck shell=bash
# cli.bash - what the tests of the command line have in common. To be sourced by bats files.
#
#   both CASE [ARG...]   runs a function as root and as an ordinary user; $who says which
#   $T                   a directory of the present identity's own, gone after the test
#   me CMD...            runs a command as the present identity, in $T, without bats' descriptor 3:
#                        bats would wait for whatever holds it
#   carrel ARG...        runs carrel as the present identity; then $status, and $out and $err
#                        (without the line about limits that cannot be held without a cgroup)
#   background ARG...    starts carrel; $pid is carrel's own process. `ended` waits for it
#   new_tag, none_left   $tag is a word for a command line; no process has it any more
#   stale                cgroups of sandboxes that are not alive
#
# Nothing sleeps until a race has passed: `until_true` polls for an event, with a deadline that
# is for hangs only.

_cli_dir=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=../lib/user.sh
source "$_cli_dir/../lib/user.sh"

# What the caller's own policy says is no matter of the tests.
unset SANDBOX_TYPE SANDBOX_TIMEOUT_SEC SANDBOX_MAX_OUTPUT_KB SANDBOX_BLOCK_DANGEROUS_IMPORTS \
    SANDBOX_STORE_CODE DOCKER_CPU_LIMIT DOCKER_MEMORY_LIMIT

DEADLINE=20 # seconds
who=
T=
status=
out=
err=
pid=
_cli_dirs=()
_cli_pids=()

_enter() { # _enter WHO: a fresh directory of that identity's
    who=$1
    if [ "$who" = root ]; then
        T=$(mktemp -d /tmp/carrel-cli.XXXXXX)
        chmod 755 "$T"
    else
        T=$(as_user mktemp -d "$USER_DIR/cli.XXXXXX")
    fi
    _cli_dirs+=("$T")
}

both() {
    if [ "$(id -u)" -eq 0 ]; then
        _enter root
        echo "--- as root"
        "$@"
        have_user 2>/dev/null || skip "as root it passed; as a user: $NO_USER_REASON"
    fi
    _enter user
    echo "--- as an ordinary user"
    "$@"
}

# For what only root, or only a user, has: `only root CASE`.
only() {
    if [ "$1" = root ] && [ "$(id -u)" -ne 0 ]; then
        skip "needs root"
    elif [ "$1" = user ] && ! have_user 2>/dev/null; then
        skip "$NO_USER_REASON"
    fi
    _enter "$1"
    shift
    "$@"
}

me() {
    if [ "$who" = root ]; then
        (cd "$T" && XDG_STATE_HOME=$T/state XDG_CONFIG_HOME=$T/config "$@") 3>&-
    else
        as_user env -C "$T" XDG_STATE_HOME="$T/state" XDG_CONFIG_HOME="$T/config" "$@" 3>&-
    fi
}

# Does a cgroup hold the limits of the present identity? Root may lack it (in a container), a user
# may have it (delegated by systemd): what a run says counts, and limits.bats checks that.
has_cgroup() {
    local -n known=_cgroup_of_$who
    [ -n "$known" ] || known=$(me timeout -k 5 60 "$CARREL" run --quiet --json -- true </dev/null)
    [[ "$known" == *'"memory":"cgroup"'* ]]
}
_cgroup_of_root=
_cgroup_of_user=

# with_cgroup CASE, without_cgroup CASE: for `both`; the other case has a test of its own.
with_cgroup() { ! has_cgroup || "$@"; }
without_cgroup() { has_cgroup || "$@"; }

carrel() {
    status=0
    me timeout -k 5 120 "$CARREL" "$@" >"$T/.out" 2>"$T/.err" </dev/null || status=$?
    _collect "$@"
}

# The same with something on standard input.
carrel_reads() { # carrel_reads TEXT ARG...
    local text=$1
    shift
    status=0
    me timeout -k 5 120 "$CARREL" "$@" >"$T/.out" 2>"$T/.err" <<<"$text" || status=$?
    _collect "$@"
}

# Without a program where the shell can do it: this is done thousands of times.
_collect() {
    local words
    { out=$(<"$T/.out"); err=$(<"$T/.err"); } 2>/dev/null # bash drops zero bytes, and says so
    [[ "$err" != *'carrel: note: '* ]] || err=$(tr -d '\0' <"$T/.err" | grep -av '^carrel: note: ' || true)
    printf -v words ' %q' "$@"
    printf '%s: carrel%.500s -> %s\n' "$who" "$words" "$status"
    printf 'stdout: %.2000s\nstderr: %.2000s\n' "$out" "$err"
}

background() {
    : >"$T/.out"
    me env "$CARREL" "$@" >"$T/.out" 2>"$T/.err" </dev/null 3>&- &
    _follow_exec $!
}

# as_user runs in a subshell: our job is bash, its child is what counts.
_follow_exec() {
    local job=$1
    _cli_pids+=("$job")
    until_true _find_carrel "$job"
}

# The first descendant (or the process itself) that has become carrel. Not its init, which has the
# same program: we may have looked at carrel just before it was carrel.
_find_carrel() {
    local at=$1 above=none next exe
    for _ in 1 2 3 4 5; do
        exe=$(readlink "/proc/$at/exe") || return 1
        if [ "$exe" = "$(readlink -f "$CARREL")" ]; then
            [ "$(readlink "/proc/$above/exe")" != "$exe" ] || return 1
            pid=$at
            return 0
        fi
        next=$(cat "/proc/$at/task/$at/children" 2>/dev/null) || return 1
        above=$at
        at=${next%% *}
        [ -n "$at" ] || return 1
    done
    return 1
}

ended() { # waits for the last background run; sets $status, $out, $err
    local job=${_cli_pids[-1]}
    until_true _is_over "$job"
    status=0
    wait "$job" || status=$?
    _collect '(background)'
}

# The shell reaps its jobs as they end: the number of one that is over may soon be a stranger's.
_is_over() { [[ $'\n'$(jobs -rp)$'\n' != *$'\n'"$1"$'\n'* ]]; } # _is_over JOB

until_true() { # until_true CMD...: polls; fails after $DEADLINE seconds
    local begin=$SECONDS
    until "$@"; do
        if [ $((SECONDS - begin)) -gt "$DEADLINE" ]; then
            echo "not true after $DEADLINE seconds: $*"
            return 1
        fi
        sleep 0.02
    done
}

# A word that no other process has in its command line; init and its helpers have carrel's.
# shellcheck disable=SC2034  # for the tests
new_tag() { tag=carrel-tag-$BATS_TEST_NUMBER-$RANDOM$RANDOM; }

# A mere `!` ends no test.
not() { if "$@"; then return 1; fi; }

# Processes with this word among their arguments. It must not be among grep's own.
tagged() { grep -lsF -f <(echo "$1") /proc/[0-9]*/cmdline || true; }

is_gone() { [ -z "$(tagged "$1")" ]; }

none_left() { # none_left TAG: sooner or later; it may take the kernel a moment to reap
    until_true is_gone "$1" || {
        tagged "$1" | xargs -r -I{} sh -c 'tr "\0" " " <{}; echo'
        return 1
    }
}

# group_prefix LOCK: how the names of groups begin whose sandboxes are locked there.
group_prefix() {
    local device inode
    read -r device inode < <(stat -c '%D %i' "$1" 2>/dev/null) || return 1
    printf '%s.%x-' "$device" "$inode"
}

# Groups of root's sandboxes without an owner: a live one has a lock on the byte of its number. Others
# may come and go meanwhile, so the locks are read after the names; a group is removed before its lock.
stale() {
    local dir inode prefix dirs live
    prefix=$(group_prefix /run/carrel/lock) || return 0
    inode=$(stat -c %i /run/carrel/lock)
    dirs=$(find /sys/fs/cgroup/carrel /sys/fs/cgroup/*/carrel -maxdepth 1 -name "$prefix*" 2>/dev/null) || true
    live=$(awk -v inode="$inode" '{ n = split($6, id, ":"); if (id[n] == inode) print $7 }' /proc/locks)
    for dir in $dirs; do
        grep -qx "${dir##*-}" <<<"$live" || [ ! -d "$dir" ] || echo "$dir"
    done
}

# $T/root: another root, of a shell and a few programs with what they link.
tiny_root() {
    local root=$T/root program lib
    mkdir -p "$root/bin" "$root/etc" "$root/srv"
    for program in sh ls cat id touch true; do
        program=$(type -P "$program")
        cp "$program" "$root/bin/"
        for lib in $(ldd "$program" | grep -o '/[^ )]*'); do
            mkdir -p "$root$(dirname "$lib")"
            cp -nL "$lib" "$root$lib"
        done
    done
    echo old >"$root/etc/hostname"
    echo "127.0.0.1 old" >"$root/etc/hosts"
    echo served >"$root/srv/f"
    chmod -R a+rX "$root"
    [ "$who" = root ] || chown -R "$(me id -u):$(me id -g)" "$root"
}

# The line that every failure of ours has, and nothing else.
is_one_error() { # is_one_error STATUS PATTERN
    [ "$status" -eq "$1" ]
    [[ "$err" == carrel:\ * && "$err" != *$'\n'* ]]
    # shellcheck disable=SC2053  # the right side is a pattern
    [[ "$err" == $2 ]]
}

json() { # json EXPRESSION: of the object on stdout; r is the object
    /usr/bin/python3 -c '
import json, sys
r = json.load(open(sys.argv[1], "rb"))
v = eval(sys.argv[2])
print(v if isinstance(v, str) else json.dumps(v))' "$T/.out" "$1"
}

field() { # field EXPRESSION: of the JSON in $out, as Python's `o`; a string without its quotes
    /usr/bin/python3 -c 'import json, sys
o = json.load(sys.stdin)
v = eval(sys.argv[1])
print(v if isinstance(v, str) else json.dumps(v))' "$1" <<<"$out"
}

holds() { # holds EXPRESSION: it is true of the object
    local value
    value=$(json "$1")
    echo "$1: $value"
    [ "$value" = true ]
}

teardown() {
    local one
    for one in "${_cli_pids[@]}"; do
        ! _is_over "$one" || continue
        _find_carrel "$one" && kill -KILL "$pid" 2>/dev/null
        kill -KILL "$one" 2>/dev/null
        wait "$one" 2>/dev/null
    done
    for one in "${_cli_dirs[@]}"; do
        rm -rf "$one"
    done
    true
}
