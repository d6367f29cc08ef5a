/*
 * upper_usage.c - what a tree costs its host, counted while its owner may still be at work.
 *
 * Directories may be moved during the walk, also by the kernel: an overlay makes each in its
 * work directory first. So the directories above the present one stay open, down to a depth
 * that most trees do not reach. A run can nest directories deeper than any path can say; below
 * that depth the walk goes up by "..", and continues there only if that is the directory it
 * came from. Otherwise it continues at the nearest one that is still found, and the count is
 * approximate. A run can also close a directory to an ordinary user, who is its owner: the
 * owner may open it. The kernel's own work directory is always closed.
 */
#include "base/dir.h"
#include "base/err.h"
#include "base/fd.h"
#include "workspace/harvest/upper.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* One file with n names is met n times and counts a part each time, without a table of files.
 */
#define PARTS (UINT64_C(1) << 24)

/* Directories are many and mostly small: their names wait in one block, level after level. */
struct level {
    int fd; /* of the directory while we are below it; -1: it lies too deep */
    dev_t dev;
    ino_t ino;
    size_t names_start; /* of this level, in `names` */
    mode_t shut;        /* its mode before we opened it; NOT_SHUT: we did not have to */
};
#define NOT_SHUT ((mode_t)-1)
#define OWNERS 0700U
#define LEVELS_OPEN 32U /* deeper than most trees are */

struct count {
    int at; /* the directory we are in */
    dev_t dev;
    struct level *levels;
    size_t n_levels;
    size_t levels_room;
    char *names; /* NUL-terminated, subdirectories that are still to be visited */
    size_t names_len;
    size_t names_room;
    uint64_t bytes;
    uint64_t parts;
    uint64_t n_names;
    uint64_t max_names;
    bool passes_others; /* what other ids shut does not count */
};

static void count_finish(struct count count)
{
    fd_close(count.at);
    for (size_t i = 0; i < count.n_levels; i++)
        fd_close(count.levels[i].fd);
    free(count.levels);
    free(count.names);
}
DEFINE_AUTO(struct count, count_finish)

static int keep_name(struct count *count, const char *name)
{
    size_t len = strlen(name) + 1;

    if (count->names_len + len > count->names_room) {
        size_t room = 2 * count->names_room + 4096;
        char *grown = realloc(count->names, room);
        if (!grown)
            return -ENOMEM;
        count->names = grown;
        count->names_room = room;
    }
    memcpy(count->names + count->names_len, name, len);
    count->names_len += len;
    return 0;
}

static void add(struct count *count, const struct stat *st)
{
    bool is_dir = S_ISDIR(st->st_mode); /* its links are its own and its children's ".." */
    uint64_t links = is_dir || st->st_nlink == 0 ? 1 : st->st_nlink;

    count->bytes += (uint64_t)st->st_blocks * 512 / links;
    count->parts += PARTS / links;
}

