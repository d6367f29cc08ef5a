/*
 * session.h - a sandbox, a workspace if one was requested, and a journal that records both. A
 * run has it for one program; a keeper for many.
 */
#pragma once
#include "core/disk/disk.h"
#include "core/record/recorder.h"
#include "core/request/mounted.h"
#include "core/request/permit.h"
#include "core/result/result.h"
#include "core/worktree/worktree.h"
#include <stdbool.h>

struct carrel_error;
struct image_root;
struct layers;
struct run_request;
struct runtime;
struct sandbox;

struct session {
    const struct run_request *request;
    struct permit permit;                     /* what was asked for, under the policy */
    struct mounted mounted;                   /* behind its mounts and its root */
    const struct carrel_run_options *options; /* of the permit */
    bool stays;                               /* many programs will be started in the sandbox */
    bool must_be_ready; /* the sandbox is needed before the program, or without one */
    bool is_cancelled;  /* a signal came before the sandbox was ready; it is made, but unused */
    struct recorder recorder;
    bool has_record; /* the journal was begun */
    struct carrel_run_result *result;
    struct image_root *root;       /* the image that is the root; NULL: none */
    struct layers *layers;         /* of private files that are kept on disk; NULL: in memory */
    struct sandbox_overlay memory; /* an image's layers, where what is written is not kept */
    struct worktree *worktree;     /* NULL: the run has no workspace of its own */
    struct disk disk;
    int image; /* the root directory of the disk image that has layers and workspace; -1: none
                */
    int writable; /* see writable_note(); -1: no directory of the host is */
    struct runtime *runtime;
    struct sandbox *box;
};

/* -ENOMEM is the only failure. `request` must outlive it. */
int session_init(
        struct session *session, const struct run_request *request, struct carrel_error *err);
void session_finish(struct session *session);

/* Checks the request against the policy; the run gets its name. */
int session_permit(struct session *session, struct carrel_error *err);

/* The first record, if it is not written yet. */
int session_begin_record(struct session *session, struct carrel_error *err);

/*
 * The sandbox, of the policy's runtime or of the next on its list that isolates enough. Where
 * it must be ready, a signal to the caller (signal_fd) ends the wait: `is_cancelled`.
 */
int session_make(struct session *session, struct carrel_error *err);

/*
 * The sandbox again, as it was asked for, after it was stopped: on the same workspace, and on
 * the layers as they are now.
 */
int session_remake(struct session *session, struct carrel_error *err);

/* No program ran, so a workspace that was made for it is empty: removed. Returns `code`. */
int session_drop(struct session *session, int code);

/*
 * After the sandbox has ended: what becomes of the workspace depends on how the program ended.
 * Does nothing without one.
 */
int session_end_worktree(struct session *session, struct carrel_error *err);

/* Records the failure or refusal as far as possible; `why` says more. */
void session_abandon(struct session *session, const struct carrel_error *why);
