# shellcheck shell=bash disable=SC2016,SC2034,SC2154
# Every ref except the run's own, and everything else that changes what a name means.
plant='
one=$(git commit-tree -p HEAD -m moved "$(git write-tree)")
git update-ref refs/heads/main $one
git update-ref refs/heads/topic $one
git branch -f task-other-run-1 $one
git tag -f v1 $one
git tag evil $one
git notes add -f -m evil HEAD
git replace -f HEAD~1 $one
git update-ref refs/remotes/origin/main $one
git update-ref refs/stash $one
git pack-refs --all
'
# The HEAD of a plain worktree is not the repository's; in carrel's it is.
meaning='
common=$(git rev-parse --git-common-dir)
git rev-parse HEAD >"$common/shallow"
mkdir -p "$common/info"
echo "$(git rev-parse main) $(git rev-parse v1)" >"$common/info/grafts"
[ "$common" -ef "$(git rev-parse --git-dir)" ] || echo "ref: refs/heads/evil" >"$common/HEAD"
'
bare() {
    local before
    before=$(facts "$R")
    me git -C "$R" worktree add -q --detach "$T/plain-tree" main
    me env -C "$T/plain-tree" /bin/bash -c "$plant $meaning" || true
    what=$(diff <(echo "$before") <(facts "$R") | grep -o 'refs/[a-z/]*' | sort -u | tr '\n' ' ') || true
}
control() {
    local said
    said=$(run_in "$R" control/1 --on-success discard -- /bin/bash -c "$plant
        git log -1 --format=%s v1") || true
    same "v1, inside" moved "$(tail -n 1 <<<"$said")"
}
attack() {
    local before
    me git -C "$R" branch task-other-run-1 main
    before=$(shared_facts)
    inside attack/1 -- "$ordinary; git add -A; git commit -qm 'the work'; $plant" || true
    each_operation attack/1 only_own_ref "$before"
    # With a forged history the result may be refused, but nothing else.
    must_work=no
    inside attack/2 -- "$ordinary; git add -A; git commit -qm 'the work'; $plant $meaning" || true
    each_operation attack/2 only_own_ref "$before"
}
# What a merge does to the user's own branch is intended, and undone again in each_operation.
shared_facts() {
    facts "$R" | grep -vE 'task-attack-run|worktrees/carrel-|^worktree |^HEAD |^branch |^locked|^detached|^$|COMMIT_EDITMSG|ORIG_HEAD|MERGE_|FETCH_HEAD' |
        grep -vE 'refs/heads/main$|^ M |^\?\? |^A |^M |^[AMD] ' || true
}
only_own_ref() { same "the repository" "$1" "$(shared_facts)"; }
