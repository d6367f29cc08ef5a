/* review.c - further records of a run that has ended. */
#include "core/record/review.h"
#include "base/err.h"
#include "core/record/find.h"
#include "core/record/recorder.h"
#include "core/state/state.h"
#include "policy/policy.h"
#include "workspace/workspace.h"
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <unistd.h>

/*
 * 1: there is one, 0: the run was not recorded. A journal that was removed does not make its
 * run an unrecorded one.
 */
static int has_journal(const struct workspace *ws, struct carrel_error *err)
{
    char key[STATE_KEY_MAX];
    char path[PATH_MAX];
    char file[PATH_MAX + STATE_KEY_MAX + 32];

    state_run_key(ws->task, ws->run, key);
    int r = journals_path(path, err);
    if (r < 0)
        return r;
    (void)snprintf(file, sizeof(file), "%s/%s/journal.jsonl", path, key);
    if (access(file, F_OK) == 0)
        return 1;
    AUTO(journals_close) struct journals *journals = NULL;
    r = journals_open(&journals, err);
    if (r < 0)
        return r;
    const struct journal_run *known = journal_runs_get(journals->runs, key);
    return known && !known->is_pruned;
}

int review_begin(const struct workspace *ws, const char *event, struct recorder *recorder,
        struct carrel_error *err)
{
    /*
     * A repository must not decide how a journal is written: its policy file is not searched,
     * and cannot block the work of the run that wrote it.
     */
    const struct policy_request request = {
        .cwd = "/",
        .environment = (const char *const *)environ,
    };
    AUTO(policy_free) struct policy *policy = NULL;

    int r = has_journal(ws, err);
    if (r <= 0)
        return r;
    r = policy_load(&request, &policy, err);
    if (r == 0)
        r = recorder_reopen(recorder, ws->task, ws->run, policy, err);
    return r < 0 ? r : review_end(ws, event, recorder, err);
}

int review_end(const struct workspace *ws, const char *event, struct recorder *recorder,
        struct carrel_error *err)
{
    return recorder_delivered(
            recorder, event, ws->branch[0] ? ws->branch : NULL, ws->snapshot, err);
}

int review_discard(const struct workspace *ws, struct carrel_error *err)
{
    AUTO(recorder_finish) struct recorder recorder = { 0 };

    return review_begin(ws, "workspace_discarded", &recorder, err);
}
