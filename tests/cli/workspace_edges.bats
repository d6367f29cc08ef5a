#!/usr/bin/env bats
# shellcheck disable=SC2030,SC2031,SC2154  # cli.bash sets $status, $out and others
# What a workspace refuses, and what stays when something went wrong.

load cli
load repo

# Nothing of a workspace is left: not in the repository, not in the state.
no_trace() {
    in_repo workspace list --all
    [ "$status" -eq 0 ]
    [ -z "$out" ]
    [ -z "$(g branch --list 'task-*')" ]
    [ "$(g worktree list | wc -l)" -eq 1 ]
    [ -z "$(find "$T/state/carrel/workspaces" -mindepth 1 ! -name .tmp)" ]
}

changed() { # changed RUN LINES: these are the changes
    in_repo workspace status "$1"
    [ "$status" -eq 0 ]
    [ "$out" = "$2" ]
}

# A commit that no harvest takes: it has a new submodule.
spoil='git update-index --add --cacheinfo 160000,1234567890123456789012345678901234567890,mod &&
    git commit -qm spoiled'

# ---- before the run -----------------------------------------------------------------------------

taken() {
    new_repo
    agent r1
    in_repo run --workspace --task t --run r1 -- echo ran
    is_one_error 125 "carrel: workspace 't/r1' exists already (of '$T/repo'):*carrel workspace resume t/r1*discard*another run id"
    [ -z "$out" ]
    g branch task-t-run-mine
    in_repo run --workspace --task t --run mine -- echo ran
    is_one_error 125 "carrel: branch 'task-t-run-mine' exists already:*git branch -D"
    [ -z "$out" ]
    [ "$(g rev-parse task-t-run-mine)" = "$base" ]
    in_repo workspace discard --force r1
    agent r1
}
@test "an id that is taken and a branch that is in the way are told apart" { both taken; }

state_through_a_link() { # as where /home leads to another disk
    new_repo
    me mkdir elsewhere
    me ln -s elsewhere state
    agent r1 # with a commit and uncommitted work
    [[ "$err" == *"its commits are on branch task-t-run-r1"* ]]
    in_repo workspace commit r1
    [ "$status" -eq 0 ]
    [ "$(g show task-t-run-r1:new.txt)" = new ]
    in_repo workspace open r1
    [ "$status" -eq 0 ]
    in_repo workspace close r1
    [ "$status" -eq 0 ]
    in_repo workspace merge r1
    [ "$status" -eq 0 ]
    in_repo workspace discard r1
    [ "$status" -eq 0 ]
}
@test "the state directory may be reached through a link" { both state_through_a_link; }

not_a_commit() {
    local rev
    new_repo
    g tag -a -m blob of-blob HEAD:a.txt
    g tag -a -m tree of-tree 'HEAD^{tree}'
    g tag -a -m commit of-commit HEAD
    for rev in of-blob of-tree "$(g rev-parse of-blob)" "$(g rev-parse of-tree)" \
        "$(g rev-parse 'HEAD^{tree}')" "$(g rev-parse HEAD:a.txt)" \
        1234567890123456789012345678901234567890; do
        in_repo run --base "$rev" -- echo ran
        is_one_error 125 "carrel: *$rev*"
        [[ "$err" == *" is not a commit"* || "$err" == *" is not in the repository"* ]]
        [ -z "$out" ]
    done
    in_repo run --base "$(g rev-parse of-commit)" -- echo ran
    is_one_error 125 "carrel: *is not a commit; its commit is $base"
    no_trace
    in_repo run --base of-commit -- git rev-parse HEAD
    [ "$out" = "$base" ]
}
@test "--base takes a commit and nothing else" { both not_a_commit; }

two_starts() {
    new_repo
    in_repo run --dirty --base HEAD -- echo ran
    is_one_error 125 "carrel: *--dirty*--base*"
    [ -z "$out" ]
    no_trace
}
@test "--dirty and --base cannot be combined" { both two_starts; }

reserved() {
    local target
    new_repo
    for target in /run/carrel /run/carrel/git /run/carrel/objects /run/carrel/new; do
        in_repo run --workspace --mount "$T/repo:$target" -- echo ran
        is_one_error 125 "carrel: mount target '$target' is reserved*"
        in_repo run --mount "$T/repo:$target" -- echo ran
        is_one_error 125 "carrel: mount target '$target' is reserved*"
        [ -z "$out" ]
    done
    for target in /run//carrel /run/../run/carrel/git /run; do
        in_repo run --workspace --mount "$T/repo:$target" -- echo ran
        [ "$status" -eq 125 ]
        [ -z "$out" ]
    done
    in_repo run --workspace --mount "$T/repo:/workspace" -- echo ran
    is_one_error 125 "carrel: the mount on /workspace and *both would be /workspace*"
    in_repo run --workspace --mount "$T/repo/.git:/workspace/.git" -- echo ran
    is_one_error 125 "carrel: *two mounts have the target '/workspace/.git'"
    no_trace
    in_repo run --workspace --mount "$T/repo:/run/carrels" --on-success discard -- cat /run/carrels/src/x.c
    [ "$out" = int ]
}
@test "a mount cannot lie where the git directory of a run is" { both reserved; }

