#!/usr/bin/env bats
# shellcheck disable=SC2030,SC2031,SC2154  # cli.bash sets $status, $out and others
# The rest of the life of sandboxes that stay: detached programs, signals, time, pauses, limits,
# workspaces, the end.

load cli
load living

detach() { # detach WORD...: $n is its number
    carrel exec --detach "$@"
    [ "$status" -eq 0 ]
    n=$out
    [[ $n =~ ^[0-9]+$ ]]
}

# ---- detached programs --------------------------------------------------------------------------

has_ended() {
    carrel ps --json "$id"
    [ "$(json '[e["process"] for e in r["ended"]]')" = "[$n]" ]
}

detached() {
    create
    detach "$id" -c 'echo one; echo two >&2; exit 5'
    until_true has_ended
    holds 'r["processes"] == [] and r["ended"][0]["exit_code"] == 5 and r["ended"][0]["signal"] is None'
    carrel ps "$id"
    [[ $out == *"process $n ended with status 5: "* ]]
    carrel attach "$id" "$n"
    [ "$status:$out:$err" = 5:one:two ]
    # Once told, it is forgotten.
    carrel attach "$id" "$n"
    is_one_error 125 "carrel: no process $n; 'carrel ps' shows them"
    detach "$id" -c 'kill -KILL $$'
    until_true has_ended
    holds 'r["ended"][0]["exit_code"] is None and r["ended"][0]["signal"] == 9'
    carrel attach --json "$id" "$n"
    [ "$status" -eq 137 ]
    holds 'r["reason"] == "signaled" and r["signal"] == 9 and r["sandbox"] == "'"$id"'"'
    carrel exec --detach --json "$id" -- true
    holds 'r["sandbox"] == "'"$id"'" and r["process"] > 0 and len(r) == 2'
    carrel exec --detach "$id" -- frobnicate
    is_one_error 127 "carrel: *'frobnicate'*"
    carrel attach "$id" x
    is_one_error 125 "carrel: 'x' is not the number of a process; 'carrel ps' shows it"
    carrel attach "$id" 99
    is_one_error 125 "carrel: no process 99; 'carrel ps' shows them"
}
@test "detached: output and status are kept until a client attaches" { both detached; }

detached_refused() {
    create --name box
    for option in "--output $T/result" "--max-output 1K" "--format text"; do
        # shellcheck disable=SC2086  # two words
        carrel exec --detach $option box -- true
        [[ $status -eq 125 && $err == "carrel: --detach and ${option% [!t]*} cannot be combined; give it to 'carrel attach'" ]]
    done
    says 'r["started"] == 0'
    carrel exec --detach --format json box -- true
    [ "$status" -eq 0 ]
    holds 'r["process"] == 1'
}
@test "detached: what is about a result is refused" { both detached_refused; }

live() {
    create
    detach "$id" -c 'echo before; while [ ! -e /tmp/go ]; do sleep 0.02; done; echo after; exit 3'
    background attach "$id" "$n"
    until_true grep -q before "$T/.out"
    # A client is attached now.
    me "$CARREL" attach "$id" "$n" >"$T/second" 2>&1 </dev/null && false
    grep -q "a client is attached to process $n" "$T/second"
    me "$CARREL" exec "$id" -- touch /tmp/go
    ended
    [ "$status:$out" = $'3:before\nafter' ]
}
@test "attach: what comes later comes live, to one at a time" { both live; }

left_alone() {
    new_tag
    create
    detach "$id" -c 'while [ ! -e /tmp/go ]; do echo tick; sleep 0.02; done; echo done' "$tag"
    for signal in INT TERM KILL; do
        background attach "$id" "$n"
        until_true test -s "$T/.out"
        kill "-$signal" "$pid"
        until_true _is_over "${_cli_pids[-1]}"
    done
    [ -n "$(tagged "$tag")" ]
    until_true can_attach
    [ "$status" -eq 0 ]
    [[ $out == *done ]]
}
can_attach() {
    me "$CARREL" exec "$id" -- touch /tmp/go
    carrel attach "$id" "$n"
    [[ $err != *"a client is attached"* ]]
}
@test "attach: the program continues when the client exits" { both left_alone; }

kept() {
    create
    detach "$id" -c 'seq 1 200000; seq 1 10 >&2; touch /tmp/written; sleep 1000'
    until_true is_written
    carrel signal "$id" "$n"
    until_true has_ended
    carrel attach "$id" "$n"
    [ "$status" -eq 143 ]
    [[ $out == 1$'\n'2$'\n'* && $out == *$'\n'200000 ]]
    [ "${#out}" -lt 140000 ]
    [ "$err" = "$(seq 1 10)" ]
    # What was not kept was written all the same.
    detach "$id" -c 'seq 1 100000; seq 1 10 >&2'
    until_true has_ended
    carrel attach --json "$id" "$n"
    holds 'r["stdout_bytes"] == 588895 and r["stderr_bytes"] == 21 and r["truncated"]'
    holds '"588895 bytes in all" in r["stdout"]'
}
is_written() {
    carrel exec "$id" -- test -e /tmp/written
    [ "$status" -eq 0 ]
}
@test "detached: of much output head and tail are kept, and the program is not held up" { both kept; }

talks() {
    create
    detach --stdin "$id" -c 'read a; echo "got $a"; read b; echo "got $b"; exit 4'
    carrel_reads $'first\nsecond' attach --stdin "$id" "$n"
    [ "$status" -eq 4 ]
    [ "$out" = $'got first\ngot second' ]
}
@test "attach --stdin: the program's standard input was kept open" { both talks; }

