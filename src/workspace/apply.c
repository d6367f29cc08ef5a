/*
 * apply.c - first everything is decided, then everything is made ready, then files are
 * exchanged (swap.h), and last the reference moves.
 *
 * What the run made is only ever read by a git with a scratch directory (scratch.h). The user's
 * own git looks at the user's own files (survey.h), and moves HEAD.
 */
#include "workspace/apply.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/str.h"
#include "workspace/combine.h"
#include "workspace/delta.h"
#include "workspace/name.h"
#include "workspace/scratch.h"
#include "workspace/survey.h"
#include "workspace/swap.h"
#include "workspace/treepath.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <unistd.h>

#define APPLY_MAX_BYTES ((size_t)1 << 30)

struct look {
    enum survey_kind kind;
    struct stat st;
};

struct job {
    const struct repo *repo;
    const char *base, *tip;
    enum apply_how how;
    struct apply_outcome *out;
    struct swap *swap;
    struct scratch *scratch;
    struct git git; /* scrubbed; makes objects where `how` needs them */
    struct survey survey;
    struct delta_list wanted;  /* base..tip, for APPLY_FILES */
    struct delta_list changes; /* what the user has .. the result */
    struct look *looks;        /* at the work tree, one for each change */
    struct swap_item *items;   /* what has to be done to the work tree */
    size_t n_items;
    struct buf sparse; /* paths that the user's sparse checkout leaves out, NUL-terminated */
    char commit[OID_MAX];
};

static void job_finish(struct job job)
{
    swap_free(job.swap);
    scratch_free(job.scratch);
    survey_finish(&job.survey);
    delta_list_finish(&job.wanted);
    delta_list_finish(&job.changes);
    free(job.looks);
    free(job.items);
    buf_finish(job.sparse);
}
DEFINE_AUTO(struct job, job_finish)

void apply_outcome_finish(struct apply_outcome *outcome)
{
    for (size_t i = 0; i < outcome->n_conflicts; i++)
        free(outcome->conflicts[i].path);
    free(outcome->conflicts);
    *outcome = (struct apply_outcome){ 0 };
}

