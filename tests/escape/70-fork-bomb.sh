# shellcheck shell=bash disable=SC2034,SC2119,SC2154
# shellcheck source=living.sh
source "$here/living.sh"

# Without carrel it stops by itself, at a harmless number.
prepare() {
    bare_args=(400)
    args=(5000)
    options=(--pids 64)
    [ "$who" = root ] || options+=(--best-effort pids)
}

wild_bomb() {
    local status=0
    limit=4s
    start sibling box -- /bin/sh -c 'echo READY; while :; do /bin/true || echo STARVED; done'
    start bomb box --env "MARK=bomb-$$" -- /attacks/70-fork-bomb wild
    within 10 me /bin/true
    within 10 box -- /bin/true
    within 15 wait "${jobs[bomb]}" || status=$?
    [ "$status" -eq 124 ] || echo "OTHER wild-bomb status $status"
    if grep -q STARVED "$T/sibling.out"; then echo "SUCCEEDED wild-bomb starves a sibling"; fi
    if [ -z "$(marked "MARK=bomb-$$")" ]; then
        echo "REFUSED wild-bomb"
    else
        echo "SUCCEEDED wild-bomb something is left"
    fi
}

# In a living sandbox every request gets an answer, if only that there is no room.
living_bomb() {
    local status=0
    limit=60s
    start sibling box -- /bin/sh -c 'echo READY; while :; do /bin/true || echo STARVED; done'
    settle
    ask exec --detach --env "MARK=living-$$" "$id" -- /attacks/70-fork-bomb wild >/dev/null
    within 10 ask ps "$id" >/dev/null || echo "SUCCEEDED living-bomb ps has no answer"
    within 10 at_home -- /bin/true 2>/dev/null || status=$?
    [ "$status" -eq 0 ] || [ "$status" -eq 125 ] || echo "SUCCEEDED living-bomb exec: status $status"
    within 10 ask inspect "$id" >/dev/null || echo "SUCCEEDED living-bomb inspect has no answer"
    within 10 box -- /bin/true
    within 10 ask pause "$id" || echo "SUCCEEDED living-bomb cannot be paused"
    within 10 ask resume "$id" || echo "SUCCEEDED living-bomb cannot be resumed"
    destroyed "MARK=living-$$" living-bomb
    if grep -q STARVED "$T/sibling.out"; then echo "SUCCEEDED living-bomb starves a sibling"; fi
}

more() {
    all_attempts=no
    held "a bomb without end: host and sibling go on, nothing is left" wild_bomb
    held "a bomb in a sandbox that stays: it answers, destroy does not hang and leaves nothing" living_bomb
    echo "# $title, as $who: destroy took $(cat "$T/.took"); printed, not judged: 1 s is the aim"
    local count
    count=$(box --json -- /attacks/70-fork-bomb attack 5000 | field pids_refused) || true
    if [ "$who" = root ]; then
        check "$title, as $who: the result counts what was refused" [ "${count:-0}" -gt 0 ]
    fi
}
