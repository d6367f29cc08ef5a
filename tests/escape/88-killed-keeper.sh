# shellcheck shell=bash disable=SC2034,SC2154
# kill -9 of who keeps a sandbox, at any moment: nothing outlives it, nothing stays behind.
# shellcheck source=living.sh
source "$here/living.sh"

mark=MARK=orphan-$$
prepare() { all_attempts=no; }

# Without carrel: a supervisor with a child in a session of its own.
bare() {
    local pid
    me env "$mark" sh -c 'setsid sleep 1000 >/dev/null 2>&1 & kill -9 $$' >/dev/null 2>&1 || true
    if [ -n "$(marked "$mark")" ]; then echo "SUCCEEDED outlives-its-keeper"; fi
    for pid in $(marked "$mark"); do kill -KILL "$pid" || true; done
}

control() {
    settle
    [ "$(at_home -- echo fine)" = fine ] && echo "WORKS exec"
    ask destroy "$id" && echo "WORKS destroy"
}

gone() { # gone WHAT: sooner or later, and then for good
    local i
    for ((i = 0; i < 200; i++)); do
        [ -n "$(marked "$mark")" ] || break
        sleep 0.05
    done
    if [ -n "$(marked "$mark")" ]; then
        echo "SUCCEEDED $1 something runs on"
    elif ask exec "$id" -- true 2>/dev/null; then
        echo "SUCCEEDED $1 it still answers"
    else
        echo "REFUSED $1"
    fi
}

attack() {
    local n keeper
    RANDOM=7
    for n in 1 2 3 4 5 6 7 8; do
        settle --env "$mark"
        keeper=$(ask inspect "$id" | field pid)
        ask exec --detach "$id" -- /bin/sh -c 'setsid sh -c "trap \"\" TERM; sleep 1000; :" & while :; do :; done' >/dev/null
        ask exec --detach "$id" -- /attacks/75-stubborn attack linger >/dev/null
        [ "$n" -lt 5 ] || ask pause "$id"
        sleep "0.0$((RANDOM % 10))" # somewhere; nothing waits for this
        kill -KILL "$keeper"
        gone "kill-$n"
    done
    # What the dead left goes with the next command.
    ask cleanup >/dev/null
    local dir=/run/carrel/sandboxes
    [ "$who" = root ] || dir=/tmp/carrel-$(me id -u)/sandboxes
    if [ -e "$dir/$id" ]; then
        echo "SUCCEEDED entry is left"
    else
        echo "REFUSED entry"
    fi
}
clean_up() { ask cleanup >/dev/null 2>&1 || true; }
