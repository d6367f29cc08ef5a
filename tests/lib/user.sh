# shellcheck shell=bash
# user.sh - an ordinary user for tests, whether root runs them or not. To be sourced, by bats or
# bash.
#
#   as_user CMD...   runs a command as an ordinary user, in $USER_DIR
#   $USER_DIR        a directory of that user's own, writable; it is also HOME there
#   $CARREL          the binary under test, readable by that user and by us
#
# For root, the user is `carrel-test`, created when first needed and kept (`userdel -r carrel-test`
# removes it). Otherwise it is the current user. If no user can be created, have_user fails and says
# why; a test then skips with $NO_USER_REASON.

_top=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
CARREL=${CARREL:-$_top/build/carrel}
NO_USER_REASON=

_user_name=carrel-test

_as_other() { # the command with the ids of the test user, whatever directory and HOME are
    setpriv --reuid "$_user_name" --regid "$_user_name" --init-groups --inh-caps=-all -- "$@"
}

# Creates the test user if there is none. Two suites may do this at once: the loser checks again.
_make_user() {
    id -u "$_user_name" >/dev/null 2>&1 && return
    useradd --create-home --user-group --shell /bin/sh "$_user_name" >/dev/null 2>&1 ||
        id -u "$_user_name" >/dev/null 2>&1
}

# The tree may be unreadable for the user, like a clone in /root: then the binary is copied. Each
# binary has its own directory there, and is compared by its bytes: times tell nothing about two
# trees that share the user.
_reachable_binary() {
    local copy
    if [ ! -e "$CARREL" ] || _as_other test -r "$CARREL" -a -x "$CARREL"; then
        echo "$CARREL"
        return
    fi
    copy=$USER_DIR/bin/$(cksum <<<"$CARREL" | cut -d' ' -f1)/carrel
    if ! cmp -s "$CARREL" "$copy"; then
        mkdir -p "${copy%/*}"
        install -m 755 "$CARREL" "$copy.$$" && mv -f "$copy.$$" "$copy"
    fi
    echo "$copy"
}

_set_up_user() {
    if [ "$(id -u)" -ne 0 ]; then
        USER_DIR=${USER_DIR:-$(mktemp -d "${TMPDIR:-/tmp}/carrel-user.XXXXXX")}
        return
    fi
    USER_DIR=/nonexistent
    if ! command -v setpriv >/dev/null || ! _make_user; then
        NO_USER_REASON="no ordinary user can be made here (useradd and setpriv are needed)"
        return
    fi
    USER_DIR=$(getent passwd "$_user_name" | cut -d: -f6)
    if ! _as_other test -w "$USER_DIR" 2>/dev/null; then
        NO_USER_REASON="the user $_user_name cannot be used here (setpriv fails or has no home)"
        return
    fi
    CARREL=$(_reachable_binary)
}

# A plain `return` would return the status from before bats ran its teardown: a failure, after one.
have_user() {
    [ -z "$NO_USER_REASON" ] && return 0
    echo "$NO_USER_REASON" >&2
    return 1
}

# Without the variables of root's login: they name directories that the user cannot enter.
as_user() {
    have_user || return 125
    if [ "$(id -u)" -ne 0 ]; then
        (cd "$USER_DIR" && "$@")
        return
    fi
    (
        cd "$USER_DIR" || exit 125
        unset XDG_RUNTIME_DIR XDG_STATE_HOME XDG_CONFIG_HOME XDG_CACHE_HOME XDG_DATA_HOME
        unset SUDO_USER SUDO_UID SUDO_GID TMPDIR BATS_TMPDIR BASH_ENV
        HOME=$USER_DIR USER=$_user_name LOGNAME=$_user_name \
            PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin _as_other "$@"
    )
}

_set_up_user
export CARREL USER_DIR
