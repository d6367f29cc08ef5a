/*
 * apply_plan.c - computes the result of an apply, and its conflicts.
 *
 * Nothing is changed here; it only creates objects that nothing refers to.
 */
#include "base/err.h"
#include "base/str.h"
#include "git/combine.h"
#include "git/format/treepath.h"
#include "git/name.h"
#include "workspace/apply/apply_job.h"
#include <errno.h>
#include <limits.h>
#include <stdio.h>

/* Uncommitted work of the user is the reason, if the path was examined. */
static const char *why_not(const struct apply_job *job, const char *path)
{
    const struct delta *present = delta_find(&job->survey.present, path);

    if (!present)
        return "does not apply";
    return present->old.mode == 0 && !delta_find(&job->survey.staged, path)
                   ? "untracked file in the way"
                   : "changed in your tree";
}

static int take_conflicts(
        struct apply_job *job, struct combine_conflicts *conflicts, struct carrel_error *err)
{
    int r = 0;

    for (size_t i = 0; r == 0 && i < conflicts->n; i++)
        r = apply_add_conflict(
                job->out, conflicts->paths[i], why_not(job, conflicts->paths[i]), err);
    return r;
}

/* "Name <address> 123 +0000" of the user. */
static int ask_ident(struct apply_job *job, const char *which, char *line, size_t size,
        struct carrel_error *err)
{
    AUTO(buf_finish) struct buf text = BUF_INIT(size - 1);
    struct git_io io = GIT_IO_INIT;

    io.output = &text;
    int r = git_expect(&job->survey.git, GIT_ARGS("var", which), &io, err);
    if (r < 0)
        return err_wrap(err, r, "read your git identity (set user.name and user.email)");
    (void)snprintf(line, size, "%s", text.data ? text.data : "");
    return 0;
}

/* 1: yes, 0: no. */
static int is_ancestor(
        struct apply_job *job, const char *old, const char *new, struct carrel_error *err)
{
    struct git_io io = GIT_IO_INIT;
    int r = git_run(&job->git, GIT_ARGS("merge-base", "--is-ancestor", old, new), &io, err);

    if (r > 1)
        r = -EIO;
    return r < 0 ? err_wrap(err, r, "compare histories") : r == 0;
}

/* Names the run's branch in the message; any other commit by its id. */
static void merge_message(struct apply_job *job, char *text, size_t size)
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

static int merge(struct apply_job *job, char tree[static OID_MAX],
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

static int pick(
        struct apply_job *job, struct combine_conflicts *conflicts, struct carrel_error *err)
{
    char committer[512];
    int r = ask_ident(job, "GIT_COMMITTER_IDENT", committer, sizeof(committer), err);
    if (r < 0)
        return r;

    return combine_pick(&job->git, job->base, job->tip, job->survey.head, committer,
            job->commit, conflicts, err);
}

/* One side is what the user has at the paths of base..tip, committed or not. */
static int combine_files(struct apply_job *job, char ours[static OID_MAX],
        char tree[static OID_MAX], struct combine_conflicts *conflicts,
        struct carrel_error *err)
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

int apply_combine(struct apply_job *job, struct carrel_error *err)
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
    memcpy(job->result, result, sizeof(result));
    if (r == 0 && conflicts.n == 0)
        r = delta_trees(
                &job->git, ours, job->commit[0] ? job->commit : result, &job->changes, err);
    combine_conflicts_finish(&conflicts);
    return r;
}

static int look_around(struct apply_job *job, struct carrel_error *err)
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
            return err_set(err, -EBADMSG, "the result has an invalid path '%s': %s",
                    str_escape(path, strlen(path), shown, sizeof(shown)), why_not);
        }
        int r = survey_look(job->swap->top, path, &job->looks[i].kind, &job->looks[i].st, err);
        if (r < 0)
            return r;
    }
    return survey_paths(&job->survey, &job->changes, err);
}

/* A file is where `path` needs a directory: fine if that file is removed too. */
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

/* The commit of a submodule can be recorded; its files belong to another repository. */
static const char *judge_submodule(
        const struct apply_job *job, const struct delta *change, const struct delta *staged)
{
    if (change->old.mode != change->new.mode)
        return "a submodule, which carrel neither adds nor removes: commit the run, then git "
               "merge its branch";
    if (job->how == APPLY_FILES)
        return "a submodule that the run moved: 'carrel workspace apply --squash' stages that, "
               "and then 'git submodule update' checks it out";
    return staged ? "a submodule that is changed in your index" : NULL;
}

/*
 * Decides about one path. Returns the conflict, or NULL; *is_item tells whether the work tree
 * must change there.
 */
static const char *judge_one(struct apply_job *job, size_t i, bool *is_item)
{
    const struct delta *change = &job->changes.items[i];
    const struct apply_look *look = &job->looks[i];
    const struct delta *present = delta_find(&job->survey.present, change->path);
    const struct delta *staged = delta_find(&job->survey.staged, change->path);
    const struct delta_side *current = present ? &present->new : &change->old;

    *is_item = false;
    if (change->old.mode == DELTA_GITLINK || change->new.mode == DELTA_GITLINK)
        return judge_submodule(job, change, staged);
    if (job->how != APPLY_FILES && staged && !delta_same(&staged->new, &change->new))
        return "changed in your index";
    if (look->kind == SURVEY_MOUNT)
        return "another file system is mounted there";
    if (look->kind == SURVEY_SPECIAL)
        return "not a file in your tree";
    if (delta_same(current, &change->new) && look->kind != SURVEY_NOTHING)
        return NULL; /* it already is as in the result */
    if (look->kind == SURVEY_NOTHING && current->mode != 0) {
        /* git did not report it missing, so the user's sparse checkout leaves it out. */
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

/*
 * An existing file keeps the permissions that its owner gave it. git records the executable bit
 * only, and that counts if the result changes it. git's record decides, not the file: under
 * core.fileMode=false the file's bit means nothing. Set-user-id is dropped: it was given to the
 * old content.
 */
static mode_t mode_to_keep(const struct delta *change, mode_t was)
{
    mode_t mode = was & 0777;

    if (change->old.mode == change->new.mode || change->old.mode == DELTA_LINK)
        return mode;
    return change->new.mode & 0100 ? mode | (mode & 0444) >> 2 : mode & ~(mode_t)0111;
}

static struct swap_item to_item(const struct apply_job *job, size_t i)
{
    const struct delta *change = &job->changes.items[i];
    const struct apply_look *look = &job->looks[i];

    return (struct swap_item){
        .path = change->path,
        .kind = change->new.mode ? SWAP_PUT : SWAP_REMOVE,
        .is_there = look->kind == SURVEY_FILE,
        .was = look->st,
        .keeps_mode = look->kind == SURVEY_FILE &&S_ISREG(look->st.st_mode) &&
                      change->new.mode && change->new.mode != DELTA_LINK,
        .mode = mode_to_keep(change, look->st.st_mode),
    };
}

int apply_judge(struct apply_job *job, struct carrel_error *err)
{
    int r = look_around(job, err);

    for (size_t i = 0; r == 0 && i < job->changes.n; i++) {
        const struct delta *change = &job->changes.items[i];
        bool is_item;
        const char *why = judge_one(job, i, &is_item);
        if (why)
            r = apply_add_conflict(job->out, change->path, why, err);
        else if (is_item)
            job->items[job->n_items++] = to_item(job, i);
        else
            job->n_submodules += change->new.mode == DELTA_GITLINK;
    }
    if (r == 0 && job->sparse.is_short)
        r = err_set_errno(err, -ENOMEM, "apply");
    return r;
}
