/* include.c - copies untracked files into a workspace, and keeps them out of the result. */
#include "core/worktree/include.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/json.h"
#include "core/worktree/worktree.h"
#include "git/git.h"
#include "workspace/harvest/changes.h"
#include "workspace/harvest/harvest.h"
#include "workspace/source/include.h"
#include <carrel/run.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>

/* Beside the run's files, where no run can write. */
#define INCLUDED "carried"
#define SHOWN_BYTES ((size_t)300)

static bool has_include_file(const struct repo *repo)
{
    struct stat st;
    char path[PATH_MAX];

    return snprintf(path, sizeof(path), "%s/.worktreeinclude", repo->top) < (int)sizeof(path) &&
           lstat(path, &st) == 0;
}

/* So that git in the sandbox does not show them as untracked. */
static int exclude_inside(const struct worktree *worktree, const struct include_list *list,
        struct carrel_error *err)
{
    char path[PATH_MAX];
    AUTO(buf_finish) struct buf text = BUF_INIT(64U << 20);

    (void)snprintf(path, sizeof(path), "%s/info/exclude", worktree->checkout->git);
    int r = fd_add_file(AT_FDCWD, path, &text, err);
    if (r < 0)
        return r;
    for (size_t i = 0; i < list->n; i++) {
        buf_add_str(&text, "/");
        for (const char *c = list->paths[i]; *c; c++) {
            if (strchr("\\*?[ \t", *c)) /* else a pattern, or lost at the end of the line */
                buf_add_str(&text, "\\");
            buf_add(&text, c, 1);
        }
        buf_add_str(&text, "\n");
    }
    if (text.is_short)
        return err_set_errno(err, -ENOMEM, "excludes");
    if (mkdirat(worktree->ws->dir, "gitupper/info", 0755) < 0 && errno != EEXIST)
        return err_set_errno(err, -errno, "create '%s/gitupper/info'", worktree->ws->path);
    AUTO(fd_close)
    int fd = openat(worktree->ws->dir, "gitupper/info/exclude",
            O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    r = fd < 0 ? -errno : fd_write_all(fd, text.data, text.len);
    return r < 0 ? err_set_errno(err, r, "write '%s/gitupper/info/exclude'", worktree->ws->path)
                 : 0;
}

static int write_list(const struct worktree *worktree, const struct include_list *list,
        struct carrel_error *err)
{
    AUTO(buf_finish) struct buf text = BUF_INIT(NAMES_MAX_BYTES);

    for (size_t i = 0; i < list->n; i++)
        buf_add(&text, list->paths[i], strlen(list->paths[i]) + 1);
    if (text.is_short)
        return err_set_errno(err, -ENOMEM, "names of included files");
    AUTO(fd_close)
    int fd = openat(worktree->ws->dir, INCLUDED, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    int r = fd < 0 ? -errno : fd_write_all(fd, text.data, text.len);
    return r < 0 ? err_set_errno(err, r, "write '%s/" INCLUDED "'", worktree->ws->path) : 0;
}

/* Before they are copied: what of the user's own files the run is given. */
static int record(const struct worktree_request *q, const struct include_list *list,
        struct carrel_error *err)
{
    AUTO(buf_finish) struct buf detail = BUF_INIT((size_t)64 << 20);
    struct json json = { .out = &detail };

    if (!q->record || list->n == 0)
        return 0;
    json_object(&json, NULL);
    json_array(&json, "paths");
    for (size_t i = 0; i < list->n; i++)
        json_str(&json, NULL, list->paths[i]);
    json_end_array(&json);
    json_end_object(&json);
    if (detail.is_short)
        return err_set_errno(err, -E2BIG, "record the files that are carried along");
    return q->record("files_carried", detail.data, q->record_context, err);
}

/* The names of the first files, and how many more there are. */
static int describe(struct worktree *worktree, const struct include_list *list)
{
    AUTO(buf_finish) struct buf text = BUF_INIT(SHOWN_BYTES + PATH_MAX);
    size_t i = 0;

    for (; i < list->n && text.len < SHOWN_BYTES; i++)
        buf_addf(&text, "%s%.200s", i > 0 ? ", " : "", list->paths[i]);
    if (i < list->n)
        buf_addf(&text, " and %zu more", list->n - i);
    worktree->carried = text.is_short || !text.data ? NULL : strdup(text.data);
    return worktree->carried ? 0 : -ENOMEM;
}

int included_files(const struct worktree_request *q, struct worktree *worktree, int tree,
        struct carrel_error *err)
{
    struct include_list list = { 0 };

