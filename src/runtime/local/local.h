/* local.h - a kernel sandbox in its owner; only for the files of the adapter. */
#pragma once
#include "runtime/local/cgroup/cgroup.h"
#include "runtime/local/slot.h"
#include "runtime/runtime.h"
#include "runtime/streams.h"
#include "runtime/wire.h"

struct plan;

struct local {
    struct sandbox base;
    struct plan *plan;
    struct slot slot;
    struct cgroup cgroup;
    int pidfd;
    pid_t pid;                  /* init's; valid until wait_gone() */
    int sock;                   /* requests and answers; base.event_fd has the reports */
    bool is_ready;              /* init has reported that the setup is done */
    struct wire_message report; /* init's last figures */
    bool has_report;
    enum gone_why why;
    bool is_ended;      /* the programs were killed, and init too */
    bool knows_freezer; /* init can thaw them */
    struct started started;
};

struct local *local_of(struct sandbox *box);

/* See runtime.h. Returns once init was told to continue: local.c waits for its report. */
int local_create(struct runtime *rt, const struct sandbox_spec *spec, struct sandbox **out,
        struct carrel_error *err);

/* Sends a request that is answered by WIRE_DONE. */
int local_ask(struct local *local, const struct wire_message *message, const int *fds,
        size_t n_fds, struct carrel_error *err);

/* Operations of a living sandbox; see runtime.h. */
int local_pids(struct sandbox *box, pid_t *pids, size_t max, struct carrel_error *err);
void local_describe(struct sandbox *box, struct sandbox_process *process);
int local_pause(struct sandbox *box, const char **by, struct carrel_error *err);
int local_resume(struct sandbox *box, struct carrel_error *err);
int local_update(struct sandbox *box, const struct sandbox_limits *limits, unsigned which,
        struct carrel_error *err);
int local_set_lease(
        struct sandbox *box, uint64_t end_ns, uint64_t idle_ms, struct carrel_error *err);
