#!/usr/bin/env bats
# shellcheck disable=SC2030,SC2031,SC2154  # cli.bash sets $status, $out and others
# libcarrel in programs that are not carrel: threads, an interpreter, no program beside it.

load cli

top=$(cd "$BATS_TEST_DIRNAME/../.." && pwd)

# The library and the program, where the present identity can read them.
install_here() {
    me mkdir -p "$T/usr/lib" "$T/usr/bin"
    install -m 755 "$top/build/carrel" "$T/usr/bin/carrel"
    cp "$top"/build/libcarrel.so* "$T/usr/lib/" 2>/dev/null || true # also the .p directory
    cp "$top/tests/cli/library_create.py" "$T/usr/create.py"
    chmod -R a+rX "$T/usr"
}

from_python() {
    install_here
    me timeout 60 /usr/bin/python3 "$T/usr/create.py" "$T/usr/lib/libcarrel.so.0"
}
@test "a python with 50 threads creates a sandbox, whose keeper has nothing of it" { both from_python; }

no_program() {
    install_here
    rm "$T/usr/bin/carrel"
    run me env PATH=/usr/bin:/bin timeout 60 /usr/bin/python3 "$T/usr/create.py" "$T/usr/lib/libcarrel.so.0"
    echo "$output"
    [ "$status" -ne 0 ]
    [[ "$output" == *"set CARREL_PROGRAM to its path"* ]]
    run me env PATH=/usr/bin:/bin CARREL_PROGRAM=/no/such/carrel timeout 60 \
        /usr/bin/python3 "$T/usr/create.py" "$T/usr/lib/libcarrel.so.0"
    [[ "$output" == *"CARREL_PROGRAM is '/no/such/carrel', which is no program"* ]]
}
@test "a library without its program says where it was looked for" { both no_program; }

# build_user NAME [FLAG...]: tests/library_NAME.c, as $T/NAME, as a program outside of this tree is built.
build_user() {
    local name=$1
    shift
    command -v clang >/dev/null || skip "clang is not installed"
    [ -e "$T/usr/lib" ] || install_here
    clang "$@" -g -O1 -std=gnu17 -I"$top/include" -o "$T/$name" "$top/tests/library_$name.c" \
        -L"$T/usr/lib" -l:libcarrel.so.0 -lpthread
    chmod 755 "$T/$name"
}

# sanitized KIND: the same with the library itself built for a sanitizer, too.
sanitized() {
    local kind=$1 dir=$top/build-lib-$1
    command -v clang >/dev/null || skip "clang is not installed"
    (cd "$top" && scripts/configure "build-lib-$kind" && meson compile -C "$dir" carrel:shared_library) >"$T/.build" 2>&1 || {
        cat "$T/.build"
        return 1
    }
    grep -q "__${kind:0:1}san_" "$dir/libcarrel.so.0"
    install_here
    cp "$dir"/libcarrel.so.0* "$T/usr/lib/" 2>/dev/null || true # also the .p directory
    chmod -R a+rX "$T/usr"
}

# use_library NAME [ARG...]: runs it; a sanitizer's finding is a failure, too.
use_library() {
    local name=$1
    shift
    run me env LD_LIBRARY_PATH="$T/usr/lib" TSAN_OPTIONS=exitcode=66 timeout -k 5 300 "$T/$name" "$@"
    echo "$output"
    [ "$status" -eq 0 ]
    [ "$output" = "0 failures" ]
}

# kept_by threads|loop SANITIZER ARG...
kept_by() {
    sanitized "$2"
    build_user "$1" -fsanitize="$2"
    use_library "$1" "${@:3}"
}
@test "8 threads keep 1000 sandboxes, under a thread sanitizer" { only root kept_by threads thread 8 0 125; }
@test "8 threads keep 1000 sandboxes, under an address sanitizer" { only root kept_by threads address 8 0 125; }
@test "an event loop keeps 1000 sandboxes, under a thread sanitizer" { only root kept_by loop thread 16 1000; }
@test "an event loop keeps 1000 sandboxes, under an address sanitizer" { only root kept_by loop address 16 1000; }
kept_by_user() {
    kept_by threads thread 8 0 10
    kept_by threads address 8 0 10
    kept_by loop thread 16 100
    kept_by loop address 16 100
}
@test "threads and an event loop of an ordinary user keep sandboxes, under both" { only user kept_by_user; }

# init of carrel_run() is a copy of the caller, which a thread sanitizer does not survive; with the mappings of an
# address sanitizer it takes seconds, so there are a few of these and a thousand with leaks alone looked for.
run_by_threads() {
    build_user threads -fsanitize=leak
    use_library threads 8 125 0
}
@test "8 threads run 1000 programs, and leak nothing" { both run_by_threads; }
@test "8 threads run programs, under an address sanitizer" { both kept_by threads address 8 2 0; }

all_verbs() {
    build_user sandbox -fsanitize=leak
    use_library sandbox
}
@test "a C program has every verb for sandboxes, programs and tasks" { both all_verbs; }

all_of_files() {
    build_user files -fsanitize=address
    me mkdir host
    use_library files "$T/host"
}
@test "a C program has every verb for files, under an address sanitizer" { both all_of_files; }

all_of_the_host() {
    local document
    [ -x /bin/busybox ] || skip "the package busybox-static is missing"
    build_user host -fsanitize=leak
    me mkdir host-work
    use_library host "$T/host-work"
    for document in health policy image; do
        python3 -m json.tool "$T/host-work/$document.json" >/dev/null
    done
}
@test "a C program has every verb for the machine, policies and images, and leaks nothing" { both all_of_the_host; }

work_of_runs() {
    build_user work -fsanitize=leak
    me mkdir "$T/dir"
    use_library work "$T/dir"
}
@test "a C program has every verb for workspaces, runs and journals" { both work_of_runs; }
