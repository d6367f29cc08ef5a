#!/usr/bin/env bats
# shellcheck disable=SC2030,SC2031,SC2154,SC2016  # cli.bash sets $status, $out and others
# Images: each kind of source, what is in them, what they say, and what must not come of them.

load cli

setup() {
    [ -x /bin/busybox ] || skip "the package busybox-static is missing"
    command -v zstd xz >/dev/null || skip "zstd or xz is missing"
}

sources() { # the sources of image_sources.py below $T/src, made once and copied for each
    local made=$BATS_FILE_TMPDIR/sources
    (
        flock 9
        [ -e "$made/.done" ] || {
            /usr/bin/python3 "$_cli_dir/image_sources.py" "$made" && touch "$made/.done"
        }
    ) 9>"$BATS_FILE_TMPDIR/lock"
    cp -r "$made" "$T/src"
    [ "$who" = root ] || chown -R "$(me id -u):$(me id -g)" "$T/src"
}

store=state/carrel/images

import() { # import SOURCE NAME [OPTION...]
    carrel image import "$@"
    [ "$status" -eq 0 ] && [ -z "$err" ]
}

# Every file that a program sees of the image, with its mode and what is in it.
show() { # show IMAGE
    carrel run --no-entrypoint --user agent --image "$1" -- /bin/sh -c 'cd / || exit 1
        find . -path ./proc -prune -o -path ./dev -prune -o -path ./run -prune \
            -o -path ./home -prune -o -path ./workspace -prune -o -name hostname \
            -o -name hosts -o -name resolv.conf -o -print | sort |
            while read -r name; do
                if test -f "$name"; then stat -c "%n %A %u %g %h" "$name"; cat "$name" | md5sum
                else stat -c "%N %A %u %g" "$name"; fi
            done'
    [ "$status" -eq 0 ] && [ -z "$err" ]
}

nothing_left() { # nothing_left: no image, no layer, no draft
    local found
    found=$(cd "$T/$store" 2>/dev/null && find . -mindepth 1 ! -path ./layers ! -path ./layers/.tmp ! -path './base*') || true
    [ -z "$found" ] || echo "left: $found"
    [ -z "$found" ]
    found=$(find "$T/state/carrel/layers" -mindepth 1 -name 'L-*' 2>/dev/null) || true
    [ -z "$found" ]
}

# ---- what they are made from -------------------------------------------------------------------

every_kind_of_root() {
    local kind first
    sources
    me mkdir dir
    me tar -C dir -xpf src/root.tar --no-same-owner --exclude ./null --exclude ./pipe
    me chmod 400 dir/shut # an ordinary user could not read it
    for kind in root.tar root.tar.gz root.tar.xz root.tar.zst; do
        import "src/$kind" "$kind"
        [[ "$out" == "$kind imported: 1 layer "*"left out: 2 devices, FIFOs or sockets" ]]
        show "$kind"
        first=${first:-$out}
        diff <(echo "$first") <(echo "$out")
    done
    grep -F './etc/motd' <<<"$first"
    me sh -c '"$1" image import - piped <src/root.tar.gz' _ "$CARREL"
    show piped
    diff <(echo "$first") <(echo "$out")
    import dir dir
    show dir
    diff <(echo "$first") <(echo "$out")
    carrel image list --json
    [ "$(json 'sorted(i["kind"] for i in r["images"])')" = '["directory", "tar", "tar", "tar", "tar", "tar"]' ]
    [[ $(json 'r["images"][0]["created"]') == 20??-??-??T??:??:??.000000Z ]]
    # One tar, however it was packed, is one layer.
    [ "$(json 'len(set(i["layers"][0] for i in r["images"]))')" = 2 ]
}
@test "directories and tars of every packing give the same root" { both every_kind_of_root; }

