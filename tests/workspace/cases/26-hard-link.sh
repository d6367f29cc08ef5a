# shellcheck shell=bash disable=SC2016,SC2034,SC2154
# A file of the host with a second name in the tree that is mounted into the sandbox.
prepare() {
    me mkdir -p "$T/private" "$T/folder"
    echo original | me tee "$T/private/file" >/dev/null
    me ln -f "$T/private/file" "$T/folder/link"
    me rm -f "$R/a.txt"
    me cp "$T/pristine/a.txt" "$T/private/a"
    me ln "$T/private/a" "$R/a.txt"
}
bare() {
    echo changed | me tee "$T/folder/link" >/dev/null
    [ "$(cat "$T/private/file")" = original ] || what=write-through-link
    prepare
}
control() {
    same "links of one's own" two "$(run_in "$R" control/1 --on-success discard -- sh -c 'echo one >x; ln x y; echo two >y; cat x')"
}
attack() {
    carrel run --quiet --workdir "$T/folder" --cow --task attack --run folder -- sh -c '
        echo changed >link; ln link again; echo changed >again; chmod 777 link; truncate -s 0 again'
    unchanged
    inside attack/1 -- 'echo changed >a.txt; ln a.txt again; chmod 777 again; echo changed >again'
    unchanged
    # Applying replaces the file; its other name keeps the old content.
    each_operation attack/1 unchanged
    AT=$T/folder carrel workspace apply attack/folder >/dev/null
    unchanged
    carrel workspace discard --force attack/folder >/dev/null
}
unchanged() {
    same "the file's other name" original "$(cat "$T/private/file")"
    same "its mode" "$(stat -c %a "$T/pristine/a.txt")" "$(stat -c %a "$T/private/a")"
    cmp "$T/private/a" "$T/pristine/a.txt"
}
