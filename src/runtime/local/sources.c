/* sources.c - mount sources. */
#include "runtime/local/sources.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/named.h"
#include "runtime/local/idmap.h"
#include "runtime/local/inside/sys.h"
#include "runtime/local/plan.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>

/* The last map, reused: layers of a stack have one owner, and a map costs a process. */
struct owner_map {
    int ns;
    uid_t uid;
    gid_t gid;
};

/*
 * Makes the source's owner appear as the program's user. A read-only source on a file system
 * that does not support this is mounted unmapped, which gives the program less, never more.
 */
static int map_owner(int mount, const struct plan_source *m, const struct stat *st,
        const struct plan *plan, uint32_t base, struct owner_map *map, struct carrel_error *err)
{
    if (map->ns < 0 || map->uid != st->st_uid || map->gid != st->st_gid) {
        int ns = idmap_open(st->st_uid, base + plan->uid, st->st_gid, base + plan->gid, err);
        if (ns < 0)
            return ns;
        fd_close(map->ns);
        *map = (struct owner_map){ .ns = ns, .uid = st->st_uid, .gid = st->st_gid };
    }
    struct mount_attr attr = {
        .attr_set = MOUNT_ATTR_IDMAP,
        .userns_fd = (unsigned)map->ns,
    };
    if (mount_setattr(mount, "", AT_EMPTY_PATH | AT_RECURSIVE, &attr, sizeof(attr)) == 0)
        return 0;
    if ((errno == EINVAL || errno == EOPNOTSUPP) && !m->is_writable)
        return 0;
    return err_set(err, -ENOTSUP,
            "mount source '%s' cannot be written by the sandbox's user: its file system does "
            "not "
            "support id-mapped mounts (%s); mount it read-only (:ro) or use another directory",
            m->path, strerrordesc_np(errno));
}

/* Pages of huge files are in a pool of the machine that no memory limit counts. */
static int check_storage(
        int fd, const struct stat *st, struct plan_source *m, struct carrel_error *err)
{
    struct statfs fs;

    if (fstatfs(fd, &fs) < 0)
        return err_set_errno(err, -errno, "mount source '%s'", m->path);
    m->storage = storage_of(st, &fs);
    if (fs.f_type == HUGETLBFS_MAGIC)
        return err_set(err, -EPERM,
                "mount source '%s' is a file system of huge pages, which no limit counts",
                m->path);
    return 0;
}

static int open_mount(int fd, const struct plan_source *m, const struct plan *plan,
        uint32_t base, struct owner_map *map, struct carrel_error *err)
{
    struct stat st;
    AUTO(fd_close)
    int mount = open_tree(fd, "",
            OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH | AT_RECURSIVE |
                    AT_NO_AUTOMOUNT);
    if (mount < 0 || fstat(fd, &st) < 0)
        return err_set_errno(err, -errno, "mount source '%s'", m->path);
    int r = map_owner(mount, m, &st, plan, base, map, err);
    return r < 0 ? r : fd_steal(&mount);
}

static int open_one(struct plan *plan, size_t i, uint32_t base, struct owner_map *map, int *out,
        struct carrel_error *err)
{
    struct plan_source *m = &plan->sources[i];
    struct stat st;
    char path[PATH_MAX];

    AUTO(fd_close)
    int fd = m->fd >= 0 ? fcntl(m->fd, F_DUPFD_CLOEXEC, 3) : open(m->path, O_PATH | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) < 0)
        return err_set_errno(err, -errno, "mount source '%s'", m->path);
    if (!S_ISDIR(st.st_mode) && !S_ISREG(st.st_mode))
        return err_set(
                err, -EINVAL, "mount source '%s' is neither a directory nor a file", m->path);
    int r = check_storage(fd, &st, m, err);
    if (r < 0)
        return r;
    m->id = named_id_of(&st);
    if (plan_is_of_root(plan)) {
        *out = open_mount(fd, m, plan, base, map, err);
        return *out < 0 ? *out : 0;
    }
    r = named_path(fd, path, sizeof(path));
    return r < 0 ? err_set_errno(err, r, "mount source '%s'", m->path)
                 : plan_set_source(plan, i, path, err);
}

int sources_open(
        struct sources *sources, struct plan *plan, uint32_t base, struct carrel_error *err)
{
    if (plan->n_sources == 0)
        return 0;
    sources->fds = calloc(plan->n_sources, sizeof(*sources->fds));
    if (!sources->fds)
        return err_set_errno(err, -ENOMEM, "mounts");
    for (; sources->n < plan->n_sources; sources->n++)
        sources->fds[sources->n] = -1;
    struct owner_map map = { .ns = -1 };
    int r = 0;
    for (size_t i = 0; r == 0 && i < plan->n_sources; i++)
        r = open_one(plan, i, base, &map, &sources->fds[i], err);
    fd_close(map.ns);
    return r;
}

void sources_close(struct sources *sources)
{
    for (size_t i = 0; i < sources->n; i++)
        fd_close(sources->fds[i]);
    free(sources->fds);
    *sources = (struct sources){ 0 };
}
