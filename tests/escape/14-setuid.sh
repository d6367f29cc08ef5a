# shellcheck shell=bash disable=SC2034,SC2154
# The programs belong to root and are in a directory that is mounted into the sandbox. Root gains
# nothing from them, so the bare attack runs as the ordinary user in both rounds.
does_apply() {
    is_root_suite || { echo "a set-uid program can only be made by root" && return 1; }
    have_user
}

prepare() {
    mkdir "$T/privileged" || return
    chmod 755 "$T/privileged"
    cp "$A/14-setuid" "$T/privileged/set-uid"
    cp "$A/14-setuid" "$T/privileged/file-caps"
    chown root:root "$T/privileged" "$T/privileged/"*
    chmod 4755 "$T/privileged/set-uid"
    "$A/14-setuid" bless "$T/privileged/file-caps"
    as_user mkdir "$T/work" 2>/dev/null || install -d -m 777 "$T/work"
    options=(--mount "$T/privileged:/privileged:ro" --workdir "$T/work")
    bare_args=("$T/privileged")
    args=(/privileged)
}

bare() { as_user sh -c 'cd "$1" && exec "$2" attack "$3"' - "$T/work" "$A/14-setuid" "${bare_args[@]}"; }

more() {
    all_attempts=no
    options=(--mount "$T/privileged:/privileged:rw" --workdir "$T/work")
    [ "$who" = user ] || held "attack in a writable mount" attack
    check "$title, as $who: no set-uid program is left on the host" \
        [ -z "$(find "$T/work" -perm /6000 -type f)" ]
    # Wherever a program of the host with that bit exists.
    held "the host's own set-uid programs" host_programs
}

host_programs() {
    box -- /bin/sh -c 'for p in /usr/bin/* /bin/* /usr/sbin/*; do
            [ -u "$p" ] && [ -x "$p" ] && echo "FOUND $p"
        done | head -n 3
        grep -q "^NoNewPrivs:.1$" /proc/self/status && echo "REFUSED no_new_privs is on" ||
            echo "SUCCEEDED no_new_privs is off"
        grep -qE "^Cap(Inh|Prm|Eff|Bnd|Amb):.*[1-9a-f]" /proc/self/status &&
            echo "SUCCEEDED capabilities are left" || echo "REFUSED capabilities none"'
}
