/* files.c - the small operations: read, write, create, move, stat. */
#include "core/files/files.h"
#include "base/auto.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/str.h"
#include "core/files/files_far.h"
#include "files/data.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static int ask(struct file_access *access, enum file_op op, const char *path, const char *other,
        int flags, struct file_answer *answer, struct carrel_error *err)
{
    struct file_request request = FILE_REQUEST_INIT;
    struct file_answer unused = FILE_ANSWER_INIT;

    request.op = op;
    request.path = path;
    request.other = other;
    request.flags = flags;
    return file_access_ask(access, &request, answer ? answer : &unused, err);
}

static int of_path(const char *path, int code, struct carrel_error *err)
{
    char shown[300];

    return err_wrap(err, code, "'%s'", str_escape(path, strlen(path), shown, sizeof(shown)));
}

/* Returns a descriptor of a file, and its stat when it was opened. */
static int open_to_read(
        struct file_access *access, const char *path, struct stat *st, struct carrel_error *err)
{
    struct file_answer answer = FILE_ANSWER_INIT;

    int r = ask(access, FILE_OPEN, path, NULL, O_RDONLY, &answer, err);
    if (r < 0)
        return r;
    AUTO(fd_close) int fd = answer.fd;
    r = fstat(fd, st) < 0 ? err_set_errno(err, -errno, "stat") : 0;
    if (r == 0 && S_ISDIR(st->st_mode))
        r = err_set(err, -EISDIR, "this is a directory");
    return r < 0 ? of_path(path, r, err) : fd_steal(&fd);
}

int files_read(struct file_access *access, const char *path, int out, struct carrel_error *err)
{
    struct data_budget budget = { .max = UINT64_MAX };
    struct stat st;

    AUTO(fd_close) int fd = open_to_read(access, path, &st, err);
    if (fd < 0)
        return fd;
    int r = data_pump(fd, out, &budget, err);
    return r < 0 ? of_path(path, r, err) : 0;
}

int files_read_whole(struct file_access *access, const char *path, int out,
        const struct files_limits *limits, struct carrel_error *err)
{
    struct data_budget budget = {
        .max = limits && limits->bytes ? limits->bytes : FILES_MAX_BYTES,
    };
    struct data_budget expected = budget;
    struct stat st;

    if (file_access_far(access))
        return far_read_whole(access, path, out, limits, err);
    AUTO(fd_close) int fd = open_to_read(access, path, &st, err);
    if (fd < 0)
        return fd;
    int r = data_settle(fd, &st, err);
    if (r == 0)
        r = data_spend(&expected, (uint64_t)st.st_size, err);
    if (r == 0)
        r = data_pump(fd, out, &budget, err);
    if (r == 0)
        r = data_check_same(fd, &st, err);
    r = file_access_outcome(access, r, err);
    return r < 0 ? of_path(path, r, err) : 0;
}

int files_write(struct file_access *access, const char *path, int in, int flags, mode_t mode,
        struct carrel_error *err)
{
    struct data_budget budget = { .max = FILES_MAX_BYTES };
    struct file_request request = FILE_REQUEST_INIT;
    struct file_answer answer = FILE_ANSWER_INIT;

    request.op = FILE_OPEN;
    request.path = path;
    request.flags = O_WRONLY | O_CREAT | flags;
    request.mode = mode;
    int r = file_access_ask(access, &request, &answer, err);
    if (r < 0)
        return r;
    AUTO(fd_close) int fd = answer.fd;
    r = data_pump(in, fd, &budget, err);
    int stored = file_end(fd, r < 0 ? NULL : err);
    r = r < 0 ? r : stored;
    if (r == -ENOSPC && flags & O_TRUNC)
        (void)ftruncate(fd, 0); /* a partial file is of no use; a stream cannot */
    /* Writes also succeed after the file was removed with its sandbox. */
    r = file_access_outcome(access, r, err);
    return r < 0 ? of_path(path, r, err) : 0;
}

static int make_dir(
        struct file_access *access, const char *path, mode_t mode, struct carrel_error *err)
{
    struct file_request request = FILE_REQUEST_INIT;
    struct file_answer answer = FILE_ANSWER_INIT;

    request.op = FILE_MAKE_DIR;
    request.path = path;
    request.mode = mode;
    return file_access_ask(access, &request, &answer, err);
}

/* An existing directory, even behind a link, is fine. */
static int make_or_find(
        struct file_access *access, const char *path, mode_t mode, struct carrel_error *err)
{
    struct file_answer answer = FILE_ANSWER_INIT;

