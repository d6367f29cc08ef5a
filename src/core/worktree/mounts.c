/* mounts.c - what of a workspace a sandbox sees, and where. */
#include "base/err.h"
#include "base/fd.h"
#include "core/worktree/fuse.h"
#include "core/worktree/shallow.h"
#include "core/worktree/worktree.h"
#include "workspace/private.h"
#include "workspace/stack.h"
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

/* Text that lives as long as the workplace. NULL when memory is gone. */
static char *text(struct workplace *place, const char *fmt, ...)
        __attribute__((format(printf, 2, 3)));
static char *text(struct workplace *place, const char *fmt, ...)
{
    char *string = NULL;
    va_list ap;

    char **strings =
            reallocarray(place->strings, place->n_strings + 1, sizeof(*place->strings));
    if (!strings)
        return NULL;
    place->strings = strings;
    va_start(ap, fmt);
    int len = vasprintf(&string, fmt, ap);
    va_end(ap);
    if (len < 0)
        return NULL;
    return place->strings[place->n_strings++] = string;
}

static int add_mount(
        struct workplace *place, struct sandbox_mount mount, struct carrel_error *err)
{
    struct sandbox_mount *mounts =
            reallocarray(place->mounts, place->n_mounts + 1, sizeof(*place->mounts));

    if (mounts)
        place->mounts = mounts;
    if (!mounts || !mount.target || (!mount.source && !mount.overlay))
        return err_set_errno(err, -ENOMEM, "workspace mounts");
    mounts[place->n_mounts++] = mount;
    return 0;
}

static int bind(struct workplace *place, const char *source, const char *target,
        enum access access, struct carrel_error *err)
{
    return add_mount(place,
            (struct sandbox_mount){ .source = source, .target = target, .access = access },
            err);
}

/*
 * An object directory may name others by paths of the host, which mean nothing inside and which
 * we mount ourselves; git would complain of each. So its list is covered by an empty file.
 */
static int cover_alternates(struct workplace *place, const char *objects, const char *target,
        struct carrel_error *err)
{
    struct stat st;
    char *list = text(place, "%s/info/alternates", objects);
    char *empty = text(place, "%s/empty", place->ws->path);

    if (!list || !empty)
        return err_set_errno(err, -ENOMEM, "workspace mounts");
    if (stat(list, &st) < 0)
        return errno == ENOENT ? 0 : err_set_errno(err, -errno, "'%s'", list);
    AUTO(fd_close)
    int fd = openat(place->ws->dir, "empty", O_RDONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0644);
    if (fd < 0)
        return err_set_errno(err, -errno, "'%s'", empty);
    return bind(place, empty, text(place, "%s/info/alternates", target), ACCESS_READ_ONLY, err);
}

static int mount_objects(struct workplace *place, struct carrel_error *err)
{
    char cut[PATH_MAX];
    int r = 0;

    if (place->ws->is_cut) {
        r = cut_path(place, cut, sizeof(cut), err);
        return r < 0 ? r
                     : bind(place, text(place, "%s", cut), PRIVATE_OBJECTS, ACCESS_READ_ONLY,
                               err);
    }
    for (size_t i = 0; r == 0 && place->repo->objects[i]; i++) {
        const char *target = i == 0 ? PRIVATE_OBJECTS : text(place, PRIVATE_OBJECTS "-%zu", i);
        r = bind(place, place->repo->objects[i], target, ACCESS_READ_ONLY, err);
        if (r == 0)
            r = cover_alternates(place, place->repo->objects[i], target, err);
    }
    return r;
}

/* Submodules have object directories of their own. */
static int mount_module_objects(struct workplace *place, struct carrel_error *err)
{
    char *const *modules = place->checkout->module_objects;
    int r = 0;

    for (size_t i = 0; r == 0 && modules && modules[i]; i++)
        r = bind(place, modules[i], text(place, CHECKOUT_MODULE_OBJECTS "/%zu", i),
                ACCESS_READ_ONLY, err);
    return r;
}

static int overlay(struct workplace *place, struct sandbox_overlay *made, const char *target,
        const char *const *lower, const char *upper, const char *work, struct carrel_error *err)
{
    *made = (struct sandbox_overlay){
        .lower = lower, .space = place->ws->path, .upper = upper, .work = work
    };
    return add_mount(place,
            (struct sandbox_mount){
                    .target = target, .access = ACCESS_READ_WRITE, .overlay = made },
            err);
}

/* Adds <state>/layers/<id>/<part> of each layer that the workspace lies on. */
static int add_layers(struct workplace *place, const char *part, const char **list, size_t *n,
        struct carrel_error *err)
{
    char ids[STACK_MAX][STACK_ID_MAX];

