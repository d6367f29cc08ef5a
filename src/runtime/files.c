/* files.c - validates a file request. */
#include "runtime/files.h"
#include "base/err.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/inotify.h>

#define OPEN_FLAGS                                                                             \
    (O_ACCMODE | O_CREAT | O_EXCL | O_TRUNC | O_APPEND | O_DIRECTORY | O_NOFOLLOW |            \
            O_NONBLOCK | O_CLOEXEC)
#define WATCH_EVENTS                                                                           \
    (IN_ALL_EVENTS | IN_ONLYDIR | IN_DONT_FOLLOW | IN_EXCL_UNLINK | IN_MASK_ADD | IN_ONESHOT)

/* The valid arguments of each operation. */
struct shape {
    int flags;
    bool has_other;
};

static const struct shape shapes[FILE_OP_COUNT] = {
    [FILE_OPEN] = { OPEN_FLAGS, false },
    [FILE_STAT] = { FILE_NO_FOLLOW, false },
    [FILE_READ_LINK] = { 0, false },
    [FILE_MAKE_DIR] = { 0, false },
    [FILE_REMOVE] = { 0, false },
    [FILE_REMOVE_DIR] = { 0, false },
    [FILE_RENAME] = { FILE_NO_REPLACE, true },
    [FILE_LINK] = { 0, true },
    [FILE_SYMLINK] = { 0, true },
    [FILE_SET_MODE] = { FILE_NO_FOLLOW, false },
    [FILE_SET_TIMES] = { FILE_NO_FOLLOW, false },
    [FILE_WATCH] = { FILE_NO_FOLLOW, false },
    [FILE_LIST] = { 0, false },
    [FILE_PACK] = { 0, false },
    [FILE_UNPACK] = { FILE_KEEP_DIRS, false },
    [FILE_REMOVE_TREE] = { 0, false },
};

static int check_path(const char *path, const char *what, struct carrel_error *err)
{
    size_t len = path ? strnlen(path, PATH_MAX) : 0;

    if (len == 0)
        return err_set(err, -EINVAL, "%s of a file is empty", what);
    if (len == PATH_MAX)
        return err_set(
                err, -ENAMETOOLONG, "%s of a file is longer than %d bytes", what, PATH_MAX - 1);
    return 0;
}

int file_check(const struct file_request *request, struct carrel_error *err)
{
    if ((unsigned)request->op >= FILE_OP_COUNT)
        return err_set(err, -EINVAL, "unknown file operation %u", (unsigned)request->op);
    const struct shape *shape = &shapes[request->op];
    int r = check_path(request->path, "the path", err);
    if (r == 0 && shape->has_other)
        r = check_path(request->other,
                request->op == FILE_SYMLINK ? "the target" : "the new path", err);
    if (r < 0)
        return r;
    if (request->flags & ~shape->flags || request->mode & ~(mode_t)07777)
        return err_set(err, -EINVAL, "a flag of a file operation is not allowed");
    if (request->op == FILE_WATCH && (request->watch < 0 || !request->events ||
                                             request->events & ~(uint32_t)WATCH_EVENTS))
        return err_set(err, -EINVAL, "a watch needs a descriptor and known events");
    return 0;
}
