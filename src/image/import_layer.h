/* import_layer.h - layers on their way into the store. */
#pragma once
#include "image/store.h"

struct carrel_error;

/* A layer that an import uses: a draft, or in the store and held. */
struct import_layer {
    char id[STORE_ID_LEN + 1];
    struct store_draft draft; /* draft.dir holds it, also when it is in the store */
    uint64_t bytes;
};

/* Makes a draft with an empty tree/. Returns a descriptor of the tree. */
int import_layer_begin(
        const struct image_store *store, struct import_layer *out, struct carrel_error *err);

/* Records the size of what was unpacked; from here on the layer is complete. */
int import_layer_done(const struct import_layer *layer, struct carrel_error *err);

/* One that is in the store already: 1 and it is held, 0 when there is none. */
int import_layer_find(const struct image_store *store, const char *id, struct import_layer *out,
        struct carrel_error *err);

/* Publishes it, or takes the one that another import has published. */
int import_layer_settle(
        const struct image_store *store, struct import_layer *layer, struct carrel_error *err);
