#!/usr/bin/env bats
# shellcheck disable=SC2030,SC2031,SC2154  # cli.bash sets $status, $out and others
# What reaches the user's files and how, and whose files these are.

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
    g config filter.shout.smudge "tr a-z A-Z"
    g config filter.shout.clean "tr A-Z a-z"
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
