# shellcheck shell=bash disable=SC2034,SC2119,SC2154
# shellcheck source=living.sh
source "$here/living.sh"

prepare() {
    holder=$(me "$tool" run --quiet --json -- /bin/true | field cpu)
    all_attempts=no
}

bare() {
    local share
    me "$A/77-cpu-hog" attack || true
    share=$(me "$A/77-cpu-hog" hog 64 1000 | sed -n 's/^SHARE //p')
    [ "$share" -lt 35 ] || echo "SUCCEEDED many-threads $share % of a processor"
}

# The limit is a tenth of a processor. In a short measurement it may be more; on a busy machine the
# bare hog gets less than it could. The bounds allow for both.
share() {
    local share
    share=$(box --cpu 0.1 -- /attacks/77-cpu-hog hog 64 2000 | sed -n 's/^SHARE //p')
    if [ "$share" -lt 30 ]; then
        echo "REFUSED many-threads $share % of a processor"
    else
        echo "SUCCEEDED many-threads $share % of a processor"
    fi
}

latency() {
    start hog box -- /bin/sh -c 'echo READY; exec /attacks/77-cpu-hog hog 64 20000'
    if within 10 box -- /bin/true && within 10 me /bin/true; then
        echo "REFUSED slows-others"
    else
        echo "SUCCEEDED slows-others"
    fi
    stop hog
}

# Several times: at first some of its quota may be left.
living_latency() {
    local i
    settle
    ask exec --detach "$id" -- /attacks/77-cpu-hog hog 64 20000 >/dev/null
    for i in 1 2 3 4; do
        if within 10 at_home -- /bin/true && within 10 ask ps "$id" >/dev/null && within 10 box -- /bin/true; then
            echo "REFUSED slows-its-sandbox-$i"
        else
            echo "SUCCEEDED slows-its-sandbox-$i"
        fi
    done
    destroyed "MARK=none-$$" hog-is-ended
}

more() {
    if [ "$holder" = cgroup ]; then
        held "64 threads get their share" share
    else
        skip "$title, as $who: 64 threads get their share" "only a delegated cgroup holds --cpu"
    fi
    held "others still start" latency
    held "a sandbox that stays still answers" living_latency
}
