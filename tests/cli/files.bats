#!/usr/bin/env bats
# shellcheck disable=SC2030,SC2031,SC2154  # cli.bash sets $status, $out and others
# Which files the program sees, and what becomes of those it makes.

load cli

# ---- --workdir ----------------------------------------------------------------------------------

owner_and_mode() { stat -c '%u:%g %a' "$1"; }

workdir_rw() {
    me mkdir w
    me sh -c 'echo from-host >w/given'
    carrel run --workdir "$T/w" -c 'pwd; cat given; echo new >made; mkdir d; echo x >d/f; rm given; ls -l made >/dev/null; stat -c %U made'
    [ "$status" -eq 0 ]
    [ "$out" = $'/workspace\nfrom-host\nagent' ]
    [ ! -e "$T/w/given" ]
    [ "$(cat "$T/w/made")" = new ]
    # They have the owner of the directory, not an id without a name.
    local want
    want=$(stat -c %u:%g "$T/w")
    [ "$(owner_and_mode "$T/w/made")" = "$want 644" ]
    [ "$(owner_and_mode "$T/w/d")" = "$want 755" ]
    [ "$(owner_and_mode "$T/w/d/f")" = "$want 644" ]
}
@test "--workdir: the directory is /workspace; what is made there belongs to its owner" { both workdir_rw; }

workdir_others() {
    mkdir "$T/w"
    echo theirs >"$T/w/file"
    echo secret >"$T/w/secret"
    chown 4242:4343 "$T/w" "$T/w/file"
    chmod 600 "$T/w/file" "$T/w/secret"
    carrel run --workdir "$T/w" -c 'cat file; echo new >made; cat secret'
    [ "$(head -n 1 <<<"$out")" = theirs ]
    [[ "$out" != *secret* ]] # root's file in a user's directory stays root's
    [ "$(owner_and_mode "$T/w/made")" = "4242:4343 644" ]
    # Another user inside, the same owner outside.
    carrel run --user root --workdir "$T/w" -c 'echo new >by-root; chown 12:34 by-root 2>/dev/null; :'
    [ "$(owner_and_mode "$T/w/by-root")" = "4242:4343 644" ]
    carrel run --user 77 --workdir "$T/w" -c 'echo new >by-77'
    [ "$(owner_and_mode "$T/w/by-77")" = "4242:4343 644" ]
}
@test "as root, --workdir of another user: files are that user's" { only root workdir_others; }

workdir_ro() {
    me mkdir w
    me sh -c 'echo given >w/f'
    carrel run --workdir "$T/w:ro" -c 'cat f; echo x >f; echo x >new; rm -f f; mkdir d; touch -d 2000-01-01 f; chmod 777 f; :'
    [ "$out" = given ]
    [ "$(grep -c 'Read-only file system' <<<"$err")" -ge 5 ]
    [ "$(ls "$T/w")" = f ]
    [ "$(cat "$T/w/f")" = given ]
}
@test "--workdir DIR:ro cannot be written" { both workdir_ro; }

workdir_forms() {
    me mkdir "a dir" 'colon:dir' w
    me touch "a dir/in-a" "colon:dir/in-c" w/in-w
    carrel run --workdir "$T/a dir" -- ls
    [ "$out" = in-a ]
    carrel run --workdir "$T/colon:dir" -- ls
    [ "$out" = in-c ]
    carrel run --workdir "$T/colon:dir:ro" -- ls
    [ "$out" = in-c ]
    carrel run --workdir w -- ls
    [ "$out" = in-w ]
    carrel run --workdir ./w/../w:rw -- ls
    [ "$out" = in-w ]
    me ln -s w link
    carrel run --workdir link -- ls
    is_one_error 125 "carrel: --workdir: 'link': is a link; *: name its target"
}
@test "--workdir takes relative paths, spaces and colons, and no link" { both workdir_forms; }

below_tmp() {
    local dir
    dir=$(me mktemp -d /tmp/carrel-cli-below.XXXXXX)
    _cli_dirs+=("$dir")
    me touch "$dir/here"
    carrel run --workdir "$dir" -- ls
    [ "$out" = here ]
    carrel run --mount "$dir:/tmp/inside" -- ls /tmp/inside
    [ "$out" = here ]
}
@test "a directory of the host's /tmp can be shown, also below /tmp inside" { both below_tmp; }

