/* include.c - git finds the files, we copy them. */
#include "workspace/source/include.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/str.h"
#include "git/beneath.h"
#include "git/gitdir.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <unistd.h>

#define INCLUDE_FILE ".worktreeinclude"
#define INCLUDE_MAX_BYTES ((size_t)256 << 20) /* of their names */
#define INCLUDE_MAX_PATTERNS 1000

void include_list_finish(struct include_list *list)
{
    for (size_t i = 0; i < list->n; i++)
        free(list->paths[i]);
    free(list->paths);
    *list = (struct include_list){ 0 };
}

static int split(const struct buf *text, struct include_list *out)
{
    struct include_list list = { 0 };
    size_t n = 0;

    for (size_t i = 0; i < text->len; i++)
        n += text->data[i] == '\0';
    list.paths = calloc(n + 1, sizeof(*list.paths));
    if (!list.paths)
        return -ENOMEM;
    for (size_t at = 0; at < text->len; at += strlen(text->data + at) + 1) {
        list.paths[list.n] = strdup(text->data + at);
        if (!list.paths[list.n++]) {
            include_list_finish(&list);
            return -ENOMEM;
        }
    }
    *out = list;
    return 0;
}

/* git ls-files takes exclude patterns and lists the matching files. */
static int ask(const struct repo *repo, const char *const *args, int file,
        struct include_list *out, struct carrel_error *err)
{
    struct git git = repo_user_git(repo);
    AUTO(buf_finish) struct buf text = BUF_INIT(INCLUDE_MAX_BYTES);
    struct git_io io = GIT_IO_INIT;

    git.git_dir = repo->git_dir;
    git.work_tree = repo->top;
    io.output = &text;
    io.input_fd = file;
    int r = git_expect(&git, args, &io, err);
    if (r < 0)
        return err_wrap(err, r, "find the files to include");
    r = split(&text, out);
    return r < 0 ? err_set_errno(err, r, "find the files to include") : 0;
}

int include_find(const struct repo *repo, const char *const *patterns, struct include_list *out,
        struct carrel_error *err)
{
    size_t n = 0;
    size_t used = 0;

    if (!repo->top)
        return err_set(err, -EINVAL, "the repository is bare: it has no files to include");
    while (patterns && patterns[n])
        n++;
    if (n > INCLUDE_MAX_PATTERNS)
        return err_set(
                err, -E2BIG, "more than %d patterns of files to include", INCLUDE_MAX_PATTERNS);
    AUTO(fd_close) int top = open(repo->top, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (top < 0)
        return err_set_errno(err, -errno, "open '%s'", repo->top);
    AUTO(fd_close) int file = gitdir_open_file(top, INCLUDE_FILE);
    if (file < 0 && file != -ENOENT)
        return err_set(err, file,
                "'%s/" INCLUDE_FILE "', which an earlier program may have made, is not a "
                "regular file that can be read: remove it",
                repo->top);
    if (n == 0 && file < 0) {
        *out = (struct include_list){ 0 };
        return 0;
    }

    AUTO(free) const char **args = calloc(2 * n + 8, sizeof(*args));
    if (!args)
        return err_set_errno(err, -ENOMEM, "find the files to include");
    args[used++] = "ls-files";
    args[used++] = "--others";
    args[used++] = "--ignored";
    args[used++] = "-z";
    if (file >= 0) /* the one that was opened: the name may lead elsewhere by now */
        args[used++] = "--exclude-from=/dev/fd/0";
    for (size_t i = 0; i < n; i++) {
        args[used++] = "-x";
        args[used++] = patterns[i];
    }
    int r = ask(repo, args, file < 0 ? -1 : file, out, err);
    if (r == 0)
        out->has_file = file >= 0;
    return r;
}

/* Copies at most *room bytes: the file may grow while we read it. */
static int copy_bytes(int in, int out, uint64_t *room)
{
    char chunk[65536];
    ssize_t n;

    while ((n = fd_read_all(in, chunk, sizeof(chunk))) > 0) {
        if ((uint64_t)n > *room)
            return -EFBIG;
        *room -= (uint64_t)n;
        int r = fd_write_all(out, chunk, (size_t)n);
        if (r < 0)
            return r;
    }
    return (int)n;
}

static int copy_file(int from, int to, const char *name, uint64_t *room)
{
    struct stat st;
    AUTO(fd_close)
    int in = openat(from, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (in < 0)
        return -errno;
    if (fstat(in, &st) < 0)
        return -errno;
    if (!S_ISREG(st.st_mode))
        return -EINVAL;
    if ((uint64_t)st.st_size > *room)
        return -EFBIG;
    AUTO(fd_close) int out = openat(to, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (out < 0)
        return -errno;
    int r = copy_bytes(in, out, room);
    if (r == 0 && fchmod(out, st.st_mode & 0777) < 0)
        r = -errno;
    const struct timespec times[] = { st.st_atim, st.st_mtim };
    if (r == 0 && futimens(out, times) < 0)
        r = -errno;
    return r;
}

static int copy_link(int from, int to, const char *name)
{
    char target[PATH_MAX];
    ssize_t len = readlinkat(from, name, target, sizeof(target) - 1);

    if (len < 0)
        return -errno;
    target[len] = '\0';
    return symlinkat(target, to, name) < 0 ? -errno : 0;
}

static int copy_one(int top, int upper, const char *path, uint64_t *room)
{
    struct stat st;
    const char *name;
    AUTO(fd_close) int from = beneath_parent(top, path, &name);
    if (from < 0)
        return from;
    if (fstatat(from, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return -errno;
    if (!S_ISREG(st.st_mode) && !S_ISLNK(st.st_mode))
        return -EINVAL;
    AUTO(fd_close) int to = beneath_make_parent(upper, path, &name);
    if (to < 0)
        return to;
    return S_ISLNK(st.st_mode) ? copy_link(from, to, name) : copy_file(from, to, name, room);
}

int include_copy(const struct repo *repo, const struct include_list *list, int upper,
        uint64_t max_bytes, struct carrel_error *err)
{
    uint64_t room = max_bytes;
    AUTO(fd_close) int top = open(repo->top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (top < 0)
        return err_set_errno(err, -errno, "open '%s'", repo->top);

    for (size_t i = 0; i < list->n; i++) {
        const char *path = list->paths[i];
        size_t len = strlen(path);
        char shown[300];
        char size[32];
        /* git appends a slash to the name of an embedded repository. */
        int r = len > 0 && path[len - 1] == '/' ? -EISDIR : copy_one(top, upper, path, &room);
        if (r == 0)
            continue;
        (void)str_escape(path, len, shown, sizeof(shown));
        if (r == -EISDIR)
            return err_set(err, r, "include '%s': it is a git repository of its own", shown);
        if (r == -EINVAL)
            return err_set(err, r, "include '%s': it is neither a file nor a link", shown);
        if (r == -EFBIG)
            return err_set(err, r, "include '%s': the files are larger than %s together", shown,
                    str_size(max_bytes, size));
        return err_set_errno(err, r, "carry '%s' along", shown);
    }
    return 0;
}
