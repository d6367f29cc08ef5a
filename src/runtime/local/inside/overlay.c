/*
 * overlay.c - mounts an overlayfs of layers that have no common path.
 *
 * overlayfs takes paths (descriptors only since Linux 6.13) and, before 6.15, refuses a layer
 * that is not mounted. So each layer is attached in the private space under a short name of
 * ours: no path of the host ever is part of a mount option, where ':' and ',' are special.
 *
 * Mounted in a user namespace, so its extended attributes are user.overlay.*; a program cannot
 * forge them through the mount. Options whose default depends on the kernel's configuration are
 * set explicitly: a redirect or a metadata-only copy in the upper directory would be
 * meaningless when it is read as a list of changes. `volatile`: copying a file up does not wait
 * for the disk.
 */
#include "runtime/local/inside/overlay.h"
#include "base/auto.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/named.h"
#include "runtime/local/inside/mounts.h"
#include "runtime/local/inside/sys.h"
#include "runtime/local/plan.h"
#include "runtime/serving/caps.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/fsuid.h>
#include <sys/stat.h>

/*
 * A name for layer `i` of an overlay: "a" to "z", "A" to "Z", then "aa", "ab" ...
 *
 * All lower layers are in one mount option, and fsconfig(2) accepts no value of more than 255
 * bytes; only since Linux 6.7 can they be given one by one. With these names, relative to their
 * directory, PLAN_MAX_LOWER layers fit.
 */
#define LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define N_LETTERS (sizeof(LETTERS) - 1)
#define OPTION_MAX 256
#define UPPER "upper" /* in memory, where no other name can clash */
#define WORK "work"
_Static_assert(N_LETTERS * 2 + (PLAN_MAX_LOWER - N_LETTERS) * 3 < OPTION_MAX,
        "the names of all layers fit into one option");

static void name_layer(size_t i, char name[static 3])
{
    size_t at = 0;

    if (i >= N_LETTERS)
        name[at++] = LETTERS[i / N_LETTERS - 1];
    name[at++] = LETTERS[i % N_LETTERS];
    name[at] = '\0';
}

/* Attaches source `i` at `dir`/`name`. */
static int attach_layer(const struct plan *plan, size_t i, const int *mount_fds, int dir,
        const char *name, struct carrel_error *err)
{
    const struct plan_source *source = &plan->sources[i];
    uint64_t attr = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV;
    struct stat st;

    AUTO(fd_close)
    int mount = mount_fds[i] >= 0 ? fcntl(mount_fds[i], F_DUPFD_CLOEXEC, 3)
                                  : mounts_clone(AT_FDCWD, source->path);
    if (mount < 0 || fstat(mount, &st) < 0)
        return err_set_errno(err, -errno, "layer '%s'", source->path);
    if (!named_id_is(&source->id, &st))
        return err_set(err, -ESTALE, "the layer '%s' was exchanged meanwhile", source->path);
    if (mounts_restrict(mount, source->is_writable ? attr : attr | MOUNT_ATTR_RDONLY) < 0)
        return err_set_errno(err, -errno, "restrict the layer '%s'", source->path);
    if (mkdirat(dir, name, 0700) < 0 || mounts_attach(mount, dir, name) < 0)
        return err_set_errno(err, -errno, "attach the layer '%s'", source->path);
    return 0;
}

static int set_ids(uid_t uid, gid_t gid, struct carrel_error *err)
{
    (void)setfsgid(gid);
    (void)setfsuid(uid);
    if (setfsgid((gid_t)-1) != (int)gid || setfsuid((uid_t)-1) != (int)uid)
        return err_set(err, -EPERM, "make files as %u:%u", (unsigned)uid, (unsigned)gid);
    return caps_raise(err);
}

int overlay_as_user(const struct plan *plan, struct carrel_error *err)
{
    return set_ids(plan->uid, plan->gid, err);
}

int overlay_as_maker(const struct plan *plan, struct carrel_error *err)
{
    return set_ids(plan->maker_uid, plan->maker_gid, err);
}

/* Creates the writable directory, "0", in the private space itself. */
static int make_memory(const struct plan *plan, int dir, struct carrel_error *err)
{
    static const char *const names[] = { "0", "0/" UPPER, "0/" WORK };

    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (mkdirat(dir, names[i], 0755) < 0 ||
                fchownat(dir, names[i], plan->uid, plan->gid, AT_SYMLINK_NOFOLLOW) < 0)
            return err_set_errno(err, -errno, "make a place for what is changed");
    return 0;
}

/* Attaches all layers in a new directory of `scratch`; the writable one as "0". */
static int attach_layers(const struct plan *plan, const struct plan_mount *mount,
        const int *mount_fds, int scratch, char lower[static OPTION_MAX],
        struct carrel_error *err)
{
    char place[24];
    char name[3];
    size_t used = 0;

    (void)snprintf(place, sizeof(place), "layers-%zu", mount->source);
    AUTO(fd_close)
    int dir = mkdirat(scratch, place, 0700) < 0
                      ? -1
                      : openat(scratch, place, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0)
        return err_set_errno(err, -errno, "make a place for layers");
    for (size_t i = 0; i < mount->n_lower; i++) {
        name_layer(i, name);
        int r = attach_layer(plan, mount->source + i, mount_fds, dir, name, err);
        if (r < 0)
            return r;
        used += (size_t)snprintf(
                lower + used, OPTION_MAX - used, "%s%s", used ? ":" : "", name);
    }
    if (mount->n_lower == 0) { /* an overlay needs at least one */
        (void)snprintf(lower, OPTION_MAX, "none");
        if (mkdirat(dir, lower, 0755) < 0)
            return err_set_errno(err, -errno, "make an empty layer");
    }
    int r = mount->is_in_memory ? make_memory(plan, dir, err)
                                : attach_layer(plan, mount->source + mount->n_lower, mount_fds,
                                          dir, "0", err);
    if (r == 0 && fchdir(dir) < 0)
        r = err_set_errno(err, -errno, "enter the place of the layers");
    return r;
}

int overlay_make(const struct plan *plan, const struct plan_mount *mount, const int *mount_fds,
        int scratch, struct carrel_error *err)
{
    char lower[OPTION_MAX];
    char upper[OPTION_MAX + 2];
    char work[OPTION_MAX + 2];

    (void)snprintf(upper, sizeof(upper), "0/%s", mount->is_in_memory ? UPPER : mount->upper);
    (void)snprintf(work, sizeof(work), "0/%s", mount->is_in_memory ? WORK : mount->work);
    int r = attach_layers(plan, mount, mount_fds, scratch, lower, err);
    if (r < 0)
        return r;
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
    r = overlay_as_user(plan, err);
    if (r < 0)
        return r;
    int made = mounts_make(
            "overlay", options, ARRAY_LEN(options), MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, err);
    r = overlay_as_maker(plan, err);
    if (made >= 0 && r < 0) {
        fd_close(made);
        return r;
    }
    return made;
}