sized() {
    create
    detach --tty --timeout 60s "$id" -c 'while :; do stty size; sleep 0.1; done'
    install -m 644 "$BATS_TEST_DIRNAME/terminal.py" "$T/terminal.py"
    me timeout -k 5 100 /usr/bin/python3 "$T/terminal.py" size_of_visitor "$CARREL" attach --quiet "$id" "$n"
}
@test "attach --tty: the terminal gets the size of the client's" { both sized; }

timed() {
    create --timeout 300ms
    detach "$id" -- sleep 1000
    until_true has_ended
    carrel attach "$id" "$n"
    [ "$status:$err" = "124:carrel: Code execution timed out after 0.3s" ]
    detach "$id" -- sleep 1000
    carrel attach --json "$id" "$n" # while it runs, or later
    [ "$status" -eq 124 ]
    holds 'r["reason"] == "timeout" and r["limits"]["timeout_ms"] == 300'
    # It is told first; what does not listen is killed.
    detach "$id" -c 'trap "echo told" TERM; while :; do sleep 1000 & wait; done'
    until_true has_ended
    carrel attach "$id" "$n"
    [ "$status:$out" = 124:told ]
    detach --timeout 1000s "$id" -- sleep 1000
    carrel ps --json "$id"
    holds 'len(r["processes"]) == 1 and r["processes"][0]["detached"] is True'
}
@test "detached: its timeout ends it without a client" { both timed; }

many_detached() {
    local i
    create
    for i in $(seq 1 80); do
        detach "$id" -- true
    done
    until_true all_ended
    # The latest 64 are kept.
    holds 'len(r["ended"]) <= 65 and r["ended"] != []'
    carrel attach "$id" "$n"
    [ "$status" -eq 0 ]
}
all_ended() {
    carrel ps --json "$id"
    [ "$(json 'r["processes"]')" = '[]' ]
}
@test "detached: 80 that no client fetches do not pile up" { both many_detached; }

# ---- ps and signal ------------------------------------------------------------------------------

listed() {
    create
    detach "$id" -c 'sleep 1000 & exec sleep 2000'
    until_true two_of_them
    holds 'all(p["uid"] == r["processes"][0]["uid"] for p in r["processes"])'
    holds '[p["process"] for p in r["processes"] if p["command"] == "sleep 2000"] == ['"$n"']'
    holds '[p["process"] for p in r["processes"] if p["command"] == "sleep 1000"] == [None]'
    holds 'all(p["memory_bytes"] > 0 and p["state"] in "RSD" and p["name"] == "sleep" for p in r["processes"])'
    carrel ps "$id"
    [ "$(wc -l <<<"$out")" -eq 3 ]
    [[ $out == *PID*PROCESS*COMMAND* ]]
    # What a program calls itself cannot reach the terminal.
    detach "$id" -- bash -c $'exec -a $\'a\e]0;x\a b\' sleep 3000'
    until_true third
    [[ $out != *$'\e'* && $out != *$'\a'* ]]
}
two_of_them() {
    carrel ps --json "$id"
    [ "$(json 'sorted(p["command"] for p in r["processes"])')" = '["sleep 1000", "sleep 2000"]' ]
}
third() {
    carrel ps "$id"
    [[ $out == *"sleep 3000"* || $out == *"b 3000"* ]]
}
@test "ps: every process, and which of them have a number" { both listed; }

signals() {
    create
    detach "$id" -c 'trap "echo usr1" USR1; trap "echo term; exit 6" TERM; echo ready >/tmp/ready; while :; do sleep 0.02; done'
    until_true is_ready
    carrel signal "$id" "$n" usr1
    [ "$status:$out:$err" = 0:: ]
    carrel signal "$id" "$n" SIGUSR1
    carrel signal "$id" "$n"
    until_true has_ended
    carrel attach "$id" "$n"
    [ "$status" -eq 6 ]
    [[ $out == usr1*term ]]
    carrel signal "$id" "$n"
    is_one_error 125 "carrel: no process $n is running; 'carrel ps' shows them"
    carrel signal "$id" 99 9
    is_one_error 125 "carrel: no process 99 is running; 'carrel ps' shows them"
    carrel signal "$id" 1 FROB
    is_one_error 125 "carrel: 'FROB' is not a signal; expected one such as TERM or 15"
    carrel signal "$id" 0
    is_one_error 125 "carrel: expected the number of a process, as 'carrel ps' shows it"
    carrel signal "$id"
    is_one_error 125 "carrel: missing argument; usage: carrel signal *"
    # The group of a program, not what left it.
    detach "$id" -c 'setsid sleep 3000 & sleep 4000 & wait'
    until_true listed_is 2
    carrel signal "$id" "$n" KILL
    until_true listed_is 1
    [[ $out == *"sleep 3000"* ]]
}
is_ready() {
    carrel exec "$id" -- test -e /tmp/ready
    [ "$status" -eq 0 ]
}
listed_is() { # listed_is N: so many that sleep
    carrel ps "$id"
    [ "$(grep -c ' sleep [34]000$' <<<"$out")" -eq "$1" ]
}
@test "signal: by name and number, to a program and its group" { both signals; }

# ---- time ---------------------------------------------------------------------------------------

is_over() {
    carrel inspect "$id"
    [ "$status" -eq 125 ]
}
why() { carrel runs show "$run" && [[ $out == *"$1"* ]]; }

