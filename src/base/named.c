/* named.c - one lookup by the kernel, and then the descriptor. */
#include "base/named.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/str.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define NO_LINKS (RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS)
#define SHOWN 256

static const char *shown(const char *path, char text[static SHOWN])
{
    return str_escape(path, strlen(path), text, SHOWN);
}

#define NOT_FOLLOWED                                                                           \
    "carrel does not follow links there, since an earlier program may have made it: name its " \
    "target"

static int refuse_link(const char *path, const char *what, struct carrel_error *err)
{
    char text[SHOWN];

    return err_set(err, -ELOOP, "'%s': %s a link; " NOT_FOLLOWED, shown(path, text), what);
}

/* `link` is empty if the kernel refused it, and which one it is is not known. */
static int refuse_passed(const char *path, const char *link, struct carrel_error *err)
{
    char text[SHOWN];
    char name[SHOWN];

    if (link[0] == '\0')
        return refuse_link(path, "passes", err);
    return err_set(err, -ELOOP, "'%s': passes the link '%s'; " NOT_FOLLOWED, shown(path, text),
            shown(link, name));
}

static const char *kind_of(const struct stat *st)
{
    if (S_ISDIR(st->st_mode))
        return "a directory";
    if (S_ISFIFO(st->st_mode))
        return "a FIFO";
    if (S_ISSOCK(st->st_mode))
        return "a socket";
    return S_ISREG(st->st_mode) ? "a file" : "a device";
}

/* The path as it is looked up: without slashes and "/." at the end. */
static int copy_path(const char *path, char *copy, size_t size, struct carrel_error *err)
{
    size_t len = strlen(path);
    char text[SHOWN];

    if (len == 0)
        return err_set(err, -ENOENT, "the path is empty");
    if (len >= size)
        return err_set_errno(err, -ENAMETOOLONG, "'%s'", shown(path, text));
    while (len > 1) {
        if (path[len - 1] == '/')
            len--;
        else if (len > 2 && path[len - 1] == '.' && path[len - 2] == '/')
            len -= 2;
        else
            break;
    }
    memcpy(copy, path, len);
    copy[len] = '\0';
    return 0;
}

/* The number of a descriptor that the path stands for; -1: it stands for none. */
static int descriptor_of(const char *path)
{
    static const struct {
        const char *prefix;
        int fd; /* -1: the number follows */
    } names[] = { { "/dev/stdin", STDIN_FILENO }, { "/dev/stdout", STDOUT_FILENO },
        { "/dev/stderr", STDERR_FILENO }, { "/dev/fd/", -1 }, { "/proc/self/fd/", -1 } };

    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        size_t len = strlen(names[i].prefix);
        uint64_t number;
        if (strncmp(path, names[i].prefix, len) != 0)
            continue;
        if (names[i].fd >= 0 && path[len] == '\0')
            return names[i].fd;
        if (names[i].fd < 0 && str_parse_u64(path + len, &number) == 0 && number <= INT_MAX)
            return (int)number;
    }
    return -1;
}

static int look_up(int dir, const char *path, uint64_t resolve)
{
    const struct open_how how = {
        .flags = O_PATH | O_NOFOLLOW | O_CLOEXEC,
        .resolve = resolve | RESOLVE_NO_MAGICLINKS,
    };
    return fd_open_how(dir, path, &how);
}

