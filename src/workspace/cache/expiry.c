/* expiry.c - recording the use of cached directories, and removing old ones. */
#include "workspace/cache/expiry.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/store.h"
#include "workspace/workspace.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>

enum kind { KIND_SETUP, KIND_CUT, KIND_FOLDER };

int expiry_use(const struct store *store, const char *name)
{
    AUTO(fd_close) int dir = store_hold(store, name);
    if (dir < 0)
        return dir;
    (void)futimens(dir, NULL); /* it is ours: this does not fail */
    return 0;
}

struct need {
    enum kind kind;
    const struct store_names *old;
    struct store_names *needed;
};

/* Whether the workspace needs the entry whose last component is `name`. */
static bool needs(const struct workspace *ws, enum kind kind, const char *name)
{
    char tail[NAME_MAX + sizeof("/folders//.git")];
    size_t len = strlen(ws->repo);

    if (kind == KIND_SETUP)
        return strcmp(ws->setup, name) == 0;
    if (kind == KIND_CUT) /* of any repository: those that have the commit are clones */
        return ws->is_cut && strcmp(ws->base, name) == 0;
    size_t n = (size_t)snprintf(tail, sizeof(tail), "/folders/%s/.git", name);
    return ws->is_folder && len >= n && strcmp(ws->repo + len - n, tail) == 0;
}

/* A workspace whose record cannot be read may need any of them. */
static int add_needed(struct workspace **ws, void *context)
{
    struct need *need = context;

    if (!(*ws)->base[0])
        need->needed->has_all = true;
    for (size_t i = 0; i < need->old->n; i++) {
        const char *name = need->old->list[i];
        const char *slash = strrchr(name, '/');
        if (needs(*ws, need->kind, slash ? slash + 1 : name) &&
                store_names_add(need->needed, name) < 0)
            return -ENOMEM;
    }
    return 0;
}

struct sweep {
    const char *state;
    enum kind kind;
    struct store_names old;
};

static int name_needed(struct store_names *needed, void *context, struct carrel_error *err)
{
    const struct sweep *sweep = context;
    struct need need = { .kind = sweep->kind, .old = &sweep->old, .needed = needed };

    (void)err;
    if (workspace_each(sweep->state, NULL, add_needed, &need, NULL) < 0)
        needed->has_all = true; /* what is not known to be unused stays */
    return 0;
}

static int find_old(const struct store *store, enum store_depth depth, int64_t until_s,
        struct store_names *old, struct carrel_error *err)
{
    AUTO(store_names_finish) struct store_names all = { 0 };
    struct stat st;
    int r = store_list(store, depth, &all, err);

    for (size_t i = 0; r == 0 && i < all.n; i++)
        if (fstatat(store->top, all.list[i], &st, AT_SYMLINK_NOFOLLOW) == 0 &&
                st.st_mtim.tv_sec <= until_s && store_names_add(old, all.list[i]) < 0)
            r = err_set_errno(err, -ENOMEM, "sweep '%s'", store->path);
    return r;
}

static int sweep_kind(
        const char *state, enum kind kind, int64_t until_s, struct carrel_error *err)
{
    static const char *const dirs[] = { "setups", "cuts", "folders" };
    AUTO(store_finish) struct store store = STORE_INIT;
    struct sweep sweep = { .state = state, .kind = kind };
    char path[PATH_MAX];

    if (snprintf(path, sizeof(path), "%s/%s", state, dirs[kind]) >= (int)sizeof(path))
        return err_set_errno(err, -ENAMETOOLONG, "'%s'", state);
    int r = store_open(path, &store, err);
    if (r < 0)
        return r == -ENOENT ? 0 : r;
    int swept = store_sweep(&store, err);
    r = swept < 0 ? swept
                  : find_old(&store, kind == KIND_CUT ? STORE_GROUPS : STORE_PLAIN, until_s,
                            &sweep.old, err);
    if (r == 0)
        r = store_retire(&store, &sweep.old, name_needed, &sweep, err);
    store_names_finish(sweep.old);
    return r < 0 ? r : swept + r;
}

int expiry_sweep(const char *state, uint64_t max_age_s, struct carrel_error *err)
{
    int64_t now_s = (int64_t)time(NULL);
    int removed = 0;

    if (max_age_s > (uint64_t)now_s)
        return err_set(err, -EINVAL, "sweep: no such age");
    for (enum kind kind = KIND_SETUP; kind <= KIND_FOLDER; kind++) {
        int r = sweep_kind(state, kind, now_s - (int64_t)max_age_s, err);
        if (r < 0)
            return r;
        removed += r;
    }
    return removed;
}
