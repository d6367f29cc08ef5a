/*
 * session.c - from options to a sandbox that stands, with every step on record.
 *
 * What was asked for is permitted, the run gets its name, its workspace and its sandbox; the
 * journal says so before anything is made for it.
 */
#include "core/run/session.h"
#include "base/err.h"
#include "core/request/image_root.h"
#include "core/request/spec.h"
#include "core/result/capture.h"
#include "core/result/outcome.h"
#include "core/run/run.h"
#include "core/state/state.h"
#include "core/worktree/ground.h"
#include "policy/policy.h"
#include "workspace/renew.h"
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define DEFAULT_TIMEOUT_MS 300000U
#define DEFAULT_OUTPUT_BYTES (10U << 10)

static int watch_dir(struct stage *stage, struct spec *spec, int dir, struct carrel_error *err)
{
    const uint64_t max_bytes = spec->box.limits.value[LIMIT_DISK];

    spec->box.is_watched = true;
    spec->box.max_processors = disk_watch_processors(max_bytes);
    stage->watch.has_others = disk_watch_has_others(&spec->box);
    return disk_watch_begin(&stage->watch, dir, max_bytes, err);
}

/* The workspace's mounts come after the caller's. */
static int show_place(struct stage *stage, struct spec *spec, struct carrel_error *err)
{
    int r = spec_add_mounts(spec, stage->worktree->mounts, stage->worktree->n_mounts, err);

    if (r == 0)
        r = workspace_begin_use(stage->worktree->ws, err);
    return r < 0 ? r : watch_dir(stage, spec, stage->worktree->ws->dir, err);
}

/* Makes or takes up the run's workspace. */
static int open_place(struct stage *stage, struct spec *spec, struct carrel_error *err)
{
    struct carrel_run_result *result = stage->result;
    const struct worktree_request request = {
        .options = stage->options->workspace,
        .runtime = spec->runtime,
        .spec = &spec->box,
        .policy = stage->request->policy,
        .task = result->task,
        .run = result->run,
        .origin = stage->request->origin,
    };

    int r = worktree_open(&request, &stage->worktree, err);
    if (r == 0)
        r = show_place(stage, spec, err);
    return r;
}

/* What the program has of its own is on disk. */
static int use_layers(struct stage *stage, struct spec *spec, struct carrel_error *err)
{
    if (stage->root)
        spec->box.root_overlay = &stage->ground->overlay;
    else
        spec->box.space = &stage->ground->overlay;
    stage->watch.has_private = true;
    return watch_dir(stage, spec, stage->ground->top.dir, err);
}

/* What is written to the image goes with the sandbox: into memory, or on disk if need be. */
static int use_image(struct stage *stage, struct spec *spec, struct carrel_error *err)
{
    const char *const *trees = stage->root->image->trees;

    if (!sandbox_has_memory_root())
        return ground_make(NULL, trees, &stage->ground, err);
    stage->memory = (struct sandbox_overlay){ .lower = trees };
    spec->box.root_overlay = &stage->memory;
    return 0;
}

int stage_begin_evidence(struct stage *stage, struct carrel_error *err)
{
    if (stage->has_evidence || !stage->request->policy)
        return 0;
    stage->has_evidence = true;
    return recorder_begin(&stage->recorder, stage->result, &stage->permit,
            stage->request->policy, stage->request->code, err);
}

/*
 * Whoever needs the sandbox before the program, or another one without it, must wait for it; so
 * must who watches a disk: processor time is given out from the program's first moment on, and
 * making the sandbox takes some.
 */
static bool must_stand(const struct stage *stage)
{
    const char *const *fallback = stage->permit.fallback;

    return stage->must_stand || stage->watch.n_dirs > 0 || (fallback && fallback[0]);
}

static int make_sandbox(struct stage *stage, const struct spec *spec, struct carrel_error *err)
{
    int r = must_stand(stage) ? sandbox_create(spec->runtime, &spec->box, &stage->box, err)
                              : sandbox_begin(spec->runtime, &spec->box, &stage->box, err);

    if (r == 0)
        r = stage_begin_evidence(stage, err);
    return r;
}

/* Who may look too late does not hold a limit. */
static int note_watch(
        struct stage *stage, const struct sandbox_spec *spec, struct carrel_error *err)
{
    struct carrel_run_result *result = stage->result;

