#!/usr/bin/env bats
# shellcheck disable=SC2030,SC2031,SC2154  # cli.bash sets $status, $out and others
# Runs under a policy: which authority decides, and bounds that no run may exceed.

load cli
load repo

policy() { # policy FILE <<<TEXT: writes it
    me sh -c 'mkdir -p "$(dirname "$1")" && cat >"$1"' sh "$1"
}

with_env() { # with_env NAME=VALUE... -- ARG...: carrel with these variables
    local vars=()
    while [ "$1" != -- ]; do
        vars+=("$1")
        shift
    done
    shift
    status=0
    me env "${vars[@]}" timeout -k 5 120 "$CARREL" "$@" >"$T/.out" 2>"$T/.err" </dev/null || status=$?
    _collect "$@"
}

# ---- which authority decides --------------------------------------------------------------------

flags_over_environment_over_file() {
    policy p.yaml <<<'sandbox: {limits: {timeout: 7s}}'
    carrel run --json -- true
    [ "$(field 'o["limits"]["timeout_ms"]')" = 300000 ]
    carrel run --json --policy p.yaml -- true
    [ "$(field 'o["limits"]["timeout_ms"]')" = 7000 ]
    with_env SANDBOX_TIMEOUT_SEC=9 -- run --json --policy p.yaml -- true
    [ "$(field 'o["limits"]["timeout_ms"]')" = 9000 ]
    with_env SANDBOX_TIMEOUT_SEC=9 -- run --json --policy p.yaml --timeout 11s -- true
    [ "$(field 'o["limits"]["timeout_ms"]')" = 11000 ]
}
@test "flags over environment over file over what is built in" { both flags_over_environment_over_file; }

the_environment_counts() {
    with_env SANDBOX_TYPE=process -- run --json -- true
    [ "$(field 'o["runtime"]')" = process ]
    with_env SANDBOX_MAX_OUTPUT_KB=1 -- run --json -- head -c 5000 /dev/zero
    [ "$(field 'o["limits"]["output_bytes"]')" = 1024 ]
    [ "$(field 'o["truncated"]')" = true ]
    with_env SANDBOX_TIMEOUT_SEC=soon -- run -- true
    [ "$status" -eq 125 ]
    [[ "$err" == *SANDBOX_TIMEOUT_SEC*soon* ]]
    with_env SANDBOX_TYPE=dokcer -- run -- true
    [ "$status" -eq 125 ]
    [[ "$err" == *"did you mean 'docker'"* || "$err" == *docker* ]]
}
@test "orchestrators' variables count, and a wrong value is an error" { both the_environment_counts; }

limits_of_the_environment() {
    with_env DOCKER_MEMORY_LIMIT=64m DOCKER_CPU_LIMIT=0.5 -- run --json -- true
    [ "$(field 'o["limits"]["memory_bytes"]')" = 67108864 ]
    [ "$(field 'o["limits"]["cpu"]')" = 0.5 ]
}
@test "DOCKER_MEMORY_LIMIT and DOCKER_CPU_LIMIT" { both with_cgroup limits_of_the_environment; }

the_file_beside_the_code() {
    policy carrel.yaml <<<'sandbox: {limits: {timeout: 13s}}'
    me mkdir -p deep/er
    status=0
    out=$(me env -C "$T/deep/er" "$CARREL" run --json -- true 2>/dev/null)
    [ "$(field 'o["limits"]["timeout_ms"]')" = 13000 ]
    policy config/carrel/policy.yaml <<<'sandbox: {limits: {pids: 99}}'
    me rm carrel.yaml
    carrel run --json --best-effort pids -- true
    [ "$(field 'o["limits"]["pids"]')" = 99 ]
    carrel run --json --policy none -- true
    [ "$(field 'o["limits"]["pids"]')" = 256 ]
}
@test "the policy is found upward, then among the user's settings" { both the_file_beside_the_code; }

