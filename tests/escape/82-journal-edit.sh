# shellcheck shell=bash disable=SC2034,SC2154
# An attacker with write access changes the history: edits, drops, moves and repeats records,
# inserts foreign ones, continues differently, or recomputes all hashes. To a reader of JSON lines
# each of these is a valid file; verify names the first wrong record.
# shellcheck source=journals.sh
source "$here/journals.sh"

# A change of the lines `t` of a journal with the records
#   1 run_started  2 egress_decision  3 workspace_made  4 sandbox_made  5 process_started
#   6 process_ended  7 sealed  8 workspace_committed  9 run_ended  10 sealed
# where `o` are those of another run, and what verify says: record and reason.
changes=(
    "edit|6: its hash is not that of its text|t[5] = t[5].replace(b'\"exit_code\":0', b'\"exit_code\":1')"
    "edit-first|1: its hash is not|t[0] = t[0].replace(b'\"sh\"', b'\"ls\"')"
    "edit-seal|7: its hash is not|t[6] = t[6].replace(b'\"exited\"', b'\"denied\"')"
    "edit-and-hash|7: it does not follow the record before it|t[5] = hashed(t[5].replace(b'\"exit_code\":0', b'\"exit_code\":1'))"
    "drop|4: it is number 5: records are missing|del t[3]"
    "drop-first|1: it is number 2: records are missing|del t[0]"
    "reorder|5: it is number 6: |t[4], t[5] = t[5], t[4]"
    "truncate|9: the index has a seal of 10 records|del t[8:]"
    "truncate-to-a-seal|8: the index has a seal of 10 records|del t[7:]"
    "truncate-all|1: the index has a seal of 7 records|del t[:]"
    "splice|4: it is of another run: 'T-1+R-2'|t[3:] = o[3:]"
    "splice-one|6: it is of another run|t[5] = o[5]"
    "replay|7: it is number 5: |t.insert(6, t[4])"
    "replay-at-the-end|11: it is number 1: |t.append(t[0])"
    "add|11: its hash is not|t.append(t[9].replace(b'\"seq\":10', b'\"seq\":11'))"
    "rename|1: it is of another run: 'T-1+R-2'|t[:] = o"
    # Two continuations after record 5, both with right hashes: one after the other, and one
    # instead.
    "fork|11: it is number 6: |t += other_way(t, 5)[5:]"
    "fork-sealed|7: |t[:] = other_way(t, 5)"
    "fork-unsigned|7: the index has a seal of 7 records|t[:] = unsigned(other_way(t, 5))"
    "fork-after-the-seal|10: |t[:] = other_way(t, 7)"
)

tools_of_the_forger='
import re

def hashed(line, prev=None, seq=None):
    body = line[:line.rindex(b",\"hash\":")]
    if prev:
        body = re.sub(rb"\"prev\":\"[0-9a-f]{64}\"$", b"\"prev\":\"%s\"" % prev, body)
        body = re.sub(rb"\"head\":\"[0-9a-f]{64}\"", b"\"head\":\"%s\"" % prev, body)
    if seq:
        body = re.sub(rb"^{\"seq\":[0-9]+", b"{\"seq\":%d" % seq, body)
        body = re.sub(rb"(\"event\":\"sealed\".*\"records\":)[0-9]+", rb"\g<1>%d" % seq, body)
    return body + b",\"hash\":\"%s\"}" % hashlib.sha256(body).hexdigest().encode()

def hash_of(line):
    return line[-66:-2]

# Recomputes all numbers and hashes from record n on.
def chained(t, n):
    t = list(t)
    for i in range(n, len(t)):
        t[i] = hashed(t[i], hash_of(t[i - 1]) if i else b"0" * 64, i + 1)
    return t

# The same run, except for the records after record n.
def other_way(t, n):
    return chained(t[:n] + [line.replace(b"\"exited\"", b"\"signaled\"") for line in t[n:]], n)

