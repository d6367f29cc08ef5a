# shellcheck shell=bash
# tap.sh - TAP from a shell script. To be sourced.
#
#   check SENTENCE CMD...     one test: passes when CMD does; its output is shown if it fails
#   skip SENTENCE REASON      one test that cannot run here
#   tap_done                  prints the plan; exits with 1 if a test failed

_tap_number=0
_tap_failed=0
echo "TAP version 13"

check() {
    # Functions see the variables of their callers: these names must not clash.
    local _tap_sentence=$1 _tap_output _tap_status
    shift
    _tap_number=$((_tap_number + 1))
    set +e # or the shell would not let the subshell have its own -e
    _tap_output=$(
        set -e
        "$@" 2>&1
    )
    _tap_status=$?
    set -e
    if [ "$_tap_status" -eq 0 ]; then
        echo "ok $_tap_number - $_tap_sentence"
    else
        echo "not ok $_tap_number - $_tap_sentence"
        [ -z "$_tap_output" ] || echo "#   ${_tap_output//$'\n'/$'\n#   '}"
        echo "#   exit status $_tap_status"
        _tap_failed=1
    fi
}

skip() {
    _tap_number=$((_tap_number + 1))
    echo "ok $_tap_number - $1 # SKIP $2"
}

tap_done() {
    echo "1..$_tap_number"
    exit "$_tap_failed"
}