static bool only_root_writes(const struct stat *st)
{
    return st->st_uid == 0 && (st->st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

/*
 * Files that a run of root's leaves in a writable mount belong to root, so for root the owner
 * says nothing. It is asked of the directories of the system only, which are not handed to
 * runs.
 */
static bool is_system_directory(int dir)
{
    static const char *const system[] = { "/", "/etc", "/run", "/usr", "/var" };
    char path[PATH_MAX];

    if (named_path(dir, path, sizeof(path)) < 0)
        return false;
    for (size_t i = 0; i < ARRAY_LEN(system); i++)
        if (strcmp(path, system[i]) == 0)
            return true;
    return false;
}

/* Whether no run of the caller's could have made entries in `dir`, or moved it there. */
static bool is_out_of_reach(int dir)
{
    struct named_id last = { 0 };
    struct stat st;

    if (geteuid() == 0 && !is_system_directory(dir))
        return false;
    AUTO(fd_close) int at = openat(dir, ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
    while (at >= 0 && fstat(at, &st) == 0 && only_root_writes(&st)) {
        if (named_id_is(&last, &st)) /* the top is its own parent */
            return true;
        last = named_id_of(&st);
        int parent = openat(at, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);
        fd_close(at);
        at = parent;
    }
    return false;
}

/* Where a walk has arrived, and what of the path is left. */
struct walk {
    int at;
    char rest[PATH_MAX];
    char name[NAME_MAX + 1]; /* the component before the rest */
    unsigned n_links;
};
#define WALK_LINKS_MAX 40 /* as the kernel */

/* Takes the next component off the rest: 1, or 0 if there is none. */
static int next_name(struct walk *walk)
{
    const char *begin = walk->rest + strspn(walk->rest, "/");
    const size_t len = strcspn(begin, "/");

    if (len > NAME_MAX)
        return -ENAMETOOLONG;
    memcpy(walk->name, begin, len);
    walk->name[len] = '\0';
    begin += len;
    begin += strspn(begin, "/");
    memmove(walk->rest, begin, strlen(begin) + 1);
    return len > 0;
}

static void arrive(struct walk *walk, int fd)
{
    fd_close(walk->at);
    walk->at = fd;
}

/* Puts what the link `fd` leads to before the rest; *refused gets its path if it may not. */
static int follow(
        struct walk *walk, int fd, const struct stat *st, char refused[static PATH_MAX])
{
    char text[PATH_MAX];
    char rest[PATH_MAX];

    if (st->st_uid != 0 || !is_out_of_reach(walk->at) || ++walk->n_links > WALK_LINKS_MAX) {
        if (named_path(walk->at, text, sizeof(text)) == 0 &&
                snprintf(refused, PATH_MAX, "%s/%s", text[1] ? text : "", walk->name) >=
                        PATH_MAX)
            refused[0] = '\0';
        return -ELOOP;
    }
    ssize_t n = readlinkat(fd, "", text, sizeof(text) - 1);
    if (n < 0)
        return -errno;
    text[n] = '\0';
    if (snprintf(rest, sizeof(rest), "%s/%s", text, walk->rest) >= (int)sizeof(rest))
        return -ENAMETOOLONG;
    memcpy(walk->rest, rest, sizeof(rest));
    if (text[0] != '/')
        return 0;
    int top = look_up(AT_FDCWD, "/", NO_LINKS);
    if (top >= 0)
        arrive(walk, top);
    return top < 0 ? top : 0;
}

/* One component, which is what the path names if nothing is left: then a link is found as such.
 */
static int step(struct walk *walk, char refused[static PATH_MAX])
{
    struct stat st;
    AUTO(fd_close) int fd = look_up(walk->at, walk->name, NO_LINKS);

    if (fd < 0)
        return fd;
    if (fstat(fd, &st) < 0)
        return -errno;
    if (S_ISLNK(st.st_mode) && walk->rest[0] != '\0')
        return follow(walk, fd, &st, refused);
    arrive(walk, fd_steal(&fd));
    return 0;
}

/* Looks an absolute path up component by component, where links of the system's are passed. */
static int walk_to(const char *path, char refused[static PATH_MAX])
{
    struct walk walk = { .at = look_up(AT_FDCWD, "/", NO_LINKS) };

    int r = walk.at < 0 ? walk.at : 0;
    if (r == 0 && snprintf(walk.rest, sizeof(walk.rest), "%s", path) >= (int)sizeof(walk.rest))
        r = -ENAMETOOLONG;
    while (r == 0 && (r = next_name(&walk)) > 0)
        r = step(&walk, refused);
    if (r == 0)
        return walk.at;
    fd_close(walk.at);
    return r;
}

/* By the rules in named.h. -ELOOP: *refused is the link, or empty. */
static int find(const char *path, char refused[static PATH_MAX])
{
    refused[0] = '\0';
    int fd = look_up(AT_FDCWD, path, NO_LINKS);
    return fd == -ELOOP && path[0] == '/' ? walk_to(path, refused) : fd;
}

static int check_kind(
        const char *path, const struct stat *st, enum named_kind kind, struct carrel_error *err)
{
    char text[SHOWN];

    if (S_ISLNK(st->st_mode))
        return refuse_link(path, "is", err);
    if (kind == NAMED_DIRECTORY && !S_ISDIR(st->st_mode))
        return err_set(err, -ENOTDIR, "'%s': is %s; expected a directory", shown(path, text),
                kind_of(st));
    if (kind == NAMED_FILE && !S_ISREG(st->st_mode))
        return err_set(err, S_ISDIR(st->st_mode) ? -EISDIR : -EINVAL,
                "'%s': is %s; expected a regular file", shown(path, text), kind_of(st));
    return 0;
}

int named_reopen(int fd, int flags)
{
    char link[64];

    (void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    int opened = open(link, flags | O_NOCTTY | O_CLOEXEC);
    return opened < 0 ? -errno : opened;
}

/* Checks what was looked up; takes `found`. `refused`: the link, if that is -ELOOP. */
static int open_found(int found, const char *refused, const char *path, enum named_kind kind,
        struct carrel_error *err)
{
    AUTO(fd_close) int fd = found;
    struct stat st;
    char text[SHOWN];

    if (found == -ELOOP)
        return refuse_passed(path, refused, err);
    if (found < 0)
        return err_set_errno(err, found, "'%s'", shown(path, text));
    if (fstat(fd, &st) < 0)
        return err_set_errno(err, -errno, "'%s'", shown(path, text));
    int r = check_kind(path, &st, kind, err);
    if (r < 0)
        return r;
    if (kind != NAMED_FILE)
        return fd_steal(&fd);
    int opened = named_reopen(fd, O_RDONLY | O_NONBLOCK);
    return opened < 0 ? err_set_errno(err, opened, "'%s'", shown(path, text)) : opened;
}

static int open_descriptor(
        int number, const char *path, enum named_kind kind, struct carrel_error *err)
{
    struct stat st;
    char text[SHOWN];
    AUTO(fd_close) int fd = fcntl(number, F_DUPFD_CLOEXEC, 3);

    if (fd < 0 || fstat(fd, &st) < 0)
        return err_set_errno(err, -errno, "'%s'", shown(path, text));
    if (kind != NAMED_FILE || S_ISDIR(st.st_mode)) {
        int r = check_kind(path, &st, kind, err);
        if (r < 0)
            return r;
    }
    return fd_steal(&fd);
}

int named_open(const char *path, enum named_kind kind, struct carrel_error *err)
{
    char copy[PATH_MAX] = "";
    char refused[PATH_MAX];

    int r = copy_path(path, copy, sizeof(copy), err);
    if (r < 0)
        return r;
    int number = descriptor_of(copy);
    if (number >= 0)
        return open_descriptor(number, path, kind, err);
    int found = find(copy, refused);
    return open_found(found, refused, path, kind, err);
}

int named_open_beneath(
        int dir, const char *path, enum named_kind kind, struct carrel_error *err)
{
    char copy[PATH_MAX] = "";

    int r = copy_path(path, copy, sizeof(copy), err);
    if (r < 0)
        return r;
    return open_found(look_up(dir, copy, NO_LINKS | RESOLVE_BENEATH), "", path, kind, err);
}

int named_open_parent(
        const char *path, char name[static NAME_MAX + 1], struct carrel_error *err)
{
    char copy[PATH_MAX] = "";
    char dir[PATH_MAX + 2] = ".";
    char refused[PATH_MAX];
    char text[SHOWN];

    int r = copy_path(path, copy, sizeof(copy), err);
    if (r < 0)
        return r;
    const char *slash = strrchr(copy, '/');
    const char *last = slash ? slash + 1 : copy;
    if (!path_is_name(last))
        return err_set(
                err, -EINVAL, "'%s': is a directory; expected a file", shown(path, text));
    if (slash) /* with "/." a link is one in the middle */
        (void)snprintf(dir, sizeof(dir), "%.*s/.", (int)(slash - copy), copy);
    int fd = find(dir, refused);
    if (fd == -ELOOP)
        return refuse_passed(path, refused, err);
    if (fd < 0)
        return err_set_errno(err, fd, "write '%s': its directory", shown(path, text));
    memcpy(name, last, strlen(last) + 1);
    return fd;
}

/* Waits as the file does; one that has no other end is an error at once. */
static int write_to(
        int fd, const char *path, const void *data, size_t len, struct carrel_error *err)
{
    char text[SHOWN];

    int r = fd < 0 ? fd : fd_write_all(fd, data, len);
    return r < 0 ? err_set_errno(err, r, "write '%s'", shown(path, text)) : 0;
}

static int write_device(int dir, const char *name, const char *path, const void *data,
        size_t len, struct carrel_error *err)
{
    struct stat st;
    AUTO(fd_close) int found = look_up(dir, name, NO_LINKS | RESOLVE_BENEATH);

    if (found < 0 || fstat(found, &st) < 0 || !S_ISCHR(st.st_mode))
        return err_set(err, -EAGAIN, "write '%s': it changes meanwhile", path);
    AUTO(fd_close) int fd = named_reopen(found, O_WRONLY | O_NONBLOCK);
    if (fd >= 0 && fcntl(fd, F_SETFL, 0) < 0)
        return err_set_errno(err, -errno, "write '%s'", path);
    return write_to(fd, path, data, len, err);
}

/* The directory and the name that are written to; *st: what has that name, mode 0 for nothing.
 */
static int open_place(const char *path, char name[static NAME_MAX + 1], struct stat *st,
        struct carrel_error *err)
{
    *st = (struct stat){ 0 };
    AUTO(fd_close) int dir = named_open_parent(path, name, err);
    if (dir < 0)
        return dir;
    if (fstatat(dir, name, st, AT_SYMLINK_NOFOLLOW) < 0 || S_ISCHR(st->st_mode))
        return fd_steal(&dir);
    int r = check_kind(path, st, NAMED_FILE, err);
    return r < 0 ? err_wrap(err, r, "write") : fd_steal(&dir);
}

int named_may_replace(const char *path, struct carrel_error *err)
{
    char copy[PATH_MAX] = "";
    char name[NAME_MAX + 1];
    struct stat st;

    int r = copy_path(path, copy, sizeof(copy), err);
    if (r < 0 || descriptor_of(copy) >= 0)
        return r;
    AUTO(fd_close) int dir = open_place(path, name, &st, err);
    return dir < 0 ? dir : 0;
}

int named_replace(
        const char *path, const void *data, size_t len, mode_t mode, struct carrel_error *err)
{
    char copy[PATH_MAX] = "";
    char text[SHOWN];
    char name[NAME_MAX + 1];
    struct stat st;

    int r = copy_path(path, copy, sizeof(copy), err);
    if (r < 0)
        return r;
    int number = descriptor_of(copy);
    if (number >= 0)
        return write_to(number, path, data, len, err);
    AUTO(fd_close) int dir = open_place(path, name, &st, err);
    if (dir < 0)
        return dir;
    if (S_ISCHR(st.st_mode))
        return write_device(dir, name, path, data, len, err);
    /* What takes the name meanwhile is replaced by the rename, never opened. */
    r = fd_replace_at(dir, name, data, len, mode);
    return r < 0 ? err_set_errno(err, r, "write '%s'", shown(path, text)) : 0;
}

int named_path(int fd, char *path, size_t size)
{
    static const char removed[] = " (deleted)";
    char link[64];
    struct stat st;

    (void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, path, size);
    if (n < 0 || fstat(fd, &st) < 0)
        return -errno;
    if ((size_t)n >= size)
        return -ENAMETOOLONG;
    path[n] = '\0';
    /* A directory that is removed has no link; a file may have lost this name only. */
    size_t tail = sizeof(removed) - 1;
    bool ends_so = (size_t)n > tail && strcmp(path + n - tail, removed) == 0;
    if (!path_is_clean(path) || st.st_nlink == 0)
        return -ENOENT;
    if (ends_so) {
        struct stat there;
        if (lstat(path, &there) < 0 || there.st_dev != st.st_dev || there.st_ino != st.st_ino)
            return -ENOENT;
    }
    return 0;
}

struct named_id named_id_of(const struct stat *st)
{
    return (struct named_id){ .dev = st->st_dev, .ino = st->st_ino };
}

bool named_id_is(const struct named_id *id, const struct stat *st)
{
    return id->dev == st->st_dev && id->ino == st->st_ino;
}

bool named_is_below(int dir, const struct named_id *id)
{
    AUTO(fd_close) int at = openat(dir, ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
    struct stat st;
    struct named_id last = { 0 };

    while (at >= 0 && fstat(at, &st) == 0) {
        if (named_id_is(id, &st))
            return true;
        if (named_id_is(&last, &st)) /* the top is its own parent */
            return false;
        last = named_id_of(&st);
        int parent = openat(at, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);
        fd_close(at);
        at = parent;
    }
    return false;
}
