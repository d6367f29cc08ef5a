# shellcheck shell=bash disable=SC2034,SC2154
prepare() {
    me mkdir "$T/jail"
    echo secret | me tee "$T/sentinel" >/dev/null
    bare_args=("$T/sentinel" "$T/jail")
    args=("$T/sentinel")
    [ "$who" = root ] || wrap=(unshare --user --map-root-user)
}
