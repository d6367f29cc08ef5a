#!/usr/bin/env bats
# shellcheck disable=SC2030,SC2031,SC2154  # cli.bash sets $status, $out and others
# carrel journal: what it shows, what it finds, and that nothing in a journal reaches a terminal raw.

load cli

# journal ARG...: as `carrel journal`, with keys of the test's own.
journal() {
    status=0
    me timeout -k 5 120 env XDG_CONFIG_HOME="$T/config" "$CARREL" journal "$@" \
        >"$T/.out" 2>"$T/.err" </dev/null || status=$?
    _collect journal "$@"
}

# writes RUN STEP...: a journal, written step by step (tests/journal_sample.c).
writes() {
    local sample
    sample=$(cd "$BATS_TEST_DIRNAME/../.." && pwd)/build/tests/journal_sample
    [ -x "$T/sample" ] || install -m 755 "$sample" "$T/sample"
    me mkdir -p state/carrel
    me ./sample state/carrel/runs "$@"
}

runs() { echo "$T/state/carrel/runs"; }
file_of() { echo "$(runs)/$1/journal.jsonl"; }

# edit FILE PROGRAM: changes the text of a file, in python: `t` is the list of its lines.
edit() {
    /usr/bin/python3 - "$1" "$2" <<'EOF'
import sys
with open(sys.argv[1], "rb") as f:
    t = f.read().split(b"\n")[:-1]
exec(sys.argv[2])
with open(sys.argv[1], "wb") as f:
    f.write(b"".join(line + b"\n" for line in t))
EOF
}

nothing() {
    journal list
    [ "$status" -eq 0 ]
    [ "$err" = "no runs yet" ]
    journal verify
    [ "$status" -eq 0 ]
    journal list --json
    holds "r == {'ok': True, 'runs': []}"
    [ ! -e "$T/state" ] # looking makes nothing
}
@test "without runs there is nothing to show and nothing is made" { both nothing; }

reads() {
    writes R-one first second seal
    writes R-two only
    journal list
    [ "$status" -eq 0 ]
    [[ "$out" == "RUN "*$'\nR-one  T-1 '*" sealed "*" exited "*" 3"*$'\nR-two  T-1 '*" unsealed "* ]]
    journal list --json
    holds "[(x['run'], x['task'], x['state'], x['reason'], x['records']) for x in r['runs']] == [('R-one', 'T-1', 'sealed', 'exited', 3), ('R-two', 'T-1', 'unsealed', None, 0)]"
    journal show R-one
    [ "$status" -eq 0 ]
    [[ "$out" == *" process_started "*'  text="first"'$'\n'*'  text="second"'$'\n'*" sealed "*'  reason="exited"  records=3'$'\n'"sealed, 3 records" ]]
    journal show R-one --json
    holds "r['ok'] and r['run'] == 'R-one' and r['state'] == 'sealed' and [x['seq'] for x in r['journal']] == [1, 2, 3] and r['journal'][2]['hash'] == r['seal']"
    journal verify
    [ "$status" -eq 3 ]
    [[ "$out" == *$'\nR-one '*" sealed, 3 records"$'\n'"R-two "*" unsealed, 1 record: "*$'\n'"runs: 1 sealed, 1 unsealed" ]]
    journal verify R-one "$(file_of R-one)"
    [ "$status" -eq 0 ]
}
@test "runs are listed, shown and verified" { both reads; }

names() {
    writes R-aa1 x seal
    writes R-aa2 x seal
    journal verify R-aa1
    [ "$status" -eq 0 ]
    journal show R-aa
    is_one_error 125 "carrel: 2 runs begin with 'R-aa': R-aa2, R-aa1"
    journal show R-x --json
    [ "$status" -eq 125 ]
    holds "not r['ok'] and r['error'].startswith(\"there is no run 'R-x'\")"
    journal show ../etc
    [ "$status" -eq 125 ]
    journal show $'\e[31m'
    is_one_error 125 "carrel: there is no run '*x1b\[31m'*"
    journal shwo
    is_one_error 125 "carrel: unknown subcommand 'shwo' (did you mean 'journal show'?)"
    journal show
    is_one_error 125 "carrel: missing argument; usage: carrel journal show *"
    journal list R-aa1
    is_one_error 125 "carrel: unexpected argument 'R-aa1'; *"
    journal verify --force
    is_one_error 125 "carrel: unknown option '--force'*"
}
@test "a run is called by its id or the only beginning of it" { both names; }

