# shellcheck shell=bash disable=SC2034,SC2154
# A working directory that is outside: through a descriptor of the caller, through init, through
# "..", through a link in a directory that the program can write to.
prepare() {
    all_attempts=no
    me mkdir "$T/outside" "$T/work"
    echo secret | me tee "$T/outside/sentinel" >/dev/null
    me ln -s / "$T/work/to-root"
    me ln -s "$T/outside" "$T/work/to-outside"
    me ln -s ../outside "$T/work/up"
    me mkdir "$T/work/real"
    me ln -s real "$T/work/to-real"
    before=("$A/02-descriptors" leak)
    places=(/proc/self/fd/{3..12} /proc/self/fd/33 /proc/1/root /proc/1/cwd /proc/1/fd/3
        "/../../../..$T/outside" "../../../..$T/outside" "$T/outside" /workspace/to-root
        /workspace/to-outside /workspace/up /proc/self/root/proc/1/root)
}

bare() {
    me bash -c '
        cd "$1/outside" && exec 9<. && cd / && cd /proc/self/fd/9 && [ -r sentinel ] &&
            echo "SUCCEEDED through-descriptor"
        cd "$1/work/to-outside" && [ -r sentinel ] && echo "SUCCEEDED through-link"
        cd "$1/work/real/../../outside" && [ -r sentinel ] && echo "SUCCEEDED up"' - "$T"
}

control() {
    local place
    for place in /tmp /workspace/real /workspace/to-real /workspace; do
        box --workdir "$T/work" --cwd "$place" -- /bin/sh -c 'echo "WORKS $(pwd -P)"'
    done
}

attack() {
    local place output status
    for place in "${places[@]}"; do
        status=0
        # What a program would find there: the sentinel beside it, or the host's root.
        output=$(box --workdir "$T/work" --cwd "$place" -- /attacks/22-private-files attack \
            sentinel=sentinel "from-root=.$T/outside/sentinel" shadow=./etc/shadow 2>&1) || status=$?
        case $status in
        0 | 1 | 2) printf '%s\n' "${output//sentinel/sentinel-at-$place}" ;;
        125)
            if [[ $output == *"working directory"* ]]; then
                echo "REFUSED $place ${output##*$'\n'}"
            else
                echo "OTHER $place $output"
            fi
            ;;
        *) echo "OTHER $place status $status: $output" ;;
        esac
    done
}
