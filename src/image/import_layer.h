/* import_layer.h - layers on their way into the store. */
#pragma once
#include "image/store.h"

struct carrel_error;

/* A layer that an import uses: a draft, or in the store and held. */
struct import_layer {
    char id[STORE_ID_LEN + 1];
    char draft[16]; /* its name in the draft; "": it is in the store */
    int lock;       /* -1 while it is a draft */
    uint64_t bytes;
};

/* Makes draft/<number>/{tree,lock}, empty. Returns a descriptor of the tree. */
int import_layer_begin(const struct draft *draft, unsigned number, struct import_layer *out,
        struct carrel_error *err);

/* Notes what was unpacked; from here on the layer is whole. */
int import_layer_done(
        const struct draft *draft, const struct import_layer *layer, struct carrel_error *err);

/* One that is in the store already: 1 and it is held, 0 when there is none. */
int import_layer_find(const struct image_store *store, const char *id, struct import_layer *out,
        struct carrel_error *err);

/* Gives it its name in the store, or takes the one that somebody else put there. */
int import_layer_settle(const struct image_store *store, const struct draft *draft,
        struct import_layer *layer, struct carrel_error *err);
