#!/usr/bin/env bats
# shellcheck disable=SC2030,SC2031,SC2154  # cli.bash sets $status, $out and others
# What reaches the caller, and when.

load cli

# ---- live ---------------------------------------------------------------------------------------

line_before_end() {
    # The program waits for a word that is only said once its first line has arrived.
    me mkdir w
    me mkfifo w/go
    background run --workdir "$T/w" -c 'echo first; echo first-err >&2; cat go; echo last'
    until_true grep -qx first "$T/.out"
    until_true grep -qx first-err "$T/.err"
    kill -0 "$pid"
    echo go >"$T/w/go"
    ended
    [ "$status" -eq 0 ]
    [ "$out" = $'first\ngo\nlast' ]
}
@test "output arrives while the program still runs" { both line_before_end; }

half_a_line() {
    me mkdir w
    me mkfifo w/go
    background run --workdir "$T/w" -c 'printf "no newline"; cat go'
    until_true grep -q 'no newline' "$T/.out"
    echo >"$T/w/go"
    ended
}
@test "a line without its end arrives, too" { both half_a_line; }

order_on_one_stream() {
    me timeout -k 5 60 sh -c 'exec "$1" run --quiet -c "echo 1; echo 2 >&2; echo 3; echo 4 >&2" >"$2/one" 2>"$2/two"' \
        sh "$CARREL" "$T"
    [ "$(cat "$T/one")" = $'1\n3' ]
    [ "$(cat "$T/two")" = $'2\n4' ]
}
@test "the two streams stay apart and in order" { both order_on_one_stream; }

fifty_megabytes() {
    local make='head -c 50000000 /dev/zero | openssl enc -aes-128-ctr -nosalt -K 00 -iv 00 2>/dev/null'
    command -v openssl >/dev/null || make='seq 1 6500000 | head -c 50000000'
    local want got
    want=$(sh -c "$make" | md5sum)
    got=$(me timeout -k 5 120 "$CARREL" run --quiet -c "$make" | md5sum)
    [ "$got" = "$want" ]
    got=$(me timeout -k 5 120 "$CARREL" run --quiet -c "($make) >&2" 2>&1 >/dev/null | md5sum)
    [ "$got" = "$want" ]
}
@test "50 MB arrive whole, on each stream" { both fifty_megabytes; }

to_a_file_and_both() {
    me timeout -k 5 60 sh -c 'exec "$1" run --quiet -c "seq 1 100000; seq 1 100000 >&2" >"$2/all" 2>&1' sh "$CARREL" "$T"
    [ "$(wc -lc <"$T/all")" = "$( (seq 1 100000; seq 1 100000) | wc -lc)" ]
}
@test "both streams into one file lose nothing" { both to_a_file_and_both; }

slow_reader() {
    # No reader: the program must be blocked, and carrel must not buffer what it cannot pass on.
    me mkfifo pipe
    exec 8<>"$T/pipe"
    me env "$CARREL" run --quiet -- sh -c 'yes 0123456789abcdef; echo never' >"$T/pipe" 2>"$T/.err" 3>&- &
    _follow_exec $!
    : >"$T/.out"
    until_true has_stopped_writing "$pid"
    local kb
    kb=$(awk '/^VmRSS/ { print $2 }' "/proc/$pid/status")
    echo "carrel holds $kb KB"
    [ "$kb" -lt 20000 ]
    # It continues as soon as the output is read, and ends on SIGTERM even if it is not.
    head -c 1000000 <&8 | tail -c 40 | grep -q 0123456789
    kill -TERM "$pid"
    until_true _is_over "${_cli_pids[-1]}"
    exec 8<&-
}
has_stopped_writing() { # its output has not grown between two looks, and is not empty
    local a b
    a=$(awk '/^wchar/ { print $2 }' "/proc/$1/io")
    sleep 0.2
    b=$(awk '/^wchar/ { print $2 }' "/proc/$1/io")
    [ "$a" -gt 60000 ] && [ "$a" = "$b" ]
}
@test "a reader that does not read holds the program, and carrel stays small" { both slow_reader; }

head_one() {
    local line
    new_tag
    line=$(me timeout -k 5 60 "$CARREL" run --quiet --timeout 50s -- yes "$tag" | head -n 1)
    [ "$line" = "$tag" ]
    none_left "$tag"
}
@test "carrel run -- yes | head -1 ends" { both head_one; }

closed_streams() {
    local close
    for close in '>&-' '2>&-' '<&-' '>&- 2>&-' '<&- >&- 2>&-'; do
        status=0
        me timeout -k 5 30 sh -c "exec \"\$1\" run --quiet -c 'echo lost; echo lost >&2; exit 5' $close" \
            sh "$CARREL" >/dev/null 2>&1 || status=$?
        echo "with $close: $status"
        [ "$status" -eq 5 ]
    done
}
@test "streams that the caller has closed do not matter" { both closed_streams; }

