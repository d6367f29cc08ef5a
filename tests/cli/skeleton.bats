#!/usr/bin/env bats
# shellcheck disable=SC2030,SC2031,SC2154  # cli.bash sets $status, $out and others
# The root that sandboxes of root share: made once, never changed, and gone when it shall be.
#
# Each test has a /run of its own: others run sandboxes on this machine meanwhile.

load cli

# in_own_run SCRIPT: a shell with an empty /run; $CARREL and $T are known there.
in_own_run() {
    carrel run -- true # skips nothing later on: it works here at all
    [ "$status" -eq 0 ]
    export CARREL T
    status=0
    # shellcheck disable=SC2016 # for the inner shell
    out=$(me unshare --mount --propagation private \
        sh -c 'set -e; mount -t tmpfs -o mode=755,nodev,nosuid,noexec tmpfs /run; eval "$1"' _ "$1" \
        2>&1 </dev/null) || status=$?
    printf '%s -> %s\n' "$out" "$status"
    [ "$status" -eq 0 ]
}

made_once() {
    # shellcheck disable=SC2016
    in_own_run '
        for _ in 1 2 3; do "$CARREL" run -- true; done
        ls /run/carrel
        "$CARREL" run --user root -- true # has another /etc/passwd
        before=$(find /run/carrel/root-* -printf "%p %y %m %i %T@ %C@ %l\n" | sort)
        "$CARREL" run --user root -c "touch /etc/passwd /dev/null /dev/x /etc/x /x; chmod 777 /etc /dev/null /dev
            rm /etc/hosts; ln -s a /dev/b; mkdir /home/x; echo x >>/etc/hosts; exec 3<>/dev/null
            echo x >&3" 2>/dev/null
        "$CARREL" run -- sh -c "! touch /dev/null /etc/hosts" 2>/dev/null
        test "$before" = "$(find /run/carrel/root-* -printf "%p %y %m %i %T@ %C@ %l\n" | sort)"'
    [ "$(grep -c '^root-' <<<"$out")" -eq 1 ]
    [ "$(grep -cv '^root-' <<<"$out")" -eq 1 ] # the lock
}
@test "the skeleton is made once, and no program changes it" { only root made_once; }

same_inside() {
    # With a mount at a place of its own the root is made by the sandbox itself.
    local look="ls -RAl --time-style=+ / --ignore=usr --ignore=proc --ignore=m | sed 's/ root / x /;s/ root / x /
        s/ nobody / x /;s/ nogroup / x /;s/^total.*//;s/  */ /g;s/^\\(.\\{10\\}\\) [0-9]* x x [0-9]* /\\1 /'
        cat /etc/passwd /etc/group /etc/hosts /etc/hostname /etc/nsswitch.conf; cat /dev/null
        head -c 8 /dev/zero | od; head -c 1 /dev/urandom | wc -c; echo x >/dev/full; ls /proc/sys"
    mkdir "$T/m"
    carrel run --user 7:8 --hostname desk -c "$look"
    local shared=$out
    carrel run --user 7:8 --hostname desk --mount "$T/m:/m" -c "$look"
    diff <(echo "$shared") <(echo "$out")
    [[ "$shared" == *agent:x:7:8:*desk* ]]
}
@test "a program sees the same root, shared or its own" { only root same_inside; }

is_restricted() {
    # shellcheck disable=SC2016
    in_own_run '"$CARREL" run -- cat /proc/self/mountinfo'
    grep -E ' / / | /carrel/root-[0-9a-f]+ / ' <<<"$out" | grep ' / ro,nosuid,nodev'
    grep ' /dev ro,nosuid,noexec' <<<"$out"
    [ "$(grep -c '/root-' <<<"$out")" -eq 2 ]
}
@test "it is mounted read-only, nosuid and, but for /dev, nodev" { only root is_restricted; }

other_names() {
    # shellcheck disable=SC2016
    in_own_run '
        for i in $(seq 1 20); do test "$("$CARREL" run --hostname "h$i" -- cat /etc/hostname)" = "h$i"; done
        ls /run/carrel | grep -c root-
        "$CARREL" cleanup >/dev/null
        ls /run/carrel'
    [ "$out" = $'16\nlock\nsandboxes' ]
}
@test "there are not more than sixteen, and cleanup removes them" { only root other_names; }

in_use() {
    # shellcheck disable=SC2016
    in_own_run '
        mkfifo "$T/in" "$T/out"
        "$CARREL" run --stdin -c "echo started; read line; cat /etc/hostname; ls /usr/bin/env" \
            <"$T/in" >"$T/out" &
        exec 3>"$T/in" 4<"$T/out"
        read line <&4
        "$CARREL" cleanup >/dev/null
        ls /run/carrel | grep -c old-
        "$CARREL" run -- true
        echo go >&3
        cat <&4
        wait
        "$CARREL" cleanup >/dev/null
        ls /run/carrel'
    [ "$out" = $'1\ncarrel\n/usr/bin/env\nlock\nsandboxes' ]
}
@test "cleanup leaves one alone that is in use" { only root in_use; }

cannot_be_made() {
    # shellcheck disable=SC2016
    in_own_run '
        "$CARREL" run -- true
        rm -r /run/carrel/root-*
        mount -o remount,nr_inodes=20 /run
        "$CARREL" run -- cat /etc/hostname
        ls /run/carrel'
    [ "$out" = $'carrel\nlock' ]
}
@test "where none can be made, a sandbox makes its own root" { only root cannot_be_made; }
