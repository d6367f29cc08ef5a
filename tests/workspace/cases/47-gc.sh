# shellcheck shell=bash disable=SC2016,SC2034,SC2154
# Housekeeping inside, where the worktrees of others do not exist and their objects look unused.
prepare() {
    rm -rf "$T/sibling"
    me git -C "$R" worktree prune
    me git -C "$R" worktree add -q -f -B sibling "$T/sibling" main
    me git -C "$T/sibling" commit -q --allow-empty -m "the sibling's"
    # An object that only the sibling's index refers to.
    echo staged | me tee "$T/sibling/staged" >/dev/null
    me git -C "$T/sibling" add staged
}
plant='
git worktree prune --expire=now
git reflog expire --expire=now --expire-unreachable=now --all
git branch -D sibling
git repack -adq
git prune --expire=now
git gc -q --prune=now
'
bare() {
    me git -C "$R" worktree add -q --detach "$T/plain-tree" main
    me mv "$T/sibling" "$T/unseen" # a sandbox does not show it
    me env -C "$T/plain-tree" /bin/bash -c "$plant" || true
    me mv "$T/unseen" "$T/sibling"
    me git -C "$T/sibling" status >/dev/null 2>&1 || what=sibling-destroyed
}
control() {
    local said
    said=$(run_in "$R" control/1 --on-success discard -- /bin/bash -c "$plant
        git fsck --no-progress --no-dangling && git commit -q --allow-empty -m x && echo fine" 2>/dev/null) || true
    same "inside, afterwards" fine "$(tail -n 1 <<<"$said")"
}
attack() {
    inside attack/1 -- "$plant $ordinary; git add -A; git commit -qm x; git repack -adq; git gc -q --prune=now" || true
    siblings_live
    each_operation attack/1 siblings_live
}
siblings_live() {
    local said
    said=$(me git -C "$T/sibling" status --porcelain 2>&1) || true
    same "status of the sibling" "A  staged" "$said"
    me git -C "$T/sibling" cat-file -e :staged
    same "the sibling's branch" "the sibling's" "$(me git -C "$R" log -1 --format=%s sibling)"
    sane "$R"
}
