#!/usr/bin/env bats
# shellcheck disable=SC2030,SC2031,SC2154  # cli.bash sets $status, $out and others
# The programs of examples/ and docs/library.md: built against an installed library with pkg-config's flags and nothing
# else, and run.

load cli
load repo

top=$(cd "$BATS_TEST_DIRNAME/../.." && pwd)

# build NAME FILE: $T/NAME from FILE.
build() {
    local flags pc
    command -v pkg-config >/dev/null || skip "pkg-config is not installed"
    [ -e "$T/image" ] || DESTDIR=$T/image meson install -C "$top/build" --no-rebuild --quiet >/dev/null
    chmod -R a+rX "$T/image"
    pc=$(find "$T/image" -name carrel.pc)
    libdir=$(dirname "$(dirname "$pc")")
    read -r -a flags < <(PKG_CONFIG_PATH=$(dirname "$pc") PKG_CONFIG_SYSROOT_DIR=$T/image pkg-config --cflags --libs carrel)
    cc -Wall -Wextra -Werror "$2" "${flags[@]}" -o "$T/$1"
    chmod 755 "$T/$1"
}

# use NAME [ARG...]: the example with the installed library; sets $status and $output.
use() {
    status=0
    output=$(me env LD_LIBRARY_PATH="$libdir" timeout -k 5 60 "$T/$1" "${@:2}" 2>&1) || status=$?
    echo "$output"
}

run_example() {
    build run "$top/examples/run.c"
    use run sh -c 'echo hello; exit 3'
    [ "$status" -eq 3 ]
    [[ $output == hello* ]]
    use run /no/such/program
    [ "$status" -eq 127 ]
    [[ $output == *"not_found, cause: program"* ]]
}
@test "examples/run.c runs a program and explains a failure" { both run_example; }

python_example() {
    build python "$top/examples/python.c"
    use python '{"words": ["a", "bb"]}'
    [ "$status" -eq 0 ]
    [ "$output" = '{"a": 1, "bb": 2}' ] || [ "$output" = '{"a":1,"bb":2}' ]
    use python '[1]'
    [ "$status" -eq 2 ]
    [[ $output == "the argument: expected a JSON object"* ]]
}
@test "examples/python.c gives inputs and gets a result" { both python_example; }

session_example() {
    build session "$top/examples/session.c"
    use session
    [ "$status" -eq 0 ]
    [ "$output" = $'1\n2\n3\noriginal\n1\n2\n3\nfork' ]
}
@test "examples/session.c forks a sandbox with its files" { both session_example; }

loop_example() {
    build loop "$top/examples/loop.c"
    use loop 'sleep 1; echo second' 'echo first'
    [ "$status" -eq 0 ]
    [ "$(grep -E '^(first|second|status)' <<<"$output")" = $'first\nstatus 0\nsecond\nstatus 0' ]
}
@test "examples/loop.c shows output of several programs as it comes" { both loop_example; }

review_example() {
    build review "$top/examples/review.c"
    new_repo
    use review "$T/repo" new.txt sh -c 'echo work > new.txt'
    [ "$status" -eq 0 ]
    [[ $output == *"+work"*"applied 1 file(s)"*"journal: sealed"* ]]
    [ "$(cat "$T/repo/new.txt")" = work ]
    use review "$T/repo" other.txt sh -c 'echo a > other.txt; echo b > more.txt'
    [ "$status" -eq 1 ]
    [[ $output == *"it changed more than other.txt: discarded"* ]]
    [ ! -e "$T/repo/other.txt" ]
}
@test "examples/review.c applies what it was asked for and discards the rest" { both review_example; }

first_program() {
    sed -n '/^```c$/,/^```$/{/^```/!p}' "$top/docs/library.md" >"$T/first.c"
    build first "$T/first.c"
    use first
    [ "$status" -eq 0 ]
    [ "$output" = "$(sed -n '/^\$ cc first.c/{n;p}' "$top/docs/library.md")" ]
}
@test "the first program of docs/library.md prints what the page says" { both first_program; }
