#!/bin/sh
# inside.sh - git on what a run left, in a fresh sandbox that has the workspace.
#
#   inside.sh commit BRANCH BASE MESSAGE
#   inside.sh pack BRANCH BASE OBJECTS [TIP SNAPSHOT]
#
# commit: commits what is not committed, and so must be able to write to the workspace. Prints a
# line "repository PATH" for each repository in the tree and a last line "TIP SNAPSHOT", or "said"
# and git's complaint.
# pack: only reads. Prints a line "other N", the number of commits that are no part of the result,
# a line "TIP SNAPSHOT", and a pack of both over BASE.
# A branch that the run removed is treated as if the run had never committed.
cd /workspace || exit 1
what=$1
branch=$2
base=$3

# Where the run left its work: its branch, or HEAD, detached or on another branch, where that
# continues the run's own branch.
find_tip() {
    tip=$(git rev-parse -q --verify "refs/heads/$branch^{commit}") || tip=$base
    head=$(git rev-parse -q --verify 'HEAD^{commit}') &&
        git merge-base --is-ancestor "$tip" "$head" && tip=$head
}

# ---- commit -------------------------------------------------------------------------------------

bytes_sed() { LC_ALL=C sed "$@"; }

fail() {
    why=$(bytes_sed -n -e '/^fatal: /{p;q}' -e '/^error: /{p;q}' /tmp/said)
    printf 'said %.300s\n' "${why:-$(head -n 1 /tmp/said)}"
    exit 1
}

forget() { git update-index --force-remove -z --stdin; }

gitlinks() { bytes_sed -nz 's/^160000 [a-f0-9 cmoit]*\t//p' | LC_ALL=C sort -z; }

# A submodule that only the run's index has is dropped from it.
drop_new_gitlinks() {
    git ls-tree -r -z --full-tree "$tip" >/tmp/tree || fail
    git ls-files -s -z >/tmp/staged || fail
    gitlinks </tmp/tree >/tmp/had
    gitlinks </tmp/staged >/tmp/has
    [ ! -s /tmp/has ] || LC_ALL=C comm -z -23 /tmp/has /tmp/had | forget || fail
}

# git takes a directory that has a repository for a submodule, or fails where that has no commit,
# unless the index has something below it. So the index gets an entry of a file that does not
# exist, under an unpredictable name; then the directory counts like any other: its files, without
# the .git. A pass may find more repositories, inside the first ones.
enter_repositories() {
    none=$(git hash-object --stdin </dev/null) || fail
    name=.none-$(date +%s%N)
    : >/tmp/names
    while :; do
        git ls-files -o -z --exclude-standard >/tmp/other || fail
        bytes_sed -nz 's|/$||p' /tmp/other >/tmp/inside
        [ -s /tmp/inside ] || break
        tr '\n\0' '?\n' </tmp/inside | LC_ALL=C cut -b -4000 | bytes_sed 's|.*|repository &/.git|'
        bytes_sed -z "s|\$|/$name|" /tmp/inside >>/tmp/names
        bytes_sed -z "s|.*|100644 $none\t&/$name|" /tmp/inside | git update-index -z --index-info || fail
    done
}

commit() { # commit MESSAGE
    exec 2>/tmp/said
    find_tip
    snapshot=$tip
    cp "$(git rev-parse --git-dir)/index" /tmp/index
    export GIT_INDEX_FILE=/tmp/index
    drop_new_gitlinks
    enter_repositories
    git add -A . || fail
    forget </tmp/names || fail
    tree=$(git write-tree) || fail
    if [ "$tree" != "$(git rev-parse "$tip^{tree}")" ]; then
        snapshot=$(printf '%s\n' "$1" | git commit-tree -p "$tip" "$tree") || fail
    fi
    echo "$tip $snapshot"
}

# ---- pack ---------------------------------------------------------------------------------------

# git with the repository's own objects alone: $objects and its alternates, $objects-N.
theirs() {
    GIT_OBJECT_DIRECTORY=$objects \
        GIT_ALTERNATE_OBJECT_DIRECTORIES=$(echo "$objects"-* | tr ' ' :) \
        git cat-file --batch-check
}

# Commits on other branches and in the stash that are missing from the repository's own objects
# (branches of the user are there, too). Nothing of them is imported, so only the workspace has
# them. Entries of a stash except the last one are in its log only.
count_others() {
    { git rev-list --no-walk --all; git rev-list -g refs/stash --; } | LC_ALL=C sort -u >/tmp/tips
    {
        cat /tmp/tips
        theirs </tmp/tips | LC_ALL=C sed -n 's/^\([0-9a-f]*\) commit .*/^\1/p'
        printf '^%s\n' "$tip" "$base"
    } | git rev-list --stdin | theirs | LC_ALL=C sed -n '/ missing$/p' | wc -l
}

pack() { # pack OBJECTS [TIP SNAPSHOT]
    exec 2>/dev/null
    objects=$1
    tip=${2:-}
    snapshot=${3:-}
    if [ -z "$snapshot" ]; then
        find_tip
        snapshot=$tip
    fi
    others=$(count_others)
    echo "other $((others))"
    echo "$tip $snapshot"
    printf '%s\n^%s\n' "$snapshot" "$base" |
        git pack-objects --revs --thin --stdout --delta-base-offset -q
}

shift 3
"$what" "$@"
