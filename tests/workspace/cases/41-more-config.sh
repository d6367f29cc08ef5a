# shellcheck shell=bash disable=SC2016,SC2034,SC2154
# Indirect configuration: a worktree's own file, includes of files in the tree.
plant='
git config extensions.worktreeConfig true
git config core.repositoryFormatVersion 1
git config --worktree core.fsmonitor "$EVIL/config.worktree"
git config include.path "$PWD/planted.config"
git config "includeIf.gitdir:/**.path" "$PWD/planted-if.config"
git config --file planted.config alias.included "!$EVIL/include"
git config --file planted.config core.pager "$EVIL/include-pager"
git config --file planted.config diff.external "$EVIL/include-diff"
git config --file planted-if.config alias.includedif "!$EVIL/includeIf"
'
trigger='
git status
git diff
git included
git includedif
script -qec "git -p log -1" /dev/null
'
each_fires=yes
opened_git+=("included" "includedif")
