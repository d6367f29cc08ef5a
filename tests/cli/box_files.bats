#!/usr/bin/env bats
# shellcheck disable=SC2030,SC2031,SC2154  # cli.bash sets $status, $out and others
# Files of sandboxes that stay: cp, ls, cat, write, rm, mv, mkdir, stat, watch, export, import.

load cli
load living

# ---- one file -----------------------------------------------------------------------------------

one_file() {
    create --name box
    carrel_reads "some text" write box:notes.txt
    [ "$status:$out:$err" = "0::" ]
    in_box 'cat notes.txt; stat -c "%a %U" notes.txt; echo from inside >>notes.txt'
    [ "$out" = $'some text\n644 agent' ] || [[ "$out" == $'some text\n644 '* ]]
    carrel cat box:notes.txt box:/workspace/notes.txt
    [ "$out" = $'some text\nfrom inside\nsome text\nfrom inside' ]
    carrel_reads "more" write --append "$id:notes.txt"
    carrel_reads "other" write --no-replace box:notes.txt
    is_one_error 125 "carrel: *notes.txt*File exists*"
    carrel_reads "secret" write --mode 600 box:/home/agent/s
    in_box 'tail -n 1 notes.txt; stat -c %a ~/s'
    [ "$out" = $'more\n600' ]
    carrel_reads "" write --mode 4755 box:x
    is_one_error 125 "carrel: --mode: *"
    carrel cat box:none
    is_one_error 125 "carrel: *'none'*No such file*"
    carrel cat box:/tmp
    is_one_error 125 "carrel: '/tmp': this is a directory"
}
@test "a file is written, read and appended to" { both one_file; }