full_disk() {
    [ -c /dev/full ] || skip "there is no /dev/full"
    status=0
    me timeout -k 5 60 sh -c 'exec "$1" run --json -- echo hi >/dev/full' sh "$CARREL" 2>"$T/.err" || status=$?
    : >"$T/.out"
    _collect '--json >/dev/full'
    is_one_error 125 "carrel: *No space left*"
}
@test "a result that cannot be written is an error" { both full_disk; }

# sealed FD ARG...: carrel with a file as this descriptor that cannot be written to; then $status, $err.
sealed() {
    status=0
    me timeout -k 5 60 /usr/bin/python3 -c 'import fcntl, os, sys
fd = os.memfd_create("sealed", os.MFD_ALLOW_SEALING)
fcntl.fcntl(fd, 1033, 12) # F_ADD_SEALS: neither write nor grow
os.dup2(fd, int(sys.argv[1]))
os.execv(sys.argv[2], sys.argv[2:])' "$1" "$CARREL" "${@:2}" >"$T/.out" 2>"$T/.err" </dev/null || status=$?
    _collect "${@:2}"
}
lost_output() {
    sealed 1 run -- echo hi
    is_one_error 125 "carrel: write the output: Operation not permitted"
    sealed 1 run -c 'echo hi >&2; exit 3' # which writes nothing there
    [ "$status" -eq 3 ]
    sealed 2 run -- sh -c 'echo hi >&2'
    [ "$status" -eq 125 ]
    sealed 1 run --output r.json -- echo hi
    is_one_error 125 "carrel: write the output: *"
    mv "$T/r.json" "$T/.out"
    holds 'r["ok"] and r["stdout"] == "hi\n"' # the run was as it should be
    sealed 1 python -c 'print(1)'
    is_one_error 125 "carrel: write the output: *"
}
@test "output that cannot be passed on is an error" { both lost_output; }

no_output() {
    carrel run -- true
    [ ! -s "$T/.out" ]
    carrel run --quiet -- sh -c 'exit 4'
    [ "$status" -eq 4 ]
    [ ! -s "$T/.out" ] && [ ! -s "$T/.err" ]
}
@test "a silent program gives no output" { both no_output; }

# ---- capped -------------------------------------------------------------------------------------

capped() {
    carrel run --max-output 4K -c 'i=0; while [ $i -lt 20000 ]; do echo line $i; i=$((i+1)); done'
    [ "$status" -eq 0 ]
    [ "$(wc -c <"$T/.out")" -le 4096 ]
    [ "$(wc -c <"$T/.out")" -gt 3000 ]
    [ "$(head -n 1 <<<"$out")" = "line 0" ]
    [ "$(tail -n 1 <<<"$out")" = "line 19999" ]
    [ "$(grep -c '^\[\.\.\. .* \.\.\.\]$' <<<"$out")" -eq 1 ]
    # The marker names a file, and that has all.
    local file
    file=$(grep -o '/[^ ]*/stdout' <<<"$out")
    [ "$(me md5sum <"$file")" = "$(seq 0 19999 | sed 's/^/line /' | md5sum)" ]
    [ "$(stat -c %a "$file")" = 600 ]
    [ "$(stat -c %u "$file")" = "$(me id -u)" ]
}
@test "--max-output keeps head and tail, with a marker that names the file with all" { both capped; }

capped_exactly() {
    local n
    for n in 4095 4096 4097; do
        carrel run --max-output 4K -c "head -c $n /dev/zero | tr '\\0' x"
        [ "$(wc -c <"$T/.out")" -le 4096 ]
        if [ "$n" -le 4096 ]; then
            [ "$(wc -c <"$T/.out")" -eq "$n" ]
        else
            grep -q '\[\.\.\.' "$T/.out"
        fi
    done
    for n in 1 2 10 50 100 150; do
        carrel run --max-output "$n" -- seq 1 1000
        [ "$status" -eq 0 ]
        [ "$(wc -c <"$T/.out")" -le "$n" ]
    done
}
@test "the cap is kept to the byte, also a tiny one" { both capped_exactly; }

capped_each_stream() {
    carrel run --max-output 1K -c 'seq 1 10000; seq 20000 30000 >&2; exit 3'
    [ "$status" -eq 3 ]
    [ "$(wc -c <"$T/.out")" -le 1024 ]
    [ "$(tail -n 1 <<<"$out")" = 10000 ]
    [ "$(tail -n 1 <<<"$err")" = 30000 ]
    [ "$(wc -c <<<"$err")" -le 1025 ]
}
@test "each stream has its own cap" { both capped_each_stream; }

