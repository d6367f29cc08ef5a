/* folder_walk.c - a walk over directories only. */
#include "workspace/source/folder_walk.h"
#include "base/dir.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/str.h"
#include "git/attributes.h"
#include "git/beneath.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <strings.h>
#include <unistd.h>

#define MAX_DEPTH 200 /* one descriptor each */

struct walk {
    char path[PATH_MAX]; /* of the current directory, relative, without a trailing slash */
    size_t len;
    struct buf *empty;
    struct carrel_error *err;
};

static int fail(struct walk *walk, int code)
{
    char shown[300];

    return err_set_errno(walk->err, code, "read '%s'",
            str_escape(walk->path, walk->len, shown, sizeof(shown)));
}

static bool is_directory(int dir, const struct dirent *entry)
{
    struct stat st;

    if (entry->d_type != DT_UNKNOWN)
        return entry->d_type == DT_DIR;
    return fstatat(dir, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode);
}

static int refuse_repository(struct walk *walk)
{
    char shown[300];

    if (walk->len == 0)
        return err_set(walk->err, -EEXIST,
                "it is a git repository: use it as one (--repo), which keeps its history");
    return err_set(walk->err, -EEXIST,
            "there is a git repository in it, '%s': work in that one (--repo), or move it away",
            str_escape(walk->path, walk->len, shown, sizeof(shown)));
}

static int refuse_attributes(struct walk *walk)
{
    char shown[300];

    return err_set(walk->err, -EINVAL,
            "'%s%s.gitattributes' is not a regular file, and git would wait for it; an earlier "
            "program may have made it: remove it",
            str_escape(walk->path, walk->len, shown, sizeof(shown)), walk->len ? "/" : "");
}

/* Returns 1 if there is any file below, else 0. */
static int visit(struct walk *walk, int parent, const char *name, int depth)
{
    int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return fail(walk, -errno);
    AUTO(dir_close) DIR *dir = fdopendir(fd);
    if (!dir) {
        fd_close(fd);
        return fail(walk, -ENOMEM);
    }
    if (depth > MAX_DEPTH)
        return fail(walk, -ELOOP);

    bool has_file = false;
    size_t n_entries = 0;
    for (struct dirent *entry; errno = 0, (entry = readdir(dir));) {
        const char *child = entry->d_name;
        size_t before = walk->len;
        if (strcmp(child, ".") == 0 || strcmp(child, "..") == 0)
            continue;
        if (strcasecmp(child, ".git") == 0)
            return refuse_repository(walk);
        if (strcmp(child, ".gitattributes") == 0 && attributes_block(fd, child))
            return refuse_attributes(walk);
        n_entries++;
        if (!is_directory(fd, entry)) {
            has_file = true;
            continue;
        }
        int n = snprintf(walk->path + before, sizeof(walk->path) - before, "%s%s",
                before ? "/" : "", child);
        if (n < 0 || (size_t)n >= sizeof(walk->path) - before)
            return fail(walk, -ENAMETOOLONG);
        walk->len = before + (size_t)n;
        int r = visit(walk, fd, child, depth + 1);
        if (r < 0)
            return r;
        has_file = has_file || r == 1;
        walk->len = before;
        walk->path[before] = '\0';
    }
    if (errno != 0)
        return fail(walk, -errno);
    if (n_entries == 0 && walk->len > 0) /* its parents are created with it */
        buf_add(walk->empty, walk->path, walk->len + 1);
    return has_file;
}

int folder_walk(int dir, struct buf *empty, struct carrel_error *err)
{
    struct walk walk = { .empty = empty, .err = err };
    int r = visit(&walk, dir, ".", 0);

    if (r >= 0 && empty->is_short)
        return err_set_errno(err, -EFBIG, "list the empty directories");
    return r < 0 ? r : 0;
}

static int make(int tree, const char *path)
{
    const char *name;
    AUTO(fd_close) int parent = beneath_make_parent(tree, path, &name);

    if (parent < 0)
        return parent;
    return mkdirat(parent, name, 0777) < 0 && errno != EEXIST ? -errno : 0;
}

int folder_walk_make(const char *list, int tree, struct carrel_error *err)
{
    AUTO(buf_finish) struct buf text = BUF_INIT(FOLDER_WALK_MAX_BYTES);
    char chunk[16384];
    ssize_t n;
    AUTO(fd_close) int fd = open(list, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT ? 0 : err_set_errno(err, -errno, "open '%s'", list);

    while ((n = fd_read_all(fd, chunk, sizeof(chunk))) > 0)
        buf_add(&text, chunk, (size_t)n);
    if (n < 0 || text.is_short)
        return err_set_errno(err, n < 0 ? (int)n : -EFBIG, "read '%s'", list);
    for (size_t at = 0; at < text.len; at += strlen(text.data + at) + 1) {
        int r = make(tree, text.data + at);
        char shown[300];
        if (r < 0)
            return err_set_errno(err, r, "make the empty directory '%s'",
                    str_escape(text.data + at, strlen(text.data + at), shown, sizeof(shown)));
    }
    return 0;
}
