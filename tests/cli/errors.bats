#!/usr/bin/env bats
# shellcheck disable=SC2030,SC2031,SC2154  # cli.bash sets $status, $out and others
# Each mistake gets one line that says what was expected, and leaves nothing behind.

load cli

# refused STATUS PATTERN ARG...: the error is one line, and the program did not run.
refused() {
    local code=$1 pattern=$2
    shift 2
    carrel run --env "TAG=$tag" "$@"
    is_one_error "$code" "$pattern"
    [ -z "$out" ] || [[ " $* " == *" --json "* ]]
}

# mistakes CASE: after all of them nothing is left.
mistakes() {
    new_tag
    "$@"
    none_left "$tag"
}

bad_sizes() {
    local option value
    for value in "" x 12x 1.5.5M -1 +1 " 1M" "1M " 1Q 0x10 1MM M 99999999999999999999 20T0 1,5M \
        $'1M\n' 0; do
        refused 125 "carrel: --memory: *" --memory "$value" -- echo ran
    done
    for option in --disk --max-output; do
        for value in x 0 5MM; do
            refused 125 "carrel: $option: *" "$option" "$value" -- echo ran
        done
    done
    refused 125 "carrel: --memory: *'12x'*expected*512M*" --memory 12x -- echo ran
}
@test "a size that does not parse whole is refused, with what was expected" { both mistakes bad_sizes; }

bad_times() {
    local value
    for value in "" s 5x 5sec -5 +5 1e3 "5 s" 5s5 ms 99999999999999999999 0 0ms inf; do
        refused 125 "carrel: --timeout: *" --timeout "$value" -- echo ran
    done
    refused 125 "carrel: --timeout: *'5x'*expected*300s*" --timeout 5x -- echo ran
}
@test "a time that does not parse whole is refused, with what was expected" { both mistakes bad_times; }

bad_numbers() {
    local value
    for value in "" x 1x -1 1.5 0 0x10 99999999999999999999; do
        refused 125 "carrel: --pids: *" --pids "$value" -- echo ran
    done
    refused 125 "carrel: --files: *" --files 1x -- echo ran
    refused 125 "carrel: --files: *" --files 0 -- echo ran
    for value in "" x 1x -1 0 1.2.3 1,5 .; do
        refused 125 "carrel: --cpu: *" --cpu "$value" -- echo ran
    done
}
@test "a number that does not parse whole is refused" { both mistakes bad_numbers; }

out_of_bounds() {
    refused 125 "carrel: *memory limit*from*to*" --memory 1K --best-effort memory -- echo ran
    refused 125 "carrel: *disk limit*from*to*" --disk 1K -- echo ran
    refused 125 "carrel: *files limit*from*to*" --files 3 -- echo ran
    refused 125 "carrel: *cpu limit*from*to*" --cpu 0.001 --best-effort cpu -- echo ran
    refused 125 "carrel: *cpu limit*from*to*" --cpu 100000 --best-effort cpu -- echo ran
    refused 125 "carrel: *files limit*" --files 1000000000 -- echo ran
}
@test "a value out of bounds is refused, with the bounds" { both mistakes out_of_bounds; }

unknown_options() {
    refused 125 "carrel: unknown option '--timout' (did you mean '--timeout'?)" --timout 5 -- echo ran
    refused 125 "carrel: unknown option '--memroy' (did you mean '--memory'?)" --memroy=1G -- echo ran
    refused 125 "carrel: unknown option '--xyzzy'*--help*" --xyzzy -- echo ran
    refused 125 "carrel: unknown option '-x'*" -x -- echo ran
    refused 125 "carrel: unknown option '-json'*" -json -- echo ran
    refused 125 "carrel: unknown option*" $'--a\nb' -- echo ran
}
@test "an unknown option is refused, with the nearest one" { both mistakes unknown_options; }

unknown_commands() {
    carrel runn
    is_one_error 125 "carrel: unknown command 'runn' (did you mean 'run'?)"
    carrel frobnicate
    is_one_error 125 "carrel: unknown command 'frobnicate'*carrel help*"
    carrel
    is_one_error 125 "carrel: no command*carrel help*"
}
@test "an unknown command is refused, with the nearest one" { both mistakes unknown_commands; }

