# shellcheck shell=bash disable=SC2034,SC2154
# Hostile archives, unpacked: they try to reach files outside of their directory, in the sandbox and
# on the host.
prepare() {
    all_attempts=no
    me mkdir "$T/tars" "$T/victims"
    echo original | me tee "$T/victims/file" >/dev/null
    stay
    inside 'mkdir box; echo original >victim; mkdir beside'
    me /usr/bin/python3 - "$T" <<'END'
import io, sys, tarfile
top = sys.argv[1]
def make(name, *entries):
    with tarfile.open(f"{top}/tars/{name}.tar", "w", format=tarfile.PAX_FORMAT) as tar:
        for path, kind, extra in entries:
            info = tarfile.TarInfo(path)
            info.type = kind
            data = None
            if kind == tarfile.REGTYPE:
                info.size = len(extra)
                data = io.BytesIO(extra)
            elif extra:
                info.linkname = extra
            info.mode = 0o6777
            tar.addfile(info, data)
R, S, L, D = tarfile.REGTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.DIRTYPE
make("dotdot", ("../victim", R, b"changed"))
make("dotdot-deep", ("a/b/../../../victim", R, b"changed"))
make("absolute", (f"{top}/victims/file", R, b"changed"))
make("absolute-inside", ("/workspace/victim", R, b"changed"))
make("link-then-file", ("l", S, ".."), ("l/victim", R, b"changed"))
make("link-to-host", ("l", S, f"{top}/victims"), ("l/file", R, b"changed"))
make("link-chain", ("a", S, "."), ("b", S, "a/.."), ("b/victim", R, b"changed"))
make("hardlink-out", ("h", L, "../victim"), ("h", R, b"changed"))
make("hardlink-absolute", ("h", L, "/workspace/victim"), ("h", R, b"changed"))
make("hardlink-through-link", ("l", S, ".."), ("h", L, "l/victim"), ("h", R, b"changed"))
make("final-link", ("f", S, "../victim"), ("f", R, b"changed"))
make("directory-then-link", ("d", D, ""), ("d", S, ".."), ("d/victim", R, b"changed"))
make("replaced-by-directory", ("d", S, "../beside"), ("d", D, ""), ("d/new", R, b"changed"))
make("device", ("device", tarfile.CHRTYPE, ""), ("fifo", tarfile.FIFOTYPE, ""))
make("nothing")
bomb = tarfile.TarInfo("bomb")
bomb.size = 1 << 50
open(f"{top}/tars/size.tar", "wb").write(bomb.tobuf(tarfile.PAX_FORMAT) + b"x" * 4096)
open(f"{top}/tars/noise.tar", "wb").write(bytes(range(256)) * 400)
make("deep", ("/".join(["d"] * 1000), R, b"x"))
make("long", ("n" * 300, R, b"x"))
END
}
clean_up() { leave; }

bare() {
    me mkdir "$T/bare" "$T/bare/box"
    echo original | me tee "$T/bare/victim" >/dev/null
    me tar -xPf "$T/tars/dotdot.tar" -C "$T/bare/box" 2>/dev/null
    [ "$(cat "$T/bare/victim")" = changed ] && echo "SUCCEEDED dotdot"
    me tar -xPf "$T/tars/absolute.tar" -C "$T/bare/box" 2>/dev/null
    [ "$(cat "$T/victims/file")" = changed ] && echo "SUCCEEDED absolute"
    echo original | me tee "$T/victims/file" >/dev/null
    me tar -xPf "$T/tars/link-to-host.tar" -C "$T/bare/box" 2>/dev/null
    [ "$(cat "$T/victims/file")" = changed ] && echo "SUCCEEDED link-to-host"
    echo original | me tee "$T/victims/file" >/dev/null
}

control() {
    me mkdir -p "$T/good/sub"
    echo text | me tee "$T/good/sub/file" >/dev/null
    me tar -C "$T/good" -cf "$T/good.tar" .
    inside 'mkdir good'
    live import "$stays:good" <"$T/good.tar" && [ "$(live cat "$stays:good/sub/file")" = text ] &&
        echo "WORKS import"
}

# Refused or made harmless: only the directory has changed.
attack() {
    local tar name
    for tar in "$T"/tars/*.tar; do
        name=$(basename "$tar" .tar)
        inside 'rm -rf box; mkdir box'
        live import "$stays:box" <"$tar" >/dev/null 2>&1 || true
        if [ "$(inside 'cat victim; ls -A . beside; find box -type c -o -type p -o -perm /6000')" = \
            $'original\n.:\nbeside\nbox\ngood\nvictim\n\nbeside:' ] &&
            [ "$(cat "$T/victims/file")" = original ]; then
            echo "REFUSED $name nothing but the directory has changed"
        else
            echo "SUCCEEDED $name $(inside 'cat victim; ls -A . beside; find box')"
        fi
    done
}

more() {
    local name
    for name in dotdot absolute link-then-file hardlink-out size noise deep long; do
        held "$name is an error" refused "$name" import "$stays:box" <"$T/tars/$name.tar"
    done
}
