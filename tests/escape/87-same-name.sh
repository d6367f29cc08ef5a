# shellcheck shell=bash disable=SC2034,SC2154
# A name is reused: a client of the old sandbox must never reach the new one.
# shellcheck source=living.sh
source "$here/living.sh"

shared=same-$$
prepare() { install -m 755 "$built/../file_storm" "$A/file_storm"; }

# Without carrel a worker is a process known by a pid in a file, or a directory by its name.
bare() {
    me mkdir "$T/box"
    local handle=$T/box
    me rm -r "$T/box"
    me mkdir "$T/box"
    me sh -c 'echo secret >"$1/file"' - "$T/box"
    if [ "$(me cat "$handle/file")" = secret ]; then echo "SUCCEEDED old-name"; fi
}

control() {
    settle --name "$shared"
    [ "$(ask exec --quiet "$shared" -- echo by name)" = "by name" ] && echo "WORKS by-name"
    [ "$(at_home -- echo by id)" = "by id" ] && echo "WORKS by-id"
    ask destroy "$shared" && echo "WORKS destroy"
}

# reached WHAT COMMAND...: COMMAND prints what it finds in the sandbox that it reaches.
reached() {
    local what=$1 said
    shift
    said=$("$@" 2>/dev/null) || true
    if [[ $said == *secret* ]]; then
        echo "SUCCEEDED $what"
    else
        echo "REFUSED $what"
    fi
}

# hold NAME LINE: a client of the old sandbox that is stopped while it is connected, so that it
# still is when the name belongs to another sandbox. LINE prints READY; its input is $T/go.
hold() {
    start "$1" me env XDG_STATE_HOME="$T/state" XDG_CONFIG_HOME="$T/config" \
        /bin/sh -c "echo PID \$\$; exec <'$T/go'; $2" "$tool" "$shared" "$A/file_storm"
    held_pids[$1]=$(sed -n 's/^PID //p' "$T/$1.out")
    until is_connected "$1"; do alive "$1" || break; done
    kill -STOP "${held_pids[$1]}"
}
is_connected() { [ -n "$(find "/proc/${held_pids[$1]}/fd" -lname 'socket:*' 2>/dev/null)" ]; }

# let_go NAME...: they continue; what they found is in their output.
let_go() {
    local name
    for name in "$@"; do
        grep -q '^State:.T' "/proc/${held_pids[$name]}/status" || echo "OTHER $name has ended before the change"
        is_connected "$name" || echo "OTHER $name is not connected"
        kill -CONT "${held_pids[$name]}"
    done
    echo go >&7
    for name in "$@"; do
        wait "${jobs[$name]}" 2>/dev/null || true
        reached "$name" cat "$T/$name.out"
    done
}

