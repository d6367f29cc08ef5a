/*
 * file_act.c - one system call per request, on a path that was resolved under our rules.
 *
 * Only openat2(2) can restrict path resolution. So each operation first opens its target, or
 * the directory that holds it, with O_PATH and then acts on that descriptor: a program that
 * swaps names in between has no effect.
 */
#include "runtime/file_act.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/str.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#ifndef SYS_fchmodat2
#define SYS_fchmodat2 452 /* Linux 6.6 */
#endif

#define PERMISSIONS                                                                            \
    01777 /* never set-uid or set-gid: a file that we create must not lend an id */

struct act {
    const struct file_request *request;
    const struct file_where *where;
    uint64_t resolve;
    struct file_answer *answer;
    struct carrel_error *err;
};

uint64_t file_resolve_beneath(void)
{
    return RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS;
}

/* Adds the path, escaped: a program chose the name, and it must not control a terminal. */
static int failed(const struct act *act, int code, const char *what)
{
    char shown[300];
    const char *path = act->where[0].path;

    (void)str_escape(path, strlen(path), shown, sizeof(shown));
    if (code == -EOVERFLOW && act->request->has_user) /* of an id-mapped mount */
        return err_set(act->err, code, "%s '%s': this user can own nothing on that file system",
                what, shown);
    return err_set_errno(act->err, code, "%s '%s'", what, shown);
}

static int refuse(const struct act *act, int code, const char *why)
{
    char shown[300];
    const char *path = act->where[0].path;

    return err_set(act->err, code, "'%s' %s",
            str_escape(path, strlen(path), shown, sizeof(shown)), why);
}

static int resolve(const struct act *act, int base, const char *path, int flags, mode_t mode)
{
    const struct open_how how = {
        .flags = (uint64_t)(unsigned)(flags | O_CLOEXEC),
        .mode = mode,
        .resolve = act->resolve | RESOLVE_NO_MAGICLINKS,
    };

    return fd_open_how(base, path, &how);
}

/* Opens the target itself with O_PATH. */
static int open_place(const struct act *act, const char *what)
{
    int flags = O_PATH | (act->request->flags & FILE_NO_FOLLOW ? O_NOFOLLOW : 0);

    int fd = resolve(act, act->where[0].base, act->where[0].path, flags, 0);
    return fd < 0 ? failed(act, fd, what) : fd;
}

/* A name and its directory. */
struct entry {
    int dir;
    char name[NAME_MAX + 1];
};
#define ENTRY_INIT                                                                             \
    (struct entry)                                                                             \
    {                                                                                          \
        .dir = -1                                                                              \
    }

static void entry_close(struct entry entry)
{
    fd_close(entry.dir);
}
DEFINE_AUTO(struct entry, entry_close)

/*
 * "." and ".." are not special here: the calls below refuse them. A path of slashes alone has
 * the name ".".
 */
static int open_entry(
        const struct act *act, const struct file_where *where, struct entry *entry)
{
    char parent[PATH_MAX];
    size_t end = strlen(where->path);

    while (end > 1 && where->path[end - 1] == '/')
        end--;
    size_t begin = end;
    while (begin > 0 && where->path[begin - 1] != '/')
        begin--;
    if (end - begin > NAME_MAX || begin >= sizeof(parent) - 1)
        return -ENAMETOOLONG;
    memcpy(entry->name, end > begin ? where->path + begin : ".", end > begin ? end - begin : 1);
    entry->name[end > begin ? end - begin : 1] = '\0';
    memcpy(parent, begin > 0 ? where->path : ".", begin > 0 ? begin : 1);
    parent[begin > 0 ? begin : 1] = '\0';
    int fd = resolve(act, where->base, parent, O_PATH | O_DIRECTORY, 0);
    if (fd < 0)
        return fd;
    entry->dir = fd;
    return 0;
}

