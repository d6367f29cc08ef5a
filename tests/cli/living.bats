#!/usr/bin/env bats
# shellcheck disable=SC2030,SC2031,SC2154  # cli.bash sets $status, $out and others
# Sandboxes that stay: create, exec, attach, ps, signal, inspect, renew, pause, resume, update, destroy.

load cli
load living

# ---- create -------------------------------------------------------------------------------------

life() {
    create --name "box"
    in_box 'echo data >/tmp/f; echo more >~/g; echo here >h'
    [ "$status" -eq 0 ]
    carrel exec box -- cat /tmp/f /home/agent/g /workspace/h
    [ "$status:$out:$err" = "0:data"$'\n'"more"$'\n'"here:" ]
    carrel exec "${id:0:6}" -- echo "by the beginning of its id"
    [ "$status" -eq 0 ]
    says 'r["id"] == "'"$id"'" and r["name"] == "box" and r["state"] == "running"'
    [ -d "/proc/$(json 'r["pid"]')" ]
    carrel destroy box
    [ "$status:$out:$err" = "0::" ]
    nothing_left
}
@test "a sandbox keeps its files from program to program, until it is destroyed" { both life; }

no_core_dumps() {
    ulimit -S -c unlimited
    create
    in_box 'grep "core file size" /proc/self/limits'
    [[ "$out" =~ ^"Max core file size"\ +1\ +1\ +bytes ]] # at 0 a handler of the host's would run: core(5)
    carrel exec "$id" -- /bin/sh -c 'ulimit -c unlimited; kill -SEGV $$'
    [ "$status" -eq 139 ]
    in_box 'ls -A'
    [ "$out" = "" ]
}
@test "a program that crashes leaves no core, and starts no handler of the host's" { both no_core_dumps; }

interfaces() {
    create
    in_box 'python3 -c "
import socket
held = []
try:
    while len(held) < 100:
        held.append(socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0))
except OSError as e:
    print(len(held), e.strerror)
del held[0]
socket.if_nameindex()
print(\"again\")"; ip -o link | wc -l'
    [ "$out" = $'8 No buffer space available\nagain\n1' ]
}
@test "programs can ask for interfaces, and hold few sockets for that" { both interfaces; }

create_forms() {
    carrel create --json --name box --label project=x --label "note=a \"b\""
    [ "$status" -eq 0 ]
    holds 'list(r) == ["id", "name"] and r["name"] == "box"'
    id=$(json 'r["id"]')
    says 'r["labels"] == {"project": "x", "note": "a \"b\""}'
    holds '3500000 < r["lease_ms"] <= 3600000 and r["idle_ms"] is None'
    holds 'r["processes"] == 0 and r["started"] == 0 and r["paused_by"] is None'
    holds 'r["run"].startswith("R-") and r["task"] is None and r["workspace"] is None'
    holds 'r["isolation"] == "kernel" and "seccomp" in r["protections"]'
    carrel create --json
    holds 'r["name"] is None'
    create --lease none --idle 10m
    says 'r["lease_ms"] is None and r["idle_ms"] == 600000'
    create --lease 90s --cwd /tmp --env A=1 --hostname h
    says '80000 < r["lease_ms"] <= 90000'
    in_box 'pwd; echo $A; hostname'
    [ "$out" = $'/tmp\n1\nh' ]
}
@test "what create is told, inspect says" { both create_forms; }

held_by_less() {
    local words
    carrel create --quiet --name box
    [ ! -s "$T/.err" ]
    for words in "create" "create --json" "exec box -- true" "exec --detach box -- true"; do
        # shellcheck disable=SC2086  # several words
        carrel $words
        [ "$status" -eq 0 ]
        if has_cgroup; then
            [ ! -s "$T/.err" ]
        else
            [[ "$(cat "$T/.err")" == "carrel: note: memory is limited per process only, "*"; 'carrel health' says why" ]]
        fi
    done
    carrel exec --quiet box -- true
    [ ! -s "$T/.err" ]
    carrel exec --quiet --detach box -- true
    [ ! -s "$T/.err" ]
    carrel exec --json box -- true
    has_cgroup || holds '"memory" in r["note"]'
}
@test "limits that are held by less are said, and not with --quiet" { both held_by_less; }

