#!/usr/bin/env bats
# shellcheck disable=SC2030,SC2031,SC2154  # cli.bash sets $status, $out and others
# What a run leaves: its journal, its artifacts, and carrel runs.

load cli

events() { # events FILE: the events of a journal in one line
    me /usr/bin/python3 -c 'import json, sys
print(*(json.loads(l)["event"] for l in open(sys.argv[1])))' "$1"
}

# ---- the journal of a run -----------------------------------------------------------------------

leaves_a_sealed_journal() {
    carrel run --json -- true
    [ "$status" -eq 0 ]
    local journal
    journal=$(field 'o["journal"]')
    [ "$journal" = "$T/state/carrel/runs/$(field 'o["run"]')/journal.jsonl" ]
    [ "$(events "$journal")" = \
        "run_started egress_decision sandbox_made process_started process_ended run_ended sealed" ]
    [ "$(me tail -n 1 "$journal" | grep -o '"hash":"[0-9a-f]*"')" = \
        "\"hash\":\"$(field 'o["journal_seal"]')\"" ]
    me grep -q '"event":"run_started".*"policy_sha256":"[0-9a-f]\{64\}".*"argv":\["true"\]' "$journal"
    me grep -q '"event":"sandbox_made".*"seccomp"' "$journal"
    me grep -q '"event":"egress_decision","decision":"deny"' "$journal"
}
@test "a run leaves a sealed journal" { both leaves_a_sealed_journal; }

records_a_limit() {
    carrel run --timeout 200ms --json -- sleep 20
    [ "$status" -eq 124 ]
    local journal
    journal=$(field 'o["journal"]')
    me grep -q '"event":"limit_hit","limit":"timeout"' "$journal"
    me grep -q '"event":"process_ended","reason":"timeout"' "$journal"
    me grep -q '"event":"run_ended","reason":"timeout","status":124' "$journal"
}
@test "the limit that ended a run is in its journal" { both records_a_limit; }

records_a_refusal() {
    carrel run -- /no/such/program
    [ "$status" -eq 127 ]
    local journal
    journal=$(me sh -c 'echo state/carrel/runs/R-*/journal.jsonl')
    me grep -q '"event":"run_ended","reason":"infrastructure","status":null,"message":"[^"]*no/such/program' \
        "$journal"
    me sh -c "tail -n 1 $journal | grep -q '\"event\":\"sealed\"'"
}
@test "a program that could not be started is recorded too" { both records_a_refusal; }

keeps_records_whole() {
    local evil=$'one\ntwo\r{"seq":9}\e[2J\e]0;title\a\xff"\\'
    carrel run --json --env "A=$evil" -- /bin/sh -c 'exit 0' "$evil" "$(printf 'x%.0s' $(seq 100000))"
    [ "$status" -eq 0 ]
    local journal
    journal=$(field 'o["journal"]')
    [ "$(me wc -l <"$journal")" -eq 7 ]
    [ "$(events "$journal" | wc -w)" -eq 7 ]
    not me grep -q $'\e' "$journal"
    [ "$(me stat -c %s "$journal")" -lt 100000 ] # the long word is not in it, its hash is
    me grep -q '"argv_sha256":"[0-9a-f]\{64\}"' "$journal"
    not me grep -q 'title.*"env"' <(me sed 's/.*"env":/"env":/' "$journal") # names, not values
    carrel runs
    [ "$status" -eq 0 ]
    not grep -q $'\e' <<<"$out"
}
@test "whatever is in a command line, a record stays one record" { both keeps_records_whole; }

can_be_off() {
    carrel run --json --journal off -- true
    [ "$status" -eq 0 ]
    [ "$(field 'o["journal"]')" = null ]
    [ ! -e "$T/state/carrel/runs" ]
}
@test "--journal off leaves nothing" { both can_be_off; }

stops_where_it_cannot_write() {
    me mkdir -p state
    me touch state/carrel # where the directory should be
    carrel run -- sh -c 'echo ran'
    [ "$status" -eq 125 ]
    [ -z "$out" ]
    [[ "$err" == "carrel: nothing is run unrecorded: "* ]]
    [ "$(wc -l <<<"$err")" -eq 1 ]
    carrel run --journal off -- echo ran
    [ "$out" = ran ]
}
@test "a run that cannot be recorded is not run" { both stops_where_it_cannot_write; }