profiles() {
    policy p.yaml <<'END'
sandbox: {limits: {timeout: 7s}}
profiles:
  quick: {sandbox: {limits: {timeout: 2s}}}
  quicker: {extends: quick, sandbox: {hostname: fast}}
END
    carrel run --json --policy p.yaml --profile quicker -- hostname
    [ "$(field 'o["limits"]["timeout_ms"]')" = 2000 ]
    [ "$(field 'o["stdout"]')" = fast ]
    carrel run --policy p.yaml --profile quik -- true
    [ "$status" -eq 125 ]
    [[ "$err" == *"'quick'"* ]]
}
@test "profiles" { both profiles; }

# ---- bounds -------------------------------------------------------------------------------------

# The system's policy, for a case: a mount namespace with an /etc/carrel of its own.
with_system_policy() { # with_system_policy TEXT ARG...
    local text=$1
    shift
    printf '%s\n' "$text" | policy system.yaml
    cat >"$T/system.sh" <<'END'
set -eu
mkdir -p /etc/carrel 2>/dev/null || {
    mount -t tmpfs none /opt && mkdir /opt/etc && cp -a /etc/. /opt/etc 2>/dev/null || true
    mount --bind /opt/etc /etc && mkdir -p /etc/carrel
}
mount -t tmpfs -o mode=755 none /etc/carrel
cp "$1" /etc/carrel/policy.yaml
chmod 644 /etc/carrel/policy.yaml
dir=$2 user=$3
shift 3
cd "$dir"
if [ "$user" = root ]; then exec "$@"; fi
exec setpriv --reuid "$user" --regid "$(id -g "$user")" --clear-groups "$@"
END
    local user=root
    [ "$who" = root ] || user=$(stat -c %U "$T")
    status=0
    env -u SUDO_USER HOME="$T" XDG_STATE_HOME="$T/state" XDG_CONFIG_HOME="$T/config" unshare -m \
        bash "$T/system.sh" "$T/system.yaml" "$T" "$user" timeout -k 5 120 "$CARREL" "$@" \
        >"$T/.out" 2>"$T/.err" </dev/null 3>&- || status=$?
    _collect "$@"
}

maxima_of_the_system() {
    [ "$(id -u)" -eq 0 ] || skip "needs root to give the system a policy"
    local text='sandbox:
  limits:
    timeout: {default: 5s, maximum: 10s}
  network: {default: none, maximum: none}'
    with_system_policy "$text" run --json -- true
    [ "$(field 'o["limits"]["timeout_ms"]')" = 5000 ]
    with_system_policy "$text" run --json --timeout 10s -- true
    [ "$(field 'o["limits"]["timeout_ms"]')" = 10000 ]
    with_system_policy "$text" run --timeout 11s -- echo ran
    [ "$status" -eq 125 ]
    [ -z "$out" ]
    [[ "$err" == *"--timeout 11s"*"/etc/carrel/policy.yaml:3:"* ]]
    with_system_policy "$text" run --network host -- true
    [ "$status" -eq 125 ]
    [[ "$err" == *"--network host"*"/etc/carrel/policy.yaml:4:"* ]]
    # The user's own file, --policy and none of them pass it either; both places are named.
    policy config/carrel/policy.yaml <<<'sandbox: {limits: {timeout: 1m}}'
    with_system_policy "$text" run -- true
    [ "$status" -eq 125 ]
    [[ "$err" == *"config/carrel/policy.yaml:1:"*"/etc/carrel/policy.yaml:3:"* ]]
    me rm config/carrel/policy.yaml
    with_system_policy "$text" run --policy none --timeout 11s -- true
    [ "$status" -eq 125 ]
    [[ "$err" == *"/etc/carrel/policy.yaml:3:"* ]]
}
@test "nothing passes a maximum of the system's policy" { both maxima_of_the_system; }

