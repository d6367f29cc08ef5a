# shellcheck shell=bash disable=SC2034,SC2119,SC2154
# One program after the other in a living sandbox: the next finds the files of earlier ones, and
# nothing else. Another sandbox does not even find those.
# shellcheck source=living.sh
source "$here/living.sh"

prepare() { all_attempts=no; }

# differences BEFORE AFTER: for each fact, whether something was left.
differences() {
    local name
    while read -r name; do
        if diff <(grep "^$name" <<<"$1") <(grep "^$name" <<<"$2") >/dev/null; then
            echo "REFUSED $name"
        else
            echo "SUCCEEDED $name $(grep "^$name" <<<"$2" || true)"
        fi
    done < <(printf '%s\n' "$1" "$2" | sed 's/[ =].*//' | sort -u)
}

# Without carrel: a worker that executes the next program.
bare() {
    local before after
    before=$(me "$A/90-left-state" facts)
    after=$(me env ALONE=1 "$A/90-left-state" leave "$A/90-left-state" facts)
    differences "$before" "$after" | grep -v '^REFUSED'
}

attack() {
    local before after
    settle
    before=$(at_home -- /attacks/90-left-state facts)
    at_home -- /attacks/90-left-state leave /attacks/90-left-state facts >/dev/null 2>&1 || true
    at_home --env LEFT=here -- /attacks/90-left-state leave >/dev/null 2>&1 || true
    # As root inside, it has the id of init.
    [ "$who" = user ] || at_home --user root -- /attacks/90-left-state leave >/dev/null 2>&1 || true
    after=$(at_home -- /attacks/90-left-state facts)
    differences "$before" "$after"
    ask destroy "$id"
}

# What is meant to stay, and for which programs.
shared() {
    local first
    settle
    first=$id
    at_home -- /bin/sh -c 'for d in /tmp /dev/shm /run ~ /workspace; do echo left >"$d/left"; done; ipcmk -M 100 >/dev/null'
    for place in /tmp /dev/shm /run /home/agent /workspace; do
        [ "$(at_home -- cat "$place/left")" = left ] || echo "OTHER $place is not there for the next program"
    done
    settle
    for place in /tmp /dev/shm /run /home/agent /workspace; do
        if at_home -- test -e "$place/left"; then
            echo "SUCCEEDED other-sandbox$place"
        else
            echo "REFUSED other-sandbox$place"
        fi
    done
    if at_home -- ipcs -m | grep -q 0x; then echo "SUCCEEDED other-sandbox-memory"; else echo "REFUSED other-sandbox-memory"; fi
    if [ "$(at_home -- sh -c 'ls -d /proc/[0-9]* | wc -l')" -gt 4 ]; then
        echo "SUCCEEDED other-sandbox-processes"
    else
        echo "REFUSED other-sandbox-processes"
    fi
    ask destroy "$id" "$first"
}

more() { held "files stay in their own sandbox" shared; }
