/* gitdir.c - recognises git dirs. */
#include "git/gitdir.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

int gitdir_open(int at, const char *path)
{
    int fd = openat(at, path, O_PATH | O_DIRECTORY | O_CLOEXEC);

    return fd < 0 ? -errno : fd;
}

static int open_how(int at, const char *path, int flags, uint64_t resolve)
{
    const struct open_how how = {
        .flags = (unsigned)(flags | O_CLOEXEC),
        .resolve = resolve | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS,
    };
    int fd = (int)syscall(SYS_openat2, at, path, &how, sizeof(how));

    return fd < 0 ? -errno : fd;
}

/* O_NONBLOCK: a FIFO without a writer is opened at once, and refused for what it is. */
static int open_regular(int at, const char *path, uint64_t resolve)
{
    AUTO(fd_close) int fd = open_how(at, path, O_RDONLY | O_NOCTTY | O_NONBLOCK, resolve);
    struct stat st;

    if (fd < 0)
        return fd == -ENXIO ? -EINVAL : fd; /* a socket */
    if (fstat(fd, &st) < 0)
        return -errno;
    if (S_ISDIR(st.st_mode))
        return -EISDIR;
    return S_ISREG(st.st_mode) ? fd_steal(&fd) : -EINVAL;
}

int gitdir_open_file(int dir, const char *name)
{
    return open_regular(dir, name, RESOLVE_BENEATH);
}

int gitdir_open_file_in(const char *dir, const char *name)
{
    char path[2 * PATH_MAX];

    if ((size_t)snprintf(path, sizeof(path), "%s/%s", dir, name) >= sizeof(path))
        return -ENAMETOOLONG;
    return open_regular(AT_FDCWD, path, 0);
}

int gitdir_reopen(const char *path)
{
    return open_how(AT_FDCWD, path, O_RDONLY | O_DIRECTORY, 0);
}

int gitdir_path(int fd, char **out, struct carrel_error *err)
{
    char link[64], path[PATH_MAX];

    (void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, path, sizeof(path));
    if (n < 0)
        return err_set_errno(err, -errno, "read '%s'", link);
    if (n == 0 || (size_t)n >= sizeof(path) || path[0] != '/')
        return err_set_errno(err, -ENAMETOOLONG, "read '%s'", link);
    char *copy = strndup(path, (size_t)n);
    if (!copy)
        return err_set_errno(err, -ENOMEM, "open a repository");
    free(*out);
    *out = copy;
    return 0;
}

static int read_whole(int fd, struct buf *out)
{
    char chunk[8192];

    for (;;) {
        ssize_t n = fd_read_all(fd, chunk, sizeof(chunk));
        if (n < 0)
            return (int)n;
        buf_add(out, chunk, (size_t)n);
        if (out->is_short)
            return -EFBIG;
        if (n == 0)
            return 0;
    }
}

int gitdir_load(int dir, const char *name, size_t max, struct buf *out)
{
    AUTO(fd_close) int fd = gitdir_open_file(dir, name);

    if (fd < 0)
        return fd;
    *out = BUF_INIT(max);
    return read_whole(fd, out);
}

int gitdir_load_from(const char *dir, const char *name, struct buf *out)
{
    AUTO(fd_close) int fd = gitdir_open_file_in(dir, name);

    return fd < 0 ? fd : read_whole(fd, out);
}

static ssize_t read_text(int dir, const char *name, char *text, size_t size)
{
    AUTO(fd_close) int fd = gitdir_open_file(dir, name);
    ssize_t n = fd < 0 ? fd : fd_read_all(fd, text, size - 1);

    if (n >= 0)
        text[n] = '\0';
    return n;
}

int gitdir_load_path(int dir, const char *name, char path[static PATH_MAX])
{
    ssize_t n = read_text(dir, name, path, PATH_MAX);

    if (n < 0)
        return (int)n;
    while (n > 0 && (path[n - 1] == '\n' || path[n - 1] == '\r'))
        path[--n] = '\0';
    return n == 0 || strlen(path) != (size_t)n ? -EBADMSG : 0;
}

static bool has_head(int dir)
{
    char head[256];
    ssize_t n = readlinkat(dir, "HEAD", head, sizeof(head) - 1); /* in old versions */

    if (n > 0)
        return n > 5 && memcmp(head, "refs/", 5) == 0;
    n = read_text(dir, "HEAD", head, sizeof(head));
    if (n < 0)
        return false;
    if (strncmp(head, "ref:", 4) == 0)
        return strncmp(head + 4 + strspn(head + 4, " \t"), "refs/", 5) == 0;
    return strspn(head, "0123456789abcdefABCDEF") >= 40;
}

