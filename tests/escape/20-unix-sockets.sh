# shellcheck shell=bash disable=SC2034,SC2154
prepare() {
    local name=carrel-escape-$$-$RANDOM
    start server me "$A/20-unix-sockets" serve "$T/agent.sock" "@$name"
    bare_args=("$T/agent.sock" "@$name")
    args=("${bare_args[@]}")
    before=(env "SSH_AUTH_SOCK=$T/agent.sock" "DBUS_SESSION_BUS_ADDRESS=unix:abstract=$name")
}

more() {
    all_attempts=no
    options=(--network host)
    if [ "$("$A/20-unix-sockets" landlock)" -ge 6 ]; then
        held "attack with the host's network" attack
    else
        skip "$title, as $who: attack with the host's network" "needs Landlock 6"
    fi
}
