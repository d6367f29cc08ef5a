/* find.c - lists workspaces, and finds the one that is meant. */
#include "core/harvest/find.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/path.h"
#include "base/str.h"
#include "core/harvest/hold.h"
#include "core/state/state.h"
#include "workspace/renew.h"
#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <unistd.h>

const char *carrel_workspace_state_name(enum carrel_workspace_state state)
{
    static const char names[][16] = {
        [CARREL_WORKSPACE_CREATING] = "creating",
        [CARREL_WORKSPACE_RUNNING] = "running",
        [CARREL_WORKSPACE_INTERRUPTED] = "interrupted",
        [CARREL_WORKSPACE_KEPT] = "kept",
        [CARREL_WORKSPACE_APPLIED] = "applied",
        [CARREL_WORKSPACE_COMMITTED] = "committed",
    };

    return state < ARRAY_LEN(names) ? names[state] : "unknown";
}

static enum carrel_workspace_state state_of(const struct workspace *ws)
{
    if (ws->lock < 0 && workspace_is_in_use(ws)) /* else it is this process that uses it */
        return CARREL_WORKSPACE_RUNNING;
    switch (ws->phase) {
    case WORKSPACE_CREATING:
        return CARREL_WORKSPACE_CREATING;
    case WORKSPACE_READY:
        return CARREL_WORKSPACE_INTERRUPTED;
    case WORKSPACE_FINISHED:
        break;
    }
    return ws->is_published            ? CARREL_WORKSPACE_COMMITTED
           : workspaces_is_applied(ws) ? CARREL_WORKSPACE_APPLIED
                                       : CARREL_WORKSPACE_KEPT;
}

static const char *or_null(const char *text)
{
    return text[0] ? text : NULL;
}

void workspaces_view(const struct workspace *ws, char name[static WORKSPACE_NAME_MAX],
        struct carrel_workspace_info *out)
{
    (void)snprintf(name, WORKSPACE_NAME_MAX, "%s/%s", ws->task, ws->run);
    *out = (struct carrel_workspace_info){
        .size = sizeof(*out),
        .name = name,
        .task = ws->task,
        .run = ws->run,
        .state = state_of(ws),
        .branch = or_null(ws->branch),
        .base = or_null(ws->base),
        .tip = or_null(ws->tip),
        .snapshot = or_null(ws->snapshot),
        .repository = ws->repo,
        .top = ws->top,
        .path = ws->path,
        .opened_at = ws->is_opened ? ws->opened_at : NULL,
        .note = or_null(ws->note),
        .tree = ws->mode == WORKSPACE_COPY ? CARREL_TREE_COPY : CARREL_TREE_OVERLAY,
        .is_folder = ws->is_folder,
        .is_locked = ws->is_user_locked,
        .is_open = ws->is_opened,
        .is_committed = ws->is_published,
        .n_other_commits = ws->n_other_commits,
        .created_s = ws->created_s,
    };
}

void workspace_list_free(struct workspace_list *list)
{
    if (!list)
        return;
    for (size_t i = 0; i < list->n; i++)
        workspace_free(list->items[i]);
    free(list->items);
    free(list);
}

static int collect(struct workspace **ws, void *context)
{
    struct workspace_list *list = context;
    struct workspace **items = reallocarray(
            list->items, list->n + 1, sizeof(struct workspace *)); /* of pointers */

    if (!items)
        return -ENOMEM;
    list->items = items;
    if (workspaces_is_withdrawn(*ws))
        (*ws)->is_published = false;
    items[list->n++] = ptr_steal(ws);
    return 0;
}

static int by_age(const void *a, const void *b)
{
    const struct workspace *x = *(struct workspace *const *)a;
    const struct workspace *y = *(struct workspace *const *)b;

    if (x->created_s != y->created_s)
        return x->created_s < y->created_s ? -1 : 1;
    if (x->created_ns != y->created_ns)
        return x->created_ns < y->created_ns ? -1 : 1;
    const int by_run = strcmp(x->run, y->run);
    return by_run ? by_run : strcmp(x->task, y->task);
}

static int open_repo(const char *dir, struct repo **out, struct carrel_error *err)
{
    int r = repo_open(dir, out, err);

    return r == -ENOENT ? err_from(err, r, CARREL_FROM_CALLER) : r;
}

int workspaces_list(const char *repo_dir, struct workspace_list **out, struct carrel_error *err)
{
    char state[PATH_MAX];
    AUTO(repo_free) struct repo *repo = NULL;
    AUTO(workspace_list_free) struct workspace_list *list = calloc(1, sizeof(*list));

    if (!list)
        return err_set_errno(err, -ENOMEM, "workspaces");
    int r = state_path(state, sizeof(state), err);
    if (r == 0 && repo_dir)
        r = open_repo(repo_dir, &repo, err);
    if (r == 0)
        r = workspace_each(state, repo, collect, list, err);
    if (r < 0)
        return r;
    if (list->n > 1)
        qsort(list->items, list->n, sizeof(struct workspace *), by_age);
    *out = ptr_steal(&list);
    return 0;
}

int carrel_workspace_each(const char *dir,
        int (*visit)(const struct carrel_workspace_info *info, void *context), void *context,
        struct carrel_error *err)
{
    AUTO(workspace_list_free) struct workspace_list *list = NULL;