static int act_open(struct act *act)
{
    const struct file_request *request = act->request;
    const int flags = request->flags & ~O_PATH;
    struct stat st;

    /* Neither a FIFO nor a lease of a program may block us. */
    AUTO(fd_close)
    int fd = resolve(act, act->where[0].base, act->where[0].path, flags | O_NOCTTY | O_NONBLOCK,
            flags & O_CREAT ? request->mode & PERMISSIONS : 0);
    if (fd == -ENXIO) /* a FIFO without a reader, a socket */
        return refuse(act, -EINVAL, "is neither a file nor a directory");
    if (fd < 0)
        return failed(act, fd, "open");
    if (fstat(fd, &st) < 0)
        return failed(act, -errno, "stat");
    if (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode))
        return refuse(act, -EINVAL, "is neither a file nor a directory");
    if (fcntl(fd, F_SETFL, flags & (O_APPEND | O_NONBLOCK)) < 0)
        return failed(act, -errno, "open");
    act->answer->fd = fd_steal(&fd);
    return 0;
}

void file_stat_fill(const struct stat *st, struct file_stat *out)
{
    *out = (struct file_stat){
        .device = st->st_dev,
        .inode = st->st_ino,
        .links = st->st_nlink,
        .mode = st->st_mode,
        .uid = st->st_uid,
        .gid = st->st_gid,
        .size = (uint64_t)st->st_size,
        .held_bytes = (uint64_t)st->st_blocks * 512,
        .atime = st->st_atim,
        .mtime = st->st_mtim,
        .ctime = st->st_ctim,
    };
}

static int act_stat(struct act *act)
{
    struct stat st;

    AUTO(fd_close) int fd = open_place(act, "stat");
    if (fd < 0)
        return fd;
    if (fstat(fd, &st) < 0)
        return failed(act, -errno, "stat");
    file_stat_fill(&st, &act->answer->stat);
    return 0;
}

/* A link in /proc reads differently for each reader, and may reveal facts about the host. */
static int act_read_link(struct act *act)
{
    struct stat st;
    struct statfs fs;

    AUTO(fd_close)
    int fd = resolve(act, act->where[0].base, act->where[0].path, O_PATH | O_NOFOLLOW, 0);
    if (fd < 0)
        return failed(act, fd, "read link");
    if (fstat(fd, &st) < 0 || fstatfs(fd, &fs) < 0)
        return failed(act, -errno, "read link");
    if (!S_ISLNK(st.st_mode))
        return refuse(act, -EINVAL, "is not a link");
    if (fs.f_type == PROC_SUPER_MAGIC)
        return failed(act, -ELOOP, "read link");
    act->answer->fd = fd_steal(&fd);
    return 0;
}

static int act_make_dir(struct act *act)
{
    AUTO(entry_close) struct entry entry = ENTRY_INIT;

    int r = open_entry(act, &act->where[0], &entry);
    if (r == 0 && mkdirat(entry.dir, entry.name, act->request->mode & PERMISSIONS) < 0)
        r = -errno;
    return r < 0 ? failed(act, r, "make directory") : 0;
}

static int act_remove(struct act *act)
{
    AUTO(entry_close) struct entry entry = ENTRY_INIT;
    int flags = act->request->op == FILE_REMOVE_DIR ? AT_REMOVEDIR : 0;

    int r = open_entry(act, &act->where[0], &entry);
    if (r == 0 && unlinkat(entry.dir, entry.name, flags) < 0)
        r = -errno;
    return r < 0 ? failed(act, r, "remove") : 0;
}

static int act_rename(struct act *act)
{
    AUTO(entry_close) struct entry from = ENTRY_INIT;
    AUTO(entry_close) struct entry to = ENTRY_INIT;
    unsigned flags = act->request->flags & FILE_NO_REPLACE ? RENAME_NOREPLACE : 0;

    int r = open_entry(act, &act->where[0], &from);
    if (r == 0)
        r = open_entry(act, &act->where[1], &to);
    if (r == 0 && renameat2(from.dir, from.name, to.dir, to.name, flags) < 0)
        r = -errno;
    return r < 0 ? failed(act, r, "rename") : 0;
}

