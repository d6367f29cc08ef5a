# shellcheck shell=bash disable=SC2034,SC2119,SC2154
# One program after the other in a sandbox that stays: the next finds files, and nothing else of those
# before it. Another sandbox does not even find those.
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

# Without carrel: a worker that goes on as the next program.
bare() {
    local before after
    before=$(me "$A/90-left-state" facts)
    after=$(me env ALONE=1 "$A/90-left-state" leave "$A/90-left-state" facts)
    differences "$before" "$after" | grep -v '^REFUSED'
}

attack() {
    local before after
    live
    before=$(inside -- /attacks/90-left-state facts)
    inside -- /attacks/90-left-state leave /attacks/90-left-state facts >/dev/null 2>&1 || true
    inside --env LEFT=here -- /attacks/90-left-state leave >/dev/null 2>&1 || true
    # As root inside, it has the id of init.
    [ "$who" = user ] || inside --user root -- /attacks/90-left-state leave >/dev/null 2>&1 || true
    after=$(inside -- /attacks/90-left-state facts)
    differences "$before" "$after"
    ask destroy "$id"
}

# What is meant to stay, and with whom.
shared() {
    local first
    live
    first=$id
    inside -- /bin/sh -c 'for d in /tmp /dev/shm /run ~ /workspace; do echo left >"$d/left"; done; ipcmk -M 100 >/dev/null'
    for place in /tmp /dev/shm /run /home/agent /workspace; do
        [ "$(inside -- cat "$place/left")" = left ] || echo "OTHER $place is not there for the next program"
    done
    live
    for place in /tmp /dev/shm /run /home/agent /workspace; do
        if inside -- test -e "$place/left"; then
            echo "SUCCEEDED other-sandbox$place"
        else
            echo "REFUSED other-sandbox$place"
        fi
    done
    if inside -- ipcs -m | grep -q 0x; then echo "SUCCEEDED other-sandbox-memory"; else echo "REFUSED other-sandbox-memory"; fi
    if [ "$(inside -- sh -c 'ls -d /proc/[0-9]* | wc -l')" -gt 4 ]; then
        echo "SUCCEEDED other-sandbox-processes"
    else
        echo "REFUSED other-sandbox-processes"
    fi
    ask destroy "$id" "$first"
}

more() { held "files stay in their own sandbox" shared; }
