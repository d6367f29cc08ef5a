#!/usr/bin/env bats
# shellcheck disable=SC2030,SC2031,SC2154  # cli.bash sets $status, $out and others
# Each limit, driven to its bound, and what the result says of it.

load cli

py() { carrel run --json "${@:2}" -- /usr/bin/python3 -c "$1"; }

# ---- memory -------------------------------------------------------------------------------------

memory_by_cgroup() {
    py 'x = b"x" * (200 << 20)' --memory 64M
    [ "$status" -eq 137 ]
    holds 'r["reason"] == "memory_limit" and r["usage"]["oom_kills"] >= 1 and r["signal"] == 9'
    holds '"64M" in r["message"]'
    holds '48 << 20 <= r["usage"]["peak_memory_bytes"] <= 66 << 20'
    # Not the program itself but a child of it; and files count.
    carrel run --json --memory 64M -c 'head -c 300000000 /dev/zero | tail -c 290000000 | wc -c; exit 9'
    holds 'r["exit_code"] == 9 and r["reason"] == "memory_limit"'
    carrel run --json --memory 64M -c 'head -c 200000000 /dev/zero >/tmp/x'
    [ "$status" -ne 0 ]
    holds 'r["reason"] == "memory_limit"'
    # A program that gets by has not failed.
    py 'x = b"x" * (30 << 20); print(len(x))' --memory 128M
    holds 'r["ok"] and r["usage"]["oom_kills"] == 0'
    holds '30 << 20 <= r["usage"]["peak_memory_bytes"] <= 128 << 20'
}
@test "memory, by cgroup: the kernel ends the program, and the reason is memory_limit" {
    both with_cgroup memory_by_cgroup
}

memory_of_all() {
    # Ten processes that each stay below the limit are above it together.
    py 'import os, time
for i in range(10):
    if os.fork() == 0:
        x = b"x" * (16 << 20); time.sleep(600)
print("the first to end had", os.wait()[1])' --memory 64M --timeout 60s
    holds 'r["stdout"] == "the first to end had 9\n" and r["usage"]["oom_kills"] >= 1'
}
@test "memory, by cgroup: it is that of all processes together" { both with_cgroup memory_of_all; }

memory_best_effort() {
    py 'x = b"x" * (200 << 20)' --memory 64M --best-effort memory
    [ "$status" -eq 1 ]
    holds '"MemoryError" in r["stderr"] and r["held_by"]["memory"] == "rlimit"'
    py 'x = b"x" * (1 << 30)'
    [ "$status" -eq 1 ]
    holds '"MemoryError" in r["stderr"] and r["limits"]["memory_bytes"] == 512 << 20'
    py 'x = b"x" * (30 << 20); print(len(x))'
    holds 'r["ok"] and 30 << 20 <= r["usage"]["peak_memory_bytes"] <= 200 << 20'
}
@test "memory, without a cgroup: each process is held, by default, too" {
    both without_cgroup memory_best_effort
}

# ---- processes ----------------------------------------------------------------------------------

children='i=0; while [ $i -lt COUNT ]; do sleep 100 & i=$((i + 1)); done; echo all'

pids_exact() {
    local best=()
    has_cgroup || best=(--best-effort pids)
    carrel run --json --pids 8 "${best[@]}" -c "${children/COUNT/7}"
    holds 'r["ok"] and r["stdout"] == "all\n"'
    carrel run --json --pids 8 "${best[@]}" -c "${children/COUNT/8}"
    [ "$status" -ne 0 ]
    holds '"ork" in r["stderr"]'
    if has_cgroup; then
        holds 'r["reason"] == "pids_limit" and r["usage"]["pids_refused"] >= 1'
        holds 'r["usage"]["peak_pids"] == 8 and "8" in r["message"]'
    fi
    carrel run --json --pids 1 "${best[@]}" -- echo alone
    holds 'r["ok"]'
}
@test "pids: exactly as many processes as allowed, and no more" { both pids_exact; }

pids_threads() {
    local best=()
    has_cgroup || best=(--best-effort pids)
    py 'import threading, time
n = 0
try:
    for i in range(100):
        t = threading.Thread(target=time.sleep, args=(60,), daemon=True); t.start(); n += 1
except RuntimeError:
    print(n, flush=True)
    import os; os._exit(3)' --pids 20 "${best[@]}"
    [ "$status" -eq 3 ]
    holds 'r["stdout"] == "19\n"'
    ! has_cgroup || holds 'r["reason"] == "pids_limit" and r["usage"]["peak_pids"] == 20'
}
@test "pids: threads count" { both pids_threads; }

