#!/usr/bin/env bats
# shellcheck disable=SC2030,SC2031,SC2154  # cli.bash sets $status, $out and others
# What only a workspace has is not lost: by no discard, no prune, no resume and no cleanup.

load cli
load repo

# ---- commits that are no part of the result -----------------------------------------------------

is_kept() { # is_kept RUN N: N commits that exist nowhere else keep it
    in_repo workspace show "$1" --json
    holds "r['other_commits'] == $2"
    in_repo workspace discard "$1"
    [ "$status" -eq 125 ]
    [[ "$err" == *"has $2 commit"*"on other branches or in its stash, and nowhere else"* ]]
    [[ "$err" == *"--force"* ]]
    in_repo workspace prune
    [ "$status" -eq 0 ]
    [ "$out" = "nothing to prune" ]
    in_repo workspace show "$1"
    [ "$status" -eq 0 ]
    [[ "$out" != *"nothing changed"* ]]
    [[ "$out" == *"also        $2 commit"* ]]
}

another_branch() {
    new_repo
    in_repo run --workspace --run r1 -c 'git switch -qc feature; echo i >imp; git add imp
        git commit -qm important; git switch -q -'
    [ "$status" -eq 0 ]
    [[ "$err" == *"also 1 commit on other branches or in the stash; it stays in the workspace"* ]]
    [[ "$err" != *"nothing changed"* ]]
    is_kept r1 1
    in_repo workspace resume r1 -c 'git merge -q feature'
    in_repo workspace commit r1
    [ "$(g log -1 --format=%s "$(g for-each-ref --format='%(refname)' 'refs/heads/*run-r1')")" = \
        important ]
    in_repo workspace discard r1
    [ "$status" -eq 0 ]
}
@test "commits on another branch of the run keep its workspace" { both another_branch; }

stashes() {
    new_repo
    in_repo run --workspace --run r1 --json -c 'echo x >>a.txt; git stash -q
        echo y >>a.txt; echo z >>gone.txt; git add gone.txt; git stash -q'
    [ "$status" -eq 0 ]
    holds 'r["workspace"]["changed"] == 0 and r["workspace"]["other_commits"] == 4'
    is_kept r1 4
    in_repo workspace discard r1 --force
    [ "$status" -eq 0 ]
}
@test "a stash keeps the workspace, with all of its entries" { both stashes; }

beside_a_result() {
    new_repo
    in_repo run --workspace --run r1 --on-success commit -c 'git switch -qc feature
        git commit -qm important --allow-empty; git switch -q -; echo n >new.txt'
    [[ "$err" == *"committed to branch"* ]]
    is_kept r1 1
}
@test "a committed result does not cover what lies beside it" { both beside_a_result; }

of_the_repository() {
    new_repo
    g branch old HEAD~1
    g switch -qc other
    g commit -q --allow-empty -m other
    g switch -q main
    in_repo run --workspace --run r1 -c 'git branch mine other; git tag here; git update-ref -d \
        refs/heads/other; git commit -q --allow-empty -m gone; git reset -q --hard HEAD~1'
    [[ "$err" == *"nothing changed"* ]]
    in_repo workspace discard r1
    [ "$status" -eq 0 ]
    in_repo run --workspace --run r2 --history cut -c 'git commit -q --allow-empty -m x'
    [[ "$err" != *"also"* ]]
}
@test "commits of the repository are nothing of the run's" { both of_the_repository; }

# ---- where HEAD was left ------------------------------------------------------------------------

left_elsewhere() { # left_elsewhere GIT-COMMAND
    in_repo run --workspace --run r1 -c "$1; echo i >imp; git add imp
        git commit -qm important --author 'Agent <agent@example.org>'; echo n >new.txt"
    [[ "$err" == *"2 files changed, +2 -0, 1 commit"$'\n'* ]]
    [[ "$err" != *"also"* ]]
    in_repo workspace commit r1
    branch=$(g for-each-ref --format='%(refname)' 'refs/heads/*run-r1')
    [ "$(g log -1 --format='%s by %an' "$branch~1")" = "important by Agent" ]
    [ "$(g rev-parse "$branch~2")" = "$base" ]
    in_repo workspace discard r1
    [ "$status" -eq 0 ]
}

