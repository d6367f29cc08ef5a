# shellcheck shell=bash disable=SC2016,SC2034,SC2154
# Configuration by detours: a worktree's own file, includes of files in the tree.
plant='
git config extensions.worktreeConfig true
git config core.repositoryFormatVersion 1
git config --worktree core.fsmonitor "$EVIL/config.worktree"
git config include.path "$PWD/planted.config"
git config "includeIf.gitdir:/**.path" "$PWD/planted-if.config"
printf "[alias]\n\tincluded = !%s/include\n[core]\n\tpager = %s/include-pager\n[diff]\n\texternal = %s/include-diff\n" \
    "$EVIL" "$EVIL" "$EVIL" >planted.config
printf "[alias]\n\tincludedif = !%s/includeIf\n" "$EVIL" >planted-if.config
'
trigger='
git status
git diff
git included
git includedif
'
