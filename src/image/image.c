/* image.c - existing images: show, open, remove. */
#include "image/image.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/str.h"
#include "image/base.h"
#include "image/record.h"
#include "image/store.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* The store, for an image that must exist; `name` is that of its record. */
static int open_for(const char *state, const char *asked, struct image_store *out,
        char name[static IMAGE_NAME_MAX + 1], struct carrel_error *err)
{
    char shown[64];

    (void)image_store_split_pin(asked, name);
    if (!image_is_name(name))
        return err_set(err, -EINVAL,
                "'%s' is not the name of an image; expected letters, digits and ._-:/@",
                str_escape(asked, strlen(asked), shown, sizeof(shown)));
    int r = image_store_open(state, out, err);
    if (r == -ENOENT)
        return err_set(err, r, "there is no image '%s'; 'carrel image import' makes one", name);
    return r;
}

/* The record, and whether it is still that of the image that was asked for. */
static int read_asked(const struct image_store *store, const char *asked, const char *name,
        struct image **out, struct carrel_error *err)
{
    AUTO(image_free) struct image *image = NULL;

    int r = image_record_read(store, name, &image, err);
    if (r < 0)
        return r;
    if (strcmp(asked, name) != 0 && strcmp(asked, image->pin) != 0)
        return err_set(err, -ESTALE,
                "image '%s' is another one by now (%s; expected %s): import the old one again",
                name, image->pin, asked);
    *out = ptr_steal(&image);
    return 0;
}

int image_read(
        const char *state, const char *asked, struct image **out, struct carrel_error *err)
{
    AUTO(image_store_finish) struct image_store store = IMAGE_STORE_INIT;
    char name[IMAGE_NAME_MAX + 1];

    int r = open_for(state, asked, &store, name, err);
    return r < 0 ? r : read_asked(&store, asked, name, out, err);
}

static const char *tree_path(struct arena *arena, const struct image_store *store,
        const char *dir, const char *layer, const char *tree)
{
    AUTO(free) char *path = NULL;

    if (asprintf(&path, "%s/%s%s%s%s", store->path, dir, layer[0] ? "/" : "", layer, tree) < 0)
        path = NULL;
    return path ? arena_copy(arena, path, strlen(path)) : NULL;
}

/* -ENOENT: a layer is missing, because the image was removed or replaced. */
static int hold_layers(
        const struct image_store *store, struct image *image, struct carrel_error *err)
{
    struct arena *arena = image_record_arena(image);
    const char **trees = arena_alloc(arena, (image->n_layers + 2) * sizeof(*trees));
    int *locks = arena_alloc(arena, image->n_layers * sizeof(*locks));

    if (!trees || !locks)
        return err_set_errno(err, -ENOMEM, "open an image");
    for (size_t i = 0; i < image->n_layers; i++)
        locks[i] = -1;
    image->trees = trees;
    image->locks = locks;
    for (size_t i = 0; i < image->n_layers; i++) {
        locks[i] = store_hold(&store->layers, image->layers[i]);
        if (locks[i] < 0)
            return err_set_errno(
                    err, locks[i], "image '%s': layer %.12s", image->name, image->layers[i]);
        trees[i] = tree_path(arena, store, "layers", image->layers[i], "/tree");
        if (!trees[i])
            return err_set_errno(err, -ENOMEM, "open an image");
    }
    trees[image->n_layers] = tree_path(arena, store, IMAGE_BASE, "", "");
    return trees[image->n_layers] ? 0 : err_set_errno(err, -ENOMEM, "open an image");
}

int image_open(
        const char *state, const char *asked, struct image **out, struct carrel_error *err)
{
    AUTO(image_store_finish) struct image_store store = IMAGE_STORE_INIT;
    char name[IMAGE_NAME_MAX + 1];

    int r = open_for(state, asked, &store, name, err);
    /* It may be replaced while we look: the second time it is the new one. */
    for (int i = 0; r == 0 && i < 2; i++) {
        AUTO(image_free) struct image *image = NULL;
        r = read_asked(&store, asked, name, &image, err);
        if (r < 0)
            return r;
        r = hold_layers(&store, image, err);
        if (r == 0) {
            *out = ptr_steal(&image);
            return 0;
        }
        if (r == -ENOENT && i == 0)
            r = 0;
    }
    return r;
}

