# shellcheck shell=bash disable=SC2016,SC2034,SC2154
# The tree's .git leads elsewhere: to a repository in the tree whose configuration runs programs, by a
# new pointer, by commondir, by a link in place of objects.
plant='
git init -q --bare planted.git
git -C planted.git config core.bare false
git -C planted.git config core.fsmonitor "$EVIL/core.fsmonitor"
git -C planted.git config diff.external "$EVIL/diff.external"
git -C planted.git config alias.evil "!$EVIL/alias"
git_dir=$(git rev-parse --absolute-git-dir)
cp "$git_dir/HEAD" planted.git/HEAD
cp "$git_dir/index" planted.git/index
cp -r "$(git rev-parse --git-common-dir)/objects" planted.git/ 2>/dev/null
cp "$(git rev-parse --git-common-dir)/packed-refs" planted.git/ 2>/dev/null
mkdir -p planted.git/refs/heads
rm -f .git
echo "gitdir: $PWD/planted.git" >.git
mv .git away
ln -s planted.git .git
echo "$PWD/planted.git" >"$git_dir/commondir"
echo "/etc/hostname" >"$git_dir/gitdir"
mv "$git_dir/objects" "$git_dir/objects.away" && ln -s "$HOME/.ssh" "$git_dir/objects"
mkdir -p nested && cp -r planted.git nested/.git
'
trigger='
git status
git diff
git evil
git -C nested status
'
control() {
    local said
    # The pointer inside is ours; a repository that the agent creates belongs to the agent.
    said=$(run_in "$R" control/1 --on-success discard -- /bin/bash -c '
        git init -q own && cd own && git config alias.own "!echo obeyed" && git own') || true
    same "an own repository in the tree" obeyed "$said"
}
more() { check "$title, as $who: .git cannot be replaced inside" fixed; }
fixed() {
    local said
    said=$(inside attack/2 -- '
        for try in "rm -f .git" "mv .git x" "ln -sfn planted .git" "sh -c \"echo gitdir: /tmp >.git\"" \
            "mkdir .git" "cp /dev/null .git"; do
            eval "$try" 2>/dev/null && echo "done: $try"
        done
        cat .git; git status --porcelain' 2>&1) || true
    grep -q '^done:' <<<"$said" && {
        echo "$said"
        return 1
    }
    same ".git" "gitdir: /run/carrel/git" "$said"
}
