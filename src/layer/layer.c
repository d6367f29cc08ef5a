/* layer.c - layers are made, held, sealed and removed. */
#include "layer/layer.h"
#include "base/err.h"
#include "base/str.h"
#include "base/tree.h"
#include "layer/store.h"
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

void layer_close(struct layer layer)
{
    fd_close(layer.dir);
    fd_close(layer.lock);
    free(layer.path);
    free(layer.upper);
}

bool layer_is_id(const char *text)
{
    return id_is_made_up('L', text);
}

static int fill_in(
        const char *state, const char *id, struct layer *layer, struct carrel_error *err)
{
    memcpy(layer->id, id, strlen(id) + 1);
    if (asprintf(&layer->path, "%s/layers/%s", state, id) < 0)
        layer->path = NULL;
    if (!layer->path || asprintf(&layer->upper, "%s/upper", layer->path) < 0)
        layer->upper = NULL;
    return layer->upper ? 0 : err_set_errno(err, -ENOMEM, "layer");
}

/* Opens and locks it; the caller has passed the gate. */
static int hold(int layers, struct layer *layer, struct carrel_error *err)
{
    struct stat st;

    layer->dir = openat(layers, layer->id, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (layer->dir < 0)
        return err_set_errno(err, -errno, "layer '%s'", layer->id);
    layer->lock = layer_store_lock_shared(layer->dir);
    if (layer->lock < 0)
        return err_set_errno(err, layer->lock, "lock the layer '%s'", layer->id);
    layer->is_sealed = fstatat(layer->dir, "sealed", &st, AT_SYMLINK_NOFOLLOW) == 0;
    return layer->is_sealed || errno == ENOENT
                   ? 0
                   : err_set_errno(err, -errno, "layer '%s'", layer->id);
}

int layer_new(const char *state, struct layer *out, struct carrel_error *err)
{
    static const char *const parts[] = { "upper", "work" };
    AUTO(layer_close) struct layer layer = LAYER_INIT;
    char id[LAYER_ID_SIZE];

    int r = id_new('L', id, err);
    if (r == 0)
        r = fill_in(state, id, &layer, err);
    if (r < 0)
        return r;
    AUTO(fd_close) int layers = layer_store_open(state, err);
    if (layers < 0)
        return layers;
    AUTO(fd_close) int gate = layer_store_pass(layers, GATE_SHARED, err);
    if (gate < 0)
        return gate;
    if (mkdirat(layers, id, 0700) < 0)
        return err_set_errno(err, -errno, "create '%s'", layer.path);
    r = hold(layers, &layer, err);
    for (size_t i = 0; r == 0 && i < ARRAY_LEN(parts); i++) /* any umask */
        if (mkdirat(layer.dir, parts[i], 0700) < 0 ||
                fchmodat(layer.dir, parts[i], 0755, 0) < 0)
            r = err_set_errno(err, -errno, "create '%s/%s'", layer.path, parts[i]);
    if (r < 0) {
        (void)tree_remove(layers, id, NULL); /* else the sweep does */
        return r;
    }
    *out = layer;
    layer = LAYER_INIT;
    return 0;
}

int layer_open(const char *state, const char *id, struct layer *out, struct carrel_error *err)
{
    AUTO(layer_close) struct layer layer = LAYER_INIT;
    char shown[64];

    if (!layer_is_id(id))
        return err_set(err, -EINVAL, "'%s' is not the name of a layer",
                str_escape(id, strlen(id), shown, sizeof(shown)));
    int r = fill_in(state, id, &layer, err);
    if (r < 0)
        return r;
    AUTO(fd_close) int layers = layer_store_open(state, err);
    if (layers < 0)
        return layers;
    AUTO(fd_close) int gate = layer_store_pass(layers, GATE_SHARED, err);
    if (gate < 0)
        return gate;
    r = hold(layers, &layer, err);
    if (r < 0)
        return r;
    *out = layer;
    layer = LAYER_INIT;
    return 0;
}

int layer_renew(struct layer *layer, struct carrel_error *err)
{
    assert(layer->dir >= 0);
    if (layer->is_sealed)
        return err_set_errno(err, -EROFS, "layer '%s' is sealed", layer->id);
    int r = tree_remove(layer->dir, "work", err);
    if (r < 0)
        return err_wrap(err, r, "layer '%s'", layer->id);
    if (mkdirat(layer->dir, "work", 0700) < 0 || fchmodat(layer->dir, "work", 0755, 0) < 0)
        return err_set_errno(err, -errno, "create '%s/work'", layer->path);
    return 0;
}

int layer_seal(struct layer *layer, struct carrel_error *err)
{
    assert(layer->dir >= 0);
    AUTO(fd_close)
    int seal = openat(layer->dir, "sealed", O_RDONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0400);
    if (seal < 0)
        return err_set_errno(err, -errno, "seal '%s'", layer->path);
    layer->is_sealed = true;
    (void)tree_remove(layer->dir, "work", NULL); /* never read; removed with the rest */
    return 0;
}

int layer_remove(struct layer *layer, struct carrel_error *err)
{
    char old[sizeof(STORE_OLD) + LAYER_ID_SIZE];

    assert(layer->dir >= 0);
    AUTO(fd_close)
    int layers = openat(layer->dir, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (layers < 0)
        return err_set_errno(err, -errno, "open the directory of '%s'", layer->path);
    int r = layer_store_lock_alone(layer->lock);
    if (r == -EWOULDBLOCK)
        return err_set(err, -EBUSY, "layer '%s' is in use", layer->id);
    if (r < 0)
        return err_set_errno(err, r, "lock the layer '%s'", layer->id);
    (void)snprintf(old, sizeof(old), STORE_OLD "%s", layer->id);
    if (renameat(layers, layer->id, layers, old) < 0)
        return err_set_errno(err, -errno, "remove '%s'", layer->path);
    r = tree_remove(layers, old, err);
    layer_close(*layer);
    *layer = LAYER_INIT;
    return r;
}