result_is_capped() {
    carrel run --json -c 'seq 1 100000; seq 1 50000 >&2'
    holds 'len(r["stdout"].encode()) <= 10240 and len(r["stderr"].encode()) <= 10240'
    holds 'r["truncated"] is True and r["stdout_bytes"] == 588895 and r["stderr_bytes"] == 288894'
    holds 'r["stdout"].startswith("1\n2\n") and r["stdout"].endswith("99999\n100000\n")'
    local file
    file=$(json 'r["output_file"]')
    [ "$(md5sum <"$file")" = "$(seq 1 100000 | md5sum)" ]
    file=$(json 'r["stderr_file"]')
    [ "$(md5sum <"$file")" = "$(seq 1 50000 | md5sum)" ]
    carrel run --json --max-output 100K -c 'seq 1 10000'
    holds 'r["truncated"] is False and r["stdout_bytes"] == 48894 and len(r["stdout"]) == 48894'
    holds 'r["output_file"] is None'
}
@test "the result object is capped at 10K, and its files have all" { both result_is_capped; }

live_and_recorded() {
    carrel run --output r.json -- seq 1 100000
    [ "$(md5sum <"$T/.out")" = "$(seq 1 100000 | md5sum)" ]
    mv "$T/r.json" "$T/.out"
    holds 'r["truncated"] is True and r["stdout_bytes"] == 588895 and len(r["stdout"]) <= 10240'
}
@test "--output records what was also streamed live" { both live_and_recorded; }

no_state() {
    # Where no file can be made the result says so by naming none.
    : >"$T/state"
    carrel run --json --journal off -- seq 1 100000
    [ "$status" -eq 0 ]
    holds 'r["truncated"] is True and r["output_file"] is None'
    rm "$T/state"
    carrel run --json --journal off -- echo small
    [ ! -e "$T/state" ]
}
@test "without a journal, a state directory that cannot be made is no failure; nor is it made without need" { both no_state; }

# ---- JSON ---------------------------------------------------------------------------------------

binary_output() {
    carrel run --json -- head -c 4000 /dev/urandom
    [ "$status" -eq 0 ]
    [ "$(wc -l <"$T/.out")" -eq 1 ]
    /usr/bin/python3 -m json.tool "$T/.out" >/dev/null
    holds 'r["stdout_bytes"] == 4000'
    carrel run --json -- printf 'a\0b\001c\177d\200e\377f\\g"h\t\r\n\303\244\355\240\200\364\220\200\200z'
    /usr/bin/python3 -m json.tool "$T/.out" >/dev/null
    holds 'r["stdout"].startswith("a\0b\x01c\x7fd") and r["stdout"].endswith("z")'
    holds '"\u00e4" in r["stdout"] and "\\g\"h\t\r\n" in r["stdout"]'
    iconv -f UTF-8 -t UTF-16 "$T/.out" >/dev/null
    carrel run --json --max-output 1000 -c 'i=0; while [ $i -lt 300 ]; do printf "\303\244\360\237\230\200"; i=$((i+1)); done'
    /usr/bin/python3 -m json.tool "$T/.out" >/dev/null
    holds '"\ufffd" not in r["stdout"] and len(r["stdout"].encode()) <= 1000'
}
@test "binary and broken text give valid JSON; a cut never splits a character" { both binary_output; }

one_object() {
    carrel run --json -c 'echo "{"; echo "}" >&2; exit 9'
    [ "$status" -eq 9 ]
    [ "$(wc -l <"$T/.out")" -eq 1 ]
    [ ! -s "$T/.err" ] || ! has_cgroup
    holds 'r["exit_code"] == 9'
    carrel run --json --timeout 200ms -- sleep 50
    [ "$status" -eq 124 ]
    [ "$(wc -l <"$T/.out")" -eq 1 ]
    holds 'r["reason"] == "timeout" and r["exit_code"] is None and r["signal"] in (9, 15)'
    holds '"0.2s" in r["message"]'
}
@test "--json is one line, whatever the program prints and however it ends" { both one_object; }

json_keys() {
    local file
    carrel run --json -- true
    json 'sorted(r)' >"$T/good"
    carrel run --json -- frobnicate
    json 'sorted(r)' >"$T/bad"
    cmp "$T/good" "$T/bad"
}
@test "the object has the same members when there was no run" { both json_keys; }

# ---- files --------------------------------------------------------------------------------------

