/* own_places.c - compares directories by what they are, not by their names. */
#include "core/request/own_places.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/named.h"
#include "base/path.h"
#include "base/rundir.h"
#include "core/state/state.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SYSTEM_POLICY "/etc/carrel"

/*
 * Whether a writer of the directory `id` decides what `place` is: one of the directories on the
 * way to it, by name or by where links lead, is that directory or below it.
 */
static bool is_held(const struct named_id *id, const char *place)
{
    char part[PATH_MAX];

    for (const char *end = place; end; end = *end ? strchrnul(end + 1, '/') : NULL) {
        int len = end == place ? 1 : (int)(end - place);
        (void)snprintf(part, sizeof(part), "%.*s", len, place);
        AUTO(fd_close) int dir = open(part, O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (dir < 0)
            return false;
        if (named_is_below(dir, id))
            return true;
    }
    return false;
}

/* Whether the mount is in the directory; a file has no parent to ask, so by the kernel's path.
 */
static bool is_in(int fd, const char *path, int place)
{
    char own[PATH_MAX];
    struct stat st;

    if (named_path(place, own, sizeof(own)) == 0 && path_is_below(path, own))
        return true;
    if (fstat(place, &st) < 0)
        return false;
    struct named_id id = named_id_of(&st);
    return named_is_below(fd, &id);
}

static int check_place(int fd, const char *path, const char *place, const char *what,
        const char *option, struct carrel_error *err)
{
    struct stat st;

    if (fstat(fd, &st) < 0)
        return err_set_errno(err, -errno, "%s '%s'", option, path);
    const struct named_id id = named_id_of(&st);
    AUTO(fd_close) int dir = open(place, O_PATH | O_DIRECTORY | O_CLOEXEC);
    const char *how = is_held(&id, place)                ? "holds"
                      : dir >= 0 && is_in(fd, path, dir) ? "lies in"
                                                         : NULL;
    if (!how)
        return 0;
    return err_set(err, -EPERM,
            "%s '%s' %s carrel's %s ('%s'), which no program may write to: mount it read-only "
            "(:ro), or another directory",
            option, path, how, what, place);
}

/* The directory of the user's settings; false if the environment has none. */
static bool settings_path(char *path, size_t size)
{
    if (state_config_path("policy.yaml", path, size, NULL) < 0)
        return false;
    *strrchr(path, '/') = '\0';
    return true;
}

int own_places_check(int fd, const char *path, const char *option, struct carrel_error *err)
{
    char place[PATH_MAX];
    int r = 0;

    if (state_path(place, sizeof(place), NULL) == 0)
        r = check_place(fd, path, place, "state", option, err);
    if (r == 0 && settings_path(place, sizeof(place)))
        r = check_place(fd, path, place, "settings", option, err);
    AUTO(fd_close) int run = r == 0 ? rundir_open(NULL) : -1;
    if (run >= 0 && named_path(run, place, sizeof(place)) == 0)
        r = check_place(fd, path, place, "list of sandboxes", option, err);
    AUTO(fd_close) int shared = r == 0 ? rundir_open_shared(NULL) : -1;
    if (shared >= 0 && named_path(shared, place, sizeof(place)) == 0)
        r = check_place(fd, path, place, "list of sandboxes", option, err);
    return r == 0 ? check_place(fd, path, SYSTEM_POLICY, "policy", option, err) : r;
}
