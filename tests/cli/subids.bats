#!/usr/bin/env bats
# shellcheck disable=SC2030,SC2031,SC2154,SC2016  # cli.bash sets $status, $out and others; lines for a shell inside
# --ids sub: an ordinary user's sandbox with the ids of subuid(5) beside its own.

load cli
load living
load repo

# The test's own entries, if the user was made without any; gone afterwards.
setup() {
    added=
    command -v newuidmap newgidmap >/dev/null || skip "uidmap is not installed"
    have_user 2>/dev/null || skip "$NO_USER_REASON"
    local name
    name=$(as_user id -un)
    grep -q "^$name:[0-9]*:[1-9][0-9][0-9][0-9][0-9]" /etc/subuid 2>/dev/null &&
        grep -q "^$name:[0-9]*:[1-9][0-9][0-9][0-9][0-9]" /etc/subgid 2>/dev/null && return
    [ "$(id -u)" -eq 0 ] || skip "this user has no subordinate ids"
    added=$name
    usermod --add-subuids 700000000-700065535 --add-subgids 700000000-700065535 "$name"
}

# A process that finds newuidmap here finds it there, and in $FIRST its replacement.
FIRST=
eval "living_$(declare -f me)"
me() { living_me env PATH="${FIRST:+$FIRST:}$PATH" "$@"; }

eval "living_$(declare -f teardown)"
teardown() {
    living_teardown
    [ -z "$added" ] || usermod --del-subuids 700000000-700065535 --del-subgids 700000000-700065535 "$added"
}

identities() {
    local own
    own=$(me id -u)
    carrel run --ids sub -c 'id -u; awk "{ n += \$3 } END { print n }" /proc/self/uid_map; stat -c %u /proc/1; id -G'
    [ "$out" = "$own"$'\n65536\n0\n'"$(me id -g)" ]
    carrel run --ids own -c 'awk "{ n += \$3 } END { print n }" /proc/self/uid_map; stat -c %u /proc/1'
    [ "$out" = $'1\n'"$own" ]
    carrel run --ids sub --user 70000 -c 'id -u; touch f && echo wrote'
    [ "$out" = $'70000\nwrote' ]
    carrel run --json --ids sub --require idmap,userns,capabilities,no_nesting -c 'grep -E "^Cap(Prm|Eff|Bnd)" /proc/self/status'
    holds 'r["ok"] and r["stdout"].count("0000000000000000") == 3'
    printf 'sandbox: {ids: sub}\n' >"$T/p.yaml" && chmod 644 "$T/p.yaml"
    carrel run --policy p.yaml -- stat -c %u /proc/1
    [ "$out" = 0 ]
    carrel run --policy p.yaml --ids own -- stat -c %u /proc/1
    [ "$out" = "$own" ]
    carrel run --ids all -- true
    is_one_error 125 "carrel: --ids: 'all' is not valid; expected own or sub"
}
@test "init is another user than the programs, whose id is the caller's" { only user identities; }

own_files() {
    me mkdir -m 700 private
    carrel run --ids sub --workdir private -c 'echo hello >f && mkdir -m 700 d && echo x >d/x'
    [ "$status" -eq 0 ]
    [ "$(me cat private/f private/d/x)" = $'hello\nx' ]
    new_repo
    carrel run --quiet --ids sub --repo repo --task t --run r --on-success commit -c 'echo new >new && git add new && git commit -qm new && git status --short'
    [ "$status" -eq 0 ] && [ -z "$out" ]
    [ "$(me git -C repo show task-t-run-r:new)" = new ]
    carrel workspace discard --force r
    [ "$status" -eq 0 ]
}
@test "files that are shown, and a workspace, are the caller's own as ever" { only user own_files; }