create_refused() {
    carrel create --name box
    carrel create --name box
    is_one_error 125 "carrel: *'box'*"
    for name in .hidden a/b '' S-something "$(printf 'a%.0s' $(seq 65))" 'a b' $'a\nb' '..' -x; do
        carrel create --name "$name"
        is_one_error 125 'carrel: *name*'
    done
    carrel create --name $'a\nb'
    [ "$err" = "carrel: name 'a\x0ab' cannot be used: only letters, digits, '.', '_' and '-' are allowed" ]
    for label in a =b 'a b=c' '' "a=$(printf 'x%.0s' $(seq 300))"; do
        carrel create --label "$label"
        is_one_error 125 "carrel: label '*' is not NAME=VALUE of at most 255 bytes"
    done
    carrel create --label a=b --label ab=c --label a=c
    is_one_error 125 "carrel: label 'a' is given twice"
    carrel create --lease 0
    is_one_error 125 "carrel: --lease: must be more than 0, or 'none'"
    carrel create --idle soon
    is_one_error 125 'carrel: --idle: *'
    carrel create -- true
    is_one_error 125 "carrel: unexpected argument 'true'; usage: carrel create *"
    carrel create --tty
    is_one_error 125 "carrel: unknown option '--tty'*"
    carrel create --memory 1
    is_one_error 125 'carrel: *memory*'
    carrel create --mount /nonexistent:/x
    is_one_error 125 'carrel: *nonexistent*'
    carrel create --json --name box
    [ "$status" -eq 125 ]
    holds 'r["ok"] is False and "box" in r["error"]'
    # The existing one is unchanged, and no other was made.
    carrel exec box -- true
    [ "$status" -eq 0 ]
    [ "$(find "$S" -maxdepth 1 -name 'S-*' | wc -l)" -eq 1 ]
}
@test "what cannot be made is refused, and leaves nothing" { both create_refused; }

no_sandbox() {
    local command
    for command in ps inspect renew pause resume 'update --pids 9' destroy 'signal x 1' 'exec -- true' 'attach x 1'; do
        case $command in
        signal*) carrel signal x 1 ;;
        attach*) carrel attach x 1 ;;
        exec*) carrel exec none -- true ;;
        update*) carrel update --pids 9 none ;;
        *) carrel "$command" none ;;
        esac
        is_one_error 125 "carrel: no living sandbox '*' ('carrel list' shows them)"
    done
    carrel ps
    is_one_error 125 "carrel: missing argument; usage: carrel ps ID*"
    carrel exec -- true
    is_one_error 125 "carrel: no sandbox given; usage: carrel exec *"
    carrel destroy
    is_one_error 125 "carrel: no sandbox given; usage: carrel destroy *"
    carrel ps a b
    is_one_error 125 "carrel: unexpected argument 'b'; usage: *"
    carrel inspect --json none
    [ "$status" -eq 125 ]
    holds 'r["ok"] is False'
    carrel exec --json none -- true
    [ "$status" -eq 125 ]
    holds 'r["ok"] is False and r["reason"] == "infrastructure"'
    carrel exec ../../x -- true
    is_one_error 125 'carrel: *'
}
@test "without a sandbox every command says so" { both no_sandbox; }

names() {
    local first
    create --name box
    first=$id
    # A handle that was opened before stays with the sandbox that it found.
    background exec box -c 'echo ready; sleep 1000'
    until_true grep -q ready "$T/.out"
    carrel destroy box
    [ "$status" -eq 0 ]
    create --name box
    [ "$id" != "$first" ]
    until_true _is_over "${_cli_pids[-1]}"
    status=0
    wait "${_cli_pids[-1]}" || status=$?
    [ "$status" -eq 125 ]
    carrel exec "$first" -- true
    is_one_error 125 "carrel: no living sandbox '$first'*"
    carrel exec box -- true
    [ "$status" -eq 0 ]
    carrel exec S- -- true
    is_one_error 125 'carrel: *'
    carrel destroy box nobody "$first"
    [ "$status" -eq 125 ]
    [ "$(grep -c 'no living sandbox' <<<"$err")" -eq 2 ]
    nothing_left
}
@test "a name can be used again, and an old handle never reaches the new one" { both names; }

twice() {
    create --name box
    carrel destroy box box
    [ "$status:$out:$err" = 0:: ]
    until_true nothing_left
    carrel destroy box box
    is_one_error 125 "carrel: no living sandbox 'box'*"
}
@test "destroy: a name that is given twice is one sandbox" { both twice; }

# ---- exec ---------------------------------------------------------------------------------------

