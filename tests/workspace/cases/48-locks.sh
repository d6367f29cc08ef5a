# shellcheck shell=bash disable=SC2016,SC2034,SC2154
# Locks of killed operations, created here as kill -9 leaves them.
must_work=no # its own git is locked, and has to commit what is left
plant='
common=$(git rev-parse --git-common-dir)
mkdir -p "$common/refs/heads"
touch "$common/config.lock" "$common/packed-refs.lock" "$common/HEAD.lock" "$common/shallow.lock" \
    "$(git rev-parse --git-path index.lock)" "$(git rev-parse --git-path HEAD.lock)" \
    "$common/refs/heads/main.lock" "$common/refs/heads/$(git symbolic-ref --short HEAD).lock" \
    "$common/gc.pid.lock"
'
bare() {
    me git -C "$R" worktree add -q "$T/plain-tree" -b bare main
    me env -C "$T/plain-tree" /bin/bash -c "$plant" || true
    me git -C "$R" config x.y z 2>/dev/null || what+="config "
    me git -C "$R" commit -q --allow-empty -m x 2>/dev/null || what+="commit "
    find "$R/.git" -name '*.lock' -delete
}
control() {
    local said
    said=$(run_in "$R" control/1 --on-success discard -- /bin/bash -c "$plant
        git commit -q --allow-empty -m x || echo locked" 2>/dev/null) || true
    same "inside" locked "$said"
}
attack() {
    inside attack/1 -- "$ordinary; git add -A; git commit -qm work; echo later >later; $plant" || true
    no_locks
    each_operation attack/1 no_locks
}
no_locks() {
    same "locks on the host" "" "$(find "$R/.git" -name '*.lock')"
    me git -C "$R" config x.y z
    me git -C "$R" update-ref refs/test/x "$main"
}
more() {
    check "$title, as $who: killed in the middle, and the next run" killed
}
killed() {
    inside attack/2 -- "$ordinary; git add -A; (git commit -qm one & kill -9 \$!; wait); $plant; kill -9 \$\$" 2>/dev/null || true
    no_locks
    inside attack/3 -- "$ordinary; git add -A; git commit -qm fine"
    operation show attack/2
    operation commit attack/3
    same "the next run" fine "$(me git -C "$R" log -1 --format=%s task-attack-run-3)"
    operation discard --force attack/2
    operation discard --force attack/3
}
