/*
 * apply_disk.c - names in a tree with untrusted content.
 *
 * An image, or an earlier program in the same root, chose what is there: a link may be where a
 * directory is expected, and lead anywhere. Until the process has entered the new root, an
 * absolute link would lead into the host's. So every name here is opened by openat2(), which
 * either follows no link or keeps all of them in the root; every further step uses the
 * descriptor.
 *
 * Everything on disk belongs to one user, the program's inside, and no other user can create
 * there.
 */
#include "base/fd.h"
#include "runtime/local/inside/apply_tree.h"
#include "runtime/local/inside/mounts.h"
#include "runtime/local/inside/overlay.h"
#include "runtime/local/inside/sys.h"
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

enum links { NO_LINKS, LINKS_IN_ROOT };

/*
 * `root` is where an absolute link leads. The kernel cannot resolve ".." reliably during a
 * concurrent mount or rename anywhere on the machine, and returns EAGAIN; see openat2(2).
 */
#define MAX_TRIES 10000
static int open_name(int root, const char *path, enum links links)
{
    const struct open_how how = {
        .flags = O_PATH | O_CLOEXEC | (links == NO_LINKS ? O_NOFOLLOW : 0),
        .resolve = RESOLVE_NO_MAGICLINKS | RESOLVE_IN_ROOT |
                   (links == NO_LINKS ? RESOLVE_NO_SYMLINKS : 0),
    };

    int fd = -1;

    for (int i = 0; i < MAX_TRIES; i++) {
        fd = sys_openat2(root, path, &how);
        if (fd >= 0 || errno != EAGAIN)
            break;
    }
    return fd;
}

/* Creates a directory or an empty file, as the user that may create there. */
static int make_name(struct tree *tree, int dir, const char *name, mode_t mode)
{
    struct stat st;

    if (fstat(dir, &st) < 0)
        return -errno;
    bool is_disk = tree->disk >= 0 && st.st_dev == tree->disk_dev;
    if (!is_disk && st.st_dev != tree->dev)
        return -EXDEV;
    int r = is_disk ? overlay_as_user(tree->plan, tree->err) : 0;
    if (r < 0)
        return r;
    r = S_ISDIR(mode) ? mkdirat(dir, name, mode & 07777) : mknodat(dir, name, mode, 0);
    int code = r < 0 ? -errno : 0;
    r = is_disk ? overlay_as_maker(tree->plan, tree->err) : 0;
    return code < 0 ? code : r;
}

int disk_open(struct tree *tree)
{
    const struct plan *plan = tree->plan;
    const char *name = plan->disk_use == DISK_IS_ROOT ? "root" : "disk";
    struct stat st;

    if (plan->disk_use == DISK_IS_UNUSED)
        return 0;
    AUTO(fd_close)
    int made = overlay_make(plan, &plan->disk, tree->mount_fds, tree->space, tree->err);
    if (made < 0)
        return made;
    if (fstat(made, &st) < 0)
        return tree_fail(tree, "stat", name);
    if (plan->disk_use == DISK_HAS_PLACES && mkdirat(tree->space, name, 0700) < 0)
        return tree_fail(tree, "create in the private space", name);
    if (mounts_attach(made, tree->space, name) < 0)
        return tree_fail(tree, "attach in the private space", name);
    tree->disk_dev = st.st_dev;
    tree->disk = fd_steal(&made);
    return 0;
}

static int is_directory(int fd)
{
    struct stat st;

    return fstat(fd, &st) == 0 && S_ISDIR(st.st_mode);
}

int disk_point(struct tree *tree, const struct step *step)
{
    AUTO(fd_close) int fd = open_name(tree->root, step->path, NO_LINKS);

    if (fd < 0 && errno == ENOENT) {
        int r = make_name(tree, tree->root, step->path, S_IFDIR | step->mode);
        return r < 0 ? err_set_errno(tree->err, r, "create '/%s' in the root", step->path) : 0;
    }
    if (fd < 0 && errno != ELOOP)
        return tree_fail(tree, "look in the root at", step->path);
    if (fd < 0 || !is_directory(fd))
        return err_set(tree->err, -ENOTDIR,
                "'/%s' of the root is %s; a sandbox needs a directory there", step->path,
                fd < 0 ? "a symbolic link" : "not a directory");
    return 0;
}

