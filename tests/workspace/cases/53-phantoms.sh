# shellcheck shell=bash disable=SC2016,SC2034,SC2154
# A sandbox that hides files by mounting over them leaves stray entries in the tree.
bare() {
    me git -C "$R" worktree add -q -b bare "$T/plain-tree" main
    what=$(me bwrap --ro-bind / / --dev /dev --bind "$T/plain-tree" "$T/plain-tree" --ro-bind /dev/null "$T/plain-tree/.bashrc" \
        git -C "$T/plain-tree" status --porcelain | tr -d '?' | tr '\n' ' ')
}
does_apply() {
    command -v bwrap >/dev/null || {
        echo "bubblewrap, whose way shows the problem, is not installed"
        return 1
    }
}
control() {
    same "a file of one's own" "?? own" "$(run_in "$R" control/1 --on-success discard -- sh -c 'touch own; git status --porcelain -uall')"
}
attack() {
    local before said
    before=$(facts "$R")
    said=$(inside attack/1 -- 'git status --porcelain -uall --ignored; find . -name .git -prune -o ! -type f ! -type d ! -type l -print
        git add . && git diff --cached --name-only; 
        comm -z -23 <(find . -mindepth 1 -maxdepth 1 -printf "%f\0" | sort -z) <(git ls-tree -z --name-only HEAD | sort -z) |
            tr "\0" "\n" | grep -vx .git
        true')
    same "in a fresh workspace" "" "$said"
    same "status of the host" "$(grep -v -e task-attack -e '/worktrees/carrel' <<<"$before")" \
        "$(facts "$R" | grep -v -e task-attack -e '/worktrees/carrel' | sed '/^worktree .*attack/,/^$/d')"
    said=$(carrel workspace diff attack/1)
    same "diff" "" "$said"
    carrel workspace discard attack/1 >/dev/null
    same "the host, afterwards" "$before" "$(facts "$R")"
}
