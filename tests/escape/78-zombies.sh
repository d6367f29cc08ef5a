# shellcheck shell=bash disable=SC2034,SC2154
# Without an init that reaps, in a process namespace of its own so that all of it goes away.
prepare() {
    wrap=(unshare --pid --fork --mount-proc)
    [ "$who" = root ] || wrap+=(--user --map-root-user)
    wrap+=("$A/78-zombies" lazy-init)
    bare_args=(100)
    args=(1000)
    options=(--pids 32)
    [ "$who" = root ] || options+=(--best-effort pids)
}