a_system_policy_that_others_may_write() {
    [ "$(id -u)" -eq 0 ] || skip "needs root to give the system a policy"
    me mkdir -p x
    cat >"$T/planted.sh" <<'END'
set -eu
mkdir -p /etc/carrel
mount -t tmpfs -o mode=755 none /etc/carrel
case $1 in
writable) echo 'version: 1' >/etc/carrel/policy.yaml; chmod 666 /etc/carrel/policy.yaml ;;
link) echo >/etc/carrel/x; ln -s x /etc/carrel/policy.yaml ;;
fifo) mkfifo /etc/carrel/policy.yaml ;;
other) echo >/etc/carrel/policy.yaml; chown 1234 /etc/carrel/policy.yaml ;;
esac
exec timeout -k 5 60 "$2" run -- echo ran
END
    for how in writable link fifo other; do
        status=0
        unshare -m bash "$T/planted.sh" "$how" "$CARREL" >"$T/.out" 2>"$T/.err" </dev/null 3>&- ||
            status=$?
        _collect "$how"
        [ "$status" -eq 125 ]
        [ -z "$out" ]
        [[ "$err" == *"/etc/carrel/policy.yaml"* ]]
    done
}
@test "a system policy that is a link, or that others may write, is refused" {
    only root a_system_policy_that_others_may_write
}

the_repository_only_tightens() {
    local widening
    for widening in 'sandbox: {network: true}' 'sandbox: {type: process}' \
        'sandbox: {enabled: false, type: process}' 'sandbox: {minimum_isolation: none}' \
        'sandbox: {fallback: [process], minimum_isolation: none}' \
        'sandbox: {environment: {pass: [AWS_SECRET_ACCESS_KEY]}}' \
        'workspace: {on_success: apply}' 'journal: {enabled: false}' \
        'python: {imports: {mode: "off"}}' 'artifacts: {store_code: never}' \
        'artifacts: {max_bytes: 1}' 'journal: {key: /tmp/mine}' \
        'sandbox: {environment: {set: {LD_PRELOAD: /workspace/x.so}}}' \
        'sandbox: {environment: {set: {HTTPS_PROXY: "http://evil"}}}' \
        'sandbox: {limits: {memory: 1000G}}' 'sandbox: {limits: {cpu: 64}}' \
        'sandbox: {limits: {timeout: 300d}}' 'workspace: {setup: "touch /tmp/x"}' \
        'workspace: {on_failure: discard}' 'workspace: {on_success: discard}' \
        'workspace: {tree: copy}' 'workspace: {enabled: true}'; do
        policy carrel.yaml <<<"$widening"
        with_env AWS_SECRET_ACCESS_KEY=secret -- run -- sh -c 'echo ran; env'
        [ "$status" -eq 125 ]
        [ -z "$out" ]
        [[ "$err" == "carrel: "*carrel.yaml:1:* ]]
        [ "$(wc -l <<<"$err")" -eq 1 ]
    done
    policy config/carrel/policy.yaml <<<'sandbox: {limits: {timeout: {default: 5s, maximum: 9s}}}'
    policy carrel.yaml <<<'sandbox: {limits: {timeout: 20s}}'
    carrel run -- true
    [ "$status" -eq 125 ]
    [[ "$err" == *carrel.yaml:1:*config/carrel/policy.yaml:1:* ]]
    policy carrel.yaml <<<'sandbox: {limits: {timeout: 3s}}'
    carrel run --json -- true
    [ "$(field 'o["limits"]["timeout_ms"]')" = 3000 ]
    # A found file is never in force in silence.
    local said="the policy '$T/carrel.yaml' was found beside the code and is in force; it only tightens, and --policy none ignores it"
    grep -a '^carrel: note: ' "$T/.err" | grep -qF "$said"
    carrel create
    grep -a '^carrel: note: ' "$T/.err" | grep -qF "$said"
    carrel destroy "$out"
    carrel run --policy none -- true
    ! grep -aq 'found beside the code' "$T/.err"
    # A caller that names the file trusts it.
    policy carrel.yaml <<<'sandbox: {type: process}'
    carrel run --json --policy carrel.yaml -- true
    [ "$(field 'o["runtime"]')" = process ]
}
@test "a policy beside the code can only tighten" { both the_repository_only_tightens; }