def unsigned(t):
    t = [re.sub(rb",\"key\":\"[0-9a-f]+\",\"signature\":\"[0-9a-f]+\"", b"", line) for line in t]
    return chained(t, 0)

def write(path, t):
    with open(path, "wb") as f:
        f.write(b"".join(line + b"\n" for line in t))
'

one_run() { # one_run ID
    carrel run --quiet --repo "$T/repository" --task T-1 --run "$1" --on-success commit -- \
        /bin/sh -c 'echo work >"$1"' sh "$1"
}

prepare() {
    prepare_journals
    me git init -q -b main "$T/repository"
    me git -C "$T/repository" config user.name a
    me git -C "$T/repository" config user.email a@b
    me git -C "$T/repository" commit -q --allow-empty -m first
    carrel journal keygen
    echo 'journal: {sign: true}' | me tee "$T/config/carrel/policy.yaml"
    public=$T/config/carrel/journal.pub
    one_run R-1
    one_run R-2
    one=$runs/T-1+R-1/journal.jsonl
    two=$runs/T-1+R-2/journal.jsonl
    index=$runs/index.jsonl
    [ "$(wc -l <"$one")" -eq 10 ]
    me mkdir "$T/kept"
    me cp -a "$runs" "$T/kept/runs"
}

restore() { me sh -c 'rm -rf "$1" && cp -a "$2" "$1"' - "$runs" "$T/kept/runs"; }

change() { # change PROGRAM
    inspect "$tools_of_the_forger" "$1" "$one" "$two" "$index" <<'END'
exec(args[0])
one, two, index = args[2:]
t, o, i = lines(one), lines(two), lines(index)
was = list(t), list(i)
exec(args[1])
if (t, i) == was:
    sys.exit("nothing was changed")
write(one, t)
write(index, i)
END
}

# A reader of JSON lines accepts each of the files.
bare() {
    inspect "$tools_of_the_forger" "$one" "$two" "${changes[@]}" <<'END'
exec(args[0])
for change in args[3:]:
    name, _, program = change.split("|")
    t, o = lines(args[1]), lines(args[2])
    exec(program)
    if t != lines(args[1]) and all(type(json.loads(line)) is dict for line in t):
        print("SUCCEEDED", name)
END
}

control() {
    carrel journal verify --key "$public" | has -x 'runs: 2 sealed' && echo WORKS verify
    carrel journal export --output "$T/archive" T-1/R-1
    carrel journal verify --key "$public" "$T/archive" >/dev/null && echo WORKS archive
    # A commit of the run's work carries the seal out of the state directory.
    carrel journal show --json T-1/R-1 | has -F "$(me git -C "$T/repository" log -1 \
        --format='%(trailers:key=Carrel-Journal,valueonly)' task-T-1-run-R-1 | sed 's/sha256://')" &&
        echo WORKS seal-in-the-commit
}

# finds NAME STATUS TEXT ARG...: verify has this status and output.
finds() {
    local output status=0
    output=$(carrel journal verify "${@:4}" 2>&1) || status=$?
    if [ "$status" -eq "$2" ] && [[ $output == *"$3"* ]]; then
        echo "REFUSED $1 $(grep -F "$3" <<<"$output" | head -n 1)"
    elif [ "$status" -eq 0 ]; then
        echo "SUCCEEDED $1"
    else
        echo "OTHER $1 status $status: $output"
    fi
}

attack() {
    local entry name reason program
    for entry in "${changes[@]}"; do
        IFS='|' read -r name reason program <<<"$entry"
        change "$program" || echo "OTHER $name could not be changed"
        finds "$name" 1 "T-1+R-1             BAD at record $reason"
        restore
    done
}

