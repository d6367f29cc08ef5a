#!/usr/bin/env bats
# shellcheck disable=SC2030,SC2031,SC2154  # cli.bash sets $status, $out and others
# Every command is listed once, in a group, and explains itself in 80 columns.

load cli

# listed: the commands that `carrel help` shows, each with the number of its group.
listed() {
    awk '/^[A-Z].*:$/ { group++ } /^  [a-z]/ { print $1, group }' <<<"$out"
}

functions() { # functions FILE...: the commands whose functions these declare or define
    sed -n 's/^int cmd_\([a-z]*\)(.*/\1/p' "$@" | sort
}

# declared: the commands of the table: their functions, without the hidden ones and with the two
# that main.c has itself.
declared() {
    local cli=$BATS_TEST_DIRNAME/../../src/cli
    comm -23 <(functions "$cli/commands.h") <(functions "$cli"/hidden/*.c)
    printf '%s\n' help version
}

is_narrow() { # no line of $out has more than 80 characters
    local long
    long=$(awk 'length > 80' <<<"$out")
    [ -z "$long" ] || { echo "too long: $long"; false; }
}

groups() {
    carrel help
    [ "$status" -eq 0 ]
    is_narrow
    [ "$(listed | awk '{ print $1 }' | LC_ALL=C sort)" = "$(declared | LC_ALL=C sort)" ]
    [ "$(listed | awk '{ print $2 }' | uniq | tr '\n' ' ')" = "1 2 3 4 5 6 " ]
    local text=$out
    carrel --help
    [ "$status" -eq 0 ]
    [ "$out" = "$text" ]
    carrel -h
    [ "$out" = "$text" ]
}
@test "carrel help lists each command once, in one of six groups" { both groups; }

explained() {
    local command commands
    commands=$(declared)
    for command in $commands; do
        carrel help "$command"
        echo "carrel help $command"
        [ "$status" -eq 0 ]
        [ -z "$err" ]
        [ "$command" = help ] || [[ "$out" == "Usage: carrel $command"* ]]
        is_narrow
        grep -qx -- '  --help  *print this text' <<<"$out" || [[ "$command" == @(help|version) ]]
    done
}
@test "carrel help COMMAND explains every command" { both explained; }

subcommands() {
    local command verb verbs
    for command in workspace journal image policy runs; do
        carrel help "$command"
        verbs=$(awk '/^Subcommands:/ { on = 1; next } /^$/ { on = 0 } on { print $1 }' <<<"$out")
        [ -n "$verbs" ]
        for verb in $verbs; do
            carrel "$command" "$verb" --help
            echo "carrel $command $verb --help"
            [ "$status" -eq 0 ]
            [[ "$out" == "Usage: carrel $command $verb"* ]]
            is_narrow
        done
    done
}
@test "every subcommand explains itself" { both subcommands; }

headings() {
    local heading
    carrel run --help
    for heading in Options Limits Files "Git workspace" "Isolation and policy" \
        "Input, output and records"; do
        [ "$(grep -cx "$heading:" <<<"$out")" -eq 1 ]
    done
    # A short list has one heading.
    carrel exec --help
    [ "$(grep -c '^[A-Z][A-Za-z, ]*:$' <<<"$out")" -eq 1 ]
}
@test "the options of carrel run are grouped" { both headings; }

unknown() {
    carrel help xyzzy
    is_one_error 125 "carrel: unknown command 'xyzzy'; 'carrel help' lists them"
}
@test "help for an unknown command is refused" { both unknown; }
