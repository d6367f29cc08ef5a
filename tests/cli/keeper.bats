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