/* One component after the other, since a link in the middle may lead elsewhere in the root. */
int disk_ensure(struct tree *tree, const struct step *step)
{
    char path[64];

    for (const char *end = step->path; *end; end += *end == '/') {
        end = strchrnul(end, '/');
        size_t len = (size_t)(end - step->path);
        if (len >= sizeof(path))
            return err_set_errno(tree->err, -ENAMETOOLONG, "'/%s'", step->path);
        memcpy(path, step->path, len);
        path[len] = '\0';
        AUTO(fd_close) int there = open_name(tree->root, path, LINKS_IN_ROOT);
        if (there >= 0 && is_directory(there))
            continue;
        if (there < 0 && errno != ENOENT && errno != ENOTDIR && errno != ELOOP)
            return tree_fail(tree, "look in the root at", path);
        if (there >= 0 || errno != ENOENT)
            return err_set(tree->err, -ENOTDIR,
                    "'/%s' of the root is not a directory; a sandbox needs one there", path);
        char *name = strrchr(path, '/');
        AUTO(fd_close) int parent = -1;
        if (name) {
            *name++ = '\0';
            parent = open_name(tree->root, path, LINKS_IN_ROOT);
        } else {
            name = path;
            parent = fcntl(tree->root, F_DUPFD_CLOEXEC, 3);
        }
        if (parent < 0)
            return tree_fail(tree, "look in the root at", path);
        int r = make_name(tree, parent, name, S_IFDIR | (*end ? 0755 : step->mode));
        if (r == -EEXIST) /* so it is a dangling link */
            return err_set(tree->err, -ENOTDIR,
                    "'/%s' of the root is a symbolic link that leads nowhere; a sandbox needs "
                    "a directory there",
                    step->path);
        if (r < 0)
            return err_set_errno(tree->err, r, "create '/%s' in the root", step->path);
    }
    return 0;
}

int disk_open_place(struct tree *tree, const struct step *step)
{
    AUTO(fd_close) int fd = open_name(tree->disk, step->source, NO_LINKS);

    if (fd < 0 && errno == ENOENT) {
        int r = make_name(tree, tree->disk, step->source, S_IFDIR | step->mode);
        if (r < 0)
            return err_set_errno(tree->err, r, "create the private '%s'", step->path);
        fd = open_name(tree->disk, step->source, NO_LINKS);
    }
    if (fd < 0)
        return tree_fail(tree, "open the private", step->path);
    if (!is_directory(fd))
        return err_set(tree->err, -ENOTDIR, "'%s' of the private space is not a directory",
                step->source);
    return fd_steal(&fd);
}

int disk_open_covered(struct tree *tree, const struct step *step)
{
    struct stat st;
    AUTO(fd_close) int fd = open_name(tree->root, step->path, NO_LINKS);

    if (fd < 0 && errno == ENOENT && tree->plan->disk_use == DISK_IS_ROOT) {
        const char *slash = strchr(step->path, '/');
        AUTO(fd_close) int dir = slash ? open_name(tree->root, "etc", NO_LINKS) : -1;
        if (dir < 0 || make_name(tree, dir, slash + 1, S_IFREG | step->mode) < 0)
            return -ENOENT;
        fd = open_name(tree->root, step->path, NO_LINKS);
    }
    if (fd < 0)
        return errno == ENOENT || errno == ENOTDIR || errno == ELOOP
                       ? -ENOENT
                       : tree_fail(tree, "look at", step->path);
    if (fstat(fd, &st) < 0)
        return tree_fail(tree, "look at", step->path);
    return S_ISREG(st.st_mode) ? fd_steal(&fd) : -ENOENT;
}

static int refuse_link(struct tree *tree, const char *path)
{
    return err_set(tree->err, -ELOOP,
            "mount target '/%s' leads through a symbolic link; refused", path);
}

/* Opens the next component of a target, or creates it. */
static int open_next(struct tree *tree, int at, const char *name, mode_t type, const char *path)
{
    const mode_t mode = S_ISDIR(type) ? 0755 : 0644;
    int next = open_name(at, name, NO_LINKS);

    if (next < 0 && errno == ENOENT) {
        int r = make_name(tree, at, name, type | mode);
        if (r == -EXDEV)
            return err_set(tree->err, -ENOENT,
                    "mount target '/%s' does not exist in the directory mounted above it; "
                    "create it there first",
                    path);
        if (r < 0)
            return err_set_errno(tree->err, r, "create the mount target '/%s'", path);
        next = open_name(at, name, NO_LINKS);
    }
    if (next < 0)
        return errno == ELOOP ? refuse_link(tree, path)
                              : tree_fail(tree, "open the mount target", path);
    return next;
}

int disk_open_target(struct tree *tree, const char *path, bool is_dir)
{
    AUTO(fd_close) int at = fcntl(tree->root, F_DUPFD_CLOEXEC, 3);
    if (at < 0)
        return tree_fail(tree, "open", "the new root");

    for (const char *rest = path; *rest;) {
        char name[256];
        struct stat st;
        size_t len = strcspn(rest, "/");
        if (len >= sizeof(name))
            return err_set_errno(tree->err, -ENAMETOOLONG, "mount target '/%s'", path);
        memcpy(name, rest, len);
        name[len] = '\0';
        rest += len + (rest[len] == '/');

        int next = open_next(tree, at, name, *rest || is_dir ? S_IFDIR : S_IFREG, path);
        if (next < 0)
            return next;
        fd_close(at);
        at = next;
        if (fstat(at, &st) < 0)
            return tree_fail(tree, "stat on the way to", path);
        if (S_ISLNK(st.st_mode))
            return refuse_link(tree, path);
    }
    return fd_steal(&at);
}
