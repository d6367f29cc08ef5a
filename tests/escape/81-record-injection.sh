# shellcheck shell=bash disable=SC2034,SC2154
# Words, variables, file names, output and messages with a line break and a forged record after it,
# or with terminal control characters. One record stays one record, and is safe to view.
# shellcheck source=journals.sh
source "$here/journals.sh"

prepare() {
    prepare_journals
    forged='{"seq":2,"time":"2026-01-31T12:00:00.000001Z","run":"R-1","event":"forged"}'
    # Title, link and clipboard; colours and cursor with the one-byte and the two-byte form of C1;
    # overrides of direction; a line separator; invalid UTF-8.
    evil=$'x\n'$forged$'\n\e]0;title\a\e]8;;http://x\e\\\e]52;c;eA==\a\e[2J\x9b1A\xc2\x9b31m\x7f\r'
    evil+=$'\xe2\x80\xae\xe2\x81\xa6\xe2\x80\xa8\xff"},{\\'
    # Without a slash, it is also the name of a file.
    file_name=${evil//\//}
    me mkdir "$T/work" "$T/$file_name" "$T/seen"
    me git init -q -b main "$T/repository"
    me git -C "$T/repository" -c user.name=a -c user.email=a@b commit -q --allow-empty -m first
}

# look NAME FILE...: is there anything except lines of text, or a forged line?
look() {
    inspect "$forged" "$@" <<'END'
forged, name, *files = args
bad = [0x7f, *range(0x20), *range(0x80, 0xa0), *range(0x2028, 0x202f), *range(0x2066, 0x206a)]
bad.remove(0x0a)
found = []
for path in files:
    with open(path, "rb") as f:
        data = f.read()
    try:
        found += ["U+%04X" % ord(c) for c in data.decode() if ord(c) in bad]
    except UnicodeDecodeError as e:
        found.append("bytes %r" % data[e.start:e.start + 4])
    found += ["a line of its own" for line in data.split(b"\n") if line == forged.encode()]
print("SUCCEEDED %s %s" % (name, found[:5]) if found else "REFUSED %s all is text" % name)
END
}

# ask NAME ARG...: keeps carrel's output, for `look`.
ask() {
    local name=$1 status=0
    shift
    carrel "$@" >>"$T/seen/$name" 2>&1 || status=$?
    [ "$status" -eq 0 ] || echo "OTHER $name status $status: $(tail -c 300 "$T/seen/$name")"
}

# Two ordinary ways to write down what was run.
bare() {
    me sh -c 'printf "ran %s\n" "$2" >"$1"' - "$T/seen/log" "$evil"
    grep -qxF "$forged" "$T/seen/log" && echo "SUCCEEDED forged-record"
    look terminal "$T/seen/log"
}

control() {
    local run
    run=$(carrel run --quiet --json -- /bin/echo "grüße, 'x' {\"y\"}" | field run)
    carrel journal show "$run" >"$T/seen/out"
    # Harmless text is not changed.
    ! grep -qF "grüße, 'x' " "$T/seen/out" || echo WORKS shown
    [ "$(carrel run --quiet -- /bin/printf '%s' "$evil" | sha256sum)" != \
        "$(printf '%s' "$evil" | sha256sum)" ] || echo WORKS output-is-passed-on
}

# Runs with all of it. carrel's own messages about them are checked, too.
runs_of_the_forger() {
    local status
    hostile() { # hostile NAME STATUS OPTION... -- PROGRAM...
        status=0
        carrel run "${@:3}" >"$T/seen/program" 2>"$T/seen/err" || status=$?
        if [ "$status" -ne "$2" ]; then
            echo "OTHER $1 status $status: $(tr -d '\0' <"$T/seen/err" | head -c 300)"
        fi
        look "$1" "$T/seen/err"
    }
    hostile words 0 -- /bin/true "$evil" "$evil"
    hostile not-found 127 -- "/none/$file_name"
    hostile working-directory 125 --cwd "/tmp/$file_name" -- /bin/true
    hostile values 0 --env "GIVEN=$evil" -- /bin/true
    hostile variable 125 --env "$evil=x" -- /bin/true
    hostile id 125 --run "$evil" -- /bin/true
    hostile mounts 0 --workdir "$T/$file_name" -- /bin/true
    hostile file-names 0 --workdir "$T/work" -- /bin/sh -c 'cd /workspace && touch "$1" && mkdir "d$1"' \
        sh "$file_name"
    hostile workspace 0 --repo "$T/repository" --task T-1 --run R-2 -- \
        /bin/sh -c 'touch "$1" && git add -A && git commit -q -m "$1" && touch "b$1"' sh "$file_name"
    hostile output 3 -- /bin/sh -c 'printf "%s\n" "$1"; exit 3' sh "$evil"
    hostile result 3 --json -- /bin/sh -c 'printf "%s\n" "$1"; printf "%s\n" "$1" >&2; exit 3' sh "$evil"
    look result-object "$T/seen/program"
    status=0
    carrel python --json -c 'import sys; raise Exception(sys.argv[1])' -- "$evil" \
        >"$T/seen/out" 2>"$T/seen/err" || status=$?
    [ "$status" -eq 1 ] || echo "OTHER exception status $status: $(tail -c 300 "$T/seen/err")"
    look exception "$T/seen/out"
}

one_record() {
    inspect "$runs" <<'END'
wrong, n = [], 0
for path in [args[0] + "/index.jsonl", *glob.glob(args[0] + "/*/journal.jsonl")]:
    seen = records(path)
    n += len(seen)
    if [r["seq"] for r in seen] != list(range(1, len(seen) + 1)):
        wrong.append(path + " is not numbered in order")
    wrong += [r for r in seen if r["event"] == "forged" or not set(r) >= {"time", "prev", "hash"}]
if n < 60:
    wrong.append("%d records are too few" % n)
print("SUCCEEDED forged-record %s" % wrong[:3] if wrong else "REFUSED forged-record %d records" % n)
END
}

attack() {
    local run kind
    runs_of_the_forger
    one_record
    look terminal "$runs/index.jsonl" "$runs"/*/journal.jsonl
    ask verify journal verify
    ask list journal list
    ask runs runs
    ask runs-json runs --json
    for run in $(cd "$runs" && echo *R-*); do
        ask show journal show "$run"
        ask show-json journal show --json "$run"
        ask export journal export "$run"
        ask run runs show "$run"
        ask run-json runs show --json "$run"
    done
    ask workspace-show workspace show T-1/R-2
    ask workspace-diff workspace diff T-1/R-2
    for kind in verify list runs runs-json show show-json export run run-json workspace-{show,diff}; do
        [ -s "$T/seen/$kind" ] || echo "OTHER $kind nothing was printed"
        look "$kind" "$T/seen/$kind"
    done
}
