/*
 * ground.h - what a sandbox that stays writes on: a writable layer on disk, over sealed ones.
 *
 * Sealing costs the same however much was written: the writable layer becomes the topmost of
 * the sealed ones, and a new one is laid over it. No sandbox may be using it then.
 */
#pragma once
#include "base/auto.h"
#include "layer/layer.h"
#include "runtime/runtime.h"

struct carrel_error;

/* Layers by name, topmost first: where a new ground begins. */
struct ground_base {
    char ids[LAYER_MAX_CHAIN][LAYER_ID_SIZE];
    size_t n;
};

struct ground {
    char *state; /* the state directory */
    struct layer top;
    struct layer *below; /* sealed, topmost first; of most sandboxes none */
    size_t n_below;
    const char *const *root; /* trees of an image below all of them; NULL: none. Not owned */
    const char **lower;
    struct sandbox_overlay overlay;
};

/* `base` may be NULL: on nothing. The layers of it must be there, and sealed. */
int ground_make(const struct ground_base *base, const char *const *root, struct ground **out,
        struct carrel_error *err);

/* Lets go of the layers; the writable one, which nobody else can have, is removed. */
void ground_free(struct ground *ground); /* NULL is fine */
DEFINE_AUTO(struct ground *, ground_free)

/* Seals what was written; `overlay` is another one afterwards. */
int ground_seal(struct ground *ground, struct carrel_error *err);

/* The sealed layers, and above them `top` if there is one. -E2BIG: too many. */
int ground_list(const struct ground *ground, const struct layer *top, struct ground_base *out,
        struct carrel_error *err);