failed_starts() {
    new_repo
    in_repo run --workspace -- /no/such/program
    [ "$status" -eq 127 ]
    no_trace
    in_repo run --workspace -- ./a.txt
    [ "$status" -eq 126 ]
    no_trace
    in_repo run --workspace --mount "$T/nothing:/mnt" -- echo ran
    is_one_error 125 "carrel: *$T/nothing*"
    no_trace
    in_repo run --setup 'echo so it is; exit 3' -- echo ran
    is_one_error 125 "carrel: --setup: the setup command failed with status 3: so it is"
    no_trace
    me git init -q repo/inner
    me git -C repo/inner -c user.name=I -c user.email=i@example.org commit -q --allow-empty -m i
    in_repo run --include 'inner/' -- echo ran
    is_one_error 125 "carrel: include 'inner/': it is a git repository of its own"
    no_trace
    me sh -c 'echo x >"repo/$(printf "a\nb.env")"'
    in_repo run --include 'a*.env' -- echo ran
    is_one_error 125 "carrel: a file with a newline in its name cannot be included"
    no_trace
    me sh -c 'head -c 3M /dev/zero >repo/large.env'
    in_repo run --include large.env --disk 2M -- echo ran
    is_one_error 125 "carrel: include 'large.env':*larger than 2*"
    no_trace
    agent r1
    in_repo workspace resume r1 -- /no/such/program
    [ "$status" -eq 127 ]
    changed r1 $'M. a.txt\n.D gone.txt\n.A new.txt'
}
@test "a run that could not start leaves no workspace, and an old one as it was" { both failed_starts; }

half_made() {
    local verb
    new_repo
    agent r1
    me touch state/carrel/workspaces/t/r1/creating # as a creator that was killed leaves it
    [ "$(state_of r1)" = creating ]
    in_repo workspace resume r1 -- echo ran
    is_one_error 125 "carrel: run 'r1' was never made; carrel cleanup removes it"
    for verb in show status diff commit apply open; do
        in_repo workspace "$verb" r1
        is_one_error 125 "carrel: workspace 't/r1' was never finished; carrel cleanup removes it"
        [ -z "$out" ]
    done
    in_repo workspace prune
    [ "$out" = "nothing to prune" ]
    [ -d "$T/state/carrel/workspaces/t/r1" ]
}
@test "a workspace that was never finished is not used" { both half_made; }

borrowed_objects() {
    new_repo
    me git clone -q --shared repo borrower
    me git clone -q --shared borrower repo2
    me sh -c 'cd repo2 && git config user.name B && git config user.email b@example.org && echo 5 >>a.txt &&
        git commit -qam own'
    carrel_in repo2 run --workspace --run r1 --quiet -c 'exec 2>&1; git status --porcelain; git fsck --no-dangling
        git log --format=%s; echo new >new.txt; git add . && git commit -qm more'
    [ "$status" -eq 0 ]
    [ "$out" = $'own\nsecond\nfirst' ]
    carrel_in repo2 workspace status r1
    [ "$out" = "A. new.txt" ]
}
@test "a repository that borrows objects is whole inside, and git has no complaint" { both borrowed_objects; }

cache_gone() {
    new_repo
    agent r1
    me chmod -R u+w state/carrel/checkouts
    me rm -r state/carrel/checkouts
    in_repo workspace resume r1 -c 'cat src/x.c new.txt; git status --porcelain'
    [ "$status" -eq 0 ]
    [ "$out" = $'int\nnew\nD  gone.txt\n?? new.txt' ]
    changed r1 $'M. a.txt\n.D gone.txt\n.A new.txt'
}
@test "resume makes the tree again when the cache has lost it" { both cache_gone; }

folder_without_overlay() {
    me mkdir plain
    carrel run --workdir plain --cow --tree copy -- echo ran
    is_one_error 125 "carrel: a copy-on-write folder needs overlayfs*"
    [ -z "$out" ]
    carrel workspace list --all
    [ -z "$out" ]
    [ -z "$(ls -A "$T/plain")" ]
}
@test "a folder is copied on write or not at all" { both folder_without_overlay; }

# ---- files that are included --------------------------------------------------------------------

carried() {
    new_repo
    me sh -c 'cd repo && printf "secret\n" >.env && mkdir -p "conf/a [b]*" && echo key >"conf/a [b]*/k\\ey " &&
        echo odd >"!odd" && printf "%s\n" ".env" "conf/" "\\!odd" >.worktreeinclude'
    in_repo run --workspace --run r1 -c 'cat .env "conf/a [b]*/k\ey " "!odd"; git status --porcelain
        echo more >>.env; echo new >new.txt; git status --porcelain'
    [ "$out" = $'secret\nkey\nodd\n?? new.txt' ]
    changed r1 ".A new.txt"
    in_repo workspace apply r1
    [ "$status" -eq 0 ]
    [ "$(cat "$T/repo/.env")" = secret ]
}
@test "what was included is not in the result, also when git does not ignore it" { both carried; }