missing_words() {
    carrel run
    is_one_error 125 "carrel: no program*carrel run*"
    carrel run --
    is_one_error 125 "carrel: no program*"
    carrel run --json --
    [ "$status" -eq 125 ]
    carrel run --memory
    is_one_error 125 "carrel: option '--memory' needs a value*SIZE*"
    carrel run -c
    is_one_error 125 "carrel: option '-c' needs a value*"
    carrel run --json=yes -- echo ran
    is_one_error 125 "carrel: option '--json' takes no value"
    [ -z "$out" ]
    carrel run -- ""
    [ "$status" -eq 125 ] || [ "$status" -eq 127 ]
    [[ "$err" == carrel:\ * ]]
}
@test "a word that is missing is named" { both mistakes missing_words; }

conflicts() {
    refused 125 "carrel: *--json*--tty*" --json --tty -- echo ran
    refused 125 "carrel: *--max-output*--tty*" --max-output 1K --tty -- echo ran
    refused 125 "carrel: -c: given twice" -c 'echo ran' -c 'echo ran'
    refused 125 "carrel: *workspace*" --workdir .:ro --mount .:/workspace -- echo ran
    refused 125 "carrel: *workspace*" --workdir .:ro --workdir /usr -- echo ran
}
@test "options that cannot be combined are refused" { both mistakes conflicts; }

bad_choices() {
    refused 125 "carrel: --network: 'bridge'*none or host*" --network bridge -- echo ran
    refused 125 "carrel: *'docker'*local process*" --runtime docker -- echo ran
    refused 125 "carrel: *'locl'*local*" --runtime locl -- echo ran
    refused 125 "carrel: --hostname: *" --hostname "a b" -- echo ran
    refused 125 "carrel: --hostname: *" --hostname "" -- echo ran
    refused 125 "carrel: --hostname: *" --hostname "$(printf 'a%.0s' {1..64})" -- echo ran
    refused 125 "carrel: --hostname: *" --hostname $'a\nb' -- echo ran
}
@test "a choice that is none is refused, with those there are" { both mistakes bad_choices; }

bad_users() {
    local value
    for value in "" joe 1: :1 1:2:3 -1 4294967295 4294967296 1.5 "1 " 99999999999; do
        refused 125 "carrel: --user: *expected UID*" --user "$value" -- echo ran
    done
    [ "$who" = user ] || refused 125 "carrel: *user 70000:70000*0 to 65535*" --user 70000 -- echo ran
}
@test "a user that is none is refused" { both mistakes bad_users; }

bad_variables() {
    local value
    for value in "" x =x 1A=x "A B=x" "A-B=x" $'A\nB=x'; do
        refused 125 "carrel: --env: *NAME=VALUE with a NAME of letters, digits and _" --env "$value" -- echo ran
    done
    printf 'A=1\n# fine\n\nnot a pair\n' >"$T/env"
    refused 125 "carrel: --env-file: env:4: 'not a pair' is not NAME=VALUE with a NAME of letters, digits and _" --env-file env -- echo ran
    printf 'A=1\n=x\n' >"$T/env"
    refused 125 "carrel: --env-file: env:2: *" --env-file env -- echo ran
    printf 'A=1\nB=a\0b\n' >"$T/env"
    refused 125 "carrel: --env-file: env:2: *NUL*" --env-file env -- echo ran
    refused 125 "carrel: --env-file: 'nowhere': No such file or directory" --env-file nowhere -- echo ran
    refused 125 "carrel: --env-file: *irectory*" --env-file / -- echo ran
    me mkfifo env-fifo
    refused 125 "carrel: --env-file: 'env-fifo': is a FIFO; expected a regular file" --env-file env-fifo -- echo ran
    me ln -s /etc/passwd env-link
    refused 125 "carrel: --env-file: 'env-link': is a link; carrel does not follow links there*" --env-file env-link -- echo ran
    me mkdir d
    me sh -c 'echo A=1 >d/env; ln -s d way'
    refused 125 "carrel: --env-file: '$T/way/env': passes the link '$T/way'; carrel does not follow links there*" --env-file "$T/way/env" -- echo ran
    head -c 3000000 /dev/zero | tr '\0' '#' >"$T/env"
    refused 125 "carrel: --env-file: 'env' is larger than*" --env-file env -- echo ran
}
@test "variables that are none are refused, with file and line" { both mistakes bad_variables; }

