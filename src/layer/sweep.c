/*
 * sweep.c - layers that nobody has any more.
 *
 * First the lock of a layer, alone; then the question whether something names it. The other way
 * round a name could be written in between. A layer that is to go gets another name while the
 * gate is held, so that nobody finds it half empty; its files go afterwards.
 */
#include "base/err.h"
#include "base/tree.h"
#include "layer/layer.h"
#include "layer/snapshot.h"
#include "layer/store.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#define BATCH 64 /* descriptors held at a time */

struct layer_names {
    char (*ids)[LAYER_ID_SIZE];
    size_t n, room;
};

int layer_names_add(struct layer_names *names, const char *id)
{
    if (names->n == names->room) {
        size_t room = names->room ? 2 * names->room : 64;
        void *ids = reallocarray(names->ids, room, sizeof(*names->ids));
        if (!ids)
            return -ENOMEM;
        names->ids = ids;
        names->room = room;
    }
    (void)snprintf(names->ids[names->n++], LAYER_ID_SIZE, "%s", id);
    return 0;
}

static int compare(const void *a, const void *b)
{
    return strcmp(a, b);
}

static bool has(const struct layer_names *names, const char *id)
{
    return names->n > 0 &&
           bsearch(id, names->ids, names->n, sizeof(*names->ids), compare) != NULL;
}

static int add_snapshot(const struct snapshot *snapshot, void *context)
{
    for (size_t i = 0; i < snapshot->n_layers; i++)
        if (layer_names_add(context, snapshot->layers[i]) < 0)
            return -ENOMEM;
    for (const char *at = snapshot->workspace_layers; at && *at;) {
        char id[LAYER_ID_SIZE] = "";
        size_t len = strcspn(at, " ");
        if (len < sizeof(id))
            memcpy(id, at, len);
        if (layer_is_id(id) && layer_names_add(context, id) < 0)
            return -ENOMEM;
        at += len + (at[len] == ' ');
    }
    return 0;
}

struct sweep {
    const char *state;
    int layers;
    layer_namer *namer;
    void *context;
    struct {
        char id[LAYER_ID_SIZE];
        int lock;
    } batch[BATCH];
    size_t n;
    int swept;
    struct carrel_error *err;
};

static int ask_names(struct sweep *sweep, struct layer_names *names)
{
    int r = snapshot_each(sweep->state, add_snapshot, names, sweep->err);

    if (r == 0 && sweep->namer)
        r = sweep->namer(names, sweep->context, sweep->err);
    if (r == 0 && names->n > 0)
        qsort(names->ids, names->n, sizeof(*names->ids), compare);
    return r;
}

/* Renames what nobody names of the layers whose locks are held, and lets go of all. */
static int retire_batch(struct sweep *sweep)
{
    struct layer_names names = { 0 };
    char old[sizeof(STORE_OLD) + LAYER_ID_SIZE];

    int r = sweep->n > 0 ? ask_names(sweep, &names) : 0;
    for (size_t i = 0; i < sweep->n; i++) {
        const char *id = sweep->batch[i].id;
        (void)snprintf(old, sizeof(old), STORE_OLD "%s", id);
        if (r == 0 && !has(&names, id)) {
            if (renameat(sweep->layers, id, sweep->layers, old) == 0)
                sweep->swept++;
            else if (errno != ENOENT) /* its owner has removed it, lock and all */
                r = err_set_errno(sweep->err, -errno, "remove the layer '%s'", id);
        }
        fd_close(sweep->batch[i].lock);
    }
    sweep->n = 0;
    free(names.ids);
    return r;
}

/* A layer that was never locked has no lock yet: its maker was killed, for we hold the gate. */
static int consider(struct sweep *sweep, const char *id)
{
    AUTO(fd_close)
    int dir = openat(sweep->layers, id, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    AUTO(fd_close) int lock = dir < 0 ? -1 : layer_store_lock_shared(dir);
    int r = dir < 0 ? -errno : lock < 0 ? lock : layer_store_lock_alone(lock);

    if (r == -EWOULDBLOCK || r == -ENOENT) /* in use, or its owner has just removed it */
        return 0;
    if (r < 0)
        return err_set_errno(sweep->err, r, "look at the layer '%s'", id);
    memcpy(sweep->batch[sweep->n].id, id, strlen(id) + 1);
    sweep->batch[sweep->n++].lock = fd_steal(&lock);
    return sweep->n == BATCH ? retire_batch(sweep) : 0;
}

static int each_entry(struct sweep *sweep, int dir,
        int (*visit)(struct sweep *sweep, int dir, const char *name))
{
    int copy = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *list = copy < 0 ? NULL : fdopendir(copy);
    const struct dirent *entry;
    int r = 0;

    if (!list) {
        r = err_set_errno(sweep->err, -errno, "look for layers");
        fd_close(copy);
        return r;
    }
    while (r == 0 && (entry = readdir(list)))
        r = visit(sweep, dir, entry->d_name);
    (void)closedir(list);
    return r;
}

static int visit_layer(struct sweep *sweep, int dir, const char *name)
{
    (void)dir;
    return layer_is_id(name) ? consider(sweep, name) : 0;
}

static int visit_old(struct sweep *sweep, int dir, const char *name)
{
    if (strncmp(name, STORE_OLD, strlen(STORE_OLD)) != 0)
        return 0;
    return tree_remove(dir, name, sweep->err);
}

/* Of a writer that was killed: with the gate held there is no other. */
static int visit_draft(struct sweep *sweep, int dir, const char *name)
{
    if (name[0] != SNAPSHOT_DRAFT[0] || !id_is_made_up('D', name + 1))
        return 0;
    return unlinkat(dir, name, 0) < 0 && errno != ENOENT
                   ? err_set_errno(sweep->err, -errno, "remove the draft of a snapshot")
                   : 0;
}

static int sweep_drafts(struct sweep *sweep)
{
    AUTO(fd_close)
    int dir = openat(sweep->layers, "../snapshots", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (dir < 0)
        return errno == ENOENT ? 0 : err_set_errno(sweep->err, -errno, "open the snapshots");
    return each_entry(sweep, dir, visit_draft);
}

int layer_sweep(const char *state, layer_namer *namer, void *context, struct carrel_error *err)
{
    struct sweep sweep = { .state = state, .namer = namer, .context = context, .err = err };

    AUTO(fd_close) int layers = layer_store_open(state, err);
    if (layers < 0)
        return layers;
    sweep.layers = layers;
    AUTO(fd_close) int gate = layer_store_pass(layers, GATE_ALONE, err);
    if (gate < 0)
        return gate;
    int r = each_entry(&sweep, layers, visit_layer);
    int last = retire_batch(&sweep);
    if (r == 0)
        r = last;
    if (r == 0)
        r = sweep_drafts(&sweep);
    fd_close(fd_steal(&gate));
    if (r == 0)
        r = each_entry(&sweep, layers, visit_old);
    return r < 0 ? r : sweep.swept;
}