    err = ERR_OR_IGNORED(err);
    int r = workspaces_list(dir, &list, err);
    for (size_t i = 0; r == 0 && i < list->n; i++) {
        struct carrel_workspace_info info;
        char name[WORKSPACE_NAME_MAX];
        workspaces_view(list->items[i], name, &info);
        r = visit(&info, context);
    }
    return r;
}

void carrel_workspace_free(struct carrel_workspace *workspace)
{
    if (!workspace)
        return;
    workspace_free(workspace->ws);
    free(workspace);
}

const struct carrel_workspace_info *carrel_workspace_info(
        const struct carrel_workspace *workspace)
{
    return &workspace->info;
}

/* Of several workspaces of that run, the one of the repository here. */
static bool find_here(const char *run, const char *repo_dir, struct workspace **out)
{
    AUTO(workspace_list_free) struct workspace_list *list = NULL;
    size_t n = 0;

    if (workspaces_list(repo_dir, &list, NULL) < 0)
        return false;
    for (size_t i = 0; i < list->n; i++) {
        if (strcmp(list->items[i]->run, run) != 0)
            continue;
        n++;
        workspace_free(*out);
        *out = ptr_steal(&list->items[i]);
    }
    return n == 1;
}

static int find_named(
        const char *word, const char *dir, struct workspace **out, struct carrel_error *err)
{
    char state[PATH_MAX];
    char shown[64];

    if (!word[0] || strlen(word) >= WORKSPACE_NAME_MAX)
        return err_set(err, -EINVAL,
                "'%s' is not the name of a workspace; expected RUN or TASK/RUN",
                str_escape(word, strlen(word), shown, sizeof(shown)));
    int r = state_path(state, sizeof(state), err);
    if (r < 0)
        return r;
    AUTO(workspace_free) struct workspace *ws = NULL;
    r = workspace_find(state, word, &ws, err);
    if (r < 0 && !(r == -EEXIST && find_here(word, dir, &ws)))
        return r == -ENOENT || r == -EEXIST ? err_from(err, r, CARREL_FROM_CALLER) : r;
    if (workspaces_is_withdrawn(ws))
        ws->is_published = false;
    *out = ptr_steal(&ws);
    return 0;
}

/* Whether it belongs to the folder that `dir` is, or lies in. */
static bool is_of_folder(const struct workspace *ws, const char *dir)
{
    return ws->is_folder && ws->top && path_is_clean(ws->top) && path_is_below(dir, ws->top);
}

/* Of those in the list, or with `folder` of those that belong to it. */
static int take_the_only(struct workspace_list *list, const char *folder,
        struct workspace **out, struct carrel_error *err)
{
    AUTO(buf_finish) struct buf names = BUF_INIT(256);
    size_t found = 0;
    size_t n = 0;

    for (size_t i = 0; i < list->n; i++) {
        const struct workspace *ws = list->items[i];
        if (folder && !is_of_folder(ws, folder))
            continue;
        found = i;
        if (++n <= 4)
            buf_addf(&names, "%s%s/%s", n > 1 ? ", " : "", ws->task, ws->run);
    }
    if (n == 0) {
        (void)err_set(err, -ENOENT, "%s",
                folder ? "no workspace was named, and the current directory is in no git "
                         "repository; 'carrel workspace list' shows those there are"
                       : "this repository has no workspace; 'carrel run --workspace -- "
                         "PROGRAM' makes one, and 'carrel workspace list --all' shows those "
                         "of other repositories");
        return err_from(err, -ENOENT, CARREL_FROM_CALLER);
    }
    if (n > 1)
        return err_set(err, -EINVAL, "this %s has %zu workspaces; name one of them: %s%s",
                folder ? "folder" : "repository", n, names.data ? names.data : "",
                n > 4 ? ", ..." : "");
    *out = ptr_steal(&list->items[found]);
    return 0;
}

static int find_only(const char *dir, struct workspace **out, struct carrel_error *err)
{
    AUTO(workspace_list_free) struct workspace_list *list = NULL;
    char cwd[PATH_MAX];
    char folder[PATH_MAX];

    int r = workspaces_list(dir, &list, err);
    if (r == 0)
        return take_the_only(list, NULL, out, err);
    if (r != -ENOENT)
        return r;
    if (!getcwd(cwd, sizeof(cwd)))
        return err_set_errno(err, -errno, "current directory");
    if (!path_absolute(cwd, dir, folder, sizeof(folder)))
        return err_set_errno(err, -ENAMETOOLONG, "'%s'", dir);
    r = workspaces_list(NULL, &list, err);
    return r < 0 ? r : take_the_only(list, folder, out, err);
}

int carrel_workspace_find(const char *word, const char *dir, struct carrel_workspace **out,
        struct carrel_error *err)
{
    err = ERR_OR_IGNORED(err);
    AUTO(carrel_workspace_free)
    struct carrel_workspace *workspace = calloc(1, sizeof(*workspace));
    if (!workspace)
        return err_set_errno(err, -ENOMEM, "workspace");
    if (!dir)
        dir = ".";
    int r = word ? find_named(word, dir, &workspace->ws, err)
                 : find_only(dir, &workspace->ws, err);
    if (r < 0)
        return r;
    assert(workspace->ws);
    workspaces_view(workspace->ws, workspace->name, &workspace->info);
    *out = ptr_steal(&workspace);
    return 0;
}