fork_bomb() {
    local best=()
    has_cgroup || best=(--best-effort pids)
    new_tag
    background run --json --timeout 1500ms --pids 64 "${best[@]}" \
        -c 'f() { f | f & }; echo go; f; while :; do :; done' "$tag"
    # The host answers while it rages.
    local _
    for _ in 1 2 3; do
        me timeout -k 5 60 "$CARREL" run --quiet -- true
    done
    ended
    [ "$status" -ne 0 ]
    ! has_cgroup || holds 'r["usage"]["pids_refused"] >= 1 and r["usage"]["peak_pids"] <= 64'
    holds 'r["duration_ms"] < 30000'
    none_left "$tag"
}
@test "a fork bomb is held, ends, and others run meanwhile" { both fork_bomb; }

# ---- disk ---------------------------------------------------------------------------------------

disk_bytes() {
    local dir
    for dir in /workspace /tmp /home/agent /dev/shm /run /var/tmp; do
        carrel run --json --disk 8M -c "head -c 12000000 /dev/zero >$dir/big"
        [ "$status" -ne 0 ]
        holds 'r["reason"] == "disk_limit" and "No space left" in r["stderr"]'
        holds '"8M" in r["message"]'
    done
    # One sum for all places, and nearly all of it can be used.
    carrel run --json --disk 8M -c 'set -e; head -c 4000000 /dev/zero >/tmp/a
        head -c 4000000 /dev/zero >/workspace/b; echo both; head -c 4000000 /dev/zero >/dev/shm/c'
    holds 'r["stdout"] == "both\n" and r["reason"] == "disk_limit"'
    holds 'r["usage"]["written_bytes"] >= 8000000'
    # Full, but the program went on.
    carrel run --json --disk 8M -c 'head -c 12000000 /dev/zero >/tmp/a 2>/dev/null; exit 0'
    holds 'r["ok"] and r["reason"] == "exited"'
    carrel run --json --disk 8M -c 'head -c 12000000 /dev/zero >/tmp/a 2>/dev/null; rm /tmp/a; head -c 7000000 /dev/zero >/tmp/b'
    holds 'r["ok"]'
}
@test "disk: ENOSPC at the bound, wherever it is written, and disk_limit" { both disk_bytes; }

disk_inodes() {
    carrel run --json --disk 8M -- /usr/bin/python3 -c '
n = 0
try:
    while n < 100000:
        open("/tmp/f%d" % n, "x").close(); n += 1
except OSError as e:
    print(n, e.errno)
    raise SystemExit(4)'
    [ "$status" -eq 4 ]
    holds 'r["stdout"].endswith(" 28\n") and 500 < int(r["stdout"].split()[0]) < 10000'
    holds 'r["reason"] == "disk_limit"'
}
@test "disk: inodes have a bound, too" { both disk_inodes; }

disk_of_host() {
    me mkdir w
    carrel run --json --disk 8M --workdir "$T/w" -c 'head -c 12000000 /dev/zero >big'
    holds 'r["ok"]'
    [ "$(stat -c %s "$T/w/big")" -eq 12000000 ]
}
@test "disk: a directory of the host is not the sandbox's space" { both disk_of_host; }

# ---- open files ---------------------------------------------------------------------------------

open_files() {
    py 'import os
n = 0
try:
    while True:
        os.open("/dev/null", 0); n += 1
except OSError as e:
    print(n, e.errno)' --files 64
    holds 'r["stdout"] == "61 24\n"'
    carrel run --files 64 -c 'ulimit -n; ulimit -Hn; ulimit -n 65 2>/dev/null || echo no'
    [ "$out" = $'64\n64\nno' ]
    carrel run -c 'ulimit -n; ulimit -c'
    [ "${out%%$'\n'*}" = 4096 ]
}
@test "files: EMFILE at the bound, which cannot be raised" { both open_files; }

# ---- disks --------------------------------------------------------------------------------------

# A file on a disk, which every sandbox shows: what tests write may be in memory.
big_file() { find /usr/lib /usr/bin -xdev -type f -perm -004 -size +8M -print -quit; }
read_it() { dd if="$(big_file)" of=/dev/null bs=1M count=8 iflag=direct 2>/dev/null; }

