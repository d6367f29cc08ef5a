#!/usr/bin/env bats
# shellcheck disable=SC2030,SC2031,SC2154  # cli.bash sets $status, $out and others
# What an earlier program left, or a living one exchanges, does not decide what carrel mounts, reads
# or writes.

load cli
load living

NOT_FOLLOWED="carrel does not follow links there, since an earlier program may have made it: name its target"

# ---- mounts -------------------------------------------------------------------------------------

place() { # a directory that sandboxes write to, and a secret outside of it
    me mkdir -p w/sub outside
    me sh -c 'echo secret >outside/s'
}

source_is_a_link() {
    place
    carrel run --workdir w -c 'rmdir sub; ln -s ../outside sub'
    [ "$status" -eq 0 ]
    carrel run --mount w/sub:/x -- cat /x/s
    is_one_error 125 "carrel: --mount: 'w/sub': is a link; $NOT_FOLLOWED"
    carrel run --mount "$T/w/sub:/x" -- cat /x/s
    is_one_error 125 "carrel: --mount: '$T/w/sub': is a link; $NOT_FOLLOWED"
    carrel run --mount w/sub/s:/x -- cat /x
    is_one_error 125 "carrel: --mount: 'w/sub/s': passes a link; $NOT_FOLLOWED"
    carrel run --workdir w/sub/ -- cat s
    is_one_error 125 "carrel: --workdir: 'w/sub/': is a link; $NOT_FOLLOWED"
    carrel create --mount w/sub/s:/x
    is_one_error 125 "carrel: --mount: 'w/sub/s': passes a link; $NOT_FOLLOWED"
    me mkdir outside/d
    carrel run --mount "$T/w/sub/s:/x" -- cat /x
    is_one_error 125 "carrel: --mount: '$T/w/sub/s': passes the link '$T/w/sub'; $NOT_FOLLOWED"
    carrel run --workdir "$T/w/sub/d" -c 'echo new >file'
    is_one_error 125 "carrel: --workdir: '$T/w/sub/d': passes the link '$T/w/sub'; $NOT_FOLLOWED"
    carrel run --root "$T/w/sub/d" -- true
    is_one_error 125 "carrel: --root: '$T/w/sub/d': passes the link '$T/w/sub'; $NOT_FOLLOWED"
    me sh -c 'echo "sandbox: {}" >outside/p.yaml'
    carrel run --policy "$T/w/sub/p.yaml" -- true
    is_one_error 125 "carrel: *'$T/w/sub/p.yaml': passes the link '$T/w/sub'; $NOT_FOLLOWED"
    me sh -c 'echo "print(1)" >outside/s.py'
    carrel python "$T/w/sub/s.py"
    is_one_error 125 "carrel: *'$T/w/sub/s.py': passes the link '$T/w/sub'; $NOT_FOLLOWED"
    [ -z "$(me ls outside/d)" ]
    # Where the caller itself names the target, it is mounted.
    carrel run --mount outside:/x -- cat /x/s
    [ "$out" = secret ]
}
@test "a mount source that a run made a link is refused" { both source_is_a_link; }

# /bin -> usr/bin and the like are no work of a run's.
system_links() {
    local path
    [ -L /bin ] || skip "/bin is no link here"
    carrel run --mount /bin/env:/x -- /x echo mounted
    [ "$out" = mounted ]
    carrel run --mount /bin:/x -- true # the last component is never a link
    is_one_error 125 "carrel: --mount: '/bin': is a link; $NOT_FOLLOWED"
    for path in /proc/self/root/etc/passwd /proc/self/cwd/f; do
        carrel run --mount "$path:/x" -- true
        is_one_error 125 "carrel: --mount: '$path': passes *; $NOT_FOLLOWED"
    done
}
@test "a link of the system's in an absolute path is passed" { both system_links; }

# One sandbox exchanges the directory for a link as fast as it can, while others are asked to mount
# it. The policy allows only what is below w.
source_is_exchanged() {
    place
    me sh -c 'echo plain >w/sub/s'
    me sh -c "echo 'sandbox: {mounts: {allow: [$T/w:rw]}}' >p.yaml"
    carrel create --workdir w
    local id=$out _
    carrel exec "$id" -c 'ln -s ../outside way; (while :; do mv sub a; mv way sub; mv sub way; mv a sub; done) >/dev/null 2>&1 &'
    for _ in {1..25}; do
        carrel run --policy p.yaml --mount w/sub:/x -- cat /x/s
        [ "$status:$out" = 0:plain ] || [ "$status" -ne 0 ]
        [[ "$out" != *secret* ]]
    done
    carrel destroy "$id"
}
@test "a mount source that is exchanged all the time is mounted or refused" { both source_is_exchanged; }

