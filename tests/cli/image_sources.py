"""What images are made from, good and hostile: writes all of it below a directory.

usage: image_sources.py DIR

DIR/root.tar{,.gz,.xz,.zst}, DIR/oci/ and oci.tar, DIR/docker-old.tar, DIR/docker-new.tar: one image
each, with the same files. DIR/hostile/NAME.tar: archives that must be refused.
"""

import gzip
import hashlib
import io
import json
import os
import subprocess
import sys
import tarfile

BUSYBOX = "/bin/busybox"
TIME = 1700000000


def entry(name, kind=tarfile.REGTYPE, data=b"", mode=0o644, link="", uid=0):
    info = tarfile.TarInfo(name)
    info.type, info.mode, info.linkname, info.mtime = kind, mode, link, TIME
    info.uid = info.gid = uid
    info.size = len(data)
    return info, data


def folder(name, mode=0o755):
    return entry(name, tarfile.DIRTYPE, mode=mode)


def symlink(name, to):
    return entry(name, tarfile.SYMTYPE, link=to, mode=0o777)


def hardlink(name, to):
    return entry(name, tarfile.LNKTYPE, link=to)


def device(name, kind=tarfile.CHRTYPE):
    info, data = entry(name, kind)
    info.devmajor, info.devminor = 1, 3
    return info, data


def tar(entries, style=tarfile.PAX_FORMAT):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=style, encoding="utf-8",
                      errors="surrogateescape") as archive:
        for info, data in entries:
            archive.addfile(info, io.BytesIO(data))
    return out.getvalue()


def busybox():
    with open(BUSYBOX, "rb") as file:
        return file.read()


def base():
    tools = "sh ls cat id touch true pwd env stat find sort md5sum echo test sleep dd rm mkdir".split()
    return [
        folder("./"),
        folder("./bin"),
        entry("./bin/busybox", data=busybox(), mode=0o755),
        *[hardlink("./bin/" + tool, "./bin/busybox") for tool in tools],
        folder("./etc", 0o555),
        entry("./etc/passwd", data=b"root:x:0:0::/:/bin/sh\nweb:x:33:34::/:/bin/sh\n"),
        entry("./etc/group", data=b"root:x:0:\nstaff:x:50:\n"),
        entry("./etc/motd", data=b"base\n"),
        folder("./gone"),
        entry("./gone/file", data=b"x"),
        entry("./removed", data=b"x"),
        folder("./opaque"),
        entry("./opaque/old", data=b"x"),
        entry("./F\u0151tan\u00fas\u00edtv\u00e1ny.crt", data=b"name"),
        entry("./shut", data=b"shut", mode=0),
        entry("./setuid", data=b"s", mode=0o6755),
        entry("./others", data=b"o", uid=4711),
        folder("./srv/app", 0o700),
        folder("./tmp", 0o1777),
        symlink("./out", "/../../../etc/passwd"),
        device("./null"),
        device("./pipe", tarfile.FIFOTYPE),
    ]


def middle():
    return [
        entry(".wh.gone"),
        entry(".wh.removed"),
        entry("opaque/.wh..wh..opq"),
        entry("opaque/new", data=b"n"),
    ]


def top():
    return [entry("etc/motd", data=b"top\n"), folder("gone"), entry("gone/new", data=b"x")]


def flat():
    hidden = {"./removed", "./gone/file", "./opaque/old"}
    motd = entry("./etc/motd", data=b"top\n")
    kept = [motd if one[0].name == motd[0].name else one for one in base()
            if one[0].name not in hidden]
    return kept + [entry("./opaque/new", data=b"n"), entry("./gone/new", data=b"x")]


CONFIG = {
    "Env": ["PATH=/bin", "A=image", "B=image", "not.a.name=x"],
    "Entrypoint": ["/bin/busybox", "echo", "entry"],
    "Cmd": ["cmd", "line"],
    "WorkingDir": "/srv/app/",
    "User": "web",
}


def sha(data):
    return hashlib.sha256(data).hexdigest()


def pack(tool, data):
    return subprocess.run([tool, "-c"], input=data, stdout=subprocess.PIPE, check=True).stdout


def text(value):
    return json.dumps(value).encode()


def write(path, data):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(data)


def config_of(tars):
    return text({
        "os": "linux", "architecture": "any", "config": CONFIG,
        "rootfs": {"type": "layers", "diff_ids": ["sha256:" + sha(one) for one in tars]},
    })


def oci_files(tars, tags=("v1",)):
    """{path: bytes} of a layout; the layers are packed in different ways."""
    files = {"oci-layout": text({"imageLayoutVersion": "1.0.0"})}

    def blob(data, kind):
        files["blobs/sha256/" + sha(data)] = data
        return {"mediaType": kind, "digest": "sha256:" + sha(data), "size": len(data)}

    packings = [lambda data: gzip.compress(data, mtime=0), lambda data: pack("zstd", data),
                lambda data: data]
    layers = [blob(packings[tars.index(one) % 3](one), "application/vnd.oci.image.layer.v1.tar")
              for one in tars]
    manifest = {
        "schemaVersion": 2,
        "config": blob(config_of(tars), "application/vnd.oci.image.config.v1+json"),
        "layers": layers,
    }
    chosen = blob(text(manifest), "application/vnd.oci.image.manifest.v1+json")
    files["index.json"] = text({
        "schemaVersion": 2,
        "manifests": [
            dict(chosen, annotations={"org.opencontainers.image.ref.name": tag}) for tag in tags
        ],
    })
    return files


def docker_manifest(config, layers, tag):
    return text([{"Config": config, "RepoTags": [tag], "Layers": layers}])