# with_io CASE, without_io CASE
can_read_slowly() { carrel run --io-read 1G -- true && [ "$status" -eq 0 ]; }
with_io() { ! can_read_slowly || "$@"; }
without_io() { can_read_slowly || "$@"; }

slow_reads() {
    local file
    file=$(big_file)
    carrel run --json --io-read 4M -- dd if="$file" of=/dev/null bs=1M count=8 iflag=direct
    holds 'r["ok"] and r["duration_ms"] >= 1000'
    holds 'r["limits"]["io_read_bytes"] == 4 << 20 and r["held_by"]["io_read"] == "cgroup"'
    holds 'r["limits"]["io_write_bytes"] is None and "io_write" not in r["held_by"]'
    # Of all processes together.
    carrel run --json --io-read 4M -c 'for i in 0 1 2 3; do
        dd if="$1" of=/dev/null bs=1M skip=$((i * 2)) count=2 iflag=direct & done; wait' "$file"
    holds 'r["ok"] and r["duration_ms"] >= 1000'
}
@test "disks, by cgroup: reading takes the time that its limit implies" {
    [ -n "$(big_file)" ] && read_it || skip "no large file can be read from a disk directly"
    both with_io slow_reads
}

no_disk_limit() {
    local name
    for name in io-read io-write; do
        carrel run "--$name" 1M --best-effort cpu -- echo ran
        is_one_error 125 "carrel: *the ${name/-/_} limit cannot be enforced here: *--best-effort ${name/-/_}"
        [ -z "$out" ]
        carrel run --json "--$name" 1M --best-effort "${name/-/_}" -- echo ran
        holds "r['ok'] and r['held_by']['${name/-/_}'] == 'nothing' and r['limits']['${name/-/_}_bytes'] is None"
        holds "'${name/-/_} is not limited' in r['note']"
    done
}
@test "disks, without such a cgroup: a limit is refused, or none if that is accepted" {
    both without_io no_disk_limit
}

not_on_a_disk() {
    carrel run --io-read 1G --mount /sys/kernel:/kernel -- echo ran
    is_one_error 125 "carrel: *the io_read limit cannot be enforced here: '/sys/kernel' is not on a disk of this machine; or *"
    [ -z "$out" ]
    carrel run --json --io-read 1G --best-effort io_read --mount /sys/kernel:/kernel -- echo ran
    holds 'r["ok"] and r["held_by"]["io_read"] == "nothing" and r["limits"]["io_read_bytes"] is None'
}
@test "disks: a mount that is on none is refused with a limit" { both with_io not_on_a_disk; }

half_a_disk_limit() {
    [ ! -e /sys/fs/cgroup/blkio ] || {
        carrel run --io-write 1M -- echo ran
        is_one_error 125 'carrel: *the io_write limit cannot be enforced here: *v1*page cache*v2*'
        [ -z "$out" ]
        carrel run --json --io-read 1G --io-write 1M --best-effort io_write -- echo ran
        holds 'r["ok"] and r["held_by"]["io_read"] == "cgroup" and r["held_by"]["io_write"] == "nothing"'
    }
}
@test "disks, by cgroup v1: a limit for direct writes alone is not called a limit for writes" {
    both with_io half_a_disk_limit
}

disk_bounds() {
    carrel run --io-read 1K -- true
    is_one_error 125 'carrel: *the io_read limit is out of bounds; expected a value from 64K to 64T'
    carrel run --io-write 0 -- true
    is_one_error 125 'carrel: --io-write: must be more than 0'
    carrel run --runtime process --network host --io-read 1M -- true
    is_one_error 125 'carrel: *the io_read limit cannot be enforced for the whole sandbox*'
}
@test "disks: bounds, and a runtime that cannot limit them" { both disk_bounds; }

# ---- processor ----------------------------------------------------------------------------------

