# shellcheck shell=bash
# Runs the steps of a list in the current worktree, and prints its state after each. Run on the host
# in a plain worktree, and in a sandbox in carrel's; see `differential`.
#
# usage: record STEPS small|special|large SCRATCH       CARREL_STEP=NAME stops after that step
#
# Paths of the tree, of its git dir and of SCRATCH are replaced by words, because they must differ.
set -u

list=$1 set=$2 scratch=$3
export SCRATCH=$scratch HOME=$scratch/home
export GIT_CONFIG_NOSYSTEM=1 GIT_CONFIG_GLOBAL=/dev/null GIT_PAGER=cat PAGER=cat GIT_EDITOR=true TERM=dumb
export GIT_AUTHOR_NAME=Agent GIT_AUTHOR_EMAIL=agent@example.org
export GIT_COMMITTER_NAME=Agent GIT_COMMITTER_EMAIL=agent@example.org
export GIT_CONFIG_COUNT=6 GIT_CONFIG_KEY_0=core.abbrev GIT_CONFIG_VALUE_0=12
export GIT_CONFIG_KEY_1=gc.auto GIT_CONFIG_VALUE_1=0
export GIT_CONFIG_KEY_2=protocol.file.allow GIT_CONFIG_VALUE_2=always
export GIT_CONFIG_KEY_3=init.defaultBranch GIT_CONFIG_VALUE_3=main
export GIT_CONFIG_KEY_4=advice.detachedHead GIT_CONFIG_VALUE_4=false
# Whether git warns depends on whether it has to read a file again, so on the clock.
export GIT_CONFIG_KEY_5=core.safecrlf GIT_CONFIG_VALUE_5=false
export LC_ALL=C.UTF-8 TZ=UTC
umask 022
mkdir -p "$HOME"

tree=$(pwd -P)
git_dir=$(git rev-parse --absolute-git-dir)
common_dir=$(cd "$(git rev-parse --git-common-dir)" && pwd -P)

words() { sed -e "s|$git_dir|GITDIR|g; s|$common_dir|GITDIR|g; s|$scratch|SCRATCH|g; s|$tree|TREE|g"; }

# renameat2(RENAME_EXCHANGE): no command of the shell has it.
swap() {
    /usr/bin/python3 -c 'import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
if libc.renameat2(-100, os.fsencode(sys.argv[1]), -100, os.fsencode(sys.argv[2]), 2):
    sys.exit(os.strerror(ctypes.get_errno()))' "$1" "$2"
}

# Everything in the tree but git's own: type, mode and target, then the content.
names() { find . -name .git -prune -o ! -name . -printf '%y %m %P %l\n' | sort; }
contents() { find . -name .git -prune -o -type f -exec sha1sum {} + | sort; }

# What git's first answer reports as equal in commit, index and tree is not read again; whether the
# answer itself is right is checked against the other side's, and against the files. Those of a
# large tree are compared at the end.
look() {
    local status
    echo "--- status"
    status=$(git status --porcelain=v2 --branch)
    echo "$status"
    if [ "$set" != large ] && grep -aq '^? .*/"\{0,1\}$' <<<"$status"; then
        echo "--- status -uall"
        git status --porcelain=v2 -uall
    fi
    if grep -aq '^[12u] .[^.]' <<<"$status"; then
        echo "--- diff"
        git diff
    fi
    if grep -aq '^[12u] [^.]' <<<"$status"; then
        echo "--- diff --cached"
        git diff --cached
        echo "--- write-tree"
        git write-tree || [ "$set" != large ] || git ls-files -s | sha1sum
        [ "$set" = large ] || git ls-files -s
    fi
    echo "--- refs"
    git for-each-ref
    [ "$set" = large ] && return
    echo "--- files"
    names
    contents
}

number=0
step() { # step NAME SNIPPET
    local status
    number=$((number + 1))
    export GIT_AUTHOR_DATE="$((1710000000 + number * 60)) +0000"
    export GIT_COMMITTER_DATE=$GIT_AUTHOR_DATE
    echo "=== $number $1"
    (
        set -e
        eval "$2"
    ) </dev/null 2>&1
    status=$?
    echo "--- exit status $status"
    look 2>&1
}

all_steps() {
    local line name='' snippet=''
    while IFS= read -r line || [ -n "$line" ]; do
        case $line in
        @*)
            [ -z "$name" ] || step "$name" "$snippet"
            [ "$name" != "${CARREL_STEP:-@}" ] || return
            snippet=''
            name=${line#* }
            case "$set ${line%% *}" in
            "large @" | "large @special" | "small @special") name='' ;;
            esac
            ;;
        *) snippet+=$line$'\n' ;;
        esac
    done <"$list"
    [ -z "$name" ] || step "$name" "$snippet"
    if [ "$set" = large ]; then
        echo "=== all contents"
        names
        contents
    fi
}

all_steps | words
