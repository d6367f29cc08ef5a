/* keeper.c - a keeper from start to end: makes the sandbox, runs one loop, cleans up. */
#include "core/keeper/keeper.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/trim.h"
#include "core/disk/disk.h"
#include "core/keeper/wire.h"
#include "core/request/image_root.h"
#include "core/result/outcome.h"
#include "core/worktree/layers.h"
#include "core/worktree/sweep_layers.h"
#include "registry/registry.h"
#include <errno.h>
#include <limits.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#define NS_PER_MS UINT64_C(1000000)
#define OVERDUE_MS 1000 /* that init may take to end an expired sandbox */
#define CLIENTS_MS 100  /* between two looks at what clients alone may write */
#define PUBLISH_MS 20   /* between two updates of the registry */

uint64_t keeper_idle_since(const struct keeper *keeper)
{
    const struct sandbox *box = keeper->session.box;

    return keeper->idle_ms && box && keeper_count_running(keeper) == 0 ? box->touched_ns : 0;
}

static void publish_status(struct keeper *keeper)
{
    unsigned n_clients = 0;

    for (size_t i = 0; i < keeper->n_clients; i++)
        n_clients += keeper->clients[i].sock >= 0;
    const struct registry_status status = {
        .state = keeper->end != KEEPER_GOES_ON ? REGISTRY_ENDING
                 : keeper->is_paused           ? REGISTRY_PAUSED
                                               : REGISTRY_RUNNING,
        .pid = getpid(),
        .lease_end_ns = keeper->lease_end_ns,
        .idle_ms = keeper->idle_ms,
        .idle_since_ns = keeper_idle_since(keeper),
        .n_processes = keeper_count_running(keeper),
        .n_clients = n_clients,
    };
    (void)registry_set_status(keeper->entry, &status, NULL); /* only for display */
    keeper->is_changed = false;
    keeper->next_publish_ns = clock_ns() + PUBLISH_MS * NS_PER_MS;
    keeper->rest_ns = clock_ns() + TRIM_AFTER_MS * NS_PER_MS;
}

int keeper_take_event(struct keeper *keeper, struct carrel_error *err)
{
    static const enum keeper_end ends[] = {
        [GONE_OWN] = KEEPER_LOST,
        [GONE_LEASE] = KEEPER_LEASE,
        [GONE_IDLE] = KEEPER_IDLE,
        [GONE_LOST] = KEEPER_OUT_OF_REACH,
    };
    struct sandbox_event event;

    int r = sandbox_next_event(keeper->session.box, &event, err);
    if (r < 0)
        return r;
    if (event.kind == EVENT_EXITED)
        return keeper_on_exit(keeper, &event, err);
    if (event.kind == EVENT_GONE)
        keeper->end = ends[event.why];
    return 0;
}

static void on_signal(struct keeper *keeper)
{
    struct signalfd_siginfo info;

    if (read(keeper->signal_fd, &info, sizeof(info)) != (ssize_t)sizeof(info))
        return;
    keeper->session.result->cancel_signal = (int)info.ssi_signo;
    keeper->end = KEEPER_SIGNALLED;
}

/* The creator has delivered the id, or has closed the receipt without that. */
static void on_receipt(struct keeper *keeper)
{
    char byte;

    ssize_t n = recv(keeper->receipt, &byte, 1, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0)
        keeper->end = KEEPER_UNCLAIMED;
    loop_io_stop(&keeper->on_receipt);
    fd_close(fd_steal(&keeper->receipt));
}