carried_and_wanted() { # the rules of the tree say that it is to be tracked
    local way line
    new_repo
    me sh -c 'cd repo && printf "*.log\n!local.conf\n" >.gitignore && git commit -qam rules && echo secret >local.conf'
    in_repo run --include local.conf --run walk -c 'git status --porcelain; echo new >new.txt'
    [ "$out" = "?? local.conf" ]
    changed walk ".A new.txt"
    # git has to look from inside, and the run has removed what it was told
    line='echo "*.c text" >.gitattributes; rm -f "$(git rev-parse --git-dir)/info/exclude"'
    for way in overlay copy; do
        in_repo run --include local.conf --run "$way" --tree "$way" -c "$line"
        [ "$status" -eq 0 ]
        in_repo workspace status "$way" --json
        holds '[f["path"] for f in r["files"]] == [".gitattributes"]'
        in_repo workspace patch "$way"
        [[ "$out" != *secret* ]]
    done
    in_repo run --include local.conf --run alone --tree copy -- true
    changed alone ""
    # what the run commits, and what it puts in its place, is its own work
    in_repo run --include local.conf --run own -c 'git add -f local.conf && git commit -qm taken'
    changed own "A. local.conf"
    in_repo run --include local.conf --run other -c 'rm local.conf && mkdir local.conf && echo x >local.conf/x'
    changed other ".A local.conf/x"
}
@test "nor is it when the rules of the tree or the run itself would have it" { both carried_and_wanted; }

# ---- the setup layer ----------------------------------------------------------------------------

setup_refused() {
    local line
    new_repo
    me sh -c 'cd repo && ln -s src link && git add link && git commit -qm link'
    for line in 'echo more >>a.txt' 'rm a.txt' 'mv a.txt b.txt' 'chmod +x a.txt' 'rm -r src && echo >src' \
        'rm -r src && mkdir src && echo >src/y.c' 'rm link && mkdir link && echo >link/x.c' \
        'echo more >>link/x.c' 'rm a.txt && mkfifo a.txt' 'rm a.txt && ln -s src/x.c a.txt'; do
        in_repo run --setup "$line" -- echo ran
        is_one_error 125 "carrel: --setup: the setup command changed the tracked file '*'; a setup may only add files"
        [ -z "$out" ]
        [ -z "$(ls "$T/state/carrel/setups"; ls -A "$T/state/carrel/setups/.tmp")" ]
    done
    no_trace
    in_repo run --setup 'mkdir deps && ln -s ../src deps/src && echo y >src/y.c && echo z >link/z.c' \
        --on-success discard -c 'cat deps/src/y.c deps/src/z.c; git status --porcelain'
    [ "$out" = $'y\nz\n?? deps/\n?? src/y.c\n?? src/z.c' ]
}
@test "a setup command that changes what the commit has is refused" { both setup_refused; }

# Root reads everything, so there it is not hidden, only closed to the run.
setup_unreadable() {
    local line
    new_repo
    for line in 'echo more >>src/x.c && chmod 0 src' 'chmod 0 src' 'chmod 0 a.txt'; do
        in_repo run --setup "$line" -- echo ran
        [ "$status" -eq 125 ]
        [[ "$err" == "carrel: --setup: the setup command "*" '"?*"'"* ]]
        [ -z "$out" ]
        [ -z "$(ls "$T/state/carrel/setups"; ls -A "$T/state/carrel/setups/.tmp")" ]
    done
    no_trace
}
@test "a setup command cannot hide a change behind a mode" { only user setup_unreadable; }

setup_keys() {
    new_repo
    in_repo run --setup 'echo 1 >made' --setup-key a.txt --setup-key nothing.lock -- echo ran
    is_one_error 125 "carrel: *'nothing.lock' of --setup-key is not in commit*"
    in_repo run --setup false --setup-key a.txt -- echo ran
    is_one_error 125 "carrel: *failed with status 1 and printed nothing*"
    [ -z "$out" ]
    no_trace
    in_repo run --setup 'echo 1 >made' --setup-key a.txt --on-success discard -- cat made
    [ "$out" = 1 ]
    in_repo run --setup 'echo 2 >made' --setup-key a.txt --on-success discard -- cat made
    [ "$out" = 2 ]
    me sh -c 'cd repo && echo more >>a.txt && git commit -qam more'
    in_repo run --setup 'wc -l <a.txt >made' --setup-key src/x.c --on-success discard -- cat made
    [ "$out" = 5 ]
    me sh -c 'cd repo && echo more >>a.txt && git commit -qam more'
    in_repo run --setup 'wc -l <a.txt >made' --setup-key src/x.c --on-success discard -- cat made
    [ "$out" = 5 ]
    in_repo run --setup 'wc -l <a.txt >made' --setup-key a.txt --on-success discard -- cat made
    [ "$out" = 6 ]
    me cp -r repo other
    local before
    before=$(find "$T/state/carrel/setups" -mindepth 1 -maxdepth 1 | wc -l)
    carrel_in other run --setup 'wc -l <a.txt >made' --setup-key a.txt --on-success discard -- cat made
    [ "$(find "$T/state/carrel/setups" -mindepth 1 -maxdepth 1 | wc -l)" -eq $((before + 1)) ]
}
@test "a setup layer belongs to its command, its key files and its repository" { both setup_keys; }

# The tree of the second commit lies over that of the first, and says that the file is gone there.
setup_beside_a_whiteout() {
    new_repo
    in_repo run --workspace --on-success discard -- true
    g rm -q gone.txt
    g commit -qm without
    in_repo run --workspace --on-success discard -- ls
    [ "$out" = $'a.txt\nsrc' ]
    in_repo run --setup 'echo again >gone.txt' --run r1 -c 'cat gone.txt; echo x >x'
    [ "$status" -eq 0 ]
    [ "$out" = again ]
    changed r1 ".A x"
}
@test "a setup command may add what an older commit had" { both setup_beside_a_whiteout; }

