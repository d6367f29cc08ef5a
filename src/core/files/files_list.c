/* files_list.c - lists and removes directories of a sandbox. */
#include "base/auto.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "core/files/files.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define ATTEMPTS 3 /* to empty a directory that is being filled */

static int ask(struct file_access *access, enum file_op op, int dir, const char *path,
        int flags, struct file_answer *answer, struct carrel_error *err)
{
    struct file_request request = FILE_REQUEST_INIT;
    struct file_answer unused = FILE_ANSWER_INIT;

    request.op = op;
    request.dir = dir;
    request.path = path;
    request.flags = flags;
    return file_access_ask(access, &request, answer ? answer : &unused, err);
}

static int open_dir(struct file_access *access, int dir, const char *path, int flags,
        struct carrel_error *err)
{
    struct file_answer answer = FILE_ANSWER_INIT;

    int r = ask(access, FILE_OPEN, dir, path, O_RDONLY | O_DIRECTORY | flags, &answer, err);
    return r < 0 ? r : answer.fd;
}

/* Reads the names of a directory; `fd` can be read once. */
static int read_names(int fd, struct names *names, struct carrel_error *err)
{
    uint64_t n = 0;
    int r = 0;

    int own = fcntl(fd, F_DUPFD_CLOEXEC, 3);
    DIR *dir = own < 0 ? NULL : fdopendir(own);
    if (!dir) {
        r = err_set_errno(err, -errno, "read a directory");
        fd_close(own);
        return r;
    }
    while (r == 0) {
        errno = 0;
        const struct dirent *entry = readdir(dir);
        if (!entry) {
            r = errno ? err_set_errno(err, -errno, "read a directory") : 1;
        } else if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0) {
            buf_add(&names->text, entry->d_name, strlen(entry->d_name) + 1);
            if (++n > FILES_MAX_ENTRIES)
                r = err_set(err, -EFBIG, "the directory has more than %ju entries",
                        (uintmax_t)FILES_MAX_ENTRIES);
        }
    }
    (void)closedir(dir);
    if (r > 0 && names->text.is_short)
        r = err_set_errno(err, -ENOMEM, "read a directory");
    return r < 0 ? r : names_split(names, err);
}

static int compare(const void *a, const void *b)
{
    const char *left;
    const char *right;

    memcpy(&left, a, sizeof(left));
    memcpy(&right, b, sizeof(right));
    return strcmp(left, right);
}

static int read_target(struct file_access *access, int dir, const char *name,
        char target[static PATH_MAX], struct carrel_error *err)
{
    struct file_answer answer = FILE_ANSWER_INIT;

    int r = ask(access, FILE_READ_LINK, dir, name, 0, &answer, err);
    if (r < 0)
        return r;
    r = file_read_link(answer.fd, target, PATH_MAX, err);
    fd_close(answer.fd);
    return r < 0 ? r : 0;
}

/* A magic link of the kernel cannot be read. */
static int look_at(struct file_access *access, int dir, const char *name, files_each each,
        void *context, struct carrel_error *err)
{
    struct file_answer answer = FILE_ANSWER_INIT;
    struct files_entry entry = { .name = name, .stat = &answer.stat };
    char target[PATH_MAX];

    int r = ask(access, FILE_STAT, dir, name, FILE_NO_FOLLOW, &answer, err);
    if (r == 0 && S_ISLNK(answer.stat.mode)) {
        r = read_target(access, dir, name, target, err);
        entry.target = r == 0 ? target : "";
        r = r == -ELOOP ? 0 : r;
    }
    if (dir >= 0 && (r == -ENOENT || r == -EINVAL))
        return 0; /* it was removed, or is no longer a link, since we read its name */
    return r < 0 ? r : each(&entry, context, err);
}

/* --- without descriptors: names come with their stat --- */

struct listed {
    struct file_stat stat;
    char name[];
};

struct list {
    struct listed **all;
    size_t n, room;
};

static void list_finish(struct list list)
{
    for (size_t i = 0; i < list.n; i++)
        free(list.all[i]);
    free(list.all);
}
DEFINE_AUTO(struct list, list_finish)

static int keep(struct list *list, const struct file_entry *entry, struct carrel_error *err)
{
    const size_t size = strlen(entry->name) + 1;

    if (list->n >= FILES_MAX_ENTRIES)
        return err_set(err, -EFBIG, "the directory has more than %ju entries",
                (uintmax_t)FILES_MAX_ENTRIES);
    if (list->n == list->room) {
        size_t room = list->room ? 2 * list->room : 64;
        struct listed **all = realloc(list->all, room * sizeof(struct listed *));
        if (!all)
            return err_set_errno(err, -ENOMEM, "read a directory");
        list->all = all;
        list->room = room;
    }
    struct listed *listed = malloc(sizeof(*listed) + size);
    if (!listed)
        return err_set_errno(err, -ENOMEM, "read a directory");
    listed->stat = entry->stat;
    memcpy(listed->name, entry->name, size);
    list->all[list->n++] = listed;
    return 0;
}

static int compare_listed(const void *a, const void *b)
{
    const struct listed *left;
    const struct listed *right;

    memcpy(&left, a, sizeof(struct listed *));
    memcpy(&right, b, sizeof(struct listed *));
    return strcmp(left->name, right->name);
}

