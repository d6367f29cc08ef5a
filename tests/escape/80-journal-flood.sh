# shellcheck shell=bash disable=SC2034,SC2154
# Very many small runs at once, and single ones with a megabyte of words or of variables: their
# records stay small, in order, and can be verified.
# shellcheck source=journals.sh
source "$here/journals.sh"

count=40
at_once=8
# The limit of one record, as in man/carrel-journal.1.
record_max=262144

prepare() {
    prepare_journals
    mapfile -t words < <(head -c 1100000 /dev/zero | tr '\0' x | fold -w 100000 && echo)
    mapfile -t controls < <(head -c 1100000 /dev/zero | tr '\0' '\1' | fold -b -w 100000 && echo)
    mapfile -t nothing < <(yes '' | head -n 20000)
    # A megabyte of names, in a file: a command line would be too short for them.
    inspect "$T/variables" <<'END'
with open(args[0], "w") as f:
    f.writelines("N%05d_%s=x\n" % (i, "n" * 120) for i in range(8000))
END
    mapfile -t variables <"$T/variables"
}

# What a naive logger does with them.
bare() {
    me sh -c 'file=$1; shift; echo "ran $*" >"$file"' - "$T/log" "${words[@]}"
    [ "$(stat -c %s "$T/log")" -lt 1000000 ] || echo "SUCCEEDED megabyte-of-words"
    me env -i "${variables[@]}" /usr/bin/env >"$T/log"
    [ "$(stat -c %s "$T/log")" -lt 1000000 ] || echo "SUCCEEDED megabyte-of-variables"
}

control() {
    carrel run --quiet -- /bin/sh -c '[ "$#" -eq 11 ] && echo WORKS words' sh "${words[@]}"
    [ "$(carrel run --quiet --env-file "$T/variables" -- /usr/bin/env | wc -c)" -lt 1000000 ] ||
        echo WORKS variables
}

# one NAME KEY OPTION... -- PROGRAM...: a run; KEY_count of its first record is the full count.
one() {
    local name=$1 key=$2 result
    shift 2
    result=$(carrel run --quiet --json "$@") || echo "OTHER $name status $?"
    inspect "$name" "$key" "$(field journal <<<"$result")" "$record_max" <<'END'
name, key, path, most = args
first = records(path)[0]
size = max(len(line) for line in lines(path))
if size > int(most) or os.path.getsize(path) > 2 * int(most):
    print("SUCCEEDED", name, size, "bytes in a record")
elif first[key] < 12:
    print("OTHER", name, "the record does not tell how much it left out:", first[key])
else:
    print("REFUSED", name, size, "bytes for", first[key])
END
}

# Command lines and variables of the program's own children are not recorded.
inside() {
    local result
    result=$(carrel run --quiet --json -- /bin/sh -c \
        'i=0; while [ "$i" -lt 200 ]; do /bin/true "$i"; i=$((i + 1)); done')
    inspect "$(field journal <<<"$result")" <<'END'
found = len(records(args[0]))
print("REFUSED" if found < 20 else "SUCCEEDED", "commands-inside", found, "records")
END
}

parallel() {
    seq "$count" | me timeout -k 5 60 xargs -P "$at_once" -I{} env -C "$T" HOME="$T" \
        XDG_STATE_HOME="$T/state" XDG_CONFIG_HOME="$T/config" "$tool" run --quiet -- true word-{} ||
        echo "OTHER many-runs status $?"
    inspect "$runs" "$count" <<'END'
runs, count = args[0], int(args[1])
index = records(runs + "/index.jsonl")
wrong = []
if [r["seq"] for r in index] != list(range(1, len(index) + 1)):
    wrong.append("the index is not numbered in order")
if os.path.getsize(runs + "/index.jsonl") > 1024 * len(index):
    wrong.append("a record of the index has more than a kilobyte")
# Each word in one journal, each journal begun and then sealed, once.
where = {}
for path in glob.glob(runs + "/R-*/journal.jsonl"):
    journal = records(path)
    if [r["seq"] for r in journal] != list(range(1, len(journal) + 1)):
        wrong.append(path + " is not numbered in order")
    word = journal[0]["argv"][-1]
    if word.startswith("word-"):
        where.setdefault(word, []).append(journal[0]["run"])
        events = [r["event"] for r in index if r["run"] == journal[0]["run"]]
        if events != ["run_begun", "run_sealed"]:
            wrong.append("the index has %s of %s" % (events, path))
if sorted(where) != sorted("word-%d" % i for i in range(1, count + 1)):
    wrong.append("there are journals of %d runs" % len(where))
if [runs for runs in where.values() if len(runs) != 1]:
    wrong.append("two journals tell of one run")
print("SUCCEEDED many-runs " + "; ".join(wrong[:3]) if wrong else "REFUSED many-runs in order")
END
}

verified() {
    local output status=0
    output=$(carrel journal verify) || status=$?
    if [ "$status" -eq 0 ] && [[ $output == *"runs: $1 sealed" ]]; then
        echo "REFUSED unverifiable ${output##*$'\n'}"
    else
        echo "SUCCEEDED unverifiable status $status: $(tail -n 3 <<<"$output")"
    fi
}

attack() {
    local before
    before=$(carrel journal list | grep -c '^R-' || true)
    one megabyte-of-words argv_count -- /bin/true "${words[@]}"
    one words-of-nothing argv_count -- /bin/true "${nothing[@]}"
    one words-to-escape argv_count -- /bin/true "${controls[@]}"
    one megabyte-of-variables env_count --env-file "$T/variables" -- /bin/true
    inside
    parallel
    verified $((before + 5 + count))
}
