# shellcheck shell=bash disable=SC2016,SC2034,SC2154
# What runs share: the pristine checkout, the template of the git dir, the repository's objects.
plant='
for file in $(find $(git rev-parse --git-common-dir)/objects -type f 2>/dev/null | head -n 20) /run/carrel/objects*/*/*; do
    chmod u+w "$file" 2>/dev/null
    (echo changed >>"$file") 2>/dev/null && echo "written: $file"
done
'
bare() {
    me git -C "$R" worktree add -q -b bare "$T/plain-tree" main
    what=$(me env -C "$T/plain-tree" /bin/bash -c "$plant" | grep -c written) || true
    [ "$what" -gt 0 ] && what=objects-written
}
control() {
    same "objects of one's own" fine \
        "$(run_in "$R" control/1 --on-success discard -- sh -c 'git commit -q --allow-empty -m x && echo fine')"
}
shared() {
    (cd "$T/state/carrel/checkouts" && find . -type f ! -name .claims -print0 | sort -z | xargs -0r sha1sum)
    (cd "$T/state/carrel/checkouts" && find . -printf '%y %m %P %l\n' | sort)
    (cd "$R/.git/objects" && find . -type f -print0 | sort -z | xargs -0r sha1sum)
}
attack() {
    local before said
    run_in "$R" warm/1 --on-success discard -- true
    before=$(shared)
    said=$(inside attack/1 -- '
        for file in /run/carrel/objects*/*/* /run/carrel/objects*; do
            chmod u+w "$file" 2>/dev/null && echo "mode: $file"
            (echo changed >>"$file") 2>/dev/null && echo "written: $file"
            rm -f "$file" 2>/dev/null && echo "removed: $file"
        done
        find . -name .git -prune -o -type f -exec sh -c "echo changed >>\"\$0\"; chmod 777 \"\$0\"; rm -f \"\$0\"" {} \;
        rm -rf a dir grün
        echo changed >/run/carrel/git/config; rm -f /run/carrel/git/index; rm -rf /run/carrel/git/info
        true') || true
    same "done to what is shared" "" "$said"
    same "what is shared" "$before" "$(shared)"
    said=$(run_in "$R" attack/2 --on-success discard -- sh -c 'git status --porcelain; cat README')
    same "the next run" "a repository for tests" "$said"
    carrel workspace discard --force attack/1 >/dev/null
}
