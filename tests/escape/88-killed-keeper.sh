# shellcheck shell=bash disable=SC2034,SC2154
# kill -9 of the creator, keeper or user of a sandbox, at any moment, and a reboot: nothing outlives
# it, nothing is left behind, work is kept. KILLS_SEED=N decides when and which; another each time.
# shellcheck source=living.sh
source "$here/living.sh"

mark=MARK=orphan-$$
seed=${KILLS_SEED:-$RANDOM}

# $run replaces /run/carrel for this case alone, so that everything in it is ours.
prepare() {
    all_attempts=no
    run=$T/run/carrel
    me mkdir -m 700 "$T/run" "$run"
    [ "$who" != root ] || [ -d /run/carrel ] || mkdir -m 700 /run/carrel
    me git init -q -b main "$T/repo"
    me git -C "$T/repo" -c user.name=T -c user.email=t@example.org commit -q --allow-empty -m first
}
alone() { # alone CMD...: with that directory
    if [ "$who" = root ]; then
        me env XDG_STATE_HOME="$T/state" XDG_CONFIG_HOME="$T/config" unshare --mount --propagation private \
            sh -c 'mount --bind "$0" /run/carrel && exec "$@"' "$run" "$@" </dev/null
    else
        me env XDG_STATE_HOME="$T/state" XDG_CONFIG_HOME="$T/config" XDG_RUNTIME_DIR="$T/run" "$@" </dev/null
    fi
}
ask() { alone timeout --foreground -k 5 60 "$tool" "$@"; }

# Without carrel: a supervisor with a child in a session of its own.
bare() {
    local pid
    me env "$mark" sh -c 'setsid sleep 1000 >/dev/null 2>&1 & kill -9 $$' >/dev/null 2>&1 || true
    if [ -n "$(marked "$mark")" ]; then echo "SUCCEEDED outlives-its-keeper"; fi
    for pid in $(marked "$mark"); do kill -KILL "$pid" || true; done
}

control() {
    settle
    [ "$(at_home -- echo fine)" = fine ] && echo "WORKS exec"
    ask destroy "$id" && echo "WORKS destroy"
}

gone() { # gone WHAT: eventually, and then for good
    local i
    for ((i = 0; i < 200; i++)); do
        [ -n "$(marked "$mark")" ] || break
        sleep 0.05
    done
    if [ -n "$(marked "$mark")" ]; then
        echo "SUCCEEDED $1 something runs on"
    elif ask exec "$id" -- true 2>/dev/null; then
        echo "SUCCEEDED $1 it still answers"
    else
        echo "REFUSED $1"
    fi
}

attack() {
    local n keeper
    RANDOM=7
    for n in 1 2 3 4 5 6 7 8; do
        settle --env "$mark"
        keeper=$(ask inspect "$id" | field pid)
        ask exec --detach "$id" -- /bin/sh -c 'setsid sh -c "trap \"\" TERM; sleep 1000; :" & while :; do :; done' >/dev/null
        ask exec --detach "$id" -- /attacks/75-stubborn attack linger >/dev/null
        [ "$n" -lt 5 ] || ask pause "$id"
        sleep "0.0$((RANDOM % 10))" # a random time; nothing depends on it
        kill -KILL "$keeper"
        gone "kill-$n"
    done
    # The next command removes what the killed ones left.
    ask cleanup >/dev/null
    nothing_left
}

# ---- what can be left ---------------------------------------------------------------------------

# Keepers, inits and clients run the binary of this run of the suite, programs have the mark. (An
# ordinary user sees its keepers and programs, but not the binary of an init.)
ours() {
    find /proc/[0-9]*/exe -lname "$tool*" 2>/dev/null || true
    marked "$mark"
}
all_ended() { # eventually, without help
    local i
    for ((i = 0; i < 200; i++)); do
        [ -n "$(ours)" ] || return 0
        sleep 0.05
    done
    return 1
}

# The names of their groups have device and inode of the lock file.
groups_left() {
    local prefix
    prefix=$(stat -c '%D %i' "$run/lock" 2>/dev/null | { read -r d i && printf '%s.%x-' "$d" "$i"; }) || return 0
    compgen -G "/sys/fs/cgroup/*/carrel/$prefix*" || compgen -G "/sys/fs/cgroup/carrel/$prefix*" || true
}

none() { # none WHAT LEFT
    if [ -z "$2" ]; then echo "REFUSED $1"; else echo "SUCCEEDED $1 left: ${2//$'\n'/ }"; fi
}

