# shellcheck shell=bash disable=SC2016,SC2034,SC2154
# Commits that git itself never makes. In a plain worktree the host's repository simply has them.
must_work=no
hostile=(dot-git dot-dot slash duplicate empty-name long-name zero-id broken-commit)
plant='
blob=$(echo evil | git hash-object -w --stdin)
entry() { printf "$1 $2\0"; printf "%b" "$(printf %s "$blob" | sed "s/../\\\\x&/g")"; }
case $HOSTILE in
dot-git) { entry 100644 .git; } ;;
dot-dot) { entry 100644 ..; } ;;
slash) { entry 100644 a/b; } ;;
duplicate) { entry 100644 same; entry 100644 same; } ;;
empty-name) { entry 100644 ""; } ;;
long-name) { entry 100644 "$(printf "n%.0s" $(seq 5000))"; } ;;
zero-id) { printf "100644 zero\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"; } ;;
broken-commit) { entry 100644 fine; } ;;
esac >/tmp/tree.$$
tree=$(git hash-object -t tree --literally -w --stdin </tmp/tree.$$)
rm -f /tmp/tree.$$
if [ "$HOSTILE" = broken-commit ]; then
    commit=$(printf "tree %s\nparent %s\nauthor x\ncommitter\n\nx\n" "$tree" "$(git rev-parse HEAD)" |
        git hash-object -t commit --literally -w --stdin)
else
    commit=$(git commit-tree -p HEAD -m hostile "$tree")
fi
git rev-parse HEAD >/dev/null
ref=$(git symbolic-ref HEAD)
git update-ref "$ref" "$commit" || { mkdir -p "$(dirname "$(git rev-parse --git-path "$ref")")"; echo "$commit" >"$(git rev-parse --git-path "$ref")"; }
'
bare() {
    local one
    for one in "${hostile[@]}"; do
        rm -rf "$T/plain-tree"
        me git -C "$R" worktree prune
        me git -C "$R" worktree add -q -f -B "bare-$one" "$T/plain-tree" main
        me env -C "$T/plain-tree" HOSTILE="$one" /bin/bash -c "$plant" || true
        # The host's branch leads to it, and fsck must complain.
        me git -C "$R" fsck --strict --no-dangling >"$T/.fsck" 2>&1 || what+="$one "
        me git -C "$R" update-ref -d "refs/heads/bare-$one"
        me git -C "$R" reflog expire --expire=now --all
        me git -C "$R" worktree remove --force "$T/plain-tree"
        me git -C "$R" prune --expire=now
    done
}
control() { # a well-formed commit, made by the same plumbing
    inside control/1 -- 'tree=$(git write-tree); git update-ref HEAD "$(git commit-tree -p HEAD -m honest "$tree")"; echo x >x'
    carrel workspace commit control/1 >/dev/null
    same "commits" 2 "$(me git -C "$R" rev-list --count main..task-control-run-1)"
    carrel workspace discard --force control/1 >/dev/null
}
attack() {
    local one
    for one in "${hostile[@]}"; do
        inside "attack/$one" --env "HOSTILE=$one" -- "$plant"$'\n'"$ordinary" || true
        each_operation "attack/$one" objects_are_sane "$one"
        breadth=brief
    done
}
objects_are_sane() {
    sane "$R" || {
        echo "($1)"
        return 1
    }
}
more() {
    check "$title, as $who: a tree of many entries" many_entries
    check "$title, as $who: an object whose content is not its name" wrong_content
}
many_entries() {
    local n=${CARREL_TREE_ENTRIES:-60000}
    inside attack/many -- "blob=\$(echo x | git hash-object -w --stdin)
        tree=\$(seq -f 'f%07g' 1 $n | sed \"s/^/100644 blob \$blob\t/\" | git mktree)
        git update-ref HEAD \$(git commit-tree -p HEAD -m many \$tree)"
    opened_git=()
    operation show attack/many
    operation commit attack/many
    operation discard --force attack/many
    sane "$R"
}
# A loose object under the id of one that the base has: a reader that trusts the name gets the
# other.
wrong_content() {
    local said
    inside attack/wrong -- 'objects=/run/carrel/git/objects; id=$(git rev-parse HEAD:a.txt)
        other=$(echo "not what it says" | git hash-object -w --stdin)
        mkdir -p $objects/${id:0:2}
        cp $objects/${other:0:2}/${other:2} $objects/${id:0:2}/${id:2}
        echo "not what it says" >a.txt; git add a.txt; git commit -qm x; echo more >more' || true
    each_operation attack/wrong objects_are_sane wrong
    same "a.txt of main" "line 1 of a" "$(me git -C "$R" show main:a.txt | head -n 1)"
}
