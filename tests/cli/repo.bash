# shellcheck shell=bash disable=SC2154
# repo.bash - a repository to work on, and runs on it. To be loaded by bats files after cli.bash.

g() { me git -C repo "$@"; }

users_config() { # the user's own, beside ~/.gitconfig
    me mkdir -p config/git
    me git config -f config/git/config "$@"
}

new_repo() { # $T/repo: three files, two commits, one ignored file
    me git init -q -b main repo
    g config user.name "A User"
    g config user.email user@example.org
    me sh -c 'cd repo && printf "one\ntwo\nthree\n" >a.txt && mkdir src && echo int >src/x.c &&
        echo "*.log" >.gitignore && echo old >gone.txt'
    g add -A
    g commit -qm first
    me sh -c 'cd repo && echo four >>a.txt && echo noise >build.log'
    g commit -qam second
    base=$(g rev-parse HEAD)
}

# As carrel, in the repository or in a directory of it.
in_repo() { carrel_in repo "$@"; }
carrel_in() { # carrel_in DIR ARG...
    local dir=$1
    shift
    status=0
    me env -C "$T/$dir" timeout -k 5 120 "$CARREL" "$@" >"$T/.out" 2>"$T/.err" </dev/null ||
        status=$?
    _collect "$@"
}

# A run that edits, adds, deletes and commits a part of it.
work=$(
    cat <<'END'
set -e
sed -i 's/two/TWO/' a.txt
git commit -qam 'agent: shout'
echo new >new.txt
git rm -q gone.txt
END
)
agent() { # agent RUN [OPTION...]
    local name=$1
    shift
    in_repo run --workspace --task t --run "$name" "$@" -c "$work"
    [ "$status" -eq 0 ]
}

host_is_untouched() {
    [ "$(g rev-parse main)" = "$base" ]
    [ "$(g symbolic-ref HEAD)" = refs/heads/main ]
    [ -z "$(g status --porcelain)" ]
    [ ! -e "$T/repo/new.txt" ]
    grep -qx two "$T/repo/a.txt"
    g fsck --strict --no-dangling
}

state_of() { # state_of RUN: as the list has it
    in_repo workspace list --all --json >/dev/null
    json "next(w['state'] for w in r['workspaces'] if w['run'] == '$1')"
}
