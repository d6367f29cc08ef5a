/* hint.c - looking for a program on the host, for the message only. */
#include "core/request/hint.h"
#include "base/auto.h"
#include "base/err.h"
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static bool is_program(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 && S_ISREG(st.st_mode) && (st.st_mode & 0111);
}

/* Where the caller's own shell would find it. */
static bool find_on_host(const char *name, char *path, size_t size)
{
    const char *dirs = getenv("PATH");

    if (strchr(name, '/')) {
        int n = snprintf(path, size, "%s", name);
        return n > 0 && (size_t)n < size && is_program(path);
    }
    while (dirs && *dirs) {
        size_t len = strcspn(dirs, ":");
        int n = snprintf(path, size, "%.*s/%s", (int)len, dirs, name);
        if (len > 0 && n > 0 && (size_t)n < size && is_program(path))
            return true;
        dirs += len + (dirs[len] == ':');
    }
    return false;
}

static int explain(const char *name, struct carrel_error *err)
{
    char path[PATH_MAX];
    char dir[PATH_MAX];

    if (!find_on_host(name, path, sizeof(path)))
        return err->code;
    (void)snprintf(dir, sizeof(dir), "%s", path);
    char *slash = strrchr(dir, '/');
    if (!slash || slash == dir || path[0] != '/')
        return err_set(err, err->code,
                "'%s' is not in the sandbox; it is a file of this machine: expose it with "
                "--workdir . or --mount",
                name);
    *slash = '\0';
    if (strchr(name, '/'))
        return err_set(err, err->code,
                "'%.150s' is not in the sandbox; that part of this machine is not shown "
                "inside: "
                "expose it with --mount %.150s:%.150s",
                name, dir, dir);
    return err_set(err, err->code,
            "'%.60s' is not in the sandbox; on this machine it is %.100s, which is not shown "
            "inside: expose it with --mount %.90s:%.90s --env PATH=%.90s:/usr/bin:/bin",
            name, path, dir, dir, dir);
}

int hint_missing_program(const char *name, struct carrel_error *err)
{
    return err_from(err, explain(name, err), CARREL_FROM_PROGRAM);
}
