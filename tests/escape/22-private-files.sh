# shellcheck shell=bash disable=SC2034,SC2154
prepare() {
    local file
    for file in home/.ssh/id_ed25519 state/carrel/runs/R-1/journal.jsonl \
        state/carrel/runs/R-1/stdout other-run/workspace/secret; do
        me mkdir -p "$T/${file%/*}"
        echo secret | me tee "$T/$file" >/dev/null
    done
    me mkdir "$T/given"
    echo open | me tee "$T/given/file" >/dev/null
    before=(env "HOME=$T/home" "XDG_STATE_HOME=$T/state")
    options=(--mount "$T/given:/given:ro")
    control_args=(/given/file /etc/passwd /usr/bin/env)
    args=("ssh-key=$T/home/.ssh/id_ed25519" "home=$T/home" "journal=$T/state/carrel/runs/R-1/journal.jsonl"
        "state=$T/state/carrel" "other-run=$T/other-run/workspace/secret" shadow=/etc/shadow
        "root-home=/root/." "var-log=/var/log/." "host-tmp=/tmp/${T##*/}" "boot=/boot/."
        "users-home=$USER_DIR/.")
    bare_args=("${args[@]}")
}

more() {
    all_attempts=no
    start sibling box -- /bin/sh -c 'echo secret >/tmp/sibling; echo secret >/workspace/sibling
        echo secret >/dev/shm/sibling; echo READY; sleep 30'
    args=(tmp=/tmp/sibling workspace=/workspace/sibling shm=/dev/shm/sibling)
    held "another sandbox's files" attack
}
