/* mounts.c - what of a workspace a sandbox sees, and where. */
#include "base/err.h"
#include "base/fd.h"
#include "base/path.h"
#include "core/worktree/layers.h"
#include "core/worktree/shallow.h"
#include "core/worktree/worktree.h"
#include "git/gitdir.h"
#include "workspace/private.h"
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

/* Text that lives as long as the worktree. NULL: out of memory. */
static char *text(struct worktree *worktree, const char *fmt, ...)
        __attribute__((format(printf, 2, 3)));
static char *text(struct worktree *worktree, const char *fmt, ...)
{
    char *string = NULL;
    va_list ap;

    char **strings = reallocarray(
            worktree->strings, worktree->n_strings + 1, sizeof(*worktree->strings));
    if (!strings)
        return NULL;
    worktree->strings = strings;
    va_start(ap, fmt);
    int len = vasprintf(&string, fmt, ap);
    va_end(ap);
    if (len < 0)
        return NULL;
    return worktree->strings[worktree->n_strings++] = string;
}

static int add_mount(
        struct worktree *worktree, struct sandbox_mount mount, struct carrel_error *err)
{
    struct sandbox_mount *mounts =
            reallocarray(worktree->mounts, worktree->n_mounts + 1, sizeof(*worktree->mounts));

    if (mounts)
        worktree->mounts = mounts;
    if (!mounts || !mount.target || (!mount.source && !mount.overlay))
        return err_set_errno(err, -ENOMEM, "workspace mounts");
    mounts[worktree->n_mounts++] = mount;
    return 0;
}

static int bind(struct worktree *worktree, const char *source, const char *target,
        enum access access, struct carrel_error *err)
{
    return add_mount(worktree,
            (struct sandbox_mount){ .source = source, .target = target, .access = access },
            err);
}

/* An object directory of the user's: the one that was checked, by its descriptor. */
static int bind_objects(struct worktree *worktree, const char *source, const int *fd,
        const char *target, struct carrel_error *err)
{
    return add_mount(worktree,
            (struct sandbox_mount){
                    .source = source,
                    .source_fd = fd,
                    .target = target,
                    .access = ACCESS_READ_ONLY,
            },
            err);
}

/*
 * An object directory may name others by paths of the host, which mean nothing inside and which
 * we mount ourselves; git would complain of each. So its list is covered by an empty file.
 */
static int cover_alternates(
        struct worktree *worktree, int objects, const char *target, struct carrel_error *err)
{
    struct stat st;
    char *empty = text(worktree, "%s/empty", worktree->ws->path);