# ---- after the run ------------------------------------------------------------------------------

refused_harvest() {
    new_repo
    in_repo run --workspace --task t --run r1 -c 'echo one >one'
    [ "$(state_of r1)" = kept ]
    [ "$(grep -cE '^(tip|snapshot) ' "$T/state/carrel/workspaces/t/r1/meta")" -eq 2 ]
    in_repo workspace resume r1 -c "echo two >two; $spoil"
    is_one_error 125 "carrel: the result of run 'r1' was refused*mod*submodule*"
    [ "$(state_of r1)" = interrupted ]
    # the objects of the first result are gone, so nothing may name them
    [ "$(grep -cE '^(tip|snapshot) ' "$T/state/carrel/workspaces/t/r1/meta")" -eq 0 ]
    local verb
    for verb in show status diff patch commit apply merge discard; do
        in_repo workspace "$verb" r1
        is_one_error 125 "carrel: *was refused*mod*submodule*"
        [ -z "$out" ]
    done
    in_repo workspace prune
    [ "$out" = "nothing to prune" ]
    host_is_untouched
    in_repo workspace resume r1 -- git reset -q --soft "$base"
    [ "$status" -eq 0 ]
    changed r1 $'.A one\n.A two'
    [ "$(state_of r1)" = kept ]
}
@test "when a result is refused, no older one passes for it" { both refused_harvest; }

# The second harvest of a finished run fails and loses the first result; a third one restores it.
refused_look() {
    local file
    new_repo
    in_repo run --workspace --task t --run r1 -c 'echo one >one'
    file=state/carrel/workspaces/t/r1/upper/one
    me sed -i 's/^phase finished$/phase ready/' state/carrel/workspaces/t/r1/meta # as if it had been killed
    me /usr/bin/python3 -c 'import os, sys; os.setxattr(sys.argv[1], "user.overlay.redirect", b"x")' "$file"
    in_repo workspace status r1
    is_one_error 125 "carrel: *was refused*'one' has an overlay attribute that we never write*"
    [ "$(state_of r1)" = interrupted ]
    in_repo workspace discard r1
    [ "$status" -eq 125 ]
    me /usr/bin/python3 -c 'import os, sys; os.removexattr(sys.argv[1], "user.overlay.redirect")' "$file"
    in_repo workspace diff r1
    [[ "$out" == *"+one"* ]]
}
@test "a look that fails leaves nothing that passes for a result" { both refused_look; }

committed_then_refused() {
    new_repo
    agent r1 --on-success commit
    in_repo workspace resume r1 -c "echo two >two; $spoil"
    is_one_error 125 "carrel: *was refused*"
    in_repo workspace prune
    [ "$out" = "nothing to prune" ]
    in_repo workspace discard r1
    is_one_error 125 "carrel: what run 't/r1' changed is not known*was refused*"
    in_repo workspace resume r1 -- cat two
    [ "$out" = two ]
    in_repo workspace discard r1 --force
    [ "$status" -eq 0 ]
    g branch -qD task-t-run-r1 # that is another matter
    no_trace
}
@test "work that was added to a committed run and refused is not lost" { both committed_then_refused; }

committed_then_killed() {
    new_repo
    agent r1 --on-success commit
    [ "$(state_of r1)" = committed ]
    me sh -c 'cd repo && exec "$1" workspace resume r1 -c "echo two >two; echo up; sleep 60"' \
        sh "$CARREL" >"$T/.up" 2>"$T/.err" </dev/null 3>&- &
    _follow_exec $!
    until_true grep -q up "$T/.up"
    kill -KILL "$pid"
    until_true is_in_state r1 interrupted
    in_repo workspace prune
    [ "$out" = "nothing to prune" ]
    in_repo workspace discard r1
    is_one_error 125 "carrel: run 'r1' has work that is nowhere else*"
    changed r1 $'M. a.txt\n.D gone.txt\n.A new.txt\n.A two'
}
is_in_state() { [ "$(state_of "$1")" = "$2" ]; }
@test "work that was added to a committed run and killed is not lost" { both committed_then_killed; }

looked_at() {
    new_repo
    agent r1 --on-success commit
    local commit
    commit=$(g rev-parse task-t-run-r1)
    # The next snapshot is made by a later clock, and would have another id.
    until_true is_later_than "$(g log -1 --format=%ct task-t-run-r1)"
    in_repo workspace show r1
    changed r1 $'M. a.txt\n.D gone.txt\n.A new.txt'
    in_repo workspace resume r1 -- true
    [ "$(state_of r1)" = committed ]
    in_repo workspace commit r1
    [ "$(g rev-parse task-t-run-r1)" = "$commit" ]
    in_repo workspace discard r1
    [ "$status" -eq 0 ]
    [ "$(g rev-parse task-t-run-r1)" = "$commit" ]
}
is_later_than() { [ "$(date +%s)" -gt "$1" ]; }
@test "a look at committed work does not make it uncommitted" { both looked_at; }

