/* layers.c - layers, and the overlays that they make. */
#include "core/worktree/layers.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/tree.h"
#include "core/state/state.h"
#include "workspace/workspace.h"
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const char uppers[LAYERS_PARTS][12] = { "upper", "gitupper" };
static const char works[LAYERS_PARTS][12] = { "work", "gitwork" };

void layers_free(struct layers *layers)
{
    if (!layers)
        return;
    if (layers->top.dir >= 0) {
        (void)layer_remove(&layers->top, NULL); /* else swept */
        layer_close(layers->top);
    }
    for (size_t i = 0; i < layers->n_sealed; i++)
        layer_close(layers->sealed[i]);
    free(layers->sealed);
    free(layers->space);
    fd_close(layers->space_dir);
    for (size_t part = 0; part < LAYERS_PARTS; part++)
        free(layers->lower[part]);
    free(layers->state);
    free(layers);
}

/* Memory for `n` sealed layers, and for the overlays that they make. */
static int make_room(struct layers *layers, size_t n, struct carrel_error *err)
{
    struct layer *sealed = reallocarray(layers->sealed, n + 1, sizeof(*sealed));

    if (!sealed)
        return err_set_errno(err, -ENOMEM, "layers");
    layers->sealed = sealed;
    for (size_t part = 0; part < layers->n_parts; part++) {
        size_t n_base = 0;
        while (layers->base[part] && layers->base[part][n_base])
            n_base++;
        const char **lower = reallocarray(layers->lower[part], n + n_base + 1, sizeof(*lower));
        if (!lower)
            return err_set_errno(err, -ENOMEM, "layers");
        layers->lower[part] = lower;
    }
    return 0;
}

/* The overlays that the layers make now. */
static void stack(struct layers *layers)
{
    for (size_t part = 0; part < layers->n_parts; part++) {
        const char *const *base = layers->base[part];
        const char **lower = layers->lower[part];
        for (size_t i = 0; i < layers->n_sealed; i++)
            *lower++ = part == LAYERS_GIT ? layers->sealed[i].git : layers->sealed[i].upper;
        while (base && *base)
            *lower++ = *base++;
        *lower = NULL;
        layers->overlay[part] = (struct sandbox_overlay){
            .lower = layers->lower[part],
            .space = layers->space ? layers->space
                     : layers->ws  ? layers->ws->path
                                   : layers->top.path,
            .upper = uppers[part],
            .work = works[part],
        };
    }
}

/* --- sealing --- */

/* Room for one more: as many as may be are merged into one. */
static int shorten(struct layers *layers, struct carrel_error *err)
{
    int r = layer_shorten(layers->state, layers->sealed, &layers->n_sealed,
            layers->base[LAYERS_TREE], layers->base[LAYERS_GIT], err);

    return r < 0 ? r : make_room(layers, layers->n_sealed + 1, err);
}

static int make_git_dir(const struct layer *layer, struct carrel_error *err)
{
    const char *name = uppers[LAYERS_GIT];

    if (mkdirat(layer->dir, name, 0700) < 0 || fchmodat(layer->dir, name, 0755, 0) < 0)
        return err_set_errno(err, -errno, "create '%s'", layer->git);
    return 0;
}

/* A new layer with empty directories, sealed already: nothing but the exchange fills it. */
static int make_empty(const struct layers *layers, struct layer *out, struct carrel_error *err)
{
    int r = layer_new(layers->state, out, err);

    if (r < 0)
        return r;
    if (layers->n_parts > LAYERS_GIT)
        r = make_git_dir(out, err);
    if (r == 0)
        r = layer_seal(out, err);
    if (r < 0)
        (void)layer_remove(out, NULL); /* else swept */
    return r;
}

static int write_record(
        const struct layers *layers, const struct layer *added, struct carrel_error *err)
{
    struct layer_list list;
    char text[LAYER_LIST_SIZE];

    if (!layers->ws)
        return 0;
    int r = layers_list(layers, added, &list, err);
    if (r < 0)
        return r;
    layer_list_write(&list, text);
    return workspace_set_layers(layers->ws, text, err);
}

static int exchange(struct layers *layers, struct carrel_error *err)
{
    const int dir = layers->ws ? layers->ws->dir : layers->top.dir;

    for (size_t part = 0; part < layers->n_parts; part++)
        if (renameat2(dir, uppers[part], layers->sealed[0].dir, uppers[part], RENAME_EXCHANGE) <
                0)
            return err_set_errno(
                    err, -errno, "seal '%s/%s'", layers->overlay[part].space, uppers[part]);
    return layers->ws ? 0 : layer_renew(&layers->top, err);
}

