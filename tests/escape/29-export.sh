# shellcheck shell=bash disable=SC2034,SC2154
# A tree that is harmful when it is unpacked: links, set-uid bits, special files, a sparse file of 1
# TiB, more files than the limit, names that control terminals and programs. The limit is set to 299
# for a directory of 300: the default, 1048576, is checked in the same place, and creating so many
# files takes longer than all the rest.
prepare() {
    me mkdir "$T/work" "$T/outside"
    echo secret | me tee "$T/outside/file" >/dev/null
    stay --workdir "$T/work"
    inside "mkdir tree tree/sub big many; cd tree; ln -s $T/outside out; ln -s ../../outside/file up
        ln -s /etc/shadow shadow; mkfifo fifo; echo text >file; ln file second; ln -s file link
        ln -s ../file sub/link; ln -s sub/../../x tricky
        python3 -c 'import os
for name in [b\"a\\nb\", b\"-rf\", b\"--help\", b\"\\x1b[2J\", b\"\\xff\\xfe\", b\"\\xe2\\x80\\xae\"]:
    open(name, \"w\").close()
os.truncate(os.open(\"../big/sparse\", os.O_CREAT | os.O_RDWR), 1 << 40)
for i in range(300): open(\"../many/%d\" % i, \"w\").close()'"
    # What a program in the sandbox cannot create may have existed before.
    me chmod 4755 "$T/work/tree/file"
    [ "$who" != root ] || mknod "$T/work/tree/device" c 1 3
}
clean_up() { leave; }

unpack() { # unpack ARCHIVE DIRECTORY: as a user who trusts it
    me mkdir "$2"
    me tar -xpf "$1" -C "$2" 2>/dev/null
}

judge() { # judge DIRECTORY VERDICT_IF_NOT
    local name
    for name in out up shadow tricky; do
        if [ -L "$1/$name" ]; then echo "SUCCEEDED link-$name"; else echo "$2 link-$name"; fi
    done
    if [ -n "$(find "$1" -perm /6000)" ]; then echo "SUCCEEDED set-uid"; else echo "$2 set-uid"; fi
    if [ -n "$(find "$1" -type p)" ]; then echo "SUCCEEDED fifo"; else echo "$2 fifo"; fi
    if [ -n "$(find "$1" -type c)" ]; then echo "SUCCEEDED device"; else echo "$2 device"; fi
}

bare() {
    me tar -C "$T/work/tree" -cf "$T/bare.tar" .
    unpack "$T/bare.tar" "$T/bare"
    judge "$T/bare" OTHER
}

control() {
    live export "$stays:tree" >"$T/control.tar" 2>/dev/null
    unpack "$T/control.tar" "$T/control"
    [ "$(cat "$T/control/link" "$T/control/sub/link" "$T/control/second")" = $'text\ntext\ntext' ] &&
        echo "WORKS files-and-links"
    [ "$(find "$T/control" -maxdepth 1 -type f -printf x | wc -c)" = 8 ] && echo "WORKS names"
    live cp "$stays:big/sparse" "$T/sparse" &&
        [ "$(stat -c '%s' "$T/sparse")" = 1099511627776 ] &&
        [ "$(stat -c '%b' "$T/sparse")" -lt 1000 ] && echo "WORKS copy-sparse"
    live export --max-entries 300 "$stays:many" >/dev/null && echo "WORKS many"
}

attack() {
    live export "$stays:tree" >"$T/a.tar" 2>/dev/null
    unpack "$T/a.tar" "$T/unpacked"
    judge "$T/unpacked" REFUSED
    live cp "$stays:tree" "$T/copied" 2>/dev/null
    judge "$T/copied" REFUSED
    refused sparse export "$stays:big"
    refused many export --max-entries 299 "$stays:many"
    refused many-copied cp --max-entries 299 "$stays:many" "$T/none"
}