# The state directory on a disk of its own that fills while the program runs. A file system hands
# out whole pages: a command line of the right length leaves less of one than the next record takes.
stops_on_a_full_disk() {
    cat >"$T/fill.sh" <<'END'
set -u
mount -t tmpfs -o size=64k,nr_inodes=64,mode=777 none disk || exit 77
export XDG_STATE_HOME=$PWD/disk
mkfifo go
run() { # run WORD: in the background, until the pipe says something
    rm -f inner
    "$carrel" run --stdin -- sh -c 'echo started; read x; echo went on' "$1" <go >inner 2>inner-err &
    pid=$!
    exec 9>go
    until grep -q started inner; do sleep 0.05; done
}
carrel=$1
run x
len=$(cat disk/carrel/runs/R-*/journal.jsonl | wc -c)
echo >&9
exec 9>&-
wait "$pid"
rm -r disk/carrel
run "$(printf '%*s' $((4096 - 64 - len)) '' | tr ' ' x)"
cat /dev/zero >disk/fill 2>/dev/null
echo >&9
exec 9>&-
wait "$pid"
echo "status $?" >result
rm disk/fill
mkdir -p state/carrel
cp -r disk/carrel/runs state/carrel/
END
    local unshare=(unshare -m)
    [ "$who" = root ] || unshare=(unshare -rm)
    me mkdir disk
    status=0
    me "${unshare[@]}" bash fill.sh "$CARREL" || status=$?
    [ "$status" -ne 77 ] || skip "no mount of its own"
    me cat inner inner-err result
    grep -qx 'status 125' "$T/result"
    grep -q '^carrel: nothing is run unrecorded: .*No space left' "$T/inner-err"
    # What was written before is whole, and the run is not taken for a finished one.
    [ "$(events "$(me sh -c 'echo state/carrel/runs/R-*/journal.jsonl')")" = \
        "run_started egress_decision sandbox_made process_started" ]
    carrel runs --json
    [ "$(field 'o["runs"][0]["state"]')" = unsealed ]
}
@test "a full disk stops the run closed, and what was recorded is whole" { both stops_on_a_full_disk; }

is_unsealed_after_a_kill() {
    new_tag
    background run -- sh -c 'echo up; sleep 300; :' "$tag"
    until_true grep -q up "$T/.out"
    carrel runs --json
    [ "$(field 'o["runs"][0]["state"]')" = "in progress" ]
    kill -KILL "$pid"
    none_left "$tag"
    carrel runs --json
    [ "$(field 'o["runs"][0]["state"]')" = unsealed ]
    [ "$(events "$(me sh -c 'echo state/carrel/runs/R-*/journal.jsonl')")" = \
        "run_started egress_decision sandbox_made process_started" ]
}
@test "a run that was killed is unsealed" { both is_unsealed_after_a_kill; }

# ---- artifacts ----------------------------------------------------------------------------------

keeps_what_failed() {
    carrel run --json -- sh -c 'echo out; echo err >&2; exit 3'
    [ "$status" -eq 3 ]
    local dir
    dir=$(field 'o["artifacts"]')
    [ "$(me cat "$(field 'o["output_file"]')")" = out ]
    [ "$(me cat "$(field 'o["stderr_file"]')")" = err ]
    me sh -c "ls $dir/artifacts" | grep -qE '^[0-9]{8}T[0-9]{6}Z-[0-9a-f]{12}-code.json$'
    out=$(me sh -c "cat $dir/artifacts/*-code.json")
    [ "$(field 'o["argv"]')" = '["sh", "-c", "echo out; echo err >&2; exit 3"]' ]
    out=$(me sh -c "cat $dir/artifacts/*-result.json")
    [ "$(field 'o["exit_code"]')" = 3 ]
    me grep -q '"event":"artifacts_stored"' "$dir/journal.jsonl"
    # The journal holds the hash of what was kept.
    local sum
    sum=$(me sh -c "sha256sum $dir/artifacts/*-result.json")
    me grep -q "\"sha256\":\"${sum%% *}\"" "$dir/journal.jsonl"

    carrel run --json -- true
    [ "$(field 'o["artifacts"]')" = null ]
}
@test "code, result and output of a run that failed are kept" { both keeps_what_failed; }

