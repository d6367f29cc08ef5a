/* local.h - a kernel sandbox in its owner; only for the files of the adapter. */
#pragma once
#include "runtime/local/cgroup/cgroup.h"
#include "runtime/local/slot.h"
#include "runtime/wired.h"

struct plan;

struct local {
    struct wired wired;
    struct plan *plan;
    struct slot slot;
    struct cgroup cgroup;
    int pidfd;
    pid_t pid;          /* init's; valid until wait_gone() */
    bool is_ended;      /* the programs were killed, and init too */
    bool knows_freezer; /* init can thaw them */
};

struct local *local_of(struct sandbox *box);

/* Kills init, and everything in its namespace with it. */
void local_kill(struct wired *wired);

/* See runtime.h. Returns once init was told to continue: wired_ready() waits for its report. */
int local_create(struct runtime *rt, const struct sandbox_spec *spec, struct sandbox **out,
        struct carrel_error *err);

/* Operations of a living sandbox; see runtime.h. */
int local_pids(struct sandbox *box, pid_t *pids, size_t max, struct carrel_error *err);
int local_ps(
        struct sandbox *box, struct sandbox_process *out, size_t max, struct carrel_error *err);
int local_pause(struct sandbox *box, const char **by, struct carrel_error *err);
int local_resume(struct sandbox *box, struct carrel_error *err);
int local_update(struct sandbox *box, const struct sandbox_limits *limits, unsigned which,
        struct carrel_error *err);
