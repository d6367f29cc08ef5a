#!/usr/bin/env bats
# shellcheck disable=SC2030,SC2031,SC2154  # cli.bash sets $status, $out and others
# What an earlier run left in a git dir that was writable for it, and what carrel on the host makes
# of it: nothing of it decides what is mounted, read, written or obeyed.

load cli
load living
load repo

NOT_FOLLOWED="carrel does not follow links there, since an earlier program may have made it: name its target"

secret() { # a directory of the same owner that no run is to see
    me sh -c 'mkdir -p private && echo "the secret" >private/key'
}

unseen() { # the run was refused, for the stated reason, and showed nothing
    [ "$status" -eq 125 ]
    # shellcheck disable=SC2053  # a pattern
    [[ "$err" == $1 ]]
    [[ "$out$err" != *"the secret"* ]]
}

# ---- alternates ---------------------------------------------------------------------------------

alternate_elsewhere() {
    local line
    new_repo
    secret
    me git init -q other
    for line in "$T/private" / "$T/other/.git" ../../../private; do
        me sh -c "echo '$line' >repo/.git/objects/info/alternates"
        in_repo run --workspace -- sh -c 'cat /run/carrel/objects-1/key; ls /run/carrel/objects-1'
        unseen "carrel: *alternates*is not the object directory of a repository of the same owner*"
    done
    # A link in a directory of the repository, to a directory that is no object directory.
    me sh -c "ln -s ../private repo/way && echo ../../way >repo/.git/objects/info/alternates"
    in_repo run --workspace -- cat /run/carrel/objects-1/key
    unseen "carrel: *'$T/private'*is not the object directory*"
}
@test "a line of alternates mounts no directory that is not an object directory" { both alternate_elsewhere; }

alternate_of_another_owner() {
    new_repo
    me git init -q other
    me sh -c "echo '$T/other/.git/objects' >repo/.git/objects/info/alternates"
    chown -R 12345 "$T/other/.git/objects"
    in_repo run --workspace -- ls /run/carrel/objects-1
    unseen "carrel: *'$T/other/.git/objects'*same owner*"
}
@test "nor one of another user" { only root alternate_of_another_owner; }