struct found_names {
    char (*list)[IMAGE_NAME_MAX + 1];
    size_t n;
    struct carrel_error *err;
};

static int add_name(const struct image_store *store, const char *name, void *arg)
{
    struct found_names *names = arg;

    (void)store;
    if ((names->n & (names->n - 1)) == 0) { /* full at every power of two */
        size_t room = names->n ? 2 * names->n : 1;
        void *more = reallocarray(names->list, room, sizeof(*names->list));
        if (!more)
            return err_set_errno(names->err, -ENOMEM, "list images");
        names->list = more;
    }
    (void)snprintf(names->list[names->n++], sizeof(*names->list), "%s", name);
    return 0;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(a, b);
}

int image_list(const char *state, int (*each)(const struct image *image, void *arg), void *arg,
        struct carrel_error *err)
{
    AUTO(image_store_finish) struct image_store store = IMAGE_STORE_INIT;
    struct found_names names = { .err = err };

    int r = image_store_open(state, &store, err);
    if (r == -ENOENT)
        return 0;
    if (r == 0)
        r = image_store_each(&store, add_name, &names, err);
    AUTO(free) void *list = names.list;
    if (r == 0 && names.n > 0)
        qsort(names.list, names.n, sizeof(*names.list), by_name);
    for (size_t i = 0; r == 0 && i < names.n; i++) {
        AUTO(image_free) struct image *image = NULL;
        r = image_record_read(&store, names.list[i], &image, err);
        if (r == -ENOENT)
            r = 0; /* it was removed meanwhile */
        else if (r == 0)
            r = each(image, arg);
    }
    return r;
}

int image_remove(const char *state, const char *name, struct carrel_error *err)
{
    AUTO(image_store_finish) struct image_store store = IMAGE_STORE_INIT;
    char plain[IMAGE_NAME_MAX + 1];
    char file[STORE_FILE_MAX];

    int r = open_for(state, name, &store, plain, err);
    if (r < 0)
        return r;
    if (strcmp(name, plain) != 0)
        return err_set(err, -EINVAL, "an image is removed by its name: '%s'", plain);
    image_store_file_name(name, file);
    if (unlinkat(store.top, file, 0) < 0)
        return errno == ENOENT ? err_set(err, -ENOENT, "there is no image '%s'", name)
                               : err_set_errno(err, -errno, "remove image '%s'", name);
    r = image_store_sweep(&store, err);
    return r < 0 ? err_wrap(err, r, "image '%s' is gone; its layers", name) : 0;
}

int image_sweep(const char *state, struct carrel_error *err)
{
    AUTO(image_store_finish) struct image_store store = IMAGE_STORE_INIT;

    int r = image_store_open(state, &store, err);
    if (r == -ENOENT)
        return 0; /* there never was one */
    return r < 0 ? r : image_store_sweep(&store, err);
}

struct image_room {
    struct image_store store;
    struct store_draft draft;
};

void image_room_free(struct image_room *room)
{
    if (!room)
        return;
    store_drop(&room->store.layers, &room->draft);
    image_store_finish(room->store);
    free(room);
}

int image_room_make(const char *state, struct image_room **out, struct carrel_error *err)
{
    AUTO(image_room_free) struct image_room *room = calloc(1, sizeof(*room));

    if (!room)
        return err_set_errno(err, -ENOMEM, "make room for an image");
    room->store = (struct image_store)IMAGE_STORE_INIT;
    room->draft = STORE_DRAFT_INIT;
    int r = image_store_make(state, &room->store, err);
    if (r == 0)
        r = store_draft(&room->store.layers, &room->draft, err);
    if (r < 0)
        return r;
    *out = ptr_steal(&room);
    return 0;
}

const char *image_room_path(const struct image_room *room)
{
    return room->draft.path;
}
