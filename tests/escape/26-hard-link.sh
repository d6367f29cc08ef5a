# shellcheck shell=bash disable=SC2034,SC2154
# A file of the host with a second name in the directory that is mounted into the sandbox.
prepare() {
    me mkdir "$T/work" "$T/private"
    me sh -c 'echo original >"$1/private/file"; ln "$1/private/file" "$1/work/link"' - "$T"
    me sh -c 'echo original >"$1/private/bare"; ln "$1/private/bare" "$1/work/bare"' - "$T"
}

bare() {
    me sh -c 'echo changed >"$1/work/bare"' - "$T"
    [ "$(cat "$T/private/bare")" = original ] || echo "SUCCEEDED write-through-link"
}

control() {
    box --workdir "$T/work:ro" -- /bin/sh -c 'grep -q original /workspace/link && echo WORKS read'
    box -- /bin/sh -c 'echo a >/tmp/a && ln /tmp/a /tmp/b && echo b >/tmp/b &&
        grep -q b /tmp/a && echo WORKS own-links'
}

attack() {
    box --workdir "$T/work:ro" -- /bin/sh -c '
        (echo changed >/workspace/link) 2>&1 || true
        (ln /workspace/link /tmp/link && echo changed >/tmp/link) 2>&1 || true
        (chmod 777 /workspace/link) 2>&1 || true
        (ln /usr/bin/env /tmp/env && echo "SUCCEEDED link-to-usr") 2>&1 || true'
    if [ "$(cat "$T/private/file")" = original ] && [ "$(stat -c %a "$T/private/file")" != 777 ]; then
        echo "REFUSED write-through-link the file is unchanged"
    else
        echo "SUCCEEDED write-through-link"
    fi
}

more() {
    skip "$title, as $who: attack in a writable directory" \
        "--workdir is the host's directory itself; copy-on-write workspaces come with their own test"
}
