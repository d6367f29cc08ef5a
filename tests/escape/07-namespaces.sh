# shellcheck shell=bash disable=SC2034,SC2154
prepare() {
    bare_args=(own-child)
    [ "$who" = root ] || wrap=(unshare --user --map-root-user)
}