# The sandbox itself exchanges the source of one of its mounts, and is then made again.
living_source() {
    place
    me sh -c 'echo plain >w/sub/s'
    carrel create --workdir w --mount "$T/w/sub:/x" --mount outside:/y
    [ "$status" -eq 0 ]
    local id=$out
    carrel exec "$id" -c 'mv sub sub2; ln -s / sub'
    [ "$status" -eq 0 ]
    carrel snapshot "$id" one
    [ "$status" -eq 0 ]
    carrel exec "$id" -- ls /x
    [ "$out" = s ] # the directory that was named when the sandbox was created
    carrel fork "$id"
    [ "$status" -ne 0 ]
    [[ "$err" == *"'$T/w/sub': is a link; $NOT_FOLLOWED"* ]]
    carrel exec "$id" -c 'rm sub; mkdir sub'
    carrel fork "$id"
    [ "$status" -ne 0 ]
    [[ "$err" == *"mount source '$T/w/sub' is not what it was when the sandbox was created"* ]]
    carrel exec "$id" -c 'rmdir sub; mv sub2 sub'
    carrel fork "$id"
    [ "$status" -eq 0 ]
    carrel exec "$out" -c 'cat /x/s /y/s'
    [ "$out" = $'plain\nsecret' ]
    carrel destroy --all
}
@test "a sandbox that is made again or forked has the mounts that were named" { both living_source; }

# ---- carrel's own directories -------------------------------------------------------------------

own_places() {
    local rest="which no program may write to: mount it read-only (:ro), or another directory"
    me mkdir -p w home
    carrel run -- true # the state is there now
    carrel run --workdir . -- true
    is_one_error 125 "carrel: --workdir '$T' holds carrel's state ('$T/state/carrel'), $rest"
    carrel run --mount "$T:/x:rw" -- true
    is_one_error 125 "carrel: --mount '$T' holds carrel's state ('$T/state/carrel'), $rest"
    carrel run --workdir state/carrel -- true
    is_one_error 125 "carrel: --workdir '$T/state/carrel' holds carrel's state ('$T/state/carrel'), $rest"
    carrel run --mount "$T/state/carrel/runs:/x:rw" -- true
    is_one_error 125 "carrel: --mount '$T/state/carrel/runs' lies in carrel's state ('$T/state/carrel'), $rest"
    carrel create --workdir .
    is_one_error 125 "carrel: --workdir '$T' holds carrel's state*"
    # A policy that is not there yet could be written there; so could one behind a link.
    status=0
    out=$(me env XDG_STATE_HOME=/var/tmp/carrel-none HOME="$T/home" XDG_CONFIG_HOME= "$CARREL" run --workdir home -- true 2>&1) || status=$?
    [ "$status" -eq 125 ]
    [[ "$out" == "carrel: --workdir '$T/home' holds carrel's settings ('$T/home/.config/carrel'), $rest" ]]
    me mkdir real home/.config
    me ln -s "$T/real" home/.config/carrel
    status=0
    out=$(me env XDG_STATE_HOME=/var/tmp/carrel-none HOME="$T/home" XDG_CONFIG_HOME= "$CARREL" run --workdir real -- true 2>&1) || status=$?
    [ "$status" -eq 125 ]
    [[ "$out" == "carrel: --workdir '$T/real' holds carrel's settings"* ]]
    status=0
    out=$(me env XDG_STATE_HOME=/var/tmp/carrel-none HOME="$T/home" XDG_CONFIG_HOME= "$CARREL" run --mount "$T/home/.config:/x:rw" -- true 2>&1) || status=$?
    [ "$status" -eq 125 ]
    [ ! -e /var/tmp/carrel-none ]
    # Read-only they give nothing away that the caller did not name; beside them all is well.
    carrel run --workdir .:ro -- true
    [ "$status" -eq 0 ]
    carrel run --workdir w -c 'echo mine >file'
    [ "$status" -eq 0 ]
}
@test "a writable mount neither holds nor lies in a directory of carrel's own" { both own_places; }

run_directory() {
    carrel run --mount /run:/x:rw -- true
    is_one_error 125 "carrel: --mount '/run' holds carrel's list of sandboxes ('/run/carrel')*"
    carrel run --mount /etc:/x:rw -- true
    is_one_error 125 "carrel: --mount '/etc' holds carrel's policy ('/etc/carrel')*"
}
@test "nor the list of sandboxes or the system's policy" { only root run_directory; }

# ---- .git of a directory that the program works in ----------------------------------------------

git_is_read_only() {
    me git init -q -b main repo
    me sh -c 'cd repo && git config user.name A && git config user.email a@b && echo 1 >a && git add a && git commit -qm first'
    local write='echo 2 >a; git status --short; echo evil >.git/hooks/post-checkout; mv .git g; git config core.fsmonitor evil; git commit -qam second'
    carrel run --workdir repo -c "$write"
    [ "$status" -ne 0 ]
    [[ "$out" == " M a"* ]]
    [ "$(me cat repo/a)" = 2 ]
    [ ! -e "$T/repo/.git/hooks/post-checkout" ]
    ! me grep -q evil repo/.git/config
    carrel create --workdir repo
    local id=$out
    carrel exec "$id" -c 'echo evil >.git/hooks/post-checkout'
    [ "$status" -ne 0 ]
    carrel fork "$id"
    [ "$status" -eq 0 ]
    carrel exec "$out" -c 'echo evil >.git/hooks/post-checkout'
    [ "$status" -ne 0 ]
    [ ! -e "$T/repo/.git/hooks/post-checkout" ]
    carrel destroy --all
    # In a linked worktree it is a file.
    me git -C repo worktree add -q ../linked
    carrel run --workdir linked -c 'echo "gitdir: /tmp/evil" >.git'
    [ "$status" -ne 0 ]
    ! me grep -q evil linked/.git
    carrel run --workdir repo --git-writable -c 'git -c safe.directory=* commit -qam second && git -c safe.directory=* log --oneline | wc -l'
    [ "$out" = 2 ]
    me sh -c 'mkdir plain; ln -s ../repo/.git plain/.git'
    carrel run --workdir plain -- true
    is_one_error 125 "carrel: --workdir: '.git': is a link; *; .git there cannot be made read-only (--git-writable leaves it as it is)"
    carrel run --workdir plain --git-writable -- true
    [ "$status" -eq 0 ]
}
@test ".git of a writable --workdir is read-only unless --git-writable" { both git_is_read_only; }

