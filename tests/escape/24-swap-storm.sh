# shellcheck shell=bash disable=SC2034,SC2154
# A program exchanges a directory and a link to the host as fast as it can, while file operations
# use that name: a hundred thousand for the first identity, twenty thousand for the second, since
# each call waits behind the program, and on a busy machine a hundred thousand take a minute.
calls=100000
[ "$who" = root ] || ! is_root_suite || calls=20000
title="24 swap storm, $calls calls"
swap='import ctypes
libc = ctypes.CDLL(None)
print("READY", flush=True)
while True:
    libc.renameat2(-100, b"a", -100, b"b", 2)'

prepare() {
    me mkdir "$T/work" "$T/outside"
    echo secret | me tee "$T/outside/file" >/dev/null
    me chmod 777 "$T/outside"
    install -m 755 "$built/../file_storm" "$A/file_storm"
    stay --workdir "$T/work"
    inside "mkdir a; echo inside >a/file; ln -s $T/outside b"
}
clean_up() { leave; }

# Like a server that checks first and opens then.
bare() {
    me mkdir -p "$T/bare/a"
    me ln -s "$T/outside" "$T/bare/b"
    echo inside | me tee "$T/bare/a/file" >/dev/null
    start swap me env -C "$T/bare" python3 -c "$swap"
    me env -C "$T/bare" python3 -c 'import os
for i in range(300000):
    if not os.path.islink("a"):
        try:
            if "secret" in open("a/file").read():
                print("SUCCEEDED read")
                break
        except OSError:
            pass'
    stop swap
}

control() {
    local said
    said=$(storm 80)
    [ "$said" = "CALLS 80 REACHED 80" ] && echo "WORKS eighty calls, no storm"
}

storm() {
    me timeout --foreground -k 5 600 env XDG_RUNTIME_DIR="$T/run" "$A/file_storm" "$stays" a "$1"
}

attack() {
    local said
    start swap live exec --quiet --timeout 600s "$stays" -- python3 -c "$swap"
    said=$(storm "$calls")
    stop swap
    echo "$said"
    [[ $said =~ CALLS\ ([0-9]+)\ REACHED\ ([0-9]+) ]] || return 1
    [ "${BASH_REMATCH[1]}" -ge "$calls" ] || return 1
    # Both were found: the directory, and the link.
    [ "${BASH_REMATCH[2]}" -gt 0 ] && [ "${BASH_REMATCH[2]}" -lt "${BASH_REMATCH[1]}" ] || return 1
    if [[ $said == *READ* ]] || [ "$(cat "$T/outside/file")" != secret ] ||
        [ "$(ls -A "$T/outside")" != file ] || [ "$(stat -c %a "$T/outside")" != 777 ]; then
        echo "SUCCEEDED read or changed something outside"
    else
        echo "REFUSED read ${BASH_REMATCH[0]}"
    fi
}