# finds SENTENCE PROGRAM: after that change of R-1's journal.
finds() {
    cp "$(file_of R-1)" "$T/saved"
    edit "$(file_of R-1)" "$2"
    journal verify R-1
    [ "$status" -eq 1 ]
    # shellcheck disable=SC2053  # the right side is a pattern
    [[ "$out" == "R-1 "*" BAD at record "$1 ]]
    journal verify
    [ "$status" -eq 1 ]
    [[ "$out" == *"runs: 1 sealed, 1 bad" ]]
    cat "$T/saved" >"$(file_of R-1)"
}
tampering() {
    writes R-1 a b c d seal e f seal
    writes R-2 a seal
    finds "3: its hash is not that of its text*" 't[2] = t[2].replace(b"\"c\"", b"\"C\"")'
    finds "2: it is number 3: records are missing*" 'del t[1]'
    finds "2: it is number 3: *" 't[1], t[2] = t[2], t[1]'
    finds "4: it is number 1: *" 't.insert(3, t[0])'
    finds "6: the index has a seal of 8 records*truncated or replaced" 'del t[5:]'
    finds "5: the index has a seal of 5 records*" 'del t[4:]'
    finds "9: its end does not have the form*" 't.append(b"{}")'
    finds "1: the index has a seal*" 'del t[:]'
    finds "2: it is of another run: 'R-2'" "t[1:] = open('$(file_of R-2)', 'rb').read().split(b'\n')[1:-1]"
    journal verify R-1
    [ "$status" -eq 0 ]
}
@test "verify names the first record that was changed, lost, moved or cut off" { both tampering; }

taken_away() {
    writes R-1 a seal
    writes R-2 a seal
    rm "$(file_of R-1)"
    journal verify
    [ "$status" -eq 1 ]
    [[ "$out" == *"R-1 "*" BAD: the index knows it, and its journal is not there"* ]]
    journal show R-1
    is_one_error 125 "carrel: the journal of run 'R-1' is missing, but the index lists the run"
    edit "$(runs)/index.jsonl" 't[3] = t[3].replace(b"exited", b"denied")'
    journal verify
    [ "$status" -eq 1 ]
    [[ "$out" == "index "*" BAD at record 4: its hash is not"* ]]
    journal list
    [ "$status" -eq 1 ]
    [[ "$err" == "carrel: record 4 of the index is bad: "* ]]
    edit "$(runs)/index.jsonl" 'del t[:]'
    journal verify
    [ "$status" -eq 1 ]
    [[ "$out" == *"R-2 "*" BAD: the index does not know this run"* ]]
}
@test "verify misses a journal that was taken away, and a changed index" { both taken_away; }

killed() {
    not writes R-1 a b die 2>/dev/null
    journal list
    [[ "$out" == *"R-1  T-1 "*" unsealed "* ]]
    journal verify R-1
    [ "$status" -eq 3 ]
    [[ "$out" == "R-1 "*" unsealed, 2 records: its end was not recorded: carrel was killed, or could not write" ]]
    printf '{"seq":3,"time' >>"$(file_of R-1)"
    journal verify R-1
    [ "$status" -eq 3 ]
    [[ "$out" == "R-1 "*" unsealed, 2 records: record 3 is cut short (14 bytes of it)" ]]
    writes R-1 c seal # taken up again
    journal verify R-1
    [ "$status" -eq 0 ]
    [[ "$out" == "R-1 "*" sealed, 5 records (1 record of something lost in a crash)" ]]
}
@test "a killed run verifies up to its last record and is called unsealed" { both killed; }

is_waiting() { grep -qs waiting "$T/said"; }
has_shown() { grep -qs "$1" "$T/shown"; }
followed() {
    local writer reader
    mkfifo -m 666 "$T/go"
    writes R-0 x # puts the sample there
    : >"$T/said"
    : >"$T/shown"
    (writes R-1 first wait second seal <"$T/go" >"$T/said" 3>&-) &
    writer=$!
    _cli_pids+=("$writer")
    exec 9>"$T/go"
    until_true is_waiting
    journal verify R-1
    [ "$status" -eq 3 ]
    [[ "$out" == "R-1 "*" in progress, 1 record" ]]
    (
        exec 3>&- 9>&-
        me env "$CARREL" journal show --follow R-1 >"$T/shown"
    ) &
    reader=$!
    _cli_pids+=("$reader")
    until_true has_shown first
    exec 9>&-
    wait "$writer"
    wait "$reader"
    cat "$T/shown"
    [[ "$(cat "$T/shown")" == *'"first"'*'"second"'*"sealed, 3 records" ]]
    # What is over ends at once.
    journal show --follow --json R-1
    [ "$status" -eq 0 ]
    [ "$(wc -l <<<"$out")" -eq 3 ]
    cmp "$T/.out" "$(file_of R-1)"
}
@test "a run in progress is followed until it is over" { both followed; }

