# shellcheck shell=bash disable=SC2016,SC2034,SC2154
# Whiteouts and opaque marks of an overlay, forged in the tree.
forge='
import os, stat
def attempt(name, call, *args):
    try:
        call(*args)
        print("made", name)
    except OSError as e:
        print("refused", name, e.strerror)
for space in ("user", "trusted"):
    for mark, value in (("opaque", b"y"), ("redirect", b"/README"), ("metacopy", b""), ("whiteout", b"y"), ("origin", b"x")):
        attempt(space + "." + mark, os.setxattr, "dir", space + ".overlay." + mark, value)
        attempt(space + "." + mark + " on a file", os.setxattr, "README", space + ".overlay." + mark, value)
attempt("0/0", os.mknod, "b.txt.forged", 0o600 | stat.S_IFCHR, 0)
os.rename("a/very", "a/very.moved") if os.path.isdir("a/very") else None
attempt("0/0 over a name", os.mknod, "a/very", 0o600 | stat.S_IFCHR, 0)
'
does_apply() {
    [ -x /usr/bin/python3 ] || {
        echo "/usr/bin/python3 is needed to set attributes"
        return 1
    }
}
# A directory that the agent wrote without an overlay, used as an upper.
bare() {
    me mkdir -p "$T/bare/lower/dir" "$T/bare/upper/dir" "$T/bare/work" "$T/bare/merged"
    me touch "$T/bare/lower/dir/precious"
    me python3 -c 'import os, sys; os.setxattr(sys.argv[1], "user.overlay.opaque", b"y")' "$T/bare/upper/dir"
    me unshare -Urm sh -c 'mount -t overlay -o userxattr,lowerdir=lower,upperdir=upper,workdir=work none merged &&
        test ! -e merged/dir/precious && echo hidden' >"$T/.hidden" 2>&1 < <(:) || true
    (cd "$T/bare" && me unshare -Urm sh -c "cd $T/bare && mount -t overlay -o userxattr,lowerdir=lower,upperdir=upper,workdir=work none merged &&
        test ! -e merged/dir/precious && echo hidden") >"$T/.hidden" 2>&1 || true
    what=$(cat "$T/.hidden")
    [ "$what" = hidden ] || { cat "$T/.hidden"; what=; }
    me mknod "$T/bare/upper/mark" c 0 0 2>/dev/null && what+=" 0/0"
    chmod -R u+rwX "$T/bare/work" 2>/dev/null || true
}
control() {
    inside control/1 -- 'rm -r dir; mkdir dir; echo x >dir/new; rm b.txt'
    same "what is really removed" "D b.txt D dir/c.txt A dir/new D dir/sub/d.txt D dir/sub/e.txt " \
        "$(carrel workspace diff --name-status control/1 | tr '\t\n' '  ')"
    carrel workspace discard --force control/1 >/dev/null
}
attack() {
    local said
    said=$(inside attack/1 -- "/usr/bin/python3 -c '$forge'; mv a/very.moved a/very; git status --porcelain; ls dir") || true
    echo "$said"
    same "dir, inside" "c.txt sub " "$(tail -n 2 <<<"$said" | tr '\n' ' ')"
    same "changes" "" "$(carrel workspace diff --name-status attack/1 | grep -v forged)"
    carrel workspace commit attack/1 >/dev/null || true
    same "what is lost on the branch" "" "$(me git -C "$R" diff --name-only --diff-filter=D main task-attack-run-1)"
    carrel run --quiet --help >/dev/null
    carrel workspace resume attack/1 -- sh -c 'test -e dir/c.txt && test -e a/very/deep && test -f README'
    carrel workspace discard --force attack/1 >/dev/null
}
