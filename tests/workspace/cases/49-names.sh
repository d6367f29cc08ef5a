# shellcheck shell=bash disable=SC2016,SC2034,SC2154
# Names that are options, revisions, paths, or look like other names.
names() {
    printf '%s\n' '--upload-pack=x' '-f' 'a..b' '@{' '@' '-' '.' '..' 'x.lock' 'x.' '.x' 'a/b' 'a b' 'a~1' 'a^' 'a:b' \
        'a?b' 'a*' 'a[b' 'a\b' 'runs' HEAD head \
        hEaD "$(printf 'n%.0s' {1..300})" 'аbc' $'a\u200bb' $'a\tb' 'refs/heads/main' '../../x' \
        $'a\x7f' "a'b" 'a"b' 'a$b' 'a;b' 'a|b'
}
plant='$EVIL/upload-pack'
bare() {
    me git -C "$R" fetch -q "--upload-pack=$T/bare/evil/upload-pack" . 2>/dev/null || true # "a branch's name"
    what=$(fired "$T/bare")
}
control() {
    local name
    for name in T-1 a.b_c-d "$(printf 'n%.0s' {1..64})" 0 HEAD-1; do
        run_in "$R" "$name/$name" --on-success discard -- true || {
            echo "refused: $name"
            return 1
        }
    done
}
attack() {
    local name before output status
    before=$(facts "$R")
    while IFS= read -r name; do
        status=0
        output=$(carrel run --quiet --repo "$R" --task "$name" --run ok -- true 2>&1) || status=$?
        refused_well "task" || return 1
        status=0
        output=$(carrel run --quiet --repo "$R" --task ok --run "$name" -- true 2>&1) || status=$?
        refused_well "run" || return 1
        for verb in show diff commit discard open; do
            status=0
            output=$(carrel workspace "$verb" -- "$name" 2>&1) || status=$?
            if [ "$status" -eq 0 ] || [ "$status" -ge 126 ]; then
                printf 'workspace %s took %q: %s %s\n' "$verb" "$name" "$status" "$output"
                return 1
            fi
        done
        # As a base it is a revision, and some of these are good ones.
        case $name in @ | HEAD | refs/heads/main | a~1 | a^) continue ;; esac
        status=0
        output=$(carrel run --quiet --repo "$R" --base "$name" --task ok --run ok -- true 2>&1) || status=$?
        refused_well "base" || return 1
    done < <(names)
    same "the repository" "$before" "$(facts "$R")"
    same "workspaces" "" "$(find "$T/state/carrel/workspaces" -mindepth 2 -maxdepth 2 2>/dev/null)"
}
refused_well() {
    [ "$status" -eq 125 ] && grep -q '^carrel: ' <<<"$output" && ! grep -q 'fatal:' <<<"$output" && return
    printf '%s %q: status %s, %s\n' "$1" "$name" "$status" "$output"
    return 1
}