setuid_bits() {
    me mkdir w
    cp /bin/true "$T/w/given" && chmod 755 "$T/w/given"
    [ "$who" = root ] || chown "$(me id -u):$(me id -g)" "$T/w/given"
    carrel run --workdir "$T/w" -- /usr/bin/python3 -c '
import os, sys
def attempt(what, *args):
    try:
        what(*args)
    except OSError:
        pass
def write(path, mode):
    os.close(os.open(path, os.O_CREAT | os.O_WRONLY, mode))
os.umask(0)
for i, mode in enumerate((0o4755, 0o2755, 0o6777, 0o4711)):
    attempt(write, "open%d" % i, mode)
    attempt(os.mknod, "node%d" % i, mode | 0o100000)
    attempt(os.mkdir, "dir%d" % i, mode)
    attempt(write, "plain%d" % i, 0o755)
    attempt(os.chmod, "plain%d" % i, mode)
    attempt(os.chmod, "given", mode)
    fd = os.open("plain%d" % i, os.O_WRONLY)
    attempt(os.fchmod, fd, mode)
    attempt(os.chmod, "/proc/self/fd/%d" % fd, mode)
    import ctypes
    ctypes.CDLL(None).syscall(452, -100, b"plain%d" % i, mode, 0)  # fchmodat2
print("tried")'
    [ "$out" = tried ]
    [ -e "$T/w/plain3" ]
    find "$T/w" -type f -perm /6000 -ls
    [ -z "$(find "$T/w" -type f -perm /6000)" ]
    carrel run --workdir "$T/w" -c 'mknod null c 1 3; mknod disk b 8 0; :'
    [ -z "$(find "$T/w" -type c -o -type b)" ]
}
@test "no set-uid or set-gid file and no device can be planted in --workdir" { both setuid_bits; }

nosuid_inside() {
    mkdir "$T/w"
    cp /usr/bin/id "$T/w/id"
    chmod 4755 "$T/w/id"
    [ "$who" = root ] || chown "$(me id -u)" "$T/w" "$T/w/id"
    carrel run --workdir "$T/w" --user 500 -- ./id -u
    [ "$out" = 500 ]
}
@test "a set-uid file of the host has no effect inside" { both nosuid_inside; }

# ---- --mount ------------------------------------------------------------------------------------

mounts() {
    me mkdir a b
    me sh -c 'echo in-a >a/f; echo in-b >b/f; echo alone >single'
    carrel run --mount "$T/a:/data" --mount "$T/b:/opt/deep/er:rw" --mount "$T/single:/etc/single.conf" \
        -c 'cat /data/f /opt/deep/er/f /etc/single.conf; echo x >/data/n; echo x >/opt/deep/er/n; echo x >/etc/single.conf; :'
    [ "$out" = $'in-a\nin-b\nalone' ]
    [ "$(grep -c 'Read-only file system' <<<"$err")" -eq 2 ]
    [ ! -e "$T/a/n" ]
    [ "$(stat -c %u "$T/b/n")" = "$(stat -c %u "$T/b")" ]
    carrel run --mount "$T/single:/workspace/s:rw" -c 'echo changed >s'
    [ "$(cat "$T/single")" = changed ]
    carrel run --mount "$T/a:/data:rw" -c 'rm /data/f && rmdir /data'
    [ -d "$T/a" ]
    [ ! -e "$T/a/f" ]
}
@test "--mount: directories and files, read-only unless :rw, at places that need not exist" { both mounts; }

nested_mounts() {
    me mkdir -p a/sub b w/data
    me sh -c 'echo a >a/f; echo b >b/f'
    carrel run --mount "$T/b:/m/sub" --mount "$T/a:/m" -c 'cat /m/f /m/sub/f'
    [ "$out" = $'a\nb' ]
    carrel run --workdir "$T/w" --mount "$T/b:/workspace/data:ro" -c 'cat data/f; echo x >data/f; echo x >here'
    [ "$out" = b ]
    [[ "$err" == *"Read-only"* ]]
    [ -e "$T/w/here" ]
    # A place that is missing in a directory of the host is not made there.
    carrel run --workdir "$T/w" --mount "$T/b:/workspace/nowhere" -- true
    is_one_error 125 "carrel: *'/workspace/nowhere' does not exist*"
    [ ! -e "$T/w/nowhere" ]
}
@test "--mount: one below another, in any order; nothing is made in the host's directories" { both nested_mounts; }

