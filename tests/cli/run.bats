#!/usr/bin/env bats
# shellcheck disable=SC2030,SC2031,SC2154  # cli.bash sets $status, $out and others
# What carrel run does when all is well, option by option.

load cli

# ---- the program and its end --------------------------------------------------------------------

first_command() {
    carrel run -- echo hi
    [ "$status" -eq 0 ]
    [ "$out" = hi ]
    [ -z "$err" ]
}
@test "carrel run -- echo hi says hi, and nothing else" { both first_command; }

without_dashes() {
    carrel run echo --help -c
    [ "$status" -eq 0 ]
    [ "$out" = "--help -c" ]
}
@test "options end at the program's name: what follows is its own" { both without_dashes; }

own_command_line() {
    carrel run --hostname told-to-nobody -- cat /proc/1/cmdline
    [ "$status" -eq 0 ]
    [ "$(tr -d '\0' <<<"$out")" = carrel-init ]
}
@test "pid 1 shows nothing of carrel's command line" { both own_command_line; }

after_dashes() {
    carrel run -- sh -c 'printf "<%s>" "$@"' -- "a b" "" "*" $'new\nline' --json
    [ "$status" -eq 0 ]
    [ "$out" = $'<a b><><*><new\nline><--json>' ]
}
@test "arguments arrive as they are, also empty ones and those with spaces" { both after_dashes; }

second_dashes() {
    carrel run -- echo -- x
    [ "$out" = "-- x" ]
}
@test "only the first -- is carrel's" { both second_dashes; }

exit_codes() {
    local code
    for code in 0 1 2 3 42 77 100 123 124 125 126 127 128 129 130 137 143 200 254 255; do
        carrel run -c "exit $code"
        [ "$status" -eq "$code" ]
        [ -z "$err" ]
    done
}
@test "the exit status is the program's own, from 0 to 255" { both exit_codes; }

