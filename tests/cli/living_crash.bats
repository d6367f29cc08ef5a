#!/usr/bin/env bats
# shellcheck disable=SC2030,SC2031,SC2154  # cli.bash sets $status, $out and others
# Living sandboxes, and kill -9 of every process that has to do with one: its creator, its keeper, its
# init, its clients; at chosen steps and at random moments. The next command removes what they left,
# and work in a workspace is kept. And a hundred processes that want the same name.
#
#   CARREL_CRASH=N|full   points for each step (10), or every one

load cli
load living

SEED=20240611 # the delays are random, but the same every time
POINTS=${CARREL_CRASH:-10}

# $killer: tests/kill_at.c, where the user can reach it.
setup_killer() {
    killer=$T/kill_at
    install -m 755 "$(cd "$BATS_TEST_DIRNAME/../.." && pwd)/build/tests/kill_at" "$killer"
}

# kill_create GENERATION N ARG...: $status is 99 where it was over before its Nth call.
kill_create() {
    status=0
    me timeout -k 5 60 "$killer" "$1" "$2" "$CARREL" create "${@:3}" \
        >"$T/.out" 2>"$T/.err" </dev/null 9>/dev/null || status=$?
    echo "at $2: $status $(cat "$T/.out" "$T/.err")"
}

# However the last one ended: only a sandbox whose id was delivered exists, and the name is free.
recovers() {
    local told
    told=$(grep -E '^S-[0-9a-z]{16}$' "$T/.out") || true
    [ -z "$told" ] || carrel destroy "$told" # it may have been killed when it had said so
    until_true no_keeper
    create --name box
    carrel exec box -- echo works
    [ "$status:$out" = 0:works ]
    carrel destroy box
    [ "$status" -eq 0 ]
    [ -z "$(layers)" ]
}

# ---- at a chosen step ---------------------------------------------------------------------------

# Whatever it was at: on the host there is the whole file, or none.
killed_copying() {
    local total n
    setup_killer
    create
    in_box 'seq 100000 >f'
    total=$(me "$killer" 0 0 "$CARREL" cp "$id:f" f 9>&1 2>"$T/.err")
    mv "$T/f" "$T/whole"
    me mkdir to
    [ "$total" -gt 20 ]
    for ((n = 1; n <= total; n++)); do
        me "$killer" 0 "$n" "$CARREL" cp "$id:f" to/f 9>/dev/null || true
        [ -z "$(find "$T/to" -name '.*')" ]
        [ ! -e "$T/to/f" ] || cmp "$T/whole" "$T/to/f"
        me rm -f to/f
    done
}
@test "a copy to the host is killed at any step: nothing is left of half a file" { both killed_copying; }

killed_making() { # killed_making GENERATION: 0: create itself; 2: the keeper
    local total step n killed=0
    setup_killer
    carrel create --name box # what is made once is there
    carrel destroy box
    status=0
    total=$(me "$killer" "$1" 0 "$CARREL" create --name box 9>&1 >/dev/null 2>"$T/.err") || status=$?
    echo "counted $total calls, status $status: $(cat "$T/.err")"
    [ "$status" -eq 0 ]
    [ "$total" -gt 50 ]
    carrel destroy box
    recovers
    step=1
    [ "$POINTS" = full ] || step=$(((total + POINTS - 1) / POINTS))
    for ((n = 1 + SEED % step; n <= total; n += step)); do
        kill_create "$1" "$n" --name box
        if [ "$status" -eq 99 ]; then
            recovers
            continue
        fi
        killed=$((killed + 1))
        if [ "$1" = 2 ] && [ "$status" -ne 0 ]; then
            [ "$status" -eq 125 ]
            grep -q 'carrel: the keeper of the sandbox ended before the sandbox was ready' "$T/.err"
        fi
        recovers
    done
    [ "$killed" -ge 3 ]
    nothing_left
}
@test "create is killed at every step" { both killed_making 0; }
@test "the keeper is killed at every step of making its sandbox" { both killed_making 2; }

