# shellcheck shell=bash disable=SC2016,SC2034,SC2154
# The root of the tree is another directory, or a link to one, when the host reads it.
plant='
mkdir /tmp/other.$$ && echo "other content" >/tmp/other.$$/a.txt
mv "$PWD" "$PWD.away" && ln -s /etc "$PWD.link" && mv -T "$PWD.link" "$PWD" || echo "refused: move"
'
bare() {
    me git -C "$R" worktree add -q -b bare "$T/plain-tree" main
    me env -C "$T/plain-tree" /bin/bash -c "$plant" || true
    [ -e "$T/plain-tree/passwd" ] && what=host-follows
    me rm -rf "$T/plain-tree" "$T/plain-tree.away"
    rm -rf /tmp/other.[0-9]*
}
control() {
    same "directories below it can be moved" "moved" \
        "$(run_in "$R" control/1 --on-success discard -- sh -c 'mkdir d; mv d e; rmdir e; echo moved')"
}
attack() {
    local said
    said=$(inside attack/1 -- "cd /workspace; $plant
        (cd / && rmdir workspace; mv /workspace /w; ln -sfn /etc /workspace) 2>/dev/null
        mount --bind /etc /workspace 2>/dev/null && echo mounted
        umount /workspace 2>/dev/null && echo unmounted
        while :; do mv d x; ln -s /etc d; rm d; mkdir -p d; mv x/* d/; done 2>/dev/null & sleep 0.3; kill \$!
        rm -rf d x; $ordinary" 2>/dev/null) || true
    same "inside" "refused: move" "$said"
    each_operation attack/1 only_the_work
}
only_the_work() {
    if grep -qs 'root:' "$T/.operation" "$T/.host-git"; then
        echo "the host has followed it"
        return 1
    fi
    [ ! -e "$R/passwd" ]
}
