#!/bin/sh
# setup.sh - runs a setup command. If it fails, prints the last line of its output and exits with
# its status. An image need not have tail.
#
#   setup.sh COMMAND
/bin/sh -c "$1" >/tmp/.setup 2>&1 </dev/null && exit
status=$?
tail -n 1 /tmp/.setup 2>/dev/null || {
    while IFS= read -r line; do last=$line; done </tmp/.setup
    printf '%s\n' "$last"
}
exit "$status"
