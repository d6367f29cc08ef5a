#!/usr/bin/env bats
# shellcheck disable=SC2030,SC2031,SC2154  # cli.bash sets $status, $out and others
# Signals to carrel, and terminals.

load cli

# ready_run OPTION... -c LINE: in the background, until the program has said "ready". bash starts
# background jobs with SIGINT ignored; a terminal would not.
ready_run() {
    new_tag
    : >"$T/.out"
    me env --default-signal=INT,QUIT "$CARREL" run "$@" "$tag" >"$T/.out" 2>"$T/.err" </dev/null 3>&- &
    _follow_exec $!
    until_true grep -q '^ready$' "$T/.out"
}

each_signal() {
    local sig
    for sig in INT TERM HUP QUIT; do
        ready_run -c 'echo ready; sleep 1000 & sleep 1000'
        kill "-$sig" "$pid"
        ended
        [ "$status" -eq $((128 + $(kill -l "$sig"))) ]
        none_left "$tag"
    done
}
@test "SIGINT, SIGTERM, SIGHUP and SIGQUIT end the sandbox; the status is 128+n" { both each_signal; }

# The signal is pending when carrel starts, and a policy with a fallback makes it wait for the sandbox.
before_it_is_ready() {
    echo 'sandbox: {type: docker, fallback: [local]}' >"$T/p.yaml"
    chmod 644 "$T/p.yaml"
    carrel_by() { me /usr/bin/python3 -c 'import os, signal, sys
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
os.kill(os.getpid(), signal.SIGTERM)
os.execv(sys.argv[1], sys.argv[1:])' "$CARREL" "$@"; }
    status=0
    carrel_by run --policy "$T/p.yaml" --timeout 60s --json -- sleep 1000 >"$T/.out" || status=$?
    [ "$status" -eq 143 ]
    holds 'r["reason"] == "cancelled" and not r["ok"] and r["runtime"] == "local"'
}
@test "a signal before the sandbox is ready cancels the run" { both before_it_is_ready; }

stubborn() {
    local begin=$SECONDS
    ready_run -c 'trap "" TERM INT; echo ready; (setsid sh -c "trap \"\" TERM; sleep 1000" &); while :; do sleep 1; done'
    kill -TERM "$pid"
    ended
    [ "$status" -eq 143 ]
    [ $((SECONDS - begin)) -le 15 ]
    none_left "$tag"
}
@test "a program that ignores signals ends all the same" { both stubborn; }

goodbye() {
    ready_run -c 'trap "echo bye; exit 0" TERM; echo ready; while :; do sleep 0.05; done'
    kill -TERM "$pid"
    ended
    [ "$status" -eq 143 ]
    [ "$out" = $'ready\nbye' ]
}
@test "the program gets SIGTERM and may say goodbye" { both goodbye; }

result_of_cancelled() {
    new_tag
    me mkdir w
    me env "$CARREL" run --json --workdir "$T/w" -c 'echo half; touch ready; sleep 1000' "$tag" \
        >"$T/.out" 2>"$T/.err" </dev/null 3>&- &
    _follow_exec $!
    until_true test -e "$T/w/ready"
    kill -TERM "$pid"
    ended
    [ "$status" -eq 143 ]
    [ "$(wc -l <"$T/.out")" -eq 1 ]
    holds 'r["reason"] == "cancelled" and r["stdout"] == "half\n" and not r["ok"]'
    none_left "$tag"
}
@test "a run that was cut short still has a result, with what it printed" { both result_of_cancelled; }

early_signal() {
    # At any moment of the start: the status is the signal's, and nothing is left.
    local i delay
    new_tag
    for i in $(seq 1 25); do
        status=0
        delay=$(printf '0.%03d' $((i * 3)))
        me timeout --signal=TERM -k 30 "$delay" "$CARREL" run --quiet -c 'sleep 1000' "$tag" \
            </dev/null >"$T/.out" 2>"$T/.err" || status=$?
        echo "after $delay s: $status: $(cat "$T/.err")"
        # 124 is timeout's way of saying that it had to signal.
        [ "$status" -eq 124 ]
    done
    none_left "$tag"
}
@test "a signal at any moment of the start ends the run" { both early_signal; }

twice() {
    ready_run -c 'trap "" TERM; echo ready; while :; do sleep 1; done'
    kill -TERM "$pid"
    kill -TERM "$pid" 2>/dev/null || true
    kill -INT "$pid" 2>/dev/null || true
    ended
    [ "$status" -eq 143 ] || [ "$status" -eq 130 ]
    none_left "$tag"
}
@test "signals that come twice do no harm" { both twice; }

nohup_is_kept() {
    new_tag
    me mkdir w
    me mkfifo w/go
    me env --ignore-signal=HUP "$CARREL" run --workdir "$T/w" -c 'echo ready; cat go; exit 6' "$tag" \
        >"$T/.out" 2>"$T/.err" </dev/null 3>&- &
    _follow_exec $!
    until_true grep -q '^ready$' "$T/.out"
    kill -HUP "$pid"
    echo go >"$T/w/go"
    ended
    [ "$status" -eq 6 ]
    [ "$out" = $'ready\ngo' ]
}
@test "a signal that the caller ignores stays ignored: nohup carrel run" { both nohup_is_kept; }

clean_signals() {
    # Whatever the caller ignores or blocks, the program starts with a clean slate.
    status=0
    me env --ignore-signal=PIPE,USR1,TERM,CHLD,INT --block-signal=USR2,ALRM "$CARREL" run --quiet \
        -c 'grep -E "^Sig(Blk|Ign)" /proc/self/status' >"$T/.out" 2>"$T/.err" || status=$?
    _collect
    [ "$status" -eq 0 ]
    [ "$(grep -c '0000000000000000' "$T/.out")" -eq 2 ]
}
@test "the program starts with no signal ignored or blocked" { both clean_signals; }

stop_and_go() {
    me mkdir -p w
    ready_run --workdir w -c 'echo ready; while [ ! -e go ]; do sleep 0.05; done; exit 4'
    kill -STOP "$pid"
    until_true is_stopped "$pid"
    kill -CONT "$pid"
    me touch w/go
    ended
    [ "$status" -eq 4 ]
}
is_stopped() { [[ "$(cat "/proc/$1/stat")" == *") T "* ]]; }
@test "carrel can be stopped and go on" { both stop_and_go; }

# init cannot report what the program used; only the kernel can, if it counts that.
hung_init() {
    ready_run --output r.json -c \
        'i=0; while [ $i -lt 200000 ]; do i=$((i + 1)); done; echo ready; sleep 1000; :'
    kill -STOP "$(cut -d' ' -f1 "/proc/$pid/task/$pid/children")"
    kill -TERM "$pid"
    ended
    [ "$status" -eq 143 ]
    none_left "$tag"
    mv "$T/r.json" "$T/.out"
    holds 'r["reason"] == "cancelled" and not r["ok"]'
    if has_cgroup && { [ -e /sys/fs/cgroup/cgroup.controllers ] || [ -e /sys/fs/cgroup/cpu/cpuacct.usage ]; }; then
        holds '10 <= r["usage"]["cpu_ms"] < 60000'
    fi
}
@test "an init that hangs is killed with the programs" { both hung_init; }

# ---- terminals ----------------------------------------------------------------------------------

on_terminal() {
    # Copied: the tree may be out of the user's reach.
    install -m 644 "$BATS_TEST_DIRNAME/terminal.py" "$T/terminal.py"
    me timeout -k 5 100 /usr/bin/python3 "$T/terminal.py" "$1" "$CARREL"
}
@test "--tty: the program has a terminal of its own on all three streams" { both on_terminal is_a_terminal; }
@test "--tty: the exit status is the program's, and the modes are put back" { both on_terminal exit_status; }
@test "--tty: the size is the caller's, and follows it" { both on_terminal size; }
@test "--tty: what is typed arrives once; Ctrl-D is the end of file" { both on_terminal typing; }
@test "--tty: Ctrl-C and Ctrl-\\ go to the program" { both on_terminal interrupt; }
@test "--tty: the modes are put back after a signal" { both on_terminal restored_after_signal; }
@test "--tty: the modes are put back after a timeout" { both on_terminal restored_after_timeout; }
@test "--tty: when the terminal hangs up, carrel and the sandbox end" { both on_terminal hang_up; }
@test "--tty: much output arrives whole" { both on_terminal much_output; }
@test "--tty: works when carrel itself has no terminal" { both on_terminal piped_terminal; }
@test "without --tty Ctrl-C ends the sandbox, and the modes are never touched" {
    both on_terminal without_tty_interrupt
}
