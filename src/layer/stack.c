/* stack.c - layers made of layers: a copy of one, one that replaces many. */
#include "base/err.h"
#include "base/fd.h"
#include "base/tree.h"
#include "layer/layer.h"
#include "layer/merge.h"
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/stat.h>

#define ASIDE "links"

/* The trees that a layer may have: files, and a git dir where it is of a workspace. */
static const char *const parts[] = { "upper", "gitupper" };

/* How layers become one. */
struct recipe {
    const struct layer *layers;
    size_t n;
    const char *const *below[2]; /* of each part; NULL: nothing */
    enum merge_how how;
};

/* Directories of which one tree is made, and those below it. */
struct trees {
    int fds[MERGE_MAX];
    size_t n;
    size_t below;
};

static void trees_close(struct trees trees)
{
    for (size_t i = 0; i < trees.n + trees.below; i++)
        fd_close(trees.fds[i]);
}
DEFINE_AUTO(struct trees, trees_close)

static int open_below(const char *const *paths, struct trees *trees, struct carrel_error *err)
{
    for (size_t i = 0; paths && paths[i]; i++) {
        if (trees->n + i == MERGE_MAX)
            return err_set(err, -E2BIG, "more than %d layers in a stack", MERGE_MAX);
        int fd = open(paths[i], O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (fd < 0)
            return err_set_errno(err, -errno, "open '%s'", paths[i]);
        trees->fds[trees->n + trees->below++] = fd;
    }
    return 0;
}

static int open_trees(
        const struct recipe *recipe, size_t part, struct trees *trees, struct carrel_error *err)
{
    const int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;

    for (size_t i = 0; i < recipe->n; i++) {
        int fd = openat(recipe->layers[i].dir, parts[part], flags);
        if (fd < 0 && errno != ENOENT)
            return err_set_errno(
                    err, -errno, "open '%s/%s'", recipe->layers[i].path, parts[part]);
        if (fd >= 0)
            trees->fds[trees->n++] = fd;
    }
    return open_below(recipe->below[part], trees, err);
}

/* One part of all layers that have it, into `out`, which gets it if one has. */
static int merge_part(const struct recipe *recipe, size_t part, const struct layer *out,
        int aside, struct carrel_error *err)
{
    AUTO(trees_close) struct trees trees = { .n = 0 };

    int r = open_trees(recipe, part, &trees, err);
    if (r < 0 || trees.n == 0)
        return r;
    if (mkdirat(out->dir, parts[part], 0700) < 0 && errno != EEXIST)
        return err_set_errno(err, -errno, "create '%s/%s'", out->path, parts[part]);
    AUTO(fd_close) int to = openat(out->dir, parts[part], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (to < 0)
        return err_set_errno(err, -errno, "open '%s/%s'", out->path, parts[part]);
    return merge_trees(trees.fds, trees.n, trees.below, to, aside, recipe->how, err);
}

/* The directory for hard links is removed first: a process that was killed leaves it. */
static int fill_part(const struct recipe *recipe, size_t part, const struct layer *out,
        struct carrel_error *err)
{
    int r = tree_remove(out->dir, ASIDE, err);

    if (r < 0)
        return r;
    if (mkdirat(out->dir, ASIDE, 0700) < 0)
        return err_set_errno(err, -errno, "create '%s/" ASIDE "'", out->path);
    AUTO(fd_close) int aside = openat(out->dir, ASIDE, O_PATH | O_DIRECTORY | O_CLOEXEC);
    r = aside < 0 ? err_set_errno(err, -errno, "open '%s/" ASIDE "'", out->path)
                  : merge_part(recipe, part, out, aside, err);
    if (r == 0)
        return tree_remove(out->dir, ASIDE, err);
    (void)tree_remove(out->dir, ASIDE, NULL); /* the first failure is the one to report */
    return r;
}

static int fill(const struct recipe *recipe, const struct layer *out, struct carrel_error *err)
{
    int r = 0;

    for (size_t i = 0; r == 0 && i < ARRAY_LEN(parts); i++)
        r = fill_part(recipe, i, out, err);
    return r;
}

static int make(const char *state, const struct recipe *recipe, struct layer *out,
        struct carrel_error *err)
{
    AUTO(layer_close) struct layer made = LAYER_INIT;

    int r = layer_new(state, &made, err);
    if (r == 0)
        r = fill(recipe, &made, err);
    if (r == 0)
        r = layer_seal(&made, err);
    if (r < 0) {
        if (made.dir >= 0)
            (void)layer_remove(&made, NULL); /* else the sweep does */
        return r;
    }
    *out = made;
    made = LAYER_INIT;
    return 0;
}

int layer_copy(const char *state, const struct layer *from, struct layer *out,
        struct carrel_error *err)
{
    const struct recipe recipe = { .layers = from, .n = 1, .how = MERGE_COPY };

    assert(from->dir >= 0);
    int r = make(state, &recipe, out, err);
    return r < 0 ? err_wrap(err, r, "copy the layer '%s'", from->id) : 0;
}

int layer_copy_parts(int from, int to, struct carrel_error *err)
{
    const struct layer source = { .id = "", .path = (char *)(uintptr_t) ".", .dir = from };
    const struct layer target = { .id = "", .path = (char *)(uintptr_t) ".", .dir = to };
    const struct recipe recipe = { .layers = &source, .n = 1, .how = MERGE_COPY };

    return fill(&recipe, &target, err);
}

int layer_remove_parts(int dir, struct carrel_error *err)
{
    int r = 0;

    for (size_t i = 0; r == 0 && i < ARRAY_LEN(parts); i++)
        r = tree_remove(dir, parts[i], err);
    return r;
}

/* Merging briefly changes the modes of unreadable directories: two at once could not restore
 * them. */
static int merge_alone(const char *state, const struct recipe *recipe, struct layer *out,
        struct carrel_error *err)
{
    AUTO(store_finish) struct store store = STORE_INIT;

    int r = layer_store(state, &store, err);
    if (r < 0)
        return r;
    AUTO(fd_close) int turn = store_claim(&store, "merge", err);
    return turn < 0 ? turn : make(state, recipe, out, err);
}

int layer_merge(const char *state, const struct layer *layers, size_t n,
        const char *const *below, const char *const *git_below, struct layer *out,
        struct carrel_error *err)
{
    const struct recipe recipe = {
        .layers = layers, .n = n, .below = { below, git_below }, .how = MERGE_LINK
    };

    if (n == 0 || n > MERGE_MAX)
        return err_set(err, -EINVAL, "merge %zu layers; expected 1 to %d", n, MERGE_MAX);
    for (size_t i = 0; i < n; i++)
        if (!layers[i].is_sealed)
            return err_set(err, -EINVAL, "layer '%s' is not sealed", layers[i].id);
    int r = merge_alone(state, &recipe, out, err);
    return r < 0 ? err_wrap(err, r, "merge %zu layers", n) : 0;
}

int layer_flatten(const char *const *trees, size_t n, const char *const *below, int dir,
        const char *name, struct carrel_error *err)
{
    AUTO(trees_close) struct trees all = { .n = 0 };

    for (size_t i = 0; i < n; i++) {
        int fd = i == MERGE_MAX ? -1 : open(trees[i], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (fd < 0)
            return err_set_errno(err, i == MERGE_MAX ? -E2BIG : -errno, "open '%s'", trees[i]);
        all.fds[all.n++] = fd;
    }
    int r = open_below(below, &all, err);
    if (r < 0)
        return r;
    if (mkdirat(dir, name, 0700) < 0)
        return err_set_errno(err, -errno, "create '%s'", name);
    AUTO(fd_close) int to = openat(dir, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (to < 0)
        return err_set_errno(err, -errno, "open '%s'", name);
    return merge_trees(all.fds, all.n, all.below, to, -1, MERGE_VIEW, err);
}

int layer_shorten(const char *state, struct layer *layers, size_t *n, const char *const *below,
        const char *const *git_below, struct carrel_error *err)
{
    struct layer merged = LAYER_INIT;

    if (*n + 1 < LAYER_MAX_CHAIN)
        return 0;
    int r = layer_merge(state, layers, *n, below, git_below, &merged, err);
    if (r < 0)
        return r;
    while (*n > 0)
        layer_close(layers[--*n]);
    layers[(*n)++] = merged;
    return 0;
}
