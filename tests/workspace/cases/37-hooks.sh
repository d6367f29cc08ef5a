# shellcheck shell=bash disable=SC2016,SC2034,SC2154
# Hooks in the git dir, and through a core.hooksPath that the agent sets; and the user's own relative
# core.hooksPath, which a run can fill.
plant='
hooks=$(git rev-parse --git-path hooks)
mkdir -p "$hooks" tracked-hooks
for hook in pre-commit commit-msg prepare-commit-msg post-commit post-checkout post-merge pre-merge-commit \
    pre-rebase post-rewrite pre-auto-gc reference-transaction post-index-change applypatch-msg \
    pre-applypatch post-applypatch pre-push push-to-checkout update post-update pre-receive; do
    ln -sf "$EVIL/hook" "$hooks/$hook"
    ln -sf "$EVIL/hook-in-tree" "tracked-hooks/$hook"
done
'
trigger='
git status
git commit -q --allow-empty -m x
git checkout -q -b y
git config core.hooksPath tracked-hooks
git commit -q --allow-empty -m x
'

# The user's configuration names a directory of the tree, as husky and others make it.
user_hooks() {
    local hook
    me git -C "$R" config core.hooksPath .githooks
    inside attack/2 -- "mkdir .githooks; for hook in pre-commit post-checkout post-index-change \
        reference-transaction post-merge pre-merge-commit prepare-commit-msg commit-msg post-commit; do
        ln -s $T/host/evil/hook-of-user .githooks/\$hook; done; $ordinary"
    opened_git=() # the user's own git in that directory obeys the user's own setting
    each_operation attack/2 nothing_fired
    me git -C "$R" config --unset core.hooksPath
}
more() {
    plant='$EVIL/hook-of-user' evil "$T/host"
    check "$title, as $who: the user's relative core.hooksPath" user_hooks
}