# A signal is identified by what its receiver writes: `old` if it was sent to the old one, else
# `own`.
signalled() {
    local process
    process=$(ask exec --detach "$id" -- /bin/sh -c 'trap "echo old >>/tmp/got" USR1
        trap "echo own >>/tmp/got" USR2; echo >/tmp/ready; while :; do sleep 0.05 & wait; done')
    at_home -- /bin/sh -c 'until [ -e /tmp/ready ]; do sleep 0.01; done'
    ask signal "$1" "$process" USR1 2>/dev/null && echo "SUCCEEDED signal-by-old-id is taken"
    # A signal of our own after it: earlier ones have then arrived, too.
    ask signal "$id" "$process" USR2
    at_home -- /bin/sh -c 'until grep -q own /tmp/got 2>/dev/null; do sleep 0.01; done; cat /tmp/got'
}

attack() {
    local old said
    local -A held_pids=()
    settle --name "$shared"
    old=$id
    at_home -- /bin/sh -c 'echo inside >/tmp/file'
    me mkfifo "$T/go"
    exec 7<>"$T/go"
    # Connections from before: one whose program reads, one that asks for files.
    hold old-connection 'exec "$0" exec --quiet --stdin "$1" -c "echo READY; read line; cat /tmp/file"'
    hold old-files 'echo READY; exec "$2" "$1" /tmp 40000'
    ask destroy "$shared"
    settle --name "$shared"
    at_home -- /bin/sh -c 'echo secret >/tmp/file'
    reached old-name ask exec --quiet "$old" -- cat /tmp/file
    reached beginning-of-old-id ask exec --quiet "${old:0:8}" -- cat /tmp/file
    reached file-by-old-id ask cat "$old:/tmp/file"
    let_go old-connection old-files
    grep -q '^CALLS' "$T/old-files.out" || echo "OTHER old-files did not go on"
    exec 7>&-
    said=$(signalled "$old")
    if [ "$said" = own ]; then echo "REFUSED signal"; else echo "SUCCEEDED signal $said"; fi
    ask pause "$old" 2>/dev/null && echo "SUCCEEDED pause-by-old-id"
    ask destroy "$old" 2>/dev/null && echo "SUCCEEDED destroy-by-old-id"
    if [ "$(at_home -- cat /tmp/file)" = secret ]; then
        echo "REFUSED change-of-the-new-one"
    else
        echo "SUCCEEDED change-of-the-new-one"
    fi
    ask destroy "$shared"
}

# Each creates one with its own mark, forks it, and asks both by their ids only: they have its mark,
# or have ended. A client that does not get the name forks whatever has it, and every tenth ends
# that.
racer='
n=$1 name=$2 tool=$3
look() { # look ID: ours, or ended
    said=$("$tool" exec --quiet "$1" -c "echo \$WHOSE" 2>/dev/null </dev/null)
    [ -z "$said" ] || [ "$said" = "$n" ] || echo "SUCCEEDED race $n reached the sandbox of $said"
    [ "$said" != "$n" ] || echo "$2"
}
for i in 1 2; do
    id=$("$tool" create --name "$name" --label race="$name" --env WHOSE="$n" 2>/dev/null) || id=
    if [ -n "$id" ]; then
        look "$id" MINE
        fork=$("$tool" fork --inherit-env "$id" 2>/dev/null) && look "$fork" FORKED
        look "$id" MINE
        "$tool" destroy "$id" $fork 2>/dev/null
    elif [ "$((n % 10))" = "$i" ]; then
        "$tool" destroy "$name" 2>/dev/null
    elif [ "$((n % 10))" = "$((i + 2))" ]; then
        fork=$("$tool" fork "$name" 2>/dev/null) && "$tool" destroy "$fork" 2>/dev/null
    fi
done
'
race() {
    local i pids=() left rounds=${1:-5}
    for i in $(seq 1 100); do
        me timeout -k 5 120 env XDG_STATE_HOME="$T/state" XDG_CONFIG_HOME="$T/config" \
            /bin/sh -c "$racer" sh "$i" "$shared-race" "$tool" >"$T/race.$i" 2>&1 </dev/null &
        pids+=($!)
    done
    wait "${pids[@]}" || true
    grep -h SUCCEEDED "$T"/race.* || true
    # Others end the name all the time: on a busy machine no client may get that far.
    if [ "$rounds" -gt 1 ] && ! grep -qx FORKED "$T"/race.*; then
        race $((rounds - 1))
        return
    fi
    grep -qx MINE "$T"/race.* || echo "OTHER race no client ever used one"
    grep -qx FORKED "$T"/race.* || echo "OTHER race no client ever used a fork"
    # Each ended what it created.
    left=$(ask list --label "race=$shared-race" --json | grep -o '"id":"[^"]*' | cut -d'"' -f4)
    [ -z "$left" ] || echo "SUCCEEDED race some are left: $left"
    # shellcheck disable=SC2086
    [ -z "$left" ] || ask destroy $left 2>/dev/null || true
    echo "REFUSED race"
}

more() {
    all_attempts=no
    held "a hundred make, use, fork and end one name" race
}
clean_up() { ask destroy --force "$shared" >/dev/null 2>&1 || true; }