lease() {
    local run
    new_tag
    create
    run=$(me "$CARREL" inspect "$id" | grep -o '"run":"[^"]*' | cut -d'"' -f4)
    carrel renew --lease 400ms "$id"
    carrel exec --json "$id" -c 'sleep 1000; :' "$tag"
    [ "$status:$err" = "125:carrel: The sandbox ended before the program did" ]
    holds 'r["reason"] == "infrastructure"'
    until_true is_over
    none_left "$tag"
    carrel runs show "$run" # its journal has the word in another place
    [[ $out == *timeout* ]]
    carrel journal verify "$run"
    [ "$status" -eq 0 ]
    nothing_left
    # Paused, and without a client.
    create --lease 1s
    detach "$id" -c 'trap "" TERM; sleep 1000; :' "$tag"
    carrel pause "$id"
    until_true is_over
    none_left "$tag"
    nothing_left
    # A client is attached.
    create --lease 2s
    detach "$id" -- sleep 1000
    carrel attach "$id" "$n"
    [ "$status:$err" = "125:carrel: The sandbox ended before the program did" ]
}
@test "lease: when it runs out the sandbox ends, even if programs run in it" { both lease; }

idle() {
    local run
    create
    run=$(me "$CARREL" inspect "$id" | grep -o '"run":"[^"]*' | cut -d'"' -f4)
    # While a program runs it is not idle; what programs left behind does not count.
    background exec --quiet "$id" -c 'echo ready; sleep 1.2; setsid sleep 1000 >/dev/null 2>&1 & echo worked'
    until_true grep -q ready "$T/.out"
    carrel renew --idle 400ms "$id"
    ended
    [[ $status -eq 0 && $out == *worked ]]
    until_true is_over
    nothing_left
    carrel runs show "$run"
    [[ $out == *timeout* ]]
}
@test "idle: it was not used" { both idle; }

list_says() { # list_says EXPRESSION: of the one sandbox in the list
    carrel list --json
    holds 'len(r["sandboxes"]) == 1 and (lambda r: '"$1"')(r["sandboxes"][0])'
}
idle_shown() {
    create --lease none --idle 1h
    list_says '3590000 < r["idle_left_ms"] <= 3600000 and r["idle_ms"] == 3600000 and r["lease_ms"] is None'
    carrel list
    [[ $out == *" 59m "* ]]
    # While a program runs it is not idle; afterwards the idle time begins again, with each request.
    detach "$id" -- sleep 1000
    until_true list_says 'r["idle_left_ms"] is None'
    carrel list
    [[ $out != *" 59m "* ]]
    carrel signal "$id" "$n"
    until_true list_says '3590000 < (r["idle_left_ms"] or 0)'
    before=$(json 'r["sandboxes"][0]["idle_left_ms"]')
    carrel exec "$id" -- sleep 0.1
    until_true list_says "$before - 100 < (r['idle_left_ms'] or 0)"
    carrel renew --lease 10m "$id"
    carrel list
    [[ $out == *" 9m "* ]]
    carrel renew --idle none "$id"
    list_says 'r["idle_left_ms"] is None and r["idle_ms"] is None'
}
@test "list: how long a sandbox may yet be idle" { both idle_shown; }

renewed() {
    create --lease 20s --idle 50s
    carrel renew "$id"
    [ "$status:$out:$err" = 0:: ]
    says '3500000 < r["lease_ms"] <= 3600000 and r["idle_ms"] == 50000'
    carrel renew --lease 10m "$id"
    says '500000 < r["lease_ms"] <= 600000 and r["idle_ms"] == 50000'
    carrel renew --idle 5m "$id"
    says '500000 < r["lease_ms"] <= 600000 and r["idle_ms"] == 300000'
    carrel renew --idle none "$id"
    says '500000 < r["lease_ms"] <= 600000 and r["idle_ms"] is None'
    carrel renew --lease none --idle 1h "$id"
    says 'r["lease_ms"] is None and r["idle_ms"] == 3600000'
    # What create takes, renew takes.
    carrel renew --lease 106000d --idle 106000d "$id"
    [ "$status:$out:$err" = 0:: ]
    says 'r["lease_ms"] > 105999 * 86400000 and r["idle_ms"] == 106000 * 86400000'
    carrel list
    [[ $out == *" 105999d "* ]]
    carrel renew --lease 200000d "$id"
    is_one_error 125 "carrel: --lease: '200000d' is longer than any time"
    carrel renew --lease -1 "$id"
    is_one_error 125 'carrel: --lease: *'
    carrel renew --idle none --lease 300ms "$id"
    until_true is_over
}
@test "renew: more time, less time, no end" { both renewed; }

# ---- pause, resume ------------------------------------------------------------------------------