static bool has_dir(int at, const char *name)
{
    struct stat st;

    return fstatat(at, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode);
}

/*
 * Opens the common dir of the git dir `fd`: a different one for a linked work tree, else
 * itself.
 */
static int open_common(int fd)
{
    char path[PATH_MAX];
    int r = gitdir_load_path(fd, "commondir", path);

    if (r == -ENOENT)
        return gitdir_open(fd, ".");
    return r < 0 ? r : gitdir_open(fd, path);
}

bool gitdir_is_one(int fd, int *common)
{
    if (!has_head(fd))
        return false;
    AUTO(fd_close) int at = open_common(fd);
    if (at < 0 || !has_dir(at, "objects") || !has_dir(at, "refs"))
        return false;
    *common = fd_steal(&at);
    return true;
}

/* What carrel and git read and write in a git dir by fixed names. */
static const struct part {
    const char *name;
    bool is_dir;
} parts[] = {
    { "HEAD", false },
    { "commondir", false },
    { "config", false },
    { "config.worktree", false },
    { "gitdir", false },
    { "index", false },
    { "info", true },
    { "info/attributes", false },
    { "info/exclude", false },
    { "info/grafts", false },
    { "info/sparse-checkout", false },
    { "logs", true },
    { "logs/HEAD", false },
    { "logs/refs", true },
    { "logs/refs/heads", true },
    { "modules", true },
    { "objects", true },
    { "objects/info", true },
    { "objects/info/alternates", false },
    { "objects/info/commit-graph", false },
    { "objects/pack", true },
    { "packed-refs", false },
    { "refs", true },
    { "refs/heads", true },
    { "shallow", false },
    { "worktrees", true },
};

static int check_part(
        int dir, const char *path, const struct part *part, struct carrel_error *err)
{
    AUTO(fd_close) int fd = open_how(dir, part->name, O_PATH | O_NOFOLLOW, RESOLVE_BENEATH);
    struct stat st;

    if (fd == -ENOENT || fd == -ENOTDIR || fd == -EACCES)
        return 0; /* its reader has the error, if it needs it */
    if (fd < 0 && fd != -ELOOP)
        return err_set_errno(err, fd, "open '%s/%s'", path, part->name);
    if (fd >= 0 && fstat(fd, &st) < 0)
        return err_set_errno(err, -errno, "open '%s/%s'", path, part->name);
    if (fd == -ELOOP || S_ISLNK(st.st_mode))
        return err_set(err, -ELOOP,
                "'%s/%s' is a link; carrel does not follow links in a git dir, since an "
                "earlier program may have made it: put what it names in its place",
                path, part->name);
    if (part->is_dir ? !S_ISDIR(st.st_mode) : !S_ISREG(st.st_mode))
        return err_set(err, -EINVAL, "'%s/%s' is not a %s; an earlier program may have made it",
                path, part->name, part->is_dir ? "directory" : "regular file");
    return 0;
}

int gitdir_check(int dir, struct carrel_error *err)
{
    AUTO(free) char *path = NULL;
    int r = gitdir_path(dir, &path, err);

    for (size_t i = 0; r == 0 && i < ARRAY_LEN(parts); i++)
        r = check_part(dir, path, &parts[i], err);
    return r;
}

#define FILE_MAX ((size_t)64 << 10)
#define DEPTH_MAX 5 /* the same as git's */
#define DIRS_MAX 64

struct list {
    char **paths;
    int *fds;
    size_t n;
    uid_t owner; /* of the repository that borrows */
};

/* Takes the quotes off a line of an alternates file, in place. False: they do not match. */
static bool unquote(char *text)
{
    static const char from[] = "abfnrtv\\\"", to[] = "\a\b\f\n\r\t\v\\\"";
    char *out = text;

    for (const char *at = text + 1; *at != '"'; at++) {
        if (*at == '\0')
            return false;
        if (*at != '\\') {
            *out++ = *at;
            continue;
        }
        at++;
        const char *found = *at ? strchr(from, *at) : NULL;
        if (found) {
            *out++ = to[found - from];
        } else {
            unsigned byte = 0;
            for (int i = 0; i < 3; i++, at++) {
                if (*at < '0' || *at > '7')
                    return false;
                byte = byte * 8 + (unsigned)(*at - '0');
            }
            at--;
            *out++ = (char)byte;
        }
    }
    *out = '\0';
    return true;
}

static int add_objects(
        struct list *list, int at, const char *path, unsigned depth, struct carrel_error *err);

static int follow_alternates(
        struct list *list, int dir, unsigned depth, struct carrel_error *err)
{
    AUTO(buf_finish) struct buf text = { 0 };
    char *rest = NULL;