raw() {
    writes R-1 $'\e]0;title\a\n{"seq":9}\r\e[2J\x7f' $'\xc2\x9b31m\xe2\x80\xae\xff' '"},{' seal
    local command
    for command in "list" "show R-1" "show --json R-1" "verify" "export R-1" "export --json R-1"; do
        # shellcheck disable=SC2086  # words
        journal $command
        [ "$status" -eq 0 ]
        /usr/bin/python3 - "$T/.out" "$T/.err" <<'EOF'
import sys
for name in sys.argv[1:]:
    text = open(name, "rb").read().decode("utf-8")
    assert not [c for c in text if c != "\n" and (ord(c) < 32 or 0x7f <= ord(c) < 0xa0 or c in "\u2028\u2029\u202e")], text
EOF
    done
    [ "$(wc -l <"$(file_of R-1)")" -eq 4 ]
    journal show --json R-1
    holds "r['journal'][0]['text'] == '\x1b]0;title\x07\n{\"seq\":9}\r\x1b[2J\x7f' and len(r['journal'][1]['text_sha256']) == 64"
}
@test "text of any kind stays one record and never reaches a terminal raw" { both raw; }

forged_controls() {
    # Right hashes, and raw control characters where the writer would have put escapes.
    writes R-1 a seal
    edit "$(file_of R-1)" '
import hashlib
line = t[0].replace(b"\"a\"", b"\"\xc2\x9b31m\"")
body = line[:line.rindex(b",\"hash\":")]
t[:] = [body + b",\"hash\":\"" + hashlib.sha256(body).hexdigest().encode() + b"\"}"]'
    journal show "$(file_of R-1)"
    [ "$status" -eq 1 ]
    [[ "$out" == "BAD at record 1: it has control characters or is not UTF-8" ]]
}
@test "a line that carrel would not have written is not shown" { both forged_controls; }

exports() {
    writes R-1 a b seal
    journal export R-1 --output "$T/archive"
    [ "$status" -eq 0 ]
    cmp "$T/archive" "$(file_of R-1)"
    [ "$(stat -c %a "$T/archive")" = 600 ]
    journal verify "$T/archive"
    [ "$status" -eq 0 ]
    journal export R-1 --output "$T/archive"
    is_one_error 125 "carrel: create '*/archive': File exists"
    journal export --json R-1
    holds "r['format'] == 'carrel journal 1' and r['verdict']['state'] == 'sealed' and len(r['journal']) == 3"
    edit "$(file_of R-1)" 'del t[1]'
    journal export R-1
    is_one_error 1 "carrel: BAD at record 2: *; --force exports it anyway"
    [ -z "$out" ]
    journal export R-1 --force
    [ "$status" -eq 1 ]
    cmp "$T/.out" "$(file_of R-1)"
    journal export --json --force R-1
    holds "r['verdict']['bad_record'] == 2 and len(r['journal']) == 1"
}
@test "an export is what verifies, and what does not is refused" { both exports; }

keys() {
    writes R-0 x seal
    journal keygen --json
    [ "$status" -eq 0 ]
    holds "len(r['key_id']) == 16 and len(r['public']) == 64"
    local id
    id=$(json "r['key_id']")
    [ "$(stat -c %a "$T/config/carrel/journal.key")" = 600 ]
    journal keygen
    is_one_error 125 "carrel: there is a key already; move it away to create another: create '*/journal.pub': File exists"
    writes R-1 key="$T/config/carrel/journal.key" a seal b seal
    journal verify
    [ "$status" -eq 0 ]
    [[ "$out" == *"R-0 "*" sealed, 2 records"$'\n'*"R-1 "*" sealed, 4 records, signed by $id"* ]]
    # With a key that is named there must be a signature of it.
    journal verify R-0 --key "$T/config/carrel/journal.pub"
    [ "$status" -eq 1 ]
    [[ "$out" == *" BAD at record 2: it is not signed" ]]
    # Another's journal, right in itself.
    mv "$T/config" "$T/mine"
    journal keygen
    journal verify R-1
    [ "$status" -eq 1 ]
    [[ "$out" == *" BAD at record 2: it is signed by another key ($id)" ]]
    journal verify R-1 --key "$T/mine/carrel/journal.pub"
    [ "$status" -eq 0 ]
    chmod 666 "$T/mine/carrel/journal.pub"
    journal verify R-1 --key "$T/mine/carrel/journal.pub"
    is_one_error 125 "*journal.pub' can be written by others (mode 0666)"
}
@test "seals are signed, and only by the key that counts" { both keys; }

