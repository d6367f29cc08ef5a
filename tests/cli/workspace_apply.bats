#!/usr/bin/env bats
# shellcheck disable=SC2030,SC2031,SC2154  # cli.bash sets $status, $out and others
# What reaches the user's files and how, whose files these are, what a setup line makes, and what is
# refused in words that help.

load cli
load repo

# ---- in which form ------------------------------------------------------------------------------

line_ends() {
    new_repo
    me sh -c 'cd repo && printf "*.txt text eol=crlf\n" >.gitattributes && git add -A &&
        git commit -qm attributes && rm a.txt gone.txt && git checkout -q .'
    in_repo run --workspace --run r1 -c 'printf "five\r\n" >>a.txt; printf "n\r\n" >new.txt; echo c >new.c'
    in_repo workspace apply r1
    [ "$status" -eq 0 ]
    [ "$(me sh -c "cd repo && git ls-files --eol a.txt | cut -f1")" = "i/lf    w/crlf  attr/text eol=crlf    " ]
    printf 'n\r\n' | cmp - "$T/repo/new.txt"
    printf 'c\n' | cmp - "$T/repo/new.c"
    [ "$(g status --porcelain)" = $' M a.txt\n?? new.c\n?? new.txt' ]
    g checkout -q .
    rm "$T"/repo/new.*
    in_repo workspace merge r1
    [ "$status" -eq 0 ]
    [ -z "$(g status --porcelain)" ]
    printf 'one\r\ntwo\r\nthree\r\nfour\r\nfive\r\n' | cmp - "$T/repo/a.txt"
}
@test "apply and merge write line ends as a checkout does" { both line_ends; }

filters() {
    local verb
    new_repo
    users_config filter.shout.smudge "tr a-z A-Z"
    users_config filter.shout.clean "tr A-Z a-z"
    me sh -c 'cd repo && echo "a.txt filter=shout" >.gitattributes && git add -A &&
        git commit -qm attributes && rm a.txt && git checkout -q .'
    in_repo run --workspace --task t --run r1 -c 'echo FIVE >>a.txt; echo n >n'
    for verb in apply merge; do
        in_repo workspace "$verb" r1
        [ "$status" -eq 1 ]
        [ "$out" = "a.txt: a git filter of yours converts it, and carrel runs none: commit the run, then git merge its branch" ]
        [ -z "$(g status --porcelain)" ]
    done
    g merge -q task-t-run-r1
    [ "$(tail -n 1 "$T/repo/a.txt")" = FIVE ]
    in_repo run --workspace --task t --run r2 -c 'echo m >m; rm a.txt' # nothing to convert
    in_repo workspace apply r2
    [ "$status" -eq 0 ]
    [ "$(g status --porcelain)" = $' D a.txt\n?? m' ]
}
@test "a path that a filter of the user's has a say in is refused, and git does the rest" { both filters; }

# ---- whose files --------------------------------------------------------------------------------

two_repos() { # repo and other, which has nothing in common with it
    new_repo
    me git init -q -b trunk other
    me git -C other -c user.name=u -c user.email=u@example.org commit -q --allow-empty -m first
}

says_where() {
    two_repos
    agent r1
    in_repo workspace apply r1
    [ "$out" = "changed 3 files in $T/repo (branch main); nothing is staged or committed" ]
    in_repo workspace apply r1 --json
    holds "r['ok'] and r['name'] == 't/r1' and r['top'] == '$T/repo' and r['branch'] == 'main'"
    g add -A
    g reset -q --hard
    carrel_in repo/src workspace merge r1
    [[ "$out" == "merged: changed 3 files in $T/repo (branch main), HEAD is "* ]]
    g checkout -q --detach
    in_repo run --workspace --task t --run r2 -c 'echo 2 >two'
    in_repo workspace apply --squash r2
    [ "$out" = "staged changes to 1 file in $T/repo; 'git commit' takes them" ]
}
@test "apply and its kin say where they wrote" { both says_where; }