def docker_old(tars):
    """As engines wrote it for years: directories, and links between layers."""
    config = config_of(tars)
    names = ["%064x/layer.tar" % i for i in range(len(tars))]
    entries = [folder("%064x" % i) for i in range(len(tars))]
    for i, one in enumerate(tars):
        entries.append(symlink(names[i], "../shared.tar") if i == 2 else entry(names[i], data=one))
    entries.append(entry("shared.tar", data=tars[2]))
    entries += [entry(sha(config) + ".json", data=config),
                entry("manifest.json", data=docker_manifest(sha(config) + ".json", names, "me:1"))]
    return tar(entries)


def docker_new(tars):
    """As engines write it now: an OCI layout, and a manifest.json beside."""
    files = oci_files(tars)
    config = config_of(tars)
    layers = ["blobs/sha256/" + sha(one) for one in tars]
    files["manifest.json"] = docker_manifest("blobs/sha256/" + sha(config), layers, "me:1")
    return tar([entry(name, data=data) for name, data in files.items()])


def raw(name, kind=b"0", size=b"00000000000", data=b""):
    """A header with what tarfile would not write."""
    block = bytearray(512)
    block[0:len(name)] = name
    block[100:108] = block[108:116] = block[116:124] = b"0000644\0"
    block[124:124 + len(size)] = size
    block[136:148] = b"00000000000\0"
    block[148:156] = b" " * 8
    block[156:157] = kind
    block[257:265] = b"ustar\x0000"
    block[148:155] = b"%06o\0" % sum(block)
    return bytes(block) + data + bytes(-len(data) % 512) + bytes(1024)


def hostile():
    deep = "/".join(["d"] * 300)
    yield "traversal", tar([entry("../victim", data=b"new")])
    yield "traversal-inside", tar([entry("a/b/../../../victim", data=b"new")])
    yield "dots", tar([folder("..")])
    yield "absolute", tar([entry("/tmp/carrel-image-victim", data=b"new")])
    yield "through-link", tar([symlink("l", ".."), entry("l/victim", data=b"new")])
    yield "through-absolute-link", tar([symlink("l", "/tmp"), entry("l/victim", data=b"new")])
    yield "through-two-links", tar([symlink("a", ".."), symlink("b", "a"), entry("b/victim")])
    yield "swapped-directory", tar([folder("d"), entry("d/a"), symlink("d", ".."), entry("d/victim")])
    yield "directory-behind-link", tar([symlink("l", ".."), folder("l/victim-dir")])
    yield "link-behind-link", tar([symlink("l", ".."), symlink("l/victim", "x")])
    yield "hardlink-out", tar([hardlink("h", "../../../../victim")])
    yield "hardlink-absolute", tar([hardlink("h", "/etc/passwd")])
    yield "hardlink-through-link", tar([symlink("l", "/etc"), hardlink("h", "l/passwd")])
    yield "hardlink-behind-link", tar([symlink("l", ".."), entry("f"), hardlink("l/victim", "f")])
    yield "hardlink-to-directory", tar([folder("d"), hardlink("h", "d")])
    yield "hardlink-to-whiteout", tar([entry(".wh.w"), hardlink("h", "w")])
    yield "whiteout-dots", tar([entry(".wh...")])
    yield "whiteout-dot", tar([entry("d/.wh..")])
    yield "whiteout-empty", tar([entry("d/.wh.")])
    yield "whiteout-behind-link", tar([symlink("l", ".."), entry("l/.wh.victim")])
    yield "opaque-behind-link", tar([symlink("l", ".."), entry("l/.wh..wh..opq")])
    yield "deep", tar([entry(deep)])
    yield "long-part", tar([entry("x" * 300)])
    yield "long-path", tar([entry("/".join(["y" * 200] * 25))])
    yield "top-is-file", tar([entry(".", data=b"x")])
    yield "no-name", raw(b"")
    yield "cut-off", raw(b"f", size=b"00000100000", data=b"short")
    yield "huge", raw(b"f", size=b"\x80\0\0\0\x7f\xff\xff\xff\xff\xff\xff\xff")
    yield "negative", raw(b"f", size=b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x00")
    yield "empty-tar", bytes(10240)
    yield "empty-file", b""
    yield "no-tar", b"this is not an archive\n" * 100
    yield "broken-gzip", gzip.compress(tar(base()[:2]))[:-20]
    yield "trailing-nonsense", gzip.compress(tar([entry("f")]))[:40] + bytes(200)
    yield "only-devices", tar([device("a"), device("b", tarfile.BLKTYPE)])


def main(where):
    tars = [tar(base()), tar(middle(), tarfile.GNU_FORMAT), tar(top(), tarfile.USTAR_FORMAT)]
    # An empty layer that comes twice, as builders leave them.
    empty = tar([])
    tars = [tars[0], empty, tars[1], empty, tars[2]]
    root = tar(flat())
    write(where + "/root.tar", root)
    write(where + "/root.tar.gz", gzip.compress(root))
    write(where + "/root.tar.xz", pack("xz", root))
    write(where + "/root.tar.zst", pack("zstd", root))
    for path, data in oci_files(tars).items():
        write(where + "/oci/" + path, data)
    for path, data in oci_files(tars, ("v1", "v2")).items():
        write(where + "/two/" + path, data)
    write(where + "/oci.tar", tar([entry(path, data=data) for path, data in oci_files(tars).items()]))
    write(where + "/docker-old.tar", docker_old(tars))
    write(where + "/docker-new.tar", docker_new(tars))
    for name, data in hostile():
        write(where + "/hostile/" + name + ".tar", data)


if __name__ == "__main__":
    main(sys.argv[1])
