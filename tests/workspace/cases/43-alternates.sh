# shellcheck shell=bash disable=SC2016,SC2034,SC2154
# Objects of another repository of the host, by its path in objects/info/alternates, or only by
# their ids: none of them may be read, nor may the branch refer to one.
must_work=no
prepare() {
    rm -rf "$T/secret"
    me git init -q -b main "$T/secret"
    echo "the secret of another repository" | me tee "$T/secret/file" >/dev/null
    me git -C "$T/secret" add file
    me git -C "$T/secret" commit -q -m secret
    blob=$(me git -C "$T/secret" rev-parse HEAD:file)
}
plant='
info=$(git rev-parse --git-path objects/info)
mkdir -p "$info"
echo "$SECRET" >>"$info/alternates"
echo "$SECRET" >"$info/http-alternates"
git update-index --add --cacheinfo 100644,$BLOB,stolen
tree=$(git write-tree --missing-ok) || tree=$(printf "100644 blob $BLOB\tstolen\n" | git mktree --missing)
git update-ref HEAD "$(git commit-tree -p HEAD -m steal "$tree")"
git cat-file -p $BLOB
'
bare() {
    me git -C "$R" worktree add -q "$T/plain-tree" -b bare main
    what=$(me env -C "$T/plain-tree" SECRET="$T/secret/.git/objects" BLOB="$blob" /bin/bash -c "$plant" |
        grep -o 'the secret of') || true
}
control() { # alternates that exist inside do work inside
    local said
    said=$(run_in "$R" control/1 --on-success discard -- /bin/bash -c '
        git init -q /tmp/other && cd /tmp/other && echo "not secret" >file && git add file
        export SECRET=/tmp/other/.git/objects BLOB=$(git rev-parse :file)
        cd /workspace && { '"$plant"' }') || true
    grep -q "not secret" <<<"$said"
}
attack() {
    local said
    said=$(inside attack/1 --env "SECRET=$T/secret/.git/objects" --env "BLOB=$blob" -- "$plant"$'\n'"$ordinary" 2>&1) || true
    if grep -q 'the secret of' <<<"$said"; then
        echo "inside: $said"
        return 1
    fi
    each_operation attack/1 nothing_of_secret
}
nothing_of_secret() {
    if grep -qs "the secret of" "$T/.operation" "$T/.host-git"; then
        echo "it came out"
        return 1
    fi
    if me git -C "$R" cat-file -e "$blob" 2>/dev/null; then
        echo "the object is in the repository"
        return 1
    fi
    me git -C "$R" rev-list --objects --all >/dev/null
}
