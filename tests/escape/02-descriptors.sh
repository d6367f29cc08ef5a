# shellcheck shell=bash disable=SC2034,SC2154
bare() { me "$A/02-descriptors" leak "$A/02-descriptors" attack; }
prepare() { before=("$A/02-descriptors" leak); }

# Streams of the caller that are more than streams: the program must get pipes instead.
directory_as_stdin() {
    me "$tool" run --quiet --mount "$A:/attacks:ro" --stdin -- /attacks/02-descriptors attack </
}

file_as_stdout() {
    local status=0
    me bash -c 'exec >"$1" 2>&1 && shift && exec "$@"' - "$T/output" \
        "$tool" run --quiet --mount "$A:/attacks:ro" -- /attacks/02-descriptors attack || status=$?
    cat "$T/output"
    return "$status"
}

socket_as_stdin() {
    me "$A/02-descriptors" socket "$tool" run --quiet --mount "$A:/attacks:ro" --stdin -- \
        /attacks/02-descriptors attack
}

more() {
    held "a file as standard output" file_as_stdout
    held "a socket as standard input" socket_as_stdin
    all_attempts=no
    held "a directory as standard input" or_refused directory_as_stdin
}

# or_refused CMD...: carrel may also refuse.
or_refused() {
    local status=0
    "$@" || status=$?
    [ "$status" -ne 125 ] || echo "REFUSED by carrel"
    [ "$status" -eq 125 ] || return "$status"
}
