# shellcheck shell=bash disable=SC2016,SC2034,SC2154
# Names that some file system treats as .git. In the tree, uncommitted, and in the agent's commits.
must_work=no
folded='.GIT .Git git~1 GIT~1 .git. .git::$INDEX_ALLOCATION'
plant='
for name in .GIT .gIt git~1 .git. ".git " $(printf ".g\xe2\x80\x8cit") $(printf ".gi\xef\xbb\xbft"); do
    mkdir -p "$name/hooks" && echo "[core]" >"$name/config" && echo evil >"$name/hooks/pre-commit"
done
mkdir -p below/.GIT && echo x >below/.GIT/config
'
commit='
blob=$(echo evil | git hash-object -w --stdin)
inner=$(printf "100644 blob $blob\tconfig\n" | git mktree)
tree=$(printf "040000 tree $inner\t$1\n100644 blob $blob\tx\n" | git mktree)
git update-ref HEAD "$(git commit-tree -p HEAD -m folded "$tree")"'
names=(.GIT git~1 $'.g\u200cit' '.git ' '.git.')
bare() {
    me git -C "$R" worktree add -q -b bare "$T/plain-tree" main
    me env -C "$T/plain-tree" /bin/bash -c "$commit" - $'.g\u200cit' || true
    what=$(me git -C "$R" ls-tree -r --name-only bare | grep -F -m 1 config)
}
control() {
    inside control/1 -- 'mkdir .github .gitx git; echo x >.github/x; echo x >.gitx/y; echo x >git/z'
    carrel workspace commit control/1 >/dev/null
    same "names that are merely like it" ".github/x .gitx/y git/z " \
        "$(me git -C "$R" diff --name-only main task-control-run-1 | tr '\n' ' ')"
    carrel workspace discard --force control/1 >/dev/null
}
attack() {
    local name
    inside attack/1 -- "$plant $ordinary"
    each_operation attack/1 no_folded
    breadth=brief
    for name in "${names[@]}"; do
        inside attack/2 -- "set -- '$name'; $commit" || true
        each_operation attack/2 no_folded
    done
}
no_folded() {
    local found
    found=$(
        me git -C "$R" -c core.quotePath=false for-each-ref --format='%(refname)' refs/heads | while read -r ref; do
            me git -C "$R" -c core.quotePath=false ls-tree -r --name-only "$ref"
        done | sed 's/\xe2\x80\x8c//g; s/\xef\xbb\xbf//g' | grep -iE '(^|/)(\.git|git~1)[. ]*(/|$)'
    ) || true
    same "on the branches" "" "$found"
    found=$(find "$R" -path "$R/.git" -prune -o \( -iname '.git' -o -iname 'git~1' -o -name '.g*it' -o -name '.git[. ]' \) -print | grep -v '/.github') || true
    same "in the user's tree" "" "$found"
}