# The index reveals truncation; so it is forged next, with all hashes right.
index_too() {
    me rm "$one"
    finds journal-removed 1 "T-1+R-1             BAD: the index knows it, and its journal is not there"
    me rm -r "${one%/*}"
    finds run-removed 1 "T-1+R-1             BAD: the index knows it, and its journal is not there"
    restore
    change 'i[1] = i[1].replace(b"exited", b"denied")'
    finds index-edited 1 "index               BAD at record 2: its hash is not"
    restore
    change 'del i[2]'
    finds index-dropped 1 "index               BAD at record 3: it is number 4"
    restore
    change 'i[:] = chained([x for x in i if b"R-1" not in x], 0)'
    finds run-forgotten 1 "T-1+R-1             BAD: the index does not know this run"
    restore
    me rm "$index"
    finds index-removed 1 "T-1+R-1             BAD: the index does not know this run"
    restore
    change 'del i[2:]' # an older one, valid in itself
    finds index-replayed 1 "T-1+R-2             BAD: the index does not know this run"
    restore
    # No run begins after an index that was changed.
    change 'i[-1] = i[-1].replace(b"exited", b"denied")'
    if carrel run --quiet --policy none -- /bin/true 2>/dev/null; then
        echo "SUCCEEDED continues-a-forged-index"
    else
        echo "REFUSED continues-a-forged-index status $?"
    fi
    restore
}

# Everything recomputed, journal and index: only a key that the forger lacks reveals it.
# rewrite PROGRAM: changes `t`; the index is made to agree.
rewrite() {
    change "$1"'
seals = [x for x in t if b"\"event\":\"sealed\"" in x]
mine = iter(seals)
for at, line in enumerate(i):
    if b"R-1\",\"event\":\"run_sealed\"" in line:
        seal = next(mine, None)
        i[at] = seal and re.sub(rb"\"seal\":\"[0-9a-f]+\"", b"\"seal\":\"%s\"" % hash_of(seal),
            re.sub(rb"\"records\":[0-9]+", b"\"records\":%d" % json.loads(seal)["seq"], line))
i[:] = chained([line for line in i if line], 0)'
}

signed() {
    local seal
    rewrite 't[:] = other_way(t, 5)'
    finds rewritten 1 "T-1+R-1             BAD at record 7: "
    finds rewritten-key 1 "T-1+R-1             BAD at record 7: " --key "$public"
    restore
    rewrite 't[:] = unsigned(other_way(t, 5))'
    finds signature-removed 1 "T-1+R-1             BAD at record 7: it is not signed" --key "$public"
    restore
    rewrite 'del t[9:]'
    finds tail-cut 3 "T-1+R-1             unsealed, 9 records" --key "$public"
    restore
    rewrite 'del t[9:]; t.append(t[6]); t[:] = chained(t, 7)'
    finds seal-replayed 1 "T-1+R-1             BAD at record 10: " --key "$public"
    restore
    # The index is not signed: with it, what followed an earlier seal can be removed. A seal that
    # was kept elsewhere reveals that.
    seal=$(carrel journal show --json T-1/R-1 | field seal)
    rewrite 'del t[7:]'
    if carrel journal verify --key "$public" >/dev/null && [ "${#seal}" -eq 64 ] &&
        ! carrel journal show --json T-1/R-1 | has "$seal"; then
        echo "REFUSED cut-to-a-seal the seal that was kept is not in it"
    else
        echo "SUCCEEDED cut-to-a-seal"
    fi
    restore
    # With a key of the forger.
    me mv "$T/config/carrel" "$T/config/true"
    me rm -rf "$runs"
    carrel journal keygen >/dev/null
    me cp "$T/config/true/policy.yaml" "$T/config/carrel/policy.yaml"
    carrel run --quiet -- /bin/true
    finds another-key 1 "it is signed by another key" --key "$T/config/true/journal.pub"
    me rm -r "$T/config/carrel"
    me mv "$T/config/true" "$T/config/carrel"
    restore
}

more() {
    all_attempts=no
    held "what is around the journals" index_too
    held "calculated anew" signed
    check "$title, as $who: as it was, it still verifies" carrel journal verify --key "$public"
}