streams() {
    create
    in_box 'echo out; echo err >&2; exit 7'
    [ "$status:$out:$err" = "7:out:err" ]
    in_box 'kill -9 $$'
    [ "$status" -eq 137 ]
    carrel exec "$id" -- frobnicate
    is_one_error 127 "carrel: *'frobnicate'*"
    carrel exec "$id" -- /etc/passwd
    is_one_error 126 'carrel: *'
    carrel exec --cwd /nowhere "$id" -- true
    is_one_error 125 'carrel: *'
    # Words as they are; options before and behind the sandbox.
    carrel exec --env X=1 "$id" --env 'Y=a b' -- printf '%s|' "a b" '' '$X'
    [ "$out" = 'a b||$X|' ]
    carrel exec "$id" -c 'echo "$1-$2"' one two
    [ "$out" = one-two ]
    carrel exec "$id"
    is_one_error 125 'carrel: *'
    carrel exec "$id" --memory 1G -- true
    is_one_error 125 "carrel: unknown option '--memory'*"
    # Output that is larger than any pipe, and binary.
    carrel exec "$id" -- head -c 3000000 /dev/zero
    [ "$(stat -c %s "$T/.out")" -eq 3000000 ]
    carrel exec --max-output 1000 "$id" -c 'seq 1 100000'
    [ "${#out}" -le 1000 ]
    [[ $out == 1$'\n'2* && $out == *100000 ]]
}
@test "exec: streams, statuses, words" { both streams; }

input() {
    create
    in_box 'cat; echo end'
    [ "$out" = end ]
    carrel_reads 'a line' exec --stdin "$id" -- cat
    [ "$status:$out" = "0:a line" ]
    head -c 2000000 /dev/urandom >"$T/big"
    chmod 644 "$T/big"
    me sh -c '"$0" exec --stdin "$1" -- cat <big | cmp - big' "$CARREL" "$id"
    # A program that does not read ends all the same.
    me sh -c 'yes | "$0" exec --stdin "$1" -- true' "$CARREL" "$id"
    # A reader that leaves.
    me sh -c '"$0" exec --quiet "$1" -- yes | head -n 1' "$CARREL" "$id"
}
@test "exec: standard input only where it was asked for" { both input; }

result() {
    create --memory 200M --best-effort memory
    carrel exec --json "$id" -c 'echo hello; echo oh >&2; exit 3'
    [ "$status" -eq 3 ]
    holds 'r["sandbox"] == "'"$id"'" and r["reason"] == "exited" and r["exit_code"] == 3'
    holds 'r["stdout"] == "hello\n" and r["stderr"] == "oh\n" and r["ok"] is False'
    holds 'r["limits"]["memory_bytes"] == 200 * 2**20 and r["isolation"] == "kernel"'
    local run
    run=$(json 'r["run"]')
    says 'r["run"] == "'"$run"'" and r["started"] == 1 and r["processes"] == 0'
    me mkfifo pipe
    carrel exec --output pipe "$id" -- true
    is_one_error 125 "carrel: write: 'pipe': is a FIFO; expected a regular file"
    [ -p "$T/pipe" ]
    carrel exec --output o.json "$id" -- echo shown
    [ "$out" = shown ]
    me grep -q '"stdout":"shown\\n"' o.json
    carrel exec --format text "$id" -- echo shown
    [[ $out == "status: ok (exit 0, "*s\)*shown ]]
    carrel exec --json "$id" -- frobnicate
    [ "$status" -eq 127 ]
    holds 'r["reason"] == "infrastructure" and "frobnicate" in r["message"]'
}
@test "exec: the result is that of a run" { both result; }

surroundings() {
    create --env A=made --env B=made --cwd /tmp
    carrel exec --env B=own --env C=own "$id" -c 'echo $A $B $C $PWD $HOME $USER'
    [ "$out" = "made own own /tmp /home/agent agent" ]
    me sh -c 'echo C=file >vars'
    carrel exec --env-file vars --cwd / "$id" -c 'echo $A $B $C $PWD'
    [ "$out" = "made made file /" ]
    SECRET=x carrel exec "$id" -- env
    [[ $out != *SECRET* && $out != *C=* ]]
    carrel exec --cwd home/agent "$id" -- pwd
    [ "$status" -ne 0 ]
}
@test "exec: environment and directory are those of create, unless it has its own" { both surroundings; }

places() {
    local dir
    me env -u HOME -u XDG_STATE_HOME "$CARREL" create --journal off 2>"$T/.err" && return 1
    [ "$(<"$T/.err")" = "carrel: neither XDG_STATE_HOME nor HOME is set: there is no place to keep anything; set one of them" ]
    for dir in /nowhere /etc/passwd /proc "/$(printf %04096d 0)"; do
        me env XDG_RUNTIME_DIR="$dir" "$CARREL" create 2>"$T/.err" && return 1
        cat "$T/.err"
        [[ $(<"$T/.err") == "carrel: XDG_RUNTIME_DIR is not usable; set it to a directory of your own, or unset it: "* ]]
    done
}
@test "create: a place that is missing is named with its variable" { only user places; }

