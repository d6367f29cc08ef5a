/* import_layer.c - layers are unpacked into drafts and published when all are complete. */
#include "image/import_layer.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/str.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

int import_layer_begin(
        const struct image_store *store, struct import_layer *out, struct carrel_error *err)
{
    struct import_layer layer = { .draft = STORE_DRAFT_INIT };

    int r = store_draft(&store->layers, &layer.draft, err);
    if (r < 0)
        return r;
    int tree = mkdirat(layer.draft.dir, "tree", 0755) < 0
                       ? -1
                       : openat(layer.draft.dir, "tree", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (tree < 0) {
        r = err_set_errno(err, -errno, "make a layer");
        store_drop(&store->layers, &layer.draft);
        return r;
    }
    *out = layer;
    return tree;
}

int import_layer_done(const struct import_layer *layer, struct carrel_error *err)
{
    char text[32];
    AUTO(fd_close)
    int fd = openat(layer->draft.dir, "bytes", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    int n = snprintf(text, sizeof(text), "%ju\n", (uintmax_t)layer->bytes);
    int r = fd < 0 ? -errno : fd_write_all(fd, text, (size_t)n);

    return r < 0 ? err_set_errno(err, r, "finish a layer") : 0;
}

/* Its size, which only `carrel image list` shows. */
static uint64_t read_bytes(int layer)
{
    char text[32];
    uint64_t bytes;

    if (fd_read_file(layer, "bytes", text, sizeof(text)) <= 0)
        return 0;
    text[strcspn(text, "\n")] = '\0';
    return str_parse_u64(text, &bytes) < 0 ? 0 : bytes;
}

int import_layer_find(const struct image_store *store, const char *id, struct import_layer *out,
        struct carrel_error *err)
{
    int dir = store_hold(&store->layers, id);

    if (dir == -ENOENT)
        return 0;
    if (dir < 0)
        return err_set_errno(err, dir, "hold layer %.12s", id);
    *out = (struct import_layer){ .draft = { .dir = dir }, .bytes = read_bytes(dir) };
    (void)snprintf(out->id, sizeof(out->id), "%s", id);
    return 1;
}

int import_layer_settle(
        const struct image_store *store, struct import_layer *layer, struct carrel_error *err)
{
    struct import_layer theirs;
    int r = 0;

    if (!layer->draft.path)
        return 0;
    /* Another import may publish it first, and a sweep may remove that one again. */
    for (int i = 0; r == 0 && i < 100; i++) {
        r = store_publish(&store->layers, &layer->draft, layer->id, err);
        if (r != -EEXIST)
            return r;
        r = import_layer_find(store, layer->id, &theirs, err);
    }
    if (r == 0)
        return err_set(
                err, -EBUSY, "layer %.12s is made and removed again and again", layer->id);
    if (r > 0) {
        store_drop(&store->layers, &layer->draft);
        *layer = theirs;
    }
    return r < 0 ? r : 0;
}