keeps_as_told() {
    carrel run --json --store-code always -- echo hi
    [ "$(me cat "$(field 'o["output_file"]')")" = hi ]
    carrel run --json --store-code never -- false
    [ "$status" -eq 1 ]
    [ "$(field 'o["artifacts"]')" = null ]
    status=0
    out=$(me env SANDBOX_STORE_CODE=never "$CARREL" run --json -- false 2>/dev/null) || status=$?
    [ "$(field 'o["artifacts"]')" = null ]
    out=$(me env SANDBOX_STORE_CODE=always "$CARREL" run --json -- true 2>/dev/null)
    [ "$(field 'o["artifacts"]')" != null ]
    status=0
    me env SANDBOX_STORE_CODE=sometimes "$CARREL" run -- true 2>"$T/.err" || status=$?
    [ "$status" -eq 125 ]
    grep -q 'SANDBOX_STORE_CODE.*never.*on_error.*always' "$T/.err"
}
@test "--store-code and SANDBOX_STORE_CODE decide what is kept" { both keeps_as_told; }

# ---- carrel runs --------------------------------------------------------------------------------

lists_and_shows() {
    carrel runs
    [ "$status" -eq 0 ]
    [ -z "$out" ]
    carrel run -- sh -c 'exit 4'
    carrel run -- true
    carrel runs
    [ "$(wc -l <<<"$out")" -eq 3 ]
    carrel runs --json
    [ "$(field '[r["status"] for r in o["runs"]]')" = "[0, 4]" ] # newest first
    local run
    run=$(field 'o["runs"][1]["run"]')
    carrel runs show "${run:0:9}"
    [ "$status" -eq 0 ]
    grep -q "^run *$run" <<<"$out"
    grep -q '^reason *exited' <<<"$out"
    grep -q 'result.json' <<<"$out"
    carrel runs show "$run" --json
    [ "$(field 'o["result"]["exit_code"]')" = 4 ]
    [ "$(field 'o["run"]["argv"]')" = '["sh", "-c", "exit 4"]' ]
    carrel runs show R-nothing
    [ "$status" -eq 125 ]
    [ "$err" = "carrel: no run 'R-nothing'; 'carrel runs' lists them" ]
    carrel runs show R-
    [ "$err" = "carrel: 'R-' is a prefix of 2 runs; give more of it" ]
    carrel runs shw
    [ "$err" = "carrel: unknown subcommand 'shw' (did you mean 'runs show'?)" ]
    carrel runs show
    [ "$status" -eq 125 ]
}
@test "carrel runs lists and shows" { both lists_and_shows; }

prunes() {
    for i in 1 2 3 4; do carrel run --json -- sh -c "exit $i"; done
    new_tag
    background run -- sh -c 'echo up; sleep 300; :' "$tag"
    until_true grep -q up "$T/.out"
    carrel runs prune
    [ "$status" -eq 125 ]
    carrel runs prune --older-than 1h
    [ -z "$out" ]
    carrel runs prune --keep 3 --dry-run
    [ "$(grep -c '^would remove R-' <<<"$out")" -eq 2 ]
    carrel runs prune --keep 3 --json
    [ "$(field 'len(o["removed"])')" = 2 ]
    carrel runs prune --keep 0 # the one in progress stays
    carrel runs --json
    [ "$(field '[r["state"] for r in o["runs"]]')" = '["in progress"]' ]
    [ "$(me grep -c '"event":"run_pruned"' state/carrel/runs/index.jsonl)" -eq 4 ]
    kill -TERM "$pid"
    ended
    # A run without a journal has no lock that would say whether it is over: a day says so.
    carrel run --quiet --journal off --json -- seq 1 100000
    local bare
    bare=$(field 'o["output_file"]')
    carrel runs prune --keep 0
    [ -e "$bare" ]
    me touch -d '2 days ago' "${bare%/*}"
    carrel runs prune --keep 0
    [ ! -e "$bare" ]
}
@test "carrel runs prune removes old runs and never one in progress" { both prunes; }

