/* state.c - paths and ids. */
#include "core/state.h"
#include "base/err.h"
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
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
                "neither XDG_STATE_HOME nor HOME is set: there is no place to keep anything "
                "(set one, or --journal off)");
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

/* 32: five bits each; nothing that is easily taken for another */
static const char digits[] = "0123456789abcdefghjkmnpqrstvwxyz";

static bool is_made_up(const char *run)
{
    return strncmp(run, "R-", 2) == 0 && strlen(run) == 18 && strspn(run + 2, digits) == 16;
}

void state_run_key(const char *task, const char *run, char key[static STATE_KEY_MAX])
{
    if (is_made_up(run) || !task || !task[0])
        (void)snprintf(key, STATE_KEY_MAX, "%s", run);
    else
        (void)snprintf(key, STATE_KEY_MAX, "%s+%s", task, run);
}

int state_new_id(char prefix, char id[static 20], struct carrel_error *err)
{
    unsigned char bytes[16];

    if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes))
        return err_set_errno(err, -errno, "getrandom");
    id[0] = prefix;
    id[1] = '-';
    for (size_t i = 0; i < sizeof(bytes); i++)
        id[2 + i] = digits[bytes[i] % 32];
    id[18] = '\0';
    return 0;
}