written_anew() {
    journal keygen
    writes R-1 key="$T/config/carrel/journal.key" a b seal
    mv "$(runs)" "$T/true"
    writes R-1 a forged seal # all hashes right, and the index too
    journal verify
    [ "$status" -eq 0 ] # without a signature that is demanded this cannot be told
    journal verify --key "$T/config/carrel/journal.pub"
    [ "$status" -eq 1 ]
    [[ "$out" == *"BAD at record 3: it is not signed"* ]]
}
@test "a journal that was rewritten is found by its signature" { both written_anew; }

records() { # records EVENT: the journal of the only run has such a record
    grep -qs "\"event\":\"$1\"" "$(runs)"/*/journal.jsonl
}

real_run() {
    carrel run --quiet -- sh -c 'exit 3'
    [ "$status" -eq 3 ]
    carrel run --quiet --timeout 1s -- sleep 60
    [ "$status" -eq 124 ]
    journal verify
    [ "$status" -eq 0 ]
    [[ "$out" == *"runs: 2 sealed" ]]
    journal list
    [[ "$out" == *" sealed "*" exited "*$'\n'*" sealed "*" timeout "* ]]
}
@test "runs are recorded and sealed, however they end" { both real_run; }

killed_run() {
    background run --quiet -- sleep 600
    until_true records process_started
    journal verify
    [ "$status" -eq 3 ]
    [[ "$out" == *"runs: 0 sealed, 1 in progress" ]]
    kill -KILL "$pid"
    ended
    is_unsealed() {
        journal verify
        [[ "$out" == *"runs: 0 sealed, 1 unsealed" ]]
    }
    until_true is_unsealed # the sandbox ends a moment after carrel
    [ "$status" -eq 3 ]
    journal show R
    [ "$status" -eq 0 ]
    [[ "$out" == *" process_started "*$'\n'"unsealed, "*": its end was not recorded: carrel was killed, or could not write" ]]
}
@test "a run whose carrel is killed leaves a journal that is right up to there" { both killed_run; }

evil_words() {
    carrel run --quiet -- printf $'%s\e]0;x\a\n{"seq":1}' $'a\nb\e[2J\xff' $'\xc2\x9b'
    [ "$status" -eq 0 ]
    journal show R
    [ "$status" -eq 0 ]
    not grep -qP '[\x00-\x09\x0b-\x1f\x7f]|\xc2[\x80-\x9f]' "$T/.out"
    [ "$(grep -c . "$T/.out")" -eq "$(($(wc -l <"$(echo "$(runs)"/*/journal.jsonl)") + 1))" ]
    not env LC_ALL=C grep -qP '[\x00-\x09\x0b-\x1f\x7f]' "$(runs)"/*/journal.jsonl
}
@test "arguments of any kind are one record, and harmless to look at" { both evil_words; }

many_words() {
    local word
    word=$(head -c 100000 /dev/zero | tr '\0' 'x')
    carrel run --quiet -- true "$word" "$word" "$word" "$word" "$word" "$word" "$word" "$word" \
        "$word" "$word" "$word"
    [ "$status" -eq 0 ]
    [ "$(stat -c %s "$(runs)"/*/journal.jsonl)" -lt 300000 ]
    journal verify
    [ "$status" -eq 0 ]
    journal show R --json
    holds "r['journal'][0]['argv_count'] == 12 and r['journal'][0]['argv_bytes'] > 1100000 and len(r['journal'][0]['argv_sha256']) == 64"
}
@test "a megabyte of arguments stays a bounded record" { both many_words; }

full_disk() {
    mkdir -p "$T/state" "$T/desk"
    # In a mount namespace of our own: the state is on a small file system.
    # shellcheck disable=SC2016  # for the inner shell
    me unshare -m sh -c '
        set -e
        mount -t tmpfs -o size=256k,mode=0700 tmpfs "$1"
        "$2" run --quiet --workdir "$3" -- touch before
        cat /dev/zero >"$1/filler" 2>/dev/null || true
        code=0
        "$2" run --quiet --workdir "$3" -- touch after 2>"$3/said" || code=$?
        cat "$3/said"
        test "$code" -eq 125
        grep -q "nothing is run unrecorded: .*No space left" "$3/said"
        "$2" journal verify || test $? -eq 3
    ' sh "$T/state" "$CARREL" "$T/desk"
    [ -e "$T/desk/before" ]
    [ ! -e "$T/desk/after" ]
}
@test "nothing runs where it cannot be recorded" { only root full_disk; }

unreachable() {
    carrel run --quiet -- sh -c "ls -d $T/state $T/state/carrel/runs /var/lib/carrel 2>/dev/null; test \$? -ne 0"
    [ "$status" -eq 0 ]
    [ -z "$out" ]
    [ -e "$(runs)/index.jsonl" ]
}
@test "a program does not see the journals" { both unreachable; }
