/*
 * apply.c - builds the mount tree with descriptors and never by joining paths.
 *
 * One tmpfs, the space, holds everything private to the sandbox. Its directory "root" becomes
 * the new root and is made read-only at the end, unless a skeleton is mounted there, which is
 * read-only from the start; its directory "space" has one directory for each writable path,
 * mounted there read-write. So one size limits all that the program can write. What is to be
 * kept, or a root that the program may change, is an overlay on disk instead (apply_disk.c).
 *
 * Everything that comes from the host is cloned with open_tree(), gets its restrictions while
 * it is still detached, and is only then attached: it is never reachable without them.
 */
#include "runtime/local/inside/apply.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/named.h"
#include "runtime/local/inside/apply_tree.h"
#include "runtime/local/inside/mounts.h"
#include "runtime/local/inside/overlay.h"
#include "runtime/local/inside/sys.h"
#include "runtime/local/plan.h"
#include "runtime/local/skeleton.h"
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

/*
 * Clones `source`, restricts it, attaches it at `path` of the new root. attr == 0: it already
 * has its restrictions, as part of our tmpfs.
 */
static int bind(struct tree *tree, int dir, const char *source, uint64_t attr, const char *path)
{
    AUTO(fd_close) int mount = mounts_clone(dir, source);
    if (mount < 0)
        return tree_fail(tree, "clone the mount of", source);
    if (attr && mounts_restrict(mount, attr) < 0)
        return tree_fail(tree, "restrict the mount of", source);
    if (mounts_attach(mount, tree->root, path) < 0)
        return tree_fail(tree, "mount on", path);
    return 0;
}

/* Of another root only what was looked at: not what has its name by now, and through no link.
 */
static int step_bind(struct tree *tree, const struct step *step, uint64_t attr)
{
    const struct open_how how = {
        .flags = O_PATH | O_NOFOLLOW | O_CLOEXEC,
        .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS,
    };
    const char *path = tree->plan->root;
    struct stat st;

    if (!path)
        return bind(tree, AT_FDCWD, step->source, attr, step->path);
    AUTO(fd_close) int root = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (root < 0 || fstat(root, &st) < 0)
        return tree_fail(tree, "root", path);
    if (!named_id_is(&tree->plan->root_id, &st))
        return err_set(tree->err, -ESTALE, "root '%s' was exchanged meanwhile", path);
    AUTO(fd_close) int entry = sys_openat2(root, step->path, &how);
    if (entry < 0)
        return tree_fail(tree, "open", step->source);
    return bind(tree, entry, "", attr, step->path);
}

/*
 * The tmpfs, and the new root in it. It must be attached somewhere in this namespace and hides
 * what is there; the host's /proc is no mount source and no longer needed.
 */