# After a cleanup, when all have ended and no snapshot has a name.
nothing_left() {
    none process "$(ours)"
    none group "$(groups_left)"
    none mount "$(grep -F "$T" /proc/self/mountinfo || true)"
    none entry "$(find "$run/sandboxes" -mindepth 1 ! -name lock ! -name status ! -name names 2>/dev/null || true)"
    none layer "$(find "$T/state/carrel/layers" -mindepth 1 -maxdepth 1 ! -name '.*' 2>/dev/null || true)"
    none half-made "$(find "$T/state/carrel/workspaces/.tmp" -mindepth 1 2>/dev/null || true)"
    none git-lock "$(find "$T/repo/.git" -name '*.lock')"
}

# ---- at random moments --------------------------------------------------------------------------

# One of several at once, until it has killed that many. It creates a sandbox (every eighth with a
# workspace), begins something with it, and after a random time kills the client, the keeper or the
# init. A create has no keeper yet: then the lowest process below the client.
killer='
tool=$0 seed=$1 n=$2 kills=$3 mark=$4 repo=$5
RANDOM=$((seed + n))
below() { cat "/proc/$1/task/$1/children" 2>/dev/null; }
for ((i = 0; kills > 0 && i < 100; i++)); do
    words=(create --env "$mark" --lease 10m)
    (((i + n) % 8)) || words+=(--repo "$repo" --run "r$n-$i")
    action=$((i % 5)) victim=$((RANDOM % 3)) ms=$((RANDOM % 30)) id= keeper=0 init=0
    if [ "$action" -ne 0 ]; then
        id=$("$tool" "${words[@]}") || continue
        keeper=$("$tool" inspect "$id" | sed "s/.*\"pid\":\([0-9]*\).*/\1/")
        read -r init _ < <(below "$keeper")
        words=(exec --detach "$id" -- sleep 1000)
        ((RANDOM % 2)) || "$tool" "${words[@]}"
    fi
    case $action in
    1) words=(exec "$id" -c "while :; do date >f; done") ;;
    2) words=(fork "$id" -n 2) ;;
    3) words=(snapshot "$id" "s$n-$i") ;;
    4) words=(destroy "$id") ;;
    esac
    "$tool" "${words[@]}" >/dev/null &
    client=$!
    sleep "$(printf "0.%03d" "$ms")" # any moment; nothing depends on it
    case $victim in
    0) target=$client ;;
    1) target=$keeper ;;
    2) target=$init ;;
    esac
    if [ "$action" -eq 0 ] && [ "$victim" -ne 0 ]; then
        target=$client
        while read -r lower _ < <(below "$target") && [ -n "$lower" ]; do target=$lower; done
    fi
    # A pid that was reused is not touched.
    if [[ $(cat "/proc/$target/comm" 2>/dev/null) == carrel* ]] && kill -KILL "$target" 2>/dev/null; then
        echo "KILLED action-$action victim-$victim after $ms ms"
        kills=$((kills - 1))
    fi
    [ "$action" -ne 1 ] || kill -KILL "$client" 2>/dev/null # else it would run for ever
    wait "$client" 2>/dev/null
done
exit 0
'
random_kills() {
    local i pids=() killed name names
    for i in 1 2 3 4; do
        alone timeout -k 5 120 bash -c "$killer" "$tool" "$seed" "$i" 10 "$mark" "$T/repo" >"$T/kills.$i" 2>&1 &
        pids+=($!)
    done
    wait "${pids[@]}" || echo "OTHER one of the killers failed: $(tail -n 3 "$T"/kills.*)"
    killed=$(cat "$T"/kills.* | grep -c ^KILLED)
    [ "$killed" -eq 40 ] || echo "OTHER only $killed of 40 were killed"
    # Sandboxes that lost no process live on, and can be ended like any other; also those that were
    # being created when their client was killed, and are listed only now.
    for ((i = 0; i < 100; i++)); do
        ask destroy --all || echo "SUCCEEDED destroy of the rest failed"
        [ -n "$(ours)" ] || break
        sleep 0.05
    done
    # Names are work: they are removed only by their user.
    for name in "$T"/state/carrel/snapshots/*.json; do
        name=${name##*/}
        [ "$name" = '*.json' ] || ask snapshot rm "${name%.json}" || echo "SUCCEEDED snapshot $name cannot be removed"
    done
    # A stale lock of a reference is recognised by its age.
    find "$T/repo/.git" -name '*.lock' -exec touch -d '1 minute ago' {} +
    ask cleanup >/dev/null || echo "SUCCEEDED cleanup failed"
    # No workspace is held by a killed process. Those of forks share layers.
    names=("$T"/state/carrel/workspaces/*/*)
    ask workspace discard --force "${names[@]##*/}" || echo "SUCCEEDED a workspace cannot be removed"
    ask cleanup >/dev/null || echo "SUCCEEDED second cleanup failed"
    me git -C "$T/repo" fsck --no-dangling || echo "SUCCEEDED damage of the repository"
    nothing_left
}

