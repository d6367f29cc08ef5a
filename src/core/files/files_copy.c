/* files_copy.c - copies between the host and sandboxes: resolves both ends, then walks. */
#include "base/auto.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/named.h"
#include "base/str.h"
#include "core/files/files.h"
#include "core/files/files_far.h"
#include "core/files/files_sink.h"
#include "files/walk.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <unistd.h>

/* The target of a copy: a name in a directory, or without a name the directory itself. */
struct target {
    int dir;            /* -1: in a sandbox without descriptors; it is ... */
    char far[PATH_MAX]; /* ... this path there */
    char name[NAME_MAX + 1];
};
#define TARGET_INIT                                                                            \
    (struct target)                                                                            \
    {                                                                                          \
        .dir = -1                                                                              \
    }

static void target_close(struct target target)
{
    fd_close(target.dir);
}
DEFINE_AUTO(struct target, target_close)

static int failed(
        const struct files_end *end, int code, const char *what, struct carrel_error *err)
{
    char shown[300];

    return err_set_errno(err, code, "%s '%s'", what,
            str_escape(end->path, strlen(end->path), shown, sizeof(shown)));
}

/* A FIFO or a device is not even opened. */
static int refuse_special(int fd, const struct files_end *end, struct carrel_error *err)
{
    struct stat st;
    char shown[300];

    if (fstat(fd, &st) < 0)
        return failed(end, -errno, "stat", err);
    if (S_ISREG(st.st_mode) || S_ISDIR(st.st_mode))
        return 0;
    return err_set(err, -EINVAL, "'%s' is neither a file nor a directory",
            str_escape(end->path, strlen(end->path), shown, sizeof(shown)));
}

/* Opens what `end` names; links are followed in a sandbox only, see base/named.h. */
static int open_end(
        const struct files_end *end, const char *path, int flags, struct carrel_error *err)
{
    struct file_request request = FILE_REQUEST_INIT;
    struct file_answer answer = FILE_ANSWER_INIT;

    if (!end->access) {
        AUTO(fd_close) int found = named_open(path, NAMED_ANY, err);
        if (found < 0)
            return found;
        int r = refuse_special(found, end, err);
        int fd = r < 0 ? r : named_reopen(found, flags | O_NONBLOCK);
        return r < 0 ? r : fd < 0 ? failed(end, fd, "open", err) : fd;
    }
    request.op = FILE_OPEN;
    request.path = path;
    request.flags = flags;
    int r = file_access_ask(end->access, &request, &answer, err);
    return r < 0 ? r : answer.fd;
}

/* The type of what `end` names, 0 if it does not exist. */
static int type_of(const struct files_end *end, mode_t *type, struct carrel_error *err)
{
    struct file_request request = FILE_REQUEST_INIT;
    struct file_answer answer = FILE_ANSWER_INIT;
    struct stat st;
    int r;

    *type = 0;
    if (end->access) {
        request.op = FILE_STAT;
        request.path = end->path;
        r = file_access_ask(end->access, &request, &answer, err);
        *type = r < 0 ? 0 : answer.stat.mode & S_IFMT;
        return r == -ENOENT ? 0 : r;
    }
    AUTO(fd_close) int fd = named_open(end->path, NAMED_ANY, err);
    if (fd < 0)
        return fd == -ENOENT ? 0 : fd;
    if (fstat(fd, &st) < 0)
        return failed(end, -errno, "stat", err);
    *type = st.st_mode & S_IFMT;
    return 0;
}

/* The last component of a path without trailing slashes; empty for "/", "." and "..". */
static int last_name(const char *path, char name[static NAME_MAX + 1], size_t *parent_len)
{
    size_t end = strlen(path);

    while (end > 0 && path[end - 1] == '/')
        end--;
    size_t begin = end;
    while (begin > 0 && path[begin - 1] != '/')
        begin--;
    size_t len = end - begin;
    *parent_len = begin;
    name[0] = '\0';
    if (len > NAME_MAX)
        return -ENAMETOOLONG;
    if (len == 0 || (len <= 2 && strncmp(path + begin, "..", len) == 0))
        return 0;
    memcpy(name, path + begin, len);
    name[len] = '\0';
    return 0;
}