# A run plants a policy that stops every run; what to do with its work is still the caller's.
planted_policy_holds_nothing() {
    new_repo
    in_repo run --quiet --workspace --task T-1 --run R-1 -c 'echo "sandbox: {network: host}" >carrel.yaml'
    in_repo workspace apply R-1
    [ "$status" -eq 0 ]
    in_repo run -- true
    is_one_error 125 "*/repo/carrel.yaml:1:*"
    in_repo workspace commit R-1
    [ "$status" -eq 0 ]
    in_repo workspace discard --force R-1
    [ "$status" -eq 0 ]
    carrel journal show --json T-1/R-1
    [ "$(field '[r["event"] for r in o["journal"]][-2]')" = workspace_discarded ]
}
@test "a planted policy does not hold the work of its run" { both planted_policy_holds_nothing; }

bad_files_are_refused() {
    local bad
    for bad in 'sandbox: {memroy: 1G}' 'sandbox: {limits: {memory: lots}}' $'a: 1\na: 2' \
        'a: &x [*x, *x]' "$(printf '[%.0s' $(seq 1000))" $'sandbox: {hostname: "\xff"}' 'x: !!python/none 1'; do
        printf '%s\n' "$bad" | policy carrel.yaml
        carrel run -- echo ran
        [ "$status" -eq 125 ]
        [ -z "$out" ]
        [[ "$err" == "carrel: "*carrel.yaml:[0-9]*:* ]]
        [ "$(wc -l <<<"$err")" -eq 1 ]
    done
    policy carrel.yaml <<<'sandbox: {limits: {memroy: 1G}}'
    carrel run -- true
    [[ "$err" == *"'memory'"* ]]
    me ln -sf /dev/null carrel.yaml
    carrel run -- true
    [ "$status" -eq 125 ]
    me sh -c 'rm carrel.yaml; mkfifo carrel.yaml'
    carrel run -- true
    [ "$status" -eq 125 ]
}
@test "a policy that is not right stops the run, with its place" { both bad_files_are_refused; }

# ---- what it decides ----------------------------------------------------------------------------

disabled_means_refused() {
    policy p.yaml <<<'sandbox: {enabled: false}'
    carrel run --policy p.yaml -- echo ran
    [ "$status" -eq 125 ]
    [ -z "$out" ]
    [[ "$err" == *"sandbox.enabled is false"*p.yaml:1:* ]]
    policy p.yaml <<<'sandbox: {enabled: false, type: process}'
    carrel run --json --policy p.yaml -- echo ran
    [ "$(field 'o["isolation"]')" = none ]
    policy p.yaml <<<'sandbox: {enabled: true, type: local, network: false}'
    carrel run --json --policy p.yaml -- echo ran
    [ "$(field 'o["isolation"]')" = kernel ]
}
@test "sandbox.enabled: false refuses, unless type: process is written" { both disabled_means_refused; }

mounts_and_variables() {
    me mkdir -p shown hidden
    me sh -c 'echo yes >shown/file; ln -s ../hidden shown/link'
    policy p.yaml <<END
sandbox:
  mounts: {allow: ["$T/shown:ro"]}
  environment: {allow: [A, LC_*], pass: [LC_*], set: {A: from policy}}
END
    with_env LC_X=passed SECRET=no -- run --policy p.yaml --mount shown:/m -- \
        sh -c 'cat /m/file; echo "$A $LC_X ${SECRET-none}"'
    [ "$out" = $'yes\nfrom policy passed none' ]
    carrel run --policy p.yaml --env A=flag -- sh -c 'echo $A'
    [ "$out" = flag ]
    local flags
    for flags in '--mount shown:/m:rw' '--mount hidden:/m' '--mount shown/link:/m' '--workdir .' \
        '--root hidden' '--env B=1'; do
        # shellcheck disable=SC2086  # words
        carrel run --policy p.yaml $flags -- echo ran
        [ "$status" -eq 125 ]
        [ -z "$out" ]
        [[ "$err" == *p.yaml:[0-9]* || $flags == *link* && "$err" == *"is a link"* ]]
    done
}
@test "mounts and variables are those that the policy allows" { both mounts_and_variables; }