bad_mounts() {
    me mkdir d e
    refused 125 "carrel: --mount: '*nowhere': No such file or directory" \
        --mount "$T/nowhere:/x" -- echo ran
    refused 125 "carrel: *nowhere*No such file or directory" --workdir "$T/nowhere" -- echo ran
    local value
    for value in "" x : "$T/d" "$T/d:" ":/x" "$T/d:x" "$T/d:./x" "$T/d:/x:rx" "$T/d:/x:ro:rw" "$T/d:/x:"; do
        refused 125 "carrel: --mount: *SRC:DST*" --mount "$value" -- echo ran
    done
    refused 125 "carrel: *'/x'*" --mount "$T/d:/x" --mount "$T/e:/x" -- echo ran
    for value in /proc /proc/x /dev /dev/shm /sys /sys/fs /dev/null; do
        refused 125 "carrel: *'$value' is reserved*" --mount "$T/d:$value" -- echo ran
    done
    for value in / /../x /a/../b /a//b /a/./b /a/; do
        refused 125 "carrel: *mount target*" --mount "$T/d:$value" -- echo ran
    done
    me mkfifo fifo
    refused 125 "carrel: *fifo' is neither a directory nor a file" --mount "$T/fifo:/x" -- echo ran
    refused 125 "carrel: *null' is neither a directory nor a file" --mount "/dev/null:/x" -- echo ran
    : >"$T/file"
    refused 125 "carrel: *irectory*" --workdir "$T/file" -- echo ran
}
@test "a mount that cannot be is refused: source, target, twice, reserved, relative" { both mistakes bad_mounts; }

unreadable_source() {
    carrel run --mount /root:/x -- ls -A /x
    [ "$status" -ne 0 ]
    [ -z "$out" ]
    [[ "$err" == *"Permission denied"* ]]
    carrel run --workdir /root -- ls -A
    [ "$status" -ne 0 ]
    [ -z "$out" ]
    [[ "$err" == *"Permission denied"* ]]
}
@test "rootless, a source that the caller cannot enter shows nothing" {
    only user mistakes unreadable_source
}

bad_roots() {
    me mkdir empty
    : >"$T/file"
    refused 125 "carrel: --root: '*nowhere'*No such file or directory" --root "$T/nowhere" -- echo ran
    refused 125 "carrel: --root: '*file': is a file; expected a directory" --root "$T/file" -- echo ran
    refused 125 "carrel: *root '*empty' is empty*" --root "$T/empty" -- echo ran
    refused 125 "carrel: --root: *" --root "" -- echo ran
}
@test "a root that is none is refused" { both mistakes bad_roots; }

bad_directories() {
    refused 125 "carrel: *working directory /nowhere: No such file or directory" --cwd /nowhere -- echo ran
    refused 125 "carrel: *working directory /etc/passwd: Not a directory" --cwd /etc/passwd -- echo ran
    refused 125 "carrel: *working directory /workspace/x: No such file or directory" --cwd x -- echo ran
    refused 125 "carrel: --cwd: *" --cwd "" -- echo ran
    refused 125 "carrel: *working directory*" --cwd /root -- echo ran
}
@test "a working directory that is none is refused" { both mistakes bad_directories; }

not_found() {
    refused 127 "carrel: *'frobnicate'*not found in the sandbox" frobnicate
    refused 127 "carrel: *'/nowhere/x'*not found in the sandbox" /nowhere/x
    refused 127 "carrel: *'./x'*not found in the sandbox" ./x
    refused 127 "carrel: *" -- $'new\nline'
}
@test "a program that is nowhere is 127" { both mistakes not_found; }

not_executable() {
    me mkdir w
    printf '#!/bin/sh\necho ran\n' >"$T/w/plain"
    printf '#!/no/such/interpreter\n' >"$T/w/orphan"
    printf 'echo ran\n' >"$T/w/bare"
    printf 'garbage\0\1\2' >"$T/w/garbage"
    chmod 644 "$T/w/plain"
    chmod 755 "$T/w/orphan" "$T/w/bare" "$T/w/garbage"
    refused 126 "carrel: *'./plain'*cannot be executed*" --workdir "$T/w" -- ./plain
    refused 126 "carrel: *'./orphan'*interpreter*" --workdir "$T/w" -- ./orphan
    refused 126 "carrel: *'./bare'*" --workdir "$T/w" -- ./bare
    refused 126 "carrel: *'./garbage'*" --workdir "$T/w" -- ./garbage
    refused 126 "carrel: *'/usr'*directory*" -- /usr
    refused 126 "carrel: *'/etc/passwd'*" -- /etc/passwd
    refused 126 "carrel: *directory*" --workdir "$T/w" -- ./
}
@test "a program that cannot be executed is 126: no permission, no interpreter, a directory" {
    both mistakes not_executable
}