ticks() { # what the counter says; read where nothing has to be started
    carrel exec "$id" -- cat /tmp/ticks
    echo "${out:-0}"
}
paused() {
    local before by
    create
    detach "$id" -c 'i=0; while :; do i=$((i + 1)); echo $i >/tmp/ticks; done'
    until_true ticking 0
    carrel pause "$id"
    [ "$status:$out:$err" = 0:: ]
    says 'r["state"] == "paused" and r["paused_by"] in ("freezer", "signals")'
    by=$(json 'r["paused_by"]')
    listed_as paused # it was published before it was answered
    carrel pause "$id"
    [ "$status" -eq 0 ]
    carrel exec "$id" -- true
    is_one_error 125 'carrel: *the sandbox is paused; resume it first (carrel resume)'
    # Halted: its processor time stands still. On a busy machine it must get a turn to see its signal.
    [ "$by" = freezer ] || until_true is_stopped
    carrel ps --json "$id"
    before=$(json 'r["processes"][0]["cpu_ms"]')
    head -c 20000000 /dev/urandom | sha256sum >/dev/null
    carrel ps --json "$id"
    holds 'r["processes"][0]["cpu_ms"] == '"$before"
    carrel resume "$id"
    [ "$status:$out:$err" = 0:: ]
    says 'r["state"] == "running"'
    listed_as running
    until_true ticking "$(ticks | tail -n 1)"
    carrel resume "$id"
    [ "$status" -eq 0 ]
    carrel pause "$id"
    carrel destroy "$id"
    [ "$status" -eq 0 ]
    nothing_left
}
is_stopped() {
    carrel ps --json "$id"
    holds 'r["processes"][0]["state"] == "T"'
}
listed_as() { me "$CARREL" list --json | grep -q "\"state\":\"$1\""; }
ticking() { [ "$(ticks | tail -n 1)" -gt "$1" ]; }
@test "pause: nothing runs until resume; a paused sandbox can be destroyed" { both paused; }

# Where the freezer is that of cgroup v1, what is frozen cannot die.
paused_overdue() {
    create
    background exec --quiet --timeout 1s "$id" -c 'echo ready; sleep 1000'
    until_true grep -q ready "$T/.out"
    carrel pause "$id"
    carrel inspect "$id"
    [ "$(json 'r["paused_by"]')" = signals ] || carrel resume "$id"
    ended
    [ "$status" -eq 124 ]
}
@test "pause: the time of a program goes on" { both paused_overdue; }

# The next look is never at what was before.
seen_at_once() {
    local i
    create --lease 1h
    for i in 1 2 3 4 5; do
        carrel pause "$id"
        listed_as paused
        carrel resume "$id"
        listed_as running
        carrel renew --lease 10m "$id"
        carrel list --json
        holds '0 < r["sandboxes"][0]["lease_ms"] <= 600000'
        carrel renew "$id"
        carrel list --json
        holds 'r["sandboxes"][0]["lease_ms"] > 3000000'
    done
}
@test "pause, resume, renew: what was answered is what list shows" { both seen_at_once; }

# A parent that waits for its vfork cannot be woken to be frozen: the freezer has to ask again.
paused_forks() {
    local i
    create
    for i in 1 2 3 4; do
        detach "$id" -c 'while :; do /bin/true; done'
    done
    for ((i = 0; i < 20; i++)); do
        carrel pause "$id"
        [ "$status:$out:$err" = 0:: ]
        carrel resume "$id"
        [ "$status:$out:$err" = 0:: ]
    done
    carrel destroy "$id"
    [ "$status" -eq 0 ]
    nothing_left
}
@test "pause: programs that start programs all the time" { both paused_forks; }

# ---- what the kernel ended ----------------------------------------------------------------------

# Each program is told of what happened while it ran: also one that got by, and no later one.
ended_meanwhile() {
    create --memory 64M
    carrel exec --json "$id" -c 'tail /dev/zero; exit 0'
    holds 'r["ok"] and r["reason"] == "exited" and r["usage"]["oom_kills"] == 1'
    carrel exec --json "$id" -c 'exit 3'
    holds 'r["reason"] == "exited" and r["usage"]["oom_kills"] == 0'
    carrel exec --json "$id" -c 'tail /dev/zero || exit 9'
    holds 'r["exit_code"] == 9 and r["reason"] == "memory_limit" and r["usage"]["oom_kills"] == 1'
    holds '"(files in /run and /dev/shm count as memory)" in r["message"]'
    detach "$id" -c 'tail /dev/zero; exit 0'
    until_true has_ended
    carrel attach --json "$id" "$n"
    holds 'r["ok"] and r["usage"]["oom_kills"] == 1'
    says 'r["usage"]["oom_kills"] == 3'
}
@test "exec: the memory limit is the reason for those alone that met it" {
    both with_cgroup ended_meanwhile
}

# Nothing is counted there: unknown is not zero.
not_counted() {
    create
    carrel exec --json "$id" -c 'exit 3'
    holds 'r["usage"]["oom_kills"] is None and r["reason"] == "exited"'
}
@test "exec: kills are unknown if nothing counts them" { both without_cgroup not_counted; }

# ---- update -------------------------------------------------------------------------------------

updated() {
    create --memory 64M --pids 30 --cpu 0.5
    in_box 'head -c 100M /dev/zero | tail'
    [ "$status" -ne 0 ]
    carrel update --memory 300M --pids 100 --cpu 1.5 "$id"
    [ "$status:$out:$err" = 0:: ]
    says 'r["limits"]["memory_bytes"] == 300 * 2**20 and r["limits"]["pids"] == 100 and r["limits"]["cpu"] == 1.5'
    list_says 'r["limits"]["memory_bytes"] == 300 * 2**20 and r["limits"]["pids"] == 100 and r["limits"]["cpu"] == 1.5'
    # To the bound, and past it.
    in_box 'head -c 100M /dev/zero | tail | wc -c'
    [ "$status:$out" = "0:$((100 << 20))" ]
    carrel exec --json "$id" -- tail /dev/zero
    holds 'r["reason"] == "memory_limit" and r["limits"]["memory_bytes"] == 300 * 2**20'
    in_box 'for i in $(seq 1 80); do sleep 1000 & done; pkill sleep; echo made'
    [ "$status:$out:$err" = 0:made: ]
    carrel update --pids 20 "$id"
    carrel exec --json "$id" -c 'for i in $(seq 1 40); do sleep 5 & done; wait'
    holds 'r["reason"] == "pids_limit"'
    carrel update --pids 100 "$id"
    in_box 'pkill sleep; head -c 50M /dev/zero >/dev/shm/f'
    [ "$status" -eq 0 ]
    carrel update --memory 20M "$id"
    is_one_error 125 'carrel: *memory*'
    says 'r["limits"]["memory_bytes"] == 300 * 2**20 and r["limits"]["pids"] == 100'
    carrel exec "$id" -- true
    [ "$status" -eq 0 ]
}
@test "update: memory and processes, driven to the new bound" { both with_cgroup updated; }

