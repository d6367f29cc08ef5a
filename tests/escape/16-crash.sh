# shellcheck shell=bash disable=SC2034,SC2154
prepare() {
    me mkdir "$T/bare" "$T/work"
    options=(--workdir "$T/work")
}

bare() { me bash -c 'cd "$1" && ulimit -S -c unlimited; exec "$2" attack' - "$T/bare" "$A/16-crash"; }

more() {
    check "$title, as $who: no core file in the shared directory" [ -z "$(ls -A "$T/work")" ]
}
