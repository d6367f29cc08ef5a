/* prune.c - removes old runs. */
#include "base/err.h"
#include "base/fd.h"
#include "base/options.h"
#include "base/tree.h"
#include "core/record/runs.h"
#include "core/state/run_dir.h"
#include "journal/index.h"
#include "policy/policy.h"
#include "workspace/workspace.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define SWEEP_EVERY_S (10 * 60)

static int open_run(int runs, const char *key)
{
    return openat(runs, key, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

/* Work that may still be delivered needs its journal. */
static bool has_workspace(const char *state, const struct run_entry *entry)
{
    const char *plus = strchr(entry->key, '+');
    char name[2 * STATE_KEY_MAX];
    AUTO(workspace_free) struct workspace *ws = NULL;

    if (plus)
        (void)snprintf(
                name, sizeof(name), "%.*s/%s", (int)(plus - entry->key), entry->key, plus + 1);
    else
        (void)snprintf(name, sizeof(name), "%s", entry->key);
    return workspace_find(state, name, &ws, NULL) == 0;
}

static bool is_no_room(int code)
{
    return code == -ENOSPC || code == -EDQUOT;
}

/*
 * The index is written first, unless the disk is so full that the run must be removed for that.
 */
static int remove_run(int runs, const char *path, const char *key, struct carrel_error *err)
{
    struct stat st;
    AUTO(fd_close) int dir = open_run(runs, key);

    AUTO(fd_close) int held = dir < 0 ? -1 : run_dir_hold(dir);
    if (held < 0)
        return 0;
    bool is_known = fstatat(dir, JOURNAL_NAME, &st, AT_SYMLINK_NOFOLLOW) == 0;
    int noted = is_known ? journal_note_pruned(path, key, err) : 0;
    if (noted < 0 && !is_no_room(noted))
        return noted;
    int r = tree_remove(runs, key, err);
    if (r == 0 && noted < 0)
        r = journal_note_pruned(path, key, err);
    return r < 0 ? r : 1;
}

/* Whether it may be removed; remove_run() looks again whether it is in progress. */
static bool is_prunable(const struct run_entry *entry, uint64_t older_than_s, const char *state)
{
    const uint64_t now = (uint64_t)time(NULL);

    return entry->state != CARREL_RECORD_IN_PROGRESS && entry->began_s <= now &&
           now - entry->began_s >= older_than_s && !has_workspace(state, entry);
}

int carrel_runs_prune(const struct carrel_runs_prune_options *options,
        int (*visit)(const struct carrel_run_info *info, void *context), void *context,
        struct carrel_error *err)
{
    AUTO(run_list_finish) struct run_list list = { 0 };
    AUTO(fd_close) int runs = -1;
    char state[PATH_MAX];
    char path[PATH_MAX + 8];
    struct carrel_runs_prune_options own = CARREL_RUNS_PRUNE_OPTIONS_INIT;

    err = ERR_OR_IGNORED(err);
    if (!options) /* the defaults would remove every run */
        return err_set(err, -EINVAL, "which runs? start from CARREL_RUNS_PRUNE_OPTIONS_INIT");
    int r = OPTIONS_TAKE(&own, options, CARREL_RUNS_PRUNE_OPTIONS_INIT, err);
    if (r == 0)
        r = state_path(state, sizeof(state), err);
    if (r == 0)
        r = run_dir_open_all(&runs, err);
    if (r == 0 && runs >= 0)
        r = runs_list(&list, err);
    if (r < 0)
        return r;
    (void)snprintf(path, sizeof(path), "%s/runs", state);
    for (size_t i = own.keep; r == 0 && i < list.n; i++) {
        struct carrel_run_info info;
        if (!is_prunable(&list.items[i], own.older_than_s, state))
            continue;
        runs_view(&list.items[i], &info);
        int removed = own.is_dry_run ? 1 : remove_run(runs, path, info.key, err);
        r = removed > 0 && visit ? visit(&info, context) : removed < 0 ? removed : 0;
    }
    return r;
}

int runs_sweep(uint64_t max_bytes, uint64_t max_age_s, struct carrel_error *err)
{
    AUTO(run_list_finish) struct run_list list = { 0 };
    AUTO(fd_close) int runs = -1;
    uint64_t now = (uint64_t)time(NULL);
    uint64_t held = 0;
    int n = 0;

    int r = run_dir_open_all(&runs, err);
    if (r == 0 && runs >= 0)
        r = runs_list(&list, err);
    if (r < 0)
        return r;
    for (size_t i = 0; i < list.n; i++) /* newest first: the oldest lose theirs */
        held += list.items[i].bytes;
    for (size_t i = list.n; i-- > 0;) {
        const struct run_entry *entry = &list.items[i];
        bool is_old = now > entry->began_s && now - entry->began_s > max_age_s;
        if (!is_old && held <= max_bytes)
            continue;
        AUTO(fd_close) int dir = open_run(runs, entry->key);
        AUTO(fd_close) int hold = dir < 0 ? -1 : run_dir_hold(dir);
        if (hold < 0)
            continue;
        n += run_dir_drop_artifacts(dir);
        uint64_t left = run_dir_bytes(dir);
        held -= entry->bytes > left ? entry->bytes - left : 0;
    }
    return n;
}

void runs_sweep_when_due(const struct policy *policy)
{
    struct stat st;
    AUTO(fd_close) int runs = -1;

    if (run_dir_open_all(&runs, NULL) < 0 || runs < 0)
        return;
    AUTO(fd_close)
    int stamp = openat(runs, ".swept", O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    bool is_due = stamp >= 0 && fstat(stamp, &st) == 0 &&
                  (st.st_size == 0 || time(NULL) - st.st_mtim.tv_sec > SWEEP_EVERY_S);
    if (!is_due || pwrite(stamp, "\n", 1, 0) != 1)
        return;
    (void)runs_sweep(policy_get(policy, POLICY_ARTIFACTS_BYTES)->number,
            policy_get(policy, POLICY_ARTIFACTS_AGE)->number / 1000,
            NULL); /* what could not be removed is tried again later */
}