# Filters and the monitor of a run may run at the harvest. What they do to the files later than that is
# not part of the result.
seen_is_taken() {
    local seen look
    new_repo
    in_repo run --workspace --run evil -c '
        echo fine >a.txt; echo notes >b.note; echo "*.note filter=x" >.gitattributes
        git config core.fsmonitor "touch /workspace/by-monitor; false"
        git config filter.x.clean "echo evil >/workspace/a.txt; cat"' # after a.txt was read
    [ "$status" -eq 0 ]
    in_repo workspace diff evil
    seen=$out
    grep -qxF '+fine' <<<"$seen"
    ! grep -qF by-monitor <<<"$seen"
    for look in show status log patch; do
        in_repo workspace "$look" evil
        [ "$status" -eq 0 ]
    done
    in_repo workspace diff evil
    [ "$out" = "$seen" ]
    in_repo workspace apply evil
    [ "$status" -eq 0 ]
    [ "$(cat "$T/repo/a.txt")" = fine ]
    [ ! -e "$T/repo/by-monitor" ]
}
@test "what is taken is what was looked at, whatever the run has prepared" { both seen_is_taken; }

others_commits() {
    local theirs
    new_repo
    in_repo run --workspace --task t --run r1 --on-success commit -c 'echo mine >mine.txt'
    in_repo workspace resume r1 -c 'echo second >>mine.txt'
    [ "$status" -eq 0 ]
    theirs=$(g commit-tree -p "$base" -m theirs "$base^{tree}")
    g update-ref refs/heads/task-t-run-r1 "$theirs"
    for verb in commit open merge; do
        in_repo workspace "$verb" r1
        is_one_error 125 "carrel: *branch 'task-t-run-r1' was moved*git branch NAME task-t-run-r1*"
        [ "$(g rev-parse task-t-run-r1)" = "$theirs" ]
    done
    g branch keep task-t-run-r1
    g update-ref refs/heads/task-t-run-r1 "$base"
    in_repo workspace commit r1
    [ "$status" -eq 0 ]
    in_repo workspace resume r1 -c 'echo more >>mine.txt' # what we put there ourselves is no obstacle
    in_repo workspace commit r1
    [ "$status" -eq 0 ]
    [ "$(g show task-t-run-r1:mine.txt)" = $'mine\nsecond\nmore' ]
    [ "$(g rev-parse keep)" = "$theirs" ]
}
@test "commits of others on the branch are not overwritten" { both others_commits; }

committed_again() { # the same files, but in a commit of the run's own
    new_repo
    agent r1 --on-success commit
    in_repo workspace resume r1 -c 'git add -A && git commit -qm "in my words"'
    [ "$(state_of r1)" = kept ]
    in_repo workspace log r1
    [[ "$out" == *"in my words"* ]]
    in_repo workspace commit r1
    [ "$(g log -1 --format=%s task-t-run-r1)" = "in my words" ]
}
@test "a commit that changes no file is part of the result" { both committed_again; }

branch_gone() {
    new_repo
    agent r1 --on-success commit
    g update-ref -d refs/heads/task-t-run-r1
    [ "$(state_of r1)" = kept ]
    in_repo workspace discard r1
    is_one_error 125 "carrel: run 'r1' has work that is nowhere else*"
    in_repo workspace commit r1
    [ "$status" -eq 0 ]
    [ "$(g show task-t-run-r1:new.txt)" = new ]
    g update-ref -d refs/heads/task-t-run-r1
    in_repo workspace repair r1
    [ "$out" = "mended 1 thing" ]
    [ "$(g show task-t-run-r1:new.txt)" = new ]
    [ "$(state_of r1)" = committed ]
}
@test "committed work whose branch was deleted is not taken for safe" { both branch_gone; }

ahead() {
    new_repo
    agent r1
    in_repo workspace open r1
    local at=$out
    in_repo workspace resume r1 -- echo ran
    is_one_error 125 "carrel: workspace 'r1' is open on the host; close it first*"
    in_repo workspace prune
    [ "$status" -eq 0 ]
    [ "$out" = "nothing to prune" ]
    me sh -c 'echo by hand >"$1/hand.txt"' sh "$at"
    me git -C "$at" add -A
    me git -C "$at" commit -qm "by hand"
    in_repo workspace close r1
    in_repo workspace resume r1 -- echo ran
    is_one_error 125 "carrel: commits were made on branch 'task-t-run-r1' while it was open*--base task-t-run-r1"
    [ -z "$out" ]
    in_repo workspace status r1
    [[ "$out" == *hand.txt* ]]
    in_repo run --base task-t-run-r1 --on-success discard -- cat hand.txt new.txt
    [ "$out" = $'by hand\nnew' ]
}
@test "resume is refused where the branch is ahead of the files" { both ahead; }