head_is_the_result() {
    new_repo
    left_elsewhere 'git checkout -q --detach'
    g update-ref -d "$branch"
    left_elsewhere 'git switch -qc feature'
}
@test "a HEAD that is detached, or on a branch of the run's making, is its result" {
    both head_is_the_result
}

head_is_older() {
    new_repo
    in_repo run --workspace --run r1 -c 'git commit -q --allow-empty -m mine
        git checkout -q HEAD~2; git commit -q --allow-empty -m aside'
    [[ "$err" == *", 1 commit"$'\n'* ]]
    [[ "$err" == *"also 1 commit"* ]]
    in_repo workspace log r1
    [[ "$out" == *mine* ]]
}
@test "a HEAD that does not go on from the run's branch lies aside" { both head_is_older; }

# ---- what was taken over ------------------------------------------------------------------------

committed_is_asked_again() {
    new_repo
    agent r1 --on-success commit
    agent r2 --on-success commit
    agent r3 --on-success commit
    g tag kept task-t-run-r3
    g update-ref refs/heads/task-t-run-r1 "$base"
    g update-ref -d refs/heads/task-t-run-r2
    g update-ref refs/heads/task-t-run-r3 "$base"
    in_repo workspace list --json
    holds '[w["state"] for w in r["workspaces"]] == ["kept", "kept", "committed"]'
    for run in r1 r2; do
        in_repo workspace discard "$run"
        [ "$status" -eq 125 ]
        [[ "$err" == *"has work that is nowhere else"* ]]
    done
    in_repo workspace prune
    [[ "$out" == "discarded t/r3 "* ]]
    in_repo workspace list --json
    holds '[w["run"] for w in r["workspaces"]] == ["r1", "r2"]'
    in_repo workspace diff r1
    [[ "$out" == *+TWO* ]]
    in_repo workspace commit r1
    in_repo workspace discard r1
    [ "$status" -eq 0 ]
    # also when git has thrown the commits away
    agent r4 --on-success commit
    g update-ref refs/heads/task-t-run-r4 "$base"
    g branch -D task-t-run-r1
    g tag -d kept
    g reflog expire --expire=now --all
    g gc -q --prune=now
    in_repo workspace diff r4
    [[ "$out" == *+TWO* ]]
}
@test "work counts as committed while some branch or tag has it" { both committed_is_asked_again; }

# The branch is the user's, and so are its objects: the workspace has its own.
collected() {
    local branch again
    new_repo
    in_repo run --workspace --run r1 -c 'echo b >b; git add b; git commit -qm b; echo c >c'
    for again in no yes; do
        in_repo workspace commit r1
        [ "$status" -eq 0 ]
        [ "$again" = no ] || in_repo workspace resume r1 -- true
        branch=$(g for-each-ref --format='%(refname)' 'refs/heads/*run-r1')
        g update-ref -d "$branch"
        g reflog expire --expire=now --all
        g gc -q --prune=now
        in_repo workspace diff r1 --stat
        [ "$status" -eq 0 ]
        [[ "$out" == *"2 files changed"* ]]
        in_repo workspace log r1
        [ "$status" -eq 0 ]
        in_repo workspace repair r1
        in_repo workspace commit r1
        [ "$status" -eq 0 ]
        [ "$(g show "$branch:c")" = c ]
    done
    g fsck --strict
}
@test "a branch that was deleted and collected takes nothing of the workspace's" { both collected; }

# ---- the tree below -----------------------------------------------------------------------------

checkouts() { me sh -c 'ls state/carrel/checkouts/*' | grep -cE '^[0-9a-f]{40}$'; }

age() { # age PATH...: below the state directory, as if it had not been used for a month
    for path; do
        me find "state/carrel/$path" -exec touch -h -d '31 days ago' {} +
    done
}

old_tree() {
    new_repo
    agent r1
    me sh -c 'cd repo && echo 5 >>a.txt && git commit -qam third'
    agent r2 --on-success discard # a tree that nothing lies on; it may stand on the other one
    [ "$(checkouts)" -eq 2 ]
    age checkouts
    carrel cleanup
    [ "$status" -eq 0 ]
    [ "$out" = "removed 1 cached checkout" ]
    [ "$(checkouts)" -eq 1 ]
    in_repo workspace diff r1
    [[ "$out" == *+TWO* ]]
    in_repo workspace discard r1 --force
    age checkouts
    carrel cleanup
    [ "$out" = "removed 1 cached checkout" ]
}
@test "a tree that a workspace lies on stays in the cache, however old" { both old_tree; }

