# shellcheck shell=bash disable=SC2034,SC2154
# The program looks for the journals; then it fills their disk, from a directory on it that is
# mounted into the sandbox. What cannot be recorded must not happen.
# shellcheck source=journals.sh
source "$here/journals.sh"

prepare() {
    prepare_journals
    carrel run --quiet -- /bin/true
    places=("index=$runs/index.jsonl" "journal=$(echo "$runs"/R-*/journal.jsonl)")
    me mkdir "$T/disk" "$T/work"
    me git init -q -b main "$T/repository"
    me git -C "$T/repository" -c user.name=a -c user.email=a@b commit -q --allow-empty -m first
    alone=(unshare -m)
    [ "$who" = root ] || alone=(unshare -rm)
    me "${alone[@]}" mount -t tmpfs none "$T/disk"
    # A file system allocates whole pages. To have no room for the next record the journal must end
    # right before a page does: the first run measures it, the word of the second has that length.
    me tee "$T/disk.sh" >/dev/null <<'END'
set -u
T=$1 tool=$2 repository=$3
cd "$T" || exit
mount -t tmpfs -o size=512k,nr_inodes=300,mode=755 none disk || exit
mkdir disk/work disk/state
export HOME=$T XDG_STATE_HOME=$T/disk/state XDG_CONFIG_HOME=$T/config
journals() { cat disk/state/carrel/runs/*R-*/journal.jsonl 2>/dev/null; }

# judge NAME STATUS [REASON]: carrel must have failed, because the disk is full.
judge() {
    local reason="^carrel: ${3-nothing is run unrecorded}: .*No space left"
    if [ "$2" -eq 125 ] && grep -q "$reason" said; then
        echo "REFUSED $1 $(grep -m1 "$reason" said)"
    elif [ "$2" -eq 125 ]; then
        echo "OTHER $1 $(cat said)"
    else
        echo "SUCCEEDED $1 status $2"
    fi
}

filler='cat /dev/zero >/workspace/fill'
"$tool" run --quiet --workdir disk/work -- /bin/sh -c ": $filler" x 2>said
started=$(journals | sed '/"process_started"/q' | wc -c)
rm -r disk/state/carrel
status=0
"$tool" run --quiet --workdir disk/work -- /bin/sh -c "  $filler" \
    "$(printf "%*s" "$((4096 - 64 - started + 1))" "" | tr ' ' x)" 2>said || status=$?
judge end-unrecorded "$status"
[ -s disk/work/fill ] || echo "OTHER end-unrecorded the disk was not filled: $(cat said)"
if journals | grep -qE '"(run_ended|sealed)"'; then echo "OTHER end-unrecorded it was recorded"; fi

# It stays full: nothing begins.
status=0
"$tool" run --quiet --workdir work -- touch /workspace/ran 2>said || status=$?
judge begins-unrecorded "$status"
[ ! -e work/ran ] || echo "SUCCEEDED begins-unrecorded"
status=0
"$tool" python -c 'open("/workspace/ran", "w")' --workdir work 2>said || status=$?
judge python-unrecorded "$status"
[ ! -e work/ran ] || echo "SUCCEEDED python-unrecorded"

# There is space again: what was written before is complete, and can be continued.
rm disk/work/fill
"$tool" run --quiet -- true || echo "OTHER goes-on status $?"
status=0
"$tool" journal verify >said 2>&1 || status=$?
if [ "$status" -eq 3 ] && grep -q '^index  *right' said && grep -q '^runs: 1 sealed, 3 unsealed' said; then
    echo "REFUSED taken-for-finished $(tail -n 1 said)"
else
    echo "SUCCEEDED taken-for-finished status $status: $(cat said)"
fi

# The program's own files are there, and its work is to be delivered to the repository afterwards.
status=0
"$tool" run --quiet --repo "$repository" --task T-1 --run R-1 --on-success apply -- \
    /bin/sh -c 'echo work >work; cat /dev/zero >fill; rm fill; cat /dev/zero >fill; exit 0' \
    2>said || status=$?
judge lands-unrecorded "$status" "the result of run .* was refused .*"
[ -z "$(ls "$repository")" ] || echo "SUCCEEDED lands-unrecorded"
END
    # A best-effort logger, with records of a page each.
    me tee "$T/logger.sh" >/dev/null <<'END'
cd "$1" && mount -t tmpfs -o size=512k none disk || exit
record() { printf '%-4095s\n' "$1" >>disk/log || true; }
record started
cat /dev/zero >disk/fill
touch work/went-on
record ended
grep -q ended disk/log || { [ -e work/went-on ] && echo "SUCCEEDED end-unrecorded"; }
END
}

does_apply() {
    local wrap=(unshare -m)
    [ "$who" = root ] || wrap=(unshare -rm)
    as_owner "${wrap[@]}" mount -t tmpfs none /mnt || {
        echo "a file system of its own cannot be mounted here"
        return 1
    }
}

bare() {
    me "$A/22-private-files" attack "${places[@]}"
    me "${alone[@]}" bash "$T/logger.sh" "$T" 2>/dev/null
}

control() {
    carrel run --quiet --workdir "$T/work" -- /bin/sh -c \
        'head -c 100000 /dev/zero >/workspace/file && rm /workspace/file && echo WORKS own-files'
    carrel journal verify | has -E '^runs: [0-9]+ sealed$' && echo WORKS recorded
}

attack() {
    carrel run --quiet --workdir "$T/work" --mount "$A:/attacks:ro" -- /attacks/22-private-files attack \
        "${places[@]}" "up=/workspace/../state/carrel/runs/index.jsonl" \
        "beside=/proc/1/root$runs/index.jsonl" "root=/var/lib/carrel/runs/index.jsonl"
    me timeout -k 5 60 "${alone[@]}" bash "$T/disk.sh" "$T" "$tool" "$T/repository"
}
