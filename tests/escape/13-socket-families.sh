# shellcheck shell=bash disable=SC2034,SC2154
# An ordinary user gets most of them in a network namespace of his own.
prepare() {
    [ "$who" = root ] || wrap=(unshare --user --map-root-user --net)
}
