# shellcheck shell=bash disable=SC2034,SC2154
# A device node in a mounted directory; /dev/zero's numbers, so that opening it harms nothing.
prepare() {
    is_root_suite || return 0
    mkdir "$T/mounted"
    mknod -m 666 "$T/mounted/zero" c 1 5
    options=(--mount "$T/mounted:/mounted:ro")
    bare_args=("$T/mounted/zero")
    args=(/mounted/zero)
}

more() {
    all_attempts=no
    is_root_suite || return 0
    options=(--mount "$T/mounted:/mounted:rw")
    held "attack in a writable mount" attack
}