static int add_conflict(
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
    AUTO(fd_close) int dir = open(repo->git_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0)
        return err_set_errno(err, -errno, "open '%s'", repo->git_dir);

    for (size_t i = 0; i < ARRAY_LEN(signs); i++)
        if (faccessat(dir, signs[i].file, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
            return err_set(err, -EBUSY,
                    "a %s is not finished in '%s': finish it or give it up (git %s --abort)",
                    signs[i].what, repo->top, signs[i].what);
    return 0;
}

static int take_conflicts(
        struct job *job, struct combine_conflicts *conflicts, struct carrel_error *err)
{
    int r = 0;

    for (size_t i = 0; r == 0 && i < conflicts->n; i++)
        r = add_conflict(job->out, conflicts->paths[i], "does not apply", err);
    return r;
}

/* "Name <address> 123 +0000" of the user. */
static int ask_ident(
        struct job *job, const char *which, char *line, size_t size, struct carrel_error *err)
{
    AUTO(buf_finish) struct buf text = BUF_INIT(size - 1);
    struct git_io io = GIT_IO_INIT;

    io.output = &text;
    int r = git_expect(&job->survey.git, GIT_ARGS("var", which), &io, err);
    if (r < 0)
        return err_wrap(err, r, "find out who you are for git (set user.name and user.email)");
    (void)snprintf(line, size, "%s", text.data ? text.data : "");
    return 0;
}

/* 1: yes, 0: no. */
static int is_ancestor(
        struct job *job, const char *old, const char *new, struct carrel_error *err)
{
    struct git_io io = GIT_IO_INIT;
    int r = git_run(&job->git, GIT_ARGS("merge-base", "--is-ancestor", old, new), &io, err);

    if (r > 1)
        r = -EIO;
    return r < 0 ? err_wrap(err, r, "compare histories") : r == 0;
}

/* The run's branch, for the message; any commit can be named by its id. */
static void merge_message(struct job *job, char *text, size_t size)
{
    AUTO(buf_finish) struct buf names = BUF_INIT(1 << 20);
    struct git git = repo_git(job->repo);
    struct git_io io = GIT_IO_INIT;
    char points_at[OID_MAX + 16];
    char *saved = NULL;

    io.output = &names;
    (void)snprintf(points_at, sizeof(points_at), "--points-at=%s", job->tip);
    (void)snprintf(text, size, "Merge commit '%s'\n", job->tip);
    if (git_expect(&git,
                GIT_ARGS("for-each-ref", points_at, "--format=%(refname:lstrip=2)",
                        "refs/heads/"),
                &io, NULL) < 0 ||
            !names.data)
        return;
    for (char *name = strtok_r(names.data, "\n", &saved); name;
            name = strtok_r(NULL, "\n", &saved))
        if (name_is_run_branch(name)) {
            (void)snprintf(text, size, "Merge branch '%s'\n", name);
            return;
        }
}

static int merge(struct job *job, char tree[static OID_MAX],
        struct combine_conflicts *conflicts, struct carrel_error *err)
{
    const char *head = job->survey.head;
    char author[512];
    char committer[512];
    char message[256];

    int r = is_ancestor(job, job->tip, head, err);
    if (r != 0) {
        memcpy(job->commit, head, OID_MAX);
        return r < 0 ? r : 0;
    }
    r = is_ancestor(job, head, job->tip, err);
    if (r != 0) {
        (void)snprintf(job->commit, OID_MAX, "%s", job->tip);
        return r < 0 ? r : 0;
    }
    r = combine_commits(&job->git, head, job->tip, tree, conflicts, err);
    if (r < 0 || conflicts->n > 0)
        return r;
    r = ask_ident(job, "GIT_AUTHOR_IDENT", author, sizeof(author), err);
    if (r == 0)
        r = ask_ident(job, "GIT_COMMITTER_IDENT", committer, sizeof(committer), err);
    if (r < 0)
        return r;
    merge_message(job, message, sizeof(message));
    const struct combine_commit made = { .tree = tree,
        .parents = { head, job->tip },
        .author = author,
        .committer = committer,
        .message = message,
        .message_len = strlen(message) };
    return combine_write(&job->git, &made, job->commit, err);
}

static int pick(struct job *job, struct combine_conflicts *conflicts, struct carrel_error *err)
{
    char committer[512];
    int r = ask_ident(job, "GIT_COMMITTER_IDENT", committer, sizeof(committer), err);
    if (r < 0)
        return r;

    return combine_pick(&job->git, job->base, job->tip, job->survey.head, committer,
            job->commit, conflicts, err);
}

/* What the user has at the paths of base..tip is one side; it need not be committed. */
static int combine_files(struct job *job, char ours[static OID_MAX], char tree[static OID_MAX],
        struct combine_conflicts *conflicts, struct carrel_error *err)
{
    int r = delta_trees(&job->git, job->base, job->tip, &job->wanted, err);

    if (r == 0)
        r = survey_paths(&job->survey, &job->wanted, err);
    if (r == 0)
        r = survey_tree(&job->survey, ours, err);
    if (r == 0)
        r = combine_trees(&job->git, job->base, ours, job->tip, tree, conflicts, err);
    return r;
}

/* Decides what the result is, and from that which paths change. */
static int combine(struct job *job, struct carrel_error *err)
{
    struct combine_conflicts conflicts = { 0 };
    char ours[OID_MAX];
    char result[OID_MAX] = "";
    int r = 0;

    memcpy(ours, job->survey.head, sizeof(ours));
    switch (job->how) {
    case APPLY_FILES:
        r = combine_files(job, ours, result, &conflicts, err);
        break;
    case APPLY_SQUASH:
        r = combine_trees(&job->git, job->base, ours, job->tip, result, &conflicts, err);
        break;
    case APPLY_MERGE:
        r = merge(job, result, &conflicts, err);
        break;
    case APPLY_CHERRY_PICK:
        r = pick(job, &conflicts, err);
        break;
    }
    if (r == 0)
        r = take_conflicts(job, &conflicts, err);
    if (r == 0 && conflicts.n == 0)
        r = delta_trees(
                &job->git, ours, job->commit[0] ? job->commit : result, &job->changes, err);
    combine_conflicts_finish(&conflicts);
    return r;
}

static int look_around(struct job *job, struct carrel_error *err)
{
    job->looks = calloc(job->changes.n + 1, sizeof(*job->looks));
    job->items = calloc(job->changes.n + 1, sizeof(*job->items));
    if (!job->looks || !job->items)
        return err_set_errno(err, -ENOMEM, "apply");
    for (size_t i = 0; i < job->changes.n; i++) {
        const char *path = job->changes.items[i].path;
        const char *why_not = treepath_why_not(path);
        if (why_not) {
            char shown[256];
            return err_set(err, -EBADMSG,
                    "the result has a path that nobody should have, '%s': %s",
                    str_escape(path, strlen(path), shown, sizeof(shown)), why_not);
        }
        int r = survey_look(job->swap->top, path, &job->looks[i].kind, &job->looks[i].st, err);
        if (r < 0)
            return r;
    }
    return survey_paths(&job->survey, &job->changes, err);
}

/* A file stands where `path` needs a directory: fine if that file goes too. */
static bool is_way_cleared(const struct delta_list *changes, const char *path)
{
    char above[PATH_MAX];

    for (const char *slash = path; (slash = strchr(slash, '/')); slash++) {
        (void)snprintf(above, sizeof(above), "%.*s", (int)(slash - path), path);
        const struct delta *change = delta_find(changes, above);
        if (change && change->new.mode == 0)
            return true;
    }
    return false;
}

/*
 * Decides about one path. Returns why it cannot be, or NULL; *is_item tells whether the work
 * tree has to change there.
 */
static const char *judge(struct job *job, size_t i, bool *is_item)
{
    const struct delta *change = &job->changes.items[i];
    const struct look *look = &job->looks[i];
    const struct delta *present = delta_find(&job->survey.present, change->path);
    const struct delta *staged = delta_find(&job->survey.staged, change->path);
    const struct delta_side *current = present ? &present->new : &change->old;

    *is_item = false;
    if (change->old.mode == DELTA_GITLINK || change->new.mode == DELTA_GITLINK)
        return job->how != APPLY_FILES && change->old.mode == change->new.mode && !staged
                       ? NULL
                       : "a submodule, which carrel does not change";
    if (job->how != APPLY_FILES && staged && !delta_same(&staged->new, &change->new))
        return "changed in your index";
    if (look->kind == SURVEY_MOUNT)
        return "another file system is mounted there";
    if (look->kind == SURVEY_SPECIAL)
        return "not a file in your tree";
    if (delta_same(current, &change->new) && look->kind != SURVEY_NOTHING)
        return NULL; /* it is there already */
    if (look->kind == SURVEY_NOTHING && current->mode != 0) {
        /* git did not miss it, so the user's sparse checkout leaves it out. */
        if (job->how == APPLY_FILES)
            return "not in your sparse checkout";
        if (change->new.mode != 0)
            buf_add(&job->sparse, change->path, strlen(change->path) + 1);
        return NULL;
    }
    if (delta_same(current, &change->new))
        return NULL;
    if (look->kind == SURVEY_BLOCKED && !is_way_cleared(&job->changes, change->path))
        return "a file or link is where a directory should be";

    const struct delta *wanted = delta_find(&job->wanted, change->path);
    bool is_as_in_base = wanted && delta_same(current, &wanted->old);
    if ((present || staged) && !is_as_in_base)
        return present && !staged && present->old.mode == 0 ? "untracked file in the way"
                                                            : "changed in your tree";
    *is_item = true;
    return NULL;
}

static int judge_all(struct job *job, struct carrel_error *err)
{
    int r = look_around(job, err);

    for (size_t i = 0; r == 0 && i < job->changes.n; i++) {
        const struct delta *change = &job->changes.items[i];
        bool is_item;
        const char *why = judge(job, i, &is_item);
        if (why)
            r = add_conflict(job->out, change->path, why, err);
        else if (is_item)
            job->items[job->n_items++] = (struct swap_item){
                .path = change->path,
                .kind = change->new.mode ? SWAP_PUT : SWAP_REMOVE,
                .is_there = job->looks[i].kind == SURVEY_FILE,
                .was = job->looks[i].st,
            };
    }
    if (r == 0 && job->sparse.is_short)
        r = err_set_errno(err, -ENOMEM, "apply");
    return r;
}

static int feed(const struct git *git, const char *const *args, const struct buf *input,
        struct carrel_error *err)
{
    struct git_io io = GIT_IO_INIT;

    if (input->len == 0)
        return 0;
    if (input->is_short)
        return err_set_errno(err, -ENOMEM, "apply");
    io.input = input->data;
    io.input_len = input->len;
    return git_expect(git, args, &io, err);
}

/* The form of `git update-index --index-info`; no mode removes the path. */
static void add_entry(struct buf *text, const struct delta *change)
{
    buf_addf(text, "%o %s\t%s", change->new.mode, change->new.oid, change->path);
    buf_add(text, "", 1);
}

/* Writes the new files, as they are in the repository, where the exchange expects them. */
static int stage(struct job *job, struct carrel_error *err)
{
    AUTO(buf_finish) struct buf entries = BUF_INIT(APPLY_MAX_BYTES);
    AUTO(free) char *index = NULL;
    struct git git = job->git;
    struct git_io io = GIT_IO_INIT;

    for (size_t i = 0; i < job->n_items; i++)
        if (job->items[i].kind == SWAP_PUT)
            add_entry(&entries, delta_find(&job->changes, job->items[i].path));
    if (entries.len == 0)
        return 0;
    if (asprintf(&index, "%s/new-index", job->swap->path) < 0) {
        index = NULL;
        return err_set_errno(err, -ENOMEM, "apply");
    }
    git.index_file = index;
    int r = feed(&git,
            GIT_ARGS("-c", "core.protectHFS=true", "-c", "core.protectNTFS=true",
                    "update-index", "-z", "--index-info"),
            &entries, err);
    git.work_tree = job->swap->new;
    if (r == 0)
        r = git_expect(&git, GIT_ARGS("checkout-index", "-a", "-q"), &io, err);
    return r < 0 ? err_wrap(err, r, "write the new files") : 0;
}

/*
 * The index that will be the user's: as it is, but for the paths that change. As soon as one of
 * the run's entries is in it, only the scratch's git may write it: writing looks at files again
 * that are as new as the index, and would do so by the run's attributes and the user's filters.
 */
static int prepare_index(struct job *job, struct carrel_error *err)
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
    if (r == 0) /* one file: the scratch knows no other that it may be shared with */
        r = git_expect(&user,
                GIT_ARGS("-c", "core.splitIndex=false", "update-index", "--no-split-index"),
                &io, err);
    if (r == 0)
        r = feed(&git, GIT_ARGS("update-index", "-z", "--index-info"), &entries, err);
    if (r == 0)
        r = feed(&git, GIT_ARGS("update-index", "--skip-worktree", "-z", "--stdin"),
                &job->sparse, err);
    return r < 0 ? err_wrap(err, r, "prepare the index") : 0;
}

/*
 * Tells the new index that the new files are what it says, so that the user's next status need
 * not read them. Not with the user's git: that would run filters on what the run made. Status 1
 * only means that some other file is changed.
 */
static int settle_index(struct job *job, struct carrel_error *err)
{
    struct git git = job->git;
    struct git_io io = GIT_IO_INIT;

    git.work_tree = job->repo->top;
    git.index_file = job->swap->index;
    int r = git_run(&git, GIT_ARGS("update-index", "-q", "--refresh"), &io, err);
    return r < 0 ? r : 0;
}

static int move_head(struct job *job, struct carrel_error *err)
{
    struct git git = { .git_dir = job->repo->git_dir, .trust = GIT_AS_USER };
    struct git_io io = GIT_IO_INIT;
    const char *what = job->how == APPLY_MERGE ? "merge" : "cherry-pick";
    char message[128];

    (void)snprintf(message, sizeof(message), "carrel %s %.12s", what, job->tip);
    int r = git_expect(&git,
            GIT_ARGS("update-ref", "-m", message, "HEAD", job->commit, job->survey.head), &io,
            err);
    return r < 0 ? err_wrap(err, r, "move HEAD") : 0;
}

/* Everything is decided and no conflict known. */
static int carry_out(struct job *job, struct carrel_error *err)
{
    bool has_commit = job->commit[0] && strcmp(job->commit, job->survey.head) != 0;
    bool has_index = job->how != APPLY_FILES && (has_commit || job->changes.n > 0);
    size_t culprit = 0;
    int r = stage(job, err);

    if (r == 0 && has_index)
        r = prepare_index(job, err);
    if (r < 0)
        return r;
    r = swap_exchange(
            job->swap, job->items, job->n_items, has_commit ? job->commit : "", &culprit, err);
    if (r == -ESTALE)
        return add_conflict(job->out, job->items[culprit].path,
                "something in your tree is in its way", err);
    if (r == 0 && has_index)
        r = settle_index(job, err);
    if (r == 0 && has_commit)
        r = move_head(job, err);
    if (r == 0)
        r = swap_finish(job->swap, err);
    if (r < 0)
        return r;
    job->out->n_files = job->n_items;
    memcpy(job->out->commit, job->commit, OID_MAX);
    return 0;
}

static int prepare(struct job *job, const char *quarantine, struct carrel_error *err)
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
    return survey_open(
            job->repo, job->scratch, job->swap->path, job->swap->top, &job->survey, err);
}

static int work(struct job *job, const char *quarantine, struct carrel_error *err)
{
    char tree[OID_MAX];
    int r = prepare(job, quarantine, err);

    if (r == 0 && job->how != APPLY_FILES)
        r = survey_tree(&job->survey, tree, err); /* fails when paths are unmerged */
    if (r == 0)
        r = combine(job, err);
    if (r == 0 && job->out->n_conflicts == 0)
        r = judge_all(job, err);
    if (r == 0 && job->out->n_conflicts == 0)
        r = carry_out(job, err);
    return r;
}

int apply_result(const struct repo *repo, const char *quarantine, const char *base,
        const char *tip, enum apply_how how, struct apply_outcome *out,
        struct carrel_error *err)
{
    struct apply_outcome outcome = { 0 };

    if (!name_is_oid(base) || !name_is_oid(tip))
        return err_set(err, -EINVAL, "apply needs full commit ids");
    AUTO(job_finish)
    struct job job = { .repo = repo,
        .base = base,
        .tip = tip,
        .how = how,
        .out = &outcome,
        .survey = { .top = -1 },
        .sparse = BUF_INIT(APPLY_MAX_BYTES) };
    int r = swap_open(repo, &job.swap, err);
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