    int r = make_dir(access, path, mode, err);
    if (r != -EEXIST)
        return r;
    r = ask(access, FILE_STAT, path, NULL, 0, &answer, err);
    if (r == 0 && !S_ISDIR(answer.stat.mode))
        r = of_path(path, err_set(err, -EEXIST, "there is a file of this name"), err);
    return r;
}

int files_make_dir(struct file_access *access, const char *path, mode_t mode, bool with_parents,
        struct carrel_error *err)
{
    char part[PATH_MAX];
    size_t len = strlen(path);

    if (!with_parents)
        return make_dir(access, path, mode, err);
    int r = make_or_find(access, path, mode, err);
    if (r != -ENOENT || len >= sizeof(part))
        return r;
    memcpy(part, path, len + 1);
    while (len > 1 && part[len - 1] == '/')
        part[--len] = '\0';
    for (size_t i = 1; i <= len; i++) {
        if ((part[i] != '/' && part[i]) || part[i - 1] == '/')
            continue;
        char saved = part[i];
        part[i] = '\0';
        r = make_or_find(access, part, saved ? 0755 : mode, err);
        if (r < 0)
            return r;
        part[i] = saved;
    }
    return 0;
}

int files_stat(struct file_access *access, const char *path, bool follow,
        struct file_stat *stat, struct buf *target, struct carrel_error *err)
{
    struct file_answer answer = FILE_ANSWER_INIT;
    struct file_answer link = FILE_ANSWER_INIT;
    char text[PATH_MAX];

    int r = ask(access, FILE_STAT, path, NULL, follow ? 0 : FILE_NO_FOLLOW, &answer, err);
    if (r < 0)
        return r;
    if (target && S_ISLNK(answer.stat.mode)) {
        r = ask(access, FILE_READ_LINK, path, NULL, 0, &link, err);
        int len = r < 0 ? r : file_read_link(link.fd, text, sizeof(text), err);
        fd_close(link.fd);
        if (len < 0)
            return len;
        buf_add(target, text, (size_t)len);
    }
    *stat = answer.stat;
    return 0;
}

/* "to/NAME", with the last component of `from` as NAME. */
static int join_name(
        const char *from, const char *to, char out[static PATH_MAX], struct carrel_error *err)
{
    size_t end = strlen(from);

    while (end > 1 && from[end - 1] == '/')
        end--;
    size_t begin = end;
    while (begin > 0 && from[begin - 1] != '/')
        begin--;
    int n = snprintf(out, PATH_MAX, "%s%s%.*s", to, to[strlen(to) - 1] == '/' ? "" : "/",
            (int)(end - begin), from + begin);
    return n < 0 || n >= PATH_MAX ? err_set_errno(err, -ENAMETOOLONG, "move") : 0;
}

/* Another file system: copies the tree and then removes it. */
static int move_by_copy(struct file_access *access, const char *from, const char *to,
        bool no_replace, struct carrel_error *err)
{
    const struct files_end source = { .access = access, .path = from };
    const struct files_end target = { .access = access, .path = to };
    AUTO(buf_finish) struct buf link = BUF_INIT(PATH_MAX);
    struct files_count count = { 0 };
    struct file_stat stat;
    struct file_stat there;

    int r = files_stat(access, to, false, &there, NULL, NULL);
    if (r == 0 && (no_replace || S_ISDIR(there.mode)))
        return of_path(to, err_set_errno(err, -EEXIST, "move"), err);
    if (r == 0 && S_ISLNK(there.mode))
        r = ask(access, FILE_REMOVE, to, NULL, 0, NULL, err);
    if (r < 0 && r != -ENOENT)
        return r;
    r = files_stat(access, from, false, &stat, &link, err);
    if (r < 0)
        return r;
    if (S_ISLNK(stat.mode))
        r = ask(access, FILE_SYMLINK, to, link.data, 0, NULL, err);
    else
        r = files_copy(&source, &target, NULL, &count, err);
    if (r == 0 && count.skipped > 0)
        r = of_path(from,
                err_set(err, -EXDEV,
                        "not all of it can be copied to another file system, and it stays"),
                err);
    return r < 0 ? r : files_remove_tree(access, from, err);
}

int files_move(struct file_access *access, const char *from, const char *to, bool no_replace,
        struct carrel_error *err)
{
    struct file_answer answer = FILE_ANSWER_INIT;
    char into[PATH_MAX];

    int r = ask(access, FILE_STAT, to, NULL, 0, &answer, NULL);
    if (r == 0 && S_ISDIR(answer.stat.mode)) {
        r = join_name(from, to, into, err);
        if (r < 0)
            return r;
        to = into;
    }
    r = ask(access, FILE_RENAME, from, to, no_replace ? FILE_NO_REPLACE : 0, NULL, err);
    return r == -EXDEV ? move_by_copy(access, from, to, no_replace, err) : r;
}
