#!/usr/bin/env bats
# shellcheck disable=SC2030,SC2031,SC2154  # cli.bash sets $status, $out and others
# carrel list: the living, the dead and those that wait. Owners are tests/registry_sample.c, which
# claim a place without a sandbox in it.

load cli

# Root has one registry for all, so tests look at what has a label of their own. A user's is where
# XDG_RUNTIME_DIR says.
enter() {
    local sample
    sample=$(cd "$BATS_TEST_DIRNAME/../.." && pwd)/build/tests/registry_sample
    install -m 755 "$sample" "$T/sample"
    me mkfifo hold
    exec 7<>"$T/hold"
    new_tag
    me mkdir -m 700 run
}
list() { # list ARG...: as `carrel list`
    status=0
    me timeout -k 5 120 env XDG_RUNTIME_DIR="$T/run" "$CARREL" "${command:-list}" "$@" \
        >"$T/.out" 2>"$T/.err" </dev/null 7>&- || status=$?
    _collect "${command:-list}" "$@"
}
cleanup() { command=cleanup list "$@"; }

owner() { # owner ID NAME [MAX_LIVING [MEMBERS]]: lives until `hold` has no writer any more
    me env XDG_RUNTIME_DIR="$T/run" ./sample "$1" "$2" "${3:-0}" \
        "{\"labels\":{\"tag\":\"$tag\"}${4:+,$4}}" <"$T/hold" 7>&- 3>&- &
    _cli_pids+=($!)
}
is_there() { # is_there TEXT
    list --label "tag=$tag" --json >/dev/null
    [[ "$out" == *"$1"* ]]
}
runs() { is_there "\"id\":\"$1\",\"name\":$2,\"state\":\"running\""; }
pid_of() { grep -o "\"id\":\"$1\".*" <<<"$out" | grep -o '"pid":[0-9]*' | head -n 1 | cut -d: -f2; }

@test "without sandboxes nothing is printed" {
    none() {
        enter
        list
        [ "$status" -eq 0 ]
        [ -z "$out" ]
        [ -z "$err" ]
        list --json
        [ "$status" -eq 0 ]
        [ "$out" = '{"sandboxes":[],"queue":[]}' ]
    }
    only user none
}

shows_the_living() {
    enter
    owner "S-$tag-1" "" 0 '"image":"debian"'
    until_true runs "S-$tag-1" null
    owner "S-$tag-2" "n-$tag" 0 '"root":"/srv/root"'
    until_true runs "S-$tag-2" "\"n-$tag\""
    list --label "tag=$tag"
    [ "$status" -eq 0 ]
    [[ "$out" =~ ^'ID'\ +'NAME'\ +'STATE'\ +'AGE'\ +'LEASE'\ +'PROCS'\ +'ROOT'\ +'LABELS'$'\n' ]]
    [ "$(wc -l <<<"$out")" -eq 3 ]
    grep -qE "^S-$tag-1 +- +running +[0-9]+s +- +0 +debian +tag=$tag\$" <<<"$(sed -n 2p <<<"$out")"
    grep -qE "^S-$tag-2 +n-$tag +running +[0-9]+s +- +0 +/srv/root +tag=$tag\$" <<<"$(sed -n 3p <<<"$out")"
    list --label "tag=$tag" --label tag=other
    [ "$status" -eq 0 ]
    [[ "$out" != *"S-$tag"* ]]
    exec 7>&-
    until_true is_there '"sandboxes":[]'
}
@test "the living are shown in the order in which they came, and go" { both shows_the_living; }

is_harmless() { ! LC_ALL=C.UTF-8 grep -qP '\x1b|\x{202e}' <<<"$out"; }
escapes() {
    enter
    owner "S-$tag" $'x\033[2J\u202e' 0 '"image":"a\u001b[31m\nb"'
    until_true is_there "\"S-$tag\""
    list --label "tag=$tag"
    [ "$status" -eq 0 ]
    [[ "$out" == *'x\x1b[2J'* ]]
    [[ "$out" == *'a\x1b[31m\x0ab'* ]]
    is_harmless
    list --label "tag=$tag" --json
    is_harmless
    exec 7>&-
}
@test "no name reaches a terminal raw" { both escapes; }