others() {
    create --ids sub
    carrel exec --user 5:6 "$id" -c 'id -u; id -g; id -G; mkdir -m 700 /tmp/five && echo x >/tmp/five/x && chmod 600 /tmp/five/x'
    [ "$out" = $'5\n6\n6' ]
    carrel exec "$id" -c 'cat /tmp/five/x 2>&1; kill -0 1 2>&1; echo mine >/tmp/mine'
    [[ "$out" == *"Permission denied"*"permitted"* ]]
    carrel exec --user 5 "$id" -c 'echo more >>/tmp/mine 2>/dev/null || echo kept'
    [ "$out" = kept ]
    carrel exec --user 65536 "$id" -- true
    is_one_error 125 "*user 65536:65536: ids in a sandbox range from 0 to 65535"
    carrel snapshot "$id" s1
    [ "$status" -eq 0 ]
    carrel destroy "$id"
    create --ids sub --from s1
    carrel exec --user 5:6 "$id" -- cat /tmp/five/x
    [ "$out" = x ]
    carrel destroy "$id"
    [ "$status" -eq 0 ]
    # What other ids own is removed like everything else.
    [ -n "$(find "$T/state" ! -user "$(me id -u)" -print -quit)" ] || [ "$(id -u)" -ne 0 ]
    carrel snapshot rm s1
    carrel cleanup
    [ -z "$(layers)" ]
}
@test "exec --user can be another, and what it leaves is removed" { only user others; }

shut_workspace() {
    new_repo
    create --ids sub --repo repo --task t --run shut
    carrel exec "$id" -- chmod 777 /workspace
    carrel exec --user 7 "$id" -c 'mkdir -m 700 d && echo x >d/x'
    [ "$status" -eq 0 ]
    carrel destroy "$id"
    [ "$status" -eq 0 ] && [[ "$out$err" == *"kept, not read"* ]]
    carrel workspace discard --force shut
    [ "$status" -eq 0 ]
    [ -z "$(me find state/carrel/workspaces/t -mindepth 1 -maxdepth 1 ! -name runs 2>/dev/null)" ]
}
@test "a directory that another user of the sandbox shut is kept unread, and can be discarded" { only user shut_workspace; }

missing() {
    [ "$(id -u)" -eq 0 ] || skip "needs root to change what a command sees"
    local own file name
    own=$(me id -u)
    name=$(me id -un)
    refused_with() { # refused_with TEXT PATTERN: of both files
        printf '%s\n' "$1" >"$T/ids" && chmod 644 "$T/ids"
        status=0
        for file in /etc/subuid /etc/subgid; do
            err=$(unshare --mount --propagation private bash -c 'mount --bind "$0" "$1" && shift && "$@"' "$T/ids" "$file" \
                setpriv --reuid "$own" --regid "$(me id -g)" --init-groups env -C "$T" HOME="$T" XDG_RUNTIME_DIR="$T" \
                "$CARREL" run --ids sub -- echo ran 2>&1) || status=$?
            echo "$file: $err"
            [ "$status" -eq 125 ]
            # shellcheck disable=SC2053  # a pattern
            [[ "$err" == $2 ]]
        done
    }
    refused_with "somebody:700000000:65536" "carrel: *: /etc/sub?id gives this user no ids; as root: usermod --add-sub?ids FIRST-LAST $name, *"
    refused_with "$name:700000000:65535" "carrel: *: /etc/sub?id gives this user too few ids; as root: *"
    refused_with "$name:0:65536" "carrel: *too few ids*"
    mkdir "$T/bin" && chmod 755 "$T/bin"
    for file in newuidmap newgidmap; do
        printf '#!/bin/sh\necho no such luck >&2\nexit 3\n' >"$T/bin/$file" && chmod 755 "$T/bin/$file"
    done
    FIRST=$T/bin
    carrel run --ids sub -- echo ran
    is_one_error 125 "carrel: *newuidmap failed with status 3: no such luck"
    printf '#!/bin/sh\nexit 0\n' | tee "$T/bin/newuidmap" >"$T/bin/newgidmap"
    carrel run --ids sub -- echo ran # it says that all went well
    is_one_error 125 "carrel: */uid_map is not what was asked for"
    FIRST=
    status=0
    err=$(me env PATH=/nowhere "$CARREL" run --ids sub -- echo ran 2>&1) || status=$?
    [ "$status" -eq 125 ] && [[ "$err" == carrel:*"newuidmap or newgidmap is not installed; as root: install "* ]]
    carrel run --ids own -- echo ran
    [ "$out" = ran ]
}
@test "without ids, or programs that map them as asked, it is refused with the remedy" { only user missing; }

told() {
    carrel health
    [[ "$out" == *"subordinate ids"*"--ids sub"* ]]
}
@test "health tells whether there are subordinate ids" { only user told; }