each_exit_code() {
    # One shell for all of them: 256 runs, and only the numbers that came back wrong are printed.
    local wrong
    wrong=$(me timeout -k 5 300 sh -c 'i=0; while [ $i -lt 256 ]; do
        "$1" run --quiet -- sh -c "exit $i"; r=$?; [ $r -eq $i ] || echo "$i came back as $r"
        i=$((i + 5)); done' sh "$CARREL" 2>&1)
    echo "$wrong"
    [ -z "$wrong" ]
}
@test "no exit status on the way from 0 to 255 is taken for carrel's own" { both each_exit_code; }

signals() {
    local sig
    for sig in HUP INT QUIT ILL ABRT FPE KILL USR1 SEGV USR2 PIPE ALRM TERM XCPU; do
        carrel run -- sh -c "kill -$sig \$\$"
        [ "$status" -eq $((128 + $(kill -l "$sig"))) ]
    done
}
@test "the exit status of a program that a signal ended is 128+n" { both signals; }

shell_line() {
    carrel run -c 'echo "$0|$1|$2|$#"' "one word" two
    [ "$out" = "/bin/sh|one word|two|2" ] || [ "$out" = "sh|one word|two|2" ]
    carrel run -c 'echo $#' -- -x --json
    [ "$out" = 2 ]
    carrel run --json -c 'exit 3'
    [ "$status" -eq 3 ]
    holds 'r["exit_code"] == 3 and r["reason"] == "exited" and not r["ok"]'
}
@test "-c runs a shell line, and words after it are its arguments" { both shell_line; }

stdin_is_empty() {
    carrel_reads "secret" run -- cat
    [ "$status" -eq 0 ]
    [ -z "$out" ]
}
@test "standard input is empty unless asked for" { both stdin_is_empty; }

stdin_is_passed() {
    carrel_reads $'one\ntwo' run --stdin -- cat
    [ "$out" = $'one\ntwo' ]
    local sum
    sum=$(me sh -c 'head -c 3000000 /dev/zero | tr "\0" x |
        timeout -k 5 60 "$1" run --quiet --stdin -- md5sum' \
        sh "$CARREL")
    [ "$sum" = "$(head -c 3000000 /dev/zero | tr '\0' x | md5sum)" ]
}
@test "--stdin passes standard input on, whole, and its end" { both stdin_is_passed; }

stdin_not_read() {
    me sh -c 'yes | timeout -k 5 60 "$1" run --quiet --stdin -- true' sh "$CARREL"
}
@test "a program that does not read its input does not hold carrel" { both stdin_not_read; }

background_children() {
    new_tag
    carrel run -- sh -c "(sh -c 'sleep 1000; :' $tag & sleep 1000 & :) ; echo done"
    [ "$status" -eq 0 ]
    [ "$out" = "done" ]
    none_left "$tag"
}
@test "when the program ends, what it left running ends too" { both background_children; }

# While nothing happens both processes of carrel's give back memory, init even its first stack.
long_wait() {
    me mkdir gate
    background run --mount "$T/gate:/gate" -c 'until [ -e /gate/open ]; do sleep 2; done; echo late; exit 7'
    until_true has_moved
    me touch gate/open
    ended
    [ "$status:$out:$err" = 7:late: ]
}
has_moved() {
    local init maps
    init=$(cut -d' ' -f1 "/proc/$pid/task/$pid/children")
    maps=$(<"/proc/$init/maps") && [ -n "$maps" ] && [[ $maps != *"[stack]"* ]]
}
@test "a program that waits for long is followed to its end" { both long_wait; }

# ---- where it runs ------------------------------------------------------------------------------

place() {
    carrel run -c 'pwd; echo "$HOME"; echo "$USER"; hostname; whoami; ls -A /workspace "$HOME"'
    [ "$status" -eq 0 ]
    [ "$out" = $'/workspace\n/home/agent\nagent\ncarrel\nagent\n/home/agent:\n\n/workspace:' ]
    carrel run -c 'for d in /tmp /run /var/tmp "$HOME" /workspace /dev/shm; do
        echo x >$d/x || echo "$d: not writable"; done'
    [ -z "$out$err" ]
    carrel run -c 'for d in / /usr /etc /bin /dev /proc /usr/bin /home /var; do
        touch $d/x 2>/dev/null && echo "$d: writable"; done; :'
    [ -z "$out" ]
}
@test "the place is a private, empty /workspace with a home and a few writable directories" {
    both place
}

environment() {
    export CLI_SECRET=hunter2
    carrel run -- env
    [ "$(cut -d= -f1 <<<"$out" | sort | tr '\n' ' ')" = "HOME LANG PATH USER " ]
    carrel run --env A=1 --env B='x y=z' --env PATH=/usr/bin:/bin --env A=2 --env EMPTY= -- env
    grep -qx 'A=2' <<<"$out"
    grep -qx 'B=x y=z' <<<"$out"
    grep -qx 'EMPTY=' <<<"$out"
    grep -qx 'PATH=/usr/bin:/bin' <<<"$out"
    [ "$(grep -c '^PATH=' <<<"$out")" -eq 1 ]
    [ "$(grep -c '^A=' <<<"$out")" -eq 1 ]
    [[ "$out" != *hunter2* ]]
}
@test "the environment is small and known; --env adds to it or replaces" { both environment; }

environment_file() {
    printf '# a comment\n\nA=1\r\nB=two words\nC=#not a comment\nD=' >"$T/env"
    carrel run --env-file env --env A=over -- env
    grep -qx 'A=over' <<<"$out"
    grep -qx 'B=two words' <<<"$out"
    grep -qx 'C=#not a comment' <<<"$out"
    grep -qx 'D=' <<<"$out"
    : >"$T/empty"
    carrel run --env-file empty -- true
    [ "$status" -eq 0 ]
}
@test "--env-file reads NAME=VALUE lines and comments" { both environment_file; }

ids_as_root() {
    carrel run -c 'id -u; id -g; id -G; whoami'
    [ "$out" = $'1000\n1000\n1000\nagent' ]
    carrel run --user root -c 'id -u; id -G; whoami'
    [ "$out" = $'0\n0\nroot' ]
    carrel run --user nobody -c 'id -u; id -G; whoami'
    [ "$out" = $'65534\n65534\nnobody' ]
    carrel run --user 1234 -c 'id -u; id -G; echo x >$HOME/x && echo x >/workspace/x && echo x >/run/x'
    [ "$out" = $'1234\n1234' ]
    [ "$status" -eq 0 ]
    carrel run --user 12:34 -c 'id -u; id -G'
    [ "$out" = $'12\n34' ]
}
@test "as root, --user is the user that was asked for" { only root ids_as_root; }

ids_as_user() {
    carrel run -c 'id -u; whoami'
    [ "$out" = "$(me id -u)"$'\nagent' ]
    carrel run --user root -c 'id -u; whoami'
    [ "$out" = $'0\nroot' ]
    carrel run --user 4321 -c 'id -u; echo x >$HOME/x && echo x >/workspace/x'
    [ "$out" = 4321 ]
    [ "$status" -eq 0 ]
}
@test "rootless, the program has the caller's own id unless --user names another" {
    only user ids_as_user
}

host_name() {
    carrel run --hostname build-1.test -c 'hostname; cat /etc/hostname; getent hosts build-1.test'
    [ "$status" -eq 0 ]
    [ "$(head -n 2 <<<"$out")" = $'build-1.test\nbuild-1.test' ]
    local before
    before=$(hostname)
    carrel run --user root --hostname other -c 'hostname evil 2>/dev/null; hostname'
    [ "$out" = other ]
    [ "$(hostname)" = "$before" ]
}
@test "--hostname sets the name inside, everywhere, and not outside" { both host_name; }

runtime_process() {
    carrel run --runtime process --json -c 'echo hi; pwd'
    [ "$status" -eq 0 ]
    holds 'r["runtime"] == "process" and r["isolation"] == "none"'
    [[ "$(json 'r["stdout"]')" == hi* ]]
    carrel run --runtime local --json -- true
    holds 'r["runtime"] == "local" and r["isolation"] == "kernel"'
    carrel run --json -- true
    holds 'r["runtime"] == "local"'
}
@test "--runtime process runs without isolation, and says so; local is the default" {
    both runtime_process
}

required() {
    carrel run --require userns,mountns,pidns --require netns --require seccomp -- echo ok
    [ "$out" = ok ]
}
@test "--require is silent when the protections are there, and can be given as a list or often" {
    both required
}

equals_form() {
    carrel run --timeout=20s --env=A=b=c --hostname=x1 -c 'echo "$A $(hostname)"'
    [ "$out" = "b=c x1" ]
}
@test "a value may follow an equals sign" { both equals_form; }

timeout_units() {
    local value
    for value in 20 20s 20000ms 1m 1.5m 0.9m 1h; do
        carrel run --timeout "$value" -- true
        [ "$status" -eq 0 ]
    done
    for value in 100ms 0.1 0.1s; do
        carrel run --json --timeout "$value" -- sleep 60
        [ "$status" -eq 124 ]
        holds 'r["reason"] == "timeout" and r["limits"]["timeout_ms"] == 100'
    done
}
@test "--timeout takes ms, s, m and h; after it the exit status is 124" { both timeout_units; }

size_units() {
    local value
    for value in 67108864 65536K 64M 64m 64MiB 64MB; do
        carrel run --json --disk "$value" -- true
        holds 'r["limits"]["disk_bytes"] == 64 << 20'
    done
}
@test "sizes take K, M, G and T" { both size_units; }

result_object() {
    carrel run --json --timeout 30s --disk 64M --files 100 --max-output 4K \
        -c 'echo out; echo err >&2; exit 7'
    [ "$status" -eq 7 ]
    [ -z "$err" ]
    holds 'r["run"].startswith("R-") and r["task"] is None and r["fallback_from"] is None'
    holds 'r["ok"] is False and r["reason"] == "exited"'
    holds 'r["exit_code"] == 7 and r["signal"] is None'
    holds 'r["stdout"] == "out\n" and r["stdout_bytes"] == 4'
    holds 'r["stderr"] == "err\n" and r["stderr_bytes"] == 4'
    holds 'r["truncated"] is False and r["output_file"].endswith("/stdout") and r["stderr_file"].endswith("/stderr")'
    holds '0 < r["duration_ms"] < 20000'
    holds 'r["limits"]["timeout_ms"] == 30000 and r["limits"]["disk_bytes"] == 64 << 20'
    holds 'r["limits"]["files"] == 100 and r["limits"]["output_bytes"] == 4096'
    holds 'r["workspace"]["path"] == "/workspace"'
    holds 'r["held_by"]["disk"] == "filesystem" and r["held_by"]["files"] == "rlimit"'
    holds 'set("userns mountns pidns netns ipcns utsns cgroupns idmap rootfs proc dev no_new_privs capabilities seccomp rlimits disk session environment descriptors".split()) <= set(r["protections"])'
    if has_cgroup; then
        holds 'r["limits"]["memory_bytes"] == 512 << 20 and r["limits"]["pids"] == 256'
        holds 'r["limits"]["cpu"] == 1.0'
        holds 'all(r["held_by"][x] == "cgroup" for x in ("memory", "pids", "cpu"))'
        holds '{"memory", "pids", "cpu"} <= set(r["protections"])'
        holds 'r["usage"]["peak_pids"] >= 1 and r["usage"]["peak_memory_bytes"] > 10000'
        holds 'r["usage"]["oom_kills"] == 0 and r["usage"]["pids_refused"] == 0'
    else
        holds 'r["held_by"]["memory"] == "rlimit" and r["held_by"]["pids"] == "rlimit"'
        holds 'r["held_by"]["cpu"] == "nothing" and r["limits"]["cpu"] is None'
        holds 'not {"memory", "pids", "cpu"} & set(r["protections"])'
    fi
    carrel run --json -- sh -c 'kill -9 $$'
    [ "$status" -eq 137 ]
    holds 'r["reason"] == "signaled" and r["signal"] == 9 and r["exit_code"] is None'
    carrel run --json -- true
    holds 'r["ok"] is True and r["exit_code"] == 0'
}
@test "--json tells what happened, what it took and what held" { both result_object; }

note_about_limits() {
    carrel run -- echo hi
    if has_cgroup; then
        [ ! -s "$T/.err" ]
    else
        [ "$(wc -l <"$T/.err")" -eq 1 ]
        grep -q '^carrel: note: .*memory.*pids.*cpu' "$T/.err"
        carrel run --quiet -- echo hi
        [ ! -s "$T/.err" ]
        carrel run --json -- echo hi
        holds '"memory" in (r.get("note") or "")'
    fi
}
@test "what cannot be held without a cgroup is said in one line, and not with --quiet" {
    both note_about_limits
}

help_text() {
    local option
    carrel run --help
    [ "$status" -eq 0 ]
    [ -z "$err" ]
    for option in --timeout --cpu --memory --disk --pids --files --max-output --env --env-file \
        --cwd --mount --workdir --root --network --user --hostname --stdin --tty --json \
        --output --quiet --runtime --require --best-effort --help; do
        grep -q -- "^  $option" <<<"$out"
    done
    grep -q -- '^  -c ' <<<"$out"
    [ "$(awk 'length > 96' <<<"$out")" = "" ]
}
@test "carrel run --help explains every option" { both help_text; }

commands() {
    carrel version
    [ "$status" -eq 0 ]
    [[ "$out" == "carrel "[0-9]* ]]
    local version=$out
    carrel --version
    [ "$out" = "$version" ]
    carrel help
    [ "$status" -eq 0 ]
    local command
    for command in run health test cleanup help version; do
        grep -q "^  $command " <<<"$out"
    done
    local text=$out
    carrel --help
    [ "$out" = "$text" ]
    carrel help run
    text=$out
    carrel run --help
    [ "$out" = "$text" ]
    [ -z "$err" ]
}
@test "version and help" { both commands; }

poor_callers() {
    # Nothing in the environment, few descriptors, small limits: still a run.
    status=0
    me env -i "$CARREL" run --quiet --journal off -c 'echo "$HOME $USER"' >"$T/.out" 2>"$T/.err" </dev/null || status=$?
    _collect '(env -i)'
    [ "$out" = "/home/agent agent" ]
    status=0
    me sh -c 'ulimit -n 64; exec "$1" run --quiet --json -c "ulimit -n"' sh "$CARREL" \
        >"$T/.out" 2>"$T/.err" </dev/null || status=$?
    _collect '(ulimit -n 64)'
    holds 'r["stdout"] == "64\n" and r["limits"]["files"] == 64'
    status=0
    me sh -c 'ulimit -s 256; ulimit -c unlimited; exec "$1" run --quiet -c "ulimit -c"' sh "$CARREL" \
        >"$T/.out" 2>"$T/.err" </dev/null || status=$?
    _collect '(ulimit -s 256)'
    [ "$status" -eq 0 ]
    [ "$out" = 0 ]
}
@test "callers with an empty environment and small limits are served" { both poor_callers; }

every_option_at_once() {
    me mkdir w m
    echo A=1 >"$T/env"
    local limits=()
    ! has_cgroup || limits=(--cpu 0.5 --memory 128M --pids 32)
    carrel run --timeout 60s "${limits[@]}" --disk 32M --files 128 --max-output 2K --env B=2 \
        --env-file env --cwd /tmp --mount m:/m:ro --workdir w:rw --network none --user agent \
        --hostname all --json --output result.json --quiet --runtime local --require seccomp \
        --best-effort memory,pids,cpu -c 'echo "$A$B $(pwd) $(hostname)"; ls -d /m; touch /workspace/f'
    [ "$status" -eq 0 ]
    holds 'r["stdout"] == "12 /tmp all\n/m\n"'
    [ -e "$T/w/f" ]
    cmp <(head -n 1 "$T/.out") <(cat "$T/result.json"; echo) ||
        cmp "$T/.out" "$T/result.json"
}
@test "all options go together" { both every_option_at_once; }
