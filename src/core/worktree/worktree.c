/* worktree.c - making and reopening the worktree of a run. */
#include "core/worktree/worktree.h"
#include "base/auto.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/kernel.h"
#include "base/named.h"
#include "base/tree.h"
#include "core/disk/disk.h"
#include "core/disk/image.h"
#include "core/request/permit.h"
#include "core/state/state.h"
#include "core/state/writable.h"
#include "core/worktree/fork.h"
#include "core/worktree/helper.h"
#include "core/worktree/helper_space.h"
#include "core/worktree/layers.h"
#include "core/worktree/overlay_probe_sh.h"
#include "core/worktree/prepare.h"
#include "core/worktree/sweep_layers.h"
#include "core/worktree/target.h"
#include "git/name.h"
#include "workspace/private.h"
#include "workspace/renew.h"
#include "workspace/source/dirty.h"
#include "workspace/source/folder.h"
#include <assert.h>
#include <carrel/run.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static struct worktree *worktree_new(struct carrel_error *err)
{
    struct worktree *worktree = calloc(1, sizeof(*worktree));

    if (!worktree)
        (void)err_set_errno(err, -ENOMEM, "workspace");
    else if (state_path(worktree->state, sizeof(worktree->state), err) < 0 ||
             state_make(worktree->state, err) < 0)
        worktree_free(ptr_steal(&worktree));
    return worktree;
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

static bool is_head(const struct repo *repo, const char *commit)
{
    char head[OID_MAX];

    return repo_resolve(repo, NULL, head, NULL) == 0 && strcmp(head, commit) == 0;
}

/*
 * Git reads the files by their paths: a sandbox that may write there could exchange a directory
 * for a link while it does, and another place of the host would be in the snapshot.
 */
static int hold_still(
        const struct worktree_request *q, const char *dir, struct carrel_error *err)
{
    AUTO(fd_close) int still = writable_forbid(q->run ? q->run : "?", &dir, 1, err);

    if (still < 0)
        return err_wrap(err, still, "read '%s'", dir);
    /* That was found by its path; a link that came before the note is refused here. */
    AUTO(fd_close) int found = named_open(dir, NAMED_DIRECTORY, err);
    return found < 0 ? found : fd_steal(&still);
}

static int snapshot_folder(const struct worktree_request *q, const char *named,
        struct worktree *worktree, char base[static OID_MAX], struct carrel_error *err)
{
    char path[PATH_MAX];
    AUTO(fd_close) int dir = named_open(named, NAMED_DIRECTORY, err);

    if (dir < 0)
        return err_wrap(err, dir, "--workdir");
    int r = named_path(dir, path, sizeof(path));
    if (r < 0)
        return err_set_errno(err, r, "--workdir '%s'", named);
    r = permit_folder(q->policy, path, named, err);
    AUTO(fd_close) int still = r < 0 ? r : hold_still(q, path, err);
    return still < 0 ? still
                     : folder_snapshot(worktree->state, dir, &worktree->repo, base, err);
}

/*
 * Git obeys what the repository sets, less what repo.c found in it to turn off: a sandbox that
 * may write there could set more afterwards. So it is opened again once none may.
 */
static int open_repo(const struct worktree_request *q, struct worktree *worktree, int *still,
        struct carrel_error *err)
{
    AUTO(repo_free) struct repo *first = NULL;

    int r = target_open(q->options->repo, &first, err);
    if (r == 0)
        r = permit_repo(q->policy, first, err);
    if (r < 0)
        return r;
    const char *places[] = { first->common_dir, first->git_dir };
    *still = writable_forbid(q->run ? q->run : "?", places, ARRAY_LEN(places), err);
    if (*still < 0)
        return err_wrap(err, *still, "read '%s'", first->git_dir);
    r = target_open(q->options->repo, &worktree->repo, err);
    if (r == 0 && (strcmp(worktree->repo->common_dir, first->common_dir) != 0 ||
                          strcmp(worktree->repo->git_dir, first->git_dir) != 0))
        return err_set(err, -EAGAIN, "'%s' changes meanwhile", first->git_dir);
    return r == 0 ? permit_repo(q->policy, worktree->repo, err) : r;
}

/* Opens the folder or repository of the run, if the policy allows it. `git_still`: as long as
 * that is open, no sandbox may write to its git dir. */
static int open_source(const struct worktree_request *q, struct worktree *worktree,
        char base[static OID_MAX], int *git_still, struct carrel_error *err)
{
    const struct carrel_workspace_options *o = q->options;

    if (o->is_folder)
        return snapshot_folder(q, o->repo ? o->repo : ".", worktree, base, err);
    int r = open_repo(q, worktree, git_still, err);
    AUTO(fd_close)
    int still = r == 0 && o->is_dirty && worktree->repo->top
                        ? hold_still(q, worktree->repo->top, err)
                        : -1;
    if (still < -1)
        return still;
    return r < 0 ? r : find_base(worktree->repo, o, base, err);
}

/* The monitor reads the upper directory of the workspace, where nothing is written if the disk
 * limit is exact. */
static int mount_monitor(
        const struct worktree_request *q, struct worktree *worktree, struct carrel_error *err)
{
    const char *program = disk_must_be_exact(q->spec) ? NULL : q->options->program;

    return worktree_mount_monitor(worktree, program, err);
}

static int open_new(
        const struct worktree_request *q, struct worktree *worktree, struct carrel_error *err)
{
    const struct carrel_workspace_options *o = q->options;
    char base[OID_MAX];
    char setup[OID_MAX] = "";
    AUTO(fd_close) int still = -1;
    struct workspace_request request = {
        .state = worktree->state,
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
        r = open_source(q, worktree, base, &still, err);
    if (r == 0)
        r = tree_kind_choose(q, worktree->state, &request.mode, err);
    if (r == 0)
        r = prepare_checkout(
                q, worktree->state, worktree->repo, base, &worktree->checkout, err);
    if (r == 0 && o->setup)
        r = prepare_setup(q, worktree, base, setup, err);
    if (r < 0)
        return r;
    request.repo = worktree->repo;
    request.is_base_loose = o->is_dirty && !is_head(worktree->repo, base);
    request.checkout = worktree->checkout;
    r = workspace_create(&request, &worktree->ws, err);
    if (r == 0)
        r = prepare_tree(q, worktree, err);
    if (r == 0)
        r = worktree_make_mounts(worktree, err);
    if (r == 0)
        r = mount_monitor(q, worktree, err);
    if (r < 0 && worktree->ws) /* the first failure is the one to report */
        (void)worktree_discard(worktree, NULL);
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
    if (r == 0) /* before a lock that git left is removed: it may be in the image */
        r = disk_image_recover(ws->dir, err);
    if (r == 0)
        r = workspace_renew(ws, err);
    return r;
}

/* The cache may have lost it, for example in a power failure: then it is filled again, also for
 * readers. */
static int find_checkout(struct worktree *worktree, struct carrel_error *err)
{
    const struct carrel_workspace_options options = { 0 };
    const struct sandbox_spec spec = { 0 };
    struct worktree_request q = { .options = &options, .spec = &spec };

    int r = runtime_find("local", &q.runtime, err);
    return r < 0 ? r
                 : prepare_checkout(&q, worktree->state, worktree->repo, worktree->ws->base,
                           &worktree->checkout, err);
}

int worktree_reopen(struct workspace *ws, struct worktree **out, struct carrel_error *err)
{
    AUTO(worktree_free) struct worktree *worktree = worktree_new(err);

    if (!worktree) {
        workspace_free(ws);
        return err->code;
    }
    assert(ws);
    worktree->ws = ws;
    int r = disk_image_recover(ws->dir, err);
    if (r == 0)
        r = workspace_repo(ws, &worktree->repo, err);
    if (r == 0)
        r = find_checkout(worktree, err);
    if (r == 0)
        r = worktree_make_mounts(worktree, err);
    if (r < 0)
        return err_wrap(err, r, "workspace '%s'", ws->run);
    *out = ptr_steal(&worktree);
    return 0;
}

static int open_old(
        const struct worktree_request *q, struct worktree **out, struct carrel_error *err)
{
    AUTO(workspace_free) struct workspace *ws = NULL;
    AUTO(worktree_free) struct worktree *worktree = NULL;
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
        r = worktree_reopen(ptr_steal(&ws), &worktree, err);
    if (r == 0)
        r = mount_monitor(q, worktree, err);
    if (r < 0)
        return r;
    *out = ptr_steal(&worktree);
    return 0;
}

int worktree_find_ids(const char *name, char task[static NAME_ID_MAX + 1],
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

int worktree_check_free(const char *task, const char *run, struct carrel_error *err)
{
    char state[PATH_MAX];

    int r = state_path(state, sizeof(state), err);
    return r < 0 ? r : workspace_check_free(state, task, run, err);
}

/* If a step fails, the workspace that was just made is removed. */
static int finish_fork(struct worktree *worktree, int code, struct carrel_error *err)
{
    int r = code == 0 ? worktree_make_mounts(worktree, err) : code;

    if (r < 0 && worktree->ws) /* the first failure is the one to report */
        (void)worktree_discard(worktree, NULL);
    return r;
}

/* Seals the workspace that the options name, which must not be in use, and forks it. */
static int open_named_fork(
        const struct worktree_request *q, struct worktree *worktree, struct carrel_error *err)
{
    AUTO(workspace_free) struct workspace *ws = NULL;
    AUTO(worktree_free) struct worktree *from = NULL;
    struct worktree_origin origin;

    int r = workspace_find(worktree->state, q->options->fork, &ws, err);
    if (r == 0)
        r = permit_workspace(q->policy, ws, err);
    if (r == 0)
        r = renew(ws, err);
    if (r == 0)
        r = prepare_again(q, worktree->state, ws, err);
    if (r == 0)
        r = worktree_reopen(ptr_steal(&ws), &from, err);
    if (r < 0)
        return r;
    assert(from);
    origin.ws = from->ws;
    r = worktree_seal(from, err);
    if (r == 0)
        r = layers_list(from->layers, NULL, &origin.layers, err);
    return r < 0 ? r : finish_fork(worktree, worktree_fork(q, &origin, worktree, err), err);
}

int worktree_open(
        const struct worktree_request *request, struct worktree **out, struct carrel_error *err)
{
    int r;

    if (request->options->resume)
        return open_old(request, out, err);
    AUTO(worktree_free) struct worktree *worktree = worktree_new(err);
    if (!worktree)
        return err->code;
    if (request->origin)
        r = finish_fork(worktree, worktree_fork(request, request->origin, worktree, err), err);
    else if (request->options->fork)
        r = open_named_fork(request, worktree, err);
    else
        r = open_new(request, worktree, err);
    if (r < 0)
        return r;
    *out = ptr_steal(&worktree);
    return 0;
}

int worktree_discard(struct worktree *worktree, struct carrel_error *err)
{
    layers_free(ptr_steal(&worktree->layers)); /* their locks would keep the sweep from them */
    return discard_with_layers(worktree->state, worktree->ws, err);
}

void worktree_free(struct worktree *worktree)
{
    if (!worktree)
        return;
    for (size_t i = 0; i < worktree->n_strings; i++)
        free(worktree->strings[i]);
    free(worktree->strings);
    free(worktree->mounts);
    worktree_close_modules(worktree);
    layers_free(worktree->layers); /* before what it lies on */
    free(worktree->carried);
    free(worktree->base);
    workspace_free(worktree->ws);
    checkout_free(worktree->checkout);
    repo_free(worktree->repo);
    repo_free(worktree->target);
    free(worktree);
}

#define PROBE_TIMEOUT_MS 20000U

/* Tries an overlay in a sandbox, on the file system where workspaces will be. */
static int probe_overlay(const struct worktree_request *q, const char *state, int dir,
        const char *name, struct carrel_error *err)
{
    char space[PATH_MAX];
    char lower[PATH_MAX];
    AUTO(helper_finish) struct helper helper = HELPER_INIT;

    int r = helper_space_make(dir, name, err);
    if (r < 0)
        return r;
    if (snprintf(space, sizeof(space), "%s/%s", state, name) >= (int)sizeof(space) ||
            snprintf(lower, sizeof(lower), "%s/%s/lower", state, name) >= (int)sizeof(lower))
        return err_set_errno(err, -ENAMETOOLONG, "'%s'", state);
    const struct sandbox_overlay overlay =
            helper_space_overlay((const char *const[]){ lower, NULL }, space);
    const struct sandbox_mount mount = helper_space_mount(&overlay, PRIVATE_WORK_TREE);
    const struct helper_spec spec = {
        .runtime = q->runtime, .mounts = &mount, .n_mounts = 1, .script = overlay_probe_sh
    };
    r = helper_start(&spec, PROBE_TIMEOUT_MS, &helper, err);
    if (r == 0)
        r = helper_wait(&helper, err);
    return r > 0 ? err_set(err, -ENOTSUP, "a file could not be written in an overlay") : r;
}

/* The answer is cached: a try costs a sandbox. */
bool tree_kind_has_overlay(
        const struct worktree_request *q, const char *state, struct carrel_error *err)
{
    char boot[KERNEL_BOOT_ID_MAX];
    char known[KERNEL_BOOT_ID_MAX];
    char name[32];

    if (!(runtime_can(q->runtime) & CAN_OVERLAY)) {
        (void)err_set(err, -ENOTSUP, "runtime %s has no copy-on-write trees",
                runtime_name(q->runtime));
        return false;
    }
    AUTO(fd_close) int dir = open(state, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0) {
        (void)err_set_errno(err, -errno, "'%s'", state);
        return false;
    }
    if (kernel_boot_id(boot, err) < 0)
        return false;
    if (fd_read_file(dir, "overlay", known, sizeof(known)) >= 0 && strcmp(known, boot) == 0)
        return true;
    (void)snprintf(name, sizeof(name), ".probe-%d", (int)getpid());
    (void)tree_remove(dir, name, NULL); /* of a killed process that had the same pid */
    int r = probe_overlay(q, state, dir, name, err);
    (void)tree_remove(dir, name, NULL); /* at worst an empty directory stays */
    if (r < 0)
        return false;
    char path[PATH_MAX];
    (void)snprintf(path, sizeof(path), "%s/overlay", state);
    (void)fd_replace_file(path, boot, strlen(boot), 0644, NULL); /* else we try again */
    return true;
}

int tree_kind_choose(const struct worktree_request *q, const char *state,
        enum workspace_mode *mode, struct carrel_error *err)
{
    struct carrel_error why = { 0 };

    switch (q->options->tree) {
    case CARREL_TREE_COPY:
        *mode = WORKSPACE_COPY;
        return 0;
    case CARREL_TREE_OVERLAY:
    case CARREL_TREE_AUTO:
        break;
    }
    if (tree_kind_has_overlay(q, state, &why)) {
        *mode = WORKSPACE_OVERLAY;
        return 0;
    }
    if (q->options->tree == CARREL_TREE_OVERLAY)
        return err_set(err, -ENOTSUP,
                "overlayfs does not work here (%s); leave --tree away for a copy, or keep "
                "the state directory (XDG_STATE_HOME) on ext4, xfs or btrfs",
                why.message);
    *mode = WORKSPACE_COPY;
    return 0;
}