git_of_a_mount() {
    local write='cd /x && echo 2 >a; echo evil >.git/hooks/post-checkout; mv .git g; echo evil >>.git/config'
    me git init -q -b main repo
    carrel run --mount "$T/repo:/x:rw" -c "$write"
    [ "$status" -ne 0 ]
    [ "$(me cat repo/a)" = 2 ]
    [ ! -e "$T/repo/.git/hooks/post-checkout" ]
    ! me grep -q evil repo/.git/config
    me mkdir work
    carrel run --workdir work --mount "$T/repo:/x:rw" --mount "$T/repo:/y/z:rw" -c 'cd /y/z; echo evil >.git/hooks/post-checkout'
    [ "$status" -ne 0 ]
    [ ! -e "$T/repo/.git/hooks/post-checkout" ]
    carrel run --mount "$T/repo:/x:rw" --mount "$T/repo/.git:/x/.git:rw" -c 'echo own >/x/.git/hooks/own'
    [ "$status" -eq 0 ]
    me sh -c 'mkdir linked; echo "gitdir: ../repo/.git" >linked/.git'
    carrel run --mount "$T/linked:/x:rw" -c 'echo "gitdir: /tmp/evil" >/x/.git'
    [ "$status" -ne 0 ]
    ! me grep -q evil linked/.git
    carrel create --mount "$T/repo:/x:rw"
    local id=$out
    carrel fork "$id"
    [ "$status" -eq 0 ]
    carrel exec "$out" -c "$write"
    [ "$status" -ne 0 ]
    carrel destroy --all
    [ ! -e "$T/repo/.git/hooks/post-checkout" ]
    me sh -c 'mkdir plain; ln -s ../repo/.git plain/.git'
    carrel run --mount "$T/plain:/x:rw" -- true
    is_one_error 125 "carrel: --mount: '.git': is a link; *--git-writable leaves it as it is)"
    carrel run --git-writable --mount "$T/repo:/x:rw" -c 'echo own >/x/.git/hooks/post-checkout'
    [ "$status" -eq 0 ]
}
@test ".git of each writable mount is read-only, too" { both git_of_a_mount; }

# ---- virtual environments -----------------------------------------------------------------------

planted_venv() {
    me mkdir -p p
    me /usr/bin/python3 -m venv --without-pip "$T/p/.venv" || skip "python3-venv is not installed"
    [ -n "$(ls -d /lib/python3*/os.py 2>/dev/null)" ] || skip "python's library is not in /lib"
    # An earlier run with the project leaves the link and the line.
    carrel run --workdir p -c 'ln -s / evil; echo "home = $1/p/evil/bin" >.venv/pyvenv.cfg' "$T"
    [ "$status" -eq 0 ]
    carrel python --venv p/.venv -c 'import os; print(os.listdir("'"$T"'/p/evil"))'
    [ -z "$out" ]
    is_one_error 125 "carrel: '$T/p/evil' would be shown to the program as an installation of Python, but '/' holds everything; *"
    carrel run --workdir p -c 'rm evil .venv/bin/python3; ln -s / evil; echo "home = /usr/bin" >.venv/pyvenv.cfg; ln -s "$1/p/evil/bin/python3" .venv/bin/python3' "$T"
    carrel python --venv p/.venv -c 'print(1)'
    is_one_error 125 "carrel: '$T/p/evil' would be shown*"
    carrel python --python "$T/p/evil/bin/python3" -c 'print(1)'
    is_one_error 125 "carrel: '$T/p/evil' would be shown*"
    # The environment itself as a link, and a FIFO that nothing writes to.
    carrel run --workdir p -c 'rm .venv/pyvenv.cfg; mkfifo .venv/pyvenv.cfg; ln -s .venv way'
    carrel python --venv p/.venv -c 'print(1)'
    is_one_error 125 "carrel: 'p/.venv' is not a virtual environment: it has no readable pyvenv.cfg ('pyvenv.cfg': is a FIFO; *"
    carrel python --venv p/way -c 'print(1)'
    is_one_error 125 "carrel: --venv: 'p/way': is a link; $NOT_FOLLOWED"
}
@test "a planted virtual environment shows nothing of the host" { both planted_venv; }
