/* workplace.c - making and reopening a run's place to work. */
#include "core/workplace.h"
#include "base/err.h"
#include "base/fd.h"
#include "core/cut.h"
#include "core/fuse.h"
#include "core/permit_paths.h"
#include "core/prepare.h"
#include "core/restack.h"
#include "core/state.h"
#include "core/tree_kind.h"
#include "workspace/dirty.h"
#include "workspace/folder.h"
#include "workspace/name.h"
#include "workspace/private.h"
#include "workspace/renew.h"
#include "workspace/stack.h"
#include <assert.h>
#include <carrel/run.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

/* Text that lives as long as the workplace. NULL when memory is gone. */
static char *text(struct workplace *place, const char *fmt, ...)
        __attribute__((format(printf, 2, 3)));
static char *text(struct workplace *place, const char *fmt, ...)
{
    char *string = NULL;
    va_list ap;

    char **strings =
            reallocarray(place->strings, place->n_strings + 1, sizeof(*place->strings));
    if (!strings)
        return NULL;
    place->strings = strings;
    va_start(ap, fmt);
    int len = vasprintf(&string, fmt, ap);
    va_end(ap);
    if (len < 0)
        return NULL;
    return place->strings[place->n_strings++] = string;
}

static int add_mount(
        struct workplace *place, struct sandbox_mount mount, struct carrel_error *err)
{
    struct sandbox_mount *mounts =
            reallocarray(place->mounts, place->n_mounts + 1, sizeof(*place->mounts));

    if (mounts)
        place->mounts = mounts;
    if (!mounts || !mount.target || (!mount.source && !mount.overlay))
        return err_set_errno(err, -ENOMEM, "workspace mounts");
    mounts[place->n_mounts++] = mount;
    return 0;
}

static int bind(struct workplace *place, const char *source, const char *target,
        enum access access, struct carrel_error *err)
{
    return add_mount(place,
            (struct sandbox_mount){ .source = source, .target = target, .access = access },
            err);
}

/*
 * An object directory may name others by paths of the host, which mean nothing inside and which
 * we mount ourselves; git would complain of each. So its list is covered by an empty file.
 */
static int cover_alternates(struct workplace *place, const char *objects, const char *target,
        struct carrel_error *err)
{
    struct stat st;
    char *list = text(place, "%s/info/alternates", objects);
    char *empty = text(place, "%s/empty", place->ws->path);

    if (!list || !empty)
        return err_set_errno(err, -ENOMEM, "workspace mounts");
    if (stat(list, &st) < 0)
        return errno == ENOENT ? 0 : err_set_errno(err, -errno, "'%s'", list);
    AUTO(fd_close)
    int fd = openat(place->ws->dir, "empty", O_RDONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0644);
    if (fd < 0)
        return err_set_errno(err, -errno, "'%s'", empty);
    return bind(place, empty, text(place, "%s/info/alternates", target), ACCESS_READ_ONLY, err);
}

static int mount_objects(struct workplace *place, struct carrel_error *err)
{
    char cut[PATH_MAX];
    int r = 0;

    if (place->ws->is_cut) {
        r = cut_path(place, cut, sizeof(cut), err);
        return r < 0 ? r
                     : bind(place, text(place, "%s", cut), PRIVATE_OBJECTS, ACCESS_READ_ONLY,
                               err);
    }
    for (size_t i = 0; r == 0 && place->repo->objects[i]; i++) {
        const char *target = i == 0 ? PRIVATE_OBJECTS : text(place, PRIVATE_OBJECTS "-%zu", i);
        r = bind(place, place->repo->objects[i], target, ACCESS_READ_ONLY, err);
        if (r == 0)
            r = cover_alternates(place, place->repo->objects[i], target, err);
    }
    return r;
}

/* Submodules have object directories of their own. */
static int mount_module_objects(struct workplace *place, struct carrel_error *err)
{
    char *const *modules = place->checkout->module_objects;
    int r = 0;

    for (size_t i = 0; r == 0 && modules && modules[i]; i++)
        r = bind(place, modules[i], text(place, CHECKOUT_MODULE_OBJECTS "/%zu", i),
                ACCESS_READ_ONLY, err);
    return r;
}

static int overlay(struct workplace *place, struct sandbox_overlay *made, const char *target,
        const char *const *lower, const char *upper, const char *work, struct carrel_error *err)
{
    *made = (struct sandbox_overlay){
        .lower = lower, .space = place->ws->path, .upper = upper, .work = work
    };
    return add_mount(place,
            (struct sandbox_mount){
                    .target = target, .access = ACCESS_READ_WRITE, .overlay = made },
            err);
}

