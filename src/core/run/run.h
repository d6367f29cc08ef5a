/* run.h - a run, as other verbs of core use it. */
#pragma once
#include <carrel/run.h>

struct artifact_code;
struct buf;
struct carrel_error;
struct policy;
struct worktree_origin;

/*
 * What a language adds to a run of its interpreter: the task of its guest, and what that says
 * (guest.h).
 */
struct run_guest {
    const char *task;
    size_t task_len;
    size_t findings_max;
    size_t report_max;
    /*
     * The sandbox has ended, and the result has a reason by its status: the guest may know a
     * better one. `findings` is NULL if there were none, or too many; a report that is too long
     * is_short.
     */
    void (*read_report)(void *context, const struct buf *findings, const struct buf *report,
            struct carrel_run_result *result);
    void *context;
};

struct run_request {
    const struct carrel_run_options *options;
    const struct policy *policy;      /* NULL: a program of carrel's own, under no policy */
    const struct run_guest *guest;    /* NULL: the program is all there is */
    const struct artifact_code *code; /* what to keep as the run's code; NULL: its argv */
    const char *const *mount_ids;     /* what the mounts must be (mounted.h); NULL: anything */
    const struct worktree_origin *origin; /* what its workspace is a fork of; NULL: none */
};

/* The policy that applies to these options: the file they name or that is found, and bounds. */
int run_load_policy(const struct carrel_run_options *options, struct policy **out,
        struct carrel_error *err);

/* carrel_run() is this with the policy that is found. */
int run_execute(const struct run_request *request, struct carrel_run_result **out,
        struct carrel_error *err);
