/* attributes.c - asks the index for the directories, and the kernel for the files. */
#include "git/attributes.h"
#include "base/err.h"
#include "base/str.h"
#include "git/repo.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define ATTRIBUTES ".gitattributes"
#define MODULES ".gitmodules"
#define NAMES_MAX ((size_t)256 << 20)

bool attributes_block(int dir, const char *name)
{
    struct stat st;

    return fstatat(dir, name, &st, 0) == 0 && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode);
}

static int refuse(const char *path, struct carrel_error *err)
{
    char shown[300];

    return err_set(err, -EINVAL,
            "'%s' is not a regular file, and git would wait for it; an earlier program may "
            "have "
            "made it: remove it",
            str_escape(path, strlen(path), shown, sizeof(shown)));
}

static int check_directory(int top, const char *path, size_t len, struct carrel_error *err)
{
    char name[PATH_MAX];

    if (snprintf(name, sizeof(name), "%.*s" ATTRIBUTES, (int)len, path) >= (int)sizeof(name))
        return err_set_errno(err, -ENAMETOOLONG, "a path in the index");
    return attributes_block(top, name) ? refuse(name, err) : 0;
}

/* The directories of `path` that the path before, in the order of the index, is not in. */
static int check_path(int top, const char *path, const char *before, struct carrel_error *err)
{
    size_t common = 0;
    int r = 0;

    while (path[common] && path[common] == before[common])
        common++;
    for (const char *slash = path + common; r == 0 && (slash = strchr(slash, '/')); slash++)
        r = check_directory(top, path, (size_t)(slash - path) + 1, err);
    return r;
}

int attributes_check(const struct repo *repo, int top, struct carrel_error *err)
{
    const struct git git = {
        .git_dir = repo->git_dir, .work_tree = repo->top, .trust = GIT_SCRUBBED
    };
    AUTO(buf_finish) struct buf paths = BUF_INIT(NAMES_MAX);
    struct git_io io = GIT_IO_INIT;
    const char *before = "";

    int r = check_directory(top, "", 0, err);
    if (r == 0 && attributes_block(top, MODULES))
        r = refuse(MODULES, err);
    if (r < 0)
        return r;
    io.output = &paths;
    r = git_expect(&git, GIT_ARGS("ls-files", "-z"), &io, err);
    for (size_t at = 0; r == 0 && at < paths.len; at += strlen(paths.data + at) + 1) {
        r = check_path(top, paths.data + at, before, err);
        before = paths.data + at;
    }
    return r;
}
