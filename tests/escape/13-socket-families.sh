# shellcheck shell=bash disable=SC2034,SC2154
# An ordinary user can create most of them in a network namespace of its own.
prepare() {
    [ "$who" = root ] || wrap=(unshare --user --map-root-user --net)
}
