# shellcheck shell=bash disable=SC2016,SC2034,SC2154
# Copies of a sandbox that runs, holds a secret, and has prepared its files for being copied. A copy
# of a process has its memory, its random state, its ports and its variables; a copy of a tree has
# links that the host could follow, and marks that an overlay trusts.

# Prints what could identify a program; the port is free, or in use.
ask='import os, random, socket, uuid
s = socket.socket()
try:
    s.bind(("0.0.0.0", 8765)); port = "free"
except OSError:
    port = "taken"
print(random.getrandbits(64), os.urandom(16).hex(), uuid.uuid4(), open("/proc/sys/kernel/random/uuid").read().strip())
print(port)'

# What an overlay would interpret: whiteouts, opaque directories, redirects. Each may be refused.
forge='import os, stat
for path in "d", "d/e", "f":
    for name, value in (("opaque", b"y"), ("opaque", b"x"), ("whiteout", b"y"), ("redirect", b"/secret"), ("metacopy", b"")):
        for space in "user", "trusted":
            try:
                os.setxattr(path, space + ".overlay." + name, value)
            except OSError:
                pass
for path in "d/kept", "white":
    try:
        os.mknod(path, stat.S_IFCHR, 0)
    except OSError:
        pass
for path in ".wh.d", "d/.wh..wh..opq":
    open(path, "w").close()'

small_root() { # a root of a few programs, which its sandbox may change
    local program lib
    me mkdir -p "$T/root/bin" "$T/root/tmp" "$T/root/home/agent" "$T/root/workspace" "$T/root/etc"
    for program in sh cat ls ln mv mkdir; do
        program=$(type -P "$program")
        me cp "$program" "$T/root/bin/"
        for lib in $(ldd "$program" | grep -o '/[^ )]*'); do
            me mkdir -p "$T/root$(dirname "$lib")"
            me cp -L "$lib" "$T/root$lib"
        done
    done
}

prepare() {
    secret=secret-$RANDOM$RANDOM$RANDOM
    me mkdir "$T/outside"
    echo "$secret" | me tee "$T/outside/file" >/dev/null
    stay --env SECRET="$secret"
    inside 'mkdir -p d/e secret; echo below >d/e/f; echo below >f; echo own >secret/own'
    live snapshot "$stays" "below-$$-$who" # so that there is a layer below
    inside "python3 -c '$forge'; echo kept >d/new; ln -s $T/outside out; ln -s /proc/1/root host"
    live exec --detach "$stays" -- python3 -c 'import os, random, socket, time
s = socket.socket()
s.bind(("0.0.0.0", 8765))
s.listen()
open("/tmp/token", "w").write("on disk\n")
time.sleep(1000)'
    small_root
    live image import "$T/root" "small-$$-$who"
    hostile=$(live create --image "small-$$-$who" --lease 20m --cwd / </dev/null)
    # The sandbox's own directories are links now, as far as they can be replaced.
    live exec --quiet "$hostile" -c "cd /; mkdir old; for name in tmp workspace home etc run dev proc var; do
        mv \$name old/\$name; ln -s $T/outside \$name; done; :" </dev/null || true
    # Its own /tmp and /workspace are mounts or links by now; at least one link must be in place.
    live exec --quiet "$hostile" -c 'ls -l /' </dev/null | has -F -- "-> $T/outside" || return
    forks=()
    local i
    for ((i = 0; i < 200; i++)); do
        [ "$(inside 'cat /tmp/token' 2>/dev/null)" != "on disk" ] || return 0
        sleep 0.05
    done
    return 1
}

clean_up() {
    local one
    for one in "${forks[@]}" "${hostile:-}"; do
        [ -z "$one" ] || live destroy --force "$one" >/dev/null 2>&1 </dev/null || true
    done
    leave
    live snapshot rm "below-$$-$who" >/dev/null 2>&1 || true
}

# fork_of SANDBOX ARG...: prints the ids, and records them for clean_up, which runs in another
# shell.
fork_of() { live fork "$@" </dev/null | tee -a "$T/forks"; }
in_fork() { live exec --quiet "$1" -c "$2" </dev/null; }

