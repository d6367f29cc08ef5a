#!/usr/bin/env bats
# shellcheck disable=SC2030,SC2031,SC2154  # cli.bash sets $status, $out and others
# The keeper of a sandbox that stays, and what may be done to it: clients that do not keep to the
# rules, what it has of whoever made it, and how it ends.

load cli
load living
eval "cli_$(declare -f teardown)"
teardown() {
    _living_teardown
    cli_teardown
}

# ---- clients that do not keep to the rules -------------------------------------------------------

# A sandbox, its keeper in $keeper, and tests/keeper_client.c where the user can reach it.
with_keeper() {
    create
    keeper=$(keeper_of "$id")
    client=$T/keeper_client
    [ -e "$client" ] ||
        install -m 755 "$(cd "$BATS_TEST_DIRNAME/../.." && pwd)/build/tests/keeper_client" "$client"
    until_true alone
    held=$(n_held)
}
talk() { me timeout -k 5 60 "$client" "$S/$id/sock" "$@"; }
n_held() { find "/proc/$keeper/fd" -mindepth 1 | wc -l; }
alone() { me "$CARREL" list --json | grep -q '"clients":0,'; } # which asks no keeper
as_before() { [ "$(n_held)" -eq "$held" ]; }

# It answers, and has nothing more than before.
is_well() {
    carrel exec "$id" -- echo fine
    [ "$status:$out" = 0:fine ]
    until_true as_before || {
        ls -l "/proc/$keeper/fd"
        return 1
    }
}

foreign_payloads() {
    with_keeper
    talk payloads
    is_well
}
@test "payloads: only memory files of a bounded size are read" { both foreign_payloads; }

changing_payloads() {
    with_keeper
    talk changing 2000
    is_well
}
@test "payloads: one that changes meanwhile does the keeper no harm" { both changing_payloads; }

garbage() {
    with_keeper
    talk garbage
    is_well
    # The sandbox is none the worse: nothing was paused, renewed, started or ended.
    says 'r["state"] == "running" and r["started"] == 1 and 3500000 < r["lease_ms"] <= 3600000'
}
@test "what is no message ends a connection, what is no request is refused" { both garbage; }

# More than a keeper has room for: those who came first make room for those who speak.
silent() {
    with_keeper
    coproc talk silent 1000 2>&1
    read -r word <&"${COPROC[0]}"
    [ "$word" = ready ]
    is_one_of_many
    local in=${COPROC[1]}
    exec {in}>&-
    wait "$COPROC_PID"
    is_well
}
is_one_of_many() {
    carrel exec "$id" -- echo fine
    [ "$status:$out" = 0:fine ]
    carrel ps "$id"
    [ "$status" -eq 0 ]
}
@test "a thousand clients that say nothing keep nobody away" { both silent; }

unread() {
    with_keeper
    talk unread
    is_well
}
@test "a client that takes no answer is let go" { both unread; }

# Root can reach a user's socket, but it is not root's.
another_user() {
    [ "$(id -u)" -eq 0 ] || skip "needs root and a user"
    with_keeper
    [ "$(talk peer)" = "done" ]
    [ "$("$client" "$S/$id/sock" peer)" = "hung up" ]
    is_well
}
@test "a client of another user is not listened to" { only user another_user; }
