# shellcheck shell=bash disable=SC2016,SC2034,SC2154
# Files with the ids of a sandbox on the host: git reports such a repository as dubious, and its
# owner cannot remove them. In a plain worktree of root another uid writes them.
bare() {
    if [ "$who" != root ]; then
        what="(root's round has shown it)"
        return
    fi
    me git -C "$R" worktree add -q -b bare "$T/plain-tree" main
    chown -R 12345:12345 "$T/plain-tree"
    setpriv --reuid 12345 --regid 12345 --clear-groups touch "$T/plain-tree/made"
    [ "$(stat -c %u "$T/plain-tree/made")" = 0 ] || what+="foreign-files "
    setpriv --reuid 12345 --regid 12345 --clear-groups git init -q "$T/plain-tree/own"
    me git -C "$T/plain-tree/own" status 2>&1 | grep -q dubious && what+="dubious-ownership"
}
control() {
    local said
    said=$(run_in "$R" control/1 --on-success discard -- /bin/sh -c '
        touch made; test "$(stat -c %u made)" = "$(id -u)" && test "$(stat -c %u a.txt)" = "$(id -u)" && git status --short')
    same "inside all is the run's own" "?? made" "$said"
}
attack() {
    local status
    inside attack/1 -- "$ordinary; mkdir -p d/e; touch d/e/f; chmod 700 d; chmod 000 d/e/f; ln -s x y; mkfifo pipe
        git add work.txt a.txt; git commit -qm work; umask 077; echo late >late"
    mine
    carrel workspace open attack/1 --at "$T/opened" >/dev/null
    mine
    status=$(me git -C "$T/opened" status --porcelain 2>&1) || {
        echo "git status in the opened workspace: $status"
        return 1
    }
    if grep -qi dubious <<<"$status"; then
        echo "$status"
        return 1
    fi
    carrel workspace close attack/1 >/dev/null
    carrel workspace commit attack/1 >/dev/null
    carrel workspace apply attack/1 >/dev/null
    mine
    carrel workspace discard --force attack/1 >/dev/null
    mine
}
mine() {
    same "files of another owner" "" "$(find "$R" "$T/state" -xdev ! -user "$(me id -u)" 2>/dev/null | head -n 5)"
}
