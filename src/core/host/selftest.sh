#!/bin/sh
# selftest.sh - the programs of `carrel test` that a shell can run, each in a sandbox of its own.
#
#   selftest.sh CASE MARK PROCESS PROBE PID_NAMESPACE [ARGUMENT]
#
# MARK and PROCESS: a value of the caller's environment and the name of a process of the host, which
# no program inside may see. PROBE: carrel's own executable. PID_NAMESPACE: that of the host.
# Most cases print "held", or what got through.
name=$1
mark=$2
process=$3
probe=$4
host_pids=$5
argument=${6:-}

held_unless() { # held_unless WORD COMMAND...: WORD if the command succeeds
    word=$1
    shift
    if "$@" 2>/dev/null; then echo "$word"; else echo held; fi
}

opens() { (: >>"$1"); }

case $name in
hello) echo hello ;;
exit-42) exit 42 ;;
streams)
    echo to stdout
    echo to stderr >&2
    ;;
write-workspace) echo text >note && cat note ;;

linger)
    trap '' TERM
    "$probe" probe linger "$mark"
    while :; do sleep 1; done
    ;;
memory) dd if=/dev/zero of=/dev/null bs=300M count=1 ;;
two-loops)
    while :; do :; done &
    while :; do :; done
    ;;
fill-bytes) head -c 33554432 /dev/zero >fill ;;
fill-files)
    i=0
    while [ $i -lt 8000 ]; do
        : >f$i || exit 1
        i=$((i + 1))
    done
    ;;
much-output) head -c 1048576 /dev/zero ;;

environment)
    case "$(env)" in
    *"$mark"*) echo found ;;
    *) echo held ;;
    esac
    ;;
environment-of-init)
    if cat /proc/1/environ >/dev/null 2>&1; then echo read; else echo held; fi
    ;;
descriptors)
    n=0
    for fd in /proc/self/fd/*; do
        [ ! -L "$fd" ] || n=$((n + 1)) # one that was open for the list is closed again
    done
    echo "$n"
    ;;
host-file) cat "$argument" 2>/dev/null || echo held ;;
password-hashes) head -c 1 /etc/shadow 2>/dev/null || echo held ;;
homes)
    for dir in /root /home/*; do
        [ ! -e "$dir" ] || echo "$dir"
    done
    ;;
write-usr)
    held_unless written touch /usr/carrel-test
    rm -f /usr/carrel-test 2>/dev/null
    ;;
write-mount)
    cat /mnt/planted >/dev/null || echo unreadable
    held_unless opened opens /mnt/planted
    ;;
host-processes)
    case "$(cat /proc/[0-9]*/comm)" in
    *"$process"*) echo seen ;;
    *) echo held ;;
    esac
    ;;
kill-all)
    pids=$(readlink /proc/self/ns/pid)
    if [ -z "$pids" ] || [ "$pids" = "$host_pids" ]; then
        echo the host is in reach
        exit
    fi
    sleep 20 &
    kill -9 -1
    wait $!
    echo ended its own with $?
    ;;
core-pattern) held_unless opened opens /proc/sys/kernel/core_pattern ;;
sysrq) # masked by /dev/null where it is there
    if [ -c /proc/sysrq-trigger ]; then echo held; else held_unless opened opens /proc/sysrq-trigger; fi
    ;;
devices) cd /dev && echo * ;;
interfaces) tail -n +3 /proc/net/dev | cut -d: -f1 | tr -d ' ' ;;
capabilities)
    while read -r key value; do
        case $key in
        Cap*) [ $((0x$value)) = 0 ] || echo "$key $value" ;;
        esac
    done </proc/self/status
    echo none
    ;;
new-privileges)
    while read -r key value; do
        [ "$key" != NoNewPrivs: ] || echo "$value"
    done </proc/self/status
    ;;
set-uid)
    : >f
    chmod 4755 f 2>/dev/null
    held_unless set test -u f
    ;;
*)
    echo "no case '$name'" >&2
    exit 2
    ;;
esac
