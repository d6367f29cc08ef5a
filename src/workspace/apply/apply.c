/*
 * apply.c - first everything is decided, then everything is prepared, then files are exchanged
 * (swap.h), and last the reference moves.
 *
 * Only a git with a scratch directory (scratch.h) reads what the run made. The user's own git
 * reads the user's own files (status.h), and moves HEAD.
 */
#include "base/err.h"
#include "base/fd.h"
#include "git/gitdir.h"
#include "git/name.h"
#include "workspace/apply/apply_job.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

static void job_finish(struct apply_job job)
{
    swap_free(job.swap);
    scratch_free(job.scratch);
    survey_finish(&job.survey);
    delta_list_finish(&job.wanted);
    delta_list_finish(&job.changes);
    free(job.looks);
    free(job.items);
    free(job.attributes);
    free(job.new_index);
    buf_finish(job.sparse);
}
DEFINE_AUTO(struct apply_job, job_finish)

void apply_outcome_finish(struct apply_outcome *outcome)
{
    for (size_t i = 0; i < outcome->n_conflicts; i++)
        free(outcome->conflicts[i].path);
    free(outcome->conflicts);
    free(outcome->top);
    free(outcome->branch);
    *outcome = (struct apply_outcome){ 0 };
}

int apply_add_conflict(
        struct apply_outcome *out, const char *path, const char *why, struct carrel_error *err)
{
    char *copy = strdup(path);
    struct apply_conflict *conflicts =
            reallocarray(out->conflicts, out->n_conflicts + 1, sizeof(*conflicts));

    if (conflicts)
        out->conflicts = conflicts;
    if (!conflicts || !copy) {
        free(copy);
        return err_set_errno(err, -ENOMEM, "list conflicts");
    }
    conflicts[out->n_conflicts++] = (struct apply_conflict){ copy, why };
    return 0;
}