alternate_of_carrel() {
    local store
    new_repo
    secret
    carrel_in private run --workdir . --cow -- true
    [ "$status" -eq 0 ]
    store=$(echo "$T"/state/carrel/folders/*/.git/objects)
    [ -d "$store" ]
    me sh -c "echo '$store' >repo/.git/objects/info/alternates"
    in_repo run --workspace -- ls /run/carrel/objects-1
    unseen "carrel: *in carrel's own state directory*"
}
@test "nor one of carrel's own" { both alternate_of_carrel; }

alternate_said() {
    new_repo
    me git clone -q -s repo second
    carrel_in second run --workspace -- git log --oneline
    [ "$status" -eq 0 ]
    [ "$(wc -l <<<"$out")" -eq 2 ]
    grep -q "^carrel: note: .*the run also sees the objects in $T/repo/.git/objects" "$T/.err"
    in_repo run --workspace -- true
    [ "$(grep -c "also sees" "$T/.err")" -eq 0 ]
}
@test "objects from outside the git dir work, and it is said where they come from" { both alternate_said; }

# ---- links --------------------------------------------------------------------------------------

link_below() {
    local name
    new_repo
    secret
    for name in info/exclude info/attributes shallow packed-refs config index HEAD logs/HEAD \
        objects/info/alternates; do
        me sh -c "cd repo/.git && { [ ! -e $name ] || mv $name $name.away; } && ln -s '$T/private/key' $name"
        in_repo run --workspace -- sh -c 'cat /run/carrel/git/info/exclude /run/carrel/git/info/attributes /run/carrel/git/shallow'
        unseen "carrel: *'$T/repo/.git/$name' is a link; carrel does not follow links in a git dir*"
        me sh -c "cd repo/.git && rm $name && { [ ! -e $name.away ] || mv $name.away $name; }"
    done
    for name in objects refs info logs objects/pack; do
        me sh -c "cd repo/.git && mv $name away && ln -s '$T/repo/.git/away' $name"
        in_repo run --workspace -- true
        unseen "carrel: *.git/$name*' is a link*"
        me sh -c "cd repo/.git && rm $name && mv away $name"
    done
    in_repo run --workspace -- true
    [ "$status" -eq 0 ]
}
@test "no link below the git dir is followed" { both link_below; }

link_as_git_dir() {
    new_repo
    me sh -c 'mkdir -p repo/sub outer && git init -q outer && ln -s ../../outer/.git repo/sub/.git'
    carrel_in repo/sub run --workspace -- true
    unseen "carrel: '$T/repo/sub/.git' is a link*"
}
@test "nor is a .git that is a link" { both link_as_git_dir; }

# ---- redirections -------------------------------------------------------------------------------

redirected() {
    new_repo
    me sh -c 'git init -q other && cd other && git config user.email a@b && git config user.name a &&
        echo "the secret" >key && git add key && git commit -qm secret && echo "the secret" >.env'
    # The work tree of the configuration.
    g config core.worktree "$T/other"
    in_repo run --dirty --include .env -- sh -c 'cat key .env'
    unseen "carrel: core.worktree in the configuration of '$T/repo/.git' is '$T/other', outside of '$T/repo'*"
    in_repo run --workspace --include .env -- cat .env
    unseen "carrel: core.worktree*"
    g config --unset core.worktree
    # The common dir.
    me sh -c "echo '$T/other/.git' >repo/.git/commondir"
    in_repo run --workspace -- cat key
    unseen "carrel: '$T/repo/.git/commondir' leads to '$T/other/.git'*remove it"
    me rm repo/.git/commondir
    # The git dir.
    me sh -c "mv repo/.git away && echo 'gitdir: $T/other/.git' >repo/.git"
    in_repo run --workspace -- cat key
    unseen "carrel: '$T/repo/.git' leads to '$T/other/.git', which does not lead back*config core.worktree*"
    me sh -c 'rm repo/.git && mv away repo/.git'
    in_repo run --workspace -- true
    [ "$status" -eq 0 ]
}
@test "no file of a git dir makes it that of another work tree or repository" { both redirected; }

answered() {
    local dir
    new_repo
    me git -C repo worktree add -q ../linked
    me git -c protocol.file.allow=always -C repo submodule --quiet add "$T/repo" lib
    g commit -qm lib
    me sh -c 'git clone -q --bare repo around/.bare && echo "gitdir: ./.bare" >around/.git && git -C around worktree add -q main main'
    me sh -c 'git clone -q --separate-git-dir apart repo alone && git -C alone config core.worktree "$PWD/alone"'
    for dir in linked repo/lib around around/main alone; do
        carrel_in "$dir" run --workspace -- cat a.txt
        [ "$status" -eq 0 ]
        [[ "$out" == *four ]]
    done
}
@test "worktrees, submodules and git dirs apart that lead back are fine" { both answered; }
# Git follows a link at a reference or its log, and appends to what it names.
link_of_branch() {
    local name
    new_repo
    in_repo run --workspace --task t --run r1 -c 'echo more >>a.txt'
    [ "$status" -eq 0 ]
    for name in logs/refs/heads/task-t-run-r1 refs/heads/task-t-run-r1; do
        echo mine >"$T/mine"
        me sh -c "mkdir -p repo/.git/${name%/*} && ln -s '$T/mine' repo/.git/$name"
        in_repo workspace commit r1
        is_one_error 125 "carrel: *'$T/repo/.git/$name'*link*"
        [ "$(cat "$T/mine")" = mine ]
        me rm "repo/.git/$name"
    done
    me sh -c "mv repo/.git/logs/refs/heads away && ln -s '$T/away' repo/.git/logs/refs/heads"
    in_repo workspace commit r1
    unseen "carrel: *'$T/repo/.git/logs/refs/heads' is a link*"
    [ ! -e "$T/away/task-t-run-r1" ]
    me sh -c "rm repo/.git/logs/refs/heads && mv away repo/.git/logs/refs/heads"
    in_repo workspace commit r1
    [ "$status" -eq 0 ]
    [ -s "$T/repo/.git/logs/refs/heads/task-t-run-r1" ]
}
@test "a branch is not put where a link leads" { both link_of_branch; }

# ---- files that block ---------------------------------------------------------------------------

fifo() {
    local name
    new_repo
    for name in HEAD config packed-refs index shallow info/exclude info/attributes \
        objects/info/alternates commondir; do
        me sh -c "cd repo/.git && { [ ! -e $name ] || mv $name $name.away; } && mkfifo $name"
        status=0
        me env -C "$T/repo" timeout -k 5 30 "$CARREL" run --workspace -- true \
            >"$T/.out" 2>"$T/.err" </dev/null || status=$?
        _collect "$name"
        unseen "carrel: *'$T/repo/.git/$name' is not a regular file*"
        me sh -c "cd repo/.git && rm $name && { [ ! -e $name.away ] || mv $name.away $name; }"
    done
    me sh -c 'cd repo/.git && mv refs/heads/main away && mkfifo refs/heads/main'
    in_repo run --workspace -- true
    [ "$status" -eq 125 ]
    me sh -c 'cd repo/.git && rm refs/heads/main && mv away refs/heads/main && cd .. && mv .git away && mkfifo .git'
    in_repo run --workspace -- true
    unseen "carrel: '$T/repo/.git' is neither a directory nor a file*"
}
@test "a FIFO in a git dir holds nothing up" { both fifo; }

# Files of the work tree that git or carrel on the host reads for what is in them.
fifo_in_tree() {
    local name gone="is not a regular file, and git would wait for it; an earlier program may have made it: remove it"
    new_repo
    agent r1
    me sh -c 'mkdir -p folder/sub/deep && echo 1 >folder/sub/f && git init -q sm'
    me git -C sm -c user.name=A -c user.email=a@b commit -q --allow-empty -m first
    g -c protocol.file.allow=always submodule --quiet add "$T/sm" sm
    g commit -qm sm
    for name in .gitattributes src/.gitattributes .gitmodules; do
        me sh -c "cd repo && echo more >>src/x.c && { [ ! -e $name ] || mv $name ../kept; } && mkfifo $name"
        in_repo run --dirty -- true
        unseen "carrel: read the uncommitted work in '$T/repo': '$name' $gone"
        in_repo workspace apply r1
        unseen "carrel: *'$name' $gone"
        in_repo run --workspace -- true # it reads no file of the tree
        [ "$status" -eq 0 ]
        me sh -c "cd repo && rm $name && { [ ! -e ../kept ] || mv ../kept $name; }"
    done
    me ln -s ../nothing repo/.gitattributes # a link to no such file is none
    in_repo run --dirty -- tail -n1 src/x.c
    [ "$out" = more ]
    for name in .gitattributes sub/.gitattributes sub/deep/.gitattributes; do
        me mkfifo "folder/$name"
        carrel run --workdir folder --cow -- true
        unseen "carrel: take a snapshot of the folder '$T/folder': '$name' $gone"
        me rm "folder/$name"
    done
    me sh -c 'echo build.log >repo/.worktreeinclude'
    in_repo run --workspace --include 'none*' -- cat build.log
    [ "$out" = noise ]
}
@test "a FIFO in the work tree holds nothing up" { both fifo_in_tree; }

# ---- apply --------------------------------------------------------------------------------------

writable_tree() { # writable_tree DIR: a living sandbox may write there
    carrel create --workdir "$1"
    [ "$status" -eq 0 ]
    local box=$out
    in_repo workspace apply r1
    is_one_error 125 "carrel: apply run 'r1': the sandbox of run * may write to '$T*end it first*"
    [ ! -e "$T/repo/new.txt" ]
    carrel destroy "$box"
    [ "$status" -eq 0 ]
}
apply_beside() {
    new_repo
    agent r1
    writable_tree repo
    writable_tree repo/src
    in_repo workspace apply r1
    [ "$status" -eq 0 ]
    [ -e "$T/repo/new.txt" ]
}
@test "apply is refused while a sandbox may write to the tree" { both apply_beside; }

# As `carrel`, with a state directory of its own and another run directory in its environment.
elsewhere() {
    status=0
    me env XDG_STATE_HOME="$T/state2" XDG_RUNTIME_DIR="$T" timeout -k 5 120 "$CARREL" "$@" \
        >"$T/.out" 2>"$T/.err" </dev/null || status=$?
    _collect "$@"
}

apply_beside_state() {
    local box
    new_repo
    agent r1
    elsewhere create --workdir repo
    [ "$status" -eq 0 ]
    box=$out
    in_repo workspace apply r1
    is_one_error 125 "carrel: apply run 'r1': the sandbox of run * may write to '$T/repo'*end it first*"
    [ ! -e "$T/repo/new.txt" ]
    elsewhere destroy "$box"
    in_repo workspace apply r1
    [ "$status" -eq 0 ]
    [ -e "$T/repo/new.txt" ]
}
@test "also one with another state directory" { both apply_beside_state; }

# The sandbox has the tree, which had another name, or a directory that was moved into it.
apply_beside_moved() {
    local box
    new_repo
    agent r1
    me mv repo other
    carrel create --workdir other
    box=$out
    me mv other repo
    in_repo workspace apply r1
    is_one_error 125 "carrel: apply run 'r1': the sandbox of run * may write to '$T/other'*end it first*"
    carrel destroy "$box"
    me mkdir moved
    carrel create --workdir moved
    box=$out
    me mv moved repo/moved
    in_repo workspace apply r1
    is_one_error 125 "carrel: apply run 'r1': the sandbox of run * may write to '$T/moved', which is no longer there and might be anywhere*"
    [ ! -e "$T/repo/new.txt" ]
    carrel destroy "$box"
    in_repo workspace apply r1
    [ "$status" -eq 0 ]
}
@test "also one whose directory was renamed" { both apply_beside_moved; }

# Root sees the sandboxes of a user who may write there.
apply_beside_user() {
    have_user 2>/dev/null || skip "$NO_USER_REASON"
    local box repo
    repo=$(as_user mktemp -d "$USER_DIR/cli.XXXXXX")
    _cli_dirs+=("$repo")
    as_user env XDG_STATE_HOME="$repo/state" git init -q -b main "$repo/repo"
    as_user git -C "$repo/repo" -c user.name=A -c user.email=a@b commit -q --allow-empty -m first
    SUDO_UID=$(as_user id -u) carrel run --repo "$repo/repo" --task t --run r1 -c 'echo new >new.txt'
    [ "$status" -eq 0 ]
    box=$(as_user env XDG_STATE_HOME="$repo/state" "$CARREL" create --quiet --workdir "$repo/repo" 3>&-)
    SUDO_UID=$(as_user id -u) carrel workspace apply r1
    as_user env XDG_STATE_HOME="$repo/state" "$CARREL" destroy "$box" 3>&-
    is_one_error 125 "carrel: apply run 'r1': the sandbox of run * may write to '$repo/repo'*end it first*"
}
@test "root sees the sandboxes of others there" { only root apply_beside_user; }

# Logging in makes another place for notes.
logged_in() {
    have_user 2>/dev/null || skip "$NO_USER_REASON"
    local box w session
    session=/run/user/$(as_user id -u)
    [ ! -e "$session" ] || skip "the user has a session"
    w=$(as_user mktemp -d "$USER_DIR/cli.XXXXXX")
    _cli_dirs+=("$w")
    as_user mkdir "$w/folder"
    box=$(as_user env XDG_STATE_HOME="$w/state" "$CARREL" create --quiet --workdir "$w/folder" 3>&-)
    install -d -m 700 -o "$(as_user id -u)" "$session"
    status=0
    as_user env XDG_STATE_HOME="$w/state" "$CARREL" run --workdir "$w/folder" --cow -- true 3>&- 2>"$T/.err" || status=$?
    rm -rf "$session"
    as_user env XDG_STATE_HOME="$w/state" "$CARREL" destroy "$box" 3>&-
    [ "$status" -eq 125 ]
    grep -q "the sandbox of run .* may write to '$w/folder'" "$T/.err"
}
@test "a sandbox from before the user logged in is seen" { only root logged_in; }

# Another user fills the directory of notes, which root reads.
flooded_notes() {
    have_user 2>/dev/null || skip "$NO_USER_REASON"
    local notes
    notes=/tmp/carrel-$(as_user id -u)/writable
    [ ! -e "$notes" ] || as_user mv "$notes" "$notes.away"
    as_user mkdir -p -m 700 "${notes%/*}" "$notes"
    as_user python3 -c 'import sys
for i in range(70000): open(f"{sys.argv[1]}/x{i}", "w").close()' "$notes"
    me mkdir w
    carrel run --workdir w -- true
    as_user rm -rf "$notes"
    [ ! -e "$notes.away" ] || as_user mv "$notes.away" "$notes"
    [ "$status" -eq 0 ]
}
@test "and is not refused for how many they have" { only root flooded_notes; }

# A branch is put into .git, where a sandbox must not write meanwhile. It cannot if .git is read-only.
commit_beside() {
    local box
    new_repo
    in_repo run --workspace --task t --run r1 -c 'echo more >>a.txt'
    carrel create --workdir repo --git-writable
    box=$out
    in_repo workspace commit r1
    is_one_error 125 "carrel: commit run 'r1': the sandbox of run * may write to '$T/repo'*end it first*"
    carrel destroy "$box"
    carrel create --mount "$T/repo/.git/refs:/refs:rw"
    box=$out
    in_repo workspace commit r1
    is_one_error 125 "carrel: commit run 'r1': the sandbox of run * may write to '$T/repo/.git/refs'*"
    carrel destroy "$box"
    carrel create --workdir repo
    box=$out
    in_repo workspace commit r1
    [ "$status" -eq 0 ]
    carrel destroy "$box"
}
@test "nor is a branch put beside a sandbox that may write to .git" { both commit_beside; }

# A filter that is set after carrel has looked at the configuration would run on the host.
obeyed_beside() {
    local box
    new_repo
    carrel create --workdir repo --git-writable
    [ "$status" -eq 0 ]
    box=$out
    in_repo run --workspace -- true
    is_one_error 125 "carrel: read '$T/repo/.git': the sandbox of run * may write to '$T/repo'*"
    carrel destroy "$box"
    in_repo run --workspace -- true
    [ "$status" -eq 0 ]
    carrel create --workdir repo
    box=$out
    in_repo run --workspace -- true
    [ "$status" -eq 0 ]
    carrel destroy "$box"
}
@test "nor is git run on a configuration that a sandbox may write to" { both obeyed_beside; }

# Exchanges what it finds in the stage of an apply, and directories of the tree, for links.
storm=$(
    cat <<'END'
import os, sys, time
end = time.monotonic() + 60
repo, outside = sys.argv[1:]
stage = repo + "/.git/carrel-apply"
def lead_out(path):
    try:
        os.rename(path, path + ".away")
        os.symlink(outside, path)
    except OSError:
        pass
while not os.path.exists("enough") and os.path.isdir(repo) and time.monotonic() < end:
    for name in ("new/deep", "new", "old"):
        try:
            if os.listdir(stage + "/new/deep") or name != "new/deep":
                lead_out(stage + "/" + name)
        except OSError:
            pass
    lead_out(repo + "/deep")
    try:
        os.unlink(repo + "/deep")
        os.rename(repo + "/deep.away", repo + "/deep")
    except OSError:
        pass
END
)
apply_storm() {
    local pid
    new_repo
    me mkdir outside repo/deep
    me sh -c 'touch repo/deep/first'
    g add -A
    g commit -qm deep
    in_repo run --workspace --task t --run r1 -c 'for i in $(seq 2000); do echo $i >deep/f$i; done'
    [ "$status" -eq 0 ]
    me python3 -c "$storm" repo "$T/outside" &
    pid=$!
    for _ in 1 2 3 4 5; do
        in_repo workspace apply r1
        me sh -c 'rm -rf repo/.git/carrel-apply* repo/.git/index.lock repo/deep repo/deep.away; mkdir repo/deep' || true
    done
    me touch enough
    wait "$pid"
    [ -z "$(ls -A "$T/outside")" ]
}
@test "what is exchanged for a link during apply leads no file out of the tree" { both apply_storm; }

# ---- --cow and --dirty --------------------------------------------------------------------------

read_beside() {
    local box
    new_repo
    me sh -c 'mkdir -p folder/deep && echo 1 >folder/deep/f && echo more >>repo/a.txt'
    carrel create --workdir folder --mount "$T/repo/src:/src:rw"
    [ "$status" -eq 0 ]
    box=$out
    carrel run --workdir folder --cow -- true
    is_one_error 125 "carrel: read '$T/folder': the sandbox of run * may write to '$T/folder'*"
    in_repo run --dirty -- true
    is_one_error 125 "carrel: read '$T/repo': the sandbox of run * may write to '$T/repo/src'*"
    in_repo run --workspace -- true # a commit is not read from the tree
    [ "$status" -eq 0 ]
    carrel destroy "$box"
    carrel run --workdir folder --cow -- cat deep/f
    [ "$status" -eq 0 ]
    [ "$out" = 1 ]
    in_repo run --dirty --mount "$T/repo/src:/src:rw" -- tail -n1 a.txt
    [ "$status" -eq 0 ]
    [ "$out" = more ]
}
@test "a tree that a sandbox may write to is not read for a snapshot" { both read_beside; }

# An object directory is exchanged after it was checked, while the setup of the next run is at work.
# A sandbox that may do so is in the way of the run.
setup_began() { me sh -c 'ls state/carrel/setups/.tmp/*/upper/began 2>/dev/null'; }
exchanged_objects() {
    local line nap
    new_repo
    secret
    me sh -c 'mkdir w && mv repo w/repo && git clone -q -s w/repo w/second'
    carrel create --name box --workdir w
    [ "$status" -eq 0 ]
    carrel run --repo w/second -- true
    is_one_error 125 "carrel: *may write to '$T/w', and could exchange files meanwhile*"
    carrel destroy box
    for line in second/.git/objects repo/.git/objects; do
        nap=9$RANDOM$RANDOM
        background run --repo w/second --setup "touch began; sleep $nap || true" -c 'cat /run/carrel/objects*/key; git log --oneline'
        until_true setup_began
        me sh -c "cd w && mv $line $line.away && ln -s $T/private $line"
        kill $(pgrep -fx "sleep $nap")
        ended
        [[ "$out$err" != *"the secret"* ]]
        [[ "$status:$out" = "0:"*" second"* ]] || [ "$status" -eq 125 ]
        me sh -c "cd w && rm $line && mv $line.away $line"
        me rm -rf state/carrel/setups
    done
}
@test "an object directory that is exchanged after the check is not mounted" { both exchanged_objects; }

# Links that an earlier run left where the caller names a folder or a repository.
left_links() {
    new_repo
    secret
    me mkdir -p w private/d
    me sh -c 'echo "the secret" >private/d/key'
    me git init -q -b main private/r
    me sh -c 'cd private/r && git config user.name A && git config user.email a@b && echo "the secret" >key && git add -A && git commit -qm first'
    carrel run --workdir w -c 'ln -s ../private sub; ln -s ../private/r r'
    [ "$status" -eq 0 ]
    carrel run --workdir w/sub --cow -- cat key
    unseen "carrel: --workdir: 'w/sub': is a link; $NOT_FOLLOWED"
    carrel run --workdir w/sub/d --cow -- cat key
    unseen "carrel: --workdir: 'w/sub/d': passes a link; $NOT_FOLLOWED"
    carrel run --workdir "$T/w/sub/d" --cow -- cat key
    unseen "carrel: --workdir: '$T/w/sub/d': passes the link '$T/w/sub'; $NOT_FOLLOWED"
    carrel run --repo w/r -- cat key
    unseen "carrel: --repo: 'w/r': is a link; $NOT_FOLLOWED"
    carrel run --repo w/sub/r --dirty -- cat key
    unseen "carrel: --repo: 'w/sub/r': passes a link; $NOT_FOLLOWED"
    carrel run --repo "$T/w/sub/r" -- cat key
    unseen "carrel: --repo: '$T/w/sub/r': passes the link '$T/w/sub'; $NOT_FOLLOWED"
    carrel create --repo "$T/w/sub/r"
    unseen "carrel: --repo: '$T/w/sub/r': passes the link '$T/w/sub'; $NOT_FOLLOWED"
    # Where the caller itself names the target, it is read.
    carrel run --workdir private/d --cow -- cat key
    [ "$out" = "the secret" ]
    carrel run --repo private/r -- cat key
    [ "$out" = "the secret" ]
    # And to another work tree of the same repository.
    agent r1
    g worktree add -q ../linked HEAD
    me ln -s ../linked w/linked
    carrel workspace apply --repo w/linked r1
    is_one_error 125 "carrel: *--repo: 'w/linked': is a link; $NOT_FOLLOWED"
    [ ! -e "$T/linked/new.txt" ]
}
@test "a folder or repository that a run made a link is refused" { both left_links; }

# A folder is kept by its path; what has that path when its result is applied may be another one.
left_folder() {
    me sh -c 'mkdir -p w/sub outside && echo 1 >w/sub/f'
    carrel run --task t --run r1 --workdir w/sub --cow -c 'echo 2 >f; echo new >g'
    [ "$status" -eq 0 ]
    carrel run --workdir w -c 'mv sub sub2; ln -s ../outside sub'
    carrel workspace apply r1
    [ "$status" -eq 125 ]
    [[ "$err" == *"is a link; $NOT_FOLLOWED"* ]]
    [ -z "$(ls -A "$T/outside")" ]
}
@test "the result of a folder is not applied through a link" { both left_folder; }

# ---- commits that came from a run ---------------------------------------------------------------

filters() {
    local tree
    new_repo
    users_config filter.mark.smudge "sh -c 'touch $T/ran; sed s/plain/SMUDGED/'"
    users_config filter.mark.clean cat
    users_config filter.mark.required true
    me sh -c 'cd repo && echo "*.m filter=mark" >.gitattributes && echo plain >x.m && git add -A && git commit -qm m'
    in_repo run --workspace -- cat x.m # the user's own commit
    [ "$out" = SMUDGED ]
    [ -e "$T/ran" ]
    in_repo run --task t --run r1 --on-success commit -c 'echo "* filter=mark" >.gitattributes; echo plain >y; git add -A; git commit -qm run'
    [ "$status" -eq 0 ]
    me rm "$T/ran"
    for tree in auto copy; do
        in_repo run --base task-t-run-r1 --tree $tree -- cat y
        [ "$status" -eq 0 ]
        [ "$out" = plain ]
        [ ! -e "$T/ran" ]
    done
    # Once it is on a branch of the user's it is the user's.
    g reset -q --hard
    g -c filter.mark.smudge=cat merge -q --no-ff -m merged task-t-run-r1
    in_repo run --workspace -- cat y
    [ "$out" = SMUDGED ]
}
@test "the user's filters do not run on what came from a run" { both filters; }

# ---- the repository's own configuration ---------------------------------------------------------

left_files() { # core.excludesFile and core.attributesFile
    local key
    new_repo
    secret
    for key in core.excludesFile core.attributesFile; do
        for scope in --local --worktree include; do
            g config extensions.worktreeConfig true
            if [ $scope = include ]; then
                g config include.path "$T/included"
                me git config -f included $key "$T/private/key"
            else
                g config $scope $key "$T/private/key"
            fi
            g commit -q --allow-empty -m another # the git dir of a commit is made once
            in_repo run --workspace -- sh -c 'cat /run/carrel/git/info/*'
            [ "$status" -eq 0 ]
            [[ "$out$err" != *"the secret"* ]]
            if [ $scope = include ]; then
                me rm included
                g config --unset include.path
            else
                g config $scope --unset $key
            fi
        done
    done
    me sh -c 'echo "user.pattern" >mine; echo "user.pattern text" >attributes'
    users_config core.excludesFile "$T/mine"
    users_config core.attributesFile "$T/attributes"
    g config core.excludesFile "$T/private/key"
    g commit -q --allow-empty -m another
    in_repo run --workspace -- sh -c 'cat /run/carrel/git/info/*'
    [[ "$out" == *user.pattern*"user.pattern text"* ]]
    [[ "$out" != *"the secret"* ]]
}
@test "the repository's own configuration shows no file of the host" { both left_files; }

left_fifos() {
    local key
    new_repo
    me mkfifo pipe
    for key in core.excludesFile core.attributesFile include.path; do
        g config $key "$T/pipe"
        status=0
        me env -C "$T/repo" timeout -k 5 60 "$CARREL" run --workspace --include .env -- cat a.txt \
            >"$T/.out" 2>"$T/.err" </dev/null || status=$?
        _collect $key
        if [ $key = include.path ]; then
            unseen "carrel: read your git configuration: git config*longer than*"
        else
            [ "$status" -eq 0 ]
        fi
        me git config -f repo/.git/config --unset $key
        g commit -q --allow-empty -m another
    done
}
@test "a FIFO that the repository's configuration names holds nothing up" { both left_fifos; }

# A filter that is set in the scope $1, and attributes that name it.
leave_filter() {
    local name key
    new_repo
    g config extensions.worktreeConfig true
    for name in x $'\xff.y'; do
        for key in clean smudge; do
            if [ "$1" = include ]; then
                g config include.path "$T/included"
                me git config -f included "filter.$name.$key" "touch $T/ran; cat"
            else
                g config "$1" "filter.$name.$key" "touch $T/ran; cat"
            fi
        done
        me sh -c 'echo "*.txt filter=$1" >>repo/.git/info/attributes' sh "$name"
    done
}
left_filters() {
    local scope
    for scope in --local --worktree include; do
        leave_filter $scope
        in_repo run --workspace --tree copy -- cat a.txt
        [ "$status" -eq 0 ]
        in_repo run --workspace --task t --run r1 -c 'echo n >n.txt'
        [ "$status" -eq 0 ]
        [ "$(grep -c "^carrel: note: .*'$T/repo/.git' sets.*: x, .*git config --global filter" "$T/.err")" -eq 1 ]
        me sh -c 'echo dirty >>repo/a.txt'
        in_repo run --dirty -- tail -n 1 a.txt
        [ "$out" = dirty ]
        in_repo workspace apply r1 || true
        in_repo workspace merge r1 || true
        [ ! -e "$T/ran" ]
        me rm -rf repo included state config
    done
}
@test "nor does a filter of it run on the host, and that is said" { both left_filters; }

left_for_worktree() { # settings that count for one of the git dirs, or are switched on in another form
    local how
    for how in number main branch; do
        new_repo
        me sh -c 'echo "*.txt filter=x" >>repo/.git/info/attributes'
        me git -C repo worktree add -q "$T/linked" -b linked
        if [ $how = branch ]; then
            g config includeIf.onbranch:main.path "$T/included"
            me git config -f included filter.x.smudge "touch $T/ran; cat"
        else
            g config extensions.worktreeConfig true
            g config --worktree filter.x.smudge "touch $T/ran; cat"
        fi
        if [ $how = number ]; then
            g config extensions.worktreeConfig 2
            in_repo run --workspace -- cat a.txt
        else
            carrel_in linked run --workspace -- cat a.txt
        fi
        [ "$status" -eq 0 ]
        [ ! -e "$T/ran" ]
        me rm -rf repo linked included state config
    done
}
@test "nor one that counts for the main work tree alone" { both left_for_worktree; }

left_in_submodule() { # a git that looks into it would obey its configuration
    new_repo
    me git -c protocol.file.allow=always -C repo submodule --quiet add "$T/repo" lib
    g commit -qm lib
    me git -C repo/lib config filter.x.clean "touch $T/ran; cat"
    me git -C repo/lib config filter.x.smudge "touch $T/ran; cat"
    me git -C repo/lib config core.fsmonitor "touch $T/ran; false"
    me sh -c 'echo "* filter=x" >repo/.git/modules/lib/info/attributes; touch repo/lib/a.txt; echo more >>repo/a.txt'
    in_repo run --dirty -- tail -n1 a.txt
    [ "$out" = more ]
    in_repo run --workspace --task t --run r1 -c 'echo n >n.txt; cat lib/a.txt'
    [ "$status" -eq 0 ]
    [[ "$out" == *four ]]
    in_repo workspace apply r1
    [ "$status" -eq 0 ]
    [ ! -e "$T/ran" ]
}
@test "nor one of a submodule's" { both left_in_submodule; }

left_transport() { # a repository becomes a partial clone, and an object is missing
    local object
    new_repo
    g config core.repositoryformatversion 1
    g config extensions.partialClone far
    g config remote.far.promisor true
    g config remote.far.url "$T/other"
    g config remote.far.uploadpack "touch $T/ran; false"
    g config protocol.ext.allow always
    object=$(g rev-parse HEAD:gone.txt)
    me rm -f "repo/.git/objects/${object:0:2}/${object:2}"
    in_repo run --workspace -- true
    [ "$status" -eq 125 ]
    g config --unset remote.far.uploadpack
    g config remote.far.url "ext::touch $T/ran"
    in_repo run --workspace -- true
    [ "$status" -eq 125 ]
    g config remote.far.url ssh://far/away
    g config core.sshCommand "touch $T/ran; false"
    in_repo run --workspace -- true
    [ "$status" -eq 125 ]
    [ ! -e "$T/ran" ]
}
@test "nor a program that the repository names for fetching" { both left_transport; }

partial() { # of the user's own: what is missing is fetched
    new_repo
    g config uploadpack.allowFilter true
    me git clone -q --no-checkout --filter=blob:none "file://$T/repo" part
    carrel_in part run --workspace -- cat a.txt
    [ "$status" -eq 0 ]
    [[ "$out" == *four ]]
}
@test "a partial clone gets what it lacks" { both partial; }

own_filters() { # the way out
    new_repo
    me sh -c 'cd repo && echo "*.up filter=up" >.gitattributes && echo low >x.up && git add -A && git commit -qm up'
    g config filter.up.smudge false
    g config filter.up.required true
    in_repo run --workspace -- cat x.up
    [ "$out" = low ]
    users_config filter.up.smudge "tr a-z A-Z"
    users_config filter.up.required true
    in_repo run --workspace -- cat x.up # although the repository says otherwise
    [ "$out" = LOW ]
    [ "$(grep -c "does not run filters" "$T/.err")" -eq 0 ]
    g config --remove-section filter.up
    in_repo run --workspace -- cat x.up
    [ "$out" = LOW ]
}
@test "a filter of the user's own configuration runs" { both own_filters; }

# ---- .worktreeinclude ---------------------------------------------------------------------------

left_include() {
    local kind
    new_repo
    secret
    me sh -c 'cd repo && echo token=1 >.env && echo .env >>.gitignore && git commit -qam ignore && echo .env >.worktreeinclude'
    in_repo run --workspace --task t --run r1 -- cat .env
    [ "$out" = token=1 ]
    [ "$(grep -c "^carrel: note: .*untracked files that '$T/repo/.worktreeinclude' names: .env" "$T/.err")" -eq 1 ]
    me rm repo/.worktreeinclude
    in_repo run --include .env -- cat .env # the caller's own word
    [ "$out" = token=1 ]
    [ "$(grep -c "untracked files" "$T/.err")" -eq 0 ]
    for kind in "ln -s '$T/private/key'" mkfifo mkdir; do
        me sh -c "$kind repo/.worktreeinclude"
        status=0
        me env -C "$T/repo" timeout -k 5 30 "$CARREL" run --workspace -- true \
            >"$T/.out" 2>"$T/.err" </dev/null || status=$?
        _collect "$kind"
        unseen "carrel: '$T/repo/.worktreeinclude', which an earlier program may have made, is not a regular file*"
        me rm -r repo/.worktreeinclude
    done
}
@test "what a .worktreeinclude hands over is said, and it is a file" { both left_include; }

setup_layers() {
    new_repo
    me sh -c 'cd repo && echo 1 >package-lock.json && echo "all:; echo clean >made" >Makefile && git add -A && git commit -qm lock'
    in_repo run --task t --run r1 --on-success commit -c 'echo "all:; echo poisoned >made" >Makefile; git commit -qam run'
    [ "$status" -eq 0 ]
    in_repo run --base task-t-run-r1 --setup 'sh -c "$(sed s/^all:.// Makefile)"' -- cat made
    [ "$out" = poisoned ]
    in_repo run --workspace --setup 'sh -c "$(sed s/^all:.// Makefile)"' -- cat made
    [ "$status" -eq 0 ]
    [ "$out" = clean ]
}
@test "a setup of a run's commit is not that of others" { both setup_layers; }

# ---- setup --------------------------------------------------------------------------------------

setup_bounds() {
    new_repo
    me sh -c 'mkdir -p config/carrel && printf "sandbox: {limits: {timeout: {maximum: 3s}, disk: {maximum: 32M}}}\n" >config/carrel/policy.yaml'
    in_repo run --timeout 3s --disk 32M --setup 'sleep 60' -- true
    is_one_error 125 "carrel: --setup: the setup command took longer than 3 seconds"
    in_repo run --timeout 3s --disk 32M --setup 'head -c 256M /dev/zero >big; sleep 60' -- true
    [ "$status" -eq 125 ]
    [[ "$err" == "carrel: --setup: the setup command "* ]]
    [ "$(du -sm "$T/state/carrel/setups" | cut -f1)" -lt 33 ]
}
@test "a setup is bound by the maxima of the policy" { both setup_bounds; }

setup_recorded() {
    new_repo
    me sh -c 'echo hush >repo/secret.log && echo "secret.log" >repo/.worktreeinclude'
    in_repo run --task t --run r1 --setup 'touch made' -- true
    [ "$status" -eq 0 ]
    in_repo run --task t --run r2 --setup 'touch made' -- true
    [ "$status" -eq 0 ]
    in_repo journal show t/r1
    [[ "$out" == *'setup_started'*'touch made'*'files_carried'*'secret.log'* ]]
    in_repo journal show t/r2
    [[ "$out" == *'setup_used'*'touch made'*'files_carried'*'secret.log'* ]]
    in_repo journal verify t/r1
    [ "$status" -eq 0 ]
}
@test "setup lines and private files that are carried along are recorded" { both setup_recorded; }

setup_apart() {
    new_repo
    background run --repo "$T/repo" --setup 'touch began; sleep 60' -- true
    until_true me sh -c 'ls state/carrel/setups/.tmp/*/upper/began 2>/dev/null'
    in_repo run --setup 'touch other' -- ls other
    [ "$status" -eq 0 ]
    kill -0 "$pid"
    kill "$pid"
}
@test "a setup waits for no other" { both setup_apart; }

# ---- the harvest --------------------------------------------------------------------------------

git_limit() { # the "Max data size" of the git that reads the result into the quarantine
    local p
    for p in /proc/[0-9]*; do
        [[ "$(tr '\0' ' ' <"$p/cmdline")" == *"git-dir=$T/"*fast-import* ]] || continue
        limit=$(awk '/^Max data size/ { print $4 }' "$p/limits")
        [ -z "$limit" ] || return 0
    done 2>/dev/null
    return 1
}
small_harvest() {
    local limit=
    new_repo
    background run --repo "$T/repo" --task t --run r1 --memory 300M --best-effort memory --disk 3G -- truncate -s 400M big
    until_true git_limit
    [ "$limit" -eq $((300 << 20)) ]
    ended
}
@test "git that reads a result has no more memory than the run had" { both small_harvest; }
