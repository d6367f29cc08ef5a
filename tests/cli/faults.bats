#!/usr/bin/env bats
# shellcheck disable=SC2030,SC2031,SC2154  # cli.bash sets $status, $out and others
# Each system call of the setup fails in turn: a clean refusal, or the full sandbox; never less.
# See ../faults/faults.c, which does the work; here is with which options and errors.
#
# By default one error that means nothing but failure, and kill -9 at each call. CARREL_FAULTS=full
# (make faults) adds all others, which takes minutes.

load cli

setup_file() {
    case "$(uname -m)" in
    x86_64 | aarch64) ;;
    *) skip "the tracer knows x86_64 and aarch64 only" ;;
    esac
    # Where the ordinary user can run it, too.
    FAULTS=$(mktemp -d /tmp/carrel-faults.XXXXXX)
    export FAULTS
    chmod 755 "$FAULTS"
    "${CC:-cc}" -std=gnu17 -O1 -Wall -Wextra -o "$FAULTS/faults" "$BATS_TEST_DIRNAME/../faults/faults.c"
}

teardown_file() { rm -rf "$FAULTS"; }

# inject FAULTS_OPTION... -- CARREL_OPTION...
inject() {
    local limits=(--memory 64M --pids 16 --cpu 1)
    has_cgroup || limits+=(--best-effort "memory,pids,cpu")
    [ -d "$T/w" ] || me mkdir w m
    me timeout -k 5 600 "$FAULTS/faults" "${@:1:$#-1}" "$CARREL" run "${limits[@]}" --workdir "$T/w" \
        --mount "$T/m:/m" "${!#}" -- /bin/true >"$T/.out" 2>&1 || {
        grep -v '^fine' "$T/.out" | cut -c 1-400
        return 1
    }
    tail -n 1 "$T/.out" | sed "s/^/# $who: /" >&3
}

# shellcheck disable=SC2154  # BATS_TEST_DESCRIPTION
each_fails() { inject -e "$1" -- --json; }
@test "EPERM in each call of the setup: refused, or as confined as ever" { both each_fails EPERM; }

terminal_fails() { inject -e EPERM -- --tty; }
@test "the same with a terminal" { both terminal_fails; }

each_kills() {
    inject -k -- --json
    carrel run -- true
    carrel cleanup
    until_true nothing_stale || {
        stale
        return 1
    }
}
nothing_stale() { [ -z "$(stale)" ]; }
@test "kill -9 at each call of the setup: nothing is left" { both each_kills; }

rest_fails() { inject -e ENOMEM,EIO,EINTR,EACCES,EMFILE,ENOSPC,EROFS,EBUSY,EUSERS,EAGAIN -- --json; }
@test "all other errors, in each call of the setup" {
    [ "${CARREL_FAULTS:-}" = full ] || skip "takes minutes; CARREL_FAULTS=full runs it"
    both rest_fails
}