disks_updated() {
    carrel create --io-read 4M
    [ "$status" -eq 0 ] || return 0 # refused, as limits.bats tests
    id=${out%%$'\n'*}
    carrel update --io-read 64M "$id"
    [ "$status:$out:$err" = 0:: ]
    says 'r["limits"]["io_read_bytes"] == 64 * 2**20 and r["limits"]["io_write_bytes"] is None'
    carrel update --io-read 1M --cpu 99999 "$id"
    is_one_error 125 'carrel: *cpu*'
    carrel update --io-read 1 "$id"
    is_one_error 125 'carrel: the io_read limit is out of bounds; *'
    carrel update --io-write 1M "$id"
    is_one_error 125 'carrel: *the sandbox was made without the io_write limit, so it cannot get one now'
    says 'r["limits"]["io_read_bytes"] == 64 * 2**20'
}
@test "update: the speed of disks, if the sandbox was made with such a limit" { both disks_updated; }

not_updated() {
    create
    carrel update --memory 300M "$id"
    is_one_error 125 'carrel: *'
    says 'r["limits"]["memory_bytes"] == 512 * 2**20'
}
@test "update: refused where no cgroup holds the limits" { both without_cgroup not_updated; }

update_refused() {
    local n
    create
    carrel update "$id"
    is_one_error 125 'carrel: nothing to change: give --memory, --cpu, --pids, --io-read or --io-write'
    carrel update --memory 0 "$id"
    is_one_error 125 'carrel: --memory: must be more than 0'
    carrel update --pids x "$id"
    is_one_error 125 'carrel: --pids: *'
    carrel update --memory 1 "$id"
    is_one_error 125 'carrel: the memory limit is out of bounds; expected a value from 4M to 64T'
    carrel update --cpu 99999 "$id"
    is_one_error 125 'carrel: the cpu limit is out of bounds; expected a value from 0.01 to 4096'
    for n in 4194304 18446744073709551615; do
        carrel update --pids "$n" "$id"
        is_one_error 125 'carrel: the pids limit is out of bounds; expected a value from 1 to 4194303'
    done
    carrel create --pids 4194304
    is_one_error 125 'carrel: the pids limit is out of bounds; *'
    carrel create --best-effort pids --pids 4194303
    [ "$status" -eq 0 ]
    carrel update --disk 1G "$id"
    is_one_error 125 "carrel: unknown option '--disk'*"
}
@test "update: what it does not understand" { both update_refused; }

bounded() {
    me sh -c 'echo "sandbox: {limits: {memory: {default: 100M, maximum: 200M}, timeout: {maximum: 5s}, pids: {maximum: 64}}}" >policy.yaml'
    carrel create --policy policy.yaml --memory 300M
    is_one_error 125 'carrel: *300M*200M*policy.yaml*'
    create --policy policy.yaml --best-effort memory,pids,cpu
    carrel exec --timeout 1m "$id" -- true
    is_one_error 125 'carrel: --timeout 60s is more than the maximum 5s of *policy.yaml:*'
    carrel exec --timeout 4s "$id" -- true
    [ "$status" -eq 0 ]
    carrel update --memory 300M "$id"
    is_one_error 125 'carrel: *300M*200M*policy.yaml*'
    carrel update --pids 65 "$id"
    is_one_error 125 'carrel: *65*64*policy.yaml*'
    # A policy that is changed later is not the one that it was made under.
    me sh -c 'echo "sandbox: {limits: {timeout: {maximum: 100s}}}" >policy.yaml'
    carrel exec --timeout 1m "$id" -- true
    is_one_error 125 'carrel: --timeout 60s is more than the maximum 5s of *policy.yaml:*'
}
@test "the policy of create bounds exec and update, too" { both bounded; }

# ---- workspaces ---------------------------------------------------------------------------------

workspace() {
    small_repo
    create --repo repo --task T-1 --run R-1
    says 'r["run"] == "R-1" and r["task"] == "T-1" and r["workspace"].endswith("R-1")'
    in_box 'echo two >>a; git commit -qam second && git log --oneline | wc -l'
    [ "$status:$out" = 0:2 ]
    in_box 'echo three >b; git status --short'
    [ "$out" = '?? b' ]
    carrel workspace diff R-1
    is_one_error 125 "carrel: workspace 'T-1/R-1' is in use by carrel-keeper (process *): try again when that has ended"
    carrel workspace discard R-1
    is_one_error 125 "carrel: workspace 'T-1/R-1' is in use by carrel-keeper (process *): *, or end it with 'carrel destroy $id'"
    carrel destroy "$id"
    [ "$status" -eq 0 ]
    [[ $err == *"workspace R-1: 2 files changed"* ]]
    [ -z "$(me git -C repo status --porcelain)" ]
    carrel workspace diff R-1 --stat
    [[ $out == *'2 files changed'* ]]
    carrel workspace apply R-1
    [ "$status" -eq 0 ]
    me grep -q two repo/a
    me grep -q three repo/b
    carrel journal verify T-1/R-1
    [ "$status" -eq 0 ]
    nothing_left
}
@test "workspace: programs commit in it, destroy keeps the work" { both workspace; }