# ---- a reboot -----------------------------------------------------------------------------------

# bystander PID: another process of the same user, $innocent; with that pid if this machine lets us
# choose.
bystander() {
    local i as=()
    is_root_suite && as=(setpriv --reuid "$(me id -u)" --regid "$(me id -g)" --clear-groups)
    for ((i = 0; i < 200; i++)); do
        { echo $(($1 - 1)) >/proc/sys/kernel/ns_last_pid; } 2>/dev/null || i=200
        "${as[@]}" sleep 1000 >/dev/null 2>&1 &
        innocent=$!
        [ "$innocent" -ne "$1" ] || return 0
        [ "$i" -ge 199 ] || kill -KILL "$innocent" # it may not have become sleep yet
    done
    echo "the number of the keeper is not to be had"
}

# An orphan below this is reaped at once. The init of the machine may take its time, and until then
# the pid is not free.
reaper='import ctypes, os, sys
ctypes.CDLL(None).prctl(36, 1)
if os.fork() == 0:
    os.execv("/bin/sh", ["sh", "-c", "echo READY $(\"$@\")", "sh"] + sys.argv[1:])
try:
    while True:
        os.wait()
except ChildProcessError:
    pass'

# All processes are killed at once, and everything in memory is removed: /run and the groups. The
# state is on disk.
reboot() {
    local keeper init innocent=0 old said
    start reaper alone /usr/bin/python3 -c "$reaper" "$tool" create --name "$$-reboot" \
        --repo "$T/repo" --task T --run R --env "$mark"
    id=$answer old=$answer
    at_home -c 'echo work >kept; git add kept; git commit -qm second; echo unfinished >>kept'
    ask exec --detach "$id" -c 'setsid sleep 1000 & sleep 1000' >/dev/null
    keeper=$(ask inspect "$id" | field pid)
    init=$(cut -d' ' -f1 "/proc/$keeper/task/$keeper/children")
    [ -n "$(find "$T/state/carrel" -path '*/layers/L-*' -prune -print)" ] || echo "OTHER it has no layer"
    kill -KILL "$keeper" "$init"
    all_ended || echo "SUCCEEDED something runs on"
    groups_left | xargs -r rmdir
    rm -r "${run:?}"/*
    bystander "$keeper"

    ask exec --quiet "$old" -- true 2>/dev/null && echo "SUCCEEDED the old one answers"
    [[ $(ask list --all --json) != *"$old"* ]] || echo "SUCCEEDED the old one is listed"
    ask destroy --force "$old" 2>/dev/null && echo "SUCCEEDED the old one is destroyed"
    kept before-cleanup
    settle --name "$$-reboot"
    said=$(at_home -c 'ls /workspace; echo new')
    [ "$said" = new ] || echo "SUCCEEDED the new one has what it should not, or does not work: $said"
    ask destroy --force "$$-reboot" || echo "OTHER the new one cannot be destroyed"
    ask cleanup >/dev/null || echo "SUCCEEDED cleanup failed"
    kept after-cleanup
    if [ "$(tr '\0' ' ' <"/proc/$innocent/cmdline")" = "sleep 1000 " ]; then
        echo "REFUSED kill-of-a-bystander"
        kill -KILL "$innocent"
    else
        echo "SUCCEEDED kill-of-a-bystander $innocent"
    fi
    all_ended || true
    nothing_left
    # The workspace has no holder; its work can be taken, and then it is removed.
    ask workspace commit R >/dev/null || echo "SUCCEEDED the work cannot be taken"
    [ "$(me git -C "$T/repo" show task-T-run-R:kept)" = $'work\nunfinished' ] || echo "SUCCEEDED work is lost"
    ask workspace discard R >/dev/null || echo "SUCCEEDED the workspace cannot be removed"
}
kept() {
    local said
    said=$(ask workspace diff R)
    [[ $said == *+work*+unfinished* ]] || echo "SUCCEEDED work is lost $1: $said"
}

more() {
    echo "# $title, as $who: KILLS_SEED=$seed"
    held "40 kills at random moments of create, exec, fork, snapshot and destroy leave nothing" random_kills
    held "a reboot: the old one is gone, its work is kept, its name is free" reboot
}
clean_up() {
    ask destroy --all --force >/dev/null 2>&1 || true
    ask cleanup >/dev/null 2>&1 || true
}
