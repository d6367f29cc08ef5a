# shellcheck shell=bash disable=SC2034,SC2154
# shellcheck source=living.sh
source "$here/living.sh"

prepare() {
    me mkdir "$T/state"
    before=(env "XDG_STATE_HOME=$T/state" "FLOOD=$$")
    all_attempts=no
}

bare() {
    local bytes
    bytes=$(me timeout 5 "$A/74-flood" attack lines 2>/dev/null | head -c 200000000 | wc -c)
    if [ "$bytes" -eq 200000000 ]; then echo "SUCCEEDED flood 200 MB in a moment"; fi
}

control() {
    local result
    result=$(box --json -- /attacks/74-flood control)
    [ "$(field truncated <<<"$result")" = false ] && echo "WORKS whole-output"
    box -- /attacks/74-flood control
}

# The most memory that any process of carrel had on the host, in KiB.
high_water() {
    local pid most=0 kib
    for pid in $(marked "FLOOD=$$"); do
        kib=$(sed -n 's/^VmHWM:[^0-9]*\([0-9]*\).*/\1/p' "/proc/$pid/status" 2>/dev/null) || true
        [ "${kib:-0}" -gt "$most" ] && most=$kib
    done
    echo "$most"
}

flood() {
    local kind=$1 begin=$SECONDS most=0 now file
    limit=2s
    begin flood box --json --max-output 10K -- /attacks/74-flood attack "$kind" >"$T/result" 2>"$T/errors"
    while alive flood && [ $((SECONDS - begin)) -lt 20 ]; do
        now=$(high_water)
        [ "$now" -gt "$most" ] && most=$now
        sleep 0.1
    done
    alive flood && echo "SUCCEEDED $kind does not end"
    stop flood
    if [ "$most" -eq 0 ] || [ "$most" -gt 65536 ]; then echo "SUCCEEDED $kind carrel had $most KiB"; fi
    if [ "$(field truncated <"$T/result")" != true ]; then echo "SUCCEEDED $kind is not marked as cut"; fi
    if [ "$(wc -c <"$T/result")" -gt 262144 ]; then echo "SUCCEEDED $kind result is $(wc -c <"$T/result") bytes"; fi
    file=$(field output_file <"$T/result")
    if [ -f "$file" ] && [ "$(stat -c %s "$file")" -gt $((256 << 20)) ]; then
        echo "SUCCEEDED $kind file is $(stat -c %s "$file") bytes"
    fi
    echo "REFUSED $kind carrel had $most KiB, wrote $(field stdout_bytes <"$T/result") bytes"
    rm -rf "${T:?}/state/carrel"
}

attack() {
    local kind
    for kind in lines line binary; do
        flood "$kind"
    done
}

# The reader exists but never reads: the time limit must apply anyway.
blocked_reader() {
    local begin=$SECONDS
    limit=2s
    me mkfifo "$T/blocked"
    sleep 30 <>"$T/blocked" &
    local reader=$!
    box -- /attacks/74-flood attack lines >"$T/blocked" 2>&1 || true
    if [ $((SECONDS - begin)) -gt 12 ]; then
        echo "SUCCEEDED blocked-reader returned after $((SECONDS - begin)) s"
    else
        echo "REFUSED blocked-reader"
    fi
    kill "$reader"
    wait "$reader" 2>/dev/null || true
}

stalled_reader() { # stalled_reader [OPTION...]
    me "$A/74-flood" stall "$tool" run "$@" --timeout 2s --mount "$A:/attacks:ro" -- \
        /attacks/74-flood attack lines
}

closed_reader() {
    local begin=$SECONDS
    (set +o pipefail && box -- /attacks/74-flood attack lines 2>/dev/null | head -c 100 >/dev/null) || true
    if [ $((SECONDS - begin)) -gt 12 ]; then
        echo "SUCCEEDED closed-reader returned after $((SECONDS - begin)) s"
    else
        echo "REFUSED closed-reader"
    fi
}

# ticks_of PID: its processor time so far, without what it has reaped.
ticks_of() {
    local line words
    line=$(cat "/proc/$1/stat" 2>/dev/null) || line=") 0 0 0 0 0 0 0 0 0 0 0 0 0"
    read -ra words <<<"${line##*) }"
    echo $((words[11] + words[12]))
}

# own_ticks: processor time of carrel's own process so far, without what it has reaped; at most.
own_ticks() {
    local pid now most=0
    for pid in $(marked "FLOOD=$$"); do
        [ "$(cat "/proc/$pid/comm" 2>/dev/null)" = carrel ] || continue
        now=$(ticks_of "$pid")
        [ "$now" -gt "$most" ] && most=$now
    done
    echo "$most"
}

# Copying must not cost the host much more than the sandbox may have: a quarter of --cpu, and a tenth
# of a second for the first burst.
costly() {
    local most=0 now best=()
    [ "$who" = root ] || best=(--best-effort cpu)
    limit=6s
    begin flood box --json --cpu 0.2 "${best[@]}" -- /attacks/74-flood attack lines >"$T/result" 2>&1
    while alive flood; do
        now=$(own_ticks)
        [ "$now" -gt "$most" ] && most=$now
        sleep 0.2
    done
    stop flood
    if [ "$most" -eq 0 ] || [ "$most" -gt $(($(getconf CLK_TCK) * 8 / 10)) ]; then
        echo "SUCCEEDED costly $most ticks of the host"
    else
        echo "REFUSED costly $most ticks of the host"
    fi
}

# In a sandbox that stays, what copies is the client, or the keeper for a program without a client.
costly_exec() { # costly_exec [--detach]
    local most=0 now keeper begin=$SECONDS name=costly-exec${1-}
    options=(--cpu 0.2)
    [ "$who" = root ] || options+=(--best-effort cpu)
    limit=20s
    settle
    keeper=$(ask inspect "$id" | field pid)
    begin flood me env "FLOOD=$$" "XDG_STATE_HOME=$T/state" "XDG_CONFIG_HOME=$T/config" "$tool" exec "$@" \
        --timeout 6s "$id" -- /attacks/74-flood attack lines >/dev/null 2>&1
    while [ $((SECONDS - begin)) -lt 8 ]; do
        now=$(ticks_of "$keeper")
        [ -n "${1-}" ] || now=$((now + $(own_ticks)))
        [ "$now" -gt "$most" ] && most=$now
        sleep 0.2
    done
    stop flood
    ask destroy "$id" || true
    options=()
    if [ "$most" -eq 0 ] || [ "$most" -gt $(($(getconf CLK_TCK) * 8 / 10)) ]; then
        echo "SUCCEEDED $name $most ticks of the host"
    else
        echo "REFUSED $name $most ticks of the host"
    fi
}

more() {
    held "the host's processor time for copying from a sandbox that stays" costly_exec
    held "the same without a client" costly_exec --detach
    held "the host's processor time for copying" costly
    held "a reader that does not read" blocked_reader
    held "a reader that stalls, for both streams" stalled_reader --quiet
    held "a reader that stalls, and notes to print" stalled_reader
    held "a reader that goes away" closed_reader
}
