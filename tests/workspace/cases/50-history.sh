# shellcheck shell=bash disable=SC2016,SC2034,SC2154
# With --history cut a run sees only its base commit; without it, still not the branches of other
# runs.
look='git log --all --format=%s
git for-each-ref --format="%(refname)"
git fsck --lost-found --no-progress 2>&1
git rev-list --objects --all
git cat-file --batch-all-objects --batch-check
cat $(git rev-parse --git-path objects/info/alternates)
for dir in $(cat $(git rev-parse --git-path objects/info/alternates) 2>/dev/null); do find $dir -type f | head -n 100000; done
git cat-file -p $SECRET 2>&1
git cat-file -p $OLD 2>&1'
prepare() {
    me git -C "$R" checkout -q -B task-other-run-1
    echo "secret of another run" | me tee "$R/secret" >/dev/null
    me git -C "$R" add secret
    me git -C "$R" commit -q -m "secret of another run"
    secret=$(me git -C "$R" rev-parse HEAD:secret)
    old=$(me git -C "$R" rev-parse main~2)
    me git -C "$R" checkout -q main
}
bare() {
    me git -C "$R" worktree add -q --detach "$T/plain-tree" main
    what=$(me env -C "$T/plain-tree" SECRET="$secret" OLD="$old" /bin/bash -c "$look" | grep -om 1 'secret of another run') || true
}
control() {
    local said
    said=$(run_in "$R" control/1 --on-success discard --history cut -- git log --format=%s) || true
    same "the base alone" third "$said"
    said=$(run_in "$R" control/2 --on-success discard -- git log --format=%s) || true
    same "all of its history" third "$(head -n 1 <<<"$said")"
    same "commits" 3 "$(wc -l <<<"$said")"
}
attack() {
    local said word
    said=$(inside attack/1 --history cut --env "SECRET=$secret" --env "OLD=$old" -- "$look; $ordinary" 2>&1) || true
    for word in 'secret of another run' other-run "${secret:0:12}" 'second' topic; do
        # The command line has the id; git's error about its absence may repeat it.
        if grep -v 'Not a valid object name' <<<"$said" | grep -qF -- "$word"; then
            echo "seen with --history cut: $word"
            grep -F -- "$word" <<<"$said" | head -n 3
            return 1
        fi
    done
    said=$(inside attack/2 --env "SECRET=$secret" --env "OLD=$old" -- 'git for-each-ref; git log --all --format=%s') || true
    if grep -qE 'other-run|secret of another' <<<"$said"; then
        echo "branches of another run are seen: $said"
        return 1
    fi
    carrel workspace commit attack/1 >/dev/null
    same "parent of what came out" "$(me git -C "$R" rev-parse main)" "$(me git -C "$R" rev-parse task-attack-run-1~1)"
    carrel workspace discard --force attack/1 >/dev/null
    carrel workspace discard --force attack/2 >/dev/null
}