static int refuse_unfinished(const struct repo *repo, struct carrel_error *err)
{
    static const struct {
        const char *file, *what;
    } signs[] = {
        { "MERGE_HEAD", "merge" },
        { "CHERRY_PICK_HEAD", "cherry-pick" },
        { "REVERT_HEAD", "revert" },
        { "rebase-merge", "rebase" },
        { "rebase-apply", "rebase" },
    };
    AUTO(fd_close) int dir = gitdir_reopen(repo->git_dir);
    if (dir < 0)
        return err_set_errno(err, dir, "open '%s'", repo->git_dir);

    for (size_t i = 0; i < ARRAY_LEN(signs); i++)
        if (faccessat(dir, signs[i].file, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
            return err_set(err, -EBUSY,
                    "a %s is in progress in '%s': finish or abort it (git %s --abort)",
                    signs[i].what, repo->top, signs[i].what);
    return 0;
}

/* In the format of `git update-index --index-info`; mode 0 removes the path. */
static void add_entry(struct buf *text, const struct delta *change)
{
    buf_addf(text, "%o %s\t%s", change->new.mode, change->new.oid, change->path);
    buf_add(text, "", 1);
}

/*
 * Prepares the user's new index: the old one with the changed paths. Once it has an entry of
 * the run, only the scratch's git may write it: a write re-reads files that are as new as the
 * index, and the user's git would apply the run's attributes and the user's filters to them.
 */
static int prepare_index(struct apply_job *job, struct carrel_error *err)
{
    AUTO(buf_finish) struct buf entries = BUF_INIT(APPLY_MAX_BYTES);
    struct git_io io = GIT_IO_INIT;
    struct git user = job->survey.git;
    struct git git = job->git;

    for (int turn = 0; turn < 2; turn++) /* removals first: a file may become a directory */
        for (size_t i = 0; i < job->changes.n; i++)
            if ((job->changes.items[i].new.mode != 0) == turn)
                add_entry(&entries, &job->changes.items[i]);
    user.index_file = job->swap->index;
    git.index_file = job->swap->index;
    git.work_tree = job->repo->top;
    int r = survey_copy_index(job->repo, job->swap->index, err);
    if (r == 0) /* not a split index: the scratch has no shared part of it */
        r = git_expect(&user,
                GIT_ARGS("-c", "core.splitIndex=false", "update-index", "--no-split-index"),
                &io, err);
    if (r == 0)
        r = git_feed(&git, GIT_ARGS("update-index", "-z", "--index-info"), &entries, err);
    if (r == 0)
        r = git_feed(&git, GIT_ARGS("update-index", "--skip-worktree", "-z", "--stdin"),
                &job->sparse, err);
    return r < 0 ? err_wrap(err, r, "prepare the index") : 0;
}

/*
 * Refreshes the entries of the new files in the new index, so that the user's next status need
 * not read them. Not with the user's git, which would run filters on what the run made. Status
 * 1 only means that some other file has changed.
 */
static int settle_index(struct apply_job *job, struct carrel_error *err)
{
    struct git git = job->git;
    struct git_io io = GIT_IO_INIT;

    git.work_tree = job->repo->top;
    git.index_file = job->swap->index;
    int r = git_run(
            &git, GIT_ARGS("-c", job->attributes, "update-index", "-q", "--refresh"), &io, err);
    return r < 0 ? r : 0;
}

static int move_head(struct apply_job *job, struct carrel_error *err)
{
    struct git git = repo_user_git(job->repo);
    struct git_io io = GIT_IO_INIT;
    const char *what = job->how == APPLY_MERGE ? "merge" : "cherry-pick";
    char message[128];

    (void)snprintf(message, sizeof(message), "carrel %s %.12s", what, job->tip);
    git.git_dir = job->repo->git_dir;
    io.finishes = true;
    int r = git_expect(&git,
            GIT_ARGS("update-ref", "-m", message, "HEAD", job->commit, job->survey.head), &io,
            err);
    return r < 0 ? err_wrap(err, r, "move HEAD") : 0;
}

/* Carries the plan out, if there is no conflict. */
static int carry_out(struct apply_job *job, struct carrel_error *err)
{
    bool has_commit = job->commit[0] && strcmp(job->commit, job->survey.head) != 0;
    bool has_index = job->how != APPLY_FILES && (has_commit || job->changes.n > 0);
    size_t culprit = 0;
    int r = apply_stage(job, err);

    if (r == 0 && has_index)
        r = prepare_index(job, err);
    if (r < 0)
        return r;
    r = swap_exchange(
            job->swap, job->items, job->n_items, has_commit ? job->commit : "", &culprit, err);
    if (r == -ESTALE)
        return apply_add_conflict(
                job->out, job->items[culprit].path, "blocked by something in your tree", err);
    if (r == 0 && has_index)
        r = settle_index(job, err);
    if (r == 0 && has_commit)
        r = move_head(job, err);
    if (r == 0)
        r = swap_finish(job->swap, err);
    if (r < 0)
        return r;
    job->out->n_files = job->n_items;
    job->out->n_submodules = job->n_submodules;
    memcpy(job->out->commit, job->commit, OID_MAX);
    return 0;
}

static int prepare(struct apply_job *job, const char *quarantine, struct carrel_error *err)
{
    int r = refuse_unfinished(job->repo, err);

    if (r == 0)
        r = scratch_make(job->repo, job->swap->path,
                job->how == APPLY_FILES ? quarantine : NULL, &job->scratch, err);
    if (r < 0)
        return r;
    job->git = scratch_git(job->scratch);
    if (job->how != APPLY_FILES)
        job->git.object_dir = job->repo->objects[0];
    r = survey_open(
            job->repo, job->scratch, job->swap->path, job->swap->top, &job->survey, err);
    if (r == 0 && !job->survey.has_commit && job->how != APPLY_FILES)
        r = err_set(err, -EINVAL, "there is no commit yet to put this on top of");
    return r;
}

static int work(struct apply_job *job, const char *quarantine, struct carrel_error *err)
{
    char tree[OID_MAX];
    int r = prepare(job, quarantine, err);

    if (r == 0 && job->how != APPLY_FILES)
        r = survey_tree(&job->survey, tree, err); /* fails if paths are unmerged */
    if (r == 0)
        r = apply_combine(job, err);
    if (r == 0 && job->out->n_conflicts == 0)
        r = apply_judge(job, err);
    if (r == 0 && job->out->n_conflicts == 0)
        r = apply_form(job, err);
    if (r == 0 && job->out->n_conflicts == 0)
        r = carry_out(job, err);
    return r;
}

static int note_place(
        const struct repo *repo, struct apply_outcome *outcome, struct carrel_error *err)
{
    AUTO(buf_finish) struct buf name = BUF_INIT(4096);
    const struct git git = { .git_dir = repo->git_dir, .trust = GIT_SCRUBBED };
    struct git_io io = GIT_IO_INIT;

    io.output = &name;
    outcome->top = strdup(repo->top);
    if (!outcome->top)
        return err_set_errno(err, -ENOMEM, "apply");
    if (git_expect(&git, GIT_ARGS("symbolic-ref", "-q", "--short", "HEAD"), &io, NULL) == 0 &&
            name.len > 0)
        outcome->branch = strdup(name.data); /* out of memory: without a name */
    return 0;
}

int apply_result(const struct repo *repo, const char *state, const char *quarantine,
        const char *base, const char *tip, enum apply_how how, struct apply_outcome *out,
        struct carrel_error *err)
{
    struct apply_outcome outcome = { 0 };

    if (!name_is_oid(base) || !name_is_oid(tip))
        return err_set(err, -EINVAL, "apply needs full commit ids");
    AUTO(job_finish)
    struct apply_job job = { .repo = repo,
        .base = base,
        .tip = tip,
        .how = how,
        .out = &outcome,
        .survey = { .top = -1 },
        .sparse = BUF_INIT(APPLY_MAX_BYTES) };
    int r = swap_open(repo, state, &job.swap, err);
    if (r == 0)
        r = note_place(repo, &outcome, err);
    if (r == 0)
        r = work(&job, quarantine, err);
    if (r < 0) {
        apply_outcome_finish(&outcome);
        return err_wrap(err, r, "apply to '%s'", repo->top ? repo->top : repo->git_dir);
    }
    *out = outcome;
    return 0;
}

int apply_recover(const struct repo *repo, struct carrel_error *err)
{
    return swap_recover(repo, err);
}