killed_with_workspace() {
    local total step n killed=0
    setup_killer
    small_repo
    carrel create --name box --repo repo --task T --run first
    carrel destroy box
    carrel workspace discard --force first
    status=0
    total=$(me "$killer" 2 0 "$CARREL" create --repo repo --task T --run count 9>&1 >/dev/null 2>"$T/.err") || status=$?
    echo "counted $total calls, status $status: $(cat "$T/.err")"
    [ "$status" -eq 0 ]
    [ "$total" -gt 50 ]
    carrel destroy --all
    step=1
    [ "$POINTS" = full ] || step=$(((total + POINTS - 1) / POINTS))
    for ((n = 1 + SEED % step; n <= total; n += step)); do
        kill_create 2 "$n" --repo repo --task T --run "r$n"
        if [ "$status" -eq 99 ]; then
            carrel destroy --all
            [ "$status" -eq 0 ]
            continue
        fi
        killed=$((killed + 1))
        until_true no_keeper
        # A lock of a reference is told from that of a git at work by its age.
        me find repo/.git -name "*.lock" -exec touch -d '1 minute ago' {} +
        carrel cleanup
        [ "$status" -eq 0 ]
        [ -z "$(me find state/carrel/workspaces/.tmp -mindepth 1 2>/dev/null)" ]
        carrel workspace discard --force "T/r$n" || true # where it had come that far
        # The name is free, and the repository sane.
        create --repo repo --task T --run "r$n"
        in_box 'echo two >>a && git commit -qam second'
        [ "$status" -eq 0 ]
        carrel destroy "$id"
        [ "$status" -eq 0 ]
        carrel workspace discard --force "T/r$n"
        [ "$status" -eq 0 ]
    done
    [ "$killed" -ge 3 ]
    me git -C repo fsck --no-dangling
    [ -z "$(me git -C repo status --porcelain)" ]
    nothing_left
}
@test "the keeper is killed at every step of making a workspace" { both killed_with_workspace; }

# ---- while it lives -----------------------------------------------------------------------------

keeper_killed() {
    local keeper init i ms
    new_tag
    RANDOM=$SEED
    for i in $(seq 1 12); do
        create --name box
        keeper=$(keeper_of "$id")
        init=$(init_of "$keeper")
        carrel exec --detach "$id" -c '(setsid sh -c "trap \"\" TERM HUP; sleep 1000; :" "$0" &) ; while :; do :; done' "$tag"
        background exec --quiet box -c 'while :; do echo line; done' "$tag"
        ms=$((RANDOM % 60))
        until_true test -s "$T/.out"
        sleep "0.0$((ms / 10))" # anywhere in the work; nothing waits for this
        kill -KILL "$keeper"
        until_true is_dead "$init"
        until_true _is_over "${_cli_pids[-1]}"
        none_left "$tag"
        carrel exec box -- true
        is_one_error 125 "carrel: no living sandbox 'box' ('carrel list' shows them)"
    done
    recovers
    nothing_left
}
@test "the keeper is killed while programs run: the sandbox ends, the name is free" { both keeper_killed; }

# No cleanup here: the next command, whichever it is, takes away what the sandbox wrote.
data_goes() {
    local keeper i
    local after=("list" "list --json" "exec box -- true" "ps box" "destroy box" "destroy --all"
        "destroy --force box" "inspect S-00000000" "create --name other")
    for i in "${!after[@]}"; do
        create --name box
        in_box 'head -c 100K /dev/zero >/tmp/x'
        [ -n "$(layers)" ]
        keeper=$(keeper_of "$id")
        kill -KILL "$keeper"
        until_true is_dead "$keeper"
        # shellcheck disable=SC2086  # words
        carrel ${after[i]}
        carrel destroy other || true
        [ -z "$(layers)" ]
        no_entry
    done
    # `list --all` leaves all as it is; the one after it does not.
    create
    kill -KILL "$(keeper_of "$id")"
    until_true no_keeper
    carrel list --all
    [[ $out == *dead* && -n "$(layers)" ]]
    carrel list
    [ -z "$(layers)" ]
}
@test "the next command removes what the sandbox of a killed keeper wrote" { both data_goes; }

# The machine was switched off: nothing in memory is left, and no process ended in order.
rebooted() {
    local next
    for next in list create; do
        create
        in_box 'head -c 100K /dev/zero >/tmp/x'
        kill -KILL "$(keeper_of "$id")"
        until_true no_keeper
        me rm -r "$S"
        [ -n "$(layers)" ]
        carrel $next
        [ "$status" -eq 0 ]
        [ "$(layers | wc -l)" -eq "$([ $next = list ] && echo 0 || echo 1)" ]
        carrel destroy --all
        [ -z "$(layers)" ]
    done
}
@test "the next list or create removes what sandboxes wrote before a reboot" { both rebooted; }