/* Adds <state>/layers/<id>/<part> of each layer that the workspace lies on. */
static int add_layers(struct workplace *place, const char *part, const char **list, size_t *n,
        struct carrel_error *err)
{
    char ids[STACK_MAX][STACK_ID_MAX];

    int found = stack_list(place->ws, ids);
    if (found < 0)
        return err_set(err, found, "its record has a damaged list of layers");
    for (int i = 0; i < found; i++) {
        list[*n] = text(place, "%s/layers/%s/%s", place->state, ids[i], part);
        if (!list[(*n)++])
            return err_set_errno(err, -ENOMEM, "workspace mounts");
    }
    return 0;
}

static int mount_tree(struct workplace *place, struct carrel_error *err)
{
    const struct workspace *ws = place->ws;
    size_t n = 0;
    size_t at = 0;

    while (place->checkout->lower[n])
        n++;
    place->lower = calloc(n + STACK_MAX + 2, sizeof(*place->lower));
    if (!place->lower)
        return err_set_errno(err, -ENOMEM, "workspace mounts");
    int r = add_layers(place, "upper", place->lower, &at, err);
    if (r < 0)
        return r;
    if (ws->setup[0]) {
        place->lower[at] = text(place, "%s/layers/%s/upper", place->state, ws->setup);
        if (!place->lower[at++])
            return err_set_errno(err, -ENOMEM, "workspace mounts");
    }
    for (size_t i = 0; i < n; i++)
        place->lower[at + i] = place->checkout->lower[i];
    if (ws->mode != WORKSPACE_OVERLAY)
        return bind(place, text(place, "%s/tree", ws->path), PRIVATE_WORK_TREE,
                ACCESS_READ_WRITE, err);
    return overlay(place, &place->tree, PRIVATE_WORK_TREE, place->lower, "upper", "work", err);
}

static int list_git_lower(struct workplace *place, struct carrel_error *err)
{
    size_t at = 0;

    place->git_lower = calloc(STACK_MAX + 2, sizeof(*place->git_lower));
    if (!place->git_lower)
        return err_set_errno(err, -ENOMEM, "workspace mounts");
    int r = add_layers(place, "gitupper", place->git_lower, &at, err);
    place->git_lower[at] = place->checkout->git;
    return r;
}

static int mount_git(struct workplace *place, struct carrel_error *err)
{
    const struct workspace *ws = place->ws;
    size_t bottom = 0;

    while (place->checkout->lower[bottom + 1])
        bottom++;
    int r = list_git_lower(place, err);
    if (r < 0)
        return r;
    r = ws->mode == WORKSPACE_OVERLAY ? overlay(place, &place->git, PRIVATE_GIT_DIR,
                                                place->git_lower, "gitupper", "gitwork", err)
                                      : bind(place, text(place, "%s/gitupper", ws->path),
                                                PRIVATE_GIT_DIR, ACCESS_READ_WRITE, err);
    if (r == 0)
        r = mount_objects(place, err);
    if (r == 0 && !ws->is_cut)
        r = mount_module_objects(place, err);
    if (r == 0)
        r = bind(place, text(place, "%s/.git", place->checkout->lower[bottom]),
                PRIVATE_WORK_TREE "/.git", ACCESS_READ_ONLY, err);
    return r;
}

static void forget_mounts(struct workplace *place)
{
    free(place->mounts);
    free(place->lower);
    free(place->git_lower);
    place->mounts = NULL;
    place->n_mounts = 0;
    place->lower = place->git_lower = NULL;
}

static int make_mounts(struct workplace *place, struct carrel_error *err)
{
    int r = mount_tree(place, err);

    if (r == 0 && place->ws->mode == WORKSPACE_FUSE) {
        r = fuse_mount(place, err);
        place->is_fuse = r == 0;
    }
    return r == 0 && !place->ws->is_folder ? mount_git(place, err) : r;
}

int workplace_remount(struct workplace *place, struct carrel_error *err)
{
    forget_mounts(place);
    return make_mounts(place, err);
}

/* Lets git ask us what changed: see monitor.h. It knows of one upper directory and no layers.
 */
static int mount_monitor(struct workplace *place, const char *program, struct carrel_error *err)
{
    assert(place);
    const struct workspace *ws = place->ws;

    if (!program || ws->mode != WORKSPACE_OVERLAY || ws->is_folder || ws->layers ||
            !place->checkout->has_monitor)
        return 0;
    int r = bind(place, text(place, "%s", program), PRIVATE_MONITOR, ACCESS_READ_ONLY, err);
    if (r == 0)
        r = bind(place, text(place, "%s/upper", ws->path), PRIVATE_CHANGES, ACCESS_READ_ONLY,
                err);
    if (r == 0 && ws->setup[0])
        r = bind(place, place->lower[0], PRIVATE_LAYER, ACCESS_READ_ONLY, err);
    if (r == 0)
        r = bind(place, text(place, "%s/monitor", place->checkout->path),
                PRIVATE_MONITOR_CONFIG, ACCESS_READ_ONLY, err);
    return r;
}