# A workspace shows all of its repository or folder, wherever writes go.
workspaces_are_shown_paths() {
    new_repo
    g worktree add -q ../linked
    me sh -c 'mkdir folder shown && echo secret >folder/f && ln -s ../folder shown/link'
    policy p.yaml <<<"sandbox: {mounts: {allow: [\"$T/shown\", \"$T/linked\"]}}"
    local flags
    for flags in '--workdir folder --cow' '--repo repo' '--repo repo/src' '--repo linked'; do
        # shellcheck disable=SC2086  # words
        carrel run --policy p.yaml $flags -- cat f a.txt
        is_one_error 125 '*: sandbox.mounts.allow does not allow * ?p.yaml:1:27?'
        [ -z "$out" ]
    done
    carrel run --policy p.yaml --workdir shown/link --cow -- cat f
    is_one_error 125 "carrel: --workdir: 'shown/link': is a link; *"
    carrel_in repo run --policy ../p.yaml --workspace -- cat a.txt
    is_one_error 125 "*: sandbox.mounts.allow does not allow '$T/repo' (../p.yaml:1:27)"

    in_repo run --quiet --workspace --task T-1 --run R-1 -c 'echo >new'
    [ "$status" -eq 0 ]
    carrel workspace resume --policy p.yaml R-1 -- cat a.txt
    is_one_error 125 "*the workspace of $T/repo: sandbox.mounts.allow does not allow *"
    policy p.yaml <<<"sandbox: {mounts: {allow: [\"$T/repo\", \"$T/folder\", \"$T/linked\"]}}"
    carrel workspace resume --policy p.yaml R-1 -- cat a.txt
    [ "$status" -eq 0 ] && [[ "$out" == *four* ]]
    for flags in '--workdir folder --cow' '--repo linked'; do
        # shellcheck disable=SC2086  # words
        carrel run --quiet --policy p.yaml $flags -c 'cat f || cat a.txt'
        [ "$status" -eq 0 ] && [ -n "$out" ]
    done
}
@test "a workspace of what the policy does not show is refused" { both workspaces_are_shown_paths; }

disk_of_a_workspace() {
    new_repo
    policy p.yaml <<<'sandbox: {limits: {disk: 128M}}'
    carrel run --policy p.yaml --repo repo --on-success discard --json -- true
    holds 'r["ok"] and r["held_by"]["disk"] == "polling" and r["limits"]["disk_bytes"] == 128 << 20'
    policy p.yaml <<<'sandbox: {limits: {disk: 128M}, require: [disk]}'
    carrel run --policy p.yaml --repo repo --on-success discard --json -- true
    if [ "$who" = root ] && [ -w /dev/loop-control ]; then
        holds 'r["ok"] and r["held_by"]["disk"] == "filesystem" and "disk" in r["protections"]'
    else
        is_one_error 125 '*--require disk*'
    fi
    carrel run --policy p.yaml --json -- true # in memory, where the file system enforces it
    holds 'r["ok"] and r["held_by"]["disk"] == "filesystem"'
}
@test "the disk of a workspace: the policy sets the limit, and may require an exact one" { both disk_of_a_workspace; }

