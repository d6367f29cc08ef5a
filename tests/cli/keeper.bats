#!/usr/bin/env bats
# shellcheck disable=SC2030,SC2031,SC2154  # cli.bash sets $status, $out and others
# The keeper of a living sandbox, and what may be done to it: clients that break the protocol, what it
# keeps of its creator, and how it ends.

load cli
load living

# ---- clients that do not keep to the rules -------------------------------------------------------

# A sandbox, its keeper in $keeper, and tests/keeper_client.c where the user can reach it.
with_keeper() {
    create
    keeper=$(keeper_of "$id")
    client=$T/keeper_client
    [ -e "$client" ] ||
        install -m 755 "$(cd "$BATS_TEST_DIRNAME/../.." && pwd)/build/tests/keeper_client" "$client"
    until_true alone
    held=$(n_held)
}
talk() { me timeout -k 5 60 "$client" "$S/$id/sock" "$@"; }
# One that stays until it is let go.
holding() {
    local word
    coproc talk "$@" 2>&1
    holder=$COPROC_PID
    exec {holder_in}>&"${COPROC[1]}"
    read -r word <&"${COPROC[0]}"
    [ "$word" = ready ]
    eval "exec ${COPROC[1]}>&-"
}
let_go() {
    exec {holder_in}>&-
    wait "$holder"
}
n_held() { find "/proc/$keeper/fd" -mindepth 1 | wc -l; }
alone() { me "$CARREL" list --json | grep -q '"clients":0,'; } # which asks no keeper
as_before() { [ "$(n_held)" -eq "$held" ]; }

# A sandbox that is shown the directory of sockets is no client of another's keeper.
from_inside() {
    create
    carrel run --mount "$S:/living:ro" -- python3 -c 'import socket, sys
s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
s.settimeout(3)
try:
    s.connect(sys.argv[1])
    print("refused" if s.recv(1) == b"" else "answered")
except TimeoutError:
    print("accepted")
except OSError:
    print("refused")' "/living/$id/sock"
    [ "$out" = refused ]
    carrel exec "$id" -- echo lives
    [ "$out" = lives ]
}
@test "a sandbox that is shown the sockets is no client" { both from_inside; }

# It answers, and has nothing more than before.
is_well() {
    carrel exec "$id" -- echo fine
    [ "$status:$out" = 0:fine ]
    until_true as_before || {
        ls -l "/proc/$keeper/fd"
        return 1
    }
}

foreign_payloads() {
    with_keeper
    talk payloads
    is_well
}
@test "payloads: only memory files of a bounded size are read" { both foreign_payloads; }

changing_payloads() {
    with_keeper
    talk changing 2000
    is_well
}
@test "payloads: one that changes meanwhile does the keeper no harm" { both changing_payloads; }

garbage() {
    with_keeper
    talk garbage
    is_well
    # The sandbox is none the worse: nothing was paused, renewed, started or ended.
    says 'r["state"] == "running" and r["started"] == 1 and 3500000 < r["lease_ms"] <= 3600000'
}
@test "what is no message ends a connection, what is no request is refused" { both garbage; }

requests() {
    with_keeper
    talk requests
    is_well
    says 'r["processes"] == 0'
    [ "$(find "$S" -maxdepth 1 -name 'S-*' | wc -l)" -eq 1 ]
    [ -z "$(me find "$T/state/carrel/snapshots" -type f 2>/dev/null)" ]
}
@test "what cannot be is refused, though no command would ask for it" { both requests; }

# More than a keeper has room for: the oldest clients without a hello make room for those with one.
silent() {
    with_keeper
    background exec --quiet "$id" -c 'echo ready; sleep 1000'
    until_true grep -q ready "$T/.out"
    holding silent 1000
    is_one_of_many
    says 'r["processes"] == 1' # a client that said hello stays
    let_go
    kill "$pid"
    ended
    is_well
}
is_one_of_many() {
    carrel exec "$id" -- echo fine
    [ "$status:$out" = 0:fine ]
    carrel ps "$id"
    [ "$status" -eq 0 ]
}
@test "a thousand silent clients do not keep others out" { both silent; }

unread() {
    with_keeper
    talk unread
    is_well
}
@test "a client that takes no answer is let go" { both unread; }

# They are ready and can be used, but the client never received their ids.
unread_forks() {
    local fork
    with_keeper
    holding forks 12
    until_true thirteen
    for fork in $(me "$CARREL" list --json | grep -o '"id":"S-[0-9a-z]*' | cut -d'"' -f4); do
        me timeout -k 5 10 "$CARREL" exec "$fork" -- true </dev/null
    done
    let_go
    until_true only_first
}
alive() { me "$CARREL" list --json | grep -o '"state":"running"' | wc -l; }
thirteen() { [ "$(alive)" -eq 13 ]; }
only_first() { [ "$(alive)" -eq 1 ]; }
@test "forks do not wait for a client that does not hear of them" { both unread_forks; }

