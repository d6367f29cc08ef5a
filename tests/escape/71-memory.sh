# shellcheck shell=bash disable=SC2034,SC2154
# Without carrel it stops at a harmless amount.
kinds=(heap shared tmpfs memfd pipes sockets tcp heap-and-tcp netlink)
size() {
    case $1 in
    pipes) echo 48 ;;        # the kernel stops a user's pipes at 64
    heap-and-tcp) echo 36 ;; # each part alone is within the limit
    *) echo 96 ;;
    esac
}
fair() { # what every program may have
    case $1 in
    netlink | tcp) echo 1 ;;
    *) echo 3 ;;
    esac
}

prepare() {
    options=(--memory 32M --disk 32M)
    holder=$(me "$tool" run --quiet --json -- /bin/true | field memory)
    me mkdir "$T/work"
    [ "$who" = root ] || options+=(--best-effort memory)
    if [ "$holder" = cgroup ]; then
        held_kinds=("${kinds[@]}")
    else
        held_kinds=(heap tmpfs netlink)
    fi
    all_attempts=no
}

bare() {
    local kind
    for kind in "${kinds[@]}"; do
        me "$A/71-memory" attack "$kind" "$(size "$kind")" || true
    done
    me sh -c 'cd "$1" && exec "$2" attack page-cache 96' - "$T/work" "$A/71-memory" || true
}

control() {
    local kind
    for kind in "${kinds[@]}"; do
        box -- /attacks/71-memory control "$kind" "$(fair "$kind")"
    done
}

# Killed for the limit, or refused by the call itself (netlink, which is limited for all); either
# way it did not get the memory.
bomb() {
    local kind=$1 result reason
    result=$(box --json -- /attacks/71-memory attack "$kind" "$(size "$kind")") || true
    reason=$(field reason <<<"$result")
    if [ "$reason" = memory_limit ] && [ "$(field oom_kills <<<"$result")" != 0 ]; then
        echo "REFUSED $kind killed for the limit"
    elif grep -qF "REFUSED $kind" <<<"$result"; then
        echo "REFUSED $kind by the call"
    else
        echo "SUCCEEDED $kind $result"
    fi
}

attack() {
    local kind
    for kind in "${held_kinds[@]}"; do
        bomb "$kind"
    done
}

# The page cache is reclaimed under pressure: the program may continue, within its limit.
page_cache() {
    local result peak
    result=$(box --json --workdir "$T/work" -- /attacks/71-memory attack page-cache 96) || true
    peak=$(field peak_memory_bytes <<<"$result")
    if [ "${peak:-0}" -gt 0 ] && [ "$peak" -le $((40 << 20)) ]; then
        echo "REFUSED page-cache peak $peak"
    else
        echo "SUCCEEDED page-cache $result"
    fi
}

more() {
    if [ "$holder" = cgroup ]; then
        held "page cache" page_cache
        start sibling box -- /bin/sh -c 'echo READY; exec sleep 30'
        bomb heap >/dev/null
        check "$title, as $who: a sibling outlives it" alive sibling
    else
        skip "$title, as $who: shared memory, memfd, pipes, sockets, page cache" \
            "only a delegated cgroup counts these; RLIMIT_DATA holds the heap, --disk the tmpfs"
    fi
}