static int tell_listed(struct file_access *access, const char *path,
        const struct listed *listed, files_each each, void *context, struct carrel_error *err)
{
    struct files_entry entry = { .name = listed->name, .stat = &listed->stat };
    char target[PATH_MAX];
    char full[PATH_MAX];

    if (S_ISLNK(listed->stat.mode)) {
        if (snprintf(full, sizeof(full), "%s/%s", path, listed->name) >= PATH_MAX)
            return err_set_errno(err, -ENAMETOOLONG, "read link");
        int r = read_target(access, -1, full, target, err);
        if (r == -ENOENT || r == -EINVAL)
            return 0; /* it was removed, or is no longer a link */
        if (r < 0 && r != -ELOOP)
            return r;
        entry.target = r == 0 ? target : "";
    }
    return each(&entry, context, err);
}

static int list_far(struct file_access *access, const char *path, bool with_stat,
        files_each each, void *context, struct carrel_error *err)
{
    AUTO(list_finish) struct list list = { 0 };
    struct file_answer answer = FILE_ANSWER_INIT;
    struct file_entry got;

    int r = ask(access, FILE_LIST, -1, path, 0, &answer, err);
    if (r == -ENOTDIR)
        return look_at(access, -1, path, each, context, err);
    if (r < 0)
        return r;
    AUTO(fd_close) int fd = answer.fd;
    while ((r = file_list_next(fd, &got, err)) == 1) {
        r = keep(&list, &got, err);
        if (r < 0)
            return r;
    }
    if (r < 0)
        return r;
    if (list.n > 0)
        qsort(list.all, list.n, sizeof(struct listed *), compare_listed);
    for (size_t i = 0; r == 0 && i < list.n; i++) {
        const struct files_entry name = { .name = list.all[i]->name };
        r = with_stat ? tell_listed(access, path, list.all[i], each, context, err)
                      : each(&name, context, err);
    }
    return r;
}

int files_list(struct file_access *access, const char *path, bool with_stat, files_each each,
        void *context, struct carrel_error *err)
{
    struct names names = NAMES_INIT;

    if (file_access_far(access))
        return list_far(access, path, with_stat, each, context, err);
    AUTO(fd_close) int dir = open_dir(access, -1, path, 0, err);
    if (dir == -ENOTDIR)
        return look_at(access, -1, path, each, context, err);
    if (dir < 0)
        return dir;
    int r = read_names(dir, &names, err);
    if (r == 0 && names.n > 0)
        qsort(names.list, names.n, sizeof(*names.list), compare);
    for (size_t i = 0; r == 0 && i < names.n; i++) {
        const struct files_entry entry = { .name = names.list[i] };
        r = with_stat ? look_at(access, dir, names.list[i], each, context, err)
                      : each(&entry, context, err);
    }
    names_finish(names);
    return file_access_outcome(access, r, err);
}

int files_remove(struct file_access *access, const char *path, struct carrel_error *err)
{
    int r = ask(access, FILE_REMOVE, -1, path, 0, NULL, err);

    return r == -EISDIR ? ask(access, FILE_REMOVE_DIR, -1, path, 0, NULL, err) : r;
}

static int empty(struct file_access *access, int dir, unsigned depth, struct carrel_error *err);

/* A directory with this name in `dir`, or with this path. */
static int remove_dir(struct file_access *access, int dir, const char *name, unsigned depth,
        struct carrel_error *err)
{
    int r = -ENOTEMPTY;

    if (depth > FILES_MAX_DEPTH)
        return err_set(err, -ELOOP, "the tree is deeper than %d directories", FILES_MAX_DEPTH);
    for (int i = 0; i < ATTEMPTS && r == -ENOTEMPTY; i++) {
        AUTO(fd_close) int fd = open_dir(access, dir, name, O_NOFOLLOW, err);
        if (fd < 0)
            return fd;
        r = empty(access, fd, depth, err);
        if (r == 0)
            r = ask(access, FILE_REMOVE_DIR, dir, name, 0, NULL, err);
    }
    return r;
}

static int empty(struct file_access *access, int dir, unsigned depth, struct carrel_error *err)
{
    struct names names = NAMES_INIT;

    int r = read_names(dir, &names, err);
    for (size_t i = 0; r == 0 && i < names.n; i++) {
        r = ask(access, FILE_REMOVE, dir, names.list[i], 0, NULL, err);
        if (r == -EISDIR)
            r = remove_dir(access, dir, names.list[i], depth + 1, err);
        r = r == -ENOENT ? 0 : r; /* another process was faster */
    }
    names_finish(names);
    return r;
}

static int remove_far(struct file_access *access, const char *path, struct carrel_error *err)
{
    struct file_answer answer = FILE_ANSWER_INIT;

    int r = ask(access, FILE_REMOVE_TREE, -1, path, 0, &answer, err);
    if (r < 0)
        return r;
    r = file_end(answer.fd, err);
    fd_close(answer.fd);
    return r;
}

int files_remove_tree(struct file_access *access, const char *path, struct carrel_error *err)
{
    int r = ask(access, FILE_REMOVE, -1, path, 0, NULL, err);

    if (r == -EISDIR && file_access_far(access))
        return remove_far(access, path, err);
    return r == -EISDIR ? remove_dir(access, -1, path, 0, err) : r;
}
