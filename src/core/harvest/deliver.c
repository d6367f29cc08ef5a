/* deliver.c - publishing and applying. */
#include "core/harvest/deliver.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/named.h"
#include "core/harvest/harvest.h"
#include "core/state/writable.h"
#include "core/worktree/target.h"
#include "core/worktree/worktree.h"
#include "git/git.h"
#include "git/ref.h"
#include "workspace/source/folder.h"
#include <errno.h>
#include <limits.h>
#include <stdio.h>

/*
 * A message for a commit that is on the branch already makes a new commit of it. A clone that
 * has the old one in a branch of its own would then have the work twice.
 */
static int may_reword(const struct worktree *worktree, const char *branch, const char *message,
        struct carrel_error *err)
{
    const struct workspace *ws = worktree->ws;

    if (!message || strcmp(ws->snapshot, ws->tip) == 0)
        return 0;
    if (!ref_others_have(worktree->repo, branch, ws->snapshot))
        return 1;
    return err_set(
            err, -EEXIST, "its work is committed and another branch has it: the message stays");
}

/* The snapshot again, with the caller's message and the seal of the run's journal. */
static int reword(struct worktree *worktree, const char *quarantine, const char *message,
        const char *seal, struct carrel_error *err)
{
    struct workspace *ws = worktree->ws;
    struct git git = harvest_git(worktree->repo, quarantine);
    char tree[OID_MAX + 8];
    AUTO(buf_finish) struct buf out = BUF_INIT(OID_MAX + 1);
    AUTO(buf_finish) struct buf text = BUF_INIT(2U << 20);
    struct git_io io = GIT_IO_INIT;

    if ((!message && !seal[0]) || strcmp(ws->snapshot, ws->tip) == 0)
        return 0; /* as it is, or nothing of ours on top */
    buf_add_str(&text, message ? message : HARVEST_MESSAGE);
    while (text.len > 0 && text.data[text.len - 1] == '\n')
        text.len--;
    if (seal[0])
        buf_addf(&text, "\n\nCarrel-Run: %s/%s\nCarrel-Journal: sha256:%s", ws->task, ws->run,
                seal);
    buf_add_str(&text, "\n");
    if (text.is_short)
        return err_set(err, -E2BIG, "the message of the commit is too long");
    (void)snprintf(tree, sizeof(tree), "%s^{tree}", ws->snapshot);
    io.input = text.data;
    io.input_len = text.len;
    io.output = &out;
    int r = git_expect(&git,
            GIT_ARGS("-c", "user.name=carrel", "-c", "user.email=carrel@localhost",
                    "commit-tree", "-p", ws->tip, tree),
            &io, err);
    if (r < 0)
        return r;
    if (!out.data || !name_is_oid(out.data))
        return err_set(err, -EPROTO, "git commit-tree gave no commit");
    memcpy(ws->snapshot, out.data, out.len + 1);
    return 0;
}

/*
 * The commit of the branch; empty: there is no branch. One that carrel did not make, or that
 * was moved since, is the user's and is not overwritten. It may be where carrel put it last, or
 * was about to put it when it was killed; or at the base, if it was reset to that.
 */
static int find_branch(const struct worktree *worktree, const char *branch, const char *tip,
        char at[static OID_MAX], struct carrel_error *err)
{
    const struct workspace *ws = worktree->ws;
    int r = ref_read(worktree->repo, branch, at, err);

    if (r == -ENOENT) {
        at[0] = '\0';
        return 0;
    }
    if (r < 0 || strcmp(at, tip) == 0 || strcmp(at, ws->branch_at) == 0 ||
            strcmp(at, ws->branch_to) == 0)
        return r;
    if (!ws->branch_at[0] && !ws->branch_to[0])
        return err_set(err, -EEXIST,
                "branch '%s' exists already and is not this run's: rename it (git branch -m %s "
                "NAME), then commit again",
                ws->branch, ws->branch);
    if (strcmp(at, ws->base) == 0)
        return 0;
    return err_set(err, -ESTALE,
            "branch '%s' was moved to %.12s, and this would lose it; keep that under "
            "another "
            "name and put the branch back: git branch NAME %s && git update-ref refs/heads/%s "
            "%s",
            ws->branch, at, ws->branch, ws->branch, ws->branch_at);
}

