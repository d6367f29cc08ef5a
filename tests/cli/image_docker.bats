#!/usr/bin/env bats
# shellcheck disable=SC2030,SC2031,SC2154,SC2016  # cli.bash sets $status, $out and others
# shellcheck disable=SC2089,SC2090  # $listing is a script for sh -c, quotes and all
# Images that a real engine saved: carrel shows what the engine's own container shows.

load cli
# shellcheck source=../lib/engine.sh
source "$_cli_dir/../lib/engine.sh"

# One engine for all tests; its image has two layers, the second of which removes and replaces.
setup_file() {
    [ -x /bin/busybox ] || return 0
    engine_start "$BATS_FILE_TMPDIR/engine" || {
        echo "$NO_ENGINE_REASON" >"$BATS_FILE_TMPDIR/reason"
        return 0
    }
    local root=$BATS_FILE_TMPDIR/root name
    mkdir -p "$root/bin" "$root/etc" "$root/old/deep" "$root/swap"
    cp /bin/busybox "$root/bin/"
    for name in sh ls cat find sort id env echo rm mkdir stat test; do
        ln -s busybox "$root/bin/$name"
    done
    echo one >"$root/old/deep/file"
    echo below >"$root/swap/file"
    echo 'root:x:0:0::/:/bin/sh' >"$root/etc/passwd"
    tar -C "$root" -c . | docker import - carrel-test:1
    docker run --name second --network none carrel-test:1 /bin/sh -c \
        'rm -r /old && echo new >/new && rm -r /swap && mkdir /swap && echo above >/swap/other'
    docker commit --change 'ENV GREETING=hello' --change 'WORKDIR /swap' --change 'CMD ["/bin/ls"]' \
        second carrel-test:2
    docker save -o "$BATS_FILE_TMPDIR/saved.tar" carrel-test:2
    docker run --rm --network none carrel-test:2 /bin/sh -c "$listing" >"$BATS_FILE_TMPDIR/expected"
    echo "$_engine_pid" >"$BATS_FILE_TMPDIR/pid"
}

teardown_file() {
    [ ! -e "$BATS_FILE_TMPDIR/pid" ] || {
        _engine_pid=$(cat "$BATS_FILE_TMPDIR/pid")
        kill "$_engine_pid"
        while kill -0 "$_engine_pid" 2>/dev/null; do sleep 0.1; done
    }
}

setup() {
    [ -x /bin/busybox ] || skip "the package busybox-static is missing"
    [ ! -e "$BATS_FILE_TMPDIR/reason" ] || skip "$(cat "$BATS_FILE_TMPDIR/reason")"
}

# What both have: not the places that each of them lays over the image.
listing='cd / && find bin etc new old swap 2>/dev/null | sort | while read -r name; do
    case $name in etc/hosts|etc/hostname|etc/resolv.conf|etc/mtab) continue ;; esac
    if test -f "$name" && ! test -L "$name"; then echo "$name $(cat "$name" | stat -c %s "$name")"; else echo "$name"; fi
done; echo "$GREETING"'
export listing

import_saved() {
    install -m 644 "$BATS_FILE_TMPDIR/saved.tar" "$T/saved.tar"
    carrel image import saved.tar saved
    [ "$status" -eq 0 ]
}

saved_image() {
    import_saved
    carrel run --image saved -- /bin/sh -c "$listing"
    [ "$status" -eq 0 ]
    diff "$BATS_FILE_TMPDIR/expected" - <<<"$out"
    not grep -q old "$BATS_FILE_TMPDIR/expected" # the engine's own view proves the removal
}
@test "what docker save wrote is the image that docker runs" { both saved_image; }

saved_command() {
    import_saved
    carrel run --image saved
    [ "$status" -eq 0 ]
    [ "$out" = other ] # ls in the image's own directory
}
@test "its command and its directory count" { both saved_command; }
