# shellcheck shell=bash disable=SC2034,SC2154
prepare() {
    start victim me "$A/04-ptrace" victim
    bare_args=("${answer%% *}")
}
