/* rundir.c - a directory that only this user can write to. */
#include "base/rundir.h"
#include "base/dir.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/str.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define USERS "/run/user"

/* $XDG_RUNTIME_DIR, or NULL if it is unset or ignored. */
static const char *given_dir(void)
{
    const char *given = getenv("XDG_RUNTIME_DIR");

    return geteuid() != 0 && given && given[0] == '/' ? given : NULL;
}

/* Not for a user who is root in a user namespace only: /run is the machine's. */
static bool has_run(void)
{
    struct stat st;

    return geteuid() == 0 && (stat("/run", &st) < 0 || st.st_uid == 0);
}

static int dir_path(const char *given, char *path, size_t size)
{
    int n;

    if (has_run())
        n = snprintf(path, size, "/run/carrel");
    else if (given)
        n = snprintf(path, size, "%s/carrel", given);
    else
        n = snprintf(path, size, "/tmp/carrel-%u", (unsigned)geteuid());
    return n < 0 || (size_t)n >= size ? -ENAMETOOLONG : 0;
}

/* /tmp is world-writable: a directory that another user created there is refused. */
static int open_own(const char *path, struct carrel_error *err)
{
    struct stat st;

    AUTO(fd_close) int dir = open(path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (dir < 0 && errno == ENOENT) {
        if (mkdir(path, 0700) < 0 && errno != EEXIST)
            return err_set_errno(err, -errno, "make '%s'", path);
        dir = open(path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    }
    if (dir < 0 || fstat(dir, &st) < 0)
        return err_set_errno(err, -errno, "open '%s'", path);
    if (st.st_uid != geteuid() || (st.st_mode & 022))
        return err_set(
                err, -EPERM, "'%s' belongs to or is writable by another user; remove it", path);
    return fd_steal(&dir);
}

int rundir_open(struct carrel_error *err)
{
    const char *given = given_dir();
    char path[PATH_MAX];

    int r = dir_path(given, path, sizeof(path));
    r = r < 0 ? err_set_errno(err, r, "its path") : open_own(path, err);
    if (r >= 0 || !given)
        return r;
    return err_wrap(err, r,
            "XDG_RUNTIME_DIR is not usable; set it to a directory of your own, or unset it");
}

/* The directory that the system made for the user. */
static bool is_made(const char *path)
{
    struct stat st;

    return lstat(path, &st) == 0 && S_ISDIR(st.st_mode) && st.st_uid == geteuid() &&
           !(st.st_mode & 022);
}

int rundir_open_shared(struct carrel_error *err)
{
    char made[64], path[PATH_MAX];

    (void)snprintf(made, sizeof(made), USERS "/%u", (unsigned)geteuid());
    int r = dir_path(is_made(made) ? made : NULL, path, sizeof(path));
    return r < 0 ? err_set_errno(err, r, "its path") : open_own(path, err);
}

/* A user may have put anything there: only a directory of that user counts. */
static int visit(int at, const char *name, uid_t uid,
        int (*each)(int dir, uid_t uid, void *context), void *context)
{
    struct stat st;

    AUTO(fd_close) int dir = openat(at, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (dir < 0 || fstat(dir, &st) < 0 || st.st_uid != uid)
        return 0;
    return each(dir, uid, context);
}

/* The user whose number ends `name` after `prefix`; false: it does not. */
static bool parse_uid(const char *name, const char *prefix, uid_t *uid)
{
    const size_t len = strlen(prefix);
    uint64_t number;

    if (strncmp(name, prefix, len) != 0 || str_parse_u64(name + len, &number) < 0 ||
            number == 0 || number >= UINT32_MAX)
        return false;
    *uid = (uid_t)number;
    return true;
}

static const struct {
    const char *dir, *prefix, *below;
} places[] = { { USERS, "", "/carrel" }, { "/tmp", "carrel-", "" } };

int rundir_each_own(int (*each)(int dir, uid_t uid, void *context), void *context)
{
    char path[64];
    int r = 0;

    for (size_t i = 0; r == 0 && geteuid() != 0 && i < ARRAY_LEN(places); i++) {
        AUTO(fd_close) int at = open(places[i].dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
        (void)snprintf(path, sizeof(path), "%s%u%s", places[i].prefix, (unsigned)geteuid(),
                places[i].below);
        r = at < 0 ? 0 : visit(at, path, geteuid(), each, context);
    }
    return r;
}

int rundir_each_user(int (*each)(int dir, uid_t uid, void *context), void *context)
{
    char path[NAME_MAX + sizeof("/carrel")];
    int r = 0;

    for (size_t i = 0; i < ARRAY_LEN(places); i++) {
        AUTO(fd_close) int at = open(places[i].dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        AUTO(dir_close) DIR *list = at < 0 ? NULL : dir_open(at, ".");
        uid_t uid;
        for (const char *name; r == 0 && list && (name = dir_next(list));) {
            if (!parse_uid(name, places[i].prefix, &uid))
                continue;
            (void)snprintf(path, sizeof(path), "%s%s", name, places[i].below);
            r = visit(at, path, uid, each, context);
        }
    }
    return r;
}
