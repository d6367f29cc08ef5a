# shellcheck shell=bash disable=SC2034,SC2154
prepare() {
    local name
    planted=()
    for name in LD_LIBRARY_PATH BASH_ENV ENV GIT_DIR GIT_SSH_COMMAND GIT_CONFIG_GLOBAL PYTHONPATH \
        PYTHONSTARTUP NODE_OPTIONS AWS_SECRET_ACCESS_KEY GOOGLE_APPLICATION_CREDENTIALS \
        MODEL_API_KEY GITHUB_TOKEN SSH_AUTH_SOCK DBUS_SESSION_BUS_ADDRESS XDG_RUNTIME_DIR \
        http_proxy CARREL_ESCAPE_SECRET; do
        planted+=("$name=/nonexistent/$RANDOM")
    done
    before=(env "${planted[@]}")
    wrap=(env "${planted[@]}")
}

control() { box --env GIVEN=yes -- /attacks/21-environment control; }

more() {
    all_attempts=no
    # Other variables must not be in the memory of init either: its stack started as a copy of ours.
    held "the environment of init" box -- /attacks/05-proc attack
}
