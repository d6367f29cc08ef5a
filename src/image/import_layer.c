/* import_layer.c - layers are unpacked into drafts and published when all are complete. */
#include "image/import_layer.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/str.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int open_dir(int dir, const char *name)
{
    int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    return fd < 0 ? -errno : fd;
}

int import_layer_begin(const struct draft *draft, unsigned number, struct import_layer *out,
        struct carrel_error *err)
{
    *out = (struct import_layer){ .lock = -1 };
    (void)snprintf(out->draft, sizeof(out->draft), "%u", number);
    if (mkdirat(draft->dir, out->draft, 0700) < 0)
        return err_set_errno(err, -errno, "make a layer");
    AUTO(fd_close) int dir = open_dir(draft->dir, out->draft);
    if (dir < 0)
        return err_set_errno(err, dir, "make a layer");
    AUTO(fd_close)
    int lock = openat(dir, "lock", O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (lock < 0 || mkdirat(dir, "tree", 0755) < 0)
        return err_set_errno(err, -errno, "make a layer");
    int tree = open_dir(dir, "tree");
    return tree < 0 ? err_set_errno(err, tree, "make a layer") : tree;
}

int import_layer_done(
        const struct draft *draft, const struct import_layer *layer, struct carrel_error *err)
{
    char text[32];

    AUTO(fd_close) int dir = open_dir(draft->dir, layer->draft);
    if (dir < 0)
        return err_set_errno(err, dir, "finish a layer");
    AUTO(fd_close)
    int fd = openat(dir, "bytes", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    int n = snprintf(text, sizeof(text), "%ju\n", (uintmax_t)layer->bytes);
    int r = fd < 0 ? -errno : fd_write_all(fd, text, (size_t)n);

    return r < 0 ? err_set_errno(err, r, "finish a layer") : 0;
}

/* Its size, which only `carrel image list` is interested in. */
static uint64_t read_bytes(const struct image_store *store, const char *id)
{
    char path[STORE_ID_LEN + 16];
    char text[32];
    uint64_t bytes;

    (void)snprintf(path, sizeof(path), "%s/bytes", id);
    ssize_t n = fd_read_file(store->layers, path, text, sizeof(text));
    if (n <= 0)
        return 0;
    text[strcspn(text, "\n")] = '\0';
    return str_parse_u64(text, &bytes) < 0 ? 0 : bytes;
}

int import_layer_find(const struct image_store *store, const char *id, struct import_layer *out,
        struct carrel_error *err)
{
    int lock = image_store_hold_layer(store, id);

    if (lock == -ENOENT)
        return 0;
    if (lock < 0)
        return err_set_errno(err, lock, "hold layer %.12s", id);
    *out = (struct import_layer){ .lock = lock, .bytes = read_bytes(store, id) };
    (void)snprintf(out->id, sizeof(out->id), "%s", id);
    return 1;
}

int import_layer_settle(const struct image_store *store, const struct draft *draft,
        struct import_layer *layer, struct carrel_error *err)
{
    if (!layer->draft[0])
        return 0;
    /* Held before it has its name: nobody can remove it in between. */
    AUTO(fd_close) int dir = open_dir(draft->dir, layer->draft);
    AUTO(fd_close) int lock = dir < 0 ? dir : image_store_lock(dir, "lock", F_RDLCK);
    if (lock < 0)
        return err_set_errno(err, lock, "hold a layer");
    /* Another import may put it there first, and somebody may remove that one again. */
    for (int i = 0; i < 100; i++) {
        if (renameat(draft->dir, layer->draft, store->layers, layer->id) == 0) {
            layer->lock = fd_steal(&lock);
            layer->draft[0] = '\0';
            return 0;
        }
        if (errno != EEXIST && errno != ENOTEMPTY)
            return err_set_errno(err, -errno, "name layer %.12s", layer->id);
        struct import_layer theirs;
        int r = import_layer_find(store, layer->id, &theirs, err);
        if (r < 0)
            return r;
        if (r > 0) {
            *layer = theirs;
            return 0;
        }
    }
    return err_set(
            err, -EBUSY, "layer %.12s is being made and removed all the time", layer->id);
}