/* Opens the directory of the target, or finds that it is one. */
static int open_dir(const struct files_end *to, const char *path, struct target *target,
        struct carrel_error *err)
{
    const struct files_end end = { .access = to->access, .path = path };
    mode_t type;

    if (!file_access_far(to->access)) {
        target->dir = open_end(to, path, O_RDONLY | O_DIRECTORY, err);
        return target->dir < 0 ? target->dir : 0;
    }
    int r = type_of(&end, &type, err);
    if (r == 0 && !S_ISDIR(type))
        r = failed(to, type ? -ENOTDIR : -ENOENT, "copy to", err);
    if (r == 0 && (size_t)snprintf(target->far, PATH_MAX, "%s", path) >= PATH_MAX)
        r = failed(to, -ENAMETOOLONG, "copy to", err);
    return r;
}

static int open_host_parent(
        const struct files_end *to, struct target *target, struct carrel_error *err)
{
    AUTO(fd_close) int found = named_open_parent(to->path, target->name, err);
    if (found < 0)
        return found;
    target->dir = named_reopen(found, O_RDONLY | O_DIRECTORY);
    return target->dir < 0 ? failed(to, target->dir, "copy to", err) : 0;
}

static int open_parent(
        const struct files_end *to, struct target *target, struct carrel_error *err)
{
    char parent[PATH_MAX];
    size_t len = 0;

    if (!to->access)
        return open_host_parent(to, target, err);
    int r = last_name(to->path, target->name, &len);
    if (r == 0 && len >= sizeof(parent))
        r = -ENAMETOOLONG;
    if (r == 0 && !target->name[0])
        r = -ENOENT;
    if (r < 0)
        return failed(to, r, "copy to", err);
    memcpy(parent, to->path, len);
    parent[len] = '\0';
    return open_dir(to, len > 0 ? parent : ".", target, err);
}

static bool ends_in_slash(const char *path)
{
    size_t len = strlen(path);

    return len > 0 && path[len - 1] == '/';
}

/* Like cp and docker cp. `from` is NULL for a stream, which has no name. */
static int find_target(const struct files_end *from, bool is_dir, const struct files_end *to,
        struct target *target, struct carrel_error *err)
{
    char shown[300];
    mode_t type = 0;
    size_t unused;

    (void)str_escape(to->path, strlen(to->path), shown, sizeof(shown));
    int r = type_of(to, &type, err);
    if (r < 0)
        return r;
    if (S_ISDIR(type) && !from)
        return err_set(
                err, -EISDIR, "'%s' is a directory; a stream needs the name of a file", shown);
    if (S_ISDIR(type)) {
        r = last_name(from->path, target->name, &unused);
        if (r < 0)
            return failed(from, r, "copy", err);
        return open_dir(to, to->path, target, err);
    }
    if (type && is_dir)
        return err_set(
                err, -ENOTDIR, "'%s' is not a directory, and a directory is copied", shown);
    if (type && !S_ISREG(type))
        return err_set(
                err, -EEXIST, "'%s' exists, and is neither a file nor a directory", shown);
    if (!is_dir && ends_in_slash(to->path))
        return err_set(err, -ENOENT, "there is no directory '%s'", shown);
    return open_parent(to, target, err);
}

static int copy_to(const struct files_end *from, int fd, const struct files_end *to,
        const struct target *target, const struct files_limits *limits,
        struct files_count *count, struct carrel_error *err)
{
    if (file_access_far(to->access)) {
        const struct far_copy copy = {
            .access = to->access, .path = target->far, .limits = limits, .count = count
        };
        return far_copy_in(&copy, fd, target->name, err);
    }
    struct tree_sink *sink = calloc(1, sizeof(*sink));
    if (!sink)
        return err_set_errno(err, -ENOMEM, "copy");
    sink_to_access(sink, to->access, target->dir);
    AUTO(free) struct walk *walk = malloc(sizeof(*walk));
    int r = walk ? 0 : err_set_errno(err, -ENOMEM, "copy");
    if (walk) {
        *walk = walk_begin(&sink->base, count, limits);
        walk->keeps_links_in = from->access && !to->access;
        if (!target->name[0])
            sink_avoid(sink, target->dir);
        r = target->name[0] ? walk_one(walk, target->name, fd, err)
                            : walk_contents(walk, fd, err);
    }
    sink_finish(sink);
    free(sink);
    return r;
}