folder_says_where() {
    me sh -c 'mkdir folder && echo a >folder/a'
    carrel run --workdir "$T/folder" --cow --run f1 -c 'echo b >b'
    carrel workspace apply f1
    [ "$out" = "changed 1 file in $T/folder; nothing is staged or committed" ]
    carrel workspace apply --repo folder f1
    is_one_error 125 "carrel: *"
}
@test "apply to a folder says which" { both folder_says_where; }

another_repository() {
    local verb
    two_repos
    agent r1
    for verb in apply merge cherry-pick; do
        carrel_in other workspace "$verb" t/r1
        is_one_error 125 "carrel: workspace 't/r1' is of '$T/repo', and this is '$T/other': go there, or say --repo $T/repo"
    done
    host_is_untouched
    carrel_in other workspace apply --repo . t/r1
    is_one_error 125 "carrel: workspace 't/r1' is of '$T/repo', and --repo is '$T/other'"
    carrel workspace apply --repo nowhere t/r1
    is_one_error 125 "carrel: --repo: *nowhere*"
    host_is_untouched
    carrel_in other workspace apply --repo ../repo r1
    [ "$out" = "changed 3 files in $T/repo (branch main); nothing is staged or committed" ]
    carrel workspace apply r1 # in no repository at all
    [ "$status" -eq 0 ]
}
@test "apply refuses in another repository, unless its own is named" { both another_repository; }

same_name() {
    two_repos
    agent same
    carrel_in other run --workspace --task u --run same -c 'echo o >o'
    carrel_in other workspace status same
    [ "$out" = ".A o" ]
    in_repo workspace apply same --json
    holds "r['ok'] and r['name'] == 't/same' and r['top'] == '$T/repo'"
    carrel workspace show same
    is_one_error 125 "carrel: there is more than one run 'same'*"
    carrel_in other workspace discard --force same
    [ "$out" = "discarded u/same" ]
    [ -n "$(g branch --list task-t-run-same)" ]
    carrel_in other run --workspace --task t --run same -- true
    is_one_error 125 "carrel: workspace 't/same' exists already (of '$T/repo'): go on*"
}
@test "a run's name means the workspace of the repository here" { both same_name; }

worktree_gone() {
    two_repos
    g worktree add -q -b side ../side
    carrel_in side run --workspace --task t --run r1 -c 'echo n >n'
    in_repo workspace apply r1
    [ "$out" = "changed 1 file in $T/side (branch side); nothing is staged or committed" ]
    g worktree remove --force ../side
    for verb in apply merge; do
        in_repo workspace "$verb" r1
        is_one_error 125 "carrel: *the worktree '$T/side' that the run began in is not there any more: name another one of this repository, --repo DIR"
    done
    [ -z "$(g status --porcelain)" ]
    [ ! -e "$T/repo/n" ]
    in_repo workspace apply --repo . r1
    [ "$out" = "changed 1 file in $T/repo (branch main); nothing is staged or committed" ]
}
@test "a worktree that is gone is not replaced by another without a word" { both worktree_gone; }

# ---- setup lines --------------------------------------------------------------------------------

setup_fails() {
    new_repo
    in_repo run --setup 'echo so it is; exit 4' -- echo ran
    is_one_error 125 "carrel: --setup: the setup command failed with status 4: so it is"
    in_repo run --setup 'exit 5' -- echo ran
    is_one_error 125 "carrel: --setup: the setup command failed with status 5 and printed nothing"
    in_repo run --setup 'kill -9 $$' -- echo ran
    is_one_error 125 "carrel: --setup: the setup command *"
    [[ "$err" != *git* ]]
}
@test "a setup that fails says with which status" { both setup_fails; }

setup_given() { # what reaches it, and what does not
    new_repo
    in_repo run --run r1 --timeout 1s --env WORD=secret --mount "$T/repo:/mnt:ro" \
        --setup 'sleep 2; echo "[${WORD:-}] $(ls /mnt 2>/dev/null)" >made' -c 'cat made'
    [ "$status" -eq 0 ]
    [ "$out" = "[] " ]
}
@test "a setup has a limit of its own, and nothing that is for one run only" { both setup_given; }