    int r = gitdir_load(dir, "info/alternates", FILE_MAX, &text);
    if (r == -ELOOP || r == -EINVAL)
        return err_set(err, r, "the list of alternates in '%s' is not a regular file",
                list->paths[list->n - 1]);
    /* git skips an unreadable file here, and only fails when an object is missing. */
    if (r < 0 || !text.data)
        return 0;
    for (char *line = strtok_r(text.data, "\n", &rest); line;
            line = strtok_r(NULL, "\n", &rest)) {
        if (line[0] == '#' || (line[0] == '"' && !unquote(line)))
            continue;
        r = add_objects(list, dir, line, depth + 1, err);
        if (r < 0)
            return r;
    }
    return 0;
}

static bool is_same(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/* Whether `dir` is "objects" of a git dir, and both belong to `owner`. */
static bool is_store(int dir, uid_t owner)
{
    AUTO(fd_close) int above = gitdir_open(dir, "..");
    struct stat own, git, named;

    return above >= 0 && fstat(dir, &own) == 0 && fstat(above, &git) == 0 &&
           fstatat(above, "objects", &named, AT_SYMLINK_NOFOLLOW) == 0 &&
           is_same(&own, &named) && own.st_uid == owner && git.st_uid == owner &&
           has_head(above) && has_dir(above, "refs");
}

/* Adds an object directory and those that it borrows from. */
static int add_objects(
        struct list *list, int at, const char *path, unsigned depth, struct carrel_error *err)
{
    AUTO(free) char *canonical = NULL;

    /* The first is the repository's own. A line may have links in it: what counts is where it
     * leads, which could have been written out as well. */
    AUTO(fd_close)
    int dir = depth == 0 ? open_how(at, path, O_PATH | O_DIRECTORY, RESOLVE_BENEATH)
                         : gitdir_open(at, path);
    if (dir < 0)
        return 0; /* as git: an error only when one of its objects is needed */
    int r = gitdir_path(dir, &canonical, err);
    if (r < 0)
        return r;
    if (depth > 0 && !is_store(dir, list->owner))
        return err_set(err, -EPERM,
                "'%s', which an 'objects/info/alternates' of the repository names, is not the "
                "object directory of a repository of the same owner; an earlier program may "
                "have written that line: remove it, or git repack -a -d",
                canonical);
    for (size_t i = 0; i < list->n; i++)
        if (strcmp(list->paths[i], canonical) == 0)
            return 0;
    if (list->n >= DIRS_MAX)
        return err_set(err, -E2BIG,
                "the repository has more than %d alternate object directories", DIRS_MAX);
    list->paths[list->n] = ptr_steal(&canonical);
    const int kept = list->fds[list->n++] = fd_steal(&dir);
    return depth < DEPTH_MAX ? follow_alternates(list, kept, depth, err) : 0;
}

void alternates_free(char **paths, int *fds)
{
    for (size_t i = 0; paths && paths[i]; i++) {
        free(paths[i]);
        fd_close(fds[i]);
    }
    free(paths);
    free(fds);
}

int alternates_list(int common, char ***paths, int **fds, struct carrel_error *err)
{
    struct list list = { .paths = calloc(DIRS_MAX + 1, sizeof(*list.paths)),
        .fds = calloc(DIRS_MAX + 1, sizeof(*list.fds)) };
    struct stat st;
    int r = 0;

    if (!list.paths || !list.fds)
        r = err_set_errno(err, -ENOMEM, "list object directories");
    else if (fstat(common, &st) < 0)
        r = err_set_errno(err, -errno, "list object directories");
    list.owner = r == 0 ? st.st_uid : 0;
    if (r == 0)
        r = add_objects(&list, common, "objects", 0, err);
    if (r == 0 && list.n == 0)
        r = err_set(err, -ENOENT, "the repository has no object directory");
    if (r < 0) {
        alternates_free(list.paths, list.fds);
        return r;
    }
    *paths = list.paths;
    *fds = list.fds;
    return 0;
}

int alternates_open(const char *path, const char *common, struct carrel_error *err)
{
    AUTO(fd_close) int dir = open_how(AT_FDCWD, path, O_PATH | O_DIRECTORY, 0);
    AUTO(fd_close) int git = open_how(AT_FDCWD, common, O_PATH | O_DIRECTORY, 0);
    struct stat st;

    if (dir < 0 || git < 0)
        return err_set_errno(err, dir < 0 ? dir : git, "open '%s'", dir < 0 ? path : common);
    if (fstat(git, &st) < 0)
        return err_set_errno(err, -errno, "open '%s'", common);
    return is_store(dir, st.st_uid)
                   ? fd_steal(&dir)
                   : err_set(err, -EPERM,
                             "'%s' is not the object directory of a repository of the same "
                             "owner any more",
                             path);
}