/* Out of a sandbox without descriptors. */
static int copy_far(const struct files_end *from, const struct files_end *to,
        const struct files_limits *limits, struct files_count *count, struct carrel_error *err)
{
    AUTO(target_close) struct target target = TARGET_INIT;
    AUTO(free) struct tree_sink *sink = calloc(1, sizeof(*sink));
    mode_t type = 0;

    if (!sink)
        return err_set_errno(err, -ENOMEM, "copy");
    if (file_access_far(to->access))
        return file_access_refuse(to->access, "copy from one of its files to another", err);
    int r = type_of(from, &type, err);
    if (r < 0)
        return r;
    if (!type)
        return err_set_errno(err, -ENOENT, "open");
    if (!S_ISREG(type) && !S_ISDIR(type))
        return err_set(err, -EINVAL, "it is neither a file nor a directory");
    r = find_target(from, S_ISDIR(type), to, &target, err);
    if (r < 0)
        return r;
    const struct far_copy copy = {
        .access = from->access,
        .path = from->path,
        .is_directory = S_ISDIR(type),
        .keeps_links_in = !to->access,
        .limits = limits,
        .count = count,
    };
    sink_to_access(sink, to->access, target.dir);
    r = far_copy_out(&copy, sink, target.name, err);
    sink_finish(sink);
    return r;
}

int files_copy(const struct files_end *from, const struct files_end *to,
        const struct files_limits *limits, struct files_count *count, struct carrel_error *err)
{
    AUTO(target_close) struct target target = TARGET_INIT;
    struct files_count unused = { 0 };
    struct stat st;
    char shown[300];

    (void)str_escape(from->path, strlen(from->path), shown, sizeof(shown));
    if (file_access_far(from->access)) {
        int r = copy_far(from, to, limits, count ? count : &unused, err);
        return r < 0 ? err_wrap(err, r, "copy '%s'", shown) : 0;
    }
    AUTO(fd_close) int fd = open_end(from, from->path, O_RDONLY, err);
    if (fd < 0)
        return fd;
    if (fstat(fd, &st) < 0)
        return failed(from, -errno, "stat", err);
    if (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode))
        return err_set(err, -EINVAL, "'%s' is neither a file nor a directory", shown);
    if (S_ISDIR(st.st_mode) && walk_is_made_up(fd))
        return err_set(err, -EINVAL, "'%s': its content is virtual, from the kernel", shown);
    int r = find_target(from, S_ISDIR(st.st_mode), to, &target, err);
    if (r == 0)
        r = copy_to(from, fd, to, &target, limits, count ? count : &unused, err);
    if (from->access)
        r = file_access_outcome(from->access, r, err);
    return r < 0 ? err_wrap(err, r, "copy '%s'", shown) : 0;
}

int files_copy_stream(int in, const struct files_end *to, const struct files_limits *limits,
        struct files_count *count, struct carrel_error *err)
{
    AUTO(target_close) struct target target = TARGET_INIT;
    AUTO(free) struct tree_sink *sink = calloc(1, sizeof(*sink));
    char shown[300];

    if (!sink)
        return err_set_errno(err, -ENOMEM, "copy");
    int r = find_target(NULL, false, to, &target, err);
    if (r < 0)
        return r;
    const struct far_copy far = {
        .access = to->access, .path = target.far, .limits = limits, .count = count
    };
    if (file_access_far(to->access)) {
        r = far_copy_stream(&far, in, target.name, err);
        return r < 0 ? err_wrap(err, r, "'%s'",
                               str_escape(to->path, strlen(to->path), shown, sizeof(shown)))
                     : 0;
    }
    sink_to_access(sink, to->access, target.dir);
    sink->base.data.max = limits && limits->bytes ? limits->bytes : FILES_MAX_BYTES;
    r = sink_stream(sink, target.name, in, err);
    if (r < 0)
        return err_wrap(
                err, r, "'%s'", str_escape(to->path, strlen(to->path), shown, sizeof(shown)));
    count->files++;
    count->bytes += sink->base.data.used;
    return 0;
}