hint_runs() {
    local bin=$T/tools
    me mkdir tools
    printf '#!/bin/sh\necho "it is $0"\n' >"$bin/mytool"
    chmod 755 "$bin/mytool"

    refused 127 "carrel: *'$bin/mytool' is not in the sandbox*expose it with --mount $bin:$bin" "$bin/mytool"
    # What the message says is what helps, word for word.
    local words
    read -r -a words <<<"${err##*expose it with }"
    carrel run "${words[@]}" -- "$bin/mytool"
    [ "$status" -eq 0 ]
    [ "$out" = "it is $bin/mytool" ]

    # Found along the caller's PATH: the hint must lead to a command that runs.
    status=0
    me env PATH="$bin:$PATH" "$CARREL" run --quiet -- mytool >"$T/.out" 2>"$T/.err" || status=$?
    _collect run -- mytool
    is_one_error 127 "carrel: *mytool*$bin*expose it with --mount *"
    read -r -a words <<<"${err##*expose it with }"
    status=0
    # shellcheck disable=SC2294  # the message is a piece of a command line
    me env PATH="$bin:$PATH" "$CARREL" run --quiet "${words[@]}" -- mytool \
        >"$T/.out" 2>"$T/.err" || status=$?
    _collect run "${words[@]}" -- mytool
    [ "$status" -eq 0 ]
    [ "$out" = "it is $bin/mytool" ]
}
@test "a program that the sandbox does not show gets a hint, and the hinted command works" {
    both mistakes hint_runs
}

hint_relative() {
    printf '#!/bin/sh\necho "it is $0"\n' >"$T/tool.sh"
    chmod 755 "$T/tool.sh"
    refused 127 "carrel: *'./tool.sh' is not in the sandbox*--workdir .*" ./tool.sh
    carrel run --workdir .:ro -- ./tool.sh
    [ "$status" -eq 0 ]
    [ "$out" = "it is ./tool.sh" ]
}
@test "a program of the present directory is hinted at with --workdir ." { both mistakes hint_relative; }

hint_home() {
    local home
    home=$(mktemp -d /home/carrel-cli.XXXXXX)
    _cli_dirs+=("$home")
    printf '#!/bin/sh\necho in a home\n' >"$home/tool"
    chmod 755 "$home" "$home/tool"
    refused 127 "carrel: *'$home/tool' is not in the sandbox*--mount $home:$home*" "$home/tool"
    carrel run --mount "$home:$home" -- "$home/tool"
    [ "$out" = "in a home" ]
}
@test "a program under a home directory of the host gets the hint, too" {
    [ "$(id -u)" -eq 0 ] || skip "makes a directory in /home"
    both mistakes hint_home
}

requirements() {
    refused 125 "carrel: *unknown protection 'firewall'; expected one of: userns*seccomp*" \
        --require firewall -- echo ran
    refused 125 "carrel: *unknown protection ''*" --require "" -- echo ran
    refused 125 "carrel: *unknown protection ''*" --require "seccomp," -- echo ran
    refused 125 "carrel: *required protections are missing: netns" --network host --require netns -- echo ran
    refused 125 "carrel: *required protections are missing: *seccomp*" \
        --runtime process --require seccomp -- echo ran
    refused 125 "carrel: *unknown limit 'time'; expected one of: memory pids cpu*" \
        --best-effort time -- echo ran
}
@test "--require refuses what is missing or unknown, and names it" { both mistakes requirements; }

