# shellcheck shell=bash disable=SC2034,SC2154
# The attacked tool is a copy that belongs to the identity, so that ownership does not protect it.
prepare() {
    me cp "$A/01-exe" "$T/victim-tool"
    me cp "$CARREL" "$T/victim-tool-carrel"
    me chmod 755 "$T/victim-tool" "$T/victim-tool-carrel"
    tool=$T/victim-tool-carrel
    untouched=$(stat -c '%a %s' "$tool" && sha256sum <"$tool")
    start victim me "$T/victim-tool" victim
    bare_args=("$answer")
    me cp "$A/01-exe" "$T/attacker"
}

bare() { me "$T/attacker" attack "${bare_args[@]}"; }

is_untouched() {
    [ "$(stat -c '%a %s' "$tool" && sha256sum <"$tool")" = "$untouched" ] ||
        { stat "$tool" && return 1; }
}

# As its own program, with the attacker's library loaded. A statically linked tool does not load it;
# then this only shows that carrel does not run itself.
reexec() {
    box "$@" || echo "# carrel: status $?"
    echo "REFUSED reexec the rest"
}

more() {
    local bare_tool=$T/victim-tool-bare
    me cp "$A/01-exe" "$bare_tool"
    me env LD_PRELOAD="$A/reexec.so" "$bare_tool" >/dev/null 2>&1 || true
    check "$title, as $who: without carrel, a library in the tool can change its file" \
        [ "$(stat -c %a "$bare_tool")" = 4711 ]

    all_attempts=no
    held "the tool as its own program" \
        reexec --env LD_PRELOAD=/attacks/reexec.so -- /proc/self/exe version
    me mkdir -p "$T/work"
    printf '#!/proc/self/exe\n' | me tee "$T/work/script" >/dev/null
    me chmod 755 "$T/work/script"
    me ln -s /proc/self/exe "$T/work/link"
    held "the tool as the interpreter of a script" \
        reexec --workdir "$T/work" --env LD_PRELOAD=/attacks/reexec.so -- /workspace/script
    held "the tool behind a link" \
        reexec --workdir "$T/work" --env LD_PRELOAD=/attacks/reexec.so -- /workspace/link
    check "$title, as $who: the tool on the host is untouched" is_untouched
}