    int found = stack_list(place->ws, ids);
    if (found < 0)
        return err_set(err, found, "its record has a damaged list of layers");
    for (int i = 0; i < found; i++) {
        list[*n] = text(place, "%s/layers/%s/%s", place->state, ids[i], part);
        if (!list[(*n)++])
            return err_set_errno(err, -ENOMEM, "workspace mounts");
    }
    return 0;
}

static int mount_tree(struct workplace *place, struct carrel_error *err)
{
    const struct workspace *ws = place->ws;
    size_t n = 0;
    size_t at = 0;

    while (place->checkout->lower[n])
        n++;
    place->lower = calloc(n + STACK_MAX + 2, sizeof(*place->lower));
    if (!place->lower)
        return err_set_errno(err, -ENOMEM, "workspace mounts");
    int r = add_layers(place, "upper", place->lower, &at, err);
    if (r < 0)
        return r;
    if (ws->setup[0]) {
        place->lower[at] = text(place, "%s/layers/%s/upper", place->state, ws->setup);
        if (!place->lower[at++])
            return err_set_errno(err, -ENOMEM, "workspace mounts");
    }
    for (size_t i = 0; i < n; i++)
        place->lower[at + i] = place->checkout->lower[i];
    if (ws->mode != WORKSPACE_OVERLAY)
        return bind(place, text(place, "%s/tree", ws->path), PRIVATE_WORK_TREE,
                ACCESS_READ_WRITE, err);
    return overlay(place, &place->tree, PRIVATE_WORK_TREE, place->lower, "upper", "work", err);
}

static int list_git_lower(struct workplace *place, struct carrel_error *err)
{
    size_t at = 0;

    place->git_lower = calloc(STACK_MAX + 2, sizeof(*place->git_lower));
    if (!place->git_lower)
        return err_set_errno(err, -ENOMEM, "workspace mounts");
    int r = add_layers(place, "gitupper", place->git_lower, &at, err);
    place->git_lower[at] = place->checkout->git;
    return r;
}

static int mount_git(struct workplace *place, struct carrel_error *err)
{
    const struct workspace *ws = place->ws;
    size_t bottom = 0;

    while (place->checkout->lower[bottom + 1])
        bottom++;
    int r = list_git_lower(place, err);
    if (r < 0)
        return r;
    r = ws->mode == WORKSPACE_OVERLAY ? overlay(place, &place->git, PRIVATE_GIT_DIR,
                                                place->git_lower, "gitupper", "gitwork", err)
                                      : bind(place, text(place, "%s/gitupper", ws->path),
                                                PRIVATE_GIT_DIR, ACCESS_READ_WRITE, err);
    if (r == 0)
        r = mount_objects(place, err);
    if (r == 0 && !ws->is_cut)
        r = mount_module_objects(place, err);
    if (r == 0)
        r = bind(place, text(place, "%s/.git", place->checkout->lower[bottom]),
                PRIVATE_WORK_TREE "/.git", ACCESS_READ_ONLY, err);
    return r;
}

void workplace_forget_mounts(struct workplace *place)
{
    free(place->mounts);
    free(place->lower);
    free(place->git_lower);
    place->mounts = NULL;
    place->n_mounts = 0;
    place->lower = place->git_lower = NULL;
}

int workplace_make_mounts(struct workplace *place, struct carrel_error *err)
{
    int r = mount_tree(place, err);

    if (r == 0 && place->ws->mode == WORKSPACE_FUSE) {
        r = fuse_mount(place, err);
        place->is_fuse = r == 0;
    }
    return r == 0 && !place->ws->is_folder ? mount_git(place, err) : r;
}

int workplace_remount(struct workplace *place, struct carrel_error *err)
{
    workplace_forget_mounts(place);
    return workplace_make_mounts(place, err);
}

/* Lets git ask us what changed: see monitor.h. It knows of one upper directory and no layers.
 */
int workplace_mount_monitor(
        struct workplace *place, const char *program, struct carrel_error *err)
{
    assert(place);
    const struct workspace *ws = place->ws;

    if (!program || ws->mode != WORKSPACE_OVERLAY || ws->is_folder || ws->layers ||
            !place->checkout->has_monitor)
        return 0;
    int r = bind(place, text(place, "%s", program), PRIVATE_MONITOR, ACCESS_READ_ONLY, err);
    if (r == 0)
        r = bind(place, text(place, "%s/upper", ws->path), PRIVATE_CHANGES, ACCESS_READ_ONLY,
                err);
    if (r == 0 && ws->setup[0])
        r = bind(place, place->lower[0], PRIVATE_LAYER, ACCESS_READ_ONLY, err);
    if (r == 0)
        r = bind(place, text(place, "%s/monitor", place->checkout->path),
                PRIVATE_MONITOR_CONFIG, ACCESS_READ_ONLY, err);
    return r;
}
