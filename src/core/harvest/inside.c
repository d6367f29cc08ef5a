/* inside.c - starts inside.sh and reads its answers. */
#include "core/harvest/inside.h"
#include "base/err.h"
#include "base/str.h"
#include "core/harvest/inside_sh.h"
#include "core/worktree/helper.h"
#include "core/worktree/include.h"
#include "core/worktree/worktree.h"
#include "workspace/harvest/changes.h"
#include "workspace/private.h"
#include "workspace/renew.h"
#include <errno.h>
#include <stdlib.h>

#define TIMEOUT_MS 300000U /* as long as the run at most, but not less than ... */
#define LEAST_MS 30000U

/* The first words of lines of the answer. */
#define REPOSITORY "repository "
#define OTHER_COMMITS "other "
#define SAID "said "

/* Without an overlay there was no walk that would have found it. */
static int note_repository(struct harvest_job *job, const char *path, struct carrel_error *err)
{
    const struct upper_limits limits = UPPER_LIMITS_INIT;
    struct change_list list = {
        .all = job->changes, .limits = &limits, .oddities_room = job->changes.n_oddities
    };

    if (job->worktree->ws->mode == WORKSPACE_OVERLAY)
        return 0;
    int r = changes_add_oddity(&list, path, ODDITY_REPOSITORY, err);
    job->changes = list.all;
    return r;
}

/* The run can forge these lines: callers check what they use of them. */
static int read_answer(struct harvest_job *job, struct helper *helper, char *line, size_t size,
        struct carrel_error *err)
{
    char shown[256];
    int r;

    while ((r = helper_read_line(helper, line, size, err)) == 0) {
        if (strncmp(line, REPOSITORY, strlen(REPOSITORY)) == 0)
            r = note_repository(job, line + strlen(REPOSITORY), err);
        else if (strncmp(line, OTHER_COMMITS, strlen(OTHER_COMMITS)) == 0)
            r = str_parse_u64(line + strlen(OTHER_COMMITS), &job->n_other_commits) < 0
                        ? err_set(err, -EPROTO, "git in the sandbox gave a wrong answer")
                        : 0;
        else if (strncmp(line, SAID, strlen(SAID)) == 0)
            r = err_set(err, -EIO, "git in the sandbox said '%s'",
                    str_escape(line + strlen(SAID), strlen(line + strlen(SAID)), shown,
                            sizeof(shown)));
        else
            break;
        if (r < 0)
            return r;
    }
    changes_sort(&job->changes);
    return r;
}

/* Reads an answer to its end, the line "tip snapshot". */
static int read_ids(struct harvest_job *job, struct helper *helper, struct carrel_error *err)
{
    char line[PATH_MAX + sizeof(REPOSITORY)];

    int r = read_answer(job, helper, line, sizeof(line), err);
    if (r < 0)
        return r;
    char *space = strchr(line, ' ');
    if (space)
        *space = '\0';
    if (!space || !name_is_oid(line) || !name_is_oid(space + 1))
        return err_set(err, -EPROTO, "git in the sandbox gave a wrong answer");
    memcpy(job->tip, line, strlen(line) + 1); /* name_is_oid(): they fit */
    memcpy(job->snapshot, space + 1, strlen(space + 1) + 1);
    return 0;
}

static unsigned inside_ms(const struct harvest_bounds *bounds)
{
    if (bounds->timeout_ms == 0 || bounds->timeout_ms > TIMEOUT_MS)
        return TIMEOUT_MS;
    return bounds->timeout_ms < LEAST_MS ? LEAST_MS : (unsigned)bounds->timeout_ms;
}

/* What git may not start or trust, whatever the run's configuration says. */
static const char *const quiet_git[] = {
    "GIT_CONFIG_COUNT=3",
    "GIT_CONFIG_KEY_0=core.hooksPath",
    "GIT_CONFIG_VALUE_0=/dev/null",
    "GIT_CONFIG_KEY_1=core.fsmonitor",
    "GIT_CONFIG_VALUE_1=false",
    "GIT_CONFIG_KEY_2=core.untrackedCache",
    "GIT_CONFIG_VALUE_2=false",
    "GIT_AUTHOR_NAME=carrel",
    "GIT_AUTHOR_EMAIL=carrel@localhost",
    "GIT_COMMITTER_NAME=carrel",
    "GIT_COMMITTER_EMAIL=carrel@localhost",
    NULL,
};

/* The sandbox ends with the answer, and with it all that the run's filters started. */
static int commit_inside(struct harvest_job *job, struct carrel_error *err)
{
    const struct workspace *ws = job->worktree->ws;
    AUTO(helper_finish) struct helper helper = HELPER_INIT;
    const struct helper_spec spec = {
        .runtime = job->runtime,
        .mounts = job->worktree->mounts,
        .n_mounts = job->worktree->n_mounts,
        .script = inside_sh,
        .args = (const char *const[]){ "commit", ws->branch, ws->base, HARVEST_MESSAGE, NULL },
        .env = quiet_git,
        .limits = job->bounds->limits,
        .limited = ws->dir,
        .has_limit = true,
        .max_bytes = job->bounds->disk_bytes,
    };

    int r = helper_start(&spec, inside_ms(job->bounds), &helper, err);
    if (r == 0)
        r = read_ids(job, &helper, err);
    if (r == 0)
        r = helper_wait(&helper, err);
    return r > 0 ? err_set(err, -EIO, "git in the sandbox ended with status %d", r) : r;
}

/* Mounted read-only: it cannot write anything on the host while the pack is read. */
static int take_pack(struct harvest_job *job, enum inside_part part, struct carrel_error *err)
{
    const struct workspace *ws = job->worktree->ws;
    AUTO(helper_finish) struct helper helper = HELPER_INIT;
    AUTO(free)
    struct sandbox_mount *mounts = calloc(job->worktree->n_mounts, sizeof(*mounts));

    if (!mounts)
        return err_set_errno(err, -ENOMEM, "mounts");
    for (size_t i = 0; i < job->worktree->n_mounts; i++) {
        mounts[i] = job->worktree->mounts[i];
        mounts[i].access = ACCESS_READ_ONLY;
    }
    const struct helper_spec spec = {
        .runtime = job->runtime,
        .mounts = mounts,
        .n_mounts = job->worktree->n_mounts,
        .script = inside_sh,
        .args = (const char *const[]){ "pack", ws->branch, ws->base, PRIVATE_OBJECTS,
                part == INSIDE_ALL ? job->tip : NULL, job->snapshot, NULL },
        .env = quiet_git,
        .limits = job->bounds->limits,
    };
    int r = helper_start(&spec, inside_ms(job->bounds), &helper, err);
    if (r == 0)
        r = read_ids(job, &helper, err);
    if (r == 0)
        r = harvest_take_pack(job->worktree->repo, job->quarantine, helper.process.stdout_fd,
                job->snapshot, ws->base, &job->limits, err);
    return r;
}

int inside_take(struct harvest_job *job, enum inside_part part, struct carrel_error *err)
{
    int r = workspace_renew(
            job->worktree->ws, err); /* an earlier harvest may have left something */

    if (r == 0 && part == INSIDE_ALL)
        r = commit_inside(job, err);
    if (r == 0 && part == INSIDE_ALL)
        r = workspace_renew(job->worktree->ws, err);
    if (r == 0)
        r = take_pack(job, part, err);
    return r < 0 ? r
                 : included_leave_out(
                           job->worktree, job->quarantine, job->tip, job->snapshot, err);
}
