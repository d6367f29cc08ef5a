#!/usr/bin/env bats
# shellcheck disable=SC2030,SC2031,SC2154  # cli.bash sets $status, $out and others
# carrel health, carrel test and carrel cleanup: what they say, and that it is true.

load cli

health_text() {
    carrel health
    [ "$status" -eq 0 ]
    [ -z "$err" ]
    [[ "$out" == *"a default run works for this user"* ]]
    [[ "$out" == *$'\n  seccomp '*"default-deny system call filter"* ]]
}
@test "health has a row for every protection and ends with 0 where a run works" { both health_text; }

health_of_users() {
    have_user 2>/dev/null || skip "$NO_USER_REASON"
    carrel health
    local text=$out
    _enter user
    carrel run -- true
    [ "$status" -ne 0 ] || [[ $text != *"rootless: cannot create a sandbox"* ]]
}
@test "root's health says that an ordinary user can, where one can" { only root health_of_users; }

health_agrees_with_run() {
    carrel health --json
    [ "$status" -eq 0 ]
    local mine=rootless
    [ "$who" = user ] || mine=root
    local said
    said=$(json "sorted(r['$mine']['works'])")
    holds "r['ok'] and r['caller'] == '$mine'"
    holds "all(g['why'] and g['remedy'] for u in ('root', 'rootless') for g in r[u]['missing'])"
    holds "all(p['name'] in sum((g['protections'] for g in r['$mine']['missing']), []) for p in r['protections'] if p['$mine'] is False)"
    carrel run --json -- true
    [ "$(json "sorted(r['protections'])")" = "$said" ]
}
@test "health and the result of a run name the same protections" { both health_agrees_with_run; }

health_of_both() {
    carrel health --json
    holds "r['root']['ok'] and r['rootless']['known'] and r['rootless']['uid'] != 0"
}
@test "root sees both columns" { only root health_of_both; }

health_of_one() {
    carrel health
    [[ "$out" == *"root: run as root to see"* ]]
}
@test "a user is told that root can see the other column" { only user health_of_one; }

broken() {
    # A user namespace in which no other may be made: for this user the machine is broken.
    carrel_in_broken_machine health --json
    [ "$status" -eq 1 ]
    holds "r['ok'] is False"
    holds "any('userns' in g['protections'] and 'max_user_namespaces' in g['remedy'] for g in r['root']['missing'])"
    carrel_in_broken_machine test
    [ "$status" -eq 1 ]
    [[ "$out" == *"0 passed, 1 failed"* ]]
}
carrel_in_broken_machine() {
    status=0
    me unshare -Ur sh -c 'echo 0 >/proc/sys/user/max_user_namespaces && "$@"' sh "$CARREL" "$@" \
        >"$T/.out" 2>"$T/.err" || status=$?
    _collect "$@"
}
@test "health names what is switched off and how to switch it on, and ends with 1" { both broken; }

self_test() {
    carrel test --json
    [ "$status" -eq 0 ]
    holds "r['ok'] and r['failed'] == 0 and r['passed'] > 40"
    holds "all(t['seen'] for t in r['tests'])"
    # With a cgroup there is nothing to substitute, without one nothing to hold cpu with.
    holds "[t['name'] for t in r['tests'] if t['outcome'] == 'skipped'] in (['cpu'], ['no substitute without consent'])"
}
@test "the self-test passes" { both self_test; }

self_test_without_isolation() {
    carrel test --json --runtime process
    [ "$status" -eq 1 ]
    holds "not r['ok'] and r['failed'] > 20"
}
@test "the self-test fails where nothing is isolated" { both self_test_without_isolation; }

cleanup_twice() {
    carrel cleanup
    [ "$status" -eq 0 ]
    carrel cleanup --json
    [ "$status" -eq 0 ]
    holds "r['ok'] and r['runtimes'][0]['name'] == 'local'"
}
@test "cleanup may be called at any time" { both cleanup_twice; }

spares_live() {
    background run -- sh -c 'echo up; sleep 1; echo done'
    until_true grep -q up "$T/.out"
    me "$CARREL" cleanup
    ended
    [ "$status" -eq 0 ]
    [ "$out" = $'up\ndone' ]
}
@test "cleanup leaves live sandboxes alone" { both spares_live; }

wrong_words() {
    local command
    for command in health test cleanup; do
        carrel "$command" --jsn
        is_one_error 125 "*unknown option '--jsn' (did you mean '--json'?)"
        carrel "$command" now
        is_one_error 125 "*$command takes no arguments*'now'"
        carrel "$command" --help
        [ "$status" -eq 0 ]
        [[ "$out" == "Usage: carrel $command "* ]]
    done
    carrel test --runtime nothing
    is_one_error 125 "*unknown runtime 'nothing'; expected one of: local process"
}
@test "wrong options and words get one line each" { both wrong_words; }
