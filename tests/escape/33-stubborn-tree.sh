# shellcheck shell=bash disable=SC2034,SC2154
# Trees that are hard to remove: no permissions, very deep, immutable where possible.

prepare() {
    me mkdir "$T/bare" "$T/tmp" "$T/state"
    before=(env "TMPDIR=$T/tmp" "XDG_STATE_HOME=$T/state" "XDG_RUNTIME_DIR=$T/tmp")
    all_attempts=no
}

# `rm` by the owner, who may not enter; and by name, which is too long. Root may enter everything,
# so in its round only the name is shown.
bare() {
    me sh -c 'cd "$1" && "$2" plant 2500' - "$T/bare" "$A/33-stubborn-tree"
    if [ "$who" != root ]; then
        me rm -rf "$T/bare/closed" 2>/dev/null || echo "SUCCEEDED closed-tree"
    fi
    me rmdir "$T/bare/$(printf 'd/%.0s' {1..2500})" 2>/dev/null || echo "SUCCEEDED deep-tree"
    me sh -c 'cd "$1" && "$2" freeze' - "$T/bare" "$A/33-stubborn-tree"
    me rm -rf "$T/bare/frozen" 2>/dev/null || echo "SUCCEEDED immutable-tree"
}

# carrel keeps the result of a run on purpose; everything else is a leftover.
leftovers() {
    find "$T/tmp" "$T/state" -mindepth 1 ! -type d ! -path '*/runs/*' 2>/dev/null | head -n 3
    find "$T/tmp" "$T/state" \( -name closed -o -name d -o -name frozen \) 2>/dev/null | head -n 3
}

removed() { # removed WHAT
    local left
    left=$(leftovers)
    if [ -z "$left" ]; then echo "REFUSED $1 nothing is left"; else echo "SUCCEEDED $1 stays: $left"; fi
}

attack() {
    local place
    for place in /workspace /dev/shm; do
        within 30 box --disk 512M --cwd "$place" -- /attacks/33-stubborn-tree plant 2500 ||
            echo "OTHER tree in $place"
    done
    box -- /attacks/33-stubborn-tree freeze
    removed tree
}

# The process runtime creates its directory on the host's disk, and has to remove it there.
on_disk() {
    within 30 me timeout --foreground -k 5 60 "${before[@]}" "$tool" run --quiet --runtime process -- \
        "$A/33-stubborn-tree" "$@" || echo "OTHER $1 status $?"
    removed "$1"
}

more() {
    held "process runtime" on_disk plant 2500
    if [ "$who" = root ]; then
        held "process runtime, immutable" on_disk freeze
    else
        skip "$title, as $who: process runtime, immutable" "only root can set the attribute"
    fi
    skip "$title, as $who: files of a subordinate id" "no run leaves such files on a disk"
}

clean_up() { chattr -R -i "$T/bare/frozen" "$T/tmp" 2>/dev/null || true; }
