#!/usr/bin/env bats
# shellcheck disable=SC2030,SC2031,SC2154  # cli.bash sets $status, $out and others
# carrel run with a workspace, and carrel workspace: what they say and what they leave.

load cli
load repo

# ---- the run ------------------------------------------------------------------------------------

own_worktree() {
    new_repo
    in_repo run --repo . --task T-1 --run R-1 -c 'pwd; git rev-parse --abbrev-ref HEAD
        git rev-parse HEAD; git status --porcelain; ls; git log --format=%s'
    [ "$status" -eq 0 ]
    [ "$out" = "/workspace
task-T-1-run-R-1
$base
a.txt
gone.txt
src
second
first" ]
    host_is_untouched
}
@test "a run has the files of HEAD in /workspace, on a branch of its own" { both own_worktree; }

what_git_has() { # of the repository: each file with its content's sum, and the refs
    me sh -c 'cd repo && find .git -type d && find .git -type f -exec sha1sum {} + && git for-each-ref' | sort
}

leaves_nothing() {
    local before
    new_repo
    before=$(what_git_has)
    in_repo run --workspace --task t --run r1 -c 'git status; git branch; git worktree list'
    [ "$status" -eq 0 ]
    [[ "$out" == *"* task-t-run-r1"* ]]
    [ "$(what_git_has)" = "$before" ]
    in_repo run --workspace --task t --run r2 -c 'echo work >work; git add work'
    [ "$status" -eq 0 ]
    [ "$(what_git_has)" = "$before" ]
    in_repo workspace show r2
    in_repo workspace discard r1
    in_repo workspace discard --force r2
    [ "$status" -eq 0 ]
    [ "$(what_git_has)" = "$before" ]
}
@test "a run that commits nothing leaves the repository as it was" { both leaves_nothing; }

own_commits() {
    new_repo
    agent r1
    [[ "$err" == *$'\n  its commits are on branch task-t-run-r1\n'* ]]
    [ "$(g log --format=%s "$base"..task-t-run-r1)" = "agent: shout" ]
    [ "$(state_of r1)" = kept ]
    in_repo run --workspace --task t --run r2 -c 'echo x >x; git add x; git commit -qm x'
    [[ "$err" == *"committed to branch task-t-run-r2"* ]]
    [ "$(state_of r2)" = committed ]
    in_repo workspace resume r2 -c 'echo y >y; git add y; git commit -qm y'
    [ "$(g log --format=%s "$base"..task-t-run-r2)" = $'y\nx' ]
    in_repo workspace discard r2 # the branch has it all
    [ "$status" -eq 0 ]
    [ "$(g show task-t-run-r2:y)" = y ]
    in_repo workspace discard --force r1
    [ -z "$(g branch --list task-t-run-r1)" ]
    # a name that is taken meanwhile: nothing is overwritten, nothing lost
    in_repo run --workspace --task t --run r3 --mount "$T/repo/.git/refs/heads:/heads:rw" -c 'cp /heads/main /heads/task-t-run-r3
        echo z >z; git add z; git commit -qm z'
    [ "$status" -eq 0 ]
    [[ "$err" == *"its commits are on no branch: branch 'task-t-run-r3' exists already and is not this run's"* ]]
    [ "$(g rev-parse task-t-run-r3)" = "$base" ]
    in_repo workspace commit r3
    is_one_error 125 "carrel: commit run 'r3': branch 'task-t-run-r3' exists already and is not this run's: rename it*"
    g branch -m task-t-run-r3 mine
    in_repo workspace commit r3
    [ "$(g show task-t-run-r3:z)" = z ]
    [ "$(g rev-parse mine)" = "$base" ]
}
@test "commits of a run are on its branch when it ends" { both own_commits; }

nothing_comes_back_by_itself() {
    new_repo
    agent r1
    host_is_untouched
    [ -z "$(g log --format=%s "$base".. --branches -- new.txt)" ]
}
@test "what a run does stays in its workspace until it is taken over" {
    both nothing_comes_back_by_itself
}

summary() {
    new_repo
    agent r1
    [[ "$err" == *"3 files changed, +2 -2, 1 commit"$'\n'* ]]
    [[ "$err" == *"carrel workspace diff r1"*"apply r1"*"discard r1"* ]]
    agent r2 --quiet
    [ -z "$err" ]
    agent r3 --json
    [ -z "$err" ]
    holds 'r["ok"] and r["run"] == "r3" and r["task"] == "t"'
    holds 'r["held_by"]["disk"] == "polling" and "disk" not in r["protections"]'
}
@test "the end of a run says what changed and what to do with it; not with --quiet or --json" {
    both summary
}

sensitive() {
    new_repo
    in_repo run --workspace --run r1 -c 'mkdir -p .github/workflows && echo on: >.github/workflows/x.yml'
    [ "$status" -eq 0 ]
    [[ "$err" == *".github/workflows/x.yml"* ]]
    in_repo workspace show r1
    [[ "$out" == *"A .github/workflows/x.yml ("* ]]
    in_repo workspace status r1 --json
    holds 'r["files"][0]["sensitive"] is not None'
}
@test "changed files that something outside would execute are pointed out" { both sensitive; }

made_up_ids() {
    new_repo
    in_repo run --workspace --quiet -c 'git rev-parse --abbrev-ref HEAD'
    [ "$status" -eq 0 ]
    [[ "$out" == task-?*-run-?* ]]
    local first=$out
    in_repo run --workspace --quiet -c 'git rev-parse --abbrev-ref HEAD'
    [[ "$out" == task-?*-run-?* ]]
    [ "$out" != "$first" ]
}
@test "ids are made up when they are not given" { both made_up_ids; }

taken_id() {
    new_repo
    agent r1
    in_repo run --workspace --task t --run r1 -- echo ran
    is_one_error 125 "carrel: *r1*"
    [ -z "$out" ]
}
@test "an id that is taken is refused" { both taken_id; }

base_revision() {
    new_repo
    in_repo run --workspace --base HEAD~1 -c 'git log --format=%s; cat a.txt'
    [ "$out" = $'first\none\ntwo\nthree' ]
    in_repo run --base main~1 -c 'git log --format=%s'
    [ "$out" = first ]
}
@test "--base names another commit" { both base_revision; }

subdirectory() {
    new_repo
    carrel_in repo/src run --workspace -c 'pwd; ls'
    [ "$status" -eq 0 ]
    [[ "$out" == /workspace*$'\n'*a.txt* ]] || [[ "$out" == *x.c* ]]
}
@test "a workspace can be asked for from a directory of the repository" { both subdirectory; }

dirty_start() {
    new_repo
    echo five >>"$T/repo/a.txt"
    in_repo run --dirty --run r1 -c 'cat a.txt; ls build.log 2>/dev/null; echo more >>a.txt'
    [ "$status" -eq 0 ]
    [ "$out" = $'one\ntwo\nthree\nfour\nfive' ]
    [ "$(tail -n 1 "$T/repo/a.txt")" = five ]
    in_repo run --workspace --run r2 -c 'tail -n 1 a.txt'
    [ "$out" = four ]
}
@test "--dirty begins with the user's uncommitted work" { both dirty_start; }

included() {
    new_repo
    in_repo run --workspace -c 'cat build.log'
    [ "$status" -ne 0 ]
    in_repo run --include '*.log' -c 'cat build.log; git status --porcelain'
    [ "$status" -eq 0 ]
    [ "$out" = noise ]
}
@test "--include carries ignored files along" { both included; }

history_cut() {
    new_repo
    g branch other main~1
    in_repo run --history cut -c 'git log --format=%s; git branch -a | wc -l; git status --porcelain'
    [ "$status" -eq 0 ]
    [ "$out" = $'second\n1' ]
}
@test "--history cut shows one commit and no other branch" { both history_cut; }

setup_layer() {
    new_repo
    local line='mkdir -p deps && date +%N >deps/made'
    in_repo run --setup "$line" --setup-key a.txt --run r1 -c 'cat deps/made'
    [ "$status" -eq 0 ]
    local first=$out
    in_repo run --setup "$line" --setup-key a.txt --run r2 -c 'cat deps/made; rm -rf deps'
    [ "$out" = "$first" ]
    in_repo run --setup "$line" --setup-key a.txt --run r3 -c 'cat deps/made'
    [ "$out" = "$first" ]
}
@test "--setup runs once, and later runs find its files" { both setup_layer; }

tree_copy() {
    new_repo
    agent r1 --tree copy
    in_repo workspace show r1 --json
    holds 'r["tree"] == "copy" and len(r["total"]["files"]) == 3'
    host_is_untouched
}
@test "--tree copy does the same by a whole checkout, and says so" { both tree_copy; }

success_and_failure() {
    new_repo
    agent r1 --on-success commit
    [ "$(g log -1 --format=%s task-t-run-r1~1)" = "agent: shout" ]
    [ -z "$(g status --porcelain)" ]
    agent r2 --on-success discard
    in_repo workspace list --json
    holds '[w["run"] for w in r["workspaces"]] == ["r1"]'
    in_repo run --workspace --run r3 --on-failure discard -c 'echo x >x; exit 3'
    [ "$status" -eq 3 ]
    in_repo workspace list --json
    holds '[w["run"] for w in r["workspaces"]] == ["r1"]'
    in_repo run --workspace --run r4 --on-success discard -c 'echo x >x; exit 3'
    [ "$status" -eq 3 ]
    in_repo workspace show r4
    [ "$status" -eq 0 ]
    agent r5 --on-success apply
    [ "$(cat "$T/repo/new.txt")" = new ]
    grep -qx TWO "$T/repo/a.txt"
}
@test "--on-success and --on-failure decide what becomes of the work" { both success_and_failure; }

# ---- looking ------------------------------------------------------------------------------------

lists() {
    new_repo
    in_repo workspace list
    [ "$status" -eq 0 ]
    [ -z "$out" ]
    agent r1
    agent r2
    in_repo workspace list
    [ "$status" -eq 0 ]
    [ "$(head -n 1 <<<"$out" | tr -s ' ')" = "RUN TASK STATE BASE AGE BRANCH" ]
    [ "$(wc -l <<<"$out")" -eq 3 ]
    [[ "$out" == *$'\nr1 '*' t '*kept*"${base:0:10}"*task-t-run-r1$'\nr2 '* ]]
    carrel workspace list
    [[ "$out" == *REPOSITORY*"$T/repo"* ]]
    me git init -q other
    carrel_in other workspace list --json
    holds 'r["ok"] and r["workspaces"] == []'
    carrel_in other workspace list --all --json
    holds '[w["run"] for w in r["workspaces"]] == ["r1", "r2"]'
    holds 'all(w["state"] == "kept" and w["branch"] == "task-t-run-" + w["run"] for w in r["workspaces"])'
}
@test "list shows the workspaces of this repository, --all those of every one" { both lists; }

oldest_first() { # several are made in one second
    local run
    new_repo
    for run in f e d c b a; do
        in_repo run --workspace --quiet --run "$run" -- true
    done
    in_repo workspace list --json
    holds '"".join(w["run"] for w in r["workspaces"]) == "fedcba"'
}
@test "list has the oldest first, whatever they are called" { both oldest_first; }

shows() {
    new_repo
    agent r1
    in_repo workspace show
    [ "$status" -eq 0 ]
    [[ "$out" == *$'\nbase'*"$base"* ]]
    [[ "$out" == *"3 files changed, +2 -2, 1 commit"* ]]
    in_repo workspace show --json t/r1
    holds 'r["ok"] and r["run"] == "r1" and r["task"] == "t" and not r["folder"]'
    holds 'sorted((f["status"], f["path"]) for f in r["total"]["files"]) == [("A", "new.txt"), ("D", "gone.txt"), ("M", "a.txt")]'
    holds '[f["path"] for f in r["by_commits"]["files"]] == ["a.txt"] and r["by_commits"]["commits"] == 1'
    holds 'r["disk_bytes"] > 0'
}
@test "show tells of the whole work, of commits and of what was left uncommitted" { both shows; }

statuses() {
    new_repo
    agent r1
    in_repo workspace status r1
    [ "$status" -eq 0 ]
    [ "$out" = $'M. a.txt\n.D gone.txt\n.A new.txt' ]
    in_repo run --workspace --run idle -- true
    in_repo workspace status idle
    [ "$status" -eq 0 ]
    [ -z "$out" ]
    in_repo workspace status idle --json
    holds 'r["clean"] and r["files"] == []'
}
@test "status has a line for each changed file" { both statuses; }

diffs() {
    new_repo
    agent r1
    in_repo workspace diff r1
    [ "$status" -eq 0 ]
    [[ "$out" == *"-two"*"+TWO"* ]]
    [[ "$out" == *"+++ b/new.txt"* ]]
    [[ "$out" != *$'\e['* ]]
    me cp -r repo copy
    me sh -c 'cd copy && git apply ../.out' # a real diff
    grep -qx TWO "$T/copy/a.txt"
    [ ! -e "$T/copy/gone.txt" ]
    in_repo workspace diff r1 --uncommitted
    [[ "$out" != *TWO* && "$out" == *new.txt* ]]
    in_repo workspace diff --stat r1
    [[ "$out" == *"3 files changed"* ]]
    in_repo workspace diff r1 --name-status
    [ "$out" = $'M\ta.txt\nD\tgone.txt\nA\tnew.txt' ]
    in_repo workspace diff r1 --color always
    [[ "$out" == *$'\e['* ]]
    in_repo workspace diff r1 --json
    holds '"+TWO" in r["diff"]'
    in_repo workspace diff r1 --stat --name-status
    is_one_error 125 "carrel: --stat and --name-status cannot be combined"
}
@test "diff is a unified diff that git takes" { both diffs; }

reader_leaves() {
    new_repo
    in_repo run --workspace --run r1 -c 'seq 200000 >many'
    out=$(me sh -c 'cd repo && "$1" workspace diff r1 | head -n 1' sh "$CARREL" 2>"$T/.err")
    cat "$T/.err"
    [ "$out" = "diff --git a/many b/many" ]
    [ ! -s "$T/.err" ]
}
@test "diff into a pager that ends early is no failure" { both reader_leaves; }

logs() {
    new_repo
    agent r1
    in_repo workspace log r1
    [ "$status" -eq 0 ]
    [[ "$out" == *"agent: shout"* && "$out" != *second* ]]
    in_repo workspace patch r1
    [ "$status" -eq 0 ]
    me git clone -q repo copy
    me sh -c 'cd copy && git config user.name x && git config user.email x@y && git am -q ../.out'
    [ "$(cat "$T/copy/new.txt")" = new ]
    grep -qx TWO "$T/copy/a.txt"
    [ ! -e "$T/copy/gone.txt" ]
}
@test "log has the run's commits, patch all of its work for git am" { both logs; }

hostile_names() {
    new_repo
    in_repo run --workspace --run r1 -c 'printf x >"$(printf "a\033[31mb\nc")"
        git add -A; git commit -qm "$(printf "\033]0;owned\007 hi")"; :'
    [[ "$err" != *$'\e'* ]]
    local verb
    for verb in show status diff log; do
        in_repo workspace "$verb" r1
        [ "$status" -eq 0 ]
        [[ "$out$err" != *$'\e'* && "$out$err" != *$'\a'* ]]
    done
    in_repo workspace status r1
    [ "$(wc -l <<<"$out")" -eq 1 ]
    in_repo workspace status r1 --json
    holds 'r["files"][0]["path"] == "a\x1b[31mb\nc"'
}
@test "names and messages that a run chose cannot write to the terminal" { both hostile_names; }