setup_key() { # what reaches it makes another layer
    local line='cat /etc/hostname >made 2>/dev/null || :; ls /sys/class/net /proc/net/dev >>made 2>&1; date +%s%N >>made'
    new_repo
    in_repo run --run r1 --setup "$line" --setup-key a.txt --quiet -c 'cat made'
    [ "$status" -eq 0 ]
    local first=$out
    in_repo run --run r2 --setup "$line" --setup-key a.txt --quiet -c 'cat made'
    [ "$out" = "$first" ]
    in_repo run --run r3 --setup "$line" --setup-key a.txt --quiet --network host -c 'cat made'
    [ "$status" -eq 0 ]
    [ "$out" != "$first" ]
}
@test "runs with and without a network have setups of their own" { both setup_key; }

setup_root() {
    new_repo
    tiny_root
    touch "$T/root/only-here"
    in_repo run --run r1 --setup 'echo host >made' --setup-key a.txt --quiet -c 'cat made'
    in_repo run --run r2 --root "$T/root" --setup 'ls /only-here >made' --setup-key a.txt --quiet -c 'cat made'
    [ "$out" = /only-here ]
    in_repo run --run r3 --root "$T/root" --setup 'no-such; exit 6' -c 'cat made'
    is_one_error 125 "carrel: --setup: the setup command failed with status 6: *no-such*"
    carrel image import root tiny
    [ "$status" -eq 0 ]
    in_repo run --run r4 --image tiny --setup 'ls /only-here >made; echo x >/left' --setup-key a.txt --quiet \
        -c 'cat made; ls /left'
    [ "$out" = /only-here ]
    in_repo run --run r5 --setup 'ls /only-here >made || :' --setup-key a.txt --quiet -c 'cat made'
    [ -z "$out" ]
}
@test "a setup runs the programs of the run's root or image" { both setup_root; }

# ---- words that help ----------------------------------------------------------------------------

at_work() {
    local verb
    new_repo
    background run --repo repo --task t --run live -c 'echo x >x; while [ ! -e stop ]; do sleep 0.1; done'
    until_true is_running
    for verb in show status diff lock commit apply; do
        in_repo workspace "$verb" live
        is_one_error 125 "carrel: workspace 't/live' is in use by carrel (process *): try again when that has ended"
    done
    for verb in '' --force; do
        in_repo workspace discard live ${verb:+"$verb"}
        is_one_error 125 "carrel: workspace 't/live' is in use by carrel (process *): try again when that has ended, or end it with SIGTERM: *"
    done
    in_repo workspace resume live -- true
    is_one_error 125 "carrel: run 'live' is in progress: try again when it has ended"
    in_repo workspace shell live
    is_one_error 125 "carrel: run 'live' is in progress: try again when it has ended"
    in_repo run --workspace --task t --run live -- true
    [ "$status" -eq 125 ]
    [[ "$err" == "carrel: "*"choose another run id" && "$err" != *unrecorded* ]]
    kill -TERM "$pid"
    ended
    in_repo workspace status live
    [ "$out" = ".A x" ]
}
is_running() {
    in_repo workspace list >/dev/null
    [[ "$out" == *"live "*running* ]]
}
@test "a workspace at work says so, and that it is to be waited for" { both at_work; }

relative_places() {
    new_repo
    agent r1
    in_repo workspace open r1 --at ../op
    [ "$status" -eq 0 ]
    [ "$out" = "$T/op" ]
    in_repo workspace show r1
    [[ "$out" == *$'\nopened at   '"$T/op"$'\n'* ]]
    carrel_in repo/src workspace move r1 ../../there
    [ "$status" -eq 0 ]
    in_repo workspace show r1 --json
    holds "r['opened'] == '$T/there'"
    in_repo workspace close r1
    in_repo workspace show r1 --json
    holds "r['opened'] is None"
}
@test "open and move take relative paths, and show says where it is" { both relative_places; }

