# shellcheck shell=bash disable=SC2034,SC2154
# Bare in a new mount namespace, with one mask to remove, like a sandbox.
prepare() {
    me mkdir "$T/place"
    bare_args=("$T/place")
    wrap=(unshare --mount --pid --fork --propagation private)
    [ "$who" = root ] || wrap+=(--user --map-root-user)
    wrap+=(sh -c 'mount --bind /dev/null /proc/keys; exec "$@"' -)
}
