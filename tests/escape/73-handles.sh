# shellcheck shell=bash disable=SC2034,SC2154
# What the kernel counts per user is shown on an otherwise unused user id, so that no process
# starves. Terminals are counted for the whole machine: there it stops at a number that leaves
# enough.
prepare() {
    lonely=$((56000 + RANDOM % 2000))
    options=(--files 512)
    all_attempts=no
}

control() {
    local kind
    for kind in descriptors inotify watches terminals in-flight; do
        box -- /attacks/73-handles control "$kind"
    done
}

alone() {
    if is_root_suite; then
        setpriv --reuid "$lonely" --regid "$lonely" --clear-groups "$@"
    else
        me "$@"
    fi
}

bare() {
    local kind
    me bash -c 'ulimit -S -n "$(ulimit -H -n)"; exec "$1" attack descriptors 2000' - "$A/73-handles" || true
    me "$A/73-handles" attack terminals 200 || true
    # They belong to root, or to the user: a number that leaves enough, and is more than a sandbox
    # gets.
    me "$A/73-handles" attack watches 20000 || true
    me bash -c 'rm -f /tmp/watched-"$(id -u)"-*'
    for kind in inotify in-flight; do
        start bare alone "$A/73-handles" hold "$kind" 100000 || continue
        if alone "$A/73-handles" control "$kind" >/dev/null; then
            echo "REFUSED $kind-of-others"
        else
            echo "SUCCEEDED $kind-of-others $answer taken"
        fi
        stop bare
    done
}

attack() {
    box -- /attacks/73-handles attack descriptors 20000
    box -- /attacks/73-handles attack watches 20000
    box -- /attacks/73-handles attack epoll-nest 200
}

# starve KIND: one sandbox takes all it can get; the host's user and a sibling need a few.
starve() {
    local kind=$1
    start taker box -- /attacks/73-handles hold "$kind" 100000
    if me "$A/73-handles" control "$kind" >/dev/null; then
        echo "REFUSED $kind-of-host taker has $answer"
    else
        echo "SUCCEEDED $kind-of-host taker has $answer"
    fi
    if box -- /attacks/73-handles control "$kind" >/dev/null; then
        echo "REFUSED $kind-of-sibling"
    else
        echo "SUCCEEDED $kind-of-sibling taker has $answer"
    fi
    stop taker
}

more() {
    local kind
    # With the default number of descriptors: the other limits have to be enforced.
    options=()
    for kind in inotify terminals in-flight; do
        if [ "$who $kind" = "user in-flight" ]; then
            skip "$title, as $who: $kind: host and sibling keep theirs" \
                "the kernel counts these per user, and a rootless sandbox has the caller's"
            continue
        fi
        held "$kind: host and sibling keep theirs" starve "$kind"
    done
}