on_terminal() { # on_terminal ARG...: carrel in the repository, its output on a terminal; $out
    out=$(me env -C "$T/repo" TERM=xterm /usr/bin/python3 -c '
import pty, sys
pty.spawn(sys.argv[1:])' "$CARREL" "$@" </dev/null)
    printf 'on a terminal: carrel %s\n%q\n' "$*" "$out"
}

hidden_characters() { # zero-width, direction, byte order mark, a tag
    local verb odd=$'\xe2\x80\x8b\xe2\x80\xae\xef\xbb\xbf\xd8\x9c\xf3\xa0\x81\xa1' i
    new_repo
    in_repo run --workspace --run r1 -c "mkdir -p .github/workflows && echo x >'.github/workflows/a$odd' && git add -A && git commit -qm 'm$odd' --author 'n$odd <a@b>'"
    [[ "$err" == *'a\xe2\x80\x8b\xe2\x80\xae\xef\xbb\xbf\xd8\x9c\xf3\xa0\x81\xa1'* ]]
    for verb in list show status 'diff --stat' 'diff --name-status' log 'status --json' 'log --json'; do
        # shellcheck disable=SC2086  # words of their own
        in_repo workspace $verb
        # shellcheck disable=SC2086
        on_terminal workspace $verb
        for ((i = 0; i < ${#odd}; i++)); do
            [[ "$(<"$T/.out")$out" != *"${odd:i:1}"* ]]
        done
    done
}
@test "invisible characters are shown in names and messages" { both hidden_characters; }

terminals() {
    new_repo
    in_repo run --workspace --run r1 -c 'printf "\033]0;owned\007 \033[8mhidden\n" >>a.txt
        printf "\033[32m+good\033[m\n" >b.txt && git add b.txt && git commit -qm "$(printf "m \033[31mred\033[m")"'
    on_terminal workspace diff r1
    [[ "$out" == *$'\e[32m+\\x1b]0;'* ]]        # colours of ours
    [[ "$out" == *'+\x1b[32m+good\x1b[m'* ]]    # and none of the run's
    on_terminal workspace log r1
    [[ "$out" == *$'\e[33mcommit '*'    m \x1b[31mred\x1b[m'* ]]
    on_terminal workspace diff r1
    [[ "$out" == *'\x1b]0;owned\x07 \x1b[8mhidden'* ]]
    [[ "$out" != *$'\e]'* && "$out" != *$'\a'* && "$out" != *$'\e[8m'* ]]
    on_terminal workspace diff r1 --color never
    [[ "$out" != *$'\e'* ]]
    on_terminal workspace diff r1 --stat
    [[ "$out" == *$'| 1 \e[32m+\e[m'* ]]
    in_repo workspace diff r1 # elsewhere the bytes are the run's: git apply must find them
    [[ "$out" == *$'\e]0;owned\a'* ]]
}
@test "on a terminal a diff is coloured, and what the run wrote has no effect" { both terminals; }

# ---- which one is meant -------------------------------------------------------------------------

left_out_name() {
    new_repo
    in_repo workspace status
    is_one_error 125 "carrel: this repository has no workspace; 'carrel run --workspace*"
    agent r1
    in_repo workspace status
    [ "$status" -eq 0 ]
    [[ "$out" == *new.txt* ]]
    carrel_in repo/src workspace status
    [ "$status" -eq 0 ]
    agent r2
    in_repo workspace status
    is_one_error 125 "carrel: this repository has 2 workspaces; name one of them: t/r1, t/r2"
    carrel workspace status
    is_one_error 125 "carrel: no workspace was named, and *in no git repository*"
    carrel workspace status r1
    [ "$status" -eq 0 ]
}
@test "the name may be left out where there is exactly one workspace" { both left_out_name; }

same_run_of_two_tasks() {
    new_repo
    in_repo run --task a --run r1 -c 'echo a >f'
    in_repo run --task b --run r1 -c 'echo b >f'
    [ "$status" -eq 0 ]
    in_repo workspace diff r1
    is_one_error 125 "carrel: *a*b*"
    in_repo workspace diff b/r1
    [[ "$out" == *"+b"* ]]
}
@test "a run that two tasks have is called TASK/RUN" { both same_run_of_two_tasks; }

wrong_words() {
    new_repo
    agent fix-1
    in_repo workspace show fix-2
    is_one_error 125 "carrel: *fix-2*"
    in_repo workspace show ../../etc
    is_one_error 125 "carrel: *"
    in_repo workspace
    is_one_error 125 "carrel: no subcommand*list*--help*"
    in_repo workspace dif
    is_one_error 125 "carrel: unknown subcommand 'dif' (did you mean 'workspace diff'?)"
    in_repo workspace show --jsn
    is_one_error 125 "carrel: unknown option '--jsn' (did you mean '--json'?)"
    in_repo workspace show a b
    is_one_error 125 "carrel: unexpected argument 'b'; usage: carrel workspace show *"
    in_repo workspace show fix-2 --json
    [ "$status" -eq 125 ]
    holds 'r["ok"] is False and "fix-2" in r["error"]'
    local verb
    for verb in list show status diff log patch commit apply merge cherry-pick discard open close \
        shell lock unlock move repair prune resume; do
        in_repo workspace "$verb" --help
        [ "$status" -eq 0 ]
        [[ "$out" == "Usage: carrel workspace $verb "* ]]
    done
}
@test "mistakes get one line each, and every subcommand has --help" { both wrong_words; }

refused_options() {
    new_repo
    local words
    for words in "--repo . --workdir ." "--cow" "--setup-key a.txt" "--dirty --base HEAD" \
        "--workdir . --cow --base HEAD" "--task a/b" "--run .." "--base nothing" "--repo /"; do
        # shellcheck disable=SC2086
        in_repo run $words -- echo ran
        is_one_error 125 "carrel: *"
        [ -z "$out" ]
    done
    host_is_untouched
    in_repo workspace list --all
    [ -z "$out" ]
}
@test "options that make no sense are refused, and leave nothing" { both refused_options; }

not_a_repository() {
    me mkdir plain
    carrel_in plain run --workspace -- echo ran
    is_one_error 125 "carrel: *--workdir*--cow*"
}
@test "outside of a repository the way for folders is named" { both not_a_repository; }

# ---- taking over --------------------------------------------------------------------------------

commits() {
    new_repo
    agent r1
    in_repo workspace commit r1 --message "the rest" --json
    [ "$status" -eq 0 ]
    [ "$(json 'r["commit"]')" = "$(g rev-parse task-t-run-r1)" ]
    [ "$(g log --format=%s main..task-t-run-r1)" = $'the rest\nagent: shout' ]
    [ "$(g show task-t-run-r1:new.txt)" = new ]
    host_is_untouched
    in_repo workspace list --json
    holds 'r["workspaces"][0]["state"] == "committed"'
    in_repo workspace commit r1
    [ "$status" -eq 0 ]
}
@test "commit puts all of the work on the run's branch, and nothing else moves" { both commits; }

applies() {
    new_repo
    agent r1
    in_repo workspace apply r1
    [ "$status" -eq 0 ]
    grep -qx TWO "$T/repo/a.txt"
    [ "$(cat "$T/repo/new.txt")" = new ]
    [ ! -e "$T/repo/gone.txt" ]
    [ "$(g rev-parse HEAD)" = "$base" ]
    g diff --cached --quiet
}
@test "apply changes the checked-out files, and neither index nor branch" { both applies; }

conflicts() {
    new_repo
    agent r1
    echo mine >"$T/repo/new.txt"
    me sh -c 'cd repo && sed -i s/two/mine/ a.txt'
    in_repo workspace apply r1
    [ "$status" -eq 1 ]
    [[ "$out" == *"a.txt: "*"new.txt: "* ]]
    [[ "$err" == "carrel: 2 conflicts, and nothing was changed"* ]]
    [ "$(cat "$T/repo/new.txt")" = mine ]
    grep -qx mine "$T/repo/a.txt"
    [ -e "$T/repo/gone.txt" ]
    in_repo workspace apply r1 --json
    [ "$status" -eq 1 ]
    holds 'not r["ok"] and sorted(c["path"] for c in r["conflicts"]) == ["a.txt", "new.txt"]'
    holds 'all(c["why"] for c in r["conflicts"])'
}
@test "apply over the user's own changes lists conflicts, changes nothing and ends with 1" {
    both conflicts
}

merges() {
    new_repo
    agent r1
    in_repo workspace merge r1
    [ "$status" -eq 0 ]
    grep -qx TWO "$T/repo/a.txt"
    [ -z "$(g status --porcelain)" ]
    g merge-base --is-ancestor task-t-run-r1 HEAD
    in_repo run --workspace --run r2 -c 'echo two >two; git add -A; git commit -qm two'
    in_repo workspace cherry-pick r2
    [ "$status" -eq 0 ]
    [ "$(cat "$T/repo/two")" = two ]
    [ "$(g log -1 --format=%s)" = two ]
    in_repo run --workspace --run r3 -c 'echo three >three'
    in_repo workspace apply --squash r3
    [ "$status" -eq 0 ]
    [ "$(g status --porcelain)" = "A  three" ]
}
@test "merge, cherry-pick and apply --squash do what git calls so" { both merges; }

merge_conflict() {
    new_repo
    agent r1
    me sh -c 'cd repo && sed -i s/two/2/ a.txt && git commit -qam mine'
    local head
    head=$(g rev-parse HEAD)
    in_repo workspace merge r1
    [ "$status" -eq 1 ]
    [[ "$out" == *"a.txt: "* ]]
    [ "$(g rev-parse HEAD)" = "$head" ]
    [ -z "$(g status --porcelain)" ]
    [[ "$err" == "carrel: 1 conflict, and the changes are on the run's branch, but nothing of yours was changed"* ]]
    [ "$(g show task-t-run-r1:new.txt)" = new ]
}
@test "a merge with conflicts changes nothing of the user's and ends with 1" { both merge_conflict; }

one_name() { # for a program: the same word wherever it meets the workspace, and one that any verb takes
    local verb given
    new_repo
    agent r1 --json
    holds 'r["workspace"]["name"] == "t/r1"'
    in_repo workspace list --json
    holds 'r["workspaces"][0]["name"] == "t/r1"'
    for given in r1 t/r1 ''; do
        for verb in show status 'diff --stat' log patch commit apply lock unlock repair open close discard; do
            # shellcheck disable=SC2086  # words of their own; the empty one is no word
            in_repo workspace $verb --json $given
            [ "$status" -eq 0 ]
            holds '(r["discarded"][0] if "discarded" in r else r)["name"] == "t/r1"'
            [ "$verb" != apply ] || g reset -q --hard
            [ "$verb" != apply ] || g clean -qf
        done
        g branch -qD task-t-run-r1
        agent r1
    done
}
@test "the JSON of every subcommand calls a workspace by task and run" { both one_name; }

# ---- keeping and removing -----------------------------------------------------------------------

discards() {
    new_repo
    agent r1
    in_repo workspace discard r1
    is_one_error 125 "carrel: *r1*--force*"
    in_repo workspace discard --force
    is_one_error 125 "carrel: --force needs a NAME*"
    agent r2
    agent r3
    in_repo workspace discard r2 r3 --force
    [ "$status" -eq 0 ]
    [ "$out" = $'discarded t/r2\ndiscarded t/r3' ]
    in_repo workspace commit r1
    in_repo workspace discard r1
    [ "$status" -eq 0 ]
    g rev-parse -q --verify task-t-run-r1 # the work is there
    [ -z "$(g branch --list 'task-t-run-r[23]')" ]
    in_repo workspace list
    [ -z "$out" ]
    [ "$(g worktree list | wc -l)" -eq 1 ]
    host_is_untouched
}
@test "discard refuses to lose work, removes the rest, and leaves no trace" { both discards; }

published() {
    new_repo
    agent r1
    in_repo workspace commit r1
    tip=$(g rev-parse task-t-run-r1)
    in_repo workspace discard --force r1
    [ "$status" -eq 0 ]
    [ "$(g rev-parse task-t-run-r1)" = "$tip" ]
    g branch -qD task-t-run-r1
    # nor does a run take it that goes on there and throws all away
    agent r2 --on-success commit
    tip=$(g rev-parse task-t-run-r2)
    in_repo workspace resume r2 --on-success discard -c 'echo more >more'
    [ "$status" -eq 0 ]
    in_repo workspace list
    [ -z "$out" ]
    [ "$(g rev-parse task-t-run-r2)" = "$tip" ]
}
@test "a branch that work was put on stays, also with --force" { both published; }

five_lines() { # as docs/workspaces.md and the manual page have them
    new_repo
    agent fix-42
    in_repo workspace diff fix-42
    in_repo workspace apply fix-42
    [ "$status" -eq 0 ]
    in_repo workspace list
    [[ "$out" == *" applied "* ]]
    in_repo workspace show fix-42 # looks again: the same files, another snapshot
    [[ "$out" == *applied* ]]
    in_repo workspace prune
    [ "$out" = "nothing to prune" ]
    in_repo workspace discard fix-42
    [ "$status" -eq 0 ]
    [ "$(cat "$T/repo/new.txt")" = new ]
    [ -z "$(g branch --list 'task-*')" ]
}
@test "what was applied whole can be discarded" { both five_lines; }

applied_and_then() {
    new_repo
    agent r1 --on-success apply
    in_repo workspace resume r1 -c 'echo more >more'
    [ "$status" -eq 0 ]
    in_repo workspace list
    [[ "$out" == *" kept "* ]]
    in_repo workspace discard r1
    is_one_error 125 "carrel: *r1*nowhere else*"
    in_repo workspace resume r1 -c 'rm more'
    in_repo workspace list
    [[ "$out" == *" applied "* ]]
    # what is in the way is not applied
    agent r2
    me sh -c 'echo mine >repo/a.txt'
    in_repo workspace apply r2
    [ "$status" -eq 1 ]
    in_repo workspace discard r2
    is_one_error 125 "carrel: *r2*nowhere else*"
}
@test "work that came after an apply is nowhere else" { both applied_and_then; }

locks() {
    new_repo
    in_repo run --workspace --task t --run r1 -- true
    in_repo workspace lock r1 --reason "for the review"
    [ "$status" -eq 0 ]
    in_repo workspace list
    [[ "$out" == *kept,locked* ]]
    in_repo workspace discard r1 --force
    is_one_error 125 "carrel: *lock*"
    in_repo workspace prune
    [ "$status" -eq 0 ]
    in_repo workspace show r1
    [ "$status" -eq 0 ]
    in_repo workspace unlock r1
    in_repo workspace discard r1
    [ "$status" -eq 0 ]
}
@test "a locked workspace is neither discarded nor pruned" { both locks; }

prunes() {
    new_repo
    agent busy
    agent "done" --on-success commit
    in_repo run --workspace --task t --run idle -- true
    in_repo workspace prune --older-than 1d
    [ "$out" = "nothing to prune" ]
    in_repo workspace prune --dry-run
    [ "$status" -eq 0 ]
    [ "$(sort <<<"$out" | cut -d' ' -f1-3)" = $'would discard t/done\nwould discard t/idle' ]
    in_repo workspace prune --json
    holds 'sorted(w["run"] for w in r["discarded"]) == ["done", "idle"]'
    in_repo workspace list --json
    holds '[w["run"] for w in r["workspaces"]] == ["busy"]'
    carrel workspace prune
    is_one_error 125 "carrel: *--all*"
}
@test "prune takes only what has no work of its own" { both prunes; }

running() {
    new_repo
    me sh -c 'cd repo && exec "$1" run --workspace --task t --run r1 -c "echo up; echo x >x; sleep 60"' \
        sh "$CARREL" >"$T/.out" 2>"$T/.err" </dev/null 3>&- &
    _follow_exec $!
    until_true grep -q up "$T/.out"
    in_repo workspace list --json
    holds 'r["workspaces"][0]["state"] == "running"'
    in_repo workspace discard r1 --force
    [ "$status" -eq 125 ]
    in_repo workspace resume r1 -- true
    [ "$status" -eq 125 ]
    kill -KILL "$pid"
    until_true is_interrupted
    in_repo workspace status r1
    [ "$status" -eq 0 ]
    [[ "$out" == *"A x"* ]]
    in_repo workspace resume r1 -- cat x
    [ "$out" = x ]
}
is_interrupted() {
    in_repo workspace list --json
    [[ "$out" == *'"state":"interrupted"'* ]]
}
@test "a running workspace cannot be discarded, and a killed one keeps its work" { both running; }

# ---- going on -----------------------------------------------------------------------------------

resumes() {
    new_repo
    agent r1
    in_repo workspace resume r1 -c 'cat new.txt; git log -1 --format=%s; echo more >>new.txt; exit 4'
    [ "$status" -eq 4 ]
    [ "$out" = $'new\nagent: shout' ]
    in_repo workspace resume --json r1 -- cat new.txt
    holds 'r["stdout"] == "new\nmore\n" and r["run"] is not None'
    in_repo workspace resume -- git status --porcelain
    [ "$status" -eq 0 ]
    in_repo workspace resume r1 --base main -- true
    is_one_error 125 "carrel: --base applies only to a new workspace*"
    in_repo workspace resume nothing -- true
    is_one_error 125 "carrel: *nothing*"
    host_is_untouched
}
@test "resume continues where the run ended" { both resumes; }

shells() {
    new_repo
    agent r1
    status=0
    me sh -c 'cd repo && echo "cat new.txt; exit 3" | "$1" workspace shell r1' sh "$CARREL" \
        >"$T/.out" 2>"$T/.err" || status=$?
    [ "$status" -eq 3 ]
    [ "$(cat "$T/.out")" = new ]
    in_repo workspace shell r1 -- true
    is_one_error 125 "carrel: shell takes no program*resume*"
}
@test "shell reads commands, in the workspace" { both shells; }

opens() {
    new_repo
    agent r1
    in_repo workspace close r1
    is_one_error 125 "carrel: workspace 'r1' is not open"
    in_repo workspace move r1 "$T/moved"
    is_one_error 125 "carrel: workspace 'r1' is not open"
    in_repo workspace open r1
    [ "$status" -eq 0 ]
    local at=$out
    [ -n "$at" ]
    [ "$(cat "$at/new.txt")" = new ]
    [ "$(me git -C "$at" rev-parse --abbrev-ref HEAD)" = task-t-run-r1 ]
    me sh -c 'echo by hand >"$1/hand.txt"' sh "$at"
    in_repo workspace list
    [[ "$out" == *,open* ]]
    in_repo workspace close r1
    is_one_error 125 "carrel: *commit*"
    me git -C "$at" add -A
    me git -C "$at" commit -qm "by hand"
    in_repo workspace close r1
    [ "$status" -eq 0 ]
    [ ! -e "$at" ]
    in_repo workspace status r1
    [[ "$out" == *hand.txt* ]]
    in_repo workspace open r1 --at "$T/elsewhere"
    [ "$out" = "$T/elsewhere" ]
    in_repo workspace move r1 "$T/moved"
    [ "$status" -eq 0 ]
    [ "$(cat "$T/moved/hand.txt")" = "by hand" ]
    [ ! -e "$T/elsewhere" ]
    in_repo workspace close r1
    [ "$status" -eq 0 ]
}
@test "open gives a directory where git works, close keeps what was committed there" { both opens; }

repairs() {
    new_repo
    agent r1
    in_repo workspace open r1
    me rm -rf repo/.git/worktrees
    in_repo workspace repair r1 --json
    holds 'r["ok"] and r["mended"] >= 1'
    g worktree list | grep -q locked
    in_repo workspace repair r1
    [ "$out" = "nothing was wrong" ]
}
@test "repair tells the repository of the workspace again" { both repairs; }

# ---- a folder without git -----------------------------------------------------------------------

folder() {
    me mkdir -p plain/sub
    echo one >"$T/plain/sub/a"
    echo old >"$T/plain/gone"
    chmod 600 "$T/plain/sub/a"
    [ "$who" = root ] || chown -R "$(me id -u)" "$T/plain"
    carrel run --workdir plain --cow --run r1 -c 'echo two >>sub/a; rm gone; echo new >b; ls -A'
    [ "$status" -eq 0 ]
    [[ "$out" != *.git* ]]
    [ "$(cat "$T/plain/sub/a")" = one ]
    [ -e "$T/plain/gone" ]
    [ ! -e "$T/plain/b" ]
    carrel workspace diff r1
    [[ "$out" == *"+two"* ]]
    carrel_in plain workspace status
    [ "$(cut -c 4- <<<"$out")" = $'b\ngone\nsub/a' ]
    carrel workspace apply r1
    [ "$status" -eq 0 ]
    [ "$(cat "$T/plain/sub/a")" = $'one\ntwo' ]
    [ "$(stat -c %a "$T/plain/sub/a")" = 600 ]
    [ ! -e "$T/plain/gone" ]
    [ "$(cat "$T/plain/b")" = new ]
    carrel run --workdir plain --cow --run r2 --on-success discard -c 'rm -rf sub'
    [ -e "$T/plain/sub/a" ]
    carrel workspace discard r1 --force
    [ "$status" -eq 0 ]
}
@test "--workdir DIR --cow gives a folder the same, without git" { both folder; }
