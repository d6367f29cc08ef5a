/* carry.c - ignored files on their way in, and kept from coming back. */
#include "core/carry.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "core/workplace.h"
#include "workspace/include.h"
#include <carrel/run.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>

static bool has_include_file(const struct repo *repo)
{
    struct stat st;
    char path[PATH_MAX];

    return snprintf(path, sizeof(path), "%s/.worktreeinclude", repo->top) < (int)sizeof(path) &&
           lstat(path, &st) == 0;
}

/*
 * What was carried along is the user's, often a secret, and must not come back as a result: it
 * is excluded, in the run's git dir and in our own list beside it.
 */
static int exclude_carried(const struct workplace *place, const struct include_list *list,
        struct carrel_error *err)
{
    char path[PATH_MAX];
    AUTO(buf_finish) struct buf text = BUF_INIT(64U << 20);

    (void)snprintf(path, sizeof(path), "%s/info/exclude", place->checkout->git);
    int r = fd_add_file(AT_FDCWD, path, &text, err);
    if (r < 0)
        return r;
    for (size_t i = 0; i < list->n; i++) {
        buf_add_str(&text, "/");
        for (const char *c = list->paths[i]; *c; c++) {
            if (strchr("\\*?[ \t", *c)) /* else a pattern, or lost at the end of the line */
                buf_add_str(&text, "\\");
            buf_add(&text, c, 1);
        }
        buf_add_str(&text, "\n");
    }
    if (text.is_short)
        return err_set_errno(err, -ENOMEM, "excludes");
    if (mkdirat(place->ws->dir, "gitupper/info", 0755) < 0 && errno != EEXIST)
        return err_set_errno(err, -errno, "create '%s/gitupper/info'", place->ws->path);
    static const char *const names[] = { "exclude", "gitupper/info/exclude" };
    for (size_t i = 0; r == 0 && i < ARRAY_LEN(names); i++) {
        AUTO(fd_close)
        int fd = openat(
                place->ws->dir, names[i], O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
        r = fd < 0 ? -errno : fd_write_all(fd, text.data, text.len);
        if (r < 0)
            r = err_set_errno(err, r, "write '%s/%s'", place->ws->path, names[i]);
    }
    return r;
}

int carry_files(const struct workplace_request *q, struct workplace *place, int tree,
        struct carrel_error *err)
{
    struct include_list list = { 0 };

    if (!place->repo->top || (!q->options->include && !has_include_file(place->repo)))
        return 0;
    int r = include_find(place->repo, q->options->include, &list, err);
    for (size_t i = 0; r == 0 && i < list.n; i++)
        if (strchr(list.paths[i], '\n'))
            r = err_set(
                    err, -EINVAL, "a file with a newline in its name cannot be carried along");
    if (r == 0 && list.n > 0)
        r = exclude_carried(place, &list, err);
    if (r == 0)
        r = include_copy(place->repo, &list, tree, q->spec->limits.value[LIMIT_DISK], err);
    include_list_finish(&list);
    return r;
}
