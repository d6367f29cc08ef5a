/* gitdir.c - recognises git dirs. */
#include "git/gitdir.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int gitdir_open(int at, const char *path)
{
    int fd = openat(at, path, O_PATH | O_DIRECTORY | O_CLOEXEC);

    return fd < 0 ? -errno : fd;
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

int gitdir_load(int dir, const char *name, size_t max, struct buf *out)
{
    AUTO(fd_close)
    int fd = openat(dir, name, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    char chunk[8192];

    if (fd < 0)
        return -errno;
    *out = BUF_INIT(max);
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

int gitdir_load_path(int dir, const char *name, char path[static PATH_MAX])
{
    ssize_t n = fd_read_file(dir, name, path, PATH_MAX);

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
    n = fd_read_file(dir, "HEAD", head, sizeof(head));
    if (n < 0)
        return false;
    if (strncmp(head, "ref:", 4) == 0)
        return strncmp(head + 4 + strspn(head + 4, " \t"), "refs/", 5) == 0;
    return strspn(head, "0123456789abcdefABCDEF") >= 40;
}

static bool has_dir(int at, const char *name)
{
    struct stat st;

    return fstatat(at, name, &st, 0) == 0 && S_ISDIR(st.st_mode);
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

#define FILE_MAX ((size_t)64 << 10)
#define DEPTH_MAX 5 /* the same as git's */
#define DIRS_MAX 64

struct list {
    char **paths;
    size_t n;
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

    /* git skips an unreadable file here, and only fails when an object is missing. */
    if (gitdir_load(dir, "info/alternates", FILE_MAX, &text) < 0 || !text.data)
        return 0;
    for (char *line = strtok_r(text.data, "\n", &rest); line;
            line = strtok_r(NULL, "\n", &rest)) {
        if (line[0] == '#' || (line[0] == '"' && !unquote(line)))
            continue;
        int r = add_objects(list, dir, line, depth + 1, err);
        if (r < 0)
            return r;
    }
    return 0;
}

/* Adds an object directory and those that it borrows from. */
static int add_objects(
        struct list *list, int at, const char *path, unsigned depth, struct carrel_error *err)
{
    AUTO(free) char *canonical = NULL;

    AUTO(fd_close) int dir = gitdir_open(at, path);
    if (dir < 0)
        return 0; /* as git: an error only when one of its objects is needed */
    int r = gitdir_path(dir, &canonical, err);
    if (r < 0)
        return r;
    for (size_t i = 0; i < list->n; i++)
        if (strcmp(list->paths[i], canonical) == 0)
            return 0;
    if (list->n >= DIRS_MAX)
        return err_set(err, -E2BIG,
                "the repository has more than %d alternate object directories", DIRS_MAX);
    list->paths[list->n++] = ptr_steal(&canonical);
    return depth < DEPTH_MAX ? follow_alternates(list, dir, depth, err) : 0;
}

void alternates_free(char **paths)
{
    for (size_t i = 0; paths && paths[i]; i++)
        free(paths[i]);
    free(paths);
}

int alternates_list(int common, char ***out, struct carrel_error *err)
{
    struct list list = { .paths = calloc(DIRS_MAX + 1, sizeof(*list.paths)) };

    if (!list.paths)
        return err_set_errno(err, -ENOMEM, "list object directories");
    int r = add_objects(&list, common, "objects", 0, err);
    if (r == 0 && list.n == 0)
        r = err_set(err, -ENOENT, "the repository has no object directory");
    if (r < 0) {
        alternates_free(list.paths);
        return r;
    }
    *out = list.paths;
    return 0;
}