speed_of_disks() {
    policy p.yaml <<<'sandbox: {limits: {io_read: {maximum: 1G}}, best_effort: [io_read]}'
    carrel run --policy p.yaml --io-read 2G -- echo ran
    [ "$status" -eq 125 ]
    [ -z "$out" ]
    [[ "$err" == *"--io-read 2G"*p.yaml:1:* ]]
    # The maximum applies where nothing asks for a limit, and so it is a demand.
    carrel run --policy p.yaml --json -- echo ran
    holds 'r["held_by"]["io_read"] == "nothing" or r["limits"]["io_read_bytes"] == 1 << 30'
    policy p.yaml <<<'sandbox: {limits: {io_write: {maximum: 1G}}}'
    carrel run --policy p.yaml --json -- echo ran
    [ "$status" -ne 0 ] || holds 'r["held_by"]["io_write"] == "cgroup"'
    [ "$status" -eq 0 ] || [[ "$out$err" == *"the io_write limit cannot be enforced here"* ]]
}
@test "the speed of disks: a maximum is the limit if nothing else is" { both speed_of_disks; }

what_may_be_weaker() {
    policy p.yaml <<<'sandbox: {best_effort: [memory, pids]}'
    carrel run --policy p.yaml --best-effort cpu -- echo ran
    [ "$status" -eq 125 ]
    [ -z "$out" ]
    [[ "$err" == *"--best-effort cpu"*p.yaml:1:* ]]
    carrel run --policy p.yaml --best-effort memory -- echo ran
    [ "$out" = ran ]
    policy p.yaml <<<'artifacts: {store_code: {default: always, maximum: on_error}}'
    carrel run --policy p.yaml --store-code never -- echo ran
    [ "$status" -eq 125 ]
    [ -z "$out" ]
    [[ "$err" == *"--store-code never"*p.yaml:1:* ]]
    carrel run --policy p.yaml --store-code on_error -- echo ran
    [ "$out" = ran ]
}
@test "a flag weakens no limit and keeps no less than the policy says" { both what_may_be_weaker; }

a_required_journal() {
    policy p.yaml <<<'journal: {required: true}'
    carrel run --policy p.yaml --journal off -- echo ran
    [ "$status" -eq 125 ]
    [ -z "$out" ]
    policy p.yaml <<<'journal: {enabled: false}'
    carrel run --json --policy p.yaml -- true
    [ "$(field 'o["journal"]')" = null ]
    policy p.yaml <<<'journal: {max_bytes: 1K}'
    carrel run --policy p.yaml -- sh -c 'echo ran'
    [ "$status" -eq 125 ]
    [ -z "$out" ]
    carrel runs --json
    [ "$(field 'o["runs"][0]["state"]')" = sealed ]
}
@test "a journal that is required, off, or full" { both a_required_journal; }

falls_back_along_the_list() {
    policy p.yaml <<<'sandbox: {type: docker, fallback: [local]}'
    carrel run --json --policy p.yaml -- true
    [ "$status" -eq 0 ]
    [ "$(field 'o["runtime"]')" = local ]
    [ "$(field 'o["fallback_from"]')" = docker ]
    me grep -q '"event":"fallback_taken","from":"docker","to":"local","why":"[^"]' \
        "$(field 'o["journal"]')"
    carrel python --json --policy p.yaml -c 'result = 6 * 7'
    [ "$(field '[o["fallback_from"], o["runtime"], o["result"]]')" = '["docker", "local", 42]' ]
    policy p.yaml <<<'sandbox: {type: docker}'
    carrel run --policy p.yaml -- echo ran
    [ "$status" -eq 125 ]
    [ -z "$out" ]
    [[ "$err" == *docker* ]]
    policy p.yaml <<<'sandbox: {type: docker, fallback: [process]}' # below the minimum
    carrel run --policy p.yaml -- echo ran
    [ "$status" -eq 125 ]
    [ -z "$out" ]
    policy p.yaml <<<'sandbox: {type: docker, fallback: [process], minimum_isolation: none}'
    carrel run --json --policy p.yaml -- echo ran
    [ "$(field 'o["runtime"] + " " + o["isolation"]')" = "process none" ]
    policy p.yaml <<<'sandbox: {minimum_isolation: kernel}'
    carrel run --policy p.yaml --runtime process -- echo ran
    [ "$status" -eq 125 ]
    [[ "$err" == *p.yaml:1:* ]]
}
@test "a fallback only along the list, never below the minimum, and recorded" {
    both falls_back_along_the_list
}

