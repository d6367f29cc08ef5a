# shellcheck shell=bash disable=SC2034,SC2154
# Without carrel, from within a group of the test, on a group of the test.
prepare() {
    [ "$who" = root ] || return 0
    make_group memory pids freezer unified
    bare_args=("$group")
    wrap=(bash -c 'group=$1 && shift
        for dir in /sys/fs/cgroup/*/"$group"; do echo $$ >"$dir/cgroup.procs"; done
        exec "$@"' - "$group")
}

does_apply() { [ -d /sys/fs/cgroup ] || { echo "there are no cgroups here" && return 1; }; }
