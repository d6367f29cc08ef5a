/* find.c - workspaces by name, and all of them. */
#include "base/err.h"
#include "base/fd.h"
#include "base/store.h"
#include "workspace/record.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>

/* None, and 0, where nothing was ever made. */
static int open_store(const char *state, struct store *store, struct carrel_error *err)
{
    char path[PATH_MAX];

    if (snprintf(path, sizeof(path), "%s/workspaces", state) >= (int)sizeof(path))
        return err_set_errno(err, -ENAMETOOLONG, "'%s/workspaces'", state);
    int r = store_open(path, store, err);
    return r == -ENOENT ? 0 : r;
}

/* "TASK/RUN" of all. */
static int list(const struct store *store, struct store_names *names, struct carrel_error *err)
{
    return store->top < 0 ? 0 : store_list(store, STORE_GROUPS, names, err);
}

/* Whether both parts can be ids: runs/ is none, see exported.h. */
static bool is_id(const char *name)
{
    char task[NAME_ID_MAX + 1];
    size_t len = strcspn(name, "/");

    (void)snprintf(task, sizeof(task), "%.*s", (int)len, name);
    return len <= NAME_ID_MAX && name[len] == '/' && name_check_id(task, "task", NULL) == 0 &&
           name_check_id(name + len + 1, "run", NULL) == 0;
}

/* -ENOENT: there is none, or not any more. */
static int load(const struct store *store, const char *name, struct workspace **out,
        struct carrel_error *err)
{
    int fd = openat(store->top, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    if (fd < 0)
        return err_set_errno(err, -errno, "open '%s/%s'", store->path, name);
    return record_load(fd, store->path, name, out, err);
}

int workspace_each(const char *state, const struct repo *repo,
        int (*each)(struct workspace **ws, void *context), void *context,
        struct carrel_error *err)
{
    AUTO(store_finish) struct store store = STORE_INIT;
    AUTO(store_names_finish) struct store_names names = { 0 };
    int r = open_store(state, &store, err);

    if (r == 0)
        r = list(&store, &names, err);
    for (size_t i = 0; r >= 0 && i < names.n; i++) {
        AUTO(workspace_free) struct workspace *ws = NULL;
        if (!is_id(names.list[i]))
            continue;
        r = load(&store, names.list[i], &ws, err);
        if (r == -ENOENT || r == -ENOTDIR || r == -ELOOP)
            r = 0; /* discarded meanwhile, or not made by carrel */
        else if (r == 0 && (!repo || strcmp(ws->repo, repo->common_dir) == 0))
            r = each(&ws, context);
    }
    return r < 0 ? r : 0;
}

/* The workspaces that have the run, and the nearest. */
struct search {
    const char *run;
    const char *found; /* the first */
    char all[256];     /* for the message */
    size_t n;
    const char *nearest; /* shares the longest beginning */
    size_t shared;
};

static size_t common_prefix(const char *a, const char *b)
{
    size_t n = 0;

    while (a[n] && a[n] == b[n])
        n++;
    return n;
}

static void look(struct search *search, const char *name)
{
    const char *run = strchr(name, '/') + 1;
    size_t shared = common_prefix(run, search->run);
    size_t len = strlen(search->all);

    if (strcmp(run, search->run) == 0) {
        if (search->n++ == 0)
            search->found = name;
        (void)snprintf(search->all + len, sizeof(search->all) - len, "%s%s",
                len > 0 ? ", " : "", name);
    }
    if (shared > search->shared) {
        search->shared = shared;
        search->nearest = name;
    }
}

static int complain(const struct search *search, const char *name, struct carrel_error *err)
{
    /* "R-" begins every id that carrel makes: only more than that is a likeness. */
    if (search->shared > 2)
        return err_set(err, -ENOENT, "there is no workspace '%s'; the nearest is '%s'", name,
                search->nearest);
    return err_set(err, -ENOENT,
            "there is no workspace '%s'; 'carrel workspace list' shows those there are", name);
}

static int split_name(const char *name, char task[static NAME_ID_MAX + 1], const char **run,
        struct carrel_error *err)
{
    const char *slash = strchr(name, '/');
    int r = 0;

    task[0] = '\0';
    *run = slash ? slash + 1 : name;
    if (slash) {
        (void)snprintf(task, NAME_ID_MAX + 1, "%.*s",
                (int)(slash - name > NAME_ID_MAX ? NAME_ID_MAX : slash - name), name);
        r = name_check_id(task, "task", err);
    }
    return r < 0 ? r : name_check_id(*run, "run", err);
}

int workspace_find(
        const char *state, const char *name, struct workspace **out, struct carrel_error *err)
{
    AUTO(store_finish) struct store store = STORE_INIT;
    AUTO(store_names_finish) struct store_names names = { 0 };
    struct search search = { .n = 0 };
    char task[NAME_ID_MAX + 1];
    int r = split_name(name, task, &search.run, err);

    if (r == 0)
        r = open_store(state, &store, err);
    if (r == 0 && task[0] && store.top >= 0 && load(&store, name, out, NULL) == 0)
        return 0;
    if (r == 0)
        r = list(&store, &names, err);
    if (r < 0)
        return r;
    for (size_t i = 0; i < names.n; i++)
        if (is_id(names.list[i]))
            look(&search, names.list[i]);
    if (task[0] || search.n == 0)
        return complain(&search, name, err);
    if (search.n > 1)
        return err_set(err, -EEXIST, "there is more than one run '%s': say which (%s)", name,
                search.all);
    r = load(&store, search.found, out, err);
    return r == -ENOENT ? err_set(err, r, "there is no workspace '%s' any more", name) : r;
}
