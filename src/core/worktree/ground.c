/* ground.c - layers and the overlay that they make. */
#include "core/worktree/ground.h"
#include "base/err.h"
#include "core/state/state.h"
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

void ground_free(struct ground *ground)
{
    if (!ground)
        return;
    if (ground->top.dir >= 0)
        (void)layer_remove(&ground->top, NULL); /* else swept */
    layer_close(ground->top);
    for (size_t i = 0; i < ground->n_below; i++)
        layer_close(ground->below[i]);
    free(ground->below);
    free(ground->lower);
    free(ground->state);
    free(ground);
}

/* The overlay that the layers make now. */
static int stack(struct ground *ground, struct carrel_error *err)
{
    size_t n_root = 0;
    size_t n = 0;

    while (ground->root && ground->root[n_root])
        n_root++;
    const char **lower =
            reallocarray(ground->lower, ground->n_below + n_root + 1, sizeof(*lower));
    if (!lower)
        return err_set_errno(err, -ENOMEM, "layers");
    ground->lower = lower;
    for (size_t i = 0; i < ground->n_below; i++)
        lower[n++] = ground->below[i].upper;
    for (size_t i = 0; i < n_root; i++)
        lower[n++] = ground->root[i];
    lower[n] = NULL;
    ground->overlay = (struct sandbox_overlay){
        .lower = lower,
        .space = ground->top.path,
        .upper = "upper",
        .work = "work",
    };
    return 0;
}

static int make_room(struct ground *ground, size_t n, struct carrel_error *err)
{
    struct layer *below = reallocarray(ground->below, n, sizeof(*below));

    if (!below)
        return err_set_errno(err, -ENOMEM, "layers");
    ground->below = below;
    return 0;
}

int ground_seal(struct ground *ground, struct carrel_error *err)
{
    struct layer fresh = LAYER_INIT;

    int r = make_room(ground, ground->n_below + 1, err);
    if (r == 0)
        r = layer_shorten(ground->state, ground->below, &ground->n_below, ground->root, err);
    if (r == 0)
        r = layer_new(ground->state, &fresh, err);
    if (r < 0)
        return r;
    r = layer_seal(&ground->top, err);
    if (r < 0) {
        (void)layer_remove(&fresh, NULL); /* else swept */
        layer_close(fresh);
        return r;
    }
    memmove(ground->below + 1, ground->below, ground->n_below * sizeof(ground->below[0]));
    ground->below[0] = ground->top;
    ground->n_below++;
    ground->top = fresh;
    return stack(ground, err);
}

int ground_list(const struct ground *ground, const struct layer *top, struct ground_base *out,
        struct carrel_error *err)
{
    *out = (struct ground_base){ 0 };
    if (ground->n_below + (top != NULL) > LAYER_MAX_CHAIN)
        return err_set(err, -E2BIG, "more than %d layers", LAYER_MAX_CHAIN);
    if (top)
        memcpy(out->ids[out->n++], top->id, LAYER_ID_SIZE);
    for (size_t i = 0; i < ground->n_below; i++)
        memcpy(out->ids[out->n++], ground->below[i].id, LAYER_ID_SIZE);
    return 0;
}

static int find_state(char **out, struct carrel_error *err)
{
    char path[PATH_MAX];

    int r = state_path(path, sizeof(path), err);
    if (r < 0)
        return r;
    *out = strdup(path);
    return *out ? 0 : err_set_errno(err, -ENOMEM, "layers");
}

int ground_make(const struct ground_base *base, const char *const *root, struct ground **out,
        struct carrel_error *err)
{
    AUTO(ground_free) struct ground *ground = calloc(1, sizeof(*ground));

    if (!ground)
        return err_set_errno(err, -ENOMEM, "layers");
    ground->top = LAYER_INIT;
    ground->root = root;
    int r = find_state(&ground->state, err);
    if (r == 0)
        r = state_make(ground->state, err);
    if (r == 0 && base && base->n > 0)
        r = make_room(ground, base->n, err);
    for (size_t i = 0; r == 0 && base && i < base->n; i++) {
        r = layer_open(ground->state, base->ids[i], &ground->below[i], err);
        ground->n_below += r == 0;
    }
    if (r == 0)
        r = layer_shorten(ground->state, ground->below, &ground->n_below, root, err);
    if (r == 0)
        r = layer_new(ground->state, &ground->top, err);
    if (r == 0)
        r = stack(ground, err);
    if (r < 0)
        return r;
    *out = ptr_steal(&ground);
    return 0;
}