every_kind_of_layers() {
    local kind first shared=0
    sources
    import src/root.tar flat
    show flat
    first=$out
    for kind in oci oci.tar docker-old.tar docker-new.tar; do
        import "src/$kind" "$kind"
        [[ "$out" == "$kind imported: 4 layers ($shared shared)"* ]]
        shared=4
        show "$kind"
        diff <(echo "$first") <(echo "$out")
    done
    carrel image list --json
    [ "$(json 'sorted(i["kind"] for i in r["images"])')" = '["docker", "oci", "oci", "oci", "tar"]' ]
    [ "$(json 'len(set(l for i in r["images"] for l in i["layers"]))')" = 5 ]
    me sh -c 'echo "{" >state/carrel/images/z.json'
    carrel image list
    is_one_error 125 "carrel: *image 'z'*"
    [ -z "$out" ]
    me rm state/carrel/images/z.json
    carrel image rm flat oci oci.tar docker-old.tar
    [ "$status" -eq 0 ]
    show docker-new.tar
    diff <(echo "$first") <(echo "$out")
    import src/root.tar other
    carrel image rm nobody other .x docker-new.tar --json
    [ "$status" -eq 125 ]
    holds 'r["removed"] == ["other", "docker-new.tar"] and not r["ok"] and "nobody" in r["error"]'
    [[ "$err" == "carrel: there is no image 'nobody'"*$'\n'"carrel: '.x' is not the name of an image"* ]]
    nothing_left
}
@test "OCI layouts and docker archives give the root that their layers make" { both every_kind_of_layers; }

