# shellcheck shell=bash disable=SC2034  # the sourcing script reads the reason
# engine.sh - a private Docker engine. To be sourced, by bats or bash.
#
#   engine_start DIR   starts one that keeps everything below DIR, without a network; DOCKER_HOST
#                      is its socket. Fails with the reason in $NO_ENGINE_REASON.
#   engine_stop        ends it, and what it started

NO_ENGINE_REASON=
_engine_pid=

engine_start() {
    local dir=$1 i
    if [ "$(id -u)" -ne 0 ]; then
        NO_ENGINE_REASON="a Docker engine needs root"
        return 1
    fi
    if ! command -v dockerd >/dev/null || ! command -v docker >/dev/null; then
        NO_ENGINE_REASON="the package docker.io is missing"
        return 1
    fi
    mkdir -p "$dir"
    export DOCKER_HOST=unix://$dir/engine.sock
    dockerd --iptables=false --ip6tables=false --bridge=none --data-root "$dir/data" \
        --exec-root "$dir/exec" --pidfile "$dir/pid" -H "$DOCKER_HOST" >"$dir/log" 2>&1 3>&- 9>&- &
    _engine_pid=$!
    for ((i = 0; i < 600; i++)); do
        docker version >/dev/null 2>&1 && return
        kill -0 "$_engine_pid" 2>/dev/null || break
        sleep 0.1
    done
    NO_ENGINE_REASON="no Docker engine can be started here: $(tail -n 1 "$dir/log" | cut -c 1-200)"
    engine_stop
    return 1
}

engine_stop() {
    [ -n "$_engine_pid" ] || return 0
    kill "$_engine_pid" 2>/dev/null || true
    wait "$_engine_pid" 2>/dev/null || true
    _engine_pid=
}