lose_cache() { me sh -c 'chmod -R u+w "$1"; rm -rf "$1"' - state/carrel/checkouts; }

lost_tree() {
    new_repo
    agent r1
    in_repo run --workspace --run r2 -c true
    for verb in show status diff log patch commit apply open close discard; do
        lose_cache
        in_repo workspace "$verb" r1
        [ "$status" -eq 0 ]
    done
    lose_cache
    in_repo workspace prune
    [[ "$out" == "discarded "*"/r2 "* ]]
}
@test "a tree that the cache has lost is made again, whatever is asked" { both lost_tree; }

# ---- a resume that fails ------------------------------------------------------------------------

failed_resume() {
    new_repo
    agent r1
    in_repo workspace resume r1 --on-failure discard -- false
    [ "$status" -eq 125 ]
    [[ "$err" == *"--on-failure discard is for new workspaces"* ]]
    me mkdir -p config/carrel
    me sh -c 'echo "workspace: {on_failure: discard}" >config/carrel/policy.yaml'
    in_repo workspace resume r1 -c 'echo n >>new.txt; exit 3'
    [ "$status" -eq 3 ]
    in_repo workspace diff r1
    [[ "$out" == *+TWO* ]]
    in_repo run --workspace --run r2 -- false
    [[ "$err" == *"workspace r2: discarded"* ]]
}
@test "a resume that fails takes nothing of what earlier runs left" { both failed_resume; }

# ---- a full journal -----------------------------------------------------------------------------

full_journal() {
    new_repo
    agent r1
    agent r2
    me mkdir -p config/carrel
    me sh -c 'echo "journal: {max_bytes: 2K}" >config/carrel/policy.yaml'
    in_repo workspace resume r1 -- true
    is_one_error 125 "carrel: *the journal of run 't+r1' is full"
    in_repo workspace commit r1
    [ "$status" -eq 0 ]
    in_repo workspace discard r1
    [ "$status" -eq 0 ]
    in_repo workspace discard --force r2
    [ "$status" -eq 0 ]
    in_repo journal show t+r2
    [[ "$out" == *" workspace_discarded "*" sealed "* ]]
    in_repo journal verify
    [ "$status" -eq 0 ]
}
@test "a full journal stops a run, but not commit, apply or discard of its work" { both full_journal; }

# ---- a repository that cannot be written -------------------------------------------------------

read_only() {
    new_repo
    agent r1
    me chmod a-w repo/.git/refs/heads
    in_repo workspace discard --force r1
    is_one_error 125 "carrel: workspace 't/r1' is discarded, but its branch in '$T/repo/.git' is not: 'carrel cleanup' removes it as soon as that can be written: *'$T/repo/.git/refs/heads/*Permission denied*"
    [ ! -e "$T/state/carrel/workspaces/t/r1" ]
    carrel cleanup
    [ "$status" -eq 125 ]
    me chmod u+w repo/.git/refs/heads
    carrel cleanup
    [ "$status" -eq 0 ]
    [ -z "$(g branch --list 'task-*')" ]
}
@test "discard in a repository that cannot be written says what is left to do" { only user read_only; }

# ---- a missing base ------------------------------------------------------------------------------

base_kept() {
    new_repo
    me sh -c 'echo mine >>repo/a.txt'
    in_repo run --workspace --task t --run r1 --dirty -c 'sed -i s/two/TWO/ a.txt; echo w >w'
    in_repo run --task t --run r2 --fork t/r1 -c 'echo x >x'
    [ "$(g for-each-ref --format='%(refname)' | grep -c '^refs/carrel/t/r[12]/')" -eq 2 ]
    [ -z "$(g branch --list 'task-*')" ]
    g reflog expire --expire=now --all
    g gc -q --prune=now
    in_repo workspace apply r1
    [ "$status" -eq 0 ]
    [ "$(cat "$T/repo/a.txt" "$T/repo/w")" = $'one\nTWO\nthree\nfour\nmine\nw' ]
    in_repo workspace discard r1
    [ "$status" -eq 0 ]
    g gc -q --prune=now # the fork has a ref of its own
    in_repo workspace commit r2
    [ "$status" -eq 0 ]
    [ "$(g show task-t-run-r2:x)" = x ]
    in_repo workspace discard r2
    [ -z "$(g for-each-ref refs/carrel)" ]
    g fsck --strict
}
@test "git gc does not take the base of a run that began with uncommitted work" { both base_kept; }

