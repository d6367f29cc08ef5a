#!/usr/bin/env bats
# shellcheck disable=SC2016,SC2030,SC2031,SC2154  # cli.bash sets $status, $out and others
# Snapshots and forks: snapshot, snapshots, fork, create --from.

load cli
load living

# ---- what the tests have in common --------------------------------------------------------------

# Everything that can be told of the files of a sandbox. Directories have as many links as the
# overlay likes to say.
manifest='
cd /
find tmp home/agent workspace \( -type d -printf "%p d %m %u %T@\n" -o -printf "%p %y %m %u %s %n %T@ %l\n" \) | LC_ALL=C sort
find tmp home/agent workspace -type f -readable -print0 | LC_ALL=C sort -z | xargs -0r sha256sum'

# manifest_of ID FILE
manifest_of() {
    carrel exec --quiet --max-output 1M "$1" -c "$manifest" >/dev/null
    [ "$status" -eq 0 ]
    cp "$T/.out" "$2"
    [ "$(wc -l <"$2")" -gt 3 ]
}

# looks_like ID FILE: its files are what FILE says.
looks_like() {
    manifest_of "$1" "$T/.now"
    diff -u "$2" "$T/.now"
}

# The same for one whose layers were merged: that is done by hard links, which a file then shows.
looks_merged() {
    manifest_of "$1" "$T/.now"
    diff -u <(without_links "$2") <(without_links "$T/.now")
}
without_links() { awk '$2 == "f" { $6 = "" } { print }' "$1"; }

snapshot() { # snapshot HOW ID NAME
    carrel snapshot "$2" "$3"
    [ "$status:$out:$err" = "0:$3 ($1):" ]
}

from() { # from NAME [ARG...]: a sandbox that begins with it; $id
    carrel create --from "$@"
    [ "$status" -eq 0 ]
    id=$out
}

fork() { # fork ARG...: $ids
    carrel fork "$@"
    [ "$status" -eq 0 ]
    mapfile -t ids <<<"$out"
}

