# shellcheck shell=bash disable=SC2034,SC2154
prepare() {
    key=$((1000000 + RANDOM * 32768 + RANDOM))
    start host me "$A/19-ipc" hold "$key"
    bare_args=("$key")
    args=("$key")
}

more() {
    local other=$((key + 1))
    all_attempts=no
    start sandbox box -- /attacks/19-ipc hold "$other"
    args=("$other")
    held "another sandbox does not see it" attack
    held "the host does not see it" me "$A/19-ipc" attack "$other"
    stop sandbox
    held "nothing is left of it on the host" me "$A/19-ipc" attack "$other"
    held "nothing is left of it for the next sandbox" attack
    # Abstract names belong to the network namespace, and here that is the host's.
    if [ "$("$A/20-unix-sockets" landlock)" -ge 6 ]; then
        args=("$key")
        options=(--network host)
        held "attack with the host's network" attack
    else
        skip "$title, as $who: attack with the host's network" "needs Landlock 6"
    fi
}

clean_up() { me "$A/19-ipc" remove "$key"; }