init_killed() {
    local keeper init run
    new_tag
    create --name box
    run=$(me "$CARREL" inspect "$id" | grep -o '"run":"[^"]*' | cut -d'"' -f4)
    keeper=$(keeper_of "$id")
    init=$(init_of "$keeper")
    background exec --quiet box -c 'echo ready; sleep 1000; :' "$tag"
    until_true test -s "$T/.out"
    kill -KILL "$init"
    until_true is_dead "$keeper"
    until_true _is_over "${_cli_pids[-1]}"
    none_left "$tag"
    # The keeper had time to write down what happened.
    carrel journal verify "$run"
    [ "$status" -eq 0 ]
    carrel runs show "$run"
    [[ $out == *infrastructure* ]]
    nothing_left
}
@test "init is killed: the keeper records it and exits" { both init_killed; }

work_kept() {
    local keeper
    small_repo
    create --repo repo --task T --run R
    in_box 'echo two >>a; git commit -qam second; echo three >b'
    background exec --quiet "$id" -c 'i=0; while :; do i=$((i + 1)); echo $i >n; git add n; git commit -qm $i; echo $i; done'
    until_true grep -q 3 "$T/.out"
    keeper=$(keeper_of "$id")
    kill -KILL "$keeper"
    until_true _is_over "${_cli_pids[-1]}"
    nothing_left
    carrel workspace diff R
    [ "$status" -eq 0 ]
    [[ $out == *+two* && $out == *+three* && $out == *"b/n"* ]]
    [ -z "$(me git -C repo status --porcelain)" ]
    carrel workspace commit R
    [ "$status" -eq 0 ]
    me git -C repo fsck --no-dangling
}
@test "work in a workspace survives the keeper" { both work_kept; }

clients_killed() {
    local i ms signal
    new_tag
    RANDOM=$SEED
    create --name box
    for i in $(seq 1 40); do
        ms=$((RANDOM % 50 + 1))
        me timeout --foreground -s KILL "$(printf '0.%03d' "$ms")" "$CARREL" exec --quiet box \
            -c 'trap "" TERM HUP; while :; do echo line; done' "$tag" >/dev/null 2>&1 </dev/null || true
    done
    none_left "$tag"
    says 'r["processes"] == 0'
    carrel destroy box
    for i in $(seq 1 40); do
        ms=$((RANDOM % 60 + 1))
        signal=$([ $((i % 2)) -eq 0 ] && echo KILL || echo TERM)
        me timeout --foreground -s "$signal" "$(printf '0.%03d' "$ms")" "$CARREL" create >>"$T/told" 2>/dev/null </dev/null || true
        id=$(tail -n 1 "$T/told")
        me timeout --foreground -s KILL "$(printf '0.%03d' "$((ms / 4 + 1))")" "$CARREL" destroy "$id" >/dev/null 2>&1 </dev/null || true
    done
    # Nothing else is left: there is no `destroy --all` here.
    while read -r id; do
        carrel destroy "$id" # it may be gone
    done <"$T/told"
    until_true no_keeper
    [ -z "$(layers)" ]
    nothing_left
}
@test "exec, create and destroy are killed at random moments" { both clients_killed; }

# stuck ARG...: a carrel that cannot write what it has to say, for its pipe is full; $pid.
stuck() {
    me sh -c 'rm -f full; mkfifo full; exec 5<>full; head -c 65536 /dev/zero >&5; exec "$0" "$@" >&5' \
        "$CARREL" "$@" 2>"$T/.err" </dev/null 3>&- &
    _follow_exec $!
}
standing() { # standing N: so many
    carrel list --json
    holds "len(r['sandboxes']) == $1 and all(s['state'] == 'running' for s in r['sandboxes'])"
}

workspaces() { # workspaces N: so many
    carrel workspace list --json
    holds "len(r['workspaces']) == $1"
}

# The sandbox is ready, and its id is not printed yet.
untold() {
    local signal
    small_repo
    for signal in KILL TERM; do
        stuck create --repo repo
        until_true standing 1
        kill -"$signal" "$pid"
        until_true no_keeper
        no_entry
        [ -z "$(layers)" ]
        workspaces 0
    done
    status=0
    me sh -c 'exec "$0" create >/dev/full' "$CARREL" 2>"$T/.err" || status=$?
    [ "$status" -eq 125 ]
    until_true no_keeper
    nothing_left
}
@test "a sandbox whose id was not delivered ends with its requester" { both untold; }

