/* layer.c - layers are made, held, sealed and removed. */
#include "layer/layer.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/str.h"
#include "base/tree.h"
#include "layer/snapshot.h"
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

void layer_close(struct layer layer)
{
    fd_close(layer.dir);
    free(layer.path);
    free(layer.upper);
    free(layer.git);
}

bool layer_is_id(const char *text)
{
    return id_is_made_up('L', text);
}

int layer_store(const char *state, struct store *out, struct carrel_error *err)
{
    AUTO(free) char *path = NULL;

    if (asprintf(&path, "%s/layers", state) < 0) {
        path = NULL;
        return err_set_errno(err, -ENOMEM, "layer");
    }
    return store_make(path, out, err);
}

static int fill_in(
        const char *state, const char *id, struct layer *layer, struct carrel_error *err)
{
    memcpy(layer->id, id, strlen(id) + 1);
    if (asprintf(&layer->path, "%s/layers/%s", state, id) < 0)
        layer->path = NULL;
    if (!layer->path || asprintf(&layer->upper, "%s/upper", layer->path) < 0)
        layer->upper = NULL;
    if (!layer->upper || asprintf(&layer->git, "%s/gitupper", layer->path) < 0)
        layer->git = NULL;
    return layer->git ? 0 : err_set_errno(err, -ENOMEM, "layer");
}

static int make(const struct store *store, struct layer *layer, struct carrel_error *err)
{
    static const char *const parts[] = { "upper", "work" };
    struct store_draft draft = STORE_DRAFT_INIT;

    int r = store_draft(store, &draft, err);
    for (size_t i = 0; r == 0 && i < ARRAY_LEN(parts); i++) /* any umask */
        if (mkdirat(draft.dir, parts[i], 0700) < 0 ||
                fchmodat(draft.dir, parts[i], 0755, 0) < 0)
            r = err_set_errno(err, -errno, "create '%s/%s'", draft.path, parts[i]);
    if (r == 0)
        r = store_publish(store, &draft, layer->id, err);
    if (r == 0)
        layer->dir = fd_steal(&draft.dir);
    store_drop(store, &draft);
    return r;
}

int layer_new(const char *state, struct layer *out, struct carrel_error *err)
{
    AUTO(store_finish) struct store store = STORE_INIT;
    AUTO(layer_close) struct layer layer = LAYER_INIT;
    char id[LAYER_ID_SIZE];

    int r = id_new('L', id, err);
    if (r == 0)
        r = fill_in(state, id, &layer, err);
    if (r == 0)
        r = layer_store(state, &store, err);
    if (r == 0)
        r = make(&store, &layer, err);
    if (r < 0)
        return r;
    *out = layer;
    layer = LAYER_INIT;
    return 0;
}

int layer_open(const char *state, const char *id, struct layer *out, struct carrel_error *err)
{
    AUTO(store_finish) struct store store = STORE_INIT;
    AUTO(layer_close) struct layer layer = LAYER_INIT;
    char shown[64];
    struct stat st;

    if (!layer_is_id(id))
        return err_set(err, -EINVAL, "'%s' is not the name of a layer",
                str_escape(id, strlen(id), shown, sizeof(shown)));
    int r = fill_in(state, id, &layer, err);
    if (r == 0)
        r = layer_store(state, &store, err);
    if (r < 0)
        return r;
    layer.dir = store_hold(&store, id);
    if (layer.dir < 0)
        return err_set_errno(err, layer.dir, "layer '%s'", id);
    layer.is_sealed = fstatat(layer.dir, "sealed", &st, AT_SYMLINK_NOFOLLOW) == 0;
    if (!layer.is_sealed && errno != ENOENT)
        return err_set_errno(err, -errno, "layer '%s'", id);
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
    AUTO(store_finish) struct store store = STORE_INIT;
    AUTO(free) char *path = strndup(layer->path, strlen(layer->path) - strlen(layer->id) - 1);

    assert(layer->dir >= 0);
    int r = path ? store_open(path, &store, err) : err_set_errno(err, -ENOMEM, "layer");
    if (r == 0)
        r = store_remove(&store, layer->id, layer->dir, err);
    if (r < 0)
        return r;
    layer_close(*layer);
    *layer = LAYER_INIT;
    return 0;
}

int layer_names_add(struct store_names *names, const struct layer_list *list)
{
    int r = 0;

    for (size_t i = 0; r == 0 && i < list->n; i++)
        r = store_names_add(names, list->ids[i]);
    return r;
}

static int name_snapshot(const struct snapshot *snapshot, void *context)
{
    int r = layer_names_add(context, &snapshot->layers);

    return r < 0 ? r : layer_names_add(context, &snapshot->workspace_layers);
}

struct sweep {
    const char *state;
    store_namer *namer;
    void *context;
};

static int name_all(struct store_names *needed, void *context, struct carrel_error *err)
{
    const struct sweep *sweep = context;
    int r = snapshot_each(sweep->state, name_snapshot, needed, err);

    return r < 0 || !sweep->namer ? r : sweep->namer(needed, sweep->context, err);
}

int layer_sweep(const char *state, store_namer *namer, void *context, struct carrel_error *err)
{
    AUTO(store_finish) struct store store = STORE_INIT;
    AUTO(store_names_finish) struct store_names layers = { 0 };
    struct sweep sweep = { .state = state, .namer = namer, .context = context };

    int r = layer_store(state, &store, err);
    if (r == 0)
        r = store_sweep(&store, err);
    if (r >= 0)
        r = store_list(&store, STORE_PLAIN, &layers, err);
    return r < 0 ? r : store_retire(&store, &layers, name_all, &sweep, err);
}

int layer_list_parse(const char *text, struct layer_list *out)
{
    struct layer_list list = { .n = 0 };

    for (const char *at = text ? text : ""; *at;) {
        size_t len = strcspn(at, " ");
        if (list.n == LAYER_MAX_CHAIN || len >= LAYER_ID_SIZE)
            return -EBADMSG;
        memcpy(list.ids[list.n], at, len);
        if (!layer_is_id(list.ids[list.n++]))
            return -EBADMSG;
        at += len + (at[len] == ' ');
    }
    *out = list;
    return 0;
}

void layer_list_write(const struct layer_list *list, char text[static LAYER_LIST_SIZE])
{
    char *at = text;

    *at = '\0';
    for (size_t i = 0; i < list->n; i++) {
        if (i > 0)
            *at++ = ' ';
        at = stpcpy(at, list->ids[i]);
    }
}
