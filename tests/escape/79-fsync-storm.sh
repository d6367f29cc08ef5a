# shellcheck shell=bash disable=SC2034,SC2154
prepare() {
    me mkdir "$T/bare" "$T/work"
    options=(--workdir "$T/work")
    all_attempts=no
}

bare() {
    local status=0
    me sh -c 'cd "$1" && exec timeout -k 1 1 "$2" attack' - "$T/bare" "$A/79-fsync-storm" >/dev/null || status=$?
    [ "$status" -ne 124 ] || echo "SUCCEEDED storm until it was ended"
}

# Meanwhile others write, and carrel's own records reach the disk.
attack() {
    limit=4s
    start storm box --output "$T/result.json" -- /attacks/79-fsync-storm attack
    if within 15 me dd if=/dev/zero of="$T/bare/probe" bs=4k count=10 conv=fsync status=none; then
        echo "REFUSED blocks-host"
    else
        echo "SUCCEEDED blocks-host"
    fi
    if within 15 box -- /bin/true; then echo "REFUSED blocks-sibling"; else echo "SUCCEEDED blocks-sibling"; fi
    local i
    for ((i = 0; i < 150; i++)); do
        alive storm || break
        sleep 0.1
    done
    if alive storm; then echo "SUCCEEDED storm does not end"; else echo "REFUSED storm"; fi
    if [ "$(field reason <"$T/result.json")" = timeout ]; then
        echo "REFUSED no-result"
    else
        echo "SUCCEEDED no-result $(cat "$T/result.json")"
    fi
    stop storm
}