static uint64_t earlier(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static bool has_clients(const struct keeper *keeper)
{
    for (size_t i = 0; i < keeper->n_clients; i++)
        if (keeper->clients[i].sock >= 0)
            return true;
    return false;
}

/* Without programs and clients nothing is written, so there is no look until the next start. */
static void poll_disk(struct keeper *keeper)
{
    struct disk *disk = &keeper->session.disk;
    struct sandbox *box = keeper->session.box;
    pid_t one;

    bool is_over = disk_poll(disk);
    if (keeper_count_running(keeper) == 0 && box->can & CAN_HOST_PIDS &&
            sandbox_pids(box, &one, 1, NULL) == 0)
        disk->next_ns = has_clients(keeper) ? clock_ns() + CLIENTS_MS * NS_PER_MS : UINT64_MAX;
    else if (is_over)
        keeper_kill_programs(keeper);
}

/* init ends the sandbox when its lease is over; the keeper does if init cannot. */
static uint64_t overdue_ns(const struct keeper *keeper)
{
    uint64_t end = keeper->lease_end_ns;
    uint64_t now = clock_boot_ns();

    if (end == 0)
        return CLOCK_NEVER;
    end += OVERDUE_MS * NS_PER_MS;
    return clock_ns() + (end > now ? end - now : 0);
}

static bool is_overdue(const struct keeper *keeper)
{
    return keeper->lease_end_ns != 0 &&
           clock_boot_ns() >= keeper->lease_end_ns + OVERDUE_MS * NS_PER_MS;
}

struct keeper_source *keeper_source_new(
        struct keeper *keeper, size_t slot, int stream, loop_io_call *call)
{
    struct keeper_source *source = calloc(1, sizeof(*source));

    if (!source)
        return NULL;
    *source = (struct keeper_source){ .keeper = keeper, .slot = slot, .stream = stream };
    loop_io_init(&source->io, &keeper->loop, call);
    return source;
}

void keeper_source_free(struct keeper_source *source)
{
    if (source)
        loop_io_stop(&source->io);
    free(source);
}

static int on_box(struct loop_io *io, uint32_t events, struct carrel_error *err)
{
    struct keeper *keeper = container_of(io, struct keeper, on_box);

    (void)events;
    return keeper->end == KEEPER_GOES_ON ? keeper_take_event(keeper, err) : 0;
}

static int on_signal_fd(struct loop_io *io, uint32_t events, struct carrel_error *err)
{
    (void)events;
    (void)err;
    on_signal(container_of(io, struct keeper, on_signal));
    return 0;
}

static int on_receipt_end(struct loop_io *io, uint32_t events, struct carrel_error *err)
{
    (void)events;
    (void)err;
    on_receipt(container_of(io, struct keeper, on_receipt));
    return 0;
}

static int on_listen(struct loop_io *io, uint32_t events, struct carrel_error *err)
{
    struct keeper *keeper = container_of(io, struct keeper, on_listen);

    (void)events;
    (void)err;
    if (keeper->end == KEEPER_GOES_ON)
        keeper_accept(keeper);
    return 0;
}

/* turn() looks at what is due. */
static int on_wake(struct loop_timer *timer, struct carrel_error *err)
{
    (void)timer;
    (void)err;
    return 0;
}

static int begin_loop(struct keeper *keeper, struct carrel_error *err)
{
    int r = loop_init(&keeper->loop, err);

    loop_io_init(&keeper->on_listen, &keeper->loop, on_listen);
    loop_io_init(&keeper->on_box, &keeper->loop, on_box);
    loop_io_init(&keeper->on_signal, &keeper->loop, on_signal_fd);
    loop_io_init(&keeper->on_receipt, &keeper->loop, on_receipt_end);
    loop_timer_init(&keeper->wake, &keeper->loop, on_wake);
    pace_begin(&keeper->pace, keeper->session.result->limits[LIMIT_CPU]);
    if (r == 0)
        r = loop_io_watch(&keeper->on_signal, keeper->signal_fd, EPOLLIN, err);
    return r < 0 ? r : loop_io_watch(&keeper->on_receipt, keeper->receipt, EPOLLIN, err);
}

static int wait_for_events(struct keeper *keeper, struct carrel_error *err)
{
    bool has_backlog = keeper_report(keeper);
    bool accepts = clock_ns() >= keeper->next_accept_ns;
    uint64_t wake_ns = earlier(keeper_next_deadline(keeper), keeper->session.disk.next_ns);

    keeper->kept_rest_ns = pace_look(&keeper->pace);
    if (keeper->kept_rest_ns)
        wake_ns = earlier(wake_ns, keeper->kept_rest_ns);
    if (has_backlog)
        wake_ns = earlier(wake_ns, clock_ns() + 10 * NS_PER_MS);
    if (keeper->is_changed)
        wake_ns = earlier(wake_ns, keeper->next_publish_ns);
    if (keeper->below.due_ns)
        wake_ns = earlier(wake_ns, keeper->below.due_ns);
    if (!accepts)
        wake_ns = earlier(wake_ns, keeper->next_accept_ns);
    loop_timer_set(
            &keeper->wake, earlier(earlier(wake_ns, overdue_ns(keeper)), keeper->rest_ns));
    int r = keeper_watch_streams(keeper, err);
    if (r == 0)
        r = loop_io_watch(
                &keeper->on_listen, accepts ? keeper->entry->listen_fd : -1, EPOLLIN, err);
    if (r == 0) /* it is another one after the sandbox was made again */
        r = loop_io_watch(&keeper->on_box, keeper->session.box->event_fd, EPOLLIN, err);
    return r < 0 ? r : loop_turn(&keeper->loop, err);
}

static int turn(struct keeper *keeper, struct carrel_error *err)
{
    int r = wait_for_events(keeper, err);

    if (r < 0 || keeper->end != KEEPER_GOES_ON)
        return r; /* the sandbox may be gone */
    if (is_overdue(keeper))
        keeper->end = KEEPER_LEASE;
    keeper_enforce(keeper);
    if (clock_ns() >= keeper->session.disk.next_ns)
        poll_disk(keeper);
    if (keeper->below.due_ns && clock_ns() >= keeper->below.due_ns)
        (void)recorder_below(&keeper->session.recorder, &keeper->below, err); /* next line */
    if (keeper->session.recorder.is_failed)
        return err_set(err, -EIO, "the journal takes no more records");
    if (keeper->is_changed && clock_ns() >= keeper->next_publish_ns)
        publish_status(keeper);
    if (clock_ns() >= keeper->rest_ns) {
        trim_memory();
        keeper->rest_ns = CLOCK_NEVER;
    }
    return 0;
}

static int live(struct keeper *keeper, struct carrel_error *err)
{
    int r = begin_loop(keeper, err);

    while (r == 0 && keeper->end == KEEPER_GOES_ON)
        r = turn(keeper, err);
    return r;
}

/* --- end --- */

/* How the sandbox ended, in the words of a run's result. */
static void set_end_reason(struct keeper *keeper)
{
    static const struct {
        enum carrel_reason reason;
        char message[48];
    } ends[] = {
        [KEEPER_GOES_ON] = { CARREL_INFRASTRUCTURE, "The keeper of the sandbox failed" },
        [KEEPER_DESTROYED] = { CARREL_EXITED, "" },
        [KEEPER_LEASE] = { CARREL_TIMEOUT, "The lease of the sandbox ran out" },
        [KEEPER_IDLE] = { CARREL_TIMEOUT, "The sandbox was not used for its idle time" },
        [KEEPER_SIGNALLED] = { CARREL_CANCELLED, "The keeper of the sandbox got a signal" },
        [KEEPER_LOST] = { CARREL_INFRASTRUCTURE, "The sandbox was killed from outside" },
        [KEEPER_OUT_OF_REACH] = { CARREL_INFRASTRUCTURE,
                "The sandbox is out of reach; some of it may run" },
        [KEEPER_UNCLAIMED] = { CARREL_CANCELLED, "The requester of the sandbox had exited" },
    };
    struct carrel_run_result *result = keeper->session.result;

    result->reason = ends[keeper->end].reason;
    result->has_status = keeper->end == KEEPER_DESTROYED;
    result->wait_status = 0;
    result->duration_ms = (clock_boot_ns() - keeper->created_ns) / NS_PER_MS;
    (void)snprintf(result->message, sizeof(result->message), "%s", ends[keeper->end].message);
}

/* Without a client nothing ran in it: a workspace whose id was not delivered is empty. */
static int end_worktree(struct keeper *keeper, struct carrel_error *err)
{
    if (keeper->end == KEEPER_UNCLAIMED && keeper->n_came == 0)
        return session_drop(&keeper->session, 0);
    return session_end_worktree(&keeper->session, err);
}

static int finish(struct keeper *keeper, struct carrel_error *err)
{
    struct session *session = &keeper->session;
    struct carrel_run_result *result = session->result;

    result->usage = session->box ? USAGE_INIT : keeper->before;
    int r = session->box ? sandbox_stop(session->box, &result->usage, err) : 0;
    if (r < 0)
        return r;
    if (session->box)
        keeper_add_usage(keeper, &result->usage);
    set_end_reason(keeper);
    r = recorder_end(&session->recorder, result, err);
    if (r == 0)
        r = end_worktree(keeper, err);
    if (r == 0)
        r = recorder_close(&session->recorder, result, err);
    return r;
}

/* The client that requested the end gets its answer when everything is removed. */
static void tell_end(struct keeper *keeper, int code, const struct carrel_error *err)
{
    const struct buf *summary = &keeper->session.result->summary;
    struct keeper_message answer = { .kind = code < 0 ? KEEPER_FAILED : KEEPER_DONE };
    AUTO(fd_close) int text = -1;

    if (keeper->destroyer < 0)
        return;
    if (code < 0)
        answer.error = *err;
    else
        text = keeper_text_make(summary->data ? summary->data : "", summary->len, NULL);
    (void)keeper_send(
            keeper->clients[keeper->destroyer].sock, &answer, &text, text >= 0, MSG_DONTWAIT);
}

/* The keeper has locked its layers itself by now. */
static void return_locks(struct keeper *keeper)
{
    for (size_t i = 0; i < keeper->n_borrowed_locks; i++)
        fd_close(keeper->borrowed_locks[i]);
    keeper->n_borrowed_locks = 0;
}

/* Removes the layers that nothing else needs. */
static void drop_layers(struct keeper *keeper)
{
    struct layers *layers = ptr_steal(&keeper->session.layers);
    bool had_sealed = keeper->base || (layers && layers->n_sealed > 0);

    layers_free(layers);
    return_locks(keeper);
    if (had_sealed)
        sweep_own_layers();
}

/*
 * If only the record of the end is missing, as on a full disk, the sandbox has ended as
 * requested, and a note says so. Not with a workspace: it was not harvested.
 */
static int forgive_missing_record(struct keeper *keeper, int r, struct carrel_error *why)
{
    static const char text[] = "the sandbox is gone, but its journal has no end";

    if (keeper->end != KEEPER_DESTROYED || !keeper->session.recorder.is_failed)
        return r;
    if (keeper->session.worktree)
        return err_wrap(why, r, "%s", text);
    buf_addf(&keeper->session.result->summary, "carrel: note: %s: %s\n", text, why->message);
    return 0;
}

static NO_INLINE void end(struct keeper *keeper, struct carrel_error *why)
{
    struct carrel_error err = { 0 };
    int r = why->code < 0 ? why->code : 0;

    publish_status(keeper);
    int told = recorder_below(&keeper->session.recorder, &keeper->below, r < 0 ? NULL : why);
    r = r < 0 ? r : told;
    if (r == 0) {
        r = finish(keeper, &err);
        *why = err;
    }
    if (r < 0) { /* clean up as far as possible */
        r = forgive_missing_record(keeper, r, why);
        if (keeper->session.box)
            (void)sandbox_stop(keeper->session.box, NULL, NULL);
        session_abandon(&keeper->session, why);
    }
    drop_layers(keeper);
    (void)registry_remove(keeper->entry, NULL); /* else swept */
    tell_end(keeper, r, why);
}

/* --- start --- */

int keeper_publish_record(const struct keeper *keeper, struct carrel_error *err)
{
    AUTO(buf_finish) struct buf record = BUF_INIT(REGISTRY_RECORD_MAX);

    keeper_write_record(keeper, &record);
    if (record.is_short)
        return err_set_errno(err, -ENOMEM, "record");
    return registry_publish(keeper->entry, record.data, record.len, err);
}

static int make(struct keeper *keeper, struct carrel_error *err)
{
    struct session *session = &keeper->session;
    const struct image_root *root = session->root;

    (void)malloc_trim(0); /* init gets a copy of this memory, and there are many keepers */
    session->must_be_ready = session->stays = true;
    int r = layers_make(keeper->base, root ? root->image->trees : NULL, &session->layers, err);
    if (r == 0)
        r = session_make(session, err);
    if (r < 0)
        return r;
    return_locks(keeper);
    if (keeper->lease_ms)
        keeper->lease_end_ns = clock_boot_ns() + keeper->lease_ms * NS_PER_MS;
    r = sandbox_set_lease(session->box, keeper->lease_end_ns, keeper->idle_ms, err);
    if (r == 0)
        r = keeper_leave_caller(keeper, err);
    if (r < 0)
        return r;
    clock_stamp_now(keeper->created);
    keeper->created_ns = clock_boot_ns();
    publish_status(keeper);
    return keeper_publish_record(keeper, err);
}

/* One end stays here, the other one is for the creator. */
static int open_receipt(struct keeper *keeper, int *theirs, struct carrel_error *err)
{
    int ends[2];

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
        return err_set_errno(err, -errno, "socketpair");
    keeper->receipt = ends[0];
    *theirs = ends[1];
    return 0;
}

/* Makes the sandbox and reports to the creator: it is ready, or why not. */
static NO_INLINE int begin(struct keeper *keeper, const char *id, int report)
{
    struct keeper_ready ready = { 0 };
    AUTO(fd_close) int theirs = -1;

    keeper->destroyer = keeper->signal_fd = keeper->receipt = -1;
    keeper->before = USAGE_INIT;
    int r = make(keeper, &ready.error);
    if (r == 0)
        r = open_receipt(keeper, &theirs, &ready.error);
    if (r < 0) {
        (void)session_drop(&keeper->session, r);
        session_abandon(&keeper->session, &ready.error);
        sandbox_free(ptr_steal(&keeper->session.box));
        drop_layers(keeper);
        (void)registry_remove(keeper->entry, NULL); /* else swept */
    }
    if (r == 0)
        (void)snprintf(ready.note, sizeof(ready.note), "%s", keeper->session.result->note);
    (void)snprintf(ready.id, sizeof(ready.id), "%s", id);
    keeper_send_ready(report, &ready, theirs);
    fd_close(report);
    return r;
}

int keeper_main(struct keeper *keeper, const char *id, int report)
{
    struct carrel_error err = { 0 };

    if (begin(keeper, id, report) < 0)
        return 1;
    int r = live(keeper, &err);
    end(keeper, &err);
    return r < 0;
}