# The program ran: that its output has no place says nothing about the program.
keeps_nowhere() {
    me sh -c 'mkdir -p state/carrel && ln -s nowhere state/carrel/runs'
    carrel run --journal off --store-code always -- true
    is_one_error 125 "*keep the run's output in '$T/state/carrel/runs/R-*': No such file or directory"
}
@test "a place for artifacts that cannot be had is carrel's failure" { both keeps_nowhere; }

# Between making its journal and locking it a run looks like this.
prunes_nothing_that_begins() {
    carrel run -- true
    me sh -c 'mkdir state/carrel/runs/R-young state/carrel/runs/R-old
        touch state/carrel/runs/R-young/journal.jsonl state/carrel/runs/R-old/journal.jsonl
        touch -d "2 days ago" state/carrel/runs/R-old'
    carrel runs prune --keep 0
    [[ "$out" == "removed R-"*$'\n'"removed R-old" ]]
    me test -e state/carrel/runs/R-young/journal.jsonl
}
@test "prune leaves a run alone that is about to begin" { both prunes_nothing_that_begins; }

# Runs and prunes side by side: each run is recorded, and gone only on purpose.
prunes_beside_runs() {
    me sh -c 'for i in $(seq 40); do "$0" runs prune --keep 0; done >/dev/null' "$CARREL" &
    local pruning=$!
    local i
    for i in $(seq 40); do
        carrel run --quiet -- true
        [ "$status" -eq 0 ]
    done
    wait "$pruning"
    carrel journal verify
    [ "$status" -eq 0 ]
}
@test "a run beside a prune loses nothing" { both prunes_beside_runs; }

prunes_a_full_disk() {
    cat >"$T/full" <<'END'
mkdir -p "$1" && mount -t tmpfs -o size=64k,mode=0700 tmpfs "$1" || exit 77
export XDG_STATE_HOME=$1
while "$2" run --quiet -- true; do :; done
cat /dev/zero >"$1/rest"
"$2" runs prune --keep 0 || exit
rm "$1/rest"
"$2" run --quiet -- true && "$2" journal verify
END
    status=0
    me unshare --mount sh "$T/full" "$T/small" "$CARREL" >"$T/.out" 2>"$T/.err" || status=$?
    _collect '(on a small disk)'
    [ "$status" -ne 77 ] || skip "no tmpfs can be mounted here"
    [ "$status" -eq 0 ]
    [[ "$out" == *"removed R-"*"runs: 1 sealed, "*" pruned" ]]
}
@test "prune makes room where there is none left" { only root prunes_a_full_disk; }

sweeps() {
    me mkdir -p config/carrel
    me sh -c 'printf "artifacts: {max_bytes: 64K}\n" >config/carrel/policy.yaml'
    carrel run --json -- sh -c 'head -c 60000 /dev/zero; exit 1'
    local first second
    first=$(field 'o["artifacts"]')
    me rm -f state/carrel/runs/.swept
    me touch -d '2 hours ago' "$first"
    carrel run --json -- sh -c 'head -c 30000 /dev/zero; exit 1'
    second=$(field 'o["artifacts"]')
    [ ! -e "$first/artifacts" ]
    [ ! -e "$first/stdout" ]
    [ -e "$first/journal.jsonl" ]
    [ -e "$second/artifacts" ]
    [ -e "$second/stdout" ]
}
@test "artifacts stay within their budget, journals stay" { both sweeps; }

# ---- workspaces ---------------------------------------------------------------------------------