/* By descriptor, since the run may exchange names; O_PATH knows no fchmod(). */
static int set_mode(int dir, mode_t mode)
{
    char path[48];

    (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", dir);
    return chmod(path, mode) < 0 ? -errno : 0;
}

static int open_list(int dir)
{
    int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    return fd < 0 ? -errno : fd;
}

/* Opens the present directory for its owner, who could not enter it. */
static int open_shut(struct count *count)
{
    struct level *level = &count->levels[count->n_levels - 1];
    struct stat st;

    if (fstat(count->at, &st) < 0)
        return -errno;
    int r = set_mode(count->at, (st.st_mode & 07777) | OWNERS);
    if (r < 0)
        return -EACCES; /* what cannot be counted is not taken for nothing */
    level->shut = st.st_mode & 07777;
    return open_list(count->at);
}

/* As the run had it, unless it has changed that itself. */
static void restore_mode(int dir, mode_t mode)
{
    struct stat st;

    if (fstat(dir, &st) == 0 && (st.st_mode & 07777) == (mode | OWNERS))
        (void)set_mode(dir, mode); /* left open is harmless */
}

/* Of a directory that can be read but not entered there are names and nothing else. */
static int look_at(struct count *count, const char *name, struct stat *st)
{
    if (fstatat(count->at, name, st, AT_SYMLINK_NOFOLLOW) == 0)
        return 0;
    if (errno != EACCES)
        return -errno;
    AUTO(fd_close) int fd = open_shut(count);
    if (fd < 0)
        return fd;
    return fstatat(count->at, name, st, AT_SYMLINK_NOFOLLOW) < 0 ? -errno : 0;
}

/* Counts what is in the present directory and keeps the names of its subdirectories. */
static int list(struct count *count)
{
    AUTO(fd_close) int fd = open_list(count->at);
    if (fd == -EACCES)
        fd = open_shut(count);
    if (fd < 0)
        return fd;
    AUTO(dir_close) DIR *dir = fdopendir(fd);
    if (!dir)
        return -errno;
    fd_steal(&fd);
    for (;;) {
        struct stat st;
        errno = 0;
        const struct dirent *item = readdir(dir);
        if (!item)
            return -errno;
        if (strcmp(item->d_name, ".") == 0 || strcmp(item->d_name, "..") == 0)
            continue;
        int r = look_at(count, item->d_name, &st);
        if (r == -ENOENT)
            continue;
        if (r < 0)
            return r;
        add(count, &st);
        r = S_ISDIR(st.st_mode) ? keep_name(count, item->d_name) : 0;
        if (r == 0 && ++count->n_names > count->max_names)
            r = -E2BIG;
        if (r < 0)
            return r;
    }
}

/* Takes the descriptor. */
static int enter(struct count *count, int dir)
{
    AUTO(fd_close) int fd = dir;
    struct stat st;

    if (fstat(fd, &st) < 0)
        return -errno;
    if (count->n_levels == count->levels_room) {
        size_t room = 2 * count->levels_room + 32;
        struct level *grown = reallocarray(count->levels, room, sizeof(*grown));
        if (!grown)
            return -ENOMEM;
        count->levels = grown;
        count->levels_room = room;
    }
    if (count->n_levels > 0 && count->n_levels <= LEVELS_OPEN)
        count->levels[count->n_levels - 1].fd = fd_steal(&count->at);
    count->levels[count->n_levels++] = (struct level){
        .fd = -1,
        .dev = st.st_dev,
        .ino = st.st_ino,
        .names_start = count->names_len,
        .shut = NOT_SHUT,
    };
    fd_close(count->at);
    count->at = fd_steal(&fd);
    return list(count);
}

/* Of a subordinate id, whom our caller has let in: it is not ours to open, nor to leave again.
 */
static bool is_shut_by_another(int dir)
{
    struct stat st;

    return fstat(dir, &st) == 0 && st.st_uid != geteuid() &&
           faccessat(dir, ".", R_OK | X_OK, AT_EACCESS) < 0 && errno == EACCES;
}

static int open_below(int dir, const char *name)
{
    const struct open_how how = {
        .flags = O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC,
        .resolve =
                RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV,
    };
    int fd = (int)syscall(SYS_openat2, dir, name, &how, sizeof(how));

    return fd < 0 ? -errno : fd;
}

/*
 * One step: into the newest name that waits in this directory. One that is gone is passed; and
 * the directory may have been shut since it was listed, by the run or by a second count.
 */
static int go_down(struct count *count)
{
    size_t start = count->names_len - 1;

    while (start > 0 && count->names[start - 1])
        start--;
    AUTO(fd_close) int fd = open_below(count->at, count->names + start);
    if (fd == -EACCES) {
        AUTO(fd_close) int list = open_shut(count);
        fd = list < 0 ? list : open_below(count->at, count->names + start);
    }
    count->names_len = start;
    if (fd == -ENOENT || fd == -ENOTDIR || fd == -ELOOP || fd == -EXDEV)
        return 0;
    if (fd < 0)
        return fd;
    return count->passes_others && is_shut_by_another(fd) ? 0 : enter(count, fd_steal(&fd));
}

/* The directory above, if it is the one that the walk came from; else -ESTALE. */
static int find_parent(const struct count *count, const struct level *parent)
{
    struct stat st;

    AUTO(fd_close) int fd = openat(count->at, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) < 0)
        return -errno;
    return st.st_dev == parent->dev && st.st_ino == parent->ino ? fd_steal(&fd) : -ESTALE;
}

/* The nearest directory above that can be found; the first level is always open. */
static int open_parent(struct count *count)
{
    for (;;) {
        struct level *parent = &count->levels[count->n_levels - 1];
        if (parent->fd >= 0)
            return fd_steal(&parent->fd);
        int fd = find_parent(count, parent);
        if (fd != -ESTALE)
            return fd;
        count->names_len =
                parent->names_start; /* it was moved: the rest of it is not counted */
        count->n_levels--;
    }
}

static int go_up(struct count *count)
{
    count->n_levels--;
    if (count->n_levels == 0)
        return 0;
    const mode_t shut = count->levels[count->n_levels].shut;
    AUTO(fd_close) int fd = open_parent(count);
    if (fd < 0)
        return fd;
    if (shut != NOT_SHUT)
        restore_mode(count->at, shut);
    fd_close(count->at);
    count->at = fd_steal(&fd);
    return 0;
}

static int sum_up(int upper, uint64_t max_names, bool passes_others, uint64_t *bytes,
        uint64_t *inodes, struct carrel_error *err)
{
    AUTO(count_finish)
    struct count count = { .at = -1, .max_names = max_names, .passes_others = passes_others };
    int fd = openat(upper, ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
    int r = fd < 0 ? -errno : enter(&count, fd);

    while (r == 0 && count.n_levels > 0) {
        if (count.names_len > count.levels[count.n_levels - 1].names_start)
            r = go_down(&count);
        else
            r = go_up(&count);
    }
    if (r == -E2BIG)
        return err_set(err, r, "more than %" PRIu64 " names in the workspace", max_names);
    if (r == -EACCES)
        return err_set(err, r, "another user of the sandbox shut a directory of the workspace");
    if (r < 0)
        return err_set_errno(err, r, "count the files of the workspace");
    *bytes = count.bytes;
    *inodes = (count.parts + PARTS - 1) / PARTS;
    return 0;
}

int upper_usage(int upper, uint64_t max_names, uint64_t *bytes, uint64_t *inodes,
        struct carrel_error *err)
{
    return sum_up(upper, max_names, false, bytes, inodes, err);
}

int upper_usage_but_others(int upper, uint64_t max_names, uint64_t *bytes, uint64_t *inodes,
        struct carrel_error *err)
{
    return sum_up(upper, max_names, true, bytes, inodes, err);
}