untold_forks() {
    local first args
    small_repo
    create --repo repo --on-success discard
    first=$id
    in_box 'echo two >>a; echo x >/tmp/x'
    for args in "-n 3" "--json -n 3"; do
        # shellcheck disable=SC2086  # words
        stuck fork $args "$first"
        until_true standing 4
        kill -KILL "$pid"
        until_true standing 1
        until_true workspaces 1
        carrel exec --detach "$first" -- sleep 1000 # the second time what was written is copied
    done
    carrel destroy "$first"
    [ "$status:$(layers)" = 0: ]
    nothing_left
}
@test "forks whose ids were not delivered end with their requester" { both untold_forks; }

# The number of a dead keeper may be another process's by now, which must not be killed.
recycled() {
    local keeper bystander=0 i
    create --name box
    keeper=$(keeper_of "$id")
    kill -KILL "$keeper"
    until_true is_dead "$keeper"
    until_true test ! -e "/proc/$keeper"
    for i in $(seq 1 200); do
        echo $((keeper - 1)) >/proc/sys/kernel/ns_last_pid 2>/dev/null || skip "numbers of processes cannot be chosen here"
        sleep 1000 3>&- &
        bystander=$!
        disown # the shell gets confused by numbers that come twice
        [ "$bystander" -ne "$keeper" ] || break
        kill -KILL "$bystander" # before exec it is a copy of this shell, whose traps must not run
    done
    [ "$bystander" -eq "$keeper" ] || skip "another process got the number"
    carrel destroy --force box
    is_one_error 125 "carrel: no living sandbox 'box'*"
    carrel destroy --all --force
    [ "$status" -eq 0 ]
    nothing_left
    [[ "$(tr '\0' ' ' <"/proc/$bystander/cmdline")" == "sleep 1000 " ]]
    kill -KILL "$bystander"
}
@test "a process that has got the number of a dead keeper is left alone" { only root recycled; }

# ---- many at once -------------------------------------------------------------------------------

# One client: makes it, uses it, ends it, and counts what came of it. All refusals have a reason.
client='
carrel=$0 n=$1 made=0 used=0
for i in 1 2 3 4; do
    id=$("$carrel" create --name same --env WHOSE=$n 2>>err.$n) && made=$((made + 1))
    # By its name the sandbox of any client; by its id only our own.
    said=$("$carrel" exec --quiet same -c "echo \$WHOSE" 2>>err.$n </dev/null) && used=$((used + 1))
    if [ -n "$id" ]; then
        said=$("$carrel" exec --quiet "$id" -c "echo \$WHOSE" 2>>err.$n </dev/null) &&
            [ "$said" != "$n" ] && echo "wrong sandbox: $said instead of $n"
        "$carrel" destroy "$id" 2>>err.$n
    elif [ "$((n % 10)):$i" = 0:2 ]; then
        "$carrel" destroy same 2>>err.$n
    fi
done
echo "client $n made $made used $used"
'
hundred() {
    local i jobs=()
    me mkdir clients
    for i in $(seq 1 100); do
        me env -C "$T/clients" timeout -k 5 300 sh -c "$client" "$CARREL" "$i" >"$T/client.$i" 2>&1 </dev/null &
        jobs[i]=$!
    done
    for i in $(seq 1 100); do
        wait "${jobs[i]}"
    done
    cat "$T"/clients/err.* | sed "s/S-[0-9a-z]*/S-ID/" | sort | uniq -c | sort -rn | head -8
    [ "$(grep -l '^client' "$T"/client.* | wc -l)" -eq 100 ]
    not grep -h 'wrong sandbox' "$T"/client.*
    [ "$(cat "$T"/client.* | awk '{ made += $4; used += $6 } END { print (made > 0 && used > 0) }')" -eq 1 ]
    # Reasons for a refusal: another client has the name, the sandbox has ended, or is about to.
    cat "$T"/clients/err.* | grep -vE "is named 'same'|no living sandbox|[Tt]he sandbox (has )?(just )?ended|is gone|^carrel: note: |^$" >"$T/odd" || true
    cat "$T/odd"
    [ ! -s "$T/odd" ]
    carrel destroy --all
    [ "$status" -eq 0 ]
    nothing_left
}
@test "a hundred create, use and destroy the same name at once" { both hundred; }