base_gone() { # no ref has it
    local verb
    new_repo
    me sh -c 'echo mine >>repo/a.txt'
    agent r1 --dirty
    agent r2 --dirty --on-success commit
    g for-each-ref --format='delete %(refname)' refs/carrel refs/heads/task-t-run-r1 refs/heads/task-t-run-r2 |
        me git -C repo update-ref --stdin
    g gc -q --prune=now
    for verb in show status diff log patch commit apply open repair; do
        for run in r1 r2; do
            in_repo workspace "$verb" "$run"
            is_one_error 125 "carrel: commit ????????????, which run '$run' began with, is not in '$T/repo' any more: no branch had it, and git gc removed it; *'$T/state/carrel/workspaces/t/$run/upper'"
        done
    done
    g fsck # no branch was made at a commit that is not there
    [ "$(cat "$T/state/carrel/workspaces/t/r1/upper/new.txt")" = new ]
    in_repo workspace prune
    [ "$status" -eq 0 ]
    in_repo workspace discard --force r1 r2
    [ "$out" = $'discarded t/r1\ndiscarded t/r2' ]
}
@test "a base commit that git gc took is what the error says, and no branch is made at it" { both base_gone; }

# ---- a full disk --------------------------------------------------------------------------------

full_disk() { # repository and state are on it, and the run's branch among many in packed-refs
    cat >"$T/full" <<'END'
mkdir -p "$1" && mount -t tmpfs -o size=16m,mode=0700 tmpfs "$1" && mkdir "$1/repo" || exit 77
cd "$1/repo" || exit
export XDG_STATE_HOME=$1/state
git init -q -b main && git config user.name N && git config user.email e && echo x >a && git add a &&
    git commit -qm first && "$2" run --workspace --task t --run r1 --quiet -- true &&
    "$2" run --workspace --task t --run r2 --quiet --on-success commit -- touch b || exit
seq 1000 | sed 's|.*|create refs/heads/one-of-many-branches-& HEAD|' | git update-ref --stdin
git pack-refs --all
"$2" workspace resume r1 --quiet -c 'cat /dev/zero >fill'
cat /dev/zero >"$1/rest"
"$2" cleanup || exit
for i in $(seq 12); do # until the journal's last page is full, too
    "$2" workspace commit r2 && exit 1
done 2>/dev/null
"$2" workspace discard --force r2 || exit
"$2" workspace discard --force r1 || exit
rm "$1/rest"
git branch -qD task-t-run-r2
test -z "$(git branch --list 'task-*')" && test -z "$("$2" workspace list)" &&
    "$2" cleanup && "$2" journal verify &&
    "$2" journal show t+r1 && "$2" journal show t+r2
END
    status=0
    me unshare --mount sh "$T/full" "$T/small" "$CARREL" >"$T/.out" 2>"$T/.err" || status=$?
    _collect '(on a small disk)'
    [ "$status" -ne 77 ] || skip "no tmpfs can be mounted here"
    [ "$status" -eq 0 ]
    [[ "$out" == "nothing to clean up"*"discarded t/r2"*"discarded t/r1"*"nothing to clean up"* ]]
    [[ "$out" == *"workspace_discarded"*"sealed"*"workspace_discarded"*"sealed"* ]]
}
@test "discard --force makes room where there is none left, and is recorded" { only root full_disk; }

# ---- what is made once for many -----------------------------------------------------------------