static struct workplace *place_new(struct carrel_error *err)
{
    struct workplace *place = calloc(1, sizeof(*place));

    if (!place)
        (void)err_set_errno(err, -ENOMEM, "workspace");
    else if (state_path(place->state, sizeof(place->state), err) < 0 ||
             state_make(place->state, err) < 0)
        workplace_free(ptr_steal(&place));
    return place;
}

/* The commit to start from: a revision, or the user's uncommitted work as a commit. */
static int find_base(const struct repo *repo, const struct carrel_workspace_options *o,
        char base[static OID_MAX], struct carrel_error *err)
{
    if (o->is_dirty && o->base)
        return err_set(err, -EINVAL,
                "a run starts from uncommitted work (--dirty) or from a revision (--base), not "
                "both");
    return o->is_dirty ? dirty_commit(repo, base, err) : repo_resolve(repo, o->base, base, err);
}

/* What the run is to work on, if it may be shown. */
static int open_source(const struct workplace_request *q, struct workplace *place,
        char base[static OID_MAX], struct carrel_error *err)
{
    const struct carrel_workspace_options *o = q->options;
    const char *path = o->repo ? o->repo : ".";

    if (o->is_folder) {
        int r = permit_folder(q->policy, path, err);
        return r < 0 ? r : folder_snapshot(place->state, path, &place->repo, base, err);
    }
    int r = repo_open(path, &place->repo, err);
    if (r == 0)
        r = permit_repo(q->policy, place->repo, err);
    return r < 0 ? r : find_base(place->repo, o, base, err);
}

static int open_new(
        const struct workplace_request *q, struct workplace *place, struct carrel_error *err)
{
    const struct carrel_workspace_options *o = q->options;
    char base[OID_MAX];
    char setup[OID_MAX] = "";
    struct workspace_request request = {
        .state = place->state,
        .task = o->task ? o->task : q->task,
        .run = o->run ? o->run : q->run,
        .base = base,
        .is_folder = o->is_folder,
        .is_cut = o->history == CARREL_HISTORY_CUT,
        .setup = setup,
    };

    int r = name_check_id(request.task, "task", err);
    if (r == 0)
        r = name_check_id(request.run, "run", err);
    if (r == 0)
        r = open_source(q, place, base, err);
    if (r == 0)
        r = tree_kind_choose(q, place->state, &request.mode, err);
    if (r == 0)
        r = prepare_checkout(q, place->state, place->repo, base, &place->checkout, err);
    if (r == 0 && o->setup)
        r = prepare_setup(q, place, base, setup, err);
    if (r < 0)
        return r;
    request.repo = place->repo;
    request.checkout = place->checkout;
    r = workspace_create(&request, &place->ws, err);
    if (r == 0)
        r = prepare_tree(q, place, err);
    if (r == 0)
        r = make_mounts(place, err);
    if (r == 0)
        r = mount_monitor(place, o->program, err);
    if (r < 0 && place->ws) /* the first failure is the one to report */
        (void)workplace_discard(place, true, NULL);
    return r;
}

/* Ends what the last sandbox left, so that the next one can have the directories. */
static int renew(struct workspace *ws, struct carrel_error *err)
{
    int r = workspace_take_lock(ws, err);

    if (r == 0 && ws->phase == WORKSPACE_CREATING)
        return err_set(
                err, -ENOENT, "run '%s' was never made; carrel cleanup removes it", ws->run);
    if (r == 0 && ws->is_ahead)
        return err_set(err, -ESTALE,
                "commits were made on branch '%s' while it was open, and its files do not have "
                "them; go on in a new run: carrel run --base %s",
                ws->branch, ws->branch);
    if (r == 0 && ws->is_opened)
        return err_set(err, -EBUSY,
                "workspace '%s' is open on the host; close it first: carrel workspace close %s",
                ws->run, ws->run);
    if (r == 0 && ws->mode == WORKSPACE_FUSE)
        r = fuse_unmount(ws, err); /* of a process that was killed */
    if (r == 0)
        r = workspace_renew(ws, err);
    return r;
}

int workplace_reopen(struct workspace *ws, struct workplace **out, struct carrel_error *err)
{
    AUTO(workplace_free) struct workplace *place = place_new(err);

    if (!place) {
        workspace_free(ws);
        return err->code;
    }
    assert(ws);
    place->ws = ws;
    int r = workspace_repo(ws, &place->repo, err);
    if (r == 0 && ws->is_folder && !place->repo->top) {
        place->repo->top = strdup(ws->top); /* the hidden repository knows no work tree */
        r = place->repo->top ? 0 : err_set_errno(err, -ENOMEM, "folder");
    }
    if (r == 0)
        r = checkout_find(place->state, place->repo, ws->base, &place->checkout, err);
    if (r == 0)
        r = make_mounts(place, err);
    if (r < 0)
        return err_wrap(err, r, "workspace '%s'", ws->run);
    *out = ptr_steal(&place);
    return 0;
}

