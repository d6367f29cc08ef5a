# shellcheck shell=bash disable=SC2034,SC2154
# Without carrel it stops at a harmless amount.
prepare() {
    me mkdir "$T/bare"
    bare_args=("$T/bare" 64 5000)
    options=(--disk 16M)
    args=(/tmp 64 200000 /run /var/tmp /home/agent /workspace /dev/shm)
}

neighbours() {
    start full box -- /attacks/72-fill-disk hold /tmp 64
    if box -- /attacks/72-fill-disk control >/dev/null; then
        echo "REFUSED fills-sibling"
    else
        echo "SUCCEEDED fills-sibling"
    fi
    if me dd if=/dev/zero of="$T/bare/probe" bs=1M count=20 status=none; then
        echo "REFUSED fills-host"
    else
        echo "SUCCEEDED fills-host"
    fi
    stop full
}

more() {
    all_attempts=no
    held "host and sibling still have room" neighbours
    check "$title, as $who: the result says that the disk was full" \
        [ "$(box --json -- /bin/dd if=/dev/zero of=/tmp/big bs=1M status=none | field reason)" = disk_limit ]
}
