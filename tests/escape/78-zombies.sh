# shellcheck shell=bash disable=SC2034,SC2119,SC2154
# shellcheck source=living.sh
source "$here/living.sh"

# Without an init that reaps, in a pid namespace of its own so that all of it is removed.
prepare() {
    wrap=(unshare --pid --fork --mount-proc)
    [ "$who" = root ] || wrap+=(--user --map-root-user)
    wrap+=("$A/78-zombies" lazy-init)
    bare_args=(100)
    args=(1000)
    options=(--pids 32)
    [ "$who" = root ] || options+=(--best-effort pids)
}

# In a living sandbox the zombies of one program must be reaped before the next.
living_zombies() {
    settle
    at_home -- /attacks/78-zombies attack 1000 || true
    at_home -- /attacks/78-zombies attack 100 || true
    if ask ps --json "$id" | grep -q '"state":"Z"'; then
        echo "SUCCEEDED living-zombies are left"
    else
        echo "REFUSED living-zombies"
    fi
    ask destroy "$id"
}

more() { held "in a sandbox that stays, the dead of one program are gone for the next" living_zombies; }
