# shellcheck shell=bash disable=SC2034,SC2154
prepare() {
    start sibling box -- /attacks/04-ptrace victim
    start victim me "$A/04-ptrace" victim
    read -ra args <<<"$answer"
    bare_args=("${args[@]}" victim-only)
}