static int open_space(struct tree *tree)
{
    const struct mount_option options[] = {
        { "size", tree->plan->space_bytes },
        { "nr_inodes", tree->plan->space_inodes },
        { "mode", "0755" },
    };
    struct stat st;

    AUTO(fd_close)
    int space = mounts_make("tmpfs", options, ARRAY_LEN(options),
            MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, tree->err);
    if (space < 0)
        return space;
    if (move_mount(space, "", AT_FDCWD, SPACE_PATH, MOVE_MOUNT_F_EMPTY_PATH) < 0)
        return tree_fail(tree, "attach the private space at", SPACE_PATH);
    if (fstat(space, &st) < 0)
        return tree_fail(tree, "stat", "the private space");
    if (mkdirat(space, "root", 0755) < 0 || mkdirat(space, "space", 0700) < 0 ||
            mkdirat(space, "empty", 0) < 0 || mkdirat(space, "own", 0755) < 0)
        return tree_fail(tree, "create in", "the private space");

    tree->places = openat(space, "space", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (tree->places < 0)
        return tree_fail(tree, "open", "the private space");
    tree->dev = st.st_dev;
    tree->space = fd_steal(&space);
    return 0;
}

static bool has_skeleton(const struct tree *tree)
{
    return tree->skeleton->root >= 0;
}

/* The new root must be a mount point: a bind mount of itself, or the skeleton. */
static int open_own_root(struct tree *tree)
{
    const struct skeleton *skeleton = tree->skeleton;

    tree->root = has_skeleton(tree) ? fcntl(skeleton->root, F_DUPFD_CLOEXEC, 3)
                                    : mounts_clone(tree->space, "root");
    if (tree->root < 0)
        return tree_fail(tree, "clone", "the new root");
    if (mounts_attach(tree->root, tree->space, "root") < 0)
        return tree_fail(tree, "attach", "the new root");
    if (has_skeleton(tree) && mounts_attach(skeleton->dev, tree->root, "dev") < 0)
        return tree_fail(tree, "mount on", "dev");
    tree->made = fcntl(tree->root, F_DUPFD_CLOEXEC, 3);
    return tree->made < 0 ? tree_fail(tree, "open", "the new root") : 0;
}

static int open_root(struct tree *tree)
{
    int r = disk_open(tree);

    if (r < 0)
        return r;
    if (tree->plan->disk_use != DISK_IS_ROOT)
        return open_own_root(tree);
    tree->root = fcntl(tree->disk, F_DUPFD_CLOEXEC, 3);
    tree->made = openat(tree->space, "own", O_PATH | O_DIRECTORY | O_CLOEXEC);
    return tree->root < 0 || tree->made < 0 ? tree_fail(tree, "open", "the new root") : 0;
}

static int write_file(struct tree *tree, int dir, const char *path, const struct step *step)
{
    if (!step->source[0]) {
        int made = mknodat(dir, path, S_IFREG | step->mode, 0);
        return made < 0 ? tree_fail(tree, "create", step->path) : 0;
    }
    AUTO(fd_close)
    int fd =
            openat(dir, path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, step->mode);
    if (fd < 0)
        return tree_fail(tree, "create", step->path);
    int r = fd_write_all(fd, step->source, strlen(step->source));
    return r < 0 ? err_set_errno(tree->err, r, "write '%s'", step->path) : 0;
}

/* A name for the next private directory: "00", "01" ... below `space`. */
static void next_place(struct tree *tree, char name[3])
{
    name[0] = (char)('0' + tree->n_places / 10);
    name[1] = (char)('0' + tree->n_places % 10);
    name[2] = '\0';
    tree->n_places++;
}

static int step_space(struct tree *tree, const struct step *step)
{
    char name[3];

    next_place(tree, name);
    if (mkdirat(tree->places, name, step->mode) < 0)
        return tree_fail(tree, "create the private", step->path);
    if (tree->plan->is_init_apart &&
            fchownat(tree->places, name, tree->plan->uid, tree->plan->gid, 0) < 0)
        return tree_fail(tree, "hand over the private", step->path);
    return bind(tree, tree->places, name, 0, step->path);
}

static int step_kept(struct tree *tree, const struct step *step)
{
    AUTO(fd_close) int place = disk_open_place(tree, step);

    return place < 0 ? place : bind(tree, place, "", 0, step->path);
}

static int step_dev(struct tree *tree, const struct step *step)
{
    if (!has_skeleton(tree))
        return bind(tree, tree->made, step->path,
                MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, step->path);
    return mounts_attach(tree->skeleton->dev, tree->root, step->path) < 0
                   ? tree_fail(tree, "mount on", step->path)
                   : 0;
}

static int step_cover(struct tree *tree, const struct step *step)
{
    const uint64_t fixed = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV;
    char name[3];

    AUTO(fd_close) int covered = disk_open_covered(tree, step);
    if (covered < 0)
        return covered == -ENOENT ? 0 : covered; /* the other root has no such file */
    next_place(tree, name);
    int r = write_file(tree, tree->places, name, step);
    if (r < 0)
        return r;
    AUTO(fd_close) int mount = mounts_clone(tree->places, name);
    if (mount < 0 || mounts_restrict(mount, fixed) < 0 || mounts_attach(mount, covered, "") < 0)
        return tree_fail(tree, "mount on", step->path);
    return 0;
}

static int step_devpts(struct tree *tree, const struct step *step)
{
    const struct mount_option options[] = {
        { "newinstance", NULL }, { "ptmxmode", "0666" }, { "mode", "0620" },
        { "max", "64" }, /* else one sandbox could exhaust the host's terminals */
    };

    AUTO(fd_close)
    int mount = mounts_make("devpts", options, ARRAY_LEN(options),
            MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC, tree->err);
    if (mount < 0)
        return mount;
    return mounts_attach(mount, tree->root, step->path) < 0
                   ? tree_fail(tree, "mount on", step->path)
                   : 0;
}

/*
 * Forbids namespaces inside, and sets inotify limits of the sandbox's own: the kernel also
 * charges the user who created the namespace, so without this one sandbox could exhaust the
 * limits of the host's user.
 *
 * Written through the sandbox's own /proc. In the host's, the entries of all sandboxes have the
 * same name in the same directory, and a lookup compares them one by one.
 */
static int forbid_nesting(struct tree *tree, int proc)
{
    static const struct {
        const char *file;
        const char *value;
    } limits[] = {
        { "sys/user/max_user_namespaces", "0" },
        { "sys/user/max_inotify_instances", "32" },
        { "sys/user/max_inotify_watches", "16384" },
    };

    for (size_t i = 0; i < ARRAY_LEN(limits); i++) {
        int r = fd_write_file(proc, limits[i].file, limits[i].value);
        if (r < 0)
            return err_set_errno(tree->err, r, "write '/proc/%s'", limits[i].file);
    }
    return 0;
}

static int step_proc(struct tree *tree, const struct step *step)
{
    AUTO(fd_close)
    int mount = mounts_make("proc", NULL, 0,
            MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC, tree->err);
    if (mount < 0)
        return mount;
    int r = forbid_nesting(tree, mount);
    if (r < 0)
        return r;
    return mounts_attach(mount, tree->root, step->path) < 0
                   ? tree_fail(tree, "mount on", step->path)
                   : 0;
}

static int step_mount(struct tree *tree, const struct step *step)
{
    const struct plan_mount *mount = &tree->plan->mounts[step->index];
    uint64_t attr = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV;
    struct stat st;

    const char *path = tree->plan->sources[mount->source].path;
    int given = tree->mount_fds[mount->source];
    AUTO(fd_close)
    int source = given >= 0 ? fcntl(given, F_DUPFD_CLOEXEC, 3) : mounts_clone(AT_FDCWD, path);
    if (source < 0 || fstat(source, &st) < 0)
        return tree_fail(tree, "mount source", path);
    if (!named_id_is(&tree->plan->sources[mount->source].id, &st))
        return err_set(tree->err, -ESTALE, "mount source '%s' was exchanged meanwhile", path);
    struct stat at;
    AUTO(fd_close) int target = disk_open_target(tree, step->path, S_ISDIR(st.st_mode));
    if (target < 0)
        return target;
    if (fstat(target, &at) < 0)
        return tree_fail(tree, "mount target", step->path);
    if (S_ISDIR(at.st_mode) != S_ISDIR(st.st_mode))
        return err_set(tree->err, S_ISDIR(at.st_mode) ? -ENOTDIR : -EISDIR,
                "mount source '%s' is %s, but the target '/%s' is %s", path,
                S_ISDIR(st.st_mode) ? "a directory" : "not a directory", step->path,
                S_ISDIR(at.st_mode) ? "one" : "a file");
    if (mounts_restrict(source, mount->is_writable ? attr : attr | MOUNT_ATTR_RDONLY) < 0)
        return tree_fail(tree, "restrict the mount of", path);
    if (mounts_attach(source, target, "") < 0)
        return tree_fail(tree, "mount on", step->path);
    return 0;
}

static int step_overlay(struct tree *tree, const struct step *step)
{
    const struct plan_mount *mount = &tree->plan->mounts[step->index];

    AUTO(fd_close)
    int made = overlay_make(tree->plan, mount, tree->mount_fds, tree->space, tree->err);
    if (made < 0)
        return made;
    AUTO(fd_close) int target = disk_open_target(tree, step->path, true);
    if (target < 0)
        return target;
    if (!mount->is_writable && mounts_restrict(made, MOUNT_ATTR_RDONLY) < 0)
        return tree_fail(tree, "make read-only", step->path);
    return mounts_attach(made, target, "") < 0 ? tree_fail(tree, "mount on", step->path) : 0;
}

static int apply_step(struct tree *tree, const struct step *step)
{
    const uint64_t fixed = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV;
    const uint64_t device = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC;

    if (has_skeleton(tree) && step_is_skeleton(step->kind))
        return 0; /* it exists already */
    switch (step->kind) {
    case STEP_DIR:
        return mkdirat(tree->made, step->path, step->mode) < 0
                       ? tree_fail(tree, "create", step->path)
                       : 0;
    case STEP_LINK:
        return symlinkat(step->source, tree->made, step->path) < 0
                       ? tree_fail(tree, "create the link", step->path)
                       : 0;
    case STEP_FILE:
        return write_file(tree, tree->made, step->path, step);
    case STEP_COVER:
        return step_cover(tree, step);
    case STEP_SPACE:
        return step_space(tree, step);
    case STEP_KEPT:
        return step_kept(tree, step);
    case STEP_POINT:
        return disk_point(tree, step);
    case STEP_ENSURE:
        return disk_ensure(tree, step);
    case STEP_DEV:
        return step_dev(tree, step);
    case STEP_BIND:
        return step_bind(tree, step, fixed);
    case STEP_DEVICE:
        return bind(tree, AT_FDCWD, step->source, device, step->path);
    case STEP_DEVPTS:
        return step_devpts(tree, step);
    case STEP_PROC:
        return step_proc(tree, step);
    case STEP_MASK:
        return bind(tree, AT_FDCWD, "/dev/null", device, step->path);
    case STEP_MASK_DIR:
        return bind(tree, tree->space, "empty", fixed, step->path);
    case STEP_READ_ONLY:
        return bind(tree, tree->root, step->path, fixed | MOUNT_ATTR_NOEXEC, step->path);
    case STEP_MOUNT:
        return step_mount(tree, step);
    case STEP_OVERLAY:
        return step_overlay(tree, step);
    }
    return err_set(tree->err, -EINVAL, "unknown step %d", (int)step->kind);
}

/* Read-only last: until here we were creating in it. Then the host's tree is detached. */
static int enter_root(struct tree *tree)
{
    struct mount_attr attr = {
        .attr_set = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV,
        .propagation = MS_PRIVATE,
    };

    if (tree->plan->disk_use != DISK_IS_ROOT)
        attr.attr_set |= MOUNT_ATTR_RDONLY;
    if (mount_setattr(tree->root, "", AT_EMPTY_PATH, &attr, sizeof(attr)) < 0)
        return tree_fail(tree, "restrict", "the new root");
    if (fchdir(tree->root) < 0)
        return tree_fail(tree, "enter", "the new root");
    if (sys_pivot_root(".", ".") < 0)
        return tree_fail(tree, "pivot into", "the new root");
    if (umount2(".", MNT_DETACH) < 0)
        return tree_fail(tree, "leave", "the host's root");
    if (chdir("/") < 0)
        return tree_fail(tree, "enter", "/");
    return 0;
}

int apply_plan(const struct plan *plan, const int *mount_fds, const struct skeleton *skeleton,
        struct carrel_error *err)
{
    struct tree tree = {
        .plan = plan,
        .mount_fds = mount_fds,
        .skeleton = skeleton,
        .err = err,
        .space = -1,
        .places = -1,
        .root = -1,
        .made = -1,
        .disk = -1,
    };

    int r = open_space(&tree);
    if (r == 0)
        r = open_root(&tree);
    for (size_t i = 0; r == 0 && i < plan->n_steps; i++)
        r = apply_step(&tree, &plan->steps[i]);
    if (r == 0)
        r = enter_root(&tree);
    fd_close(tree.root);
    fd_close(tree.made);
    fd_close(tree.disk);
    fd_close(tree.places);
    if (r < 0) {
        fd_close(tree.space);
        return r;
    }
    return tree.space;
}
