# shellcheck shell=bash disable=SC2034,SC2119,SC2154
# shellcheck source=living.sh
source "$here/living.sh"

mark=MARK=stubborn-$$

prepare() { all_attempts=no; }

end_marked() {
    local pid
    for pid in $(marked "$mark"); do
        kill -KILL "$pid" 2>/dev/null || true
    done
}

# Without carrel timeout(1) would be used.
bare() {
    me env "$mark" timeout -k 1 1 "$A/75-stubborn" attack linger >/dev/null 2>&1 || true
    if [ -n "$(marked "$mark")" ]; then echo "SUCCEEDED outlives-timeout"; fi
    end_marked
}

ended() { # ended WHAT STATUS EXPECTED SECONDS
    if [ -n "$(marked "$mark")" ]; then
        echo "SUCCEEDED $1 something is left"
        end_marked
    elif [ "$4" -gt 15 ]; then
        echo "SUCCEEDED $1 returned after $4 s"
    elif [ "$2" -ne "$3" ]; then
        echo "OTHER $1 status $2"
    else
        echo "REFUSED $1"
    fi
}

attack() {
    local way begin status
    for way in linger leave; do
        begin=$SECONDS status=0
        [ "$way" = leave ] || limit=1s
        box --env "$mark" -- /attacks/75-stubborn attack "$way" >/dev/null || status=$?
        ended "$way" "$status" "$([ "$way" = leave ] && echo 0 || echo 124)" $((SECONDS - begin))
        limit=40s
    done
}

# Ctrl-C and the like: carrel's caller exits.
interrupted() {
    local signal
    for signal in INT TERM HUP KILL; do
        start "$signal" box --env "$mark" -- /attacks/75-stubborn attack linger
        kill "-$signal" -- "-${jobs[$signal]}"
        wait "${jobs[$signal]}" 2>/dev/null || true
        local i
        for ((i = 0; i < 100; i++)); do
            [ -n "$(marked "$mark")" ] || break
            sleep 0.1
        done
        ended "SIG$signal" 0 0 0
        unset "jobs[$signal]"
    done
}

# In a living sandbox the program's timeout ends the program; what left its group is killed at the
# end.
living_stubborn() {
    local status=0
    settle
    within 15 at_home --timeout 1s --env "$mark" -- /attacks/75-stubborn attack linger >/dev/null 2>&1 || status=$?
    [ "$status" -eq 124 ] || echo "SUCCEEDED living-linger status $status"
    # It holds the streams, and carrel does not wait for it.
    status=0
    within 15 at_home --env "$mark" -- /attacks/75-stubborn attack leave >/dev/null 2>&1 || status=$?
    [ "$status" -eq 0 ] || echo "SUCCEEDED living-leave status $status"
    [ -n "$(marked "$mark")" ] || echo "OTHER living-leave nothing was left to be ended"
    destroyed "$mark" living-stubborn
    end_marked
}

more() {
    held "nothing outlives carrel itself" interrupted
    held "nothing outlives a sandbox that stays" living_stubborn
}
