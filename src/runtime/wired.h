/*
 * wired.h - a sandbox that is served by a process inside, over the two sockets of wire.h.
 *
 * The asking side, embedded by adapters: they make the sandbox and the process that serves it,
 * and put its sockets here. Operations that need nothing else are those of the port, by the
 * same names; an adapter puts them into its table.
 */
#pragma once
#include "runtime/runtime.h"
#include "runtime/streams.h"
#include "runtime/wire.h"

struct wired {
    struct sandbox base;
    int sock;                   /* requests and answers; base.event_fd has the reports */
    bool is_ready;              /* the server has reported that the setup is done */
    struct wire_message report; /* its last figures */
    bool has_report;
    enum gone_why why;
    struct started started;
    /* Ends the server and all that it serves: it does not answer, or cannot be trusted. */
    void (*kill)(struct wired *wired);
};

static inline struct wired *wired_of(struct sandbox *box)
{
    return container_of(box, struct wired, base);
}

void wired_init(
        struct wired *wired, const struct runtime_ops *ops, void (*kill)(struct wired *));
void wired_finish(struct wired *wired); /* closes the sockets */

/*
 * As sandbox_start(), for a user that the adapter has checked, whatever the spec says of it. A
 * sandbox that is not ready yet is waited for, after the request was sent.
 */
int wired_start(struct wired *wired, const struct process_spec *spec, uid_t uid, gid_t gid,
        struct process *out, struct carrel_error *err);

/* Sends a request that is answered by WIRE_DONE. */
int wired_ask(struct wired *wired, const struct wire_message *message, const int *fds,
        size_t n_fds, struct carrel_error *err);

/* WIRE_PAUSE or WIRE_RESUME: a signal to every program. */
int wired_signal_all(struct wired *wired, enum wire_kind kind, struct carrel_error *err);

/*
 * Lets the server kill the programs, so that it can report their usage. It has a moment for
 * that. One that has just exited by itself has reported already, with the last program's exit.
 */
void wired_stop_programs(struct wired *wired);

/* The server has reported that no program is left. */
bool wired_is_alone(const struct wired *wired);

/* Puts its last figures into `usage`; none yet: false. */
bool wired_put_usage(const struct wired *wired, struct sandbox_usage *usage);

/* Operations of the port. */
int wired_ready(
        struct sandbox *box, uint64_t deadline_ns, int cancel_fd, struct carrel_error *err);
int wired_next_event(
        struct sandbox *box, struct sandbox_event *event, struct carrel_error *err);
int wired_signal(struct sandbox *box, uint32_t process, int signal, struct carrel_error *err);
int wired_terminate(
        struct sandbox *box, uint32_t process, uint32_t grace_ms, struct carrel_error *err);
int wired_file(struct sandbox *box, const struct file_request *request,
        struct file_answer *answer, struct carrel_error *err);
int wired_set_lease(
        struct sandbox *box, uint64_t end_ns, uint64_t idle_ms, struct carrel_error *err);
