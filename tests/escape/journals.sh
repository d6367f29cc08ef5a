# shellcheck shell=bash disable=SC2034,SC2154
# Shared by the cases about journals. To be sourced by them.
#
#   prepare_journals      a state directory and settings of the case's own; $runs holds the journals
#   carrel ARG...         with these
#   inspect ARG... <<EOF  a program in Python, as the identity of this round. It has lines(path) and
#                         records(path), and the words as `args`.

prepare_journals() {
    runs=$T/state/carrel/runs
    me mkdir "$T/state" "$T/config"
}

carrel() {
    me timeout -k 5 60 env -C "$T" HOME="$T" XDG_STATE_HOME="$T/state" XDG_CONFIG_HOME="$T/config" \
        "$tool" "$@" </dev/null
}

inspect() {
    me /usr/bin/python3 -I -X utf8 -c '
import glob, hashlib, json, os, sys

def lines(path):
    with open(path, "rb") as f:
        text = f.read()
    if not text.endswith(b"\n"):
        sys.exit(path + " does not end with a line")
    return text.split(b"\n")[:-1]

def records(path):
    return [json.loads(line) for line in lines(path)]

program, args = sys.argv[1], sys.argv[2:]
exec(program)' "$(cat)" "$@"
}
