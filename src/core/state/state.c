/* state.c - paths and ids. */
#include "core/state/state.h"
#include "base/err.h"
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int state_path(char *path, size_t size, struct carrel_error *err)
{
    const char *state = getenv("XDG_STATE_HOME");
    const char *home = getenv("HOME");
    int n;

    if (state && state[0] == '/')
        n = snprintf(path, size, "%s/carrel", state);
    else if (geteuid() == 0)
        n = snprintf(path, size, "/var/lib/carrel");
    else if (home && home[0] == '/')
        n = snprintf(path, size, "%s/.local/state/carrel", home);
    else
        return err_set(err, -ENOENT,
                "neither XDG_STATE_HOME nor HOME is set: there is no place to keep anything; "
                "set one of them");
    if (n < 0 || (size_t)n >= size)
        return err_set_errno(err, -ENAMETOOLONG, "state directory");
    return 0;
}

int state_config_path(const char *name, char *path, size_t size, struct carrel_error *err)
{
    const char *config = getenv("XDG_CONFIG_HOME");
    const char *home = getenv("HOME");
    int n;

    if (config && config[0] == '/')
        n = snprintf(path, size, "%s/carrel/%s", config, name);
    else if (home && home[0] == '/')
        n = snprintf(path, size, "%s/.config/carrel/%s", home, name);
    else
        return err_set(err, -ENOENT, "neither XDG_CONFIG_HOME nor HOME is set");
    return n < 0 || (size_t)n >= size ? err_set_errno(err, -ENAMETOOLONG, "'%s'", name) : 0;
}

int state_make(const char *path, struct carrel_error *err)
{
    char part[PATH_MAX];

    if (mkdir(path, 0700) == 0 || errno == EEXIST)
        return 0;
    for (const char *slash = path + 1; (slash = strchr(slash, '/')); slash++) {
        (void)snprintf(part, sizeof(part), "%.*s", (int)(slash - path), path);
        if (mkdir(part, 0700) < 0 && errno != EEXIST)
            return err_set_errno(err, -errno, "create '%s'", part);
    }
    if (mkdir(path, 0700) < 0 && errno != EEXIST)
        return err_set_errno(err, -errno, "create '%s'", path);
    return 0;
}

void state_run_key(const char *task, const char *run, char key[static STATE_KEY_MAX])
{
    if (id_is_made_up('R', run) || !task || !task[0])
        (void)snprintf(key, STATE_KEY_MAX, "%s", run);
    else
        (void)snprintf(key, STATE_KEY_MAX, "%s+%s", task, run);
}

int state_new_id(char prefix, char id[static ID_SIZE], struct carrel_error *err)
{
    return id_new(prefix, id, err);
}
