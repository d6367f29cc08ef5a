/*
 * overlay.c - overlayfs from layers that have no common path.
 *
 * overlayfs takes paths (descriptors only since Linux 6.13) and, before 6.15, refuses a layer
 * that is mounted nowhere. So each layer is attached in the private space under a short name of
 * ours: no name of the host's ever stands in a mount option, where ':' and ',' would mean
 * something.
 *
 * Mounted in a user namespace, so extended attributes of its own are user.overlay.*; through
 * the mount a program cannot forge them. Options that depend on how the kernel was built are
 * given: a redirect or a metadata-only copy in the upper directory would be meaningless to
 * whoever reads it as a list of changes. `volatile`: copying a file up does not wait for the
 * disk.
 */
#include "runtime/local/overlay.h"
#include "base/auto.h"
#include "base/err.h"
#include "base/fd.h"
#include "runtime/local/caps.h"
#include "runtime/local/mounts.h"
#include "runtime/local/plan.h"
#include "runtime/local/sys.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/fsuid.h>
#include <sys/stat.h>

#define LAYER_NAME_MAX 16

/* Attaches source `i` at `scratch`/l<i>. */
static int attach_layer(const struct plan *plan, size_t i, const int *mount_fds, int scratch,
        struct carrel_error *err)
{
    const struct plan_source *source = &plan->sources[i];
    uint64_t attr = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV;
    char name[LAYER_NAME_MAX];

    (void)snprintf(name, sizeof(name), "l%zu", i);
    AUTO(fd_close)
    int mount = mount_fds[i] >= 0 ? fcntl(mount_fds[i], F_DUPFD_CLOEXEC, 3)
                                  : mounts_clone(AT_FDCWD, source->path);
    if (mount < 0)
        return err_set_errno(err, -errno, "layer '%s'", source->path);
    if (mounts_restrict(mount, source->is_writable ? attr : attr | MOUNT_ATTR_RDONLY) < 0)
        return err_set_errno(err, -errno, "restrict the layer '%s'", source->path);
    if (mkdirat(scratch, name, 0700) < 0 || mounts_attach(mount, scratch, name) < 0)
        return err_set_errno(err, -errno, "attach the layer '%s'", source->path);
    return 0;
}

/*
 * Whoever mounts an overlay creates its whiteouts and its work directory. That must be the one
 * id that the layers know, which is the program's, not init's; init keeps its capabilities,
 * which reach no further than this namespace.
 */
static int act_as(uid_t uid, gid_t gid, struct carrel_error *err)
{
    (void)setfsgid(gid);
    (void)setfsuid(uid);
    if (setfsgid((gid_t)-1) != (int)gid || setfsuid((uid_t)-1) != (int)uid)
        return err_set(err, -EPERM, "make files as %u:%u", (unsigned)uid, (unsigned)gid);
    return caps_raise(err);
}

int overlay_make(const struct plan *plan, const struct plan_mount *mount, const int *mount_fds,
        int scratch, const char *scratch_path, struct carrel_error *err)
{
    char lower[PLAN_MAX_LOWER * (LAYER_NAME_MAX + 8)];
    char upper[128];
    char work[128];
    size_t used = 0;
    size_t space = mount->source + mount->n_lower;

    for (size_t i = mount->source; i <= space; i++) {
        int r = attach_layer(plan, i, mount_fds, scratch, err);
        if (r < 0)
            return r;
    }
    for (size_t i = mount->source; i < space; i++)
        used += (size_t)snprintf(lower + used, sizeof(lower) - used, "%s%s/l%zu",
                used ? ":" : "", scratch_path, i);
    (void)snprintf(upper, sizeof(upper), "%s/l%zu/%s", scratch_path, space, mount->upper);
    (void)snprintf(work, sizeof(work), "%s/l%zu/%s", scratch_path, space, mount->work);

    const struct mount_option options[] = {
        { "lowerdir", lower },
        { "upperdir", upper },
        { "workdir", work },
        { "userxattr", NULL },
        { "redirect_dir", "nofollow" },
        { "metacopy", "off" },
        { "index", "off" },
        { "xino", "off" },
        { "volatile", NULL },
    };
    int r = act_as(plan->uid, plan->gid, err);
    if (r < 0)
        return r;
    int made = mounts_make(
            "overlay", options, ARRAY_LEN(options), MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, err);
    r = act_as(plan->init_uid, plan->init_gid, err);
    if (made >= 0 && r < 0) {
        fd_close(made);
        return r;
    }
    return made;
}