static bool is_unwritten(const struct layers *layers)
{
    return layers->ws && tree_is_empty(layers->ws->dir, uppers[LAYERS_TREE]) &&
           (layers->n_parts == 1 || tree_is_empty(layers->ws->dir, uppers[LAYERS_GIT]));
}

int layers_seal(struct layers *layers, struct carrel_error *err)
{
    AUTO(layer_close) struct layer added = LAYER_INIT;

    assert(!layers->space);
    if (is_unwritten(layers))
        return 0;
    int r = shorten(layers, err);
    if (r == 0)
        r = make_empty(layers, &added, err);
    if (r == 0)
        r = write_record(layers, &added, err);
    if (r == 0) {
        memmove(layers->sealed + 1, layers->sealed, layers->n_sealed * sizeof(added));
        layers->sealed[0] = added;
        layers->n_sealed++;
        added = LAYER_INIT;
        r = exchange(layers, err);
    }
    stack(layers);
    return r;
}

/* --- what others begin with --- */

int layers_copy(const struct layers *layers, struct layer *out, struct carrel_error *err)
{
    struct layer from = layers->top;

    if (layers->space)
        from = (struct layer){ .id = "image", .path = layers->space, .dir = layers->space_dir };
    else if (layers->ws)
        from = (struct layer){
            .id = "workspace", .path = layers->ws->path, .dir = layers->ws->dir
        };
    return layer_copy(layers->state, &from, out, err);
}

int layers_list(const struct layers *layers, const struct layer *copy, struct layer_list *out,
        struct carrel_error *err)
{
    *out = (struct layer_list){ .n = 0 };
    if (layers->n_sealed + (copy != NULL) > LAYER_MAX_CHAIN)
        return err_set(err, -E2BIG, "more than %d layers", LAYER_MAX_CHAIN);
    if (copy)
        memcpy(out->ids[out->n++], copy->id, LAYER_ID_SIZE);
    for (size_t i = 0; i < layers->n_sealed; i++)
        memcpy(out->ids[out->n++], layers->sealed[i].id, LAYER_ID_SIZE);
    return 0;
}

size_t layers_locks(const struct layers *layers, int *locks)
{
    for (size_t i = 0; i < layers->n_sealed; i++)
        locks[i] = layers->sealed[i].dir;
    return layers->n_sealed;
}

/* --- opening --- */

int layers_open(const char *state, const struct layer_list *list, const char *const *base,
        const char *const *git_base, struct layers **out, struct carrel_error *err)
{
    AUTO(layers_free) struct layers *layers = calloc(1, sizeof(*layers));

    if (!layers)
        return err_set_errno(err, -ENOMEM, "layers");
    layers->top = LAYER_INIT;
    layers->space_dir = -1;
    layers->base[LAYERS_TREE] = base;
    layers->base[LAYERS_GIT] = git_base;
    layers->n_parts = git_base ? 2 : 1;
    layers->state = strdup(state);
    int r = layers->state ? make_room(layers, list ? list->n : 0, err)
                          : err_set_errno(err, -ENOMEM, "layers");
    for (size_t i = 0; r == 0 && list && i < list->n; i++) {
        r = layer_open(state, list->ids[i], &layers->sealed[i], err);
        layers->n_sealed += r == 0;
    }
    if (r < 0)
        return r;
    stack(layers);
    *out = ptr_steal(&layers);
    return 0;
}

void layers_use_workspace(struct layers *layers, struct workspace *ws)
{
    layers->ws = ws;
    stack(layers);
}

int layers_use_space(
        struct layers *layers, const char *space, int dir, struct carrel_error *err)
{
    AUTO(free) char *copy = strdup(space);
    AUTO(fd_close) int own = fcntl(dir, F_DUPFD_CLOEXEC, 3);

    if (!copy || own < 0)
        return err_set_errno(err, copy ? -errno : -ENOMEM, "layers");
    assert(!layers->space);
    layers->space = ptr_steal(&copy);
    layers->space_dir = fd_steal(&own);
    stack(layers);
    return 0;
}

void layers_leave_space(struct layers *layers)
{
    free(ptr_steal(&layers->space));
    fd_close(fd_steal(&layers->space_dir));
    stack(layers);
}

int layers_make(const struct layer_list *list, const char *const *base, struct layers **out,
        struct carrel_error *err)
{
    AUTO(layers_free) struct layers *layers = NULL;
    char state[PATH_MAX];

    int r = state_path(state, sizeof(state), err);
    if (r == 0)
        r = state_make(state, err);
    if (r == 0)
        r = layers_open(state, list, base, NULL, &layers, err);
    if (r == 0)
        r = shorten(layers, err);
    if (r == 0)
        r = layer_new(state, &layers->top, err);
    if (r < 0)
        return r;
    assert(layers);
    stack(layers);
    *out = ptr_steal(&layers);
    return 0;
}
