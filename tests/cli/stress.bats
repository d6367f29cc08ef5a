#!/usr/bin/env bats
# shellcheck disable=SC2030,SC2031,SC2154  # cli.bash sets $status, $out and others
# Many at once, and carrel killed at moments of no one's choosing.

load cli

SEED=20240607 # the delays below are random, but the same every time

hundred_at_once() {
    local i jobs=()
    new_tag
    me mkdir results
    for i in $(seq 1 100); do
        me timeout -k 5 300 "$CARREL" run --quiet --env N="$i" \
            -c 'echo "out $N"; echo "err $N" >&2; echo "$N" >/workspace/n; cat /workspace/n; exit "$N"' "$tag" \
            >"$T/results/$i.out" 2>"$T/results/$i.err" </dev/null &
        jobs[i]=$!
    done
    for i in $(seq 1 100); do
        status=0
        wait "${jobs[i]}" || status=$?
        [ "$status" -eq "$i" ] || {
            echo "run $i ended with $status: $(cat "$T/results/$i.err")"
            false
        }
        [ "$(cat "$T/results/$i.out")" = "out $i"$'\n'"$i" ]
        [ "$(cat "$T/results/$i.err")" = "err $i" ]
    done
    none_left "$tag"
}
@test "100 runs at once are all correct" { both hundred_at_once; }

# ---- kill -9 ------------------------------------------------------------------------------------

nothing_stale() { [ -z "$(stale)" ]; }

# What a crash left, the next command takes away.
recovers() {
    none_left "$tag"
    carrel run -- true
    [ "$status" -eq 0 ]
    carrel cleanup
    [ "$status" -eq 0 ]
    until_true nothing_stale || {
        stale
        return 1
    }
    grep -v ' /sys/fs/cgroup' /proc/self/mountinfo | grep -F "$T" && return 1
    # Skeletons of roots are shared, also with sandboxes of other tests.
    [ -z "$(find /run/carrel /tmp/carrel-"$(me id -u)" -mindepth 1 ! -name lock ! -path '*/root-*' \
        ! -path '*/old-*' ! -path '*/new-*' ! -path '*/sandboxes' ! -path '*/sandboxes/*' \
        ! -name watches ! -path '*/writable' ! -path '*/writable/*' 2>/dev/null)" ]
    # No file but what is recorded.
    [ -z "$(find "$T/state" ! -type d ! -path "$T/state/carrel/runs/*" 2>/dev/null)" ]
}

killed_at_random() {
    local ms
    new_tag
    me mkdir w
    RANDOM=$SEED
    for _ in $(seq 1 120); do
        ms=$((RANDOM % 60 + 1))
        # --foreground: the signal is for carrel alone, not for its process group.
        status=0
        me timeout --foreground -s KILL "$(printf '0.%03d' "$ms")" "$CARREL" run --quiet --workdir w \
            -c '(setsid sh -c "trap \"\" TERM; exec sleep 1000" "$1" &); trap "" TERM HUP; sleep 1000' "$tag" \
            >/dev/null 2>&1 </dev/null || status=$?
        [ "$status" -eq 137 ]
    done
    recovers
}
@test "carrel killed 120 times at random moments: nothing is left" { both killed_at_random; }

killed_with_output() {
    # While output flows, while it is recorded in a file, while the result is being written.
    local ms
    new_tag
    RANDOM=$((SEED + 1))
    for _ in $(seq 1 40); do
        ms=$((RANDOM % 80 + 5))
        me timeout --foreground -s KILL "$(printf '0.%03d' "$ms")" "$CARREL" run --quiet --json \
            --output r.json -c 'seq 1 200000; seq 1 200000 >&2' "$tag" >/dev/null 2>&1 </dev/null || true
        # The result is there whole or not at all.
        [ ! -e "$T/r.json" ] || /usr/bin/python3 -m json.tool "$T/r.json" >/dev/null
        rm -f "$T/r.json"
    done
    none_left "$tag"
}
@test "carrel killed while it writes leaves a whole result or none" { both killed_with_output; }

init_killed() {
    new_tag
    background run --json -c 'echo ready; sleep 1000 & sleep 1000' "$tag"
    until_true has_children "$pid"
    local init
    init=$(children_of "$pid")
    until_true has_children "$init"
    kill -KILL "$init"
    ended
    [ "$status" -ne 0 ]
    [ "$(wc -l <"$T/.out")" -eq 1 ]
    holds 'not r["ok"]'
    none_left "$tag"
}
children_of() {
    local text
    text=$(cat "/proc/$1/task/$1/children" 2>/dev/null) || true
    echo "${text%% *}"
}
has_children() { [ -n "$(children_of "$1")" ]; }
@test "when init is killed from outside, carrel says so and nothing is left" { both init_killed; }

program_kills_all() {
    new_tag
    carrel run --json -c 'kill -9 -1; kill -9 1; exit 3' "$tag"
    holds 'r["reason"] in ("signaled", "exited")'
    carrel run --json --user root -c 'kill -9 -1; kill -9 1; kill -TERM 1; exit 3' "$tag"
    holds 'r["reason"] in ("signaled", "exited")'
    none_left "$tag"
}
@test "a program that kills all it can reach ends only itself" { both program_kills_all; }

parent_killed() {
    # The caller of carrel dies; carrel was not told to: it goes on, as any command.
    new_tag
    me mkdir w
    me mkfifo w/go
    me sh -c '"$1" run --quiet --workdir w -c "echo started >s; cat go; echo done >d" "$2" >/dev/null 2>&1 & wait' \
        sh "$CARREL" "$tag" >/dev/null 2>&1 </dev/null &
    _cli_pids+=($!)
    until_true test -s "$T/w/s"
    kill -KILL "$!"
    echo >"$T/w/go"
    until_true test -s "$T/w/d"
    none_left "$tag"
}
@test "carrel outlives its caller, and then ends cleanly" { both parent_killed; }

crowded_and_killed() {
    # Many at once, all killed at once, together with those that sweep after the dead.
    local i jobs=()
    new_tag
    for i in $(seq 1 30); do
        me timeout --foreground -s KILL "$(printf '0.%03d' $((i * 7)))" "$CARREL" run --quiet \
            -c 'sleep 1000' "$tag" >/dev/null 2>&1 </dev/null &
        jobs[i]=$!
    done
    for i in $(seq 1 30); do
        wait "${jobs[i]}" || true
    done
    recovers
}
@test "many killed at once" { both crowded_and_killed; }