# It was let go, but has a file that it may write to: no layer may be sealed under it.
half_closed() {
    with_keeper
    holding half
    carrel snapshot "$id" early
    [ "$status:$out" = "0:early (copied)" ]
    let_go
    carrel create --from early
    carrel cat "$out:/tmp/held"
    [ "$status:$out" = 0: ]
    carrel cat "$id:/tmp/held"
    [ "$status:$out" = 0:late ]
    carrel snapshot "$id" late
    [ "$status:$out" = "0:late (stacked)" ]
}
@test "a client that closed its end in part may still write to its files" { both half_closed; }

extra_streams() {
    with_keeper
    talk extra
    is_well
}
@test "streams beside the three come with the answer to a start" { both extra_streams; }

# Root can reach a user's socket, but it is not root's.
another_user() {
    [ "$(id -u)" -eq 0 ] || skip "needs root and a user"
    with_keeper
    [ "$(talk peer)" = "done" ]
    [ "$("$client" "$S/$id/sock" peer)" = "hung up" ]
    is_well
}
@test "a client of another user is not listened to" { only user another_user; }

# ---- what it keeps of its creator ----------------------------------------------------------------

variables() { tr '\0' '\n' <"/proc/$keeper/environ"; }

# Descriptors, words and variables of the caller.
nothing_kept() {
    local made word=secret-word-$RANDOM
    me sh -c 'echo content >file'
    made=$(me env SECRET="$word" OTHER="$word" bash -c \
        'exec 7<file 8<>file 9>>file 20<. 21<file; "$0" create --env A="$1" --label l="$1"' "$CARREL" "$word")
    id=$made
    keeper=$(keeper_of "$id")
    [ -z "$(find "/proc/$keeper/fd" -lname "$T/file" -o -lname "$T")" ]
    [ "$(find "/proc/$keeper/fd" -lname /dev/null | wc -l)" -eq 3 ]
    [ "$(readlink "/proc/$keeper/cwd")" = / ]
    [ "$(tr '\0' ' ' <"/proc/$keeper/cmdline" | sed 's/ *$//')" = carrel-keeper ]
    not grep -q "$word" <(variables)
    [ "$(me grep -c "$word" "/proc/$keeper/environ")" -eq 0 ]
    # The options are there all the same, for each program and each fork.
    in_box 'echo $A'
    [ "$out" = "$word" ]
    says "r['labels']['l'] == '$word'"
    carrel fork --inherit-env "$id"
    [ "$status" -eq 0 ]
    id=$out
    keeper=$(keeper_of "$id")
    [ "$(tr '\0' ' ' <"/proc/$keeper/cmdline" | sed 's/ *$//')" = carrel-keeper ]
    in_box 'echo $A'
    [ "$out" = "$word" ]
}
@test "a keeper has no descriptor, word or variable of its caller" { both nothing_kept; }

# What the policy gives to programs is the caller's of then.
passed_on() {
    me sh -c 'echo "sandbox: {environment: {pass: [TOLD, GIVEN_*]}}" >policy.yaml'
    id=$(me env TOLD=once GIVEN_A=twice NOT=never "$CARREL" create --policy policy.yaml)
    in_box 'echo $TOLD $GIVEN_A $NOT'
    [ "$out" = "once twice" ]
    carrel snapshot "$id" "s$$"
    [ "$status" -eq 0 ]
    carrel fork "$id"
    id=$out
    TOLD=other carrel exec "$id" -c 'echo $TOLD $GIVEN_A $NOT'
    [ "$out" = "once twice" ]
    carrel snapshots rm "s$$" || true
}
@test "what the policy passes on, programs get, also after a snapshot and in forks" { both passed_on; }

# In one mount namespace, as on a machine: `me` would make one for each command.
directory_is_free() {
    _places
    mkdir "$T/m"
    XDG_STATE_HOME=$T/state unshare --mount --propagation private sh -euc '
        mount --bind "$1/carrel" /run/carrel
        mount -t tmpfs none "$1/m"
        cd "$1/m"
        id=$("$0" create)
        cd /
        umount "$1/m"
        "$0" exec "$id" -- echo fine
        "$0" destroy "$id"' "$CARREL" "$T" >"$T/said" 3>&-
    [ "$(cat "$T/said")" = fine ]
}
@test "the file system in which create was called can be unmounted" { only root directory_is_free; }

# field N of /proc/PID/stat, behind the name
stat_of() { sed 's/.*) //' "/proc/$1/stat" | cut -d' ' -f"$(($2 - 2))"; }
no_terminal() {
    id=$(me /usr/bin/python3 -c 'import pty, sys; pty.spawn(sys.argv[1:])' "$CARREL" create --quiet </dev/null | tr -d '\r')
    [[ $id =~ ^S-[0-9a-z]{16}$ ]]
    keeper=$(keeper_of "$id")
    [ "$(stat_of "$keeper" 7)" -eq 0 ]             # its terminal
    [ "$(stat_of "$keeper" 4)" -eq 1 ] || [ "$(stat_of "$keeper" 6)" -ne "$keeper" ] # it leads no session
    carrel exec "$id" -- echo fine                 # though the terminal is gone
    [ "$status:$out" = 0:fine ]
}
@test "a keeper has no terminal" { both no_terminal; }

