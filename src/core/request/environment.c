/* environment.c - building a program's environment. */
#include "core/request/environment.h"
#include "base/err.h"
#include "base/str.h"
#include "runtime/runtime.h"
#include <errno.h>
#include <stdio.h>

#define MINIMAL 6

static void put(char **env, size_t *n, char *entry)
{
    size_t key = strcspn(entry, "=") + 1;

    for (size_t i = 0; i < *n; i++) {
        if (strncmp(env[i], entry, key) == 0) {
            free(env[i]);
            env[i] = entry;
            return;
        }
    }
    env[(*n)++] = entry;
}

static int put_pair(char **env, size_t *n, const char *key, const char *value)
{
    char *entry = NULL;

    if (asprintf(&entry, "%s=%s", key, value) < 0)
        return -ENOMEM;
    put(env, n, entry);
    return 0;
}

int environment_make(const struct sandbox *box, const char *const *added, bool has_tty,
        char ***out, struct carrel_error *err)
{
    size_t n_added = 0;
    size_t n = 0;

    for (; added && added[n_added]; n_added++) {
        const char *equals = strchr(added[n_added], '=');
        char shown[64];
        if (!equals || !str_is_env_name(added[n_added], (size_t)(equals - added[n_added])))
            return err_set(err, -EINVAL, "environment entry '%s' is not NAME=VALUE",
                    str_escape(added[n_added], strcspn(added[n_added], "="), shown,
                            sizeof(shown)));
    }
    AUTO(environment_free) char **env = calloc(MINIMAL + n_added + 1, sizeof(*env));
    if (!env)
        return err_set_errno(err, -ENOMEM, "environment");

    int r = put_pair(
            env, &n, "PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");
    if (r == 0)
        r = put_pair(env, &n, "HOME", box->home);
    if (r == 0)
        r = put_pair(env, &n, "USER", box->user_name);
    if (r == 0)
        r = put_pair(env, &n, "LANG", "C.UTF-8");
    if (r == 0 && has_tty)
        r = put_pair(env, &n, "TERM", "xterm-256color");
    for (size_t i = 0; r == 0 && i < n_added; i++) {
        char *copy = strdup(added[i]);
        if (copy)
            put(env, &n, copy);
        else
            r = -ENOMEM;
    }
    if (r < 0)
        return err_set_errno(err, r, "environment");
    *out = ptr_steal(&env);
    return 0;
}

void environment_free(char **env)
{
    for (size_t i = 0; env && env[i]; i++)
        free(env[i]);
    free(env);
}
