/* remove.c - the way out of a workspace. */
#include "workspace/remove.h"
#include "base/dir.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/tree.h"
#include "git/ref.h"
#include "workspace/admin.h"
#include "workspace/harvest/harvest.h"
#include "workspace/record.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define HEADS "refs/heads/"
#define REF_MAX (sizeof(HEADS) + NAME_BRANCH_MAX)

/* What becomes of the branch, decided before the gate is closed since git may have to be asked.
 */
struct fate {
    char ref[REF_MAX];
    char at[OID_MAX]; /* it goes if it is still there; empty: it stays */
};

/*
 * A branch that carrel made, if nothing is lost with it: it is at base, another ref has its
 * work, or the discard includes it.
 */
static int decide(const struct repo *repo, const struct workspace *ws, enum place_end end,
        struct fate *fate, struct carrel_error *err)
{
    char at[OID_MAX];

    (void)snprintf(fate->ref, sizeof(fate->ref), HEADS "%s", ws->branch);
    fate->at[0] = '\0';
    int r = ref_read(repo, fate->ref, at, err);
    if (r == -ENOENT)
        return 0;
    if (r < 0)
        return r;
    bool goes = strcmp(at, ws->base) == 0;
    if (!goes && end == PLACE_DISCARDED)
        goes = ref_others_have(repo, fate->ref, at);
    if (goes)
        memcpy(fate->at, at, sizeof(at));
    return 0;
}

/* Whose admin dir it is: its gitdir leads to where this workspace is opened. */
enum owner { OWNER_NOBODY, OWNER_US, OWNER_ANOTHER };

static enum owner admin_owner(const struct repo *repo, const struct workspace *ws)
{
    char gitdir[PATH_MAX];
    char ours[PATH_MAX];

    if (admin_gitdir(repo, ws->task, ws->run, gitdir, sizeof(gitdir), NULL) < 0 || !gitdir[0] ||
            workspace_opened_path(ws, ours, sizeof(ours), NULL) < 0)
        return OWNER_NOBODY;
    size_t len = strlen(ours);
    return strncmp(gitdir, ours, len) == 0 && strcmp(gitdir + len, "/.git") == 0
                   ? OWNER_US
                   : OWNER_ANOTHER;
}

/*
 * Everything but its record, and first: git writes files to delete a ref, for which a full disk
 * has no room. What fails is met again when the rest is removed.
 */
static bool has_entered(const struct repo *repo, const struct workspace *ws, enum place_end end)
{
    return end != PLACE_UNDONE || admin_owner(repo, ws) != OWNER_ANOTHER;
}

static int forget(const struct repo *repo, const struct workspace *ws, const struct fate *fate,
        struct carrel_error *err)
{
    int r = admin_remove(repo, ws->task, ws->run, err);

    harvest_unkeep(repo, fate->ref);
    if (r < 0 || !fate->at[0] || admin_is_checked_out(repo, ws->branch))
        return r;
    r = ref_delete(repo, fate->ref, fate->at, err);
    return r == -ESTALE ? 0 : r; /* somebody moved it just now: it is theirs */
}

static void trash_name(const char *unique, enum place_end end, char name[static PLACE_NAME_MAX])
{
    (void)snprintf(name, PLACE_NAME_MAX, "%.32s.%s", unique, place_end_name(end));
}

static int move_to_trash(const struct place *place, const struct workspace *ws,
        const char *name, struct carrel_error *err)
{
    char id[PLACE_ID_MAX];

    place_id(ws->task, ws->run, id);
    if (renameat(place->top, id, place->trash, name) < 0)
        return err_set_errno(err, -errno, "move '%s' to the trash", ws->path);
    place_prune_task(place, ws->task);
    return 0;
}

