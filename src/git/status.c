/* status.c - a copy of the index, and git's status of it. */
#include "git/status.h"
#include "base/err.h"
#include "base/fd.h"
#include "git/attributes.h"
#include "git/beneath.h"
#include "git/combine.h"
#include "git/gitdir.h"
#include "git/name.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/sendfile.h>
#include <unistd.h>

#define SURVEY_MAX_BYTES ((size_t)1 << 30)

void survey_finish(struct survey *survey)
{
    free(survey->index);
    delta_list_finish(&survey->staged);
    delta_list_finish(&survey->present);
    *survey = (struct survey){ .top = -1 };
}

static int copy_index(const struct repo *repo, const char *to)
{
    AUTO(fd_close) int in = gitdir_open_file_in(repo->git_dir, "index");
    if (in < 0)
        return in == -ENOENT ? 0 : in; /* no index yet: nothing was ever added */
    AUTO(fd_close) int out = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (out < 0)
        return -errno;
    for (;;) {
        ssize_t n = sendfile(out, in, NULL, 1 << 20);
        if (n < 0)
            return -errno;
        if (n == 0)
            return 0;
    }
}

int survey_copy_index(const struct repo *repo, const char *to, struct carrel_error *err)
{
    int r = copy_index(repo, to);

    return r < 0 ? err_set_errno(err, r, "copy the index of '%s'", repo->git_dir) : 0;
}

/* The user's commit, or the empty tree if there is none yet. */
static int find_head(struct survey *survey, struct carrel_error *err)
{
    AUTO(buf_finish) struct buf text = BUF_INIT(4096);
    struct git_io io = GIT_IO_INIT;

    io.output = &text;
    int r = git_run(
            &survey->git, GIT_ARGS("rev-parse", "-q", "--verify", "HEAD^{commit}"), &io, err);
    if (r < 0)
        return r;
    survey->has_commit = r == 0 && text.data;
    if (!survey->has_commit)
        return combine_ask_oid(&survey->git,
                GIT_ARGS("hash-object", "-t", "tree", "-w", "--stdin"), survey->head, err);
    (void)snprintf(survey->head, OID_MAX, "%.*s", (int)strcspn(text.data, "\n"), text.data);
    return name_is_oid(survey->head) ? 0 : err_set(err, -EBADMSG, "git does not name HEAD");
}

int survey_open(const struct repo *repo, const struct scratch *scratch, const char *dir,
        int top, struct survey *out, struct carrel_error *err)
{
    struct survey survey = { .top = top };
    struct git_io io = GIT_IO_INIT;

    if (asprintf(&survey.index, "%s/survey-index", dir) < 0)
        return err_set_errno(err, -ENOMEM, "look at your tree");
    int r = attributes_check(repo, top, err);
    if (r == 0)
        r = survey_copy_index(repo, survey.index, err);
    if (r < 0) {
        survey_finish(&survey);
        return r;
    }
    survey.git = repo_user_git(repo);
    survey.git.git_dir = repo->git_dir;
    survey.git.work_tree = repo->top;
    survey.git.index_file = survey.index;
    survey.git.object_dir = scratch->objects;

    /*
     * --really-refresh: a file that is assumed unchanged may have changed. Status 1 only means
     * that some file has changed.
     */
    r = git_run(&survey.git,
            GIT_ARGS("-c", "core.splitIndex=false", "update-index", "--no-split-index", "-q",
                    "--really-refresh"),
            &io, err);
    if (r > 1)
        r = -EIO;
    if (r >= 0)
        r = find_head(&survey, err);
    if (r == 0)
        r = delta_index(&survey.git, survey.head, &survey.staged, err);
    if (r < 0) {
        survey_finish(&survey);
        return err_wrap(err, r, "look at '%s'", repo->top);
    }
    *out = survey;
    return 0;
}

int survey_look(int top, const char *path, enum survey_kind *kind, struct stat *st,
        struct carrel_error *err)
{
    int r = beneath_stat(top, path, st);

    if (r == -ENOENT)
        *kind = SURVEY_NOTHING;
    else if (r == -ENOTDIR || r == -ELOOP)
        *kind = SURVEY_BLOCKED;
    else if (r == -EXDEV)
        *kind = SURVEY_MOUNT;
    else if (r < 0)
        return err_set_errno(err, r, "look at '%s' in your tree", path);
    else if (S_ISREG(st->st_mode) || S_ISLNK(st->st_mode))
        *kind = SURVEY_FILE;
    else
        *kind = S_ISDIR(st->st_mode) ? SURVEY_DIRECTORY : SURVEY_SPECIAL;
    return 0;
}

/*
 * Paths that git can read itself are added to `paths`; paths that are certainly not files, to
 * `gone`.
 */
static int sort_out(const struct survey *survey, const struct delta_list *list,
        struct buf *paths, struct buf *gone, struct carrel_error *err)
{
    for (size_t i = 0; i < list->n; i++) {
        const struct delta *item = &list->items[i];
        enum survey_kind kind = SURVEY_NOTHING;
        struct stat st;
        int r = survey_look(survey->top, item->path, &kind, &st, err);
        if (r < 0)
            return r;
        if (item->old.mode == DELTA_GITLINK)
            continue; /* its directory is another repository */
        if (kind == SURVEY_FILE || kind == SURVEY_NOTHING) {
            buf_add(paths, item->path, strlen(item->path) + 1);
        } else {
            buf_addf(gone, "0 %0*d\t%s", (int)strlen(item->old.oid), 0, item->path);
            buf_add(gone, "", 1);
        }
    }
    if (paths->is_short || gone->is_short)
        return err_set_errno(err, -ENOMEM, "list the paths to look at");
    return 0;
}

int survey_paths(struct survey *survey, const struct delta_list *list, struct carrel_error *err)
{
    AUTO(buf_finish) struct buf paths = BUF_INIT(SURVEY_MAX_BYTES);
    AUTO(buf_finish) struct buf gone = BUF_INIT(SURVEY_MAX_BYTES);
    int r = sort_out(survey, list, &paths, &gone, err);

    if (r == 0)
        r = git_feed(&survey->git, GIT_ARGS("update-index", "-z", "--index-info"), &gone, err);
    if (r == 0)
        r = git_feed(&survey->git,
                GIT_ARGS("-c", "core.safecrlf=false", "update-index", "--add", "--remove",
                        "--replace", "--ignore-skip-worktree-entries", "-z", "--stdin"),
                &paths, err);
    if (r < 0)
        return err_wrap(err, r, "compare your files");
    delta_list_finish(&survey->present);
    return delta_index(&survey->git, survey->head, &survey->present, err);
}

int survey_tree(
        const struct survey *survey, char tree[static OID_MAX], struct carrel_error *err)
{
    int r = combine_ask_oid(&survey->git, GIT_ARGS("write-tree"), tree, err);

    return r < 0 ? err_wrap(err, r, "record your tree (is a merge unfinished?)") : 0;
}