on_success() {
    small_repo
    create --repo repo --task T-2 --run R-2 --on-success commit
    in_box 'echo two >>a'
    carrel destroy "$id"
    [ "$status" -eq 0 ]
    [ "$(me git -C repo show task-T-2-run-R-2:a)" = $'one\ntwo' ]
    create --repo repo --task T-3 --run R-3 --on-success apply
    in_box 'echo 33 >c'
    carrel destroy "$id"
    [ "$status" -eq 0 ]
    [ "$(me cat repo/c)" = 33 ]
    create --repo repo --task T-4 --run R-4 --on-success discard --on-failure keep
    in_box 'echo 44 >d'
    carrel destroy "$id"
    carrel workspace list
    [[ $out != *R-4* ]]
    # Its time ran out: that is no success.
    create --repo repo --task T-5 --run R-5 --on-success discard --lease 10m
    in_box 'echo 55 >e'
    carrel renew --lease 200ms "$id"
    until_true is_over
    until_true no_keeper
    carrel workspace diff R-5
    [[ $out == *+55* ]]
    # The caller's directory, and the work of one whose keeper was killed.
    create --repo repo --task T-6 --run R-6
    in_box 'echo 66 >f; git add f; git commit -qm f; echo 67 >g'
    carrel destroy --force "$id"
    [ "$status" -eq 0 ]
    nothing_left
    carrel workspace diff R-6
    [[ $out == *+66* && $out == *+67* ]]
}
@test "workspace: what becomes of the work is as create said" { both on_success; }

shared_directory() {
    me mkdir desk
    create --workdir desk
    in_box 'echo here >f'
    [ "$(me cat desk/f)" = here ]
    me sh -c 'echo there >desk/g'
    carrel exec "$id" -- cat g
    [ "$out" = there ]
    carrel destroy "$id"
    [ "$(me cat desk/f)" = here ]
}
@test "workdir: a directory of the host is both's at once" { both shared_directory; }

# ---- the end ------------------------------------------------------------------------------------

all() {
    local i
    for i in 1 2 3 4 5; do
        create --name "box$i"
        detach "$id" -c 'trap "" TERM; sleep 1000; :'
    done
    carrel destroy --all box1
    is_one_error 125 'carrel: --all and the name of a sandbox cannot be combined'
    carrel destroy box2 box3
    [ "$status" -eq 0 ]
    carrel exec box1 -- true
    [ "$status" -eq 0 ]
    carrel destroy --all
    [ "$status:$out:$err" = 0:: ]
    no_keeper
    nothing_left
    carrel destroy --all
    [ "$status" -eq 0 ]
}
@test "destroy: several, and all of them" { both all; }

# As many clients as the kernel lets wait for a keeper; they go with it.
fill_queue() { # fill_queue SOCKET
    me python3 -c '
import resource, socket, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
waiting = []
try:
    while True:
        waiting.append(socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET))
        waiting[-1].setblocking(False)
        waiting[-1].connect(sys.argv[1])
except BlockingIOError:
    waiting.pop()
print("full", flush=True)
waiting[0].setblocking(True)
try:
    waiting[0].recv(1)
except ConnectionError:
    pass' "$1" >"$T/.full" &
    until_true grep -q full "$T/.full"
}

hanging() {
    local keeper init says_stopped asked destroyed
    new_tag
    create --name box
    detach "$id" -c 'sleep 1000; :' "$tag"
    keeper=$(keeper_of "$id")
    init=$(init_of "$keeper")
    me kill -STOP "$keeper"
    says_stopped="carrel: the keeper of the sandbox does not answer: process $keeper is stopped; 'carrel destroy --force' ends it"
    me timeout 60 "$CARREL" inspect box >/dev/null 2>"$T/.inspect" &
    asked=$!
    me timeout 60 "$CARREL" destroy box >/dev/null 2>"$T/.destroy" &
    destroyed=$!
    fill_queue "$S/$id/sock" # for the next one, and if they are slow for these
    carrel exec box -- true
    is_one_error 125 "$says_stopped"
    wait "$asked" "$destroyed" || true
    [ "$(cat "$T/.inspect")" = "$says_stopped" ]
    [ "$(cat "$T/.destroy")" = "$says_stopped" ]
    carrel destroy --force box
    [ "$status" -eq 0 ]
    is_dead "$keeper"
    until_true is_dead "$init"
    none_left "$tag"
    nothing_left
    create --name box
    carrel destroy --all --force
    [ "$status" -eq 0 ]
    nothing_left
}
@test "a keeper that is stopped is given up; destroy --force ends it" { both hanging; }

told() {
    local run keeper
    create
    run=$(me "$CARREL" inspect "$id" | grep -o '"run":"[^"]*' | cut -d'"' -f4)
    keeper=$(keeper_of "$id")
    me kill -TERM "$keeper"
    until_true is_dead "$keeper"
    carrel journal verify "$run"
    [ "$status" -eq 0 ]
    carrel runs show "$run"
    [[ $out == *cancelled* ]]
    nothing_left
}
@test "a keeper that gets SIGTERM ends its sandbox in order" { both told; }

