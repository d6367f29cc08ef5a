#!/usr/bin/env bats
# shellcheck disable=SC2030,SC2031,SC2154  # cli.bash sets $status, $out and others
# Each system call of the setup fails in turn: a clean refusal, or the full sandbox; never less.
# See ../faults/faults.c, which does the work; here is with which options and errors.
#
# By default the errors that mean nothing but failure, and kill -9. EPERM and kill -9 come in every
# call of an ordinary run; each other error in every third, and EPERM with a terminal or another root
# in every second. CARREL_FAULTS=full leaves no call out, and adds other errors.
# ENOENT, EEXIST, EINVAL and ENOSYS are left out: for some calls they are an answer ("this kernel
# has no such file"), not a failure.

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
    "${CC:-cc}" -std=gnu17 -D_GNU_SOURCE -O1 -Wall -Wextra -Werror -o "$FAULTS/faults" \
        "$BATS_TEST_DIRNAME"/../faults/*.c
}

teardown_file() { rm -rf "$FAULTS"; }

# inject [-s PART/PARTS] FAULTS_OPTION... -- CARREL_OPTION...
# With mounts, unless $has_mounts says no. When all is wanted there is no sample.
has_mounts=yes
inject() {
    local how=() parts=1
    if [ "$1" = -s ]; then
        [ "${CARREL_FAULTS:-}" = full ] || parts=${2#*/} how=(-s "$2")
        shift 2
    fi
    while [ "$1" != -- ]; do
        how+=("$1")
        shift
    done
    shift
    local limits=(--memory 64M --pids 16 --cpu 1)
    has_cgroup || limits+=(--best-effort "memory,pids,cpu")
    local mounts=()
    [ "$has_mounts" = no ] || mounts=(--workdir "$T/w" --mount "$T/m:/m")
    [ -d "$T/w" ] || me mkdir w m
    me timeout -k 5 800 "$FAULTS/faults" -j "$(nproc)" "${how[@]}" -- "$CARREL" run "${limits[@]}" \
        "${mounts[@]}" "$@" -- /bin/true >"$T/.out" 2>&1 || {
        ! grep -q '^faults: trace: ' "$T/.out" || skip "$who may not trace processes here"
        grep -v '^fine' "$T/.out" | cut -c 1-400
        return 1
    }
    local sum tried missed
    sum=$(tail -n 1 "$T/.out")
    echo "# $who: $sum" >&3
    read -r tried _ _ _ _ missed _ <<<"$sum"
    [ $((tried * parts)) -gt 200 ]
    [ $((missed * 20)) -lt "$tried" ]
}

each_fails() { inject -s "$2" -e "$1" -- --json; }
@test "EPERM in each call of the setup: refused, or as confined as ever" { both each_fails EPERM 0/1; }
@test "ENOMEM in calls of the setup: refused, or as confined as ever" { both each_fails ENOMEM 0/3; }
@test "EIO in calls of the setup: refused, or as confined as ever" { both each_fails EIO 1/3; }
@test "EINTR in calls of the setup: refused, or as confined as ever" { both each_fails EINTR 2/3; }

# Without a mount at a place of its own the root is one that sandboxes share.
shared_fails() {
    has_mounts=no
    carrel run -- true # makes it
    inject -s 0/2 -e EPERM,ENOMEM -- --json # EPERM in all of them
}
@test "the same with a root that was made before" { only root shared_fails; }

terminal_fails() { inject -s 0/2 -e EPERM -- --tty; }
@test "the same with a terminal" { both terminal_fails; }

root_fails() {
    tiny_root
    inject -s 1/2 -e EPERM -- --json --root "$T/root" --user root --network host
}
@test "the same with another root, another user and the host's network" { both root_fails; }

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

rest_fails() { inject -e EACCES,EMFILE,ENOSPC,EROFS,EBUSY,EUSERS,EAGAIN -- --json; }
@test "all other errors, in each call of the setup" {
    [ "${CARREL_FAULTS:-}" = full ] || skip "takes minutes; CARREL_FAULTS=full runs it"
    both rest_fails
}
