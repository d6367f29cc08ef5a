# shellcheck shell=bash disable=SC2034,SC2120,SC2154
# For cases about living sandboxes. To be sourced by them.
#
#   settle OPTION...      makes one; $id is its id
#   at_home WORD...      carrel exec in $id
#   ask COMMAND WORD... another command of carrel

ask() {
    me timeout --foreground -k 5 60 env XDG_STATE_HOME="$T/state" XDG_CONFIG_HOME="$T/config" \
        "$tool" "$@" </dev/null
}
settle() { id=$(ask create --timeout "$limit" --mount "$A:/attacks:ro" "${options[@]}" "$@" 2>"$T/.create") || cat "$T/.create"; }
at_home() { ask exec --quiet "$id" "$@"; }

# destroyed MARK WHAT: destroy does not hang, and when it returns no process with the mark is left.
# $T/.took has the time it took, for people: it depends on the load of the machine.
destroyed() {
    local begin=${EPOCHREALTIME/./}
    if ! within 10 ask destroy "$id"; then
        echo "SUCCEEDED $2 destroy failed, or hung"
        ask destroy --force "$id" || true
    fi
    echo "$(((${EPOCHREALTIME/./} - begin) / 1000)) ms" >"$T/.took"
    if [ -n "$(marked "$1")" ]; then
        echo "SUCCEEDED $2 something is left"
    else
        echo "REFUSED $2"
    fi
}