shows_the_queue() {
    enter
    owner "S-$tag-1" ""
    until_true runs "S-$tag-1" null
    owner "S-$tag-2" "n-$tag" 1 # there is one already: it waits
    until_true is_there "\"id\":\"S-$tag-2\",\"name\":\"n-$tag\",\"waiting_ms\""
    list --label "tag=$tag"
    [ "$status" -eq 0 ]
    grep -qE '^QUEUE +ID +WAITING +PID +NAME$' <<<"$out"
    grep -qE "^[0-9]+ +S-$tag-2 +[0-9]+s +[0-9]+ +n-$tag\$" <<<"$out"
    is_there '"queue":[{"place":1,'
    kill -9 "$(pid_of "S-$tag-2")"
    gone() { ! is_there "S-$tag-2"; }
    until_true gone
    exec 7>&-
}
@test "waiting requests are shown below" { both shows_the_queue; }

shows_the_dead() {
    enter
    owner "S-$tag" "n-$tag"
    until_true runs "S-$tag" "\"n-$tag\""
    kill -9 "$(pid_of "S-$tag")"
    is_dead() { list --all && [[ "$out" == *"S-$tag"*dead* ]]; }
    until_true is_dead
    list
    [ "$status" -eq 0 ]
    [ -z "$out" ]
    list --all
    [ "$status" -eq 0 ]
    [ -z "$out" ]
    exec 7>&-
}
@test "dead sandboxes are shown on request, and removed" { only user shows_the_dead; }

cleans_up() {
    enter
    owner "S-$tag" "n-$tag"
    until_true runs "S-$tag" "\"n-$tag\""
    kill -9 "$(pid_of "S-$tag")"
    is_dead() { list --all && [[ "$out" == *dead* ]]; }
    until_true is_dead
    cleanup
    [ "$status" -eq 0 ]
    [ "$out" = "removed the entry of 1 sandbox that was killed" ]
    cleanup --json
    [ "$status" -eq 0 ]
    [[ "$out" == *'"entries":0,'* ]]
    list --all
    [ -z "$out" ]
    exec 7>&-
}
@test "cleanup removes the entries of the dead" { only user cleans_up; }

# With sandboxes: the policy's limit, the wait and its end.
holds_the_limit() {
    enter
    exec 7>&-
    me tee policy.yaml >/dev/null <<<'sandbox: {limits: {max_concurrent: 1, max_queued: 1}}'
    command=create list --policy policy.yaml --name "a-$tag"
    [ "$status" -eq 0 ]
    me env XDG_RUNTIME_DIR="$T/run" "$CARREL" create --policy policy.yaml --name "b-$tag" \
        >"$T/second" 3>&- &
    _cli_pids+=($!)
    until_true is_there "\"name\":\"b-$tag\",\"waiting_ms\""
    command=create list --policy policy.yaml
    [ "$status" -eq 125 ]
    [[ "$err" == *"no place for another sandbox: 1 alive of at most 1, 1 waiting of at most 1; "* ]]
    command=create list --policy policy.yaml --name "b-$tag" # it waits, and has its name
    [ "$status" -eq 125 ]
    [[ "$err" == *"is named 'b-$tag'"* ]]
    command=destroy list "a-$tag"
    [ "$status" -eq 0 ]
    wait "${_cli_pids[-1]}"
    list
    [[ "$out" == *"$(<"$T/second")  b-$tag"*running* ]]
    [[ "$out" != *"a-$tag"* && "$out" != *QUEUE* ]]
    command=destroy list "b-$tag"
    [ "$status" -eq 0 ]
    list --all
    [ -z "$out" ]
}
@test "a request without a free slot waits for one" { only user holds_the_limit; }

refuses() {
    enter
    list S-1
    [ "$status" -eq 125 ]
    [ "$err" = "carrel: list takes no arguments, only options: 'S-1'" ]
    list --label =x
    [ "$status" -eq 125 ]
    [[ "$err" == *"'=x' has no key; expected KEY=VALUE or KEY"* ]]
    exec 7>&-
}
@test "what is not understood is refused" { only user refuses; }