unread() {
    new_repo
    local fill='head -c 9M /dev/urandom >big' how
    for how in keep commit apply; do
        in_repo run --workspace --run "$how" --disk 16M --on-success "$how" -c "$fill"
        [ "$status" -eq 0 ]
        [[ "$err" == *"workspace $how: kept, not read:"*"carrel workspace diff $how"* ]]
    done
    [ -z "$(g status --porcelain)" ]
    [ -z "$(g log --format=%s "$base".. --branches)" ]
    # Nothing of it is in the files, all of it in the history. In halves: what git moves to its place
    # while the space is being counted may be counted twice.
    in_repo run --workspace --task t --run past --disk 16M --json -c 'set -e
        for half in 1 2; do
            id=$(head -c 4500K /dev/urandom | git hash-object -w --stdin)
            git update-index --add --cacheinfo 100644,$id,$half
        done
        git commit -qm add
        git rm -q --cached 1 2
        git commit -qm remove'
    holds 'r["ok"] and r["workspace"]["changed"] is None and r["workspace"]["state"] == "kept"'
    holds 'r["workspace"]["unread"] and r["workspace"]["commits"] is None'
    in_repo journal show --json t+past
    [[ "$out" == *'"workspace_kept"'*'"unread":"the run'*'"changed":null'* ]]
    in_repo workspace prune
    [ "$out" = "nothing to prune" ]
    in_repo workspace discard keep
    is_one_error 125 "carrel: run 'keep' has work that is nowhere else*"
    changed keep ".A big"
    changed past ""
    in_repo workspace log past
    [[ "$out" == *remove*add* ]]
    in_repo run --workspace --run gone --disk 16M --on-success discard -c "$fill"
    [[ "$err" == *"workspace gone: discarded"* ]]
    in_repo workspace show gone
    [ "$status" -eq 125 ]
    # what was harvested before does not pass for what is there now
    in_repo run --workspace --run twice -c 'echo one >one'
    in_repo workspace resume twice --disk 16M -c "$fill"
    [[ "$err" == *"workspace twice: kept, not read:"* ]]
    [ "$(state_of twice)" = interrupted ]
    changed twice $'.A big\n.A one'
}
@test "a result that would pass --disk is kept and not read, until it is asked for" { both unread; }

# Files of 200 GB that take no space: they are refused by their sizes, and nothing reads them.
sparse() {
    new_repo
    local fill='i=0; while [ $i -lt 200 ]; do truncate -s 1000M f$i || exit; i=$((i + 1)); done' how
    for how in plain attributes; do
        in_repo run --workspace --run "$how" -c "$fill"
        [ "$status" -eq 0 ]
        [[ "$err" == *"workspace $how: kept, not read: its changes have 209715200000 bytes, and with as many of git objects it would pass --disk"* ]]
        in_repo workspace discard --force "$how"
        [ "$status" -eq 0 ]
        me sh -c 'echo "*.txt text" >>repo/.gitattributes' # from now on git converts line ends
        g add .gitattributes
        g commit -qm attributes
    done
}
@test "sparse files are refused by their sizes" { both sparse; }

# Hard links: 40000 names of nearly 4 KB each, in a few megabytes.
long_names() {
    new_repo
    local made='
import os
for i in range(15):
    os.mkdir("d" * 250)
    os.chdir("d" * 250)
open("0", "w").close()
for i in range(1, 40000):
    os.link("0", str(i))'
    in_repo run --workspace --run names --disk 256M --on-success apply -- python3 -c "$made"
    [ "$status" -eq 0 ]
    [[ "$err" == *"workspace names: kept, not read: the paths of the workspace have more than 134217728 bytes; "* ]]
    [ -z "$(g status --porcelain)" ]
    in_repo workspace diff names
    is_one_error 125 "carrel: the result of run 'names' was refused *: the paths of the workspace have more than 134217728 bytes"
    in_repo run --workspace --run many -c 'd=$(printf "%080d" 0); mkdir "$d"; cd "$d"; seq -w 50000 | xargs touch'
    [[ "$err" == *"workspace many: 50000 files changed"* ]]
}
@test "names that cost a run nothing do not cost the host its memory" { both long_names; }

# As a user carrel has no more rights there than the run.
shut_directories() {
    new_repo
    in_repo run --workspace --run r1 -c 'mkdir d && echo x >d/x && echo y >y && chmod 0 d'
    [ "$status" -eq 0 ]
    in_repo workspace status r1
    [ "$status" -eq 0 ]
    [[ "$out" == *".A y"* ]]
    in_repo run --workspace --run r2 --disk 16M -c 'mkdir d && head -c 12M /dev/urandom >d/x && chmod 0 d &&
        head -c 12M /dev/urandom >y; sleep 5'
    [ "$status" -eq 137 ]
    [[ "$err" == *"Disk limit of 16M reached"* ]]
    # one that can be read and not entered has names, too
    in_repo run --workspace --run r3 --disk 16M -c 'mkdir -p e/f && head -c 12M /dev/urandom >e/f/x && chmod 400 e &&
        head -c 12M /dev/urandom >y; sleep 5'
    [ "$status" -eq 137 ]
    [[ "$err" == *"Disk limit of 16M reached"* ]]
}
@test "a directory that the run shut is counted, and no reason to fail" { both shut_directories; }