# Words and variables of the caller lay there.
leaves_stack() {
    local fork
    create
    keeper=$(keeper_of "$id")
    [ "$(grep -cF '[stack]' "/proc/$keeper/maps")" -eq 0 ]
    carrel fork "$id"
    [ "$status" -eq 0 ]
    fork=$out
    keeper=$(keeper_of "$fork")
    [ "$(grep -cF '[stack]' "/proc/$keeper/maps")" -eq 0 ]
    [ "$(tr '\0' ' ' <"/proc/$keeper/cmdline")" = "carrel-keeper " ]
    [ -z "$(tr '\0' ' ' <"/proc/$keeper/environ")" ]
    carrel snapshot "$fork" "s$$" # init is made again
    [ "$status" -eq 0 ]
    carrel destroy "$fork"
    [ "$status" -eq 0 ]
    carrel snapshots rm "s$$" || true
}
@test "a keeper has given up the stack of its maker" { both leaves_stack; }

# It was forked with the stack and the heap of its maker, where values of variables were.
forgets() {
    local init memory
    create --env SECRET=of-the-caller
    init=$(init_of "$(keeper_of "$id")")
    memory=$(</proc/"$init"/maps)
    [[ -n $memory && $memory != *"[stack]"* ]]
    memory=$(/usr/bin/python3 -c 'import sys
with open(f"/proc/{sys.argv[1]}/maps") as maps, open(f"/proc/{sys.argv[1]}/mem", "rb") as memory:
    for line in maps:
        words = line.split()
        if words[1].startswith("rw"):
            first, last = (int(n, 16) for n in words[0].split("-"))
            memory.seek(first)
            print(memory.read(last - first).count(b"of-the-" + b"caller"))' "$init")
    [ "$(sort -u <<<"$memory")" = 0 ]
}
@test "init has nothing of its creator when the sandbox is ready" { both forgets; }

# ---- the filter ----------------------------------------------------------------------------------

# init lives long, and has a filter of its own; each program has that of a run.
filtered() {
    local way
    create
    for way in '' --detach; do
        # shellcheck disable=SC2086  # no word where there is none
        carrel exec $way "$id" -- /usr/bin/python3 -c 'import ctypes, errno
libc = ctypes.CDLL(None, use_errno=True)
r = libc.syscall(437, -100, b"/", 0, 0)  # openat2: the same number everywhere
print(r, errno.errorcode[ctypes.get_errno()])
for pid in ("self", "1"):
    facts = dict(line.split(":\t", 1) for line in open(f"/proc/{pid}/status"))
    print(pid, int(facts["NoNewPrivs"]), int(facts["Seccomp"]))'
        [ "$status" -eq 0 ]
        [ -z "$way" ] || { carrel attach "$id" "$out"; }
        [ "$out" = $'-1 ENOSYS\nself 1 2\n1 1 2' ]
        # After a snapshot init is another one.
        [ -n "$way" ] || { carrel snapshot "$id" "s$$" && [ "$status" -eq 0 ]; }
    done
}
@test "init and every program have a filter, and gain no privilege" { both filtered; }

# ---- the end -------------------------------------------------------------------------------------

# Whatever holds init up, the kernel ends it with its keeper: stopped, before or after file
# requests (for which it has other ids) and pauses (in which it must not be killed).
hung_init() {
    local way init
    new_tag
    for way in fresh used; do
        create
        keeper=$(keeper_of "$id")
        init=$(init_of "$keeper")
        carrel exec --detach "$id" -c 'trap "" TERM HUP; (setsid sleep 1000 &); sleep 1000; :' "$tag"
        if [ "$way" = used ]; then
            carrel pause "$id"
            carrel resume "$id"
            carrel_reads text write "$id:/tmp/f"
            [ "$status" -eq 0 ]
        fi
        kill -STOP "$init"
        kill -KILL "$keeper"
        until_true is_dead "$init"
        none_left "$tag"
        carrel list
        [[ $out != *"$id"* ]]
    done
    nothing_left
}
@test "a keeper is killed while its init is stopped: nothing is left" { both hung_init; }

# It does not see its lease end: the keeper ends it, and says why.
hung_at_lease() {
    local init run
    new_tag
    create
    keeper=$(keeper_of "$id")
    init=$(init_of "$keeper")
    run=$(me "$CARREL" inspect "$id" | grep -o '"run":"[^"]*' | cut -d'"' -f4)
    carrel exec --detach "$id" -c 'sleep 1000; :' "$tag"
    carrel renew --lease 400ms "$id"
    kill -STOP "$init"
    until_true is_dead "$keeper"
    is_dead "$init"
    none_left "$tag"
    carrel runs show "$run"
    [[ $out == *timeout* ]]
    nothing_left
}
@test "a lease that init does not see end is ended by the keeper" { both hung_at_lease; }