    if (stage->watch.n_dirs == 0)
        return 0;
    const bool is_held = disk_watch_can_hold(spec, stage->box);
    result->held_by[LIMIT_DISK] = is_held ? HELD_BY_WATCH : HELD_BY_LOOKS;
    if (is_held)
        return 0;
    result->protections &= ~PROTECT_BIT(PROTECT_DISK);
    return disk_watch_refuse(spec, err);
}

/*
 * No program is run, nothing is made for it and no other way is taken before the journal says
 * what was asked for. An empty sandbox is none of these: where it is all there is to make, the
 * journal is begun while it is being made.
 */
static int create(struct stage *stage, struct carrel_error *err)
{
    struct carrel_run_result *result = stage->result;
    AUTO(spec_finish) struct spec spec = { 0 };

    int r = stage->options->workspace || must_stand(stage) ? stage_begin_evidence(stage, err)
                                                           : 0;
    if (r == 0)
        r = spec_make(stage->options, result->run, &spec, err);
    spec.box.stays = stage->stays;
    if (r == 0 && stage->root && !stage->ground)
        r = use_image(stage, &spec, err);
    if (r == 0 && (stage->options->workspace || stage->ground))
        r = disk_watch_check(&spec.box, err);
    if (r == 0 && stage->ground)
        r = use_layers(stage, &spec, err);
    if (r == 0 && stage->options->workspace)
        r = open_place(stage, &spec, err);
    if (r == 0 && stage->worktree)
        r = recorder_workspace(&stage->recorder, stage->worktree, err);
    if (r == 0)
        r = make_sandbox(stage, &spec, err);
    stage->watch.box = stage->box;
    if (r < 0)
        return r;
    stage->watch.cpu_milli = spec.box.limits.value[LIMIT_CPU];
    stage->runtime = spec.runtime;

    result->runtime = runtime_name(spec.runtime);
    result->isolation = runtime_isolation(spec.runtime);
    result->protections = stage->box->protections;
    memcpy(result->held_by, stage->box->held_by, sizeof(result->held_by));
    r = note_watch(stage, &spec.box, err); /* what else can be written to is held better */
    if (r < 0)
        return r;
    memcpy(result->limits, spec.box.limits.value, sizeof(result->limits));
    result_note_limits(result);
    result->workspace = strdup(stage->box->workspace);
    if (!result->workspace)
        return err_set_errno(err, -ENOMEM, "result");
    return recorder_sandbox(&stage->recorder, result, err);
}

/* It may not hold less than the first one, which the result speaks of. */
static int check_same(const struct stage *stage, struct carrel_error *err)
{
    static const enum limit limits[] = { LIMIT_MEMORY, LIMIT_PIDS, LIMIT_CPU };
    const struct carrel_run_result *result = stage->result;

    assert(stage->box);
    bool is_same = (stage->box->protections & result->protections) == result->protections;

    for (size_t i = 0; i < ARRAY_LEN(limits); i++)
        is_same = is_same && stage->box->held_by[limits[i]] == result->held_by[limits[i]];
    return is_same ? 0
                   : err_set(err, -ENOTSUP,
                             "it would have fewer protections, or limits held less well, than "
                             "before");
}

int stage_remake(struct stage *stage, struct carrel_error *err)
{
    AUTO(spec_finish) struct spec spec = { 0 };

    sandbox_free(ptr_steal(&stage->box));
    stage->watch = (struct disk_watch)DISK_WATCH_INIT;
    int r = spec_make(stage->options, stage->result->run, &spec, err);
    spec.box.stays = stage->stays;
    if (r == 0 && stage->ground)
        r = use_layers(stage, &spec, err);
    if (r == 0 && stage->worktree)
        r = show_place(stage, &spec, err);
    if (r == 0)
        r = sandbox_create(spec.runtime, &spec.box, &stage->box, err);
    stage->watch.box = stage->box;
    stage->watch.cpu_milli = spec.box.limits.value[LIMIT_CPU];
    return r < 0 ? r : check_same(stage, err);
}

int stage_drop(struct stage *stage, int code)
{
    if (!stage->worktree)
        return code;
    sandbox_free(ptr_steal(&stage->box));
    if (!stage->options->workspace->resume)
        (void)worktree_discard(stage->worktree, NULL); /* else swept */
    worktree_free(ptr_steal(&stage->worktree));
    return code;
}

