# shellcheck shell=bash disable=SC2034,SC2154
# A program rewrites a file all the time: all of it is one letter, then all of it another. A copy
# with two letters in it is a state that never existed.
change='import os
fd = os.open("file", os.O_RDWR)
print("READY", flush=True)
while True:
    for letter in b"ab":
        os.pwrite(fd, bytes([letter]) * 8000000, 0)'
swap='import ctypes
libc = ctypes.CDLL(None)
print("READY", flush=True)
while True:
    libc.renameat2(-100, b"one", -100, b"two", 2)'

prepare() {
    me mkdir "$T/work"
    stay --workdir "$T/work"
    inside 'head -c 8000000 /dev/zero | tr "\0" a >file; echo still >still
        head -c 3000000 /dev/zero | tr "\0" 1 >one; head -c 3000000 /dev/zero | tr "\0" 2 >two'
}
clean_up() { leave; }

# one_letter: the input is a single letter, of the expected length.
one_letter() { # one_letter BYTES
    /usr/bin/python3 -c 'import sys
data = sys.stdin.buffer.read()
sys.exit(not (len(data) == int(sys.argv[1]) and data.count(data[:1]) == len(data)))' "$1"
}

bare() {
    local i
    me mkdir "$T/bare"
    head -c 8000000 /dev/zero | tr '\0' a | me tee "$T/bare/file" >/dev/null
    start writer me env -C "$T/bare" python3 -c "$change"
    for ((i = 0; i < 200; i++)); do
        if ! me cat "$T/bare/file" | one_letter 8000000; then
            echo "SUCCEEDED mixed"
            break
        fi
    done
    stop writer
}

control() {
    live cp "$stays:file" "$T/control" && one_letter 8000000 <"$T/control" && echo "WORKS copy"
    live export "$stays:file" | tar xO | one_letter 8000000 && echo "WORKS export"
}

attack() {
    local i
    start writer live exec --quiet --timeout 100s "$stays" -- python3 -c "$change"
    for ((i = 0; i < 10; i++)); do
        if live cp "$stays:file" "$T/copy" 2>/dev/null && ! one_letter 8000000 <"$T/copy"; then
            echo "SUCCEEDED mixed"
        fi
        if live cp "$stays:file" - >"$T/copy" 2>/dev/null && ! one_letter 8000000 <"$T/copy"; then
            echo "SUCCEEDED mixed by a stream"
        fi
        if live export "$stays:file" >"$T/tar" 2>/dev/null && ! tar xOf "$T/tar" | one_letter 8000000; then
            echo "SUCCEEDED mixed in an archive"
        fi
    done
    [ "$(live cat "$stays:still")" = still ] || echo "SUCCEEDED others suffer"
    stop writer
    echo "REFUSED mixed"
}

# Two files that exchange their names: each copy is one of them.
swapped() {
    local i
    start swapper live exec --quiet --timeout 100s "$stays" -- python3 -c "$swap"
    for ((i = 0; i < 20; i++)); do
        if live cp "$stays:one" "$T/one" 2>/dev/null && ! one_letter 3000000 <"$T/one"; then
            echo "SUCCEEDED mixed-with-another"
        fi
    done
    stop swapper
    echo "REFUSED mixed mixed-with-another"
}

more() { held "two files that change names" swapped; }