    if (!empty)
        return err_set_errno(err, -ENOMEM, "workspace mounts");
    if (fstatat(objects, "info/alternates", &st, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT ? 0 : err_set_errno(err, -errno, "'objects/info/alternates'");
    AUTO(fd_close)
    int fd = openat(
            worktree->ws->dir, "empty", O_RDONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0644);
    if (fd < 0)
        return err_set_errno(err, -errno, "'%s'", empty);
    return bind(worktree, empty, text(worktree, "%s/info/alternates", target), ACCESS_READ_ONLY,
            err);
}

/* The state directory has snapshots of folders, which are git dirs and no matter of this run.
 */
static int check_place(
        const struct worktree *worktree, const char *objects, struct carrel_error *err)
{
    AUTO(free) char *state = realpath(worktree->state, NULL);

    if (!state)
        return err_set_errno(err, -errno, "'%s'", worktree->state);
    return path_is_below(objects, state)
                   ? err_set(err, -EPERM,
                             "'%s', which an 'objects/info/alternates' of the repository "
                             "names, is in carrel's own state directory",
                             objects)
                   : 0;
}

static int mount_objects(struct worktree *worktree, struct carrel_error *err)
{
    char cut[PATH_MAX];
    int r = 0;

    if (worktree->ws->is_cut) {
        r = shallow_path(worktree, cut, sizeof(cut), err);
        return r < 0 ? r
                     : bind(worktree, text(worktree, "%s", cut), PRIVATE_OBJECTS,
                               ACCESS_READ_ONLY, err);
    }
    const struct repo *repo = worktree->repo;
    for (size_t i = 0; r == 0 && repo->objects[i]; i++) {
        r = check_place(worktree, repo->objects[i], err);
        if (r < 0)
            return r;
        const char *target =
                i == 0 ? PRIVATE_OBJECTS : text(worktree, PRIVATE_OBJECTS "-%zu", i);
        r = bind_objects(worktree, repo->objects[i], &repo->object_fds[i], target, err);
        if (r == 0)
            r = cover_alternates(worktree, repo->object_fds[i], target, err);
    }
    return r;
}

void worktree_close_modules(struct worktree *worktree)
{
    for (size_t i = 0; i < worktree->n_module_fds; i++)
        fd_close(worktree->module_fds[i]);
    free(worktree->module_fds);
    worktree->module_fds = NULL;
    worktree->n_module_fds = 0;
}

/* Submodules have object directories of their own. */
static int mount_module_objects(struct worktree *worktree, struct carrel_error *err)
{
    char *const *modules = worktree->checkout->module_objects;
    size_t n = 0;

    worktree_close_modules(worktree);
    while (modules && modules[n])
        n++;
    worktree->module_fds = calloc(n + 1, sizeof(*worktree->module_fds));
    if (!worktree->module_fds)
        return err_set_errno(err, -ENOMEM, "workspace mounts");
    for (size_t i = 0; i < n; i++) {
        int fd = alternates_open(modules[i], worktree->repo->common_dir, err);
        if (fd < 0)
            return fd;
        worktree->module_fds[worktree->n_module_fds++] = fd;
        int r = bind_objects(worktree, modules[i], &worktree->module_fds[i],
                text(worktree, CHECKOUT_MODULE_OBJECTS "/%zu", i), err);
        if (r < 0)
            return r;
    }
    return 0;
}

static int overlay(struct worktree *worktree, enum layers_part part, const char *target,
        struct carrel_error *err)
{
    return add_mount(worktree,
            (struct sandbox_mount){
                    .target = target,
                    .access = ACCESS_READ_WRITE,
                    .overlay = &worktree->layers->overlay[part],
            },
            err);
}

int worktree_open_layers(struct worktree *worktree, const struct workspace *ws,
        const struct layer_list *list, struct carrel_error *err)
{
    size_t n = 0;
    size_t at = 0;

    while (worktree->checkout->lower[n])
        n++;
    worktree->base = calloc(n + 2, sizeof(*worktree->base));
    if (!worktree->base)
        return err_set_errno(err, -ENOMEM, "workspace mounts");
    if (ws->setup[0]) {
        worktree->base[at] = text(worktree, "%s/setups/%s/upper", worktree->state, ws->setup);
        if (!worktree->base[at++])
            return err_set_errno(err, -ENOMEM, "workspace mounts");
    }
    memcpy(worktree->base + at, worktree->checkout->lower, n * sizeof(worktree->base[0]));
    worktree->git_base[0] = worktree->checkout->git;
    return layers_open(worktree->state, list, worktree->base,
            ws->is_folder ? NULL : worktree->git_base, &worktree->layers, err);
}

static int open_own_layers(struct worktree *worktree, struct carrel_error *err)
{
    struct layer_list list = { .n = 0 };
    const char *layers = worktree->ws->layers;

    int r = layers && layers[0] ? layer_list_parse(layers, &list) : 0;
    if (r < 0)
        return err_set(err, r, "its record has a damaged list of layers");
    return worktree_open_layers(worktree, worktree->ws, &list, err);
}

static int mount_tree(struct worktree *worktree, struct carrel_error *err)
{
    const struct workspace *ws = worktree->ws;

    if (ws->mode != WORKSPACE_OVERLAY)
        return bind(worktree, text(worktree, "%s/tree", ws->path), PRIVATE_WORK_TREE,
                ACCESS_READ_WRITE, err);
    return overlay(worktree, LAYERS_TREE, PRIVATE_WORK_TREE, err);
}

static int mount_git(struct worktree *worktree, struct carrel_error *err)
{
    const struct workspace *ws = worktree->ws;
    size_t bottom = 0;

    while (worktree->checkout->lower[bottom + 1])
        bottom++;
    int r = ws->mode == WORKSPACE_OVERLAY
                    ? overlay(worktree, LAYERS_GIT, PRIVATE_GIT_DIR, err)
                    : bind(worktree, text(worktree, "%s/gitupper", ws->path), PRIVATE_GIT_DIR,
                              ACCESS_READ_WRITE, err);
    if (r == 0)
        r = mount_objects(worktree, err);
    if (r == 0 && !ws->is_cut)
        r = mount_module_objects(worktree, err);
    if (r == 0)
        r = bind(worktree, text(worktree, "%s/.git", worktree->checkout->lower[bottom]),
                PRIVATE_WORK_TREE "/.git", ACCESS_READ_ONLY, err);
    return r;
}

int worktree_make_mounts(struct worktree *worktree, struct carrel_error *err)
{
    int r = worktree->layers ? 0 : open_own_layers(worktree, err);

    if (r < 0)
        return r;
    layers_use_workspace(worktree->layers, worktree->ws);
    r = mount_tree(worktree, err);
    return r == 0 && !worktree->ws->is_folder ? mount_git(worktree, err) : r;
}

int worktree_remount(struct worktree *worktree, struct carrel_error *err)
{
    worktree->n_mounts = 0;
    return worktree_make_mounts(worktree, err);
}

/* Lets git ask what changed, see monitor.h, which knows one upper directory and no layers. */
int worktree_mount_monitor(
        struct worktree *worktree, const char *program, struct carrel_error *err)
{
    assert(worktree);
    const struct workspace *ws = worktree->ws;

    if (!program || ws->mode != WORKSPACE_OVERLAY || ws->is_folder || ws->layers ||
            !worktree->checkout->has_monitor)
        return 0;
    int r = bind(
            worktree, text(worktree, "%s", program), PRIVATE_MONITOR, ACCESS_READ_ONLY, err);
    if (r == 0)
        r = bind(worktree, text(worktree, "%s/upper", ws->path), PRIVATE_CHANGES,
                ACCESS_READ_ONLY, err);
    if (r == 0 && ws->setup[0])
        r = bind(worktree, worktree->base[0], PRIVATE_LAYER, ACCESS_READ_ONLY, err);
    if (r == 0)
        r = bind(worktree, text(worktree, "%s/monitor", worktree->checkout->path),
                PRIVATE_MONITOR_CONFIG, ACCESS_READ_ONLY, err);
    return r;
}