demanded_limits() {
    local option
    for option in "--memory 64M" "--pids 20" "--cpu 0.5"; do
        local name=${option%% *}
        # shellcheck disable=SC2086  # two words
        refused 125 "carrel: *${name#--} limit cannot be enforced here: *--best-effort ${name#--}" \
            $option -- echo ran
        # shellcheck disable=SC2086
        refused 125 "carrel: *${name#--} limit*" $option --best-effort disk,files -- echo ran
        # shellcheck disable=SC2086
        carrel run $option --best-effort "${name#--}" -- echo ran
        [ "$status" -eq 0 ]
        [ "$out" = ran ]
    done
    refused 125 "carrel: *required protections are missing: *memory*" --require memory -- echo ran
    carrel run --json --memory 64M --pids 20 --cpu 1 --best-effort memory,pids --best-effort cpu -- echo ran
    holds 'r["held_by"]["memory"] == "rlimit" and r["held_by"]["pids"] == "rlimit"'
    holds 'r["held_by"]["cpu"] == "nothing" and r["limits"]["cpu"] is None'
}
@test "without a cgroup, a limit that was asked for is refused, or accepted as best effort" {
    both mistakes without_cgroup demanded_limits
}

long_words() {
    # Longer than any message: still one line, still the right status.
    local long
    long=$(printf 'y%.0s' {1..5000})
    carrel run -- "/tmp/$long"
    is_one_error "$status" "carrel: *"
    [ "$status" -eq 126 ] || [ "$status" -eq 127 ]
    [[ "$err" != *"Exec format"* ]]
    refused 125 "carrel: *" --mount "/tmp/$long:/x" -- echo ran
    refused 125 "carrel: *" --env "$long" -- echo ran
    refused 125 "carrel: *" --"$long" -- echo ran
    refused 125 "carrel: *" --cwd "/$long" -- echo ran
    refused 125 "carrel: *" --root "/$long" -- echo ran
    refused 125 "carrel: *" --require "$long" -- echo ran
    refused 125 "carrel: *" --mount "$T:/$long" -- echo ran
}
@test "words of any length give one line" { both mistakes long_words; }

huge_arguments() {
    local big
    big=$(head -c 120000 /dev/zero | tr '\0' z)
    carrel run -- sh -c 'echo ${#1} ${#2} ${#3}' sh "$big" "$big" "$big"
    [ "$out" = "120000 120000 120000" ]
    carrel run --env BIG="$big" -c 'echo ${#BIG}'
    [ "$out" = 120000 ]
}
@test "arguments and variables may be long" { both mistakes huge_arguments; }

escapes() {
    carrel run $'--evil\e[31m' -- true
    [ "$status" -eq 125 ]
    [[ "$err" != *$'\e'* ]]
    carrel run -- $'/no\e]0;title\a'
    [ "$status" -eq 127 ]
    [[ "$err" != *$'\e'* ]]
}
@test "a message holds nothing that a terminal obeys" { both mistakes escapes; }

json_on_failure() {
    local words
    for words in "--memory x -- true" "--xyzzy -- true" "--mount /nowhere:/x -- true" \
        "-- frobnicate" "-- /etc/passwd" "--cwd /nowhere -- true" "--require firewall -- true" \
        "--runtime docker -- true" "--root /nowhere -- true"; do
        # shellcheck disable=SC2086
        carrel run --json $words
        [ "$status" -ge 125 ]
        [ "$(wc -l <"$T/.out")" -eq 1 ]
        holds 'r["ok"] is False and r["exit_code"] is None and len(r["message"]) > 5'
        holds 'r["reason"] in ("infrastructure", "denied")'
        is_one_error "$status" "carrel: *"
    done
}
@test "--json prints its one object also when carrel fails" { both mistakes json_on_failure; }

bad_output_file() {
    refused 125 "carrel: *nowhere/r.json*No such file or directory" --output nowhere/r.json -- true
    refused 125 "carrel: --output: *" --output "" -- true
    me mkdir d
    refused 125 "carrel: *'d'*" --output d -- true
    [ -d "$T/d" ]
    [ -z "$(ls -A "$T/d")" ]
    [ "$(find "$T" -mindepth 1 -maxdepth 1 ! -name .out ! -name .err ! -name state \
        -printf '%f\n')" = d ]
}
@test "a result file that cannot be written is an error" { both mistakes bad_output_file; }

nested() {
    # No sandbox in a sandbox: new namespaces are refused there, and carrel says so.
    refused 125 "carrel: *namespace*" --mount "$CARREL:/carrel" -- /carrel run -- true
}
@test "carrel in carrel refuses with one line" { both mistakes nested; }