mounts_through_links() {
    me mkdir -p w b outside
    me sh -c 'echo precious >outside/f; ln -s "$PWD/outside" w/link; ln -s /etc w/etc; ln -s /proc/self/root w/magic; ln -s nowhere w/dangling; ln -s ../../.. w/up'
    local name
    for name in link etc magic dangling up link/sub etc/x up/x; do
        carrel run --workdir "$T/w" --mount "$T/b:/workspace/$name" -- true
        is_one_error 125 "carrel: *'/workspace/$name' leads through a symbolic link; refused"
    done
    [ "$(ls "$T/outside")" = f ]
}
@test "--mount: a target that leads through a link is refused" { both mounts_through_links; }

mounts_over_system() {
    me mkdir a
    me sh -c 'echo mine >a/f'
    carrel run --mount "$T/a:/usr/share/doc" --mount "$T/a:/var/data" --mount "$T/a:/home/agent/d" \
        -c 'cat /usr/share/doc/f /var/data/f "$HOME/d/f"'
    [ "$out" = $'mine\nmine\nmine' ]
}
@test "--mount: over directories of the system, and in the private ones" { both mounts_over_system; }

mount_flags() {
    # Single devices (and what they cover in /proc) are not places where a program could lie.
    me mkdir a
    carrel run --mount "$T/a:/a:rw" -c 'while read -r _ _ _ _ at how _; do
        case $at in /dev/pts | /dev/shm | /proc) ;; /dev/* | /proc/*) continue;; esac
        case $how in *nosuid*) ;; *) echo "$at: $how";; esac
        case $at,$how in *nodev* | /dev/pts,*) ;; *) echo "$at: $how";; esac
    done </proc/self/mountinfo'
    [ -z "$out" ]
    carrel run --mount "$T/a:/a:rw" -c 'grep -E "shared:|master:|propagate_from:" /proc/self/mountinfo; :'
    [ -z "$out" ]
}
@test "every mount is nosuid, nodev and private" { both mount_flags; }

hidden_by_permission() {
    # What the caller may not read stays unreadable in a mount.
    mkdir "$T/a" && echo secret >"$T/a/f" && chmod 600 "$T/a/f" && chown 0:0 "$T/a/f" && chown 4242 "$T/a"
    carrel run --mount "$T/a:/a" -- cat /a/f
    [ "$status" -ne 0 ]
    [[ "$out$err" != *secret* ]]
}
@test "a mount gives no right that the file's owner did not give" {
    [ "$(id -u)" -eq 0 ] || skip "makes files of two owners"
    both hidden_by_permission
}

# ---- --root -------------------------------------------------------------------------------------

other_root() {
    tiny_root
    echo "root:x:0:0::/:/bin/sh" >"$T/root/etc/passwd"
    echo "keep me" >"$T/root/etc/motd"
    mkdir -p "$T/root/tmp" "$T/root/home/somebody"
    carrel run --root "$T/root" --hostname tiny -- /bin/sh -c 'cat /etc/motd /etc/hostname /srv/f; ls /'
    [ "$status" -eq 0 ]
    [ "$(head -n 3 <<<"$out")" = $'keep me\ntiny\nserved' ]
    grep -qx srv <<<"$out"
    [[ $'\n'"$out"$'\n' != *$'\nusr\n'* ]] || [ -d "$T/root/usr" ]
    carrel run --root "$T/root" -- sh -c 'pwd; : >/workspace/x && : >/tmp/x && : >"$HOME/x"; ls /home; cat /proc/self/status >/dev/null; : </dev/null'
    [ "$status" -eq 0 ]
    [ "$out" = $'/workspace\nagent' ]
    carrel run --root "$T/root" -- sh -c 'for d in / /bin /etc /srv /lib; do touch $d/x 2>/dev/null && echo "$d"; done; :'
    [ -z "$out" ]
    [ ! -e "$T/root/x" ]
    carrel run --root "$T/root" -- python3 -c 1
    is_one_error 127 "carrel: *"
    carrel run --root root -- /bin/sh -c 'cat /srv/f'
    [ "$out" = served ]
}
@test "--root: another root, read-only, with the private places of any sandbox" { both other_root; }

root_with_mounts() {
    tiny_root
    me mkdir w
    carrel run --root "$T/root" --workdir "$T/w" --mount "$T/root/srv:/srv/again" -- sh -c 'touch made; cat /srv/again/f'
    if [ "$status" -eq 0 ]; then
        [ "$out" = served ]
        [ ! -e "$T/root/srv/again" ]
    else
        is_one_error 125 "carrel: *'/srv/again' does not exist*"
    fi
    carrel run --root "$T/root" --workdir "$T/w" --mount "$T/root/srv:/mnt/again" -- sh -c 'touch made; cat /mnt/again/f'
    [ "$out" = served ]
    [ -e "$T/w/made" ]
}
@test "--root goes with --workdir and --mount" { both root_with_mounts; }

hostile_root() {
    # A root that an attacker prepared: its names lead out of it.
    tiny_root
    rm -rf "$T/root/tmp" "$T/root/home" "$T/root/etc/hostname" "$T/root/etc/hosts"
    mkdir "$T/victim"
    echo precious >"$T/victim/f"
    ln -s "$T/victim" "$T/root/tmp"
    ln -s "$T/victim" "$T/root/home"
    ln -s "$T/victim" "$T/root/proc"
    ln -s "$T/victim" "$T/root/dev"
    ln -s "$T/victim" "$T/root/workspace"
    ln -s "$T/victim/f" "$T/root/etc/hostname"
    ln -s /etc/shadow "$T/root/etc/hosts"
    carrel run --root "$T/root" -- /bin/sh -c ': >/workspace/x; : >/tmp/x; : >/dev/null; cat /etc/hosts /etc/hostname; echo ran'
    [[ "$out" == *ran ]] || is_one_error 125 "carrel: *"
    [[ "$out" != *root:* && "$out" != *precious* ]]
    [ "$(ls -A "$T/victim")" = f ]
    [ "$(cat "$T/victim/f")" = precious ]
}
@test "--root: links in it lead nowhere outside" { both hostile_root; }

# ---- --cwd --------------------------------------------------------------------------------------

directories() {
    me mkdir -p w/sub
    carrel run --cwd /tmp -- pwd
    [ "$out" = /tmp ]
    carrel run --workdir "$T/w" --cwd sub -- pwd
    [ "$out" = /workspace/sub ]
    carrel run --workdir "$T/w" --cwd ./sub/../sub/. -- pwd
    [ "$out" = /workspace/sub ]
    carrel run --cwd /usr/../usr/bin -- pwd
    [ "$out" = /usr/bin ]
    carrel run --cwd / -- pwd
    [ "$out" = / ]
    carrel run --cwd "$T" -- pwd
    is_one_error 125 "carrel: *working directory*"
}
@test "--cwd: absolute, or relative to /workspace" { both directories; }

directory_tricks() {
    # Descriptors of carrel's own must not be a way out, whatever their numbers.
    local fd
    me mkdir w
    for fd in 0 1 2 3 4 5 6 7 8 9 10 11 12 64 65; do
        carrel run --cwd "/proc/self/fd/$fd" -c 'pwd; ls -A'
        is_one_error 125 "carrel: *working directory*"
        carrel run --cwd "/proc/1/fd/$fd" -c 'pwd; ls -A'
        is_one_error 125 "carrel: *working directory*"
    done
    for fd in /proc/self/root /proc/1/root /proc/1/cwd /proc/self/cwd/..; do
        carrel run --cwd "$fd" -c 'ls -A /; ls -A . ; cat ./etc/shadow ./root/* 2>/dev/null'
        [ "$status" -ne 0 ] || ! grep -q '^root:' <<<"$out"
    done
    # A link that an earlier run left in the workspace.
    me ln -s /proc/1/root/etc w/evil
    me ln -s "$T" w/out
    carrel run --workdir "$T/w" --cwd evil -c 'cat shadow 2>/dev/null'
    [ -z "$out" ]
    carrel run --workdir "$T/w" --cwd out -c 'ls -A'
    is_one_error 125 "carrel: *working directory*"
}
@test "--cwd through /proc and links leads nowhere outside" { both directory_tricks; }

removed_directory() {
    # The caller's own directory is gone: that is no reason not to run.
    me mkdir gone
    status=0
    me sh -c 'cd gone && rmdir ../gone && exec "$1" run --quiet -- echo fine' sh "$CARREL" \
        >"$T/.out" 2>"$T/.err" </dev/null || status=$?
    _collect
    [ "$out" = fine ]
}
@test "the caller's directory may be gone" { both removed_directory; }

# ---- what is there, and what is not -------------------------------------------------------------

etc() {
    carrel run -c 'cat /etc/passwd; echo --; cat /etc/group; echo --; cat /etc/hosts /etc/resolv.conf >/dev/null && cat /etc/hostname'
    [ "$status" -eq 0 ]
    [ "$(grep -c . <<<"${out%%--*}")" -eq 3 ]
    [[ "$out" == *carrel ]]
    carrel run -- ls -A /etc
    local name
    for name in shadow gshadow sudoers sudoers.d ssh machine-id fstab crontab cron.d docker kubernetes \
        wpa_supplicant NetworkManager krb5.keytab .git-credentials profile.d environment; do
        ! grep -qx "$name" <<<"$out" || [ "$name" = "" ]
    done
    for name in passwd group hosts hostname resolv.conf nsswitch.conf; do
        grep -qx "$name" <<<"$out"
    done
    carrel run -c 'getent passwd agent >/dev/null && getent group agent >/dev/null && getent hosts localhost >/dev/null && date >/dev/null && awk "BEGIN { print 1 }"'
    [ "$out" = 1 ]
}
@test "/etc is synthetic: names that programs need, and no secret" { both etc; }

absent() {
    carrel run -c 'ls -A / | sort | tr "\n" " "'
    local name
    for name in $out; do
        case "$name" in
        bin | dev | etc | home | lib | lib32 | lib64 | libx32 | proc | run | sbin | tmp | usr | var | workspace) ;;
        *)
            echo "what is /$name?"
            false
            ;;
        esac
    done
    carrel run -c 'ls -A /home /var /run /tmp /var/tmp /home/agent /workspace /dev/shm | grep -v "^/" | sort -u | tr "\n" " "'
    [ "$(tr -d ' \n' <<<"$out")" = agenttmp ]
    carrel run -c 'ls /dev | sort | tr "\n" " "'
    [ "$out" = "fd full null ptmx pts random shm stderr stdin stdout tty urandom zero " ]
    carrel run -c 'cat /proc/1/environ /proc/1/cmdline /proc/1/maps /proc/kcore /proc/kallsyms /proc/keys /proc/sysrq-trigger 2>/dev/null | tr "\0" "\n" | head -c 300'
    [[ "$out" != *XDG* && "$out" != *HOME=* ]]
    carrel run -c 'ls /proc | grep -c "^[0-9]*$"'
    [ "$out" -le 4 ]
}
@test "nothing of the host's homes, variable data, devices or processes is there" { both absent; }

private() {
    carrel run -c 'echo mine >/tmp/left; echo mine >/workspace/left; echo mine >/dev/shm/left; echo mine >/var/tmp/left'
    carrel run -c 'cat /tmp/left /workspace/left /dev/shm/left /var/tmp/left'
    [ "$status" -ne 0 ]
    [ -z "$out" ]
    [ ! -e /tmp/left ] && [ ! -e /dev/shm/left ] && [ ! -e /var/tmp/left ] && [ ! -e /workspace/left ]
}
@test "what one run leaves, the next does not see, nor the host" { both private; }

descriptors() {
    echo secret >"$T/secret"
    exec 17<"$T/secret" 18<"$T" 200<"$T/secret"
    carrel run -c 'ls /proc/self/fd | tr "\n" " "; cat <&17'
    exec 17<&- 18<&- 200<&-
    [[ "$out" == "0 1 2 3 "* ]]
    [[ "$out" != *secret* && "$out" != *17* && "$out" != *200* ]]
}
@test "no descriptor of the caller's is open inside" { both descriptors; }

umask_and_limits() {
    status=0
    me sh -c 'umask 077; ulimit -f 1; exec "$1" run --quiet --journal off -c "umask; : >f; stat -c %a f"' sh "$CARREL" \
        >"$T/.out" 2>"$T/.err" || status=$?
    _collect
    [ "$out" = $'0022\n644' ]
}
@test "the caller's umask is not the program's" { both umask_and_limits; }