/* Whether some workspace has the id: then the repository's side is that one's. */
static bool is_taken(const struct place *place, const struct workspace *ws)
{
    char id[PLACE_ID_MAX];

    place_id(ws->task, ws->run, id);
    return faccessat(place->top, id, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

static int hold(const struct workspace *ws, struct carrel_error *err)
{
    if (flock(ws->dir, LOCK_EX | LOCK_NB) < 0)
        return err_set_errno(err, -errno, "lock '%s'", ws->path);
    return 0;
}

/* With the gate closed: the id is given back, the repository forgets. `name` is where it is in
 * the trash afterwards, also on failure; empty: it is not. */
static int give_back(const struct place *place, const struct repo *repo,
        const struct workspace *ws, const char *trashed, enum place_end end,
        const struct fate *fate, char name[static PLACE_NAME_MAX], struct carrel_error *err)
{
    char pending[PLACE_NAME_MAX];
    bool is_known = repo != NULL;
    int r = 0;

    name[0] = '\0';
    AUTO(fd_close) int gate = place_close_gate(place, LOCK_EX, err);
    if (gate < 0)
        return gate;
    if (trashed) {
        (void)snprintf(pending, sizeof(pending), "%s", trashed);
        is_known = is_known && !is_taken(place, ws);
    } else {
        char unique[PLACE_NAME_MAX];
        r = place_unique(unique, err);
        if (r < 0)
            return r;
        trash_name(unique, end, pending);
        r = move_to_trash(place, ws, pending, err);
        if (r < 0)
            return r;
    }
    (void)snprintf(name, PLACE_NAME_MAX, "%s", pending);
    if (is_known && has_entered(repo, ws, end))
        r = forget(repo, ws, fate, err);
    if (r < 0)
        return r;
    trash_name(pending, PLACE_FILES, name);
    if (strcmp(pending, name) != 0 && renameat(place->trash, pending, place->trash, name) < 0)
        return err_set_errno(err, -errno, "remove '%s' from the trash", pending);
    return 0;
}

/* Everything but its record. What fails is met again when the rest is removed. */
static void empty(const struct workspace *ws)
{
    static const char *const parts[] = { "upper", "tree", "objects", "gitupper" };

    for (size_t i = 0; i < ARRAY_LEN(parts); i++)
        (void)tree_remove(ws->dir, parts[i], NULL);
}

/*
 * A creator that was killed may have left the lock of its branch. -EAGAIN: it is too young to
 * be told from a lock in use; whoever sweeps later will see.
 */
static int break_lock(const struct repo *repo, const struct fate *fate)
{
    int r = ref_remove_stale_lock(repo, fate->ref, NULL);

    return r == -EBUSY ? -EAGAIN : r < 0 ? r : 0;
}

int retire(const struct place *place, const struct workspace *ws, const char *trashed,
        enum place_end end, struct carrel_error *err)
{
    AUTO(repo_free) struct repo *repo = NULL;
    struct fate fate = { .ref = "" };
    char name[PLACE_NAME_MAX] = "";
    int r = hold(ws, err);

    if (r == 0 && end != PLACE_FILES && !ws->is_folder && ws->repo[0]) {
        r = workspace_repo(ws, &repo, err);
        if (r == -ENOENT)
            r = 0; /* the repository is gone, and what it knew with it */
        else if (r == 0)
            r = decide(repo, ws, end, &fate, err);
        if (r == 0 && repo && end == PLACE_UNDONE)
            r = break_lock(repo, &fate);
    }
    if (r == 0)
        r = give_back(place, repo, ws, trashed, end, &fate, name, err);
    if (r < 0 && r != -EAGAIN && fate.ref[0] && name[0]) {
        /* Git rewrites files to forget, for which a full disk has no room. What is in the trash
         * has, and nobody gets it back from there. */
        char again[PLACE_NAME_MAX];
        memcpy(again, name, sizeof(again));
        empty(ws);
        r = give_back(place, repo, ws, again, end, &fate, name, err);
        if (r < 0)
            return err_wrap(err, r,
                    "workspace '%s/%s' is discarded, but its entry or branch in '%s' is not: "
                    "'carrel cleanup' removes them as soon as that can be written",
                    ws->task, ws->run, repo ? repo->common_dir : ws->repo);
    }
    if (r == 0)
        r = tree_remove(place->trash, name, err);
    if (r < 0)
        return err_wrap(err, r, "remove workspace '%s/%s'", ws->task, ws->run);
    return 0;
}

int retire_files(
        const struct place *place, const struct workspace *ws, struct carrel_error *err)
{
    return retire(place, ws, NULL, PLACE_FILES, err);
}

/* The workspace that such an admin dir was made for, as far as it is known. */
static int imagine(const struct place *place, const char *task, const char *run,
        struct workspace **out, struct carrel_error *err)
{
    AUTO(workspace_free) struct workspace *ws = record_new();

    if (!ws || asprintf(&ws->path, "%s/%s/%s", place->path, task, run) < 0)
        return err_set_errno(err, -ENOMEM, "look at a worktree of the repository");
    (void)snprintf(ws->task, sizeof(ws->task), "%s", task);
    (void)snprintf(ws->run, sizeof(ws->run), "%s", run);
    name_branch(task, run, ws->branch);
    *out = ptr_steal(&ws);
    return 0;
}

int retire_orphan(const struct place *place, const struct repo *repo, const char *task,
        const char *run, struct carrel_error *err)
{
    AUTO(workspace_free) struct workspace *ws = NULL;
    struct fate fate = { .at = "" };
    int r = imagine(place, task, run, &ws, err);

    if (r < 0)
        return r;
    if (is_taken(place, ws) || admin_owner(repo, ws) != OWNER_US)
        return 0;
    r = decide(repo, ws, PLACE_DISCARDED, &fate, err);
    if (r < 0)
        return r;
    AUTO(fd_close) int gate = place_close_gate(place, LOCK_EX | LOCK_NB, err);
    if (gate < 0)
        return gate;
    if (is_taken(place, ws))
        return 0;
    r = forget(repo, ws, &fate, err);
    return r < 0 ? r : 1;
}

int workspace_discard(const char *state, struct workspace *ws, struct carrel_error *err)
{
    AUTO(place_finish) struct place place = PLACE_INIT;
    char opened[PATH_MAX];
    int r = workspace_take_lock(ws, err);

    if (r == 0)
        r = workspace_opened_path(ws, opened, sizeof(opened), err);
    if (r == 0)
        r = place_open(state, &place, err);
    if (r < 0)
        return r;
    if (ws->is_user_locked)
        return err_set(err, -EBUSY,
                "workspace '%s/%s' is locked: unlock it first (carrel workspace unlock %s)",
                ws->task, ws->run, ws->run);
    if (ws->is_opened)
        return err_set(err, -EBUSY,
                "workspace '%s/%s' is open at '%s': close it first (carrel workspace close %s)",
                ws->task, ws->run, opened, ws->run);
    return retire(&place, ws, NULL, PLACE_DISCARDED, err);
}