    if (!worktree->repo->top || (!q->options->include && !has_include_file(worktree->repo)))
        return 0;
    int r = include_find(worktree->repo, q->options->include, &list, err);
    for (size_t i = 0; r == 0 && i < list.n; i++)
        if (strchr(list.paths[i], '\n'))
            r = err_set(err, -EINVAL, "a file with a newline in its name cannot be included");
    if (r == 0 && list.n > 0)
        r = exclude_inside(worktree, &list, err);
    if (r == 0 && list.n > 0)
        r = write_list(worktree, &list, err);
    if (r == 0)
        r = record(q, &list, err);
    if (r == 0 && list.has_file && list.n > 0 && describe(worktree, &list) < 0)
        r = err_set_errno(err, -ENOMEM, "include files");
    if (r == 0)
        r = include_copy(worktree->repo, &list, tree, q->spec->limits.value[LIMIT_DISK], err);
    include_list_finish(&list);
    return r;
}

int included_read(const struct worktree *worktree, struct names *out, struct carrel_error *err)
{
    int r = fd_add_file(worktree->ws->dir, INCLUDED, &out->text, err);

    return r < 0 ? r : names_split(out, err);
}

/* The names in `added` that are in `included`, as removals. */
static int find_removals(const struct names *added, const struct names *included,
        struct change_list *out, struct carrel_error *err)
{
    int r = 0;

    for (size_t i = 0; r == 0 && i < added->n; i++)
        if (paths_have(included->list, included->n, added->list[i]))
            r = changes_add(out, added->list[i], CHANGE_REMOVE, 0, err);
    changes_sort(&out->all);
    return r;
}

static int commit_without(const struct worktree *worktree, const struct git *git,
        const char *quarantine, const struct changes *removals, const char *tip,
        char snapshot[static OID_MAX], struct carrel_error *err)
{
    const struct harvest_author author = {
        .name = "carrel", .email = "carrel@localhost", .when_s = (int64_t)time(NULL)
    };
    const struct harvest_limits limits = HARVEST_LIMITS_INIT;
    AUTO(buf_finish) struct buf tree = BUF_INIT(OID_MAX + 1);
    char of[OID_MAX + 8];
    struct git_io io = GIT_IO_INIT;

    (void)snprintf(of, sizeof(of), "%s^{tree}", snapshot);
    io.output = &tree;
    int r = git_expect(git, GIT_ARGS("rev-parse", "--verify", of), &io, err);
    if (r < 0)
        return r;
    return harvest_commit_changes(worktree->repo, quarantine, -1, removals,
            tree.data ? tree.data : "", tip, HARVEST_MESSAGE, &author, &limits, snapshot, err);
}

int included_leave_out(const struct worktree *worktree, const char *quarantine, const char *tip,
        char snapshot[static OID_MAX], struct carrel_error *err)
{
    AUTO(names_finish) struct names included = NAMES_INIT;
    AUTO(names_finish) struct names added = NAMES_INIT;
    const struct upper_limits limits = UPPER_LIMITS_INIT;
    struct change_list removals = { .limits = &limits };
    struct git git = harvest_git(worktree->repo, quarantine);
    struct git_io io = GIT_IO_INIT;

    int r = included_read(worktree, &included, err);
    if (r < 0 || included.n == 0 || strcmp(tip, snapshot) == 0)
        return r;
    io.output = &added.text;
    r = git_expect(&git,
            GIT_ARGS("diff-tree", "-r", "-z", "--name-only", "--no-renames", "--diff-filter=A",
                    tip, snapshot),
            &io, err);
    if (r == 0)
        r = names_split(&added, err);
    if (r == 0)
        r = find_removals(&added, &included, &removals, err);
    if (r == 0 && removals.all.n > 0)
        r = commit_without(worktree, &git, quarantine, &removals.all, tip, snapshot, err);
    changes_finish(&removals.all);
    return r;
}