int stage_make(struct stage *stage, struct carrel_error *err)
{
    const char *const *next = stage->permit.fallback;
    const char *first = stage->options->runtime;

    int r = create(stage, err);
    for (; r == -ENOTSUP && next && *next; next++) {
        if (policy_runtime_isolation(*next) < (int)stage->permit.least_isolation)
            continue;
        (void)stage_drop(stage, r);
        struct carrel_error why = *err;
        r = recorder_fallback(
                &stage->recorder, stage->options->runtime, *next, why.message, err);
        if (r < 0)
            return r;
        stage->permit.options.runtime = *next;
        stage->result->fallback_from = first;
        r = create(stage, err);
    }
    return r;
}

int stage_end_place(struct stage *stage, struct carrel_error *err)
{
    struct carrel_run_result *result = stage->result;
    const struct carrel_workspace_options *o = stage->options->workspace;
    if (!stage->worktree)
        return 0;
    bool is_success = result_is_ok(result);
    enum carrel_outcome_action action = is_success ? o->on_success : o->on_failure;

    /* What is committed carries the seal of all that led to it. */
    int r = action == CARREL_COMMIT
                    ? recorder_seal(&stage->recorder, reason_name(result->reason), err)
                    : 0;
    const struct outcome_bounds bounds = { result->limits, result->timeout_ms };
    if (r == 0)
        r = outcome_reach(stage->worktree, stage->runtime, action, stage->recorder.seal,
                &bounds, &result->outcome, err);
    if (r < 0)
        return r;
    outcome_write_text(result->outcome, result->run, &result->summary);
    return recorder_outcome(&stage->recorder, result->outcome, err);
}

static int take_id(const char *given, const char *what, char prefix, char id[static 20],
        size_t size, struct carrel_error *err)
{
    if (!given)
        return state_new_id(prefix, id, err);
    (void)snprintf(id, size, "%s", given);
    return name_check_id(given, what, err);
}

/* The caller's ids, the workspace's when one is taken up again, or new ones. */
static int name_run(struct stage *stage, struct carrel_error *err)
{
    const struct carrel_workspace_options *o = stage->options->workspace;
    struct carrel_run_result *result = stage->result;

    if (!o)
        return state_new_id('R', result->run, err);
    if (o->resume)
        return worktree_find_ids(o->resume, result->task, result->run, err);
    int r = take_id(o->task, "task", 'T', result->task, sizeof(result->task), err);
    if (r == 0)
        r = take_id(o->run, "run", 'R', result->run, sizeof(result->run), err);
    if (r == 0 && o->task && o->run)
        r = worktree_check_free(result->task, result->run, err);
    return r;
}

int stage_permit(struct stage *stage, struct carrel_error *err)
{
    const struct run_request *request = stage->request;
    struct carrel_run_result *result = stage->result;

    stage->permit.options = *request->options;
    int r = request->policy ? permit_make(request->options, request->policy,
                                      (const char *const *)environ, &stage->permit, err)
                            : 0;
    if (r == 0)
        r = image_root_open(&stage->permit.options, &stage->root, err);
    if (r < 0)
        return r;
    result->timeout_ms =
            stage->options->timeout_ms ? stage->options->timeout_ms : DEFAULT_TIMEOUT_MS;
    result->output_bytes =
            stage->options->output_bytes ? stage->options->output_bytes : DEFAULT_OUTPUT_BYTES;
    return name_run(stage, err);
}

int stage_init(struct stage *stage, const struct run_request *request, struct carrel_error *err)
{
    *stage = (struct stage){
        .request = request,
        .must_stand = request->guest,
        .watch = DISK_WATCH_INIT,
    };
    stage->options = &stage->permit.options;
    stage->result = result_new();
    return stage->result ? 0 : err_set_errno(err, -ENOMEM, "run");
}

void stage_finish(struct stage *stage)
{
    sandbox_free(stage->box);
    worktree_free(stage->worktree); /* after the sandbox: it holds the lock */
    ground_free(stage->ground);     /* after it, too: nothing writes there any more */
    image_root_free(stage->root);
    carrel_run_result_free(stage->result);
    recorder_finish(stage->recorder);
    permit_finish(stage->permit);
}

void stage_abandon(struct stage *stage, const struct carrel_error *why)
{
    (void)stage_begin_evidence(stage, NULL);
    recorder_abandon(&stage->recorder, why);
}

int stage_not_the_program(int code, struct carrel_error *err)
{
    if (code == -ENOENT || code == -EACCES || code == -EISDIR || code == -ENOEXEC)
        err->code = -EINVAL;
    return err->code;
}