recorded() {
    local run
    create --name box
    run=$(me "$CARREL" inspect "$id" | grep -o '"run":"[^"]*' | cut -d'"' -f4)
    carrel exec "$id" -- echo first
    carrel exec "$id" -c 'exit 4'
    carrel exec --timeout 300ms "$id" -- sleep 1000
    detach --timeout 300ms "$id" -- sleep 1000
    until_true has_ended
    carrel journal show --json "$run"
    [ "$(grep -c '"event":"exec_ended".*"timeout":false' <<<"$out")" -eq 2 ]
    [ "$(grep -c '"event":"exec_ended".*"timeout":true' <<<"$out")" -eq 2 ]
    carrel pause "$id"
    carrel resume "$id"
    carrel renew "$id"
    carrel destroy "$id"
    carrel runs show --json "$run" # two programs had 300ms each
    holds '600 <= r["run"]["duration_ms"] < 120000'
    carrel journal show "$run"
    for word in run_started sandbox_made sandbox_paused sandbox_resumed lease_renewed run_ended sealed; do
        [[ $out == *" $word "* || $out == *" $word"$'\n'* ]]
    done
    [[ $out == *echo* ]]
    carrel journal verify "$run"
    [ "$status" -eq 0 ]
    carrel runs
    [[ $out == *"$run"* ]]
}
@test "the journal has each program and each change, and is sealed at the end" { both recorded; }

# What cannot be written down ends the sandbox: a request, and the end of a program.
unrecorded() {
    me sh -c 'echo "journal: {max_bytes: 4K}" >policy.yaml'
    create --policy policy.yaml
    renew_until_full
    until_true is_over
    nothing_left
    create --policy policy.yaml
    detach "$id" -c 'read x; echo ended' # ends with its input, which has no writer
    exec_until_full
    until_true is_over
    nothing_left
}
renew_until_full() {
    local i
    for i in $(seq 1 40); do
        carrel renew "$id"
        [ "$status" -eq 0 ] || break
    done
    [ "$i" -gt 1 ]
    [ "$i" -lt 40 ]
    [ "$status" -eq 125 ]
}
exec_until_full() {
    local i
    for i in $(seq 1 40); do
        carrel exec "$id" -- true
        [ "$status" -eq 0 ] || break
    done
    [ "$i" -lt 40 ]
    [ "$status" -eq 125 ]
}
@test "a journal that takes no more records ends the sandbox" { both unrecorded; }

