/* store.c - the directories of the images, and which layers are needed. */
#include "image/store.h"
#include "base/dir.h"
#include "base/err.h"
#include "base/fd.h"
#include "image/base.h"
#include "image/record.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

static int open_store(const char *state,
        int (*open_layers)(const char *path, struct store *out, struct carrel_error *err),
        struct image_store *out, struct carrel_error *err)
{
    AUTO(image_store_finish) struct image_store store = IMAGE_STORE_INIT;
    AUTO(free) char *layers = NULL;

    if (asprintf(&store.path, "%s/images", state) < 0)
        store.path = NULL;
    if (!store.path || asprintf(&layers, "%s/layers", store.path) < 0) {
        layers = NULL;
        return err_set_errno(err, -ENOMEM, "open the images");
    }
    int r = open_layers(layers, &store.layers, err);
    if (r < 0)
        return r;
    store.top = open(store.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (store.top < 0)
        return err_set_errno(err, -errno, "open '%s'", store.path);
    *out = store;
    store = (struct image_store)IMAGE_STORE_INIT;
    return 0;
}

int image_store_open(const char *state, struct image_store *out, struct carrel_error *err)
{
    return open_store(state, store_open, out, err);
}

int image_store_make(const char *state, struct image_store *out, struct carrel_error *err)
{
    AUTO(image_store_finish) struct image_store store = IMAGE_STORE_INIT;

    int r = open_store(state, store_make, &store, err);
    if (r == 0)
        r = image_base_make(store.top, err);
    if (r < 0)
        return r;
    *out = store;
    store = (struct image_store)IMAGE_STORE_INIT;
    return 0;
}

void image_store_finish(struct image_store store)
{
    free(store.path);
    fd_close(store.top);
    store_finish(store.layers);
}

int image_store_each(const struct image_store *store,
        int (*each)(const struct image_store *store, const char *name, void *arg), void *arg,
        struct carrel_error *err)
{
    char name[IMAGE_NAME_MAX + 1];
    AUTO(dir_close) DIR *dir = dir_open(store->top, ".");

    if (!dir)
        return err_set_errno(err, -errno, "read the images");
    for (const char *file; (file = dir_next(dir));) {
        if (!image_store_name_of_file(file, name))
            continue;
        int r = each(store, name, arg);
        if (r != 0)
            return r;
    }
    return 0;
}

struct naming {
    struct store_names *needed;
    struct carrel_error *err;
};

static int add_layers(const struct image_store *store, const char *name, void *arg)
{
    const struct naming *naming = arg;
    AUTO(image_free) struct image *image = NULL;

    int r = image_record_read(store, name, &image, naming->err);
    if (r == -ENOENT)
        return 0; /* removed meanwhile */
    for (size_t i = 0; r == 0 && i < image->n_layers; i++)
        r = store_names_add(naming->needed, image->layers[i]);
    return r; /* a record that cannot be read may name any: nothing is removed */
}

static int name_layers(struct store_names *needed, void *context, struct carrel_error *err)
{
    struct naming naming = { .needed = needed, .err = err };

    return image_store_each(context, add_layers, &naming, err);
}

int image_store_sweep(const struct image_store *store, struct carrel_error *err)
{
    AUTO(store_names_finish) struct store_names layers = { 0 };
    struct image_store copy = *store;

    int swept = store_sweep(&store->layers, err);
    int r = swept < 0 ? swept : store_list(&store->layers, STORE_PLAIN, &layers, err);
    if (r == 0)
        r = store_retire(&store->layers, &layers, name_layers, &copy, err);
    return r < 0 ? r : swept + r;
}
