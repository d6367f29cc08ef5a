# shellcheck shell=bash disable=SC2034,SC2154
# The first run replaces a directory in its workspace by a link; the second is asked to mount
# something there. If followed on the host, the link could lead anywhere.
prepare() {
    all_attempts=no
    me mkdir -p "$T/work/data" "$T/work/real" "$T/outside/sub" "$T/source"
    echo mounted | me tee "$T/source/file" >/dev/null
    me mkdir "$T/bare"
    me ln -s "$T/outside" "$T/bare/data"
}

bare() {
    local wrap=(unshare --mount --propagation private)
    [ "$who" = root ] || wrap+=(--user --map-root-user)
    me "${wrap[@]}" sh -c 'mount --bind "$1/source" "$1/bare/data" &&
        [ -e "$1/outside/file" ] && echo "SUCCEEDED mount-through-link"' - "$T"
}

control() {
    box --workdir "$T/work" --mount "$T/source:/workspace/real" -- \
        /bin/sh -c 'grep -q mounted /workspace/real/file && echo WORKS mount-in-workspace'
    box --workdir "$T/work" --mount "$T/source:/data/below" -- \
        /bin/sh -c 'grep -q mounted /data/below/file && echo WORKS mount-elsewhere'
}

# A mount over a link must be refused, and nothing may appear where the link leads.
refuse() {
    local name=$1 target=$2 status=0 output
    output=$(box --workdir "$T/work" --mount "$T/source:$target" -- /bin/sh -c \
        'cat /etc/file /tmp/file /usr/file /attacks/file 2>/dev/null' 2>&1) || status=$?
    if [ "$status" -eq 125 ] && [[ $output == *carrel:* ]]; then
        echo "REFUSED $name ${output##*$'\n'}"
    else
        echo "SUCCEEDED $name status $status $output"
    fi
    [ -z "$(find "$T/outside" -mindepth 1 ! -name sub)" ] || echo "SUCCEEDED $name left a file outside"
}

replace() { # replace LINK: from inside, like the program
    box --workdir "$T/work" -- /bin/sh -c 'rm -rf /workspace/data && ln -s "$1" /workspace/data' - "$1"
}

attack() {
    replace "$T/outside"
    refuse absolute-link-to-host /workspace/data
    refuse below-absolute-link /workspace/data/sub
    refuse new-below-absolute-link /workspace/data/new
    replace ../outside
    refuse relative-link-out /workspace/data
    refuse new-below-relative-link /workspace/data/new
    replace /etc
    refuse link-to-etc /workspace/data
    replace /proc/1/root
    refuse magic-link /workspace/data/tmp
    replace real
    refuse link-within /workspace/data
}

more() {
    check "$title, as $who: what a link leads to is unchanged" [ "$(ls "$T/outside")" = sub ]
}