# Layers that snapshots name.
named() { cat "$T"/state/carrel/snapshots/*.json 2>/dev/null | grep -oE 'L-[0-9a-z]{16}' | sort -u; }

# No sandbox is left: only layers that snapshots name are on disk, and no draft.
only_named_left() {
    nothing_left
    [ "$(layers)" = "$(named)" ] || {
        echo "layers: $(layers | tr '\n' ' ') named: $(named | tr '\n' ' ')"
        return 1
    }
    [ -z "$(find "$T/state/carrel/layers/.tmp" -mindepth 1 2>/dev/null)" ]
}

none_alive() {
    carrel destroy --all
    [ "$status" -eq 0 ]
    only_named_left
}

# ---- contents -----------------------------------------------------------------------------------

# Of everything one.
write_first='set -e
cd /workspace
mkdir -p a/b/c empty gone "name with
newline" sticky
echo one >a/1; echo two >a/b/2; echo three >a/b/c/3; echo x >gone/x; echo y >"name with
newline/y"
printf "\303\251\377" >"$(printf "b\303\251\377")"
head -c 300000 /dev/urandom >random
truncate -s 5M sparse; printf end >>sparse
ln a/1 hard; ln -s a/1 link; ln -s /etc/passwd absolute; ln -s nowhere dangling; ln -s .. a/up
mkfifo pipe
chmod 000 a/b/2; chmod 711 random; chmod 1777 sticky; chmod 500 empty
touch -d 2001-02-03T04:05:06.789 a/1
mkdir -p ~/.config/x /tmp/t; echo conf >~/.config/x/c; echo tmp >/tmp/t/f; : >/tmp/nothing'

# Every way to change what lies below.
change='set -e
cd /workspace
rm a/1; rm -r gone
rm -r a/b/c; echo "was a directory" >a/b/c
rm hard; mkdir hard; echo "was a file" >hard/f
chmod 700 empty; rmdir empty; mkdir empty; echo new >empty/new
rm -r "name with
newline"; mkdir "name with
newline"; echo z >"name with
newline/z"
chmod 644 a/b/2; echo more >>a/b/2
mv random moved
mkdir -p into; mv a/b into/b
mv sticky renamed
rm link; ln -s a link
truncate -s 100 sparse
rm pipe; rm -r ~/.config; rm /tmp/nothing; echo again >/tmp/nothing; rm -r /tmp/t'

contents() {
    local first
    create
    first=$id
    in_box "$write_first"
    [ "$status:$err" = 0: ]
    manifest_of "$first" "$T/m1"
    snapshot stacked "$first" s1
    looks_like "$first" "$T/m1" # the first one is what it was
    from s1
    looks_like "$id" "$T/m1"
    # Over sealed layers all of it works again: in the one that came of it, and in the first one.
    in_box "$change"
    [ "$status:$err" = 0: ]
    manifest_of "$id" "$T/m2"
    not diff -q "$T/m1" "$T/m2"
    looks_like "$first" "$T/m1"
    snapshot stacked "$id" s2
    looks_like "$id" "$T/m2"
    from s2
    looks_like "$id" "$T/m2"
    fork -n 2 "$id"
    looks_like "${ids[0]}" "$T/m2"
    looks_like "${ids[1]}" "$T/m2"
    id=$first
    in_box "$change"
    [ "$status:$err" = 0: ]
    in_box 'cd /workspace; cat a/b/c into/b/c hard/f into/b/2 2>&1; ls -A empty a name*; ls -A ~ /tmp'
    manifest_of "$first" "$T/m3"
    fork "$first"
    looks_like "${ids[0]}" "$T/m3"
    from s1
    looks_like "$id" "$T/m1" # whatever was done to it by others
    none_alive
    from s2
    looks_like "$id" "$T/m2"
}
@test "files, modes, times, links and removals are the same in what is made of a sandbox" { both contents; }

# The same while something runs: then the layer is copied.
contents_copied() {
    local first
    create
    first=$id
    in_box "$write_first"
    snapshot stacked "$first" below
    in_box "$change"
    [ "$status:$err" = 0: ]
    carrel exec --detach "$first" -- sleep 1000
    [ "$status" -eq 0 ]
    manifest_of "$first" "$T/m"
    snapshot copied "$first" s
    looks_like "$first" "$T/m"
    from s
    looks_like "$id" "$T/m"
    fork -n 2 "$first"
    looks_like "${ids[0]}" "$T/m"
    looks_like "${ids[1]}" "$T/m"
    none_alive
}
@test "so they are when a layer must be copied" { both contents_copied; }

directories_move() {
    create
    in_box 'mkdir -p d/e; echo 1 >d/e/f'
    snapshot stacked "$id" s
    # The kernel refuses to rename a directory of a layer below; mv knows what to do, and so do we.
    in_box 'python3 -c "import os; os.rename(\"d\", \"n\")"'
    [ "$status" -eq 1 ]
    [[ $err == *'Invalid cross-device link'* ]]
    in_box 'mv d m && cat m/e/f && ls'
    [ "$status:$out:$err" = $'0:1\nm:' ]
    carrel mv "$id:m/e" "$id:e"
    [ "$status:$err" = 0: ]
    fork "$id"
    carrel exec "${ids[0]}" -c 'ls . m e; cat e/f'
    [ "$out" = $'.:\ne\nm\n\ne:\nf\n\nm:\n1' ]
}
@test "a directory of a sealed layer can be moved" { both directories_move; }

independent() {
    local first second
    create
    first=$id
    in_box 'echo common >f; mkdir d; echo x >d/x'
    snapshot stacked "$first" s
    from s
    second=$id
    fork -n 2 "$first"
    id=$first in_box 'echo first >f; rm -r d; echo 1 >only-first'
    id=$second in_box 'echo second >f; echo 2 >d/y'
    id=${ids[0]} in_box 'rm f d/x'
    id=$first in_box 'cat f; ls'
    [ "$out" = $'first\nf\nonly-first' ]
    id=$second in_box 'cat f; ls . d'
    [ "$out" = $'second\n.:\nd\nf\n\nd:\nx\ny' ]
    id=${ids[0]} in_box 'ls . d'
    [ "$out" = $'.:\nd\n\nd:' ]
    id=${ids[1]} in_box 'cat f; ls . d'
    [ "$out" = $'common\n.:\nd\nf\n\nd:\nx' ]
    from s
    in_box 'cat f; ls . d'
    [ "$out" = $'common\n.:\nd\nf\n\nd:\nx' ]
    # The first one is destroyed, the others have all they had.
    carrel destroy "$first"
    carrel snapshot rm s
    [ "$status:$out:$err" = 0:: ]
    carrel cleanup
    id=${ids[1]} in_box 'cat f d/x; echo new >d/x; cat d/x'
    [ "$out" = $'common\nx\nnew' ]
    none_alive
    [ -z "$(layers)" ]
}
@test "forks do not see each other's writes, and outlive the first sandbox" { both independent; }

no_layer() { [ -z "$(layers)" ]; }

# No cleanup here: the last sandbox removes the layer. It may be one that has answered already, or was
# refused.
last_takes_all() {
    local first
    create
    first=$id
    in_box 'head -c 1M /dev/zero >/tmp/x'
    fork -n 5 "$first"
    carrel destroy --all
    [ "$status" -eq 0 ]
    until_true no_layer
    # The same for copies, which the first one never has; and one after the other.
    create
    first=$id
    carrel exec --detach "$first" -c 'echo x >/tmp/x; sleep 1000'
    fork -n 2 "$first"
    carrel destroy "$first"
    carrel destroy "${ids[0]}"
    id=${ids[1]} in_box 'test -d /tmp'
    [ "$status" -eq 0 ]
    [ -n "$(layers)" ]
    carrel destroy "${ids[1]}"
    [ "$status" -eq 0 ]
    until_true no_layer
    # And of forks for which there is no place.
    me sh -c 'printf "sandbox: {limits: {max_concurrent: 1, max_queued: 0}}\n" >one.yaml'
    create --policy one.yaml
    carrel exec --detach "$id" -c 'sleep 1000'
    carrel fork -n 2 "$id"
    is_one_error 125 "carrel: no place for another sandbox: *"
    carrel destroy "$id"
    [ "$status" -eq 0 ]
    until_true no_layer
}
@test "the last sandbox that has a layer removes it" { both last_takes_all; }

# ---- snapshots of snapshots ---------------------------------------------------------------------

deep() {
    local i previous=
    for i in $(seq 0 45); do
        carrel create ${previous:+--from "$previous"}
        [ "$status" -eq 0 ]
        id=$out
        in_box "rm -f f$((i - 1)); rm -rf d; mkdir d; echo $i >d/n$i; echo $i >f$i; echo $i >>all; mkdir -p keep; echo $i >keep/$i; rm -f keep/$((i - 5))"
        [ "$status:$err" = 0: ]
        carrel snapshot "$id" "deep$i"
        [ "$status:$out" = "0:deep$i (stacked)" ]
        manifest_of "$id" "$T/m$i"
        previous=deep$i
        carrel destroy "$id"
    done
    carrel snapshots --json
    # One less than there may be: a sandbox at work is copied, and the copy comes on top.
    holds 'len(r["snapshots"]) == 46 and max(s["layers"] for s in r["snapshots"]) == 39'
    from deep45
    looks_merged "$id" "$T/m45"
    in_box 'ls; ls d; ls keep | sort -n | tr "\n" " "; tr "\n" " " <all'
    [ "$out" = "$(printf '%s\n' all d f45 keep n45)"$'\n'"41 42 43 44 45 $(seq -s ' ' 0 45) " ]
    for i in 3 38 39 40 41; do
        from "deep$i"
        looks_merged "$id" "$T/m$i"
    done
    carrel destroy --all
    for i in $(seq 0 44); do
        carrel snapshot rm "deep$i"
        [ "$status" -eq 0 ]
    done
    only_named_left
    from deep45
    looks_merged "$id" "$T/m45"
    carrel destroy --all
    carrel snapshot rm deep45
    only_named_left
    [ -z "$(layers)" ]
}
@test "a snapshot of a snapshot, 46 deep: merged on the way" { only user deep; }
# As root it is done by the next one.

# The same in one sandbox, forks of which are taken on the way.
deep_in_place() {
    local i first old
    create
    first=$id
    for i in $(seq 1 45); do
        in_box "echo $i >>all; echo $i >f$i; rm -f f$((i - 2))"
        fork "$first"
        [ "$i" -eq 20 ] || carrel destroy "${ids[0]}"
        [ "$i" -ne 20 ] || old=${ids[0]}
    done
    manifest_of "$first" "$T/m"
    in_box 'ls; wc -l <all'
    [ "$out" = $'all\nf44\nf45\n45' ]
    fork "$first"
    looks_like "${ids[0]}" "$T/m"
    carrel exec "$old" -c 'ls; wc -l <all'
    [ "$out" = $'all\nf19\nf20\n20' ]
    none_alive
}
@test "a sandbox that is forked 46 times" { both deep_in_place; }

# What is at work is copied, not stacked, and the copy is one layer more.
deep_and_busy() {
    local i process
    create
    for i in $(seq 1 42); do
        in_box "echo $i >>all"
        [ "$status" -eq 0 ]
        fork "$id"
        carrel destroy "${ids[0]}"
        [ "$i" -ge 38 ] || continue
        carrel exec --detach "$id" -- sleep 1000
        [ "$status" -eq 0 ]
        process=$out
        fork "$id"
        carrel exec "$id" -c 'cat all'
        [ "$out" = "$(seq 1 "$i")" ]
        carrel exec "${ids[0]}" -c 'cat all'
        [ "$out" = "$(seq 1 "$i")" ]
        carrel destroy "${ids[0]}"
        carrel signal "$id" "$process" KILL
        [ "$status" -eq 0 ]
    done
    none_alive
}
@test "a sandbox at work is forked, however many layers it lies on" { both deep_and_busy; }

# ---- names, lists, JSON -------------------------------------------------------------------------

names() {
    local name
    carrel snapshots
    [ "$status" -eq 0 ]
    [[ $out == NAME*CREATED*LAYERS*SIZE*FROM*IMAGE && $out != *$'\n'* ]]
    carrel snapshots --json
    [ "$status:$out" = '0:{"snapshots":[]}' ]
    create --name box
    in_box 'head -c 100000 /dev/urandom >f'
    for name in .hidden a/b ../x '' 'a b' $'a\nb' .. "$(printf 'a%.0s' $(seq 65))"; do
        carrel snapshot box "$name"
        is_one_error 125 "carrel: '*' cannot name a snapshot: *"
        carrel snapshot rm "$name"
        is_one_error 125 'carrel: *'
        carrel create --from "$name"
        is_one_error 125 'carrel: *'
    done
    [ -z "$(named)" ]
    carrel snapshot --json box v1.0_a-B
    [ "$status" -eq 0 ]
    holds 'r == {"name": "v1.0_a-B", "by": "stacked"}'
    me sh -c 'echo "{" >state/carrel/snapshots/z.json'
    carrel snapshots
    is_one_error 125 "carrel: snapshot 'z': *"
    [ -z "$out" ]
    me rm state/carrel/snapshots/z.json
    carrel snapshot box v1.0_a-B
    is_one_error 125 "carrel: there is a snapshot 'v1.0_a-B' already"
    carrel snapshot box "$(printf 'a%.0s' $(seq 64))"
    [ "$status" -eq 0 ]
    carrel snapshots --json
    holds '[s["name"] for s in r["snapshots"]] == ["a" * 64, "v1.0_a-B"]'
    holds 'r["snapshots"][1]["from"] == "'"$id"'" and r["snapshots"][1]["image"] is None'
    holds 'r["snapshots"][1]["layers"] == 1 and 100000 <= r["snapshots"][1]["bytes"] < 200000'
    holds 'r["snapshots"][0]["layers"] == 2 and r["snapshots"][0]["bytes"] < 50000'
    carrel snapshots
    [[ $out == *$'\n'"v1.0_a-B "*" 1 "*"$id"* ]]
    carrel create --from nothing
    is_one_error 125 "carrel: there is no snapshot 'nothing'; there are: *v1.0_a-B"
    carrel snapshot rm nothing
    is_one_error 125 "carrel: there is no snapshot 'nothing'; *"
    carrel snapshot rm --json nothing
    [ "$status" -eq 125 ]
    holds 'r["ok"] is False and "nothing" in r["error"]'
    carrel snapshot rm --json v1.0_a-B
    [ "$status" -eq 0 ]
    holds 'r == {"name": "v1.0_a-B"}'
    carrel snapshot box
    is_one_error 125 'carrel: missing argument; usage: carrel snapshot *'
    carrel snapshot box a b
    is_one_error 125 "carrel: unexpected argument 'b'; usage: carrel snapshot *"
    carrel snapshot nobody x
    is_one_error 125 "carrel: no living sandbox 'nobody' *"
    carrel fork nobody
    is_one_error 125 "carrel: no living sandbox 'nobody' *"
    carrel fork
    is_one_error 125 'carrel: missing argument; usage: carrel fork *'
    for name in 0 -1 1025 x ''; do
        carrel fork -n "$name" box
        is_one_error 125 'carrel: -n: expected a number from 1 to 1024'
    done
    carrel fork --json nobody
    [ "$status" -eq 125 ]
    holds 'r["ids"] == [] and "nobody" in r["error"]'
    carrel fork --json -n 3 box
    [ "$status" -eq 0 ]
    holds 'len(set(r["ids"])) == 3 and r["error"] is None'
    carrel create --from v1.0_a-B
    is_one_error 125 'carrel: there is no snapshot *'
    none_alive
}
@test "names, refusals, lists and JSON" { both names; }

# ---- what a fork is -----------------------------------------------------------------------------

is_its_own() {
    local run
    create --name box --label a=1 --label b=2 --env SECRET=x --cwd /tmp --hostname h --lease 20m --idle 10m \
        --timeout 77s
    says True
    run=$(json 'r["run"]')
    fork -n 2 box
    id=${ids[0]}
    says 'r["name"] is None and r["labels"] == {"a": "1", "b": "2"} and r["run"] != "'"$run"'"'
    holds 'r["started"] == 0 and r["processes"] == 0 and 1190000 < r["lease_ms"] <= 1200000'
    holds 'r["idle_ms"] == 600000 and r["limits"]["timeout_ms"] == 77000'
    in_box 'hostname; pwd; echo "${SECRET-none}"'
    [ "$out" = $'h\n/tmp\nnone' ]
    fork --inherit-env --label c=3 box
    id=${ids[0]}
    says 'r["labels"] == {"c": "3"}'
    in_box 'echo "${SECRET-none}"'
    [ "$out" = x ]
    # Fork of a fork: what the first one was not given it does not have either.
    fork box
    fork --inherit-env "${ids[0]}"
    id=${ids[0]} in_box 'echo "${SECRET-none}"'
    [ "$out" = none ]
    carrel fork --label 'a b=c' box
    is_one_error 125 "carrel: label 'a b=c' is not NAME=VALUE *"
    carrel fork --label a=b --label a=b box
    is_one_error 125 "carrel: label 'a' is given twice"
    # Each has a journal that holds.
    carrel destroy --all
    carrel journal verify
    [ "$status" -eq 0 ]
    carrel journal show "$run"
    [[ $out == *sandbox_forked* ]]
    only_named_left
}
@test "a fork is made as the first one was, and has nothing of its secrets" { both is_its_own; }

stays_what_it_is() {
    local before init
    create --name box --label a=1 --lease 20m
    in_box 'echo >/run/x; echo >/dev/shm/y; echo kept >f'
    before=$(keeper_of box)
    init=$(init_of "$before")
    carrel pause box
    snapshot stacked box s
    says 'r["state"] == "paused"'
    carrel exec box -- true
    is_one_error 125 'carrel: *the sandbox is paused; resume it first (carrel resume)'
    carrel resume box
    [ "$(keeper_of box)" = "$before" ]
    [ "$(init_of "$before")" != "$init" ]
    is_dead "$init"
    says 'r["name"] == "box" and r["labels"] == {"a": "1"} and r["started"] == 2 and r["lease_ms"] > 1100000'
    in_box 'cat f; ls -A /run /dev/shm'
    [ "$status:$out" = $'0:kept\n/dev/shm:\n\n/run:' ]
    says True
    carrel journal show "$(json 'r["run"]')"
    [[ $out == *snapshot_made* ]]
    none_alive
}
@test "a quiet sandbox is made again for a snapshot: id, name and files stay, /run is empty" { both stays_what_it_is; }

# A process without a number counts, too.
left_behind() {
    create
    in_box 'setsid sleep 1000 >/dev/null 2>&1 & echo >/tmp/f'
    snapshot copied "$id" s
    carrel ps "$id"
    [[ $out == *"sleep 1000"* ]]
    carrel destroy "$id"
    none_alive
}
@test "what a program left running is not ended for a snapshot" { both left_behind; }

# The init of the sandbox that is made again keeps the idle time, too.
still_idle() {
    create --idle 1s
    snapshot stacked "$id" s
    until_true no_entry
    none_alive
}
@test "a sandbox that was made again ends when it is not used" { both still_idle; }

# In the keeper's mount namespace alone the cgroups vanish: the next sandbox would not be held by them.
held_less() {
    local keeper
    create
    in_box 'echo precious >f'
    keeper=$(keeper_of "$id")
    nsenter --mount="/proc/$keeper/ns/mnt" mount -t tmpfs none /sys/fs/cgroup
    carrel snapshot "$id" s
    [ "$status" -eq 125 ]
    [[ $err == *"make the sandbox again: it would have fewer protections"*"its files are kept as snapshot lost-$id"* ]]
    until_true is_dead "$keeper"
    none_alive
    from "lost-$id"
    in_box 'cat f'
    [ "$out" = precious ]
    carrel destroy "$id"
    none_alive
}
@test "a sandbox that would be held less well is not made again" { only root with_cgroup held_less; }

changed_limits() {
    create
    carrel update --memory 64M --pids 20 "$id"
    [ "$status" -eq 0 ]
    snapshot stacked "$id" s
    fork "$id"
    for id in "$id" "${ids[0]}"; do
        says 'r["limits"]["memory_bytes"] == 64 * 2**20 and r["limits"]["pids"] == 20'
        in_box 'python3 -c "x = bytearray(200 << 20)"'
        [ "$status" -ne 0 ]
        in_box 'for i in $(seq 40); do sleep 1000 & done; :'
        [[ $err == *[Cc]annot\ fork* ]]
    done
    # A new one has its own.
    from s
    says 'r["limits"]["pids"] != 20'
    in_box 'python3 -c "x = bytearray(100 << 20)"'
    [ "$status" -eq 0 ]
}
@test "limits that were changed hold after a snapshot, and in forks" { both with_cgroup changed_limits; }

# ---- running programs ---------------------------------------------------------------------------

untouched() {
    local first before
    create
    first=$id
    in_box 'mkfifo p'
    # It holds a file and a directory of the layer, and says when it is there.
    carrel exec --detach "$first" -c 'mkdir d && cd d && exec 5>../open 6<>../p; echo begun >&5; while read -r line <&6; do echo "$line $PWD" >&5; done'
    [ "$status" -eq 0 ]
    begun() { id=$first in_box 'cat open' && [[ $out == begun* ]]; }
    until_true begun
    carrel ps --json "$first"
    before=$(json '[(p["pid"]) for p in r["processes"]]' 2>/dev/null || echo "$out")
    snapshot copied "$first" s
    fork -n 2 "$first"
    carrel ps --json "$first"
    [ "$(json '[(p["pid"]) for p in r["processes"]]' 2>/dev/null || echo "$out")" = "$before" ]
    says 'r["state"] == "running"'
    in_box 'echo later >p'
    went_on() { id=$first in_box 'cat open' && [ "$out" = $'begun\nlater /workspace/d' ]; }
    until_true went_on
    for id in "${ids[@]}"; do
        in_box 'cat open; ls; ps ax 2>/dev/null | grep -c "[r]ead -r line"'
        [ "$out" = $'begun\nd\nopen\np\n0' ]
        says 'r["processes"] == 0'
    done
    from s
    in_box 'cat open'
    [ "$out" = begun ]
    none_alive
}
@test "programs that run are not disturbed, and are not in what is made" { both untouched; }

open_by_client() {
    local first
    create
    first=$id
    me mkfifo slow
    exec 8<>"$T/slow"
    echo one >&8
    me timeout -k 5 120 "$CARREL" write "$first:/tmp/f" <"$T/slow" >/dev/null 2>&1 8>&- 3>&- &
    _cli_pids+=($!)
    there() { carrel cat "$first:/tmp/f" && [ "$out" = one ]; }
    until_true there
    snapshot copied "$first" s
    fork "$first"
    echo two >&8
    exec 8>&-
    until_true _is_over "${_cli_pids[-1]}"
    carrel cat "$first:/tmp/f"
    [ "$out" = $'one\ntwo' ]
    carrel cat "${ids[0]}:/tmp/f"
    [ "$out" = one ]
    from s
    in_box 'cat /tmp/f'
    [ "$out" = one ]
    snapshot stacked "$first" s2 # it is over
}
@test "what a command still writes is not in the snapshot" { both open_by_client; }

# ---- many ---------------------------------------------------------------------------------------

no_data_is_copied() { # no_data_is_copied FORKS MEGABYTES ARG...: of create
    local before after begin ms forks=$1 mb=$2
    create --disk 3G --lease 20m "${@:3}"
    in_box "head -c ${mb}M /dev/zero >big; echo end >>big; sync big"
    [ "$status" -eq 0 ]
    before=$(du -sk "$T/state" | cut -f1)
    [ "$before" -ge $((mb * 1024)) ]
    begin=$(date +%s%N)
    fork -n "$forks" "$id"
    ms=$((($(date +%s%N) - begin) / 1000000))
    after=$(du -sk "$T/state" | cut -f1)
    echo "# $who: $forks forks in $ms ms, $((after - before)) kB more" >&3
    [ "${#ids[@]}" -eq "$forks" ]
    [ "$(printf '%s\n' "${ids[@]}" | sort -u | wc -l)" -eq "$forks" ]
    [ $((after - before)) -lt 20000 ]
    for id in "${ids[0]}" "${ids[forks / 2]}" "${ids[forks - 1]}"; do
        in_box 'tail -c 4 big; stat -c %s big; echo own >own'
        [ "$out" = $'end\n'$((mb * 1048576 + 4)) ]
    done
    begin=$(date +%s%N)
    carrel snapshot "$id" s
    ms=$((($(date +%s%N) - begin) / 1000000))
    echo "# $who: a snapshot of a fork in $ms ms" >&3
    none_alive
}
# A hundred of a gigabyte are the next one.
@test "forks copy no data" { both no_data_is_copied 20 128; }

repository() {
    me git init -q repo
    me sh -c 'cd repo && echo big >.gitignore && git add -A && git -c user.name=t -c user.email=t@t commit -qm base'
    no_data_is_copied 100 1024 --workspace --repo "$T/repo" --on-success discard
}
@test "a hundred forks of a git workspace with a gigabyte of changes copy no data" { both repository; }

max_concurrent() {
    me sh -c 'echo "sandbox: {limits: {max_concurrent: 3, max_queued: 0}}" >policy.yaml'
    create --policy policy.yaml
    carrel fork -n 5 "$id"
    [ "$status" -eq 125 ]
    [ "$(wc -l <<<"$out")" -eq 2 ]
    [[ $err == carrel:\ * && $err != *$'\n'* ]]
    carrel list --json
    holds 'len(r["sandboxes"]) == 3 and r["queue"] == []'
    carrel fork --json "$id"
    [ "$status" -eq 125 ]
    holds 'r["ids"] == [] and bool(r["error"])'
    none_alive
}
@test "the policy's number of sandboxes holds for forks" { both max_concurrent; }

waiting() { # waiting N: so many, and two live
    carrel list --json
    holds "len(r['queue']) == $1 and len(r['sandboxes']) == 2"
}
# The ids of waiting forks cannot be delivered any more; the fork whose id was delivered stays.
killed_in_queue() {
    local first signal
    me sh -c 'echo "sandbox: {limits: {max_concurrent: 2}}" >policy.yaml'
    create --policy policy.yaml
    first=$id
    for signal in KILL TERM; do
        background fork -n 3 "$first"
        until_true test -s "$T/.out"
        id=$(<"$T/.out") # before another command writes there
        until_true waiting 2
        kill -"$signal" "$pid"
        until_true waiting 0
        in_box 'echo here'
        [ "$out" = here ]
        carrel destroy "$id"
        carrel list --json
        holds 'len(r["sandboxes"]) == 1 and r["queue"] == []'
    done
    carrel destroy "$first"
    [ "$status:$(layers)" = 0: ]
    nothing_left
}
@test "forks leave the queue when their requester exits" { both killed_in_queue; }

at_once() {
    local i jobs=() first
    create
    first=$id
    in_box 'echo data >f'
    for i in $(seq 1 12); do
        case $((i % 3)) in
        0) me timeout -k 5 120 "$CARREL" fork -n 3 "$first" >"$T/$i.out" 2>"$T/$i.err" </dev/null & ;;
        1) me timeout -k 5 120 "$CARREL" snapshot "$first" "s$i" >"$T/$i.out" 2>"$T/$i.err" </dev/null & ;;
        2) me timeout -k 5 120 "$CARREL" exec --quiet "$first" -c "echo $i >own$i; cat f" >"$T/$i.out" 2>"$T/$i.err" </dev/null & ;;
        esac
        jobs[i]=$!
    done
    for i in $(seq 1 12); do
        wait "${jobs[i]}" || {
            cat "$T/$i.err"
            return 1
        }
    done
    in_box 'ls'
    [ "$out" = "$(printf '%s\n' f own11 own2 own5 own8)" ]
    for i in 3 6 9 12; do
        [ "$(wc -l <"$T/$i.out")" -eq 3 ]
        for id in $(tr "\n" " " <"$T/$i.out"); do
            in_box 'cat f'
            [ "$status:$out" = 0:data ]
        done
    done
    none_alive
}
@test "forks, snapshots and programs of one sandbox at once" { both at_once; }

# ---- images -------------------------------------------------------------------------------------

of_image() {
    local first
    tiny_root
    carrel image import root tiny
    [ "$status" -eq 0 ]
    carrel image import root other
    carrel create --image tiny --cwd /
    [ "$status" -eq 0 ]
    first=$out
    id=$first
    in_box 'echo changed >/srv/f; echo new >/new; cat /srv/f'
    [ "$status:$out" = 0:changed ]
    carrel rm "$first:/bin/touch"
    [ "$status:$err" = 0: ]
    snapshot stacked "$first" s
    carrel snapshots --json
    holds 'r["snapshots"][0]["image"].split("@")[0] == "tiny"'
    from s
    in_box 'cat /srv/f /new; ls /bin'
    [ "$status:$out" = $'0:changed\nnew\ncat\nid\nls\nsh\ntrue' ]
    carrel create --from s --image tiny
    [ "$status" -eq 0 ]
    fork -n 2 "$id"
    id=${ids[1]}
    in_box 'cat /srv/f /new; ls /bin; echo mine >/srv/f'
    [ "$status:$out" = $'0:changed\nnew\ncat\nid\nls\nsh\ntrue' ]
    id=${ids[0]} in_box 'cat /srv/f /new'
    [ "$out" = $'changed\nnew' ]
    # The image itself is what it was.
    carrel run --image tiny --quiet -- cat /srv/f
    [ "$out" = served ]
    carrel create --from s --image other
    is_one_error 125 "carrel: snapshot 's' was made on image tiny*; it can lie on nothing else"
    carrel create --from s --image none
    is_one_error 125 "carrel: snapshot 's' was made on image tiny*; *"
    carrel create
    id=$out
    snapshot stacked "$id" plain
    carrel create --from plain --image tiny
    is_one_error 125 "carrel: snapshot 'plain' was made on the host's root; *"
    none_alive
}
@test "a snapshot and forks of a sandbox on an image" { both of_image; }

# ---- crashes ------------------------------------------------------------------------------------

# Waits for a while that is different each time: some point on the way of what goes on beside it.
a_moment() { # a_moment MICROSECONDS: without a program, whose start would take longer
    local end=$((${EPOCHREALTIME/./} + $1))
    while ((${EPOCHREALTIME/./} < end)); do :; done
}

# What was told to be there is there and whole, whatever is there is whole, nothing else is there.
after_a_crash() {
    local name
    carrel cleanup
    [ "$status" -eq 0 ]
    carrel snapshots --json
    [ "$status" -eq 0 ]
    for name in $(json '" ".join(s["name"] for s in r["snapshots"])'); do
        from "$name"
        looks_like "$id" "$T/m"
        carrel destroy "$id"
    done
}

crash() {
    local i name pid job took before=0
    RANDOM=4711
    # How long one takes here and now: the kill comes in the later part of it, or just afterwards.
    create
    took=${EPOCHREALTIME/./}
    me "$CARREL" snapshot "$id" first >/dev/null
    took=$((${EPOCHREALTIME/./} - took))
    carrel destroy "$id"
    carrel snapshot rm first
    for i in $(seq 1 8); do
        create --name "box$i"
        in_box 'mkdir -p d/e; echo 1 >d/e/f; head -c 100000 /dev/zero >z; touch -d @1 d/e/f d/e d z . /tmp ~'
        manifest_of "$id" "$T/m"
        [ $((i % 4)) -ne 3 ] || carrel exec --detach "$id" -- sleep 1000
        pid=$(keeper_of "$id")
        if [ $((i % 2)) -eq 0 ]; then
            me timeout -k 5 60 "$CARREL" snapshot "$id" "s$i" >"$T/said" 2>/dev/null </dev/null &
        else
            me timeout -k 5 60 "$CARREL" fork -n 3 "$id" >"$T/said" 2>/dev/null </dev/null &
        fi
        job=$!
        a_moment $((took / 2 + RANDOM * 20 % took))
        kill -KILL "$pid"
        wait "$job" || true
        until_true is_dead "$pid"
        if [ $((i % 2)) -eq 0 ]; then
            [ ! -s "$T/said" ] || [ -e "$T/state/carrel/snapshots/s$i.json" ]
        else
            # Those that were told of are keepers of their own.
            for id in $(tr "\n" " " <"$T/said"); do
                looks_like "$id" "$T/m"
            done
        fi
        after_a_crash
        settled() { carrel list --json && holds 'all(s["state"] == "running" for s in r["sandboxes"]) and not r["queue"]'; }
        until_true settled
        carrel destroy --all
        [ "$status" -eq 0 ]
        only_named_left
        for name in "$T"/state/carrel/snapshots/*.json; do
            [ -e "$name" ] || continue
            name=${name##*/}
            carrel snapshot rm "${name%.json}"
            [ "$status" -eq 0 ]
            before=$((before + 1))
        done
        only_named_left
        [ -z "$(layers)" ]
    done
    echo "# $who: of 4 snapshots whose keeper was killed $before came about" >&3
}
@test "a keeper that is killed meanwhile leaves nothing, and takes nothing that has a name" { both crash; }