# The last page of the journal has no room for its end, and the disk none for another page.
destroy_on_full_disk() { # destroy_on_full_disk OPTION...: of create
    status=0
    me mkdir -p state
    # shellcheck disable=SC2016  # for the inner shell
    me sh -c '
        set -e
        mount -t tmpfs -o size=4M,mode=0700 tmpfs state
        carrel=$1
        shift
        "$carrel" create --quiet --name x "$@" >/dev/null
        until test $(($(stat -c %s state/carrel/runs/*/journal.jsonl) % 4096)) -gt 3600; do
            "$carrel" renew x
        done
        cat /dev/zero >state/filler 2>/dev/null || true
        status=0
        "$carrel" destroy x || status=$?
        test -z "$("$carrel" list)"
        exit "$status"
    ' sh "$CARREL" "$@" >"$T/.out" 2>"$T/.err" || status=$?
    { grep -v '^no ' "$T/.err" || true; } >"$T/said"
    _collect "$@"
}
full_disk() {
    local gone="the sandbox is gone, but its journal has no end"
    destroy_on_full_disk
    [ "$status" -eq 0 ]
    [[ $(<"$T/said") == "carrel: note: $gone: "*": No space left on device" ]]
    nothing_left
    small_repo
    destroy_on_full_disk --repo repo
    [ "$status" -eq 125 ]
    [[ $(<"$T/said") == "carrel: "*": No space left on device" ]]
    nothing_left
}
@test "destroy: a sandbox whose end cannot be recorded is gone all the same" { only root full_disk; }

not_mine() {
    [ "$(id -u)" -eq 0 ] || skip "needs root and a user"
    have_user 2>/dev/null || skip "$NO_USER_REASON"
    _enter root
    create --name box
    local theirs=$T/carrel/sandboxes name=$id
    _enter user
    carrel exec "$name" -- true
    is_one_error 125 'carrel: no living sandbox*'
    not as_user ls "$theirs"
    _enter root # so that teardown finds both
}
@test "another user's sandbox is out of reach" { not_mine; }

# ---- programs that want to hold up their init or their keeper -----------------------------------

# A process that is being started has its user's id for a moment, and can be stopped then.
stopping_storm() {
    local keeper init
    create --lease 4s
    keeper=$(keeper_of "$id")
    init=$(init_of "$keeper")
    carrel exec --detach "$id" -- python3 -c 'import os
while True: os.kill(-1, 19)'
    for _ in 1 2 3 4; do
        me timeout 1 "$CARREL" exec "$id" -- true || true
    done
    until_true is_dead "$init"
    until_true is_dead "$keeper"
    nothing_left
}
@test "a program that stops all others does not outlive the lease" {
    DEADLINE=60 # our own answer to an init that hangs takes a while
    both stopping_storm
}

lost_sandbox() {
    me mkdir shown
    create --mount "$T/shown:/mnt:ro"
    in_box 'echo precious >/workspace/file'
    me rmdir shown
    carrel snapshot "$id" wanted
    [ "$status" -eq 125 ]
    [[ $err == *"make the sandbox again"*"its files are kept as snapshot lost-$id"* ]]
    until_true no_entry
    create --from "lost-$id"
    in_box 'cat /workspace/file'
    [ "$out" = precious ]
    carrel destroy "$id"
}
@test "a sandbox that cannot be made again after a snapshot leaves its files" { both lost_sandbox; }

disk_is_polled() {
    create --disk 64M
    carrel exec --json "$id" -c 'for i in 1 2 3 4; do head -c 60M /dev/zero >/workspace/$i & done; wait; sleep 60'
    holds 'r["reason"] == "disk_limit" and r["held_by"]["disk"] == "polling" and "disk" not in r["protections"]'
    carrel exec "$id" -- true # nothing runs until there is room
    [[ $status -eq 125 && $err == *"the disk limit of 64M is reached"* ]]
    carrel rm -r "$id:/workspace/1" "$id:/workspace/2" "$id:/workspace/3" "$id:/workspace/4"
    carrel exec "$id" -- fallocate -l 1M /tmp/reserved
    [ "$status" -eq 0 ]
}
@test "the disk of a sandbox that stays is enforced by polling" { both disk_is_polled; }

exact_disk_refused() {
    carrel create --require disk
    is_one_error 125 '*--require disk*'
}
@test "the disk of a sandbox that stays: an exact limit is refused for an ordinary user" { only user exact_disk_refused; }

exact_disk() {
    [ -w /dev/loop-control ] || skip "there are no loop devices"
    create --disk 32M --require disk
    carrel exec --json "$id" -c 'echo kept >/tmp/kept; head -c 64M /dev/zero >/workspace/big'
    holds 'r["exit_code"] != 0 and r["held_by"]["disk"] == "filesystem" and "disk" in r["protections"]'
    holds '"No space left" in r["stderr"]'
    carrel exec "$id" -c 'rm /workspace/big'
    carrel snapshot "$id" exact
    [ "$status" -eq 0 ]
    carrel fork "$id"
    fork=$out
    carrel exec "$fork" -- cat /tmp/kept
    [ "$out" = kept ]
    carrel exec "$fork" -c 'head -c 64M /dev/zero >/workspace/big'
    [ "$status" -ne 0 ]
    carrel destroy "$id" "$fork"
    carrel snapshot rm exact
    [ "$(grep -c "$T/state" /proc/self/mountinfo)" = 0 ]
}
@test "the disk of a sandbox that stays: an exact limit, kept by forks" { only root exact_disk; }

full_and_idle() {
    create --disk 20M --idle 2s
    carrel exec "$id" -c 'for i in 1 2 3 4; do head -c 10M /dev/zero >/workspace/$i; done; sleep 60'
    [[ $status -eq 137 && $err == *"Disk limit of 20M reached"* ]]
    until_true no_entry
}
@test "a sandbox at its disk limit ends when it is not used" { both full_and_idle; }

room_for_files() {
    create --disk 20M
    head -c 30M /dev/zero | tr '\0' x >"$T/large" && chmod 644 "$T/large"
    # What is being copied is finished; then nothing more is taken.
    carrel cp large "$id:/workspace/a"
    [ "$status" -eq 0 ]
    carrel cp large "$id:/workspace/b"
    [[ $status -eq 125 && $err == *"the disk limit of 20M is reached"* ]]
    carrel_reads text write "$id:/workspace/b"
    [[ $status -eq 125 && $err == *"the disk limit of 20M is reached"* ]]
    carrel mkdir "$id:/workspace/d"
    [[ $status -eq 125 && $err == *"the disk limit of 20M is reached"* ]]
    run me "$CARREL" import "$id:/workspace" < <(cd "$T" && tar c large)
    [[ $status -eq 125 && $output == *"the disk limit of 20M is reached"* ]]
    carrel exec "$id" -- true
    [[ $status -eq 125 && $err == *"remove files with 'carrel rm $id:PATH'"* ]]
    carrel rm -r "$id:/workspace/a"
    in_box 'ls /workspace'
    [ -z "$out" ]
    # Full by its own doing.
    carrel exec "$id" -c 'for i in 1 2 3; do head -c 10M /dev/zero >/workspace/$i; done; sleep 60'
    [ "$status" -eq 137 ]
    carrel mkdir "$id:/workspace/d"
    [[ $status -eq 125 && $err == *"the disk limit of 20M is reached"* ]]
    carrel rm -r "$id:/workspace/1" "$id:/workspace/2" "$id:/workspace/3"
    carrel mkdir "$id:/workspace/d"
    [ "$status" -eq 0 ]
    carrel destroy "$id"
}
@test "the disk limit counts what is copied in, and removing makes room" { both room_for_files; }

stopped_client() {
    create
    background exec --timeout 3s "$id" -- sleep 1000
    until_true says 'r["processes"] == 1'
    kill -STOP "$pid" # a busy machine may need more than a second to come this far
    until_true says 'r["processes"] == 0'
    kill -CONT "$pid"
    ended || true
    carrel destroy "$id"
}
@test "the time of a program is over also when its client is stopped" { both stopped_client; }

anonymous_kb() { awk '/^Anonymous:/ { print $2 }' "/proc/$1/smaps_rollup"; }
little_memory() {
    create
    in_box 'echo used' && [ "$out" = used ]
    local keeper init
    keeper=$(keeper_of "$id")
    init=$(init_of "$keeper")
    gave_back() {
        ! grep -q '\[stack\]' "/proc/$init/maps" && [ "$(anonymous_kb "$init")" -lt 110 ] &&
            [ "$(anonymous_kb "$keeper")" -lt 140 ]
    }
    until_true gave_back
    in_box 'echo again' && [ "$out" = again ]
    carrel exec "$id" -- no-such-program
    [[ $status -eq 127 && $err == *"no-such-program"* ]]
    carrel destroy "$id"
}
@test "an idle sandbox gives memory back, and can be used again" { both little_memory; }