files_of_an_image() {
    sources
    import src/oci i
    carrel run --image i --no-entrypoint -- stat -c '%n %a %u:%g' /shut /setuid /others /etc /tmp /srv/app
    [ "$out" = "/shut 400 33:34
/setuid 755 33:34
/others 644 33:34
/etc 755 33:34
/tmp 1777 33:34
/srv/app 700 33:34" ]
    carrel run --image i -c 'cat /shut; test -e /null || echo none; ls /gone /opaque; cat /etc/motd; cat /F*'
    [ "$out" = "shutnone
/gone:
new

/opaque:
new
top
name" ]
    carrel run --image i -c 'cat /out' # leads nowhere but into the image
    [[ "$out" == root:x:0:0* ]]
}
@test "owners are flat, set-uid bits gone, whiteouts hide" { both files_of_an_image; }

which_of_several() {
    sources
    carrel image import src/two i
    is_one_error 125 "*'index.json': it has several images; say which with --tag: 'v1', 'v2'"
    carrel image import --tag v3 src/two i
    is_one_error 125 "*'index.json': it has no image 'v3'; there is: 'v1', 'v2'"
    import --tag v2 src/two i
    carrel image import --tag me:2 src/docker-old.tar j
    is_one_error 125 "*it has no image 'me:2'"
    import --tag me:1 src/docker-old.tar j
}
@test "a source with several images wants a tag" { both which_of_several; }

# ---- what they say -----------------------------------------------------------------------------

settings_count() {
    sources
    import src/oci i
    carrel run --image i
    [ "$out" = "entry cmd line" ]
    carrel run --image i -- other words
    [ "$out" = "entry other words" ]
    carrel run --image i --no-entrypoint -- echo words
    [ "$out" = words ]
    carrel run --image i -c 'echo "$A $B $PATH $1 $(pwd) $(id -u):$(id -g)"' one
    [ "$out" = "image image /bin one /srv/app 33:34" ]
    carrel run --image i --env A=mine --cwd /tmp --user 5:6 -c 'echo "$A $B $(pwd) $(id -u):$(id -g)"'
    [ "$out" = "mine image /tmp 5:6" ]
    me mkdir work
    me touch work/here
    carrel run --image i --workdir work -c 'pwd; ls; touch new'
    [ "$out" = "/workspace
here" ]
    [ -e "$T/work/new" ]
}
@test "variables, directory, user, entrypoint and command count where nothing else is said" { both settings_count; }

no_program() {
    sources
    import src/root.tar plain
    carrel run --image plain
    is_one_error 125 "carrel: image 'plain' has no entrypoint and no command; name a program"
    carrel run --image plain -- echo x
    [ "$out" = x ]
    carrel run --image plain -- /bin/nothing
    [ "$status" -eq 127 ]
    carrel run --image missing -- true
    is_one_error 125 "carrel: there is no image 'missing'"
    carrel run --image ../plain -- true
    is_one_error 125 "carrel: '../plain' is not the name of an image*"
    carrel run --image plain --root / -- true
    is_one_error 125 "carrel: --image and --root cannot be combined"
    carrel run --image plain --runtime process -- true
    [ "$status" -eq 125 ]
}
@test "an image without a program, no image, and two roots are told" { both no_program; }

unknown_user() {
    sources
    /usr/bin/python3 - "$T/src" "$_cli_dir" <<'EOF'
import sys
sys.path.insert(0, sys.argv[2])
sys.dont_write_bytecode = True
import image_sources as s
s.CONFIG["User"] = "web:staff"
for path, data in s.oci_files([s.tar(s.base())]).items():
    s.write(sys.argv[1] + "/group/" + path, data)
s.CONFIG["User"] = "nobody-here"
for path, data in s.oci_files([s.tar(s.base())]).items():
    s.write(sys.argv[1] + "/nobody/" + path, data)
EOF
    import src/group group
    carrel run --image group -c 'echo "$(id -u):$(id -g)"'
    [ "$out" = 33:50 ]
    import src/nobody nobody
    carrel run --image nobody -- true
    is_one_error 125 "carrel: image 'nobody': its user 'nobody-here' is not in its /etc/passwd; use --user"
    carrel run --image nobody --user 7 -c 'id -u'
    [ "$out" = 7 ]
}
@test "a user's name is looked up in the image" { both unknown_user; }

policy_names_one() {
    sources
    import src/oci i
    me mkdir -p config/carrel repo
    me sh -c 'printf "sandbox: {image: i}\n" >config/carrel/policy.yaml'
    carrel run -c 'cat /etc/motd'
    [ "$out" = top ]
    carrel run --image none -c 'test -e /etc/motd || echo host'
    [ "$out" = host ]
    me rm config/carrel/policy.yaml
    me git init -q repo
    me sh -c 'printf "sandbox: {image: i}\n" >repo/carrel.yaml'
    status=0
    me sh -c 'cd repo && exec "$1" run -- true' _ "$CARREL" >"$T/.out" 2>"$T/.err" || status=$?
    _collect repo
    [ "$status" -eq 125 ]
    [[ "$err" == *sandbox.image* ]]
}
@test "a policy may name an image, a repository's may not" { both policy_names_one; }

python_in_an_image() {
    sources
    import src/oci i
    carrel python --image i -c 'print(1)'
    [ "$status" -eq 127 ] || [ "$status" -eq 125 ] # there is no python, and no entrypoint before it
    [[ "$out" != *entry* ]]
}
@test "python is looked for in the image" { both python_in_an_image; }

# ---- nothing changes in them -------------------------------------------------------------------

layers_stay() {
    local before
    sources
    import src/oci i
    before=$(me sh -c 'cd "$1" && find . -printf "%p %y %m %i %s %T@ %C@\n" | sort' _ "$T/$store/layers")
    carrel run --image i -c 'echo mine >/etc/motd; rm -r /gone /opaque /bin/ls; mkdir /new
        touch /bin/x /etc/x; cat /etc/motd'
    [ "$out" = mine ]
    carrel run --image i -c 'cat /etc/motd; test -e /new || echo "not here"; test -e /gone/new && echo there'
    [ "$out" = "top
not here
there" ]
    diff <(echo "$before") <(me sh -c 'cd "$1" && find . -printf "%p %y %m %i %s %T@ %C@\n" | sort' _ "$T/$store/layers")
    carrel image rm i
    nothing_left
}
@test "what a run changes is its own, and gone with it" { both layers_stay; }

disk_is_limited() {
    local holder=filesystem
    # In memory, and enforced by the tmpfs; before Linux 6.6 on disk, and by polling.
    printf '6.6\n%s\n' "$(uname -r)" | sort -CV || holder=polling
    sources
    import src/oci i
    carrel run --image i --disk 20M -c 'dd if=/dev/zero of=/etc/a bs=1M count=12 2>/dev/null &&
        dd if=/dev/zero of=/tmp/b bs=1M count=500 2>/dev/null && echo reached'
    [[ "$status" -ne 0 && "$out" != *reached* && "$err" == *"Disk limit of 20M reached"* ]]
    carrel run --image i --disk 20M --json -c true
    [ "$(json 'r["held_by"]["disk"]')" = "$holder" ]
    carrel image rm i
    nothing_left
}
@test "what a run writes in an image counts for --disk" { both disk_is_limited; }

removed_while_used() {
    sources
    import src/oci i
    me mkfifo go
    background run --image i --mount .:/t -c 'echo ready; cat /t/go; cat /etc/motd; ls /gone'
    until_true grep -q ready "$T/.out"
    carrel image rm i
    [ "$status" -eq 0 ]
    [ -n "$(ls "$T/$store/layers")" ]
    carrel cleanup
    [ -n "$(ls "$T/$store/layers")" ]
    : >"$T/.out"
    me sh -c 'echo now >go'
    ended
    [ "$status" -eq 0 ]
    carrel cleanup --json
    [ "$(json 'r["layers"]')" = 4 ]
    nothing_left
}
@test "a sandbox keeps the layers of an image that was removed" { both removed_while_used; }

replaced() {
    sources
    import src/oci i
    import src/root.tar i
    [[ "$out" == "i replaced: 1 layer (0 shared)"* ]]
    [ "$(find "$T/$store/layers" -mindepth 1 -maxdepth 1 ! -name .tmp | wc -l)" -eq 1 ]
}
@test "an image of the same name is replaced, and its layers go" { both replaced; }

snapshots_know_theirs() {
    sources
    import src/oci i
    carrel create --image i --name box
    [ "$status" -eq 0 ]
    carrel exec box -- sh -c 'echo mine >/etc/motd; echo "$A $(pwd)"'
    [ "$out" = "image /srv/app" ]
    carrel snapshot box one
    [ "$status" -eq 0 ]
    import src/root.tar i # another one, of the same name
    carrel create --from one
    is_one_error 125 "carrel: image 'i' is another one by now *"
    carrel fork box
    is_one_error 125 "carrel: *image 'i' is another one by now *"
    carrel exec box -- cat /etc/motd
    [ "$out" = mine ]
    import src/docker-old.tar i # the same layers
    carrel create --from one --image i --name two
    [ "$status" -eq 0 ]
    carrel exec two -- cat /etc/motd
    [ "$out" = mine ]
    carrel destroy box two
    carrel snapshot rm one
    carrel image rm i
    carrel cleanup
    nothing_left
}
@test "snapshots and forks lie on the image that they were made on" { both snapshots_know_theirs; }

# ---- all or nothing ----------------------------------------------------------------------------

digests_are_compared() {
    local file
    sources
    for file in "$T"/src/oci/blobs/sha256/*; do
        cp -p "$file" "$T/kept"
        printf x | dd of="$file" bs=1 seek=100 conv=notrunc status=none
        carrel image import src/oci i
        is_one_error 125 "carrel: 'src/oci': *'blobs/sha256/${file##*/}' is not what its digest says: sha256:*"
        nothing_left
        cp -p "$T/kept" "$file"
    done
    # A docker archive says what is in the tar of a layer; that file has no digest in its name.
    me mkdir old
    me tar -C old -xf src/docker-old.tar
    printf x | dd of="$T/old/shared.tar" bs=1 seek=600 conv=notrunc status=none
    carrel image import old i
    is_one_error 125 "carrel: 'old': layer 2 *"
    nothing_left
    import src/oci i
}
@test "a blob that is not what its digest says is refused" { both digests_are_compared; }

hostile_archives() {
    local file name
    sources
    echo old >"$T/victim"
    for file in "$T"/src/hostile/*.tar; do
        name=${file##*/}
        carrel image import "src/hostile/$name" i
        is_one_error 125 "carrel: 'src/hostile/$name': *"
        nothing_left
        [ "$(cat "$T/victim")" = old ]
        [ -z "$(find "$T" /tmp/carrel-image-victim -name 'victim?*' -o -name 'carrel-image-victim' 2>/dev/null)" ]
    done
}
@test "hostile archives are refused, and leave nothing" { both hostile_archives; }

killed_import() {
    sources
    me mkfifo pipe
    exec 7<>"$T/pipe"
    background image import /dev/fd/7 i
    # Half of it: files have been made, and more is awaited.
    head -c 1000000 "$T/src/root.tar" >&7
    until_true sh -c 'test -n "$(find "$1"/*/tree -type f 2>/dev/null)"' _ "$T/$store/layers/.tmp"
    carrel cleanup
    [ -n "$(ls "$T/$store/layers/.tmp")" ]
    kill -KILL "$pid"
    exec 7>&-
    ended
    carrel image list
    [ -z "$out" ]
    until_true cleaned
    nothing_left
    import src/root.tar i
}
cleaned() {
    carrel cleanup
    [ -z "$(ls "$T/$store/layers/.tmp")" ]
}
@test "an import that was killed leaves what cleanup removes" { both killed_import; }

at_once() {
    local i
    sources
    me sh -c 'for i in 1 2 3 4 5 6; do
            ( for k in 1 2 3; do
                "$1" image import src/oci "i$i" && "$1" image rm "i$i" || echo "failed $i"
              done ) &
        done; wait' _ "$CARREL" >"$T/.out" 2>&1
    : >"$T/.err"
    _collect at once
    [[ "$out" != *failed* && "$out" != *carrel:* ]]
    carrel cleanup
    nothing_left
    for i in 1 2 3; do import src/oci "i$i"; done
    show i3
}
@test "imports and removals at once do not hurt each other" { both at_once; }

# A process that would remove a layer locks it exclusively for a moment, and unlocks it if an image
# names it after all. A busy machine makes the moment long.
held_alone() {
    sources
    import src/oci i
    me /usr/bin/python3 - "$T/$store/layers" <<'PY' &
import fcntl, os, sys, time

top = sys.argv[1]
for layer in os.listdir(top):
    if layer != ".tmp":
        fcntl.flock(os.open(f"{top}/{layer}", os.O_RDONLY), fcntl.LOCK_EX)
open(f"{top}/../../held", "w").close()
time.sleep(1)
PY
    until_true test -e "$T/state/carrel/held"
    import src/oci again
    wait "$!"
    [[ "$out" == *"(4 shared)"* ]]
    rm "$T/state/carrel/held"
    show again
}
@test "a layer that is locked exclusively for a moment is waited for" { both held_alone; }

# ---- elsewhere ---------------------------------------------------------------------------------

registry() {
    local port=$((20000 + RANDOM % 12000)) config
    sources
    me mkdir registry
    config="version: 0.1
storage: {filesystem: {rootdirectory: $T/registry}}
http: {addr: '127.0.0.1:$port'}"
    me sh -c 'cat >registry.yml' <<<"$config"
    # It ends by itself if the test cannot do it.
    me sh -c 'echo $$ >registry.pid; exec timeout 120 docker-registry serve registry.yml' \
        >"$T/registry.log" 2>&1 3>&- &
    until_true curl -sf "http://127.0.0.1:$port/v2/" -o "$T/.curl"
    me sh -c 'echo {} >auth.json' # else skopeo looks into /run/containers, which may be root's alone
    local -x REGISTRY_AUTH_FILE=$T/auth.json
    me skopeo copy -q --dest-tls-verify=false oci:src/oci:v1 "docker://127.0.0.1:$port/me/x:1"
    carrel image pull "127.0.0.1:$port/me/x:1"
    is_one_error 125 "carrel: pull '127.0.0.1:$port/me/x:1': skopeo: *HTTP*"
    carrel image pull --insecure "127.0.0.1:$port/me/x:2"
    is_one_error 125 "carrel: pull '127.0.0.1:$port/me/x:2': skopeo: *manifest unknown*"
    nothing_left
    carrel image pull --insecure "127.0.0.1:$port/me/x:1"
    [ "$status" -eq 0 ]
    carrel image pull --insecure "docker://127.0.0.1:$port/me/x:1" named --json
    [ "$(json 'r["shared_layers"]')" = 4 ]
    carrel run --image "127.0.0.1:$port/me/x:1"
    [ "$out" = "entry cmd line" ]
    carrel image inspect "127.0.0.1:$port/me/x:1" --json
    [ "$(json 'r["source"]')" = "127.0.0.1:$port/me/x:1" ]
    kill "$(cat "$T/registry.pid")"
    wait
}
@test "images come from a registry" {
    for tool in skopeo docker-registry curl; do
        command -v "$tool" >/dev/null || skip "$tool is missing"
    done
    both registry
}

no_skopeo() {
    status=0
    me env PATH=/nowhere "$CARREL" image pull debian >"$T/.out" 2>"$T/.err" || status=$?
    _collect pull
    is_one_error 125 "carrel: pull 'debian': cannot pull images: there is no skopeo in PATH; install the package skopeo*"
    carrel image pull -- --help
    is_one_error 125 "carrel: '--help' is not an image reference*"
}
@test "without skopeo the package is named" { both no_skopeo; }

# In a mount namespace of our own: the state is on a small file system.
full_disk() {
    local from
    me mkdir state big
    me sh -c 'head -c 4M /dev/zero >big/file; tar -C big -cf big.tar .'
    for from in big big.tar; do
        status=0
        # shellcheck disable=SC2016  # for the inner shell
        me unshare -m sh -c '
            mount -t tmpfs -o size=2M,mode=0700 tmpfs state
            "$0" image import "$1" i
            status=$?
            find state/carrel/images/layers -mindepth 1 ! -name .tmp
            find state/carrel/images -name "*.json"
            exit "$status"
        ' "$CARREL" "$from" >"$T/.out" 2>"$T/.err" || status=$?
        _collect image import "$from"
        is_one_error 125 "carrel: '$T/state/carrel' is full; nothing was left there: '$from': 'file': write: No space left on device"
        [ -z "$out" ]
    done
}
@test "an import that does not fit names the disk that is full and leaves nothing" { only root full_disk; }

transports() {
    local ref
    for ref in oci:/tmp/x:1 oci-archive:x.tar docker-archive:/tmp/x.tar dir:/tmp/x ostree:x@/y \
        containers-storage:x 'containers-storage:[vfs@/tmp/a b]x'; do
        carrel image pull "$ref" name
        is_one_error 125 "carrel: '${ref//[[]/\\[}' is not in a registry: 'carrel image import' reads *"
    done
    carrel image pull http://x/y
    is_one_error 125 "carrel: 'http://x/y' is not an image reference; expected docker://, *"
    carrel image list
    [ "$err" = "no images yet" ]
}
@test "pull reads registries, not files and not what other programs store" { both transports; }

words() {
    carrel image
    is_one_error 125 "carrel: no subcommand; *"
    carrel image imprt a b
    is_one_error 125 "carrel: unknown subcommand 'imprt' (did you mean 'image import'?)"
    carrel image import x
    is_one_error 125 "carrel: missing argument; usage: carrel image import *"
    carrel image import /nowhere i
    is_one_error 125 "carrel: '/nowhere': No such file or directory"
    me mkdir dir
    me mkfifo fifo
    me ln -s dir way
    carrel image import fifo i
    is_one_error 125 "carrel: 'fifo': is a FIFO; expected a regular file"
    carrel image import way i
    is_one_error 125 "carrel: 'way': is a link; carrel does not follow links there*"
    carrel image import /dev/null none
    is_one_error 125 "carrel: 'none' cannot be the name of an image*"
    carrel image import /dev/null .x
    is_one_error 125 "carrel: '.x' cannot be the name of an image*"
    carrel image rm x
    is_one_error 125 "carrel: there is no image 'x'*"
    carrel image list
    [ "$status" -eq 0 ] && [ -z "$out" ] && [ "$err" = "no images yet" ]
    carrel image inspect x --json
    [ "$status" -eq 125 ]
    [ "$(json 'r["ok"]')" = false ]
}
@test "words that mean nothing are told" { both words; }
