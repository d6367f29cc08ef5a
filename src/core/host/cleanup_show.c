/* cleanup_show.c - cleanup for callers of the library: plain data that one call frees. */
#include "base/arena.h"
#include "base/err.h"
#include "core/host/cleanup.h"
#include <carrel/host.h>
#include <errno.h>

struct shown {
    struct carrel_cleanup cleanup; /* first: the caller has its address */
    struct cleanup done;
    struct arena arena;
};

void carrel_cleanup_free(struct carrel_cleanup *cleanup)
{
    if (!cleanup)
        return;
    struct shown *shown = container_of(cleanup, struct shown, cleanup);
    cleanup_finish(shown->done);
    arena_finish(shown->arena);
    free(shown);
}
DEFINE_AUTO(struct carrel_cleanup *, carrel_cleanup_free)

static bool show_runtimes(struct shown *shown)
{
    const struct cleanup *done = &shown->done;
    const struct carrel_cleanup_runtime **list = arena_list(&shown->arena, done->n_rows);

    for (size_t i = 0; list && i < done->n_rows; i++) {
        const struct cleanup_row *row = &done->rows[i];
        struct carrel_cleanup_runtime *runtime = arena_alloc(&shown->arena, sizeof(*runtime));
        if (!runtime)
            return false;
        *runtime = (struct carrel_cleanup_runtime){
            .size = sizeof(*runtime),
            .name = row->runtime,
            .sandboxes = row->sandboxes,
            .error = row->error.code < 0 ? row->error.message : NULL,
        };
        list[i] = runtime;
    }
    shown->cleanup.runtimes = list;
    return list;
}

static bool show_mended(struct shown *shown)
{
    const struct cleanup *done = &shown->done;
    const struct carrel_cleanup_mended **list = arena_list(&shown->arena, done->n_mended);

    for (size_t i = 0; list && i < done->n_mended; i++) {
        struct carrel_cleanup_mended *mended = arena_alloc(&shown->arena, sizeof(*mended));
        if (!mended)
            return false;
        *mended = (struct carrel_cleanup_mended){
            .size = sizeof(*mended),
            .top = done->mended[i].top,
            .is_folder = done->mended[i].is_folder,
        };
        list[i] = mended;
    }
    shown->cleanup.mended = list;
    return list;
}

static bool show(struct shown *shown)
{
    const struct cleanup *done = &shown->done;

    shown->cleanup = (struct carrel_cleanup){
        .size = sizeof(shown->cleanup),
        .sandboxes = done->sandboxes,
        .entries = done->entries,
        .workspaces = done->workspaces,
        .checkouts = done->checkouts,
        .layers = done->layers,
        .caches = done->caches,
    };
    return show_runtimes(shown) && show_mended(shown);
}

int carrel_host_cleanup(struct carrel_cleanup **out, struct carrel_error *err)
{
    struct shown *shown = calloc(1, sizeof(*shown));

    err = ERR_OR_IGNORED(err);
    if (!shown)
        return err_set_errno(err, -ENOMEM, "cleanup");
    AUTO(carrel_cleanup_free) struct carrel_cleanup *cleanup = &shown->cleanup;
    int r = cleanup_run(&shown->done, err);
    if (!show(shown))
        return r < 0 ? r : err_set_errno(err, -ENOMEM, "cleanup");
    *out = ptr_steal(&cleanup);
    return r;
}
