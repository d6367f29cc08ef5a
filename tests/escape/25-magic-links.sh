# shellcheck shell=bash disable=SC2034,SC2154
# Magic links of /proc lead to whatever a process has open. If carrel resolves such a path, it would
# be a descriptor of carrel.
prepare() {
    me mkdir "$T/work"
    echo secret | me tee "$T/file" >/dev/null
    stay --workdir "$T/work"
    inside 'ln -s /proc/self/root root; ln -s /proc/self/cwd cwd; ln -s /proc/1/root init
        ln -s /proc/self/fd/3 three; ln -s /proc/thread-self/root thread; echo inside >file'
}
clean_up() { leave; }

bare() {
    [ "$(me cat "/proc/self/root/$T/file")" = secret ] && echo "SUCCEEDED root"
    [ "$(me env -C "$T" cat /proc/self/cwd/file)" = secret ] && echo "SUCCEEDED cwd"
    [ "$(me sh -c 'exec 3<"$1"; cat /proc/self/fd/3' - "$T/file")" = secret ] && echo "SUCCEEDED fd"
    [ "$(me cat "$T/work/root/$T/file")" = secret ] && echo "SUCCEEDED planted-root"
}

control() {
    live cat "$stays:/proc/meminfo" | has MemTotal && echo "WORKS read-proc"
    [ "$(live cat "$stays:/workspace/file")" = inside ] && echo "WORKS read-file"
}

attack() {
    local n
    refused root cat "$stays:/proc/self/root/etc/passwd"
    refused root-host cat "$stays:/proc/self/root/$T/file"
    refused init-root cat "$stays:/proc/1/root/etc/passwd"
    refused cwd cat "$stays:/proc/self/cwd/file"
    for n in 0 1 2 3 4 5 6 7 8 9 10 11 12; do
        refused fd cat "$stays:/proc/self/fd/$n"
        refused fd-listed ls "$stays:/proc/self/fd/$n/"
    done
    refused planted-root cat "$stays:root/etc/passwd"
    refused planted-cwd cat "$stays:cwd/file"
    refused planted-init cat "$stays:init/etc/passwd"
    refused planted-fd cat "$stays:three"
    refused planted-thread cat "$stays:thread/etc/passwd"
    refused write write "$stays:root/tmp/x" <<<x
    refused make mkdir "$stays:root/tmp/x"
    refused remove rm "$stays:root/workspace/file"
    refused move mv "$stays:file" "$stays:root/tmp/x"
    refused copy-out cp "$stays:root" "$T/taken"
    refused copy-in cp "$T/file" "$stays:root/tmp/x"
    refused export export "$stays:root/tmp"
    refused watch watch --count 1 "$stays:root/tmp"
    refused exe cp "$stays:/proc/1/exe" "$T/taken"
}