output_file() {
    carrel run --output r.json -- echo hi
    [ "$out" = hi ]
    [ "$(stat -c %a "$T/r.json")" = 644 ]
    mv "$T/r.json" "$T/.out"
    holds 'r["stdout"] == "hi\n"'
    carrel run --output r.json -- frobnicate
    [ "$status" -eq 127 ]
    cp "$T/r.json" "$T/.out"
    holds 'r["ok"] is False and "frobnicate" in r["message"]'
    # Replaced whole, by another file; nothing beside it.
    local before
    before=$(stat -c %i "$T/r.json")
    ln "$T/r.json" "$T/old"
    carrel run --output "$T/r.json" -- echo new
    [ "$(stat -c %i "$T/r.json")" != "$before" ]
    grep -q frobnicate "$T/old"
    grep -q new "$T/r.json"
    [ "$(cd "$T" && echo .[!.]* *)" = ".err .out old r.json state" ]
}
@test "--output replaces the file whole" { both output_file; }

output_through_link() {
    # A link is neither replaced nor followed to a file: it could lead anywhere.
    echo precious >"$T/target"
    ln -s target "$T/link.json"
    ln -s none "$T/dangling"
    carrel run --output link.json -- echo hi
    [ -z "$out" ] # nothing ran: its result could not be kept
    is_one_error 125 "carrel: write: 'link.json': is a link; carrel does not follow links there*"
    [ "$(cat "$T/target"; readlink "$T/link.json")" = $'precious\ntarget' ]
    carrel run --output dangling -- true
    is_one_error 125 "carrel: write: 'dangling': is a link;*"
    [ ! -e "$T/none" ]
    # Nor is a directory on the way: a run may have exchanged it.
    me mkdir -p w outside
    carrel run --workdir "w:rw" -c 'mkdir out; rm -rf out; ln -s ../outside out'
    carrel run --output w/out/r.json -- true
    is_one_error 125 "carrel: 'w/out/r.json': passes a link; carrel does not follow links there*"
    carrel run --output "$T/w/out/r.json" -- true
    is_one_error 125 "carrel: '$T/w/out/r.json': passes the link '$T/w/out'; carrel does not follow links there*"
    [ -z "$(ls -A "$T/outside")" ]
}
@test "--output does not write through a link" { both output_through_link; }

# A FIFO may be a run's, and a reader of it too. A descriptor of the caller's is the caller's.
output_to_a_pipe() {
    me mkfifo pipe
    exec 7<>"$T/pipe"
    carrel run --output pipe -- true
    is_one_error 125 "carrel: write: 'pipe': is a FIFO; expected a regular file"
    exec 7>&-
    me sh -c '"$0" run --output /dev/stdout -- true | cat >got' "$CARREL"
    mv "$T/got" "$T/.out"
    holds 'r["exit_code"] == 0'
    me sh -c '"$0" run --output /dev/fd/3 -- true 3>&1 | cat >got' "$CARREL"
    mv "$T/got" "$T/.out"
    holds 'r["exit_code"] == 0'
    me ln -s /proc/self/fd/1 stdout
    me sh -c '"$0" run --output stdout -- true | cat >got' "$CARREL" || true
    [ ! -s "$T/got" ]
    carrel run --output /dev/null -- true
    [ "$status" -eq 0 ]
    /usr/bin/python3 -c 'import socket, sys; socket.socket(socket.AF_UNIX).bind(sys.argv[1])' "$T/socket"
    carrel run --output socket -- true
    is_one_error 125 "carrel: write: 'socket': is a socket; expected a regular file"
    [ -S "$T/socket" ]
}
@test "--output writes to a descriptor and to no FIFO" { both output_to_a_pipe; }

output_to_a_device() {
    mknod -m 666 "$T/null" c 1 3 2>/dev/null || skip "device nodes cannot be made"
    local expected=0
    (: >"$T/null") 2>/dev/null || expected=125 # a file system without devices
    carrel run --output null -- true
    [ "$status" -eq "$expected" ]
    carrel python --output null -c pass
    [ "$status" -eq "$expected" ]
    [ -c "$T/null" ]
}
@test "--output does not replace a device" { only root output_to_a_device; }

output_dir_missing() {
    echo old >"$T/r.json"
    carrel run --output missing/r.json -- echo hi
    [ "$status" -eq 125 ]
    [[ "$err" == carrel:\ *missing/r.json* ]]
    [ -z "$out" ]
    [ "$(cat "$T/r.json")" = old ]
}
@test "--output into a directory that is not there leaves everything as it was" { both output_dir_missing; }

quiet() {
    carrel run --quiet --timeout 200ms -- sleep 50
    [ "$status" -eq 124 ]
    [ ! -s "$T/.err" ]
    carrel run --timeout 200ms -- sleep 50
    is_one_error 124 "carrel: *timed out*0.2s*"
    carrel run --quiet -- frobnicate
    is_one_error 127 "carrel: *"
    carrel run --quiet --xyzzy
    is_one_error 125 "carrel: *"
}
@test "--quiet leaves out notes, never errors" { both quiet; }