other_user() {
    create
    carrel exec --user 1234:77 "$id" -c 'id -u; id -g
        for d in /run /dev/shm /tmp /home/agent; do (echo >$d/f) 2>/dev/null && echo $d; done'
    [ "$out" = $'1234\n77\n/dev/shm' ]
    carrel exec --user root "$id" -c 'id -u; grep CapEff /proc/self/status'
    [[ $out == 0$'\n'CapEff:*0000000000000000 ]]
    in_box 'id -u; stat -c %u:%g /dev/shm/f; kill -9 -1 2>/dev/null; true'
    [ "$out" = $'1000\n1234:77' ]
    carrel exec "$id" -- true
    [ "$status" -eq 0 ]
    carrel exec --user 70000 "$id" -- true
    is_one_error 125 'carrel: *'
}
@test "exec --user: the program has the ids of that user and no others" { only root other_user; }

other_user_rootless() {
    create
    carrel exec --user 1234 "$id" -- true
    is_one_error 125 'carrel: *'
    carrel exec "$id" -- id -u
    [ "$out" = "$(me id -u)" ]
}
@test "exec --user: an ordinary user has one id" { only user other_user_rootless; }

time_of_a_program() {
    new_tag
    create --timeout 400ms
    carrel exec "$id" -c 'trap "" TERM; sleep 1000 & wait; wait' "$tag"
    [ "$status" -eq 124 ]
    [[ $err == "carrel: Code execution timed out after 0.4s" ]]
    none_left "$tag"
    # Its group is gone; what has a session of its own stays, and so does the sandbox.
    carrel exec --timeout 10s "$id" -c '(setsid sh -c "exec 2>/dev/null >&2; sleep 1000" "$0" &) ; sleep 0; true' "$tag"
    [ "$status" -eq 0 ]
    carrel exec --timeout 300ms --json "$id" -- sleep 1000
    [ "$status" -eq 124 ]
    holds 'r["reason"] == "timeout" and r["limits"]["timeout_ms"] == 300'
    carrel ps "$id"
    [[ $out == *"sleep 1000"* ]]
    carrel destroy "$id"
    nothing_left
}
@test "exec: a program's time ends its process group and nothing else" { both time_of_a_program; }

# The leader ends at once, the other one ignores SIGTERM.
deaf_group() {
    new_tag
    create
    carrel exec --timeout 300ms "$id" -c 'sh -c "trap \"\" TERM; while :; do sleep 1; done" "$0" & sleep 1000' "$tag"
    [ "$status" -eq 124 ]
    none_left "$tag"
    carrel exec --detach --timeout 300ms "$id" -c 'sh -c "trap \"\" TERM; while :; do sleep 1; done" "$0" & sleep 1000' "$tag"
    [ "$status" -eq 0 ]
    none_left "$tag"
    # So it is when the command itself is told to end.
    background exec --quiet "$id" -c 'sh -c "trap \"\" TERM; echo ready; while :; do sleep 1; done" "$0" & sleep 1000' "$tag"
    until_true grep -q ready "$T/.out"
    kill -TERM "$pid"
    ended
    [ "$status" -eq 143 ]
    none_left "$tag"
    # Nothing else suffers: a session of its own stays, and orphans are still reaped.
    carrel exec --timeout 300ms "$id" -c 'setsid sleep 999 >/dev/null 2>&1 & for i in 1 2 3; do (sleep 0.2 &); done; sleep 1000'
    [ "$status" -eq 124 ]
    until_true only_that_sleep
    says 'r["processes"] == 0'
    carrel destroy "$id"
    nothing_left
}
only_that_sleep() {
    carrel ps --json "$id"
    holds '[p["command"] for p in r["processes"]] == ["sleep 999"]'
}
@test "exec: what is left of a group when the time is over is killed" { both deaf_group; }

left_behind() {
    new_tag
    create
    # It holds both streams, and exec does not wait for it.
    in_box 'sleep 1000 & echo started'
    [ "$status:$out" = 0:started ]
    carrel ps "$id"
    [[ $out == *" sleep 1000" ]]
    in_box 'pgrep -x sleep >/dev/null && pkill -x sleep && echo ended it'
    [ "$out" = "ended it" ]
    until_true no_sleep
    carrel destroy "$id"
}
no_sleep() {
    carrel ps "$id"
    [[ $out != *sleep* ]]
}
@test "exec: what a program leaves behind stays, and later ones see it" { both left_behind; }

