# shellcheck shell=bash
# lib.sh - shared by the tests of workspaces. To be sourced.
#
#   each_identity FUNCTION ARG...   as root (if this is root) and as an ordinary user; $who says which
#   $T                              a directory of that identity's own, gone afterwards
#   me CMD...                       runs a command as that identity, in $AT or $T, with an environment
#                                   that says nothing of the caller's git
#   carrel ARG...                   the same with carrel
#   facts DIR                       everything about a repository that a run may not change
#   field NAME                      of a result object (JSON) on stdin, at any depth
#
# State, HOME and repositories are all below $T: tests never touch the user's own.

_workspace_dir=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=../lib/user.sh
source "$_workspace_dir/../lib/user.sh"
# shellcheck source=../lib/tap.sh
source "$_workspace_dir/../lib/tap.sh"
# shellcheck source=repositories.sh
source "$_workspace_dir/repositories.sh"

who=
T=
_own=
temporary=() # directories beside $T, removed at the end

# A copy of the binary: a rebuild of the tree meanwhile must not change what is tested.
_take_binary() {
    if [ ! -x "$CARREL" ]; then
        echo "Bail out! there is no $CARREL; build it first"
        exit 1
    fi
    _own=$(mktemp -d /tmp/carrel-workspace.XXXXXX)
    chmod 755 "$_own"
    install -m 755 "$CARREL" "$_own/carrel"
    CARREL=$_own/carrel
}

me() {
    local -a clean=(env -u GIT_DIR -u GIT_WORK_TREE -u GIT_INDEX_FILE -u GIT_OBJECT_DIRECTORY
        -C "${AT:-$T}" HOME="$T/home" XDG_STATE_HOME="$T/state" XDG_CONFIG_HOME="$T/home/.config"
        GIT_CONFIG_NOSYSTEM=1 LC_ALL=C.UTF-8 TZ=UTC)
    if [ "$who" = root ]; then
        "${clean[@]}" "$@"
    else
        as_user "${clean[@]}" "$@"
    fi
}

# The timeout is for hangs.
carrel() { me timeout --foreground -k 5 "${LIMIT:-120}" "$CARREL" "$@" </dev/null; }

# run_in REPO TASK/RUN [OPTION...] -- CMD...: one run with a workspace.
run_in() {
    local repo=$1 task=${2%/*} run=${2#*/}
    shift 2
    carrel run --quiet --repo "$repo" --task "$task" --run "$run" "$@"
}

_enter() {
    who=$1
    if [ "$who" = root ]; then
        T=$(mktemp -d /tmp/carrel-workspace.XXXXXX)
    else
        T=$(as_user mktemp -d /tmp/carrel-workspace.XXXXXX)
    fi
    me chmod 755 "$T"
    me mkdir "$T/home"
    me git config --global user.name Tester
    me git config --global user.email tester@example.org
    me git config --global init.defaultBranch main
    me git config --global gc.auto 0
    me git config --global core.abbrev 12
}

# Mounts that are left are a failure of the test that made them; here they only must not be in the
# way.
_leave() {
    local point
    [ -n "$T" ] || return 0
    mounts_below "$T" | sort -r | while read -r point; do
        umount "$point" 2>/dev/null || umount -l "$point" 2>/dev/null || true
    done
    # A directory that its owner closed is opened again by the owner.
    rm -rf "$T" 2>/dev/null || {
        find "$T" -type d ! -perm -700 -exec chmod u+rwx {} + 2>/dev/null || true
        rm -rf "$T" || true
    }
    T=
}

mounts_below() { awk -v dir="$1/" 'index($5 "/", dir) == 1 { print $5 }' /proc/self/mountinfo; }

each_identity() {
    local identity
    for identity in root user; do
        if [ "$identity" = root ] && [ "$(id -u)" -ne 0 ]; then
            skip "everything as root: $*" "this is not root"
            continue
        elif [ "$identity" = user ] && ! have_user 2>/dev/null; then
            skip "everything as an ordinary user: $*" "$NO_USER_REASON"
            continue
        fi
        _enter "$identity"
        "$@"
        _leave
    done
}

# as_one IDENTITY FUNCTION ARG...: for what is shown once.
as_one() {
    local identity=$1
    shift
    [ "$identity" = root ] && [ "$(id -u)" -ne 0 ] && identity=user
    _enter "$identity"
    "$@"
    _leave
}

# Everything except the objects, which may only grow, and what no git command shows: one text that
# must be the same before and after.
facts() {
    me git -C "$1" for-each-ref
    echo "HEAD $(cat "$1/.git/HEAD")"
    echo "config $(sha1sum <"$1/.git/config")"
    (cd "$1/.git" && find . -type f ! -path './objects/*' ! -path './logs/*' ! -name index \
        ! -path './refs/*' ! -name packed-refs ! -name gc.pid ! -name commit-graph -print0 |
        sort -z | xargs -0r sha1sum)
    (cd "$1/.git" && find . -name '*.lock' -o -name 'tmp_*' | sort)
    me git -C "$1" worktree list --porcelain
    me git -C "$1" status --porcelain -uall
}

sane() { # sane REPO: git finds nothing wrong
    local output
    output=$(me git -C "$1" fsck --full --strict --no-dangling --no-progress 2>&1) || {
        echo "fsck: $output"
        return 1
    }
    [ -z "$output" ] || {
        echo "fsck says: $output"
        return 1
    }
}

# same NAME BEFORE AFTER: two texts, or what differs.
same() {
    [ "$2" = "$3" ] && return
    echo "$1 differs:"
    diff <(echo "$2") <(echo "$3") | head -n 20
    return 1
}

field() { sed -n "s/.*[{,]\"$1\":\"\{0,1\}\([^\",}]*\).*/\1/p" | head -n 1; }

finish() {
    _leave
    rm -rf "$_own" "${temporary[@]}"
}

trap finish EXIT
trap 'exit 130' INT TERM HUP
_take_binary