cpu_share() {
    carrel run --json --cpu 0.3 --timeout 2s -c 'while :; do :; done'
    [ "$status" -eq 124 ]
    holds 'r["limits"]["cpu"] == 0.3 and r["held_by"]["cpu"] == "cgroup"'
    json 'r["usage"]["cpu_ms"] / r["duration_ms"]'
    holds '0.02 < r["usage"]["cpu_ms"] / r["duration_ms"] < 0.5'
    carrel run --json --cpu 0.5 --timeout 2s -c '(while :; do :; done) & (while :; do :; done) & wait'
    json 'r["usage"]["cpu_ms"] / r["duration_ms"]'
    holds '0.05 < r["usage"]["cpu_ms"] / r["duration_ms"] < 0.75'
}
@test "cpu, by cgroup: the share is roughly what was asked for, of all processes together" {
    both with_cgroup cpu_share
}

cpu_time() {
    py 'import time
end = time.process_time() + 0.4
while time.process_time() < end: pass'
    holds '300 <= r["usage"]["cpu_ms"] <= 5000 and r["duration_ms"] >= 300'
    carrel run --json -- sleep 0.5
    holds 'r["usage"]["cpu_ms"] < 400 and r["duration_ms"] >= 450'
}
@test "cpu time and duration in the result are those of the program" { both cpu_time; }

figures() {
    carrel run --json -c 'sleep 60 & sleep 60 & sleep 60 & sleep 0.2; head -c 3000000 /dev/zero >/tmp/x'
    if has_cgroup; then
        holds '4 <= r["usage"]["peak_pids"] <= 6'
    else
        holds 'r["usage"]["peak_pids"] is None or 4 <= r["usage"]["peak_pids"] <= 6'
    fi
    holds '3000000 <= r["usage"]["written_bytes"] < 6000000'
    holds '100000 < r["usage"]["peak_memory_bytes"] < 100 << 20'
    carrel run --json -- true
    holds 'r["usage"]["written_bytes"] < 1000000'
}
@test "peaks and bytes written are plausible" { both figures; }

# ---- time ---------------------------------------------------------------------------------------

# outlived SCRIPT...: a run of 300 ms whose processes resist. It returns, and nothing is left.
outlived() {
    local begin=$SECONDS
    new_tag
    carrel run --json --timeout 300ms "$@" "$tag"
    [ "$status" -eq 124 ]
    [ $((SECONDS - begin)) -le 15 ]
    holds 'r["reason"] == "timeout" and not r["ok"]'
    holds '300 <= r["duration_ms"] < 15000'
    none_left "$tag"
}

hostile_children() {
    outlived -c 'exec sleep 1000'
    outlived -c 'trap "" TERM INT HUP QUIT; while :; do sleep 1; done'
    outlived -c 'trap "" TERM; sh -c "trap \"\" TERM; while :; do sleep 1; done" & wait'
    outlived -c 'kill -STOP $$'
    outlived -c 'sh -c "kill -STOP \$\$" & wait'
}
@test "timeout: children that ignore SIGTERM or stop themselves" { both hostile_children; }

detached_children() {
    outlived -c 'setsid sh -c "trap \"\" TERM; sleep 1000" </dev/null >/dev/null 2>&1 & sleep 1000'
    outlived -c '(setsid sh -c "trap \"\" TERM; exec sleep 1000" &) ; sleep 1000' # holds the pipe
    outlived -- /usr/bin/python3 -c '
import os, signal, time
for i in range(3):          # double fork, three deep, in sessions of their own, holding the pipe
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))
            while True: time.sleep(1)
        os._exit(0)
while True: time.sleep(1)'
}
@test "timeout: children that double-fork, make sessions and hold the pipe" { both detached_children; }

writing_children() {
    outlived -c 'yes & yes >&2 & wait'
    outlived -- sh -c 'while :; do (sh -c "sleep 0.01" &); sh -c :; done'
}
@test "timeout: children that write and fork without end" { both writing_children; }

grace() {
    carrel run --json --timeout 300ms -c 'trap "echo bye; exit 0" TERM; while :; do sleep 0.05; done'
    [ "$status" -eq 124 ]
    holds 'r["stdout"] == "bye\n" and r["reason"] == "timeout"'
}
@test "timeout: the program may say goodbye" { both grace; }

exit_with_holder() {
    # The main program ends at once; a detached grandchild holds both pipes.
    local begin=$SECONDS
    new_tag
    carrel run -c '(setsid sh -c "trap \"\" TERM; exec sleep 1000" "$1" &) ; echo done' "$tag"
    [ "$out" = "done" ]
    [ $((SECONDS - begin)) -le 15 ]
    none_left "$tag"
}
@test "a detached grandchild that holds the pipes does not hold the call" { both exit_with_holder; }