/* Git works there by paths, which a sandbox could exchange for links or FIFOs meanwhile. */
static int hold_git_still(const struct worktree *worktree, struct carrel_error *err)
{
    const char *const places[] = { worktree->repo->common_dir, worktree->repo->git_dir };

    return writable_forbid(worktree->ws->run, places, ARRAY_LEN(places), err);
}

/* Puts the branch at `tip`; `old` is where it is. The git dir is held still. */
static int publish(struct worktree *worktree, const char *branch, const char *old,
        const char *tip, struct carrel_error *err)
{
    struct workspace *ws = worktree->ws;
    char quarantine[PATH_MAX];

    int r = objects_dir_path(worktree, quarantine, err);
    if (r < 0)
        return r;
    (void)snprintf(ws->branch_to, sizeof(ws->branch_to), "%s", tip);
    r = workspace_save(ws, err); /* first: after a crash carrel must know its branch */
    return r < 0 ? r
                 : harvest_publish(worktree->repo, quarantine, branch, ws->base, tip,
                           ws->snapshot, old, "carrel: run", err);
}

static int note_published(struct workspace *ws, const char *tip, struct carrel_error *err)
{
    (void)snprintf(ws->branch_at, sizeof(ws->branch_at), "%s", tip);
    ws->branch_to[0] = '\0';
    ws->is_published = strcmp(ws->snapshot, ws->branch_at) == 0;
    return workspace_save(ws, err);
}

int deliver_commit(struct worktree *worktree, const char *message, const char *seal,
        char commit[static OID_MAX], struct carrel_error *err)
{
    struct workspace *ws = worktree->ws;
    char quarantine[PATH_MAX];
    char branch[WORKSPACE_REF_MAX];
    char old[OID_MAX];

    if (ws->is_folder)
        return err_set(err, -EINVAL,
                "workspace '%s' is a folder without git: there is nothing to commit to; apply "
                "it",
                ws->run);
    workspace_branch_ref(ws, branch);
    AUTO(fd_close) int still = hold_git_still(worktree, err);
    if (still < 0)
        return err_wrap(err, still, "commit run '%s'", ws->run);
    int r = objects_dir_path(worktree, quarantine, err);
    if (r == 0)
        r = find_branch(worktree, branch, ws->snapshot, old, err);
    if (r < 0)
        return err_wrap(err, r, "commit run '%s'", ws->run);
    bool is_there = strcmp(old, ws->snapshot) == 0;
    if (is_there)
        r = may_reword(worktree, branch, message, err);
    if (!is_there || r > 0) {
        r = reword(worktree, quarantine, message, seal, err);
        if (r == 0)
            r = publish(worktree, branch, old, ws->snapshot, err);
    }
    ws->is_branch_asked = true;
    if (r == 0)
        r = note_published(ws, ws->snapshot, err);
    if (r < 0)
        return err_wrap(err, r, "commit run '%s'", ws->run);
    (void)snprintf(commit, OID_MAX, "%s", ws->snapshot);
    return 0;
}

static bool descends(const struct worktree *worktree, const char *from, const char *tip)
{
    char quarantine[PATH_MAX];

    if (objects_dir_path(worktree, quarantine, NULL) < 0)
        return false;
    struct git git = harvest_git(worktree->repo, quarantine);
    return git_run(&git, GIT_ARGS("merge-base", "--is-ancestor", from, tip), NULL, NULL) == 0;
}

int deliver_branch(struct worktree *worktree, struct carrel_error *err)
{
    struct workspace *ws = worktree->ws;
    char branch[WORKSPACE_REF_MAX];
    char old[OID_MAX];

    if (ws->is_folder || strcmp(ws->tip, ws->base) == 0 || strcmp(ws->tip, ws->branch_at) == 0)
        return 0;
    workspace_branch_ref(ws, branch);
    AUTO(fd_close) int still = hold_git_still(worktree, err);
    if (still < 0)
        return still;
    int r = find_branch(worktree, branch, ws->tip, old, err);
    if (r < 0)
        return r;
    if (old[0] && !descends(worktree, old, ws->tip))
        return 0; /* the branch has more than the run committed: the next commit decides */
    r = publish(worktree, branch, old, ws->tip, err);
    return r < 0 ? r : note_published(ws, ws->tip, err);
}

