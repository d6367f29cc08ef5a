# shellcheck shell=bash disable=SC2034,SC2154
# Special files that make a process that opens them block, or have a side effect.
prepare() {
    me mkdir "$T/work"
    stay --workdir "$T/work"
    inside 'mkfifo fifo; echo secret >unreadable; chmod 000 unreadable; echo inside >file; mkdir dir
        mkfifo dir/fifo; echo >dir/file
        python3 -c "import socket; socket.socket(socket.AF_UNIX).bind(\"socket\")"'
}
clean_up() { leave; }

# It blocks: that is the harm.
bare() {
    local status
    status=0
    me timeout 1 cat "$T/work/fifo" >/dev/null || status=$?
    [ "$status" -eq 124 ] && echo "SUCCEEDED read-fifo"
    status=0
    me timeout 1 sh -c 'echo >"$1"' - "$T/work/fifo" || status=$?
    [ "$status" -eq 124 ] && echo "SUCCEEDED write-fifo"
    status=0
    me timeout 1 cp "$T/work/fifo" "$T/x" || status=$?
    [ "$status" -eq 124 ] && echo "SUCCEEDED copy-fifo"
}

control() {
    [ "$(live cat "$stays:file")" = inside ] && echo "WORKS read"
    live stat "$stays:fifo" | has -x 'type      fifo' && echo "WORKS stat-fifo"
    live cp "$stays:dir" "$T/dir" 2>/dev/null && [ "$(ls "$T/dir")" = file ] && echo "WORKS copy-around"
    live export "$stays:dir" 2>/dev/null | tar t | has -x file && echo "WORKS export-around"
}

attack() {
    refused read-fifo cat "$stays:fifo"
    refused write-fifo write "$stays:fifo" <<<x
    refused append-fifo write --append "$stays:fifo" <<<x
    refused copy-fifo cp "$stays:fifo" "$T/x"
    refused stream-fifo cp "$stays:fifo" -
    refused export-fifo export "$stays:fifo"
    refused import-fifo import "$stays:fifo" </dev/null
    refused read-socket cat "$stays:socket"
    refused write-socket write "$stays:socket" <<<x
    refused copy-socket cp "$stays:socket" "$T/x"
    refused read-null cat "$stays:/dev/null"
    refused write-null write "$stays:/dev/null" <<<x
    refused read-tty cat "$stays:/dev/tty"
    refused read-zero cp "$stays:/dev/zero" -
    refused read-terminals cat "$stays:/dev/pts/ptmx"
    refused read-unreadable cat "$stays:unreadable"
    refused copy-unreadable cp "$stays:unreadable" "$T/x"
}

more() {
    # A blocked client must not block others: a program holds the FIFO open and never writes.
    all_attempts=no # this is one more
    start holder live exec --quiet --timeout 60s "$stays" -c 'exec 3<>fifo; echo READY; sleep 60'
    held "a held FIFO" refused held-fifo cat "$stays:fifo"
    stop holder
}