looks() {
    create --name box
    in_box 'mkdir d; printf 12345 >d/file; chmod 640 d/file; ln -s file d/link; mkfifo d/pipe;
        touch -d @1000000000 d/file; touch "d/$(printf "a\nb\033[2J")"'
    carrel ls box:d
    [ "$out" = $'a\\x0ab\\x1b[2J\nfile\nlink\npipe' ]
    carrel ls -l box:d
    grep -qE '^-rw-r----- +[0-9]+ +[0-9]+ +5 2001-09-09T01:46:40 file$' <<<"$out"
    grep -qE '^lrwxrwxrwx .* link -> file$' <<<"$out"
    grep -qE '^prw.* pipe$' <<<"$out"
    carrel ls --json box:d
    holds '[e["name"] for e in r["entries"]] == ["a\nb\x1b[2J", "file", "link", "pipe"]'
    holds '[e["type"] for e in r["entries"]] == ["file", "file", "link", "fifo"]'
    holds 'r["entries"][1]["mode"] == "0640" and r["entries"][2]["target"] == "file"'
    carrel ls box:d/file
    [ "$out" = d/file ]
    carrel ls box:none
    is_one_error 125 "carrel: *'none'*"
    carrel stat box:d/link
    grep -qx 'type      link' <<<"$out"
    grep -qx 'target    file' <<<"$out"
    carrel stat --json --follow box:d/link
    holds 'r["type"] == "file" and r["size"] == 5 and r["modified"] == "2001-09-09T01:46:40.000000Z"'
    holds 'r["target"] is None'
    carrel stat --json box:none
    [ "$status" -eq 125 ]
    holds 'r["ok"] is False'
    carrel ls box:
    [ "$out" = d ] # the workspace
}
@test "ls and stat say what is there" { both looks; }

changes() {
    create --name box
    carrel mkdir box:a
    carrel mkdir box:a
    is_one_error 125 "carrel: *'a'*File exists*"
    carrel mkdir -p box:a box:b/c/d
    [ "$status" -eq 0 ]
    carrel mkdir --mode 700 box:private
    in_box 'stat -c %a private; echo 1 >a/one; echo 2 >two; ln -s a link'
    [ "$out" = 700 ]
    carrel mv box:two box:a
    carrel mv box:a/one box:a/first
    carrel mv --no-replace box:a/first box:a/two
    is_one_error 125 "carrel: *File exists*"
    in_box 'ls a; cat a/first a/two'
    [ "$out" = $'first\ntwo\n1\n2' ]
    carrel mv box:a/first box:/tmp/moved # another file system
    carrel mv box:b box:/tmp
    in_box 'cat /tmp/moved; ls a; test -d /tmp/b/c/d && test ! -e b && echo moved'
    [ "$out" = $'1\ntwo\nmoved' ]
    carrel rm box:a
    is_one_error 125 "carrel: *not empty*"
    carrel rm box:none
    is_one_error 125 "carrel: *'none'*"
    carrel rm -f box:none
    [ "$status" -eq 0 ]
    carrel rm -r box:link box:a box:/tmp/b
    [ "$status" -eq 0 ]
    carrel rm box:none box:private
    [ "$status" -eq 125 ]
    in_box 'ls -A; ls /tmp'
    [ "$out" = moved ]
    carrel mv box:/tmp/moved other:x
    is_one_error 125 "carrel: the paths are in different sandboxes*"
}
@test "mkdir, mv and rm change what is there" { both changes; }

# ---- copies -------------------------------------------------------------------------------------

copies() {
    create --name box
    me mkdir -p tree/sub/deep
    me sh -c 'echo 1 >tree/one; echo 2 >tree/sub/deep/two; chmod 4711 tree/one; ln -s sub/deep tree/l;
        head -c 5000000 /dev/urandom >tree/large; touch -d @1000000000 tree/sub'
    carrel cp tree box:
    [ "$status:$out:$err" = "0::" ]
    in_box 'cd tree; cat one l/two; stat -c %a one; stat -c %Y sub; test -O one && echo own'
    [ "$out" = $'1\n2\n711\n1000000000\nown' ]
    carrel cp --json box:tree back
    holds 'r["ok"] and r["files"] == 3 and r["directories"] == 3 and r["links"] == 1'
    holds 'r["bytes"] == 5000004 and r["skipped"] == 0'
    me diff -r tree back
    me sh -c 'test -O back/one && test "$(readlink back/l)" = sub/deep'
    carrel cp box:tree/sub/. back
    [ "$(me cat back/deep/two)" = 2 ]
    carrel cp box:tree/one back/sub/
    [ "$(me cat back/sub/one)" = 1 ]
    carrel cp box:tree/one none/
    is_one_error 125 "carrel: *there is no directory 'none/'"
    carrel cp tree back
    is_one_error 125 "carrel: neither path is in a sandbox*"
    carrel cp box:none back
    is_one_error 125 "carrel: *'none'*"
    carrel cp none box:
    is_one_error 125 "carrel: *'none'*"
    carrel cp tree nobody:
    is_one_error 125 "carrel: *'nobody'*"
    carrel cp --max-entries 3 box:tree small
    is_one_error 125 "carrel: *more than 3 entries"
    carrel cp --max-bytes 1M box:tree/large small
    is_one_error 125 "carrel: *more than 1M of data"
    me test ! -e small/large
}
@test "directories are copied both ways" { both copies; }

streams() {
    create --name box
    me sh -c 'head -c 3000000 /dev/urandom >data'
    me sh -c "\"$CARREL\" cp - box:data <data && \"$CARREL\" cp box:data - >back && cmp data back"
    carrel cp box:/ -
    is_one_error 125 "carrel: '/': this is a directory"
    create --name second
    carrel cp box:data second:copy
    in_box 'wc -c <copy'
    [ "$out" = 3000000 ]
}
@test "standard input and output, and a second sandbox, are ends of a copy" { both streams; }

# stream ARG...: `carrel cp ARG...` reads from descriptor 7 of ours
stream() {
    : >"$T/.out"
    me sh -c 'rm -f way; mkfifo way'
    me "$CARREL" "$@" >"$T/.out" 2>"$T/.err" <"$T/way" 3>&- &
    _cli_pids+=($!)
    exec 7>"$T/way"
}
# A file of this name has got something.
has_some() { [ -n "$(me "$CARREL" exec --quiet "$id" -c 'find . -type f -name "$1" -size +0' "$1")" ]; }

stream_is_a_copy() {
    create --name box
    in_box 'echo old >x; echo precious >target; ln -s target link; mkdir d'
    stream cp --json - box:x
    echo new >&7
    until_true has_some '.carrel-*'
    in_box 'cat x'
    [ "$out" = old ]
    exec 7>&-
    ended
    [ "$status" -eq 0 ]
    carrel_reads "text" cp --json - box:link # it is replaced, not followed
    holds 'r["ok"] and r["files"] == 1 and r["bytes"] == 5 and r["directories"] == 0'
    in_box 'cat x target link; stat -c "%F %a" link; find . -name ".carrel-*"'
    [ "$out" = $'new\nprecious\ntext\nregular file 644' ]
    carrel_reads "too much" cp --max-bytes 3 - box:x
    is_one_error 125 "carrel: 'x': this is more than 3 of data"
    carrel_reads "text" cp - box:d
    is_one_error 125 "carrel: 'd' is a directory; a stream needs the name of a file"
    carrel_reads "text" cp - box:none/x
    is_one_error 125 "carrel: *'none/'*No such file*"
    carrel_reads "text" cp - box:/usr/x
    is_one_error 125 "carrel: '/usr/x': make file: *"
    in_box 'cat x; find . -name ".carrel-*"; truncate -s 1T huge'
    [ "$out" = new ]
    carrel cp box:huge -
    is_one_error 125 "carrel: 'huge': this is more than 256G of data"
    [ ! -s "$T/.out" ]
    carrel cp --max-bytes 4 box:x -
    [ "$status:$out" = "0:new" ]
    carrel cp --max-bytes 3 box:x -
    is_one_error 125 "carrel: 'x': this is more than 3 of data"
}
@test "a stream is copied as a file is" { both stream_is_a_copy; }

left_out() {
    create --name box
    in_box 'mkdir d; mkfifo d/pipe; ln -s /etc/passwd d/out; echo >d/file'
    carrel cp box:d d
    [ "$status" -eq 0 ]
    [[ "$err" == *"left out 1 entry that is neither file"* ]]
    [[ "$err" == *"left out 1 link that leads out"* ]]
    [ "$(me ls d)" = file ]
    carrel cp box:d/pipe x
    is_one_error 125 "carrel: *'d/pipe' is neither a file nor a directory"
    carrel cp box:/proc x
    is_one_error 125 "carrel: '/proc': its content is virtual, from the kernel"
    me ln -s d way
    carrel cp box:d/file way
    is_one_error 125 "carrel: *'way': is a link; carrel does not follow links there*"
    carrel cp box:d/file way/
    is_one_error 125 "carrel: *'way/': is a link; carrel does not follow links there*"
}
@test "what does not belong on the host stays away from it, and that is said" { both left_out; }

# What an earlier run left on the host, where the caller names a file.
led_astray() {
    local link="carrel does not follow links there, since an earlier program may have made it: name its target"
    me sh -c 'mkdir w outside outside/d; echo secret >outside/s'
    carrel run --workdir w -c 'ln -s ../outside ld; ln -s ../outside/s ls; mkfifo fifo'
    [ "$status" -eq 0 ]
    create --name box
    in_box 'echo f >f; mkdir tree; echo x >tree/x'
    local path
    for path in w/ld/f w/ld/d w/ld/d/ w/ld/d/f; do
        carrel cp box:f "$path"
        is_one_error 125 "carrel: *'$path': passes a link; $link"
        carrel cp box:tree "$T/$path"
        is_one_error 125 "carrel: *'$T/$path': passes the link '$T/w/ld'; $link"
    done
    carrel_reads text cp - w/ld/f
    [ "$status" -ne 0 ]
    [ "$(cd "$T/outside" && echo * d/*)" = "d s d/*" ]
    for path in w/ls w/ld w/ld/; do
        carrel cp "$path" box:got
        is_one_error 125 "carrel: *'$path': is a link; $link"
    done
    carrel cp w/ld/s box:got
    is_one_error 125 "carrel: *'w/ld/s': passes a link; $link"
    carrel cp "$T/w/ld/." box:got
    is_one_error 125 "carrel: *'$T/w/ld/.': is a link; $link"
    carrel cp w/fifo box:got
    is_one_error 125 "carrel: *'w/fifo' is neither a file nor a directory"
    in_box 'ls got*'
    [ "$status" -ne 0 ]
    carrel cp outside/s box:got
    in_box 'cat got'
    [ "$out" = secret ]
    carrel cp box:f "$T/outside/d"
    [ "$(me cat outside/d/f)" = f ]
    [ ! -L /var/run ] || [ "$who" = user ] || {
        carrel cp box:f "/var/run/../$T/outside/new"
        [ "$(me cat outside/new)" = f ]
    }
}
@test "a copy passes no link on the host that a run left" { both led_astray; }

as_another() {
    create --name box
    in_box 'mkdir -m 777 open /dev/shm/open; mkdir -m 700 closed'
    carrel mkdir --user 1234:77 box:/dev/shm/open/theirs
    if [ "$who" = root ]; then
        [ "$status" -eq 0 ]
        in_box 'stat -c %u:%g /dev/shm/open/theirs'
        [ "$out" = 1234:77 ]
        carrel ls --user 1234 box:closed
        is_one_error 125 "carrel: *Permission denied*"
        # On disk there is one owner for all.
        carrel mkdir --user 1234 box:open/x
        is_one_error 125 "carrel: *'open/x': this user can own nothing on that file system"
    else
        is_one_error 125 "carrel: *one user*"
    fi
    carrel ls --user nobodyatall box:
    is_one_error 125 "carrel: --user: 'nobodyatall' is not a user*"
}
@test "--user: files are accessed as that user" { both as_another; }

# ---- watch --------------------------------------------------------------------------------------

# A line in the sandbox that leaves $out and $err to what runs in the background.
beside() { me "$CARREL" exec --quiet "$id" -c "$@" >/dev/null; }
watching() { grep -q "watching 'd'" "$T/.err"; }
watches() {
    create --name box
    in_box 'mkdir -p d/sub'
    background watch -r --count 5 box:d
    until_true watching
    beside 'echo x >d/sub/new; mv d/sub/new d/other; rm d/other; mkdir d/end'
    ended
    [ "$status" -eq 0 ]
    [ "$out" = "create   d/sub/new
write    d/sub/new
rename   d/sub/new -> d/other
remove   d/other
create   d/end/" ]
}
ready() { grep -q '"event":"ready"' "$T/.out"; }
watch_ends() {
    create --name box
    in_box 'mkdir d'
    background watch --json box:d
    until_true ready
    beside 'touch d/x'
    until_true grep -q '"event":"create","path":"d/x","is_directory":false' "$T/.out"
    me "$CARREL" destroy box
    ended
    [ "$status" -eq 0 ]
    carrel watch nobody:d
    is_one_error 125 "carrel: *'nobody'*"
}
# The kernel counts them for the user, so a program in the sandbox must not be able to take them all.
watch_is_bounded() {
    create --name box
    in_box 'mkdir -p d/a'
    background watch -r box:d
    until_true watching
    beside 'cd d/a && seq 17000 | xargs mkdir'
    ended
    [ "$status" -eq 125 ]
    [[ "$err" == *"directories; one watch takes no more of this user's" ]]
    carrel watch -r --count 1 box:d
    is_one_error 125 "carrel: *more than * directories; one watch takes no more of this user's"
}
@test "watch -r takes a bounded number of the user's watches" { both watch_is_bounded; }
@test "watch tells of changes as they happen" { both watches; }
@test "watch ends with the sandbox" { both watch_ends; }

# ---- tar ----------------------------------------------------------------------------------------

tars() {

    create --name box
    in_box 'mkdir -p d/sub out; echo 1 >d/one; chmod 755 d/one; ln -s ../one d/sub/l; ln -s / d/root'
    me sh -c "\"$CARREL\" export box:d >d.tar 2>note"
    [ "$(me tar tf d.tar | sort | tr '\n' ' ')" = ". one sub sub/l " ]
    [[ "$(cat "$T/note")" == *"1 links that lead out"* ]]
    me mkdir x
    me tar xf d.tar -C x
    [ "$(me stat -c %a x/one)" = 755 ]
    me sh -c "gzip <d.tar | \"$CARREL\" import --json box:out >made"
    cat "$T/made" >"$T/.out"
    holds 'r["files"] == 1 and r["links"] == 1 and r["directories"] == 1 and r["skipped"] == 0'
    in_box 'cat out/sub/l'
    [ "$out" = 1 ]
    carrel_reads "no archive" import box:out
    is_one_error 125 "carrel: *"
    carrel import box:none
    is_one_error 125 "carrel: *'none'*"
}
@test "export and import are a tar" { both tars; }

# ---- the end of the sandbox --------------------------------------------------------------------

# Its files go with it; what is missing was not missing before.
many_files() { in_box 'mkdir t; cd t; for i in $(seq 5000); do echo $i >f$i; done'; }
has_begun() { [ -n "$(ls -A "$T/$1" 2>/dev/null)" ]; }

half_a_copy() {
    create --name box
    many_files
    background cp --json box:t out
    until_true has_begun out
    kill -STOP "$pid"
    me "$CARREL" destroy box
    kill -CONT "$pid"
    ended
    is_one_error 125 "carrel: copy 't': the sandbox has ended"
    holds 'r["ok"] is False and "has ended" in r["error"]'
}
@test "a copy of a sandbox that ended meanwhile is an error" { both half_a_copy; }

half_an_archive() {
    create --name box
    many_files
    me mkfifo way
    me sh -c '"$0" export box:t >way 2>said; echo $? >status' "$CARREL" 3>&- &
    {
        head -c 20000 # it has begun, and waits for us
        me "$CARREL" destroy box
        cat
    } <"$T/way" >"$T/tar"
    wait $!
    [ "$(cat "$T/status")" -eq 125 ]
    [ "$(cat "$T/said")" = "carrel: the sandbox has ended" ]
    not tar tf "$T/tar" >/dev/null
}
@test "an archive of a sandbox that ended meanwhile has no end" { both half_an_archive; }

lost() { # lost ARG...: what reads from us when its sandbox ends
    create --name box
    stream "$@"
    echo some >&7
    until_true has_some '*'
    me "$CARREL" destroy box
    echo lost >&7
    exec 7>&-
    ended
    is_one_error 125 "carrel: *the sandbox has ended"
}
is_lost() {
    lost cp - box:x
    lost write box:x
    lost write --append box:x
}
@test "what was to be written to a sandbox that ended meanwhile is an error" { both is_lost; }

# ---- the journal --------------------------------------------------------------------------------

# journal_has EXPRESSION: true of the records of $id's run, as the list `r`; f are those of files, each
# as its op and paths, and b the changes below directories.
journal_has() {
    local run
    run=$(me "$CARREL" inspect "$id" | grep -oE '"run":"[^"]*"' | cut -d'"' -f4)
    me cat "state/carrel/runs/$run/journal.jsonl" >"$T/.journal"
    /usr/bin/python3 - "$T/.journal" "$1" <<'END'
import json, sys
r = [json.loads(line) for line in open(sys.argv[1], "rb").read().split(b"\n")[:-1]]
f = [" ".join([e["op"], e["path"]] + ([e["other"]] if "other" in e else [])) for e in r if e["event"] == "file"]
b = [c for e in r if e["event"] == "files_below" for c in e["changes"]]
print(f, b)
sys.exit(not eval(sys.argv[2]))
END
}

recorded() {
    create --name box
    carrel_reads "some text" write box:notes
    carrel cat box:notes
    carrel mkdir box:d
    carrel mv box:notes box:d/moved
    journal_has 'f == ["open_write notes", "open_read notes", "make_dir d", "rename notes d/moved"]'
    journal_has 'all(e["user"] is None for e in r if e["event"] == "file")'
    carrel stat box:d
    journal_has 'len(f) == 4' # a look is not recorded
    me sh -c 'mkdir t && echo 1 >t/one && echo 2 >t/two'
    carrel cp t box:d
    [ "$status" -eq 0 ]
    journal_has 'f[4:] == ["open_dir d"] and ["make_dir", "/workspace/d", "t"] in b'
    journal_has '{c[3] for c in b if c[0] == "rename" and c[1] == "/workspace/d/t"} == {"one", "two"}'
    carrel cp box:d/t back
    me sh -c '"$0" export box:d >tar && "$0" import box:d <tar' "$CARREL"
    carrel rm -r box:d
    [ "$status" -eq 0 ]
    journal_has 'f[5:] == ["open_read d/t", "open_read d", "open_dir d", "remove d", "open_dir d", "remove_dir d"]'
    journal_has '["remove", "/workspace/d/t", "one"] in b'
    carrel destroy "$id"
    carrel journal verify
    [ "$status" -eq 0 ]
}
@test "the journal has what was done to files" { both recorded; }

# A name is one value of one record, whatever is in it.
recorded_bytes() {
    local name=$'a\n{"seq":99,"event":"sealed"}\033[2J\xff'
    create --name box
    carrel_reads x write "box:$name"
    [ "$status" -eq 0 ]
    me mkdir t
    me touch "t/$name"
    carrel cp t box:
    [ "$status" -eq 0 ]
    journal_has 'len([e for e in r if e["event"] == "file" and e["op"] == "open_write"]) == 1'
    journal_has 'any(e.get("path", "").startswith("a\n{") and "path_sha256" in e for e in r)'
    journal_has 'any(c[0] == "rename" and c[3].startswith("a\n{") for c in b)'
    journal_has '[e["seq"] for e in r] == list(range(1, len(r) + 1))'
    not grep -aqP "[\x00-\x1f\x7f]" "$T/.journal"
    carrel destroy "$id"
    carrel journal verify
    [ "$status" -eq 0 ]
}
@test "names with newlines and control characters stay in one record" { both recorded_bytes; }

# What cannot be recorded is not done.
unrecorded() {
    local i
    me mkdir w
    echo 'journal: {max_bytes: 6k}' | me tee policy.yaml >/dev/null
    create --policy policy.yaml --workdir w
    for ((i = 0; i < 100; i++)); do
        carrel_reads x write "$id:f$i"
        [ "$status" -eq 0 ] || break
    done
    is_one_error 125 "carrel: *nothing is run unrecorded: *is full"
    [ "$i" -gt 2 ]
    [ -e "$T/w/f$((i - 1))" ]
    [ ! -e "$T/w/f$i" ]
}
@test "a file operation that cannot be recorded is refused" { both unrecorded; }

# Ten thousand files of a copy are a few records, which count every one.
recorded_copy() {
    create --name box
    me sh -c 'mkdir t && seq 3000 | split -l 1 -a 4 - t/'
    carrel cp t box:
    [ "$status" -eq 0 ]
    journal_has 'len(r) < 60'
    journal_has 'sum(e["count"] for e in r if e["event"] == "files_below") == 6002'
    journal_has 'all(e["listed"] == len(e["changes"]) for e in r if e["event"] == "files_below")'
    [ "$(stat -c %s "$T/.journal")" -lt 300000 ]
}
@test "a large copy is counted in few records" { both recorded_copy; }

# ---- words --------------------------------------------------------------------------------------

words() {
    for command in ls cat write rm stat watch export import mkdir; do
        carrel $command
        is_one_error 125 "carrel: expected 'carrel $command *"
        carrel $command /etc/passwd
        is_one_error 125 "carrel: '/etc/passwd' names no sandbox; expected SANDBOX:PATH"
        carrel $command nobody:x
        is_one_error 125 "carrel: *'nobody'*"
        carrel $command --help
        [[ "$out" == "Usage: carrel $command "* ]]
    done
    carrel cp one
    is_one_error 125 "carrel: expected 'carrel cp SOURCE TARGET'*"
    carrel ls a:b c:d
    is_one_error 125 "carrel: expected 'carrel ls *"
}
@test "words that are missing or mean nothing are refused" { only user words; }
