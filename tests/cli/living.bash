# shellcheck shell=bash
# shellcheck disable=SC2034,SC2154  # for the tests; from cli.bash
# living.bash - what the tests of sandboxes that stay have in common. To be loaded after cli.bash.
#
# Each test has a registry and slots of its own, so that one may say `destroy --all` and count what
# is left: for root, a directory that is mounted over /run/carrel for each command alone; for a user,
# another XDG_RUNTIME_DIR.
#
#   create ARG...        makes a sandbox; $id is its id
#   keeper_of ID         the process that keeps it
#   $S                   the registry's directory
#   nothing_left         no entry, no keeper, no cgroup, no mount of this test is there
#   in_box WORD...       runs a shell line in $id; then as `carrel`
#   small_repo           $T/repo, of one file and one commit
#   layers               what sandboxes wrote to and is on disk

S=

# Whose places these are: made when first needed, since `both` changes $T.
_places() {
    if [ "$who" = root ]; then
        S=$T/carrel/sandboxes
        [ -d "$T/carrel" ] || mkdir -m 700 "$T/carrel"
        [ -d /run/carrel ] || mkdir -m 700 /run/carrel
    else
        S=$T/run/carrel/sandboxes
        [ -d "$T/run" ] || as_user mkdir -m 700 "$T/run"
    fi
}

# As that of cli.bash, with the places of this test.
me() {
    [[ $S == "$T"/* ]] || _places
    if [ "$who" = root ]; then
        (
            cd "$T" || exit
            XDG_STATE_HOME=$T/state XDG_CONFIG_HOME=$T/config \
                exec unshare --mount --propagation private sh -c \
                'mount --bind "$0" /run/carrel && exec "$@"' "$T/carrel" "$@"
        ) 3>&-
    else
        as_user env -C "$T" XDG_STATE_HOME="$T/state" XDG_CONFIG_HOME="$T/config" \
            XDG_RUNTIME_DIR="$T/run" "$@" 3>&-
    fi
}

create() {
    carrel create "$@"
    [ "$status" -eq 0 ]
    id=$out
    [[ $id =~ ^S-[0-9a-z]{16}$ ]]
}

small_repo() {
    me git init -q -b main repo
    me git -C repo config user.name T
    me git -C repo config user.email t@example.org
    me sh -c 'cd repo && echo one >a && git add a && git commit -qm first'
}

layers() {
    me find state/carrel/layers -mindepth 1 -maxdepth 1 ! -name '.*' -printf '%f\n' 2>/dev/null | sort
}

in_box() { carrel exec --quiet "$id" -c "$@"; }

# What `carrel inspect` says of $id: an expression in which r is the object.
says() {
    carrel inspect "$id"
    [ "$status" -eq 0 ]
    holds "$1"
}

keeper_of() { me "$CARREL" inspect "$1" | grep -oE '"pid":[0-9]+' | cut -d: -f2; }

# The one process below a keeper is the sandbox's init.
init_of() { cut -d' ' -f1 "/proc/$1/task/$1/children"; }

is_dead() { [ ! -e "/proc/$1" ] || [[ "$(cat "/proc/$1/stat" 2>/dev/null)" == *") Z "* ]]; }

no_entry() { [ -z "$(find "$S" -mindepth 1 ! -name lock ! -name status ! -name names 2>/dev/null)" ]; }

# Keepers of this test: they hold its registry. By its inode: root's have another name for it.
keepers() {
    local pid
    for pid in $(find -L /proc/[0-9]*/fd -maxdepth 1 -samefile "$S" 2>/dev/null | cut -d/ -f3 | sort -u); do
        [ ! -e "/proc/$pid" ] || echo "$pid" # find has it open itself
    done
}
no_keeper() { [ -z "$(keepers)" ]; }

# The groups of this test's sandboxes: they have device and number of its lock file in their names.
groups_left() {
    local prefix
    prefix=$(group_prefix "${S%/*}/lock") || return 0
    compgen -G "/sys/fs/cgroup/*/carrel/$prefix*" || compgen -G "/sys/fs/cgroup/carrel/$prefix*" || true
}
no_group() { [ -z "$(groups_left)" ]; }

nothing_left() {
    until_true no_keeper || {
        keepers | xargs -r ps -o pid,ppid,stat,wchan,args -p
        return 1
    }
    carrel cleanup
    [ "$status" -eq 0 ]
    no_entry || {
        find "$S"
        return 1
    }
    no_group || {
        groups_left
        return 1
    }
    ! grep -F "$T" /proc/self/mountinfo
}

# Destroys every sandbox that a test left, of root and of the user.
_living_teardown() {
    local dir
    for dir in "${_cli_dirs[@]}"; do
        T=$dir
        S=
        case $dir in
        "$USER_DIR"/*) who=user ;;
        *) who=root ;;
        esac
        me "$CARREL" destroy --all --force >/dev/null 2>&1 || true
        me "$CARREL" cleanup >/dev/null 2>&1 || true
    done
}
eval "cli_$(declare -f teardown)"
teardown() {
    _living_teardown
    cli_teardown
}