together() {
    local i jobs=()
    create
    for i in $(seq 1 30); do
        me timeout -k 5 120 "$CARREL" exec --quiet --env N="$i" "$id" \
            -c 'echo "out $N"; echo "err $N" >&2; echo $N >/tmp/n$N; exit $N' >"$T/$i.out" 2>"$T/$i.err" </dev/null &
        jobs[i]=$!
    done
    for i in $(seq 1 30); do
        status=0
        wait "${jobs[i]}" || status=$?
        [ "$status" -eq "$i" ]
        [ "$(cat "$T/$i.out" "$T/$i.err")" = "out $i"$'\n'"err $i" ]
    done
    in_box 'ls /tmp | wc -l'
    [ "$out" -eq 30 ]
    says 'r["started"] == 31 and r["processes"] == 0'
}
@test "exec: thirty at once, each with its own streams and status" { both together; }

ends_with_its_command() {
    new_tag
    create
    background exec "$id" -c 'echo ready; sleep 1000; :' "$tag"
    until_true grep -q ready "$T/.out"
    kill -KILL "$pid"
    none_left "$tag"
    background exec --quiet "$id" -c 'trap "echo told; exit 9" TERM; echo ready; while :; do sleep 0.05; done' "$tag"
    until_true grep -q ready "$T/.out"
    kill -INT "$pid"
    ended
    [ "$status" -eq 130 ]
    [[ $out == *told ]]
    none_left "$tag"
    carrel exec "$id" -- true
    [ "$status" -eq 0 ]
}
@test "exec: the program ends with its command, the sandbox does not" { both ends_with_its_command; }

on_terminal() {
    create
    install -m 644 "$BATS_TEST_DIRNAME/terminal.py" "$T/terminal.py"
    me timeout -k 5 100 /usr/bin/python3 "$T/terminal.py" "$1" "$CARREL" exec --quiet "$id"
}
# Also where the last line has no end, and where there is none at all.
# shellcheck disable=SC2016,SC2059  # for the inner shell; the text has \n
typed_to_the_end() {
    local text
    create
    for text in '' 'a line\n' 'begun' 'a line\nbegun'; do
        me sh -c 'printf "$0" | timeout 20 "$@"' "$text" \
            "$CARREL" exec --quiet --tty --stdin "$id" -- sh -c 'stty -echo; cat' >"$T/.out"
        [[ $(tr -d '\r' <"$T/.out") == *"$(printf "$text")" ]]
        me sh -c 'printf "$0" | timeout 20 "$@"' "$text" "$CARREL" run --quiet --tty --stdin -- cat
    done
    me timeout 20 "$CARREL" exec --quiet --tty "$id" -- cat
    me timeout 20 "$CARREL" run --quiet --tty -- cat
}
@test "exec, run --tty: the program sees where the input ends" { both typed_to_the_end; }
@test "exec --tty: a terminal of its own on all three streams" { both on_terminal is_a_terminal; }
@test "exec --tty: statuses, and the modes are put back" { both on_terminal exit_status; }
@test "exec --tty: the size is the caller's, and follows it" { both on_terminal size; }
@test "exec --tty: what is typed arrives once" { both on_terminal typing; }
@test "exec --tty: Ctrl-C goes to the program" { both on_terminal interrupt; }
@test "exec --tty: the modes are put back after a signal" { both on_terminal restored_after_signal; }
@test "exec --tty: the modes are put back after a timeout" { both on_terminal restored_after_timeout; }
@test "exec --tty: when the terminal hangs up, the program ends" { both on_terminal hang_up; }
@test "exec --tty: much output arrives whole" { both on_terminal much_output; }
@test "exec: without --tty Ctrl-C is for carrel" { both on_terminal without_tty_interrupt; }

# The kernel writes names to its log as they are; those of our processes are fixed, however carrel is called.
fixed_names() {
    me cp "$CARREL" "$T/car"$'\n'"rel"
    CARREL=$T/car$'\n'rel create --name box
    in_box 'cat /proc/1/comm'
    [ "$out" = carrel-init ]
    [ "$(cat "/proc/$(keeper_of box)/comm")" = carrel-keeper ]
}
@test "the processes of a sandbox have names without surprises" { both fixed_names; }