old_caches() {
    new_repo
    me sh -c 'mkdir plain && echo p >plain/p'
    in_repo run --workspace --run r1 --setup 'echo dep >dep' -c 'cat dep; echo n >new.txt'
    in_repo run --workspace --run r2 --history cut -c 'echo n >new.txt'
    carrel run --workdir plain --cow --run r3 -c 'echo q >p'
    age setups cuts folders
    carrel cleanup
    [ "$out" = "nothing to clean up" ]
    in_repo workspace resume r1 -- cat dep
    [ "$out" = dep ]
    in_repo workspace resume r2 -- git log --format=%s
    [ "$out" = second ]
    in_repo workspace apply r3
    [ "$(me cat plain/p)" = q ]
    for run in r1 r2 r3; do
        in_repo workspace discard --force "$run"
        [ "$status" -eq 0 ]
    done
    carrel cleanup # what was used lately stays: the folder
    [ "$out" = "removed 2 unused cached items" ]
    age folders
    carrel cleanup --json
    holds 'r["caches"] == 1'
    [ -z "$(me find state/carrel/setups state/carrel/cuts state/carrel/folders -mindepth 1 ! -name .tmp ! -name .claims)" ]
    # and all of it is made again
    in_repo run --workspace --run r1 --setup 'echo dep >dep' -- cat dep
    [ "$out" = dep ]
    in_repo run --workspace --run r2 --history cut -- git log --format=%s
    [ "$out" = second ]
    carrel run --workdir plain --cow --run r3 -- cat p
    [ "$out" = q ]
}
@test "old setups, shallow commits and folders that no workspace needs are removed" {
    both old_caches
}

used_lately() {
    new_repo
    in_repo run --workspace --run r1 --setup 'echo dep >dep' --on-success discard -- true
    in_repo run --workspace --run r2 --history cut --on-success discard -- true
    age setups cuts
    in_repo run --workspace --run r3 --setup 'echo dep >dep' --on-success discard -- true
    in_repo run --workspace --run r4 --history cut --on-success discard -- true
    carrel cleanup
    [ "$out" = "nothing to clean up" ]
}
@test "use keeps what setups and cuts left" { both used_lately; }

# ---- an apply that was cut off ------------------------------------------------------------------

cut_off() {
    new_repo
    agent r1
    # as if killed after git's lock was taken
    me sh -c 'cd repo/.git && mkdir carrel-apply && echo >carrel-apply/lock && ln carrel-apply/lock index.lock'
    carrel cleanup
    [ "$status" -eq 0 ]
    [ "$out" = "restored your files in $T/repo after an interrupted apply; git status shows what is there" ]
    [ ! -e "$T/repo/.git/index.lock" ]
    carrel cleanup --json
    holds 'r["mended"] == []'
}
@test "cleanup says where it put right what an apply had left" { both cut_off; }

cut_off_folder() {
    command -v strace >/dev/null || skip "strace is not installed"
    me sh -c 'mkdir plain && echo a >plain/a && echo b >plain/b'
    carrel run --workdir plain --cow --task t --run r1 -c 'echo run >>a; echo run >>b'
    # killed when one of both was exchanged
    me strace -qq -o /dev/null -e inject=renameat2:signal=KILL:when=2 "$CARREL" workspace apply r1 || true
    [ "$(cat "$T/plain/a" "$T/plain/b")" = $'a\nrun\nb' ]
    carrel cleanup
    [ "$out" = "restored your files in $T/plain after an interrupted apply" ]
    [ "$(cat "$T/plain/a" "$T/plain/b")" = $'a\nb' ]
    carrel workspace apply r1
    [ "$(cat "$T/plain/a" "$T/plain/b")" = $'a\nrun\nb\nrun' ]
}
@test "so it does in a folder without git" { both cut_off_folder; }

cut_off_elsewhere() { # in a work tree that the run did not begin in
    local from to
    new_repo
    g worktree add -q ../other -b other
    for from in repo other; do
        to=other
        [ "$from" = repo ] || to=repo
        carrel_in "$from" run --workspace --task "$from" --run r1 -c 'echo run >>a.txt'
        me sh -c "cd '$to' && d=\$(git rev-parse --git-dir) && mkdir \"\$d/carrel-apply\" && echo >\"\$d/carrel-apply/lock\" &&
            ln \"\$d/carrel-apply/lock\" \"\$d/index.lock\""
        carrel cleanup
        [ "$out" = "restored your files in $T/$to after an interrupted apply; git status shows what is there" ]
        [ ! -e "$T/repo/.git/index.lock" ]
        carrel_in "$from" workspace discard --force r1
    done
}
@test "so it does in other work trees of the repository" { both cut_off_elsewhere; }