# The kernel gives no namespaces: refused with the reason; weaker only when asked for by name.
without_namespaces() {
    cat >"$T/bare.sh" <<'END'
echo 0 >/proc/sys/user/max_user_namespaces || exit 77
exec "$@"
END
    me unshare -r bash bare.sh true || skip "no user namespace to take namespaces away in"
    policy p.yaml <<<'sandbox: {fallback: [process], minimum_isolation: none}'
    status=0
    me unshare -r bash bare.sh "$CARREL" run -- echo ran >"$T/.out" 2>"$T/.err" || status=$?
    _collect refused
    [ "$status" -eq 125 ]
    [ -z "$out" ]
    [[ "$err" == *namespace* ]]
    status=0
    me unshare -r bash bare.sh "$CARREL" run --json --policy p.yaml -- echo ran >"$T/.out" \
        2>"$T/.err" || status=$?
    _collect 'fell back'
    [ "$status" -eq 0 ]
    [ "$(field 'o["fallback_from"] + " " + o["isolation"]')" = "local none" ]
    me grep -q '"event":"fallback_taken"' "$(field 'o["journal"]')"
}
@test "without namespaces a run is refused, or falls back when the policy says so" {
    both without_namespaces
}

a_workspace_by_policy() {
    policy p.yaml <<<'workspace: {on_success: {default: keep, maximum: commit}, history: {default: cut, maximum: cut}}'
    carrel run --policy p.yaml --repo . --on-success apply -- true
    [ "$status" -eq 125 ]
    [[ "$err" == *"--on-success apply"*p.yaml:1:* ]]
    carrel run --policy p.yaml --repo . --history full -- true
    [ "$status" -eq 125 ]
    [[ "$err" == *"--history full"*p.yaml:1:* ]]
    me git init -q -b main repo
    me sh -c 'cd repo && git config user.name A && git config user.email a@b && echo 1 >a &&
        git add -A && git commit -qm first'
    policy config/carrel/policy.yaml <<<'workspace: {enabled: true, on_failure: discard}'
    status=0
    out=$(me env -C "$T/repo" "$CARREL" run --json -- sh -c 'echo 2 >a; git status --short' 2>/dev/null)
    [ "$(field 'o["stdout"]')" = $' M a' ]
    [ "$(field 'o["workspace"]["state"]')" = kept ]
    out=$(me env -C "$T/repo" "$CARREL" run --json -- sh -c 'echo 2 >a; exit 1' 2>/dev/null) || true
    [ "$(field 'o["workspace"]["state"]')" = discarded ]
    [ "$(me cat repo/a)" = 1 ]
}
@test "a policy can ask for a workspace" { both a_workspace_by_policy; }

prices_and_thresholds() {
    policy p.yaml <<'END'
prices: {currency: EUR, run: 0.5, cpu_second: 0.1}
monitor: {pids: 1}
END
    carrel run --json --policy p.yaml -- true
    [ "$(field 'o["cost"]["currency"]')" = EUR ]
    [ "$(field '0.5 <= o["cost"]["amount"] < 0.6')" = true ]
    ! has_cgroup || { carrel run --json --policy p.yaml --pids 4 -- sh -c ': | :' &&
        [[ "$(field 'o["warning"]')" == "pids at "*"% of its limit" ]] &&
        me grep -q '"event":"threshold_passed"' "$(field 'o["journal"]')"; }
}
@test "prices and thresholds" { both prices_and_thresholds; }
