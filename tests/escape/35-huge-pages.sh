# shellcheck shell=bash disable=SC2034,SC2154
# A few pages are reserved while the case runs, if this is root; else the file alone can be shown.
reserved=/proc/sys/vm/nr_hugepages

prepare() {
    had=$(cat "$reserved")
    ! is_root_suite || echo $((had + 8)) >"$reserved"
    ! is_root_suite || mkdir -p "$T/huge"
    ! is_root_suite || mount -t hugetlbfs -o mode=1777 none "$T/huge"
}

clean_up() {
    ! is_root_suite || umount "$T/huge"
    ! is_root_suite || echo "$had" >"$reserved"
}

# The file system of such pages is refused as a mount.
of_host() {
    local status=0 output
    output=$(box --mount "$T/huge:/huge:ro" -- /bin/true 2>&1) || status=$?
    if [ "$status" -eq 125 ] && [[ $output == *"huge pages"* ]]; then
        echo "REFUSED hugetlbfs $output"
    else
        echo "SUCCEEDED hugetlbfs status $status: $output"
    fi
}

more() {
    ! is_root_suite || all_attempts=no
    ! is_root_suite || held "a file system of huge pages" of_host
}