commits_carry_the_seal() {
    me git init -q -b main repo
    me sh -c 'cd repo && git config user.name A && git config user.email a@b && echo 1 >a &&
        git add a && git commit -qm first'
    carrel run --json --repo repo --task T-1 --run R-1 --on-success commit -- sh -c 'echo 2 >a'
    [ "$status" -eq 0 ]
    local journal seal
    journal=$(field 'o["journal"]')
    [ "$journal" = "$T/state/carrel/runs/T-1+R-1/journal.jsonl" ]
    seal=$(me git -C repo log -1 --format='%(trailers:key=Carrel-Journal,valueonly)' task-T-1-run-R-1)
    [[ "$seal" == sha256:* ]]
    # It is the hash of a seal in the journal, and what followed is sealed as well.
    me grep -q "\"event\":\"sealed\".*\"hash\":\"${seal#sha256:}\"" "$journal"
    me grep -q '"event":"workspace_committed"' "$journal"
    me sh -c "tail -n 1 '$journal' | grep -q '\"event\":\"sealed\"'"

    # The same when people commit later.
    carrel run --json --repo repo --task T-1 --run R-2 -- sh -c 'echo 3 >a'
    journal=$(field 'o["journal"]')
    carrel workspace commit T-1/R-2 -m 'Three'
    [ "$status" -eq 0 ]
    seal=$(me git -C repo log -1 --format='%(trailers:key=Carrel-Journal,valueonly)' task-T-1-run-R-2)
    [ "$(me git -C repo log -1 --format=%s task-T-1-run-R-2)" = Three ]
    me grep -q "\"event\":\"sealed\".*\"hash\":\"${seal#sha256:}\"" "$journal"
    carrel workspace discard T-1/R-2
    me grep -q '"event":"workspace_discarded"' "$journal"

    # A journal that was taken away does not make the run one that was never recorded.
    carrel run --json --repo repo --task T-1 --run R-4 -- sh -c 'echo 4 >a'
    me rm state/carrel/runs/T-1+R-4/journal.jsonl
    carrel workspace commit T-1/R-4
    [ "$status" -eq 0 ]
    me grep -q '"event":"workspace_committed"' state/carrel/runs/T-1+R-4/journal.jsonl
    carrel journal verify T-1/R-4
    [ "$status" -eq 1 ]
    me rm state/carrel/runs/T-1+R-4/journal.jsonl

    # A run that is taken up again goes on in its journal, and a workspace keeps its run.
    carrel run --json --repo repo --task T-1 --run R-3 -- true
    carrel workspace resume T-1/R-3 --json -- sh -c 'echo again; exit 1'
    journal=$(field 'o["journal"]')
    [ "$(me grep -c '"event":"run_resumed"' "$journal")" -eq 1 ]
    [ "$(me grep -c '"event":"sealed"' "$journal")" -eq 2 ]
    carrel runs prune --keep 0
    [ -e "$journal" ]
    carrel workspace discard --force T-1/R-3
    carrel runs prune --keep 0
    [ ! -e "$journal" ]
    me mkfifo state/carrel/runs/T-1+R-4/journal.jsonl
    carrel runs
    [ "$status" -eq 0 ]
}
@test "a commit of a run carries the seal of its journal" { both commits_carry_the_seal; }

# A run that is refused for its id is not the one that has it.
taken_id() {
    me sh -c 'git init -q repo && cd repo && git config user.name A && git config user.email a@b.c &&
        echo 1 >a && git add a && git commit -qm one'
    carrel run --quiet --repo repo --task T-1 --run R-1 -- true
    carrel run --repo repo --task T-1 --run R-1 -- true
    is_one_error 125 "carrel: workspace 'T-1/R-1' exists already (of *): *"
    carrel runs show T-1/R-1 --json
    [ "$(field '[o["run"]["reason"], o["run"]["status"]]')" = '["exited", 0]' ]
    [ "$(me grep -c run_started state/carrel/runs/T-1+R-1/journal.jsonl)" -eq 1 ]
}
@test "an id that is taken leaves the journal of its run alone" { both taken_id; }

# What was done to its journal does not hold a workspace for ever.
spoilt_journal() {
    me sh -c 'git init -q repo && cd repo && git config user.name A && git config user.email a@b.c &&
        echo 1 >a && git add a && git commit -qm one'
    local journal=state/carrel/runs/T-1+R-1/journal.jsonl
    carrel run --quiet --repo repo --task T-1 --run R-1 -- sh -c 'echo 2 >a'
    me sed -i '$s/sealed/opened/' "$journal"
    carrel workspace commit R-1
    is_one_error 125 "*move the file away to continue the run: the last record of *"
    carrel workspace discard --force R-1
    is_one_error 125 "*move the file away to continue the run: the last record of *"
    me mv "$journal" away.jsonl
    carrel workspace commit R-1
    [ "$status" -eq 0 ]
    carrel journal verify T-1/R-1 # that it was is not forgotten
    [ "$status" -eq 1 ]
}
@test "a workspace whose journal was spoilt can still be had" { both spoilt_journal; }
