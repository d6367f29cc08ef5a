/*
 * upper_fixture.h - for tests: an upper directory over two layers, created by hand, and its
 * walk.
 */
#pragma once
#include "base/auto.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/tree.h"
#include "harness.h"
#include "workspace/harvest/upper.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

static struct carrel_error err;
static struct changes changes;

/* A directory with an upper and two layers of a base, all empty. */
struct place {
    const char *parent;
    char dir[40];
    int fd;
    int upper;
    char paths[2][80];
    const char *lower[3];
    struct upper_base base;
};

static inline void make_place_in(struct place *place, const char *parent)
{
    *place = (struct place){ .parent = parent };
    (void)snprintf(place->dir, sizeof(place->dir), "%s/upper-test-XXXXXX", parent);
    CHECK(test_mkdtemp(place->dir));
    place->fd = open(place->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    CHECK(place->fd >= 0);
    CHECK_EQ(mkdirat(place->fd, "upper", 0755), 0);
    CHECK_EQ(mkdirat(place->fd, "layer", 0755), 0);
    CHECK_EQ(mkdirat(place->fd, "tree", 0755), 0);
    place->upper = openat(place->fd, "upper", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    CHECK(place->upper >= 0);
    (void)snprintf(place->paths[0], sizeof(place->paths[0]), "%s/layer", place->dir);
    (void)snprintf(place->paths[1], sizeof(place->paths[1]), "%s/tree", place->dir);
    place->lower[0] = place->paths[0];
    place->lower[1] = place->paths[1];
    place->base = (struct upper_base){ .lower = place->lower, .exclude = "" };
}

static inline void make_place(struct place *place)
{
    make_place_in(place, "/tmp");
}

/* For many files without attributes: in memory, if possible. */
static inline void make_large_place(struct place *place)
{
    make_place_in(place, access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
}

static inline void drop_place(struct place *place)
{
    AUTO(fd_close) int parent = open(place->parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    changes_finish(&changes);
    fd_close(place->upper);
    fd_close(place->fd);
    CHECK_EQ(tree_remove(parent, place->dir + strlen(place->parent) + 1, &err), 0);
}

static inline void put(const struct place *place, const char *path, const char *text)
{
    AUTO(fd_close) int fd = openat(place->fd, path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);

    CHECK(fd >= 0);
    CHECK_EQ(fd_write_all(fd, text, strlen(text)), 0);
}

static inline void put_dir(const struct place *place, const char *path)
{
    CHECK_EQ(mkdirat(place->fd, path, 0755), 0);
}

static inline void put_whiteout(const struct place *place, const char *path)
{
    if (mknodat(place->fd, path, S_IFCHR | 0600, makedev(0, 0)) < 0)
        SKIP("no whiteout can be made here: %s", strerror(errno));
}

/* Not "trusted.", which needs root; the code treats both alike. */
static inline void mark(
        const struct place *place, const char *path, const char *name, const char *value)
{
    AUTO(fd_close) int fd = openat(place->fd, path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);

    CHECK(fd >= 0);
    if (fsetxattr(fd, name, value, strlen(value), 0) < 0)
        SKIP("attribute %s cannot be set here: %s", name, strerror(errno));
}

static inline int walk(const struct place *place)
{
    const struct upper_limits limits = UPPER_LIMITS_INIT;

    changes_finish(&changes);
    err.message[0] = '\0';
    return upper_walk(place->upper, &place->base, &limits, &changes, &err);
}

/* The list as text: "-gone *program @link file", oddities after a bar. */
static inline const char *shown(void)
{
    static char text[4096];
    static const char *const kinds[] = { "-", "", "*", "@" };
    static const char *const odd[] = { "repository ", "special ", "gitlink ", "unreadable " };
    size_t len = 0;

    text[0] = '\0';
    for (size_t i = 0; i < changes.n; i++)
        len += (size_t)snprintf(text + len, sizeof(text) - len, "%s%s%s", i ? " " : "",
                kinds[changes.items[i].kind], changes.items[i].path);
    for (size_t i = 0; i < changes.n_oddities; i++)
        len += (size_t)snprintf(text + len, sizeof(text) - len, "|%s%s",
                odd[changes.oddities[i].kind], changes.oddities[i].path);
    return text;
}

static inline const char *walked(const struct place *place)
{
    if (walk(place) < 0)
        test_fail(__FILE__, __LINE__, "%s", err.message);
    return shown();
}