words() {
    new_repo
    in_repo run --workspace --task t --run r1 -c 'echo x >x && git add x && git commit -qm "all of it"'
    in_repo workspace commit r1 -m "my words"
    [ "$status" -eq 0 ]
    grep -q 'note: .*--message is not used' "$T/.err"
    [ "$(g log --format=%s "$base"..task-t-run-r1)" = "all of it" ]
    agent r2
    in_repo workspace commit r2 -m "my words"
    [ ! -s "$T/.err" ]
    [ "$(g log --format=%s "$base"..task-t-run-r2)" = $'my words\nagent: shout' ]
    # also where a squash has put it on the branch before
    agent r3
    in_repo workspace apply --squash r3
    [ "$status" -eq 0 ]
    g reset -q --hard
    in_repo workspace commit r3 -m "left over"
    [ "$status" -eq 0 ]
    [ "$(g log --format=%s "$base"..task-t-run-r3)" = $'left over\nagent: shout' ]
    [ "$(g show -s --format=%T task-t-run-r3)" = "$(g show -s --format=%T task-t-run-r2)" ]
    in_repo workspace commit r3 # without words it stays
    [ "$(g log -1 --format=%s task-t-run-r3)" = "left over" ]
    in_repo workspace list
    [[ "$out" == *"r3 "*" committed "* ]]
    # not if another branch has it already
    in_repo workspace merge r3
    in_repo workspace commit r3 -m "other words"
    is_one_error 125 "carrel: commit run 'r3': *another branch has it*"
    [ "$(g log -1 --format=%s task-t-run-r3)" = "left over" ]
}
@test "commit -m is about what the run did not commit itself" { both words; }

# The past is not merely hidden: its objects are not there.
cut_objects() {
    local secret
    new_repo
    me sh -c 'cd repo && echo secret >key && git add key && git commit -qm key && git rm -q key && git commit -qm gone'
    secret=$(g rev-parse HEAD~1:key)
    in_repo run --workspace --on-success discard -- git cat-file -p "$secret"
    [ "$out" = secret ]
    in_repo run --history cut --on-success discard -c "git cat-file -p $secret || git cat-file -p $base || ls /run/carrel"
    [ "$out" = $'git\nobjects' ]
    in_repo run --history cut --run r1 -c 'echo new >>a.txt && git commit -qam more'
    changed r1 "M. a.txt"
}
@test "--history cut leaves no object of the past within reach" { both cut_objects; }

converted() {
    new_repo
    me sh -c 'cd repo && echo "*.txt text" >.gitattributes && git add -A && git commit -qm attributes'
    in_repo run --workspace --task t --run r1 --on-success commit -c 'printf "x\r\n" >lines.txt; printf "x\r\n" >bytes'
    [ "$status" -eq 0 ]
    [ "$(g show task-t-run-r1:lines.txt | od -c | head -n 1)" = "$(printf 'x\n' | od -c | head -n 1)" ]
    [ "$(g show task-t-run-r1:bytes | od -c | head -n 1)" = "$(printf 'x\r\n' | od -c | head -n 1)" ]
}
@test "what git converts on its way into a commit is converted" { both converted; }

# ---- without git, without files -----------------------------------------------------------------

folder_verbs() {
    local verb
    me sh -c 'mkdir plain && echo a >plain/a && echo b >plain/b'
    carrel run --workdir plain --cow --run r1 -c 'echo run >>a; echo new >new'
    [ "$status" -eq 0 ]
    carrel workspace commit r1
    is_one_error 125 "carrel: *'r1' is a folder without git: there is nothing to commit to; apply it"
    for verb in merge cherry-pick; do
        carrel workspace "$verb" r1
        is_one_error 125 "carrel: *folder without git*"
    done
    carrel workspace open r1
    is_one_error 125 "carrel: a folder without git cannot be opened; apply it"
    [ "$(cat "$T/plain/a")" = a ]
    # what changed there since is not overwritten, what changed elsewhere is not in the way
    me sh -c 'echo mine >>plain/a; echo mine >>plain/b'
    carrel workspace apply r1
    [ "$status" -eq 1 ]
    [[ "$out" == "a: "* ]]
    [ "$(cat "$T/plain/a")" = $'a\nmine' ]
    [ ! -e "$T/plain/new" ]
    me sh -c 'echo a >plain/a'
    carrel workspace apply r1
    [ "$status" -eq 0 ]
    [ "$(cat "$T/plain/a" "$T/plain/b" "$T/plain/new")" = $'a\nrun\nb\nmine\nnew' ]
}
@test "a folder has no branch, and apply does not overwrite what changed there since" { both folder_verbs; }

bare_repository() {
    new_repo
    me git clone -q --bare repo bare.git
    carrel_in bare.git run --repo . --task t --run r1 -c 'echo new >new.txt'
    [ "$status" -eq 0 ]
    carrel_in bare.git workspace apply r1
    is_one_error 125 "carrel: the repository '*/bare.git' is bare: it has no files to apply to; commit and fetch"
    carrel_in bare.git workspace commit r1
    [ "$status" -eq 0 ]
    [ "$(me git -C bare.git show task-t-run-r1:new.txt)" = new ]
}
@test "a bare repository can be worked on, and has nothing to apply to" { both bare_repository; }

# ---- repositories inside ------------------------------------------------------------------------