static int act_link(struct act *act)
{
    AUTO(entry_close) struct entry from = ENTRY_INIT;
    AUTO(entry_close) struct entry to = ENTRY_INIT;

    int r = open_entry(act, &act->where[0], &from);
    if (r == 0)
        r = open_entry(act, &act->where[1], &to);
    if (r == 0 && linkat(from.dir, from.name, to.dir, to.name, 0) < 0)
        r = -errno;
    return r < 0 ? failed(act, r, "link") : 0;
}

static int act_symlink(struct act *act)
{
    AUTO(entry_close) struct entry entry = ENTRY_INIT;

    int r = open_entry(act, &act->where[0], &entry);
    if (r == 0 && symlinkat(act->request->other, entry.dir, entry.name) < 0)
        r = -errno;
    return r < 0 ? failed(act, r, "make link") : 0;
}

/* The name of our own descriptor, for calls that refuse O_PATH descriptors. */
static void name_own(int fd, char path[static 32])
{
    (void)snprintf(path, 32, "/proc/self/fd/%d", fd);
}

static int act_set_mode(struct act *act)
{
    mode_t mode = act->request->mode & PERMISSIONS;
    char own[32];
    struct stat st;

    AUTO(fd_close) int fd = open_place(act, "set mode of");
    if (fd < 0)
        return fd;
    if (fstat(fd, &st) < 0)
        return failed(act, -errno, "stat");
    if (S_ISLNK(st.st_mode))
        return failed(act, -ELOOP, "set mode of");
    if (syscall(SYS_fchmodat2, fd, "", mode, AT_EMPTY_PATH) == 0)
        return 0;
    if (errno != ENOSYS && errno != EPERM) /* EPERM: some filters answer it instead of ENOSYS */
        return failed(act, -errno, "set mode of");
    name_own(fd, own);
    return chmod(own, mode) < 0 ? failed(act, -errno, "set mode of") : 0;
}

static int act_set_times(struct act *act)
{
    AUTO(fd_close) int fd = open_place(act, "set times of");
    if (fd < 0)
        return fd;
    if (utimensat(fd, "", act->request->times, AT_EMPTY_PATH) < 0)
        return failed(act, -errno, "set times of");
    return 0;
}

static int act_watch(struct act *act)
{
    char own[32];

    AUTO(fd_close) int fd = open_place(act, "watch");
    if (fd < 0)
        return fd;
    name_own(fd, own);
    int watch = inotify_add_watch(act->request->watch, own, act->request->events);
    if (watch < 0)
        return failed(act, -errno, "watch");
    act->answer->watch = watch;
    return 0;
}

static int (*const acts[FILE_OP_COUNT])(struct act *act) = {
    [FILE_OPEN] = act_open,
    [FILE_STAT] = act_stat,
    [FILE_READ_LINK] = act_read_link,
    [FILE_MAKE_DIR] = act_make_dir,
    [FILE_REMOVE] = act_remove,
    [FILE_REMOVE_DIR] = act_remove,
    [FILE_RENAME] = act_rename,
    [FILE_LINK] = act_link,
    [FILE_SYMLINK] = act_symlink,
    [FILE_SET_MODE] = act_set_mode,
    [FILE_SET_TIMES] = act_set_times,
    [FILE_WATCH] = act_watch,
};

int file_act(const struct file_request *request, const struct file_where where[static 2],
        uint64_t resolve_flags, struct file_answer *answer, struct carrel_error *err)
{
    struct file_answer got = FILE_ANSWER_INIT;
    struct act act = {
        .request = request,
        .where = where,
        .resolve = resolve_flags,
        .answer = &got,
        .err = err,
    };

    int r = acts[request->op]
                    ? acts[request->op](&act)
                    : err_set(err, -ENOTSUP, "a directory is reached by its descriptor");
    if (r < 0)
        return r;
    *answer = got;
    return 0;
}