# What was used before the sandbox was made again is not forgotten. What is not known stays so.
added_up() {
    local before
    create
    in_box 'head -c 20M /dev/zero | sha256sum >/dev/null; head -c 3M /dev/zero >/tmp/x'
    says 'r["usage"]["cpu_ms"] > 0 and r["usage"]["written_bytes"] >= 3 * 2**20'
    before=$(json 'r["usage"]')
    before=${before//null/None}
    carrel snapshot "$id" one
    [[ $out == *stacked* ]]
    says "all(r['usage'][k] is v is None or r['usage'][k] >= v for k, v in $before.items())"
    in_box 'head -c 20M /dev/zero | sha256sum >/dev/null; head -c 3M /dev/zero >/tmp/y'
    says "r['usage']['cpu_ms'] > ($before)['cpu_ms']"
    holds "r['usage']['written_bytes'] >= 3 * 2**20 + ($before)['written_bytes']"
    carrel snapshot "$id" two
    says "r['usage']['written_bytes'] >= 3 * 2**20 + ($before)['written_bytes']"
}
@test "a sandbox that was made again has used what it used before, too" { both added_up; }

# The tree is exchanged first, then the git dir: one that cannot be moved stops it in between.
half_sealed() {
    local place
    small_repo
    create --repo repo --task T --run R
    in_box 'echo two >>a; echo new >b; git commit -qam second'
    place=$(me "$CARREL" inspect "$id" | grep -o '"workspace":"[^"]*' | cut -d'"' -f4)
    if [ "$who" = root ]; then
        chattr +i "$place/gitupper" || skip "no file can be made immutable here"
    else
        me chmod 555 "$place/gitupper"
    fi
    carrel snapshot "$id" never
    [ "$status" -eq 125 ]
    [[ $err == *"seal workspace 'R'"* ]]
    [ "$who" != root ] || chattr -i "$place/gitupper"
    me chmod 755 "$place/gitupper"
    carrel snapshots
    [[ $out != *never* ]]
    # It continues, with all of it, and can be sealed later.
    in_box 'cat a b; git log --oneline | wc -l; git status --short'
    [ "$status:$out" = $'0:one\ntwo\nnew\n2\n?? b' ]
    carrel snapshot "$id" later
    [ "$status:$out" = "0:later (stacked)" ]
    in_box 'cat a b'
    [ "$out" = $'one\ntwo\nnew' ]
    carrel destroy "$id"
    carrel workspace diff R
    [[ $out == *+two* && $out == *+new* ]]
}
@test "a workspace that can be sealed only in part hides nothing" { both half_sealed; }

# A keeper leaves the directory in which it was asked for; relative paths still mean what they did.
relative_paths() {
    me mkdir -p wd
    me sh -c 'echo mine >wd/file'
    create --workdir wd --mount ./wd:/data
    carrel snapshot "$id" relative
    [ "$status" -eq 0 ]
    carrel exec "$id" -c 'cat file /data/file; ls /workspace | wc -l'
    [ "$out" = $'mine\nmine\n1' ]
    carrel fork "$id"
    local fork=$out
    carrel exec "$fork" -c 'cat file /data/file'
    [ "$out" = $'mine\nmine' ]
    carrel snapshot rm relative
    carrel destroy "$id" "$fork"
}
@test "relative mounts are the same ones after a snapshot and in a fork" { both relative_paths; }