inside=$(
    cat <<'END'
set -e
git init -q bare && echo f >bare/f && echo l >bare/l.log # no commit in it
git init -q bare/deep && echo d >bare/deep/d
git init -q full && echo c >full/c
git -C full add c && git -C full -c user.name=a -c user.email=a@b commit -qm c
git clone -q full staged && git add staged 2>/dev/null
odd=$(printf 'o\n\377') && git init -q "$odd" && echo o >"$odd/o"
echo x >x.bin
END
)
repositories_inside() {
    local tree rules
    new_repo
    for tree in overlay copy; do
        # where no filter has a say git is not asked, and the answer must be the same
        for rules in '' '*.bin filter=lfs'; do
            g rm -q --cached --ignore-unmatch .gitattributes
            me sh -c "echo '$rules' >repo/.gitattributes"
            g add -A
            g commit -qm rules
            in_repo run --workspace --tree "$tree" --task t --run r1 -c "$inside"
            [ "$status" -eq 0 ]
            in_repo workspace status r1
            [ "$(grep -v '^!!' <<<"$out")" = '.A bare/deep/d
.A bare/f
.A full/c
.A o\x0a\xff/o
.A staged/c
.A x.bin' ]
            grep -qxF '!! bare/.git  (a git repository inside, left out)' <<<"$out"
            grep -qxF '!! bare/deep/.git  (a git repository inside, left out)' <<<"$out"
            [ "$(grep -c '^!!.*/\.git  (a git repository inside, left out)$' <<<"$out")" -eq 5 ]
            in_repo workspace commit r1
            [ "$status" -eq 0 ]
            [ "$(g ls-tree -r task-t-run-r1 | grep -c -e ^160000 -e none)" -eq 0 ]
            in_repo workspace discard r1
            g branch -qD task-t-run-r1
        done
    done
}
@test "repositories inside are left out, by carrel and by git" { both repositories_inside; }

complaint() {
    new_repo
    me sh -c 'echo "*.bin filter=f" >repo/.gitattributes'
    g add -A
    g commit -qm rules
    in_repo run --workspace --run r1 -c '
        git config filter.f.clean false && git config filter.f.required true && echo x >x.bin'
    [ "$status" -eq 125 ]
    [[ "$err" == *"carrel: "*"git in the sandbox said 'error: external filter 'false' failed 1'"* ]]
    in_repo run --workspace --run r2 -c '
        printf "#!/bin/sh\nprintf \"fatal: \\033[31m%%0900d\" 7 >&2\n" >/workspace/f && chmod +x f &&
        git config filter.f.clean "/workspace/f; false" && git config filter.f.required true && echo x >x.bin'
    [ "$status" -eq 125 ]
    [[ "$err" == *"git in the sandbox said 'fatal: \\x"*"1b[31m0000"* && "$err" != *$'\e'* ]]
    [ "$(wc -l <<<"$err")" -eq 1 ]
}
@test "what git complained of inside is said" { both complaint; }

# ---- submodules ---------------------------------------------------------------------------------

submodules() {
    new_repo
    me git init -q -b main lib
    me sh -c 'cd lib && git config user.name L && git config user.email l@example.org &&
        for i in 1 2 3; do echo $i >f && git add f && git commit -qm $i || exit; done'
    me git -C repo -c protocol.file.allow=always submodule --quiet add "$T/lib" lib
    me git -C repo/lib checkout -q HEAD~1
    g add lib
    g commit -qm "with a library"
    local now older later
    now=$(g rev-parse HEAD:lib)
    older=$(me git -C lib rev-parse main~2)
    later=$(me git -C lib rev-parse main)

    in_repo run --workspace --run still -c 'cat lib/f; git submodule status; git status --porcelain'
    [[ "$out" == "2"$'\n'" $now lib"* ]]
    changed still ""
    in_repo run --workspace --run back -c 'git -C lib checkout -q HEAD~1'
    in_repo workspace diff back
    [[ "$out" == *"-Subproject commit $now"*"+Subproject commit $older"* ]]
    in_repo run --workspace --task t --run committed -c "git -C lib checkout -q $later && git commit -qam moved"
    in_repo workspace diff committed
    [[ "$out" == *"-Subproject commit $now"*"+Subproject commit $later"* ]]
    in_repo workspace commit committed
    [ "$(g rev-parse task-t-run-committed:lib)" = "$later" ]
    # its files are another repository's; where it stands is not for apply to change
    in_repo run --workspace --run dirty -c 'echo more >>lib/f'
    [[ "$err" == *"lib  (a change inside a submodule, left out)"* ]]
    in_repo workspace resume dirty --json -- true
    holds 'r["workspace"]["left_out"] == [{"path": "lib", "why": "a change inside a submodule, left out"}]'
    in_repo workspace diff dirty
    [ -z "$out" ]
    in_repo workspace apply back
    [ "$status" -eq 1 ]
    [ "$out" = "lib: a submodule that the run moved: 'carrel workspace apply --squash' stages that, and then 'git submodule update' checks it out" ]
    [ "$(me git -C repo/lib rev-parse HEAD)" = "$now" ]
    [ -z "$(g status --porcelain)" ]
    in_repo workspace apply --squash back
    [ "$out" = "staged changes to 0 files in $T/repo (branch main); 'git commit' takes them
1 submodule moved: 'git submodule update' checks it out there" ]
    g submodule --quiet update
    [ "$(me git -C repo/lib rev-parse HEAD)" = "$older" ]
    g reset -q --hard
    g submodule --quiet update
    in_repo run --history cut --on-success discard -- ls /run/carrel
    [ "$out" = $'git\nobjects' ]
    in_repo run --workspace --run removed -c 'git rm -q lib'
    in_repo workspace status removed
    [[ "$out" == *"D lib"* ]]
    in_repo workspace apply removed
    [[ "$out" == "lib: a submodule, which carrel neither adds nor removes: "* ]]
    in_repo run --workspace --run more -c 'exec 2>&-; git clone -q lib more && git add more && git commit -qm more'
    is_one_error 125 "carrel: *was refused*"
}
@test "where a submodule moved is part of the result, its content is not" { both submodules; }
