# shellcheck shell=bash disable=SC2034,SC2154
mark=MARK=stopped-$$

prepare() { all_attempts=no; }

# SIGTERM would end it if it were not stopped.
bare() {
    local way
    for way in self vfork; do
        start "$way" me "$A/76-stopped" attack "$way"
        sleep 0.3
        kill -TERM "$answer"
        sleep 0.3
        kill -0 "$answer" 2>/dev/null && echo "SUCCEEDED $way"
        kill -KILL -- "-${jobs[$way]}"
        wait "${jobs[$way]}" 2>/dev/null || true
        unset "jobs[$way]"
    done
}

attack() {
    local way begin status
    for way in self group vfork; do
        begin=$SECONDS status=0 limit=1s
        box --env "$mark" -- /attacks/76-stopped attack "$way" >/dev/null || status=$?
        if [ "$status" -ne 124 ]; then
            echo "OTHER $way status $status"
        elif [ $((SECONDS - begin)) -gt 15 ]; then
            echo "SUCCEEDED $way returned after $((SECONDS - begin)) s"
        elif [ -n "$(marked "$mark")" ]; then
            echo "SUCCEEDED $way something is left"
        else
            echo "REFUSED $way"
        fi
    done
}

# A stopped init could not answer.
more() {
    held "init cannot be stopped" box -- /bin/sh -c \
        'kill -STOP 1; kill -STOP -1; sleep 0.1; echo "REFUSED stop-init still here"'
}
