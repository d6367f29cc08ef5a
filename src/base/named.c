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
#include <sys/syscall.h>
#include <unistd.h>

#define NO_LINKS (RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS)
#define TRIES 10000 /* of "..", which fails while anything is renamed; see openat2(2) */
#define SHOWN 256

static const char *shown(const char *path, char text[static SHOWN])
{
    return str_escape(path, strlen(path), text, SHOWN);
}

static int refuse_link(const char *path, const char *what, struct carrel_error *err)
{
    char text[SHOWN];

    return err_set(err, -ELOOP,
            "'%s': %s a link; carrel does not follow links there, since an earlier program may "
            "have made it: name its target",
            shown(path, text), what);
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
    int fd;

    for (int i = 0; i < TRIES; i++) {
        fd = (int)syscall(SYS_openat2, dir, path, &how, sizeof(how));
        if (fd >= 0 || errno != EAGAIN)
            break;
    }
    return fd < 0 ? -errno : fd;
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

/* The file of an O_PATH descriptor, opened with `flags`: no name is looked up again. */
static int reopen(int fd, int flags)
{
    char link[64];

    (void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    int opened = open(link, flags | O_NOCTTY | O_CLOEXEC);
    return opened < 0 ? -errno : opened;
}

/* Checks what was looked up; takes `found`. */
static int open_found(
        int found, const char *path, enum named_kind kind, struct carrel_error *err)
{
    AUTO(fd_close) int fd = found;
    struct stat st;
    char text[SHOWN];

    if (found == -ELOOP)
        return refuse_link(path, "passes", err);
    if (found < 0)
        return err_set_errno(err, found, "'%s'", shown(path, text));
    if (fstat(fd, &st) < 0)
        return err_set_errno(err, -errno, "'%s'", shown(path, text));
    int r = check_kind(path, &st, kind, err);
    if (r < 0)
        return r;
    if (kind != NAMED_FILE)
        return fd_steal(&fd);
    int opened = reopen(fd, O_RDONLY | O_NONBLOCK);
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

    int r = copy_path(path, copy, sizeof(copy), err);
    if (r < 0)
        return r;
    int number = descriptor_of(copy);
    if (number >= 0)
        return open_descriptor(number, path, kind, err);
    return open_found(look_up(AT_FDCWD, copy, copy[0] == '/' ? 0 : NO_LINKS), path, kind, err);
}

int named_open_beneath(
        int dir, const char *path, enum named_kind kind, struct carrel_error *err)
{
    char copy[PATH_MAX] = "";

    int r = copy_path(path, copy, sizeof(copy), err);
    if (r < 0)
        return r;
    return open_found(look_up(dir, copy, NO_LINKS | RESOLVE_BENEATH), path, kind, err);
}

/* The directory that holds `path`; *name points to the last component, in `copy`. */
static int open_parent(
        const char *path, char *copy, const char **name, struct carrel_error *err)
{
    char *slash = strrchr(copy, '/');
    char text[SHOWN];
    const char *dir = slash == copy ? "/" : slash ? copy : ".";
    uint64_t resolve = copy[0] == '/' ? 0 : NO_LINKS;
    const struct open_how how = {
        .flags = O_PATH | O_DIRECTORY | O_CLOEXEC,
        .resolve = resolve | RESOLVE_NO_MAGICLINKS,
    };

    *name = slash ? slash + 1 : copy;
    if (!path_is_name(*name))
        return err_set(
                err, -EINVAL, "'%s': is a directory; expected a file", shown(path, text));
    if (slash)
        *slash = '\0';
    int fd = (int)syscall(SYS_openat2, AT_FDCWD, dir, &how, sizeof(how));
    if (fd < 0 && errno == ELOOP)
        return refuse_link(path, "passes", err);
    return fd < 0 ? err_set_errno(err, -errno, "write '%s': its directory", shown(path, text))
                  : fd;
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
    AUTO(fd_close) int fd = reopen(found, O_WRONLY | O_NONBLOCK);
    if (fd >= 0 && fcntl(fd, F_SETFL, 0) < 0)
        return err_set_errno(err, -errno, "write '%s'", path);
    return write_to(fd, path, data, len, err);
}

int named_replace(
        const char *path, const void *data, size_t len, mode_t mode, struct carrel_error *err)
{
    char copy[PATH_MAX] = "";
    char text[SHOWN];
    const char *name;
    struct stat st;

    int r = copy_path(path, copy, sizeof(copy), err);
    if (r < 0)
        return r;
    int number = descriptor_of(copy);
    if (number >= 0)
        return write_to(number, path, data, len, err);
    AUTO(fd_close) int dir = open_parent(path, copy, &name, err);
    if (dir < 0)
        return dir;
    if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0) {
        if (S_ISCHR(st.st_mode))
            return write_device(dir, name, path, data, len, err);
        r = check_kind(path, &st, NAMED_FILE, err);
    }
    if (r < 0)
        return err_wrap(err, r, "write");
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
