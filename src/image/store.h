/*
 * store.h - the directory of all images; image.h says what is in it.
 *
 * Layers are entries of a store (base/store.h): held by sandboxes, and by an import from the
 * moment it finds or makes the layer until its image names it.
 */
#pragma once
#include "base/auto.h"
#include "base/store.h"
#include "image/image.h"

struct carrel_error;

#define STORE_ID_LEN 64
#define STORE_FILE_MAX (3 * IMAGE_NAME_MAX + 6)
_Static_assert(STORE_FILE_MAX < 512, "it is a name on a disk");

struct image_store {
    char *path; /* <state>/images */
    int top;
    struct store layers;
};
#define IMAGE_STORE_INIT                                                                       \
    {                                                                                          \
        .top = -1, .layers = {.top = -1, .tmp = -1 }                                           \
    }

int image_store_open(
        const char *state, struct image_store *out, struct carrel_error *err); /* -ENOENT */
int image_store_make(const char *state, struct image_store *out, struct carrel_error *err);
void image_store_finish(struct image_store store);
DEFINE_AUTO(struct image_store, image_store_finish)

void image_store_file_name(const char *name, char file[static STORE_FILE_MAX]);
bool image_store_name_of_file(const char *file, char name[static IMAGE_NAME_MAX + 1]);
bool image_store_is_layer_id(const char *id);

/* Splits a pin off: its digits, or NULL when there are none; `name` is the rest. */
const char *image_store_split_pin(const char *text, char name[static IMAGE_NAME_MAX + 1]);

/* Calls `each` for every image's file; what is no image's file is passed over. */
int image_store_each(const struct image_store *store,
        int (*each)(const struct image_store *store, const char *name, void *arg), void *arg,
        struct carrel_error *err);

/* Removes layers that no image names and no process holds, and what crashes left. Returns how
 * many. */
int image_store_sweep(const struct image_store *store, struct carrel_error *err);