lock_twice() {
    new_repo
    agent r1
    in_repo workspace lock r1 --reason 'under review'
    in_repo workspace lock r1
    in_repo workspace show r1
    [[ "$out" == *"under review"* ]]
    in_repo workspace unlock r1
    in_repo workspace show r1
    [[ "$out" != *"under review"* ]]
}
@test "a second lock keeps the reason of the first" { both lock_twice; }

json_of_failures() {
    new_repo
    agent r1
    me sh -c 'cd repo && sed -i s/two/mine/ a.txt'
    in_repo workspace apply r1 --json
    [ "$status" -eq 1 ]
    holds "r['error'].startswith('1 conflict, and nothing was changed')"
    holds "[(c['path'], c['why']) for c in r['conflicts']] == [('a.txt', 'changed in your tree')]"
    in_repo workspace merge r1 --json
    [ "$status" -eq 1 ]
    holds "r['error'].startswith('1 conflict, and the changes are on the run')"
    in_repo workspace bogus --json
    [ "$status" -eq 125 ]
    holds "not r['ok'] and 'bogus' in r['error']"
    in_repo run --workspace --disk 16M --json --quiet -c 'head -c 9M /dev/urandom >big'
    holds "r['workspace']['tip'] is None and r['workspace']['snapshot'] is None"
}
@test "failures are whole in JSON, and what is not known is null" { both json_of_failures; }

helpful() {
    new_repo
    agent r1
    in_repo workspace shell r1 -c true
    is_one_error 125 "carrel: shell takes no program; expected 'carrel workspace resume NAME -c LINE'"
    in_repo workspace resume r1 --workdir . -- true
    is_one_error 125 "carrel: --workdir and a workspace that is there already cannot be combined*"
    in_repo workspace discard nosuch
    is_one_error 125 "carrel: there is no workspace 'nosuch'*"
    me git init -q empty
    carrel_in empty run --dirty -- true
    is_one_error 125 "carrel: read the uncommitted work in '$T/empty': there is no commit yet*"
    me sh -c 'cd repo && echo i >intent && git add -N intent && echo x >>a.txt'
    in_repo run --dirty -- cat intent
    [ "$out" = i ]
    g checkout -qf -b side
    g commit -qam "$(me sh -c 'echo side >repo/a.txt; echo side')"
    g checkout -q main
    g commit -qam "$(me sh -c 'echo main >repo/a.txt; echo main')"
    g merge -q side || true
    in_repo run --dirty -- true
    is_one_error 125 "carrel: *is a merge unfinished?*"
    me sh -c 'mkdir folder && echo a >folder/a'
    carrel run --workdir "$T/folder" --cow --tree copy -- true
    is_one_error 125 "carrel: *a copy-on-write folder needs overlayfs, and --tree asks for something else"
}
@test "errors name what is wrong" { both helpful; }

unreadable() {
    me sh -c 'mkdir folder && echo a >folder/a && echo s >folder/secret && chmod 0 folder/secret'
    carrel run --workdir "$T/folder" --cow -- true
    is_one_error 125 "carrel: *secret*"
}
@test "a file that a folder's snapshot cannot read is named" { only user unreadable; }

colors() {
    new_repo
    in_repo run --workspace --run r1 -c 'printf "\033[8mhidden \033[31mred\n" >h'
    in_repo workspace diff --color always r1
    [[ "$out" == *'\x1b[8mhidden \x1b[31mred'* && "$out" == *$'\033[32m'* ]]
    in_repo workspace diff r1
    [[ "$out" == *$'\033[8mhidden'* ]]
}
@test "a coloured diff has no colours of the run's, wherever it goes" { both colors; }

stale_lock() {
    new_repo
    in_repo run --workspace --run r1 -c 'touch "$(git rev-parse --git-dir)/index.lock"'
    in_repo workspace resume r1 --quiet -c 'echo n >n; git add n && git commit -qm n && echo ok'
    [ "$out" = ok ]
}
@test "a lock that a killed git left is not in the next one's way" { both stale_lock; }
