/* remove.c - the way out of a workspace. */
#include "workspace/remove.h"
#include "base/dir.h"
#include "base/err.h"
#include "base/store.h"
#include "base/tree.h"
#include "git/ref.h"
#include "workspace/harvest/harvest.h"
#include "workspace/record.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

/* A ref that was moved meanwhile belongs to the mover. */
static int delete_ref(
        const struct repo *repo, const char *ref, const char *at, struct carrel_error *err)
{
    int r = ref_delete(repo, ref, at, err);

    return r == -ESTALE ? 0 : r;
}

/*
 * A branch that carrel made, if nothing is lost with it: it is at base, another ref has its
 * work, or the discard includes it.
 */
static int delete_branch(const struct repo *repo, const struct workspace *ws, const char *ref,
        struct carrel_error *err)
{
    char at[OID_MAX];

    if (!ws->branch_at[0] && !ws->branch_to[0])
        return 0;
    int r = ref_read(repo, ref, at, err);
    if (r < 0)
        return r == -ENOENT ? 0 : r;
    bool is_spare = ws->is_branch_spare && strcmp(at, ws->branch_at) == 0;
    if (!is_spare && strcmp(at, ws->base) != 0 && !ref_others_have(repo, ref, at))
        return 0;
    if (ref_is_checked_out(repo, ref))
        return 0;
    return delete_ref(repo, ref, at, err);
}

/* Whether some workspace has the id again: then the branch is that one's. */
static bool is_taken(const struct store *store, const struct workspace *ws)
{
    char name[RECORD_NAME_MAX];

    record_name(ws, name);
    return faccessat(store->top, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

static int delete_refs(const struct store *store, const struct repo *repo,
        const struct workspace *ws, struct carrel_error *err)
{
    char ref[WORKSPACE_REF_MAX];

    workspace_base_ref(ws, ref);
    int r = delete_ref(repo, ref, ws->base, err);
    if (r < 0 || is_taken(store, ws))
        return r;
    workspace_branch_ref(ws, ref);
    harvest_unkeep(repo, ref);
    return delete_branch(repo, ws, ref, err);
}

/* An exported workspace in runs/ has its own directory beside it: runs/ alone is unused. */
static bool is_unused(int top, const char *task)
{
    AUTO(dir_close) DIR *dir = dir_open(top, task);
    bool is_unused = dir != NULL;

    for (const char *name; is_unused && (name = dir_next(dir));)
        is_unused = strcmp(name, "runs") == 0;
    return is_unused;
}

void remove_unused_task(const struct store *store, const char *task)
{
    char runs[RECORD_NAME_MAX];

    if (!is_unused(store->top, task))
        return;
    (void)snprintf(runs, sizeof(runs), "%s/runs", task);
    (void)unlinkat(store->top, runs, AT_REMOVEDIR); /* not empty: both stay */
    (void)unlinkat(store->top, task, AT_REMOVEDIR);
}

/*
 * Everything but its record, and first: git writes files to delete a ref, for which a full disk
 * has no room. What fails is met again when the rest is removed.
 */
static void empty(const struct workspace *ws)
{
    static const char *const parts[] = { "upper", "tree", "objects", "gitupper", "disk.img" };

    for (size_t i = 0; i < ARRAY_LEN(parts); i++)
        (void)tree_remove(ws->dir, parts[i], NULL);
}

/* NULL and 0: there is none, or none any more. */
static int open_repo(const struct workspace *ws, struct repo **out, struct carrel_error *err)
{
    if (ws->is_folder || !ws->repo[0])
        return 0;
    int r = workspace_repo(ws, out, err);
    return r == -ENOENT ? 0 : r;
}

static int finish(const struct store *store, const struct workspace *ws,
        const struct repo *repo, struct carrel_error *err)
{
    store_unmount(ws->dir);
    empty(ws);
    int r = repo ? delete_refs(store, repo, ws, err) : 0;
    if (r < 0)
        return err_wrap(err, r,
                "workspace '%s/%s' is discarded, but its branch in '%s' is not: 'carrel "
                "cleanup' removes it as soon as that can be written",
                ws->task, ws->run, repo->common_dir);
    return 0;
}

int remove_finish(
        const struct store *store, const struct workspace *ws, struct carrel_error *err)
{
    AUTO(repo_free) struct repo *repo = NULL;
    int r = open_repo(ws, &repo, err);

    return r < 0 ? r : finish(store, ws, repo, err);
}

int remove_workspace(
        const struct store *store, const struct workspace *ws, struct carrel_error *err)
{
    AUTO(repo_free) struct repo *repo = NULL;
    char name[RECORD_NAME_MAX];
    char id[ID_SIZE];
    int r = open_repo(ws, &repo, err);

    record_name(ws, name);
    if (r == 0)
        r = store_unname(store, name, ws->lock, id, err);
    if (r < 0)
        return err_wrap(err, r, "remove workspace '%s/%s'", ws->task, ws->run);
    remove_unused_task(store, ws->task);
    r = finish(store, ws, repo, err);
    if (r < 0)
        return r;
    r = tree_remove(store->tmp, id, err);
    return r < 0 ? err_wrap(err, r, "remove workspace '%s/%s'", ws->task, ws->run) : 0;
}

int workspace_discard(const char *state, struct workspace *ws, struct carrel_error *err)
{
    AUTO(store_finish) struct store store = STORE_INIT;
    int r = workspace_take_lock(ws, err);

    if (r == 0)
        r = record_make_store(state, &store, err);
    if (r < 0)
        return r;
    if (ws->is_user_locked)
        return err_set(err, -EBUSY,
                "workspace '%s/%s' is locked: unlock it first (carrel workspace unlock %s)",
                ws->task, ws->run, ws->run);
    if (ws->is_opened)
        return err_set(err, -EBUSY,
                "workspace '%s/%s' is open at '%s': close it first (carrel workspace close %s)",
                ws->task, ws->run, ws->opened_at ? ws->opened_at : "?", ws->run);
    return remove_workspace(&store, ws, err);
}