bare() {
    local output
    output=$(me python3 -c 'import os, random
own = random.Random(); token = os.urandom(8).hex(); r, w = os.pipe()
if os.fork() == 0:
    os.write(w, ("%d %s" % (own.getrandbits(64), token)).encode()); os._exit(0)
os.wait()
theirs = os.read(r, 100).decode().split()
print("SUCCEEDED same-random" if theirs[0] == str(own.getrandbits(64)) else "")
print("SUCCEEDED same-memory" if theirs[1] == token else "")')
    echo "$output"
    me python3 -c 'import os, socket
s = socket.socket(); s.bind(("127.0.0.1", 0)); s.listen(); port = s.getsockname()[1]
if os.fork() == 0:
    print("SUCCEEDED same-port" if s.getsockname()[1] == port else "", flush=True); os._exit(0)
os.wait()'
    me env SECRET="$secret" sh -c 'sh -c "[ -n \"\$SECRET\" ] && echo SUCCEEDED variable"'
    me mkdir "$T/tree"
    me ln -s "$T/outside" "$T/tree/out"
    me cp -a "$T/tree" "$T/copy"
    [ "$(me cat "$T/copy/out/file")" = "$secret" ] && echo "SUCCEEDED link-out"
    me mkdir -p "$T/o/lower/d" "$T/o/upper/d" "$T/o/work" "$T/o/at"
    me sh -c 'echo below >"$1/o/lower/d/f"' - "$T"
    me python3 -c 'import os, sys; os.setxattr(sys.argv[1], "user.overlay.opaque", b"y")' "$T/o/upper/d"
    me unshare -rm sh -c 'cd "$1/o" && mount -t overlay -o userxattr,lowerdir=lower,upperdir=upper,workdir=work none at &&
        ls at && ! cat at/d/f 2>/dev/null && echo "SUCCEEDED hide-below"' - "$T"
}

# What the allowed forms give: files, variables when requested, and an unchanged first sandbox.
control() {
    local fork
    fork=$(fork_of "$stays" --inherit-env)
    [ "$(in_fork "$fork" 'echo $SECRET')" = "$secret" ] && echo "WORKS variable"
    [ "$(in_fork "$fork" 'cat /tmp/token secret/own')" = $'on disk\nown' ] && echo "WORKS files" || echo "FAILS files"
    [ "$(inside 'echo $SECRET; cat /tmp/token; pgrep -c python3')" = "$secret"$'\non disk\n1' ] ||
        echo "FAILS the first sandbox"
    [ "$(inside "python3 -c '$ask'" | tail -n 1)" = taken ] || echo "FAILS its port"
}

# differ NAME LINE...: no word of one line is in another.
differ() {
    local name=$1
    shift
    if [ "$(printf '%s\n' "$@" | tr ' ' '\n' | sort | uniq -d | wc -l)" -eq 0 ] && [ -n "$1" ]; then
        echo "REFUSED $name all of them differ"
    else
        echo "SUCCEEDED $name $*"
    fi
}

attack() {
    local fork begin now words=() ports='' found='' n=0 text pids
    begin=$(date +%s)
    words+=("$(inside "python3 -c '$ask'" | head -n 1)")
    pids=$(live inspect "$stays" | field pid)
    for fork in $(fork_of "$stays" -n 3); do
        n=$((n + 1))
        text=$(in_fork "$fork" "python3 -c '$ask'")
        words+=("${text%$'\n'*}")
        ports+=${text##*$'\n'}
        pids+=" $(live inspect "$fork" | field pid)"
        [ -z "$(live ps "$fork" | sed 1d)" ] || found+=" $(live ps "$fork")"
        [ "$(in_fork "$fork" 'cat d/e/f f d/new; ls secret')" = $'below\nbelow\nkept\nown' ] ||
            echo "SUCCEEDED hide-below $(in_fork "$fork" 'ls -lR . 2>&1')"
        ! in_fork "$fork" 'env; cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline; cat out/file host/etc/shadow' 2>/dev/null |
            grep -qaF "$secret" || echo "SUCCEEDED variable"
        now=$(in_fork "$fork" 'date +%s')
        [ "$now" -ge "$begin" ] && [ "$now" -le "$(date +%s)" ] || echo "SUCCEEDED old-clock $now"
    done
    [ "$n" -eq 3 ] || echo "OTHER forks $n"
    differ same-random "${words[@]}"
    differ same-pid "$(tr ' ' '\n' <<<"$pids")"
    [ "$ports" = freefreefree ] && echo "REFUSED same-port each can have it" || echo "SUCCEEDED same-port $ports"
    [ -z "$found" ] && echo "REFUSED same-memory nothing runs in a fork" || echo "SUCCEEDED same-memory $found"
    echo "INVISIBLE variable"
    echo "REFUSED hide-below what was below is there"
    # A hostile root. If its own directories became links nothing is created from it, and it lives
    # on.
    refused link-at-tmp fork "$hostile" </dev/null
    refused link-at-tmp-snapshot snapshot "$hostile" "never-$$-$who" </dev/null
    in_fork "$hostile" 'cd /; for name in tmp workspace home; do mv $name old/link-$name; mkdir $name; done; mkdir home/agent
        ln -s '"$T"'/outside /tmp/out; ln -s '"$T"'/outside /workspace/out; ln -s '"$T"'/outside /srv' || echo "OTHER hostile"
    # Otherwise the copy shows nothing of the host, and writes nothing to it.
    n=0
    for fork in "$hostile" $(fork_of "$hostile" -n 2); do
        n=$((n + 1))
        text=$(in_fork "$fork" 'for name in tmp/out workspace/out srv var old/link-tmp old/link-home; do
            cat /$name/file; echo x >/$name/x; done; echo "seen by $name"; ls /' 2>&1) || true
        [[ $text != *"$secret"* && $text == *"seen by "* ]] || echo "SUCCEEDED link-out $text"
    done
    [ "$n" -eq 3 ] || echo "OTHER hostile-forks $n"
    if [ "$(ls -A "$T/outside")" = file ] && [ "$(cat "$T/outside/file")" = "$secret" ]; then
        echo "INVISIBLE link-out"
    else
        echo "SUCCEEDED link-out $(ls -A "$T/outside")"
    fi
    mapfile -t forks <"$T/forks"
    for fork in "${forks[@]}"; do
        live destroy "$fork" >/dev/null 2>&1 || true
    done
}