/* The tree of the snapshot; its id does not depend on message and time. */
static int find_tree(const struct worktree *worktree, char tree[static OID_MAX])
{
    char quarantine[PATH_MAX];
    char name[OID_MAX + 8];
    AUTO(buf_finish) struct buf out = BUF_INIT(OID_MAX + 1);
    struct git_io io = GIT_IO_INIT;

    int r = objects_dir_path(worktree, quarantine, NULL);
    if (r < 0)
        return r;
    struct git git = harvest_git(worktree->repo, quarantine);
    (void)snprintf(name, sizeof(name), "%s^{tree}", worktree->ws->snapshot);
    io.output = &out;
    r = git_expect(&git, GIT_ARGS("rev-parse", "--verify", "-q", name), &io, NULL);
    if (r < 0)
        return r;
    if (!out.data || !name_is_oid(out.data))
        return -EPROTO;
    memcpy(tree, out.data, out.len + 1);
    return 0;
}

/* A failure here is safe: the work then counts as not applied. */
static void note_applied(struct worktree *worktree)
{
    struct workspace *ws = worktree->ws;

    if (find_tree(worktree, ws->applied_tree) < 0)
        return;
    memcpy(ws->applied, ws->snapshot, sizeof(ws->applied));
    (void)workspace_save(ws, NULL);
}

void deliver_recognise(struct worktree *worktree)
{
    struct workspace *ws = worktree->ws;
    char tree[OID_MAX];

    if (!ws->applied[0] || !ws->snapshot[0] || strcmp(ws->applied, ws->snapshot) == 0 ||
            find_tree(worktree, tree) < 0 || strcmp(tree, ws->applied_tree) != 0)
        return;
    memcpy(ws->applied, ws->snapshot, sizeof(ws->applied));
    (void)workspace_save(ws, NULL); /* as above */
}

static int snapshot_again(const struct worktree *worktree, struct repo **now,
        char commit[static OID_MAX], struct carrel_error *err)
{
    AUTO(fd_close) int dir = named_open(worktree->ws->top, NAMED_DIRECTORY, err);

    return dir < 0 ? dir : folder_snapshot(worktree->state, dir, now, commit, err);
}

/* What its configuration may start was looked at before it was held still: look again. */
static int open_again(const struct repo *first, struct repo **out, struct carrel_error *err)
{
    AUTO(repo_free) struct repo *repo = NULL;

    int r = repo_open(first->top, &repo, err);
    if (r < 0)
        return r;
    if (strcmp(repo->common_dir, first->common_dir) != 0 ||
            strcmp(repo->git_dir, first->git_dir) != 0)
        return err_set(err, -EAGAIN, "'%s' changes meanwhile", first->git_dir);
    *out = ptr_steal(&repo);
    return 0;
}

int deliver_apply(struct worktree *worktree, enum apply_how how, const char *seal,
        struct apply_outcome *out, struct carrel_error *err)
{
    struct workspace *ws = worktree->ws;
    char quarantine[PATH_MAX];
    char commit[OID_MAX];
    AUTO(repo_free) struct repo *again = NULL;
    AUTO(repo_free) struct repo *now = NULL;
    const struct repo *target;

    int r = target_find(worktree, &target, err);
    if (r < 0)
        return r;
    const char *places[] = { target->git_dir, target->top };
    AUTO(fd_close)
    int still = writable_forbid(ws->run, places, target->top ? ARRAY_LEN(places) : 1, err);
    if (still < 0)
        return err_wrap(err, still, "apply run '%s'", ws->run);
    if (!ws->is_folder)
        r = open_again(target, &again, err);
    if (again)
        target = again;
    if (r == 0)
        r = objects_dir_path(worktree, quarantine, err);
    if (r == 0 && how != APPLY_FILES)
        r = deliver_commit(worktree, NULL, seal, commit, err);
    if (r == 0 &&
            ws->is_folder) /* as it is now: only what changed since the run is in the way */
        r = snapshot_again(worktree, &now, commit, err);
    if (r == 0)
        r = apply_result(target, worktree->state, how == APPLY_FILES ? quarantine : NULL,
                ws->base, ws->snapshot, how, out, err);
    if (r < 0)
        return err_wrap(err, r, "apply run '%s'", ws->run);
    if (how == APPLY_FILES && out->n_conflicts == 0)
        note_applied(worktree);
    return 0;
}
