# shellcheck shell=bash disable=SC2034,SC2154
# Without carrel "all" is only tried under a user id without other processes, so that none is hit.
prepare() {
    lonely=$((58000 + RANDOM % 2000))
    start victim me "$A/18-signals" victim
    args=("$answer" and-init)
    if is_root_suite; then
        # In a shell that reports its exit: it will be killed.
        start lonely bash -c '"$@" || true' - \
            setpriv --reuid "$lonely" --regid "$lonely" --clear-groups "$A/18-signals" victim
        bare_args=("$answer" all)
    else
        bare_args=("${args[0]}")
    fi
}

bare() {
    if ! is_root_suite; then
        me "$A/18-signals" attack "${bare_args[@]}"
        return
    fi
    setpriv --reuid "$lonely" --regid "$lonely" --clear-groups "$A/18-signals" attack "${bare_args[@]}"
    sleep 0.2
    kill -0 "${bare_args[0]}" 2>/dev/null || echo "SUCCEEDED kill-all"
}

attack() {
    box -- /attacks/18-signals attack "${args[@]}"
    sleep 0.2
    if alive victim; then echo "REFUSED kill-all the victim lives"; else echo "SUCCEEDED kill-all"; fi
}

# If the sandbox ends before the program does, init was killed.
more() {
    check "$title, as $who: init outlives a program that kills everything" \
        box -- /bin/sh -c 'kill -9 1; kill -9 -1; sleep 0.2; exit 0'
}
