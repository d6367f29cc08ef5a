# shellcheck shell=bash disable=SC2034,SC2154
# The terminal is created for this test; what was typed into it is counted at the end.
bare() { me "$A/06-tty" host "$A/06-tty" attack; }

on_terminal() {
    me timeout --foreground -k 5 60 "$A/06-tty" host "$tool" run --quiet --timeout 30s \
        --mount "$A:/attacks:ro" "$@" </dev/null
}

control() { on_terminal --tty -- /attacks/06-tty control; }
attack() { on_terminal --tty -- /attacks/06-tty attack; }

more() {
    held "attack without a terminal" on_terminal -- /attacks/06-tty attack
    held "attack with standard input" on_terminal --stdin -- /attacks/06-tty attack
}