static int open_old(
        const struct workplace_request *q, struct workplace **out, struct carrel_error *err)
{
    AUTO(workspace_free) struct workspace *ws = NULL;
    AUTO(workplace_free) struct workplace *place = NULL;
    char state[PATH_MAX];

    int r = state_path(state, sizeof(state), err);
    if (r == 0)
        r = workspace_find(state, q->options->resume, &ws, err);
    if (r == 0)
        r = permit_workspace(q->policy, ws, err);
    if (r == 0)
        r = renew(ws, err);
    if (r == 0)
        r = prepare_again(q, state, ws, err);
    if (r == 0)
        r = workplace_reopen(ptr_steal(&ws), &place, err);
    if (r == 0)
        r = mount_monitor(place, q->options->program, err);
    if (r < 0)
        return r;
    *out = ptr_steal(&place);
    return 0;
}

int workplace_find_ids(const char *name, char task[static NAME_ID_MAX + 1],
        char run[static NAME_ID_MAX + 1], struct carrel_error *err)
{
    AUTO(workspace_free) struct workspace *ws = NULL;
    char state[PATH_MAX];

    int r = state_path(state, sizeof(state), err);
    if (r == 0)
        r = workspace_find(state, name, &ws, err);
    if (r < 0)
        return r;
    assert(ws); /* workspace_find() promises it */
    memcpy(task, ws->task, NAME_ID_MAX + 1);
    memcpy(run, ws->run, NAME_ID_MAX + 1);
    return 0;
}

int workplace_check_free(const char *task, const char *run, struct carrel_error *err)
{
    char state[PATH_MAX];

    int r = state_path(state, sizeof(state), err);
    return r < 0 ? r : workspace_check_free(state, task, run, err);
}

/* What of a workspace that was just made fails takes it along. */
static int finish_fork(struct workplace *place, int code, struct carrel_error *err)
{
    int r = code == 0 ? make_mounts(place, err) : code;

    if (r < 0 && place->ws) /* the first failure is the one to report */
        (void)workplace_discard(place, true, NULL);
    return r;
}

/* Seals the workspace that the options name, which nobody may be using, and forks it. */
static int open_named_fork(
        const struct workplace_request *q, struct workplace *place, struct carrel_error *err)
{
    AUTO(workspace_free) struct workspace *ws = NULL;
    AUTO(workplace_free) struct workplace *from = NULL;
    AUTO(restack_origin_finish) struct restack_origin origin = { 0 };

    int r = workspace_find(place->state, q->options->fork, &ws, err);
    if (r == 0)
        r = permit_workspace(q->policy, ws, err);
    if (r == 0)
        r = renew(ws, err);
    if (r == 0)
        r = prepare_again(q, place->state, ws, err);
    if (r == 0)
        r = workplace_reopen(ptr_steal(&ws), &from, err);
    if (r == 0)
        r = restack_seal(from, err);
    if (r == 0)
        r = restack_origin(from->ws, NULL, &origin, err);
    return r < 0 ? r : finish_fork(place, restack_fork(q, &origin, place, err), err);
}

int workplace_open(const struct workplace_request *request, struct workplace **out,
        struct carrel_error *err)
{
    int r;

    if (request->options->resume)
        return open_old(request, out, err);
    AUTO(workplace_free) struct workplace *place = place_new(err);
    if (!place)
        return err->code;
    if (request->origin)
        r = finish_fork(place, restack_fork(request, request->origin, place, err), err);
    else if (request->options->fork)
        r = open_named_fork(request, place, err);
    else
        r = open_new(request, place, err);
    if (r < 0)
        return r;
    *out = ptr_steal(&place);
    return 0;
}

int workplace_discard(struct workplace *place, bool force, struct carrel_error *err)
{
    int r = place->is_fuse ? fuse_unmount(place->ws, err) : 0;

    if (r < 0)
        return r;
    place->is_fuse = false;
    return restack_discard(place->state, place->ws, force, err);
}

void workplace_free(struct workplace *place)
{
    if (!place)
        return;
    for (size_t i = 0; i < place->n_strings; i++)
        free(place->strings[i]);
    free(place->strings);
    if (place->is_fuse)
        (void)fuse_unmount(place->ws, NULL); /* else the sweep does */
    forget_mounts(place);
    workspace_free(place->ws);
    checkout_free(place->checkout);
    repo_free(place->repo);
    free(place);
}
