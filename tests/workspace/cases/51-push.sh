# shellcheck shell=bash disable=SC2016,SC2034,SC2154
# Pushing anywhere: a path of the host, a program, the network.
prepare() {
    rm -rf "$T/target.git"
    me git init -q --bare -b main "$T/target.git"
}
plant='
git remote add path "$TARGET"
git remote add file "file://$TARGET"
git remote add ext "ext::$EVIL/ext-remote"
git remote add token "https://user:token@127.0.0.1:9/x.git"
git config protocol.ext.allow always
for remote in path file ext token; do timeout 10 git push -q $remote HEAD:refs/heads/pushed-$remote; done
'
bare() {
    me git -C "$R" worktree add -q --detach "$T/plain-tree" main
    me env -C "$T/plain-tree" TARGET="$T/target.git" EVIL="$T/bare/evil" /bin/bash -c "$plant" || true
    what="$(me git -C "$T/target.git" for-each-ref --format='%(refname:short)' | tr '\n' ' ')$(fired "$T/bare")" || true
    prepare
}
control() {
    local said
    said=$(run_in "$R" control/1 --on-success discard -- /bin/bash -c '
        git init -q --bare /tmp/x.git; git push -q /tmp/x.git HEAD:refs/heads/x; git -C /tmp/x.git for-each-ref --format="%(refname)"') || true
    same "push inside" refs/heads/x "$said"
}
attack() {
    inside attack/1 --env "TARGET=$T/target.git" -- "$plant $ordinary" >/dev/null 2>&1 || true
    nothing_pushed
    each_operation attack/1 nothing_pushed
}
nothing_pushed() {
    same "refs of the target" "" "$(me git -C "$T/target.git" for-each-ref)"
    nothing_fired
    same "remotes of the host" "" "$(me git -C "$R" remote)"
}
