# shellcheck shell=bash disable=SC2034,SC2154
# A name that is used again: who held the old sandbox must never reach the new one.
# shellcheck source=living.sh
source "$here/living.sh"

shared=same-$$

# Without carrel a worker is a process that is known by a number in a file, or a directory by name.
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

attack() {
    local old
    settle --name "$shared"
    old=$id
    # One connection from before, whose program will end after the change.
    start held ask exec --quiet "$shared" -- /bin/sh -c 'echo READY; read line; cat /tmp/file'
    ask destroy "$shared"
    settle --name "$shared"
    at_home -- /bin/sh -c 'echo secret >/tmp/file'
    reached old-id ask exec --quiet "$old" -- cat /tmp/file
    reached beginning-of-old-id ask exec --quiet "${old:0:8}" -- cat /tmp/file
    wait "${jobs[held]}" 2>/dev/null || true
    reached old-connection cat "$T/held.out"
    reached old-name ask signal "$old" 1
    ask pause "$old" 2>/dev/null && echo "SUCCEEDED pause-by-old-id"
    ask destroy "$old" 2>/dev/null && echo "SUCCEEDED destroy-by-old-id"
    if [ "$(at_home -- cat /tmp/file)" = secret ]; then
        echo "REFUSED change-of-the-new-one"
    else
        echo "SUCCEEDED change-of-the-new-one"
    fi
    ask destroy "$shared"
}

# Each makes one with its own mark, and asks by its own id only.
racer='
n=$1 name=$2 tool=$3
for i in 1 2 3 4 5 6; do
    id=$("$tool" create --name "$name" --env WHOSE="$n" 2>/dev/null) || id=
    if [ -z "$id" ]; then
        [ "$((n % 10)):$i" != 0:2 ] || "$tool" destroy "$name" 2>/dev/null
        continue
    fi
    said=$("$tool" exec --quiet "$id" -c "echo \$WHOSE" 2>/dev/null </dev/null)
    [ -z "$said" ] || [ "$said" = "$n" ] || echo "SUCCEEDED race $n reached the sandbox of $said"
    [ "$said" != "$n" ] || echo "MINE"
    "$tool" destroy "$id" 2>/dev/null
done
'
race() {
    local i pids=()
    for i in $(seq 1 40); do
        me timeout -k 5 120 env XDG_STATE_HOME="$T/state" XDG_CONFIG_HOME="$T/config" \
            /bin/sh -c "$racer" sh "$i" "$shared-race" "$tool" >"$T/race.$i" 2>&1 </dev/null &
        pids+=($!)
    done
    wait "${pids[@]}" || true
    grep -h SUCCEEDED "$T"/race.* || true
    grep -qx MINE "$T"/race.* || echo "OTHER race nobody ever used one"
    ask destroy "$shared-race" 2>/dev/null || true
    echo "REFUSED race"
}

more() {
    all_attempts=no
    held "forty make, use and end one name" race
}
clean_up() { ask destroy --force "$shared" >/dev/null 2>&1 || true; }
