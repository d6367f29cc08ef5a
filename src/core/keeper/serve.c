/*
 * serve.c - the requests of clients.
 *
 * Each handler either answers itself and returns 0, or returns 0 after filling in the answer,
 * or fails with the error that the client gets. Nothing waits for a client: one that does not
 * take its answer is disconnected.
 */
#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/kernel.h"
#include "base/payload.h"
#include "core/keeper/claim.h"
#include "core/keeper/keeper.h"
#include "core/keeper/wire.h"
#include "core/request/spec.h"
#include "core/run/run.h"
#include "registry/registry.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

/* A request and its answer. */
struct ask {
    size_t client;
    struct keeper_message *request;
    int *fds;
    int n_fds;
    struct keeper_message answer;
    int answer_fd;    /* owned; -1: none */
    bool is_answered; /* or needs no answer */
};

/* Reports are sent with MSG_DONTWAIT, which needs a socket. */
static bool is_packet_socket(int fd)
{
    int domain = 0;
    int type = 0;
    socklen_t len = sizeof(int);

    return getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &len) == 0 && domain == AF_UNIX &&
           getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &len) == 0 && type == SOCK_SEQPACKET;
}

static int hello(struct keeper *keeper, struct ask *ask, struct carrel_error *err)
{
    struct keeper_client *client = &keeper->clients[ask->client];

    if (ask->request->value != KEEPER_VERSION)
        return err_set(err, -EPROTO, "the keeper speaks version %d", KEEPER_VERSION);
    if (ask->n_fds != 1 || client->events >= 0 || !is_packet_socket(ask->fds[0]))
        return err_set(err, -EPROTO, "a hello comes once, with one socket");
    client->events = fd_steal(&ask->fds[0]);
    const struct carrel_run_result *result = keeper->session.result;
    struct keeper_facts *facts = &ask->answer.facts;
    memcpy(facts->run, result->run, sizeof(facts->run));
    memcpy(facts->task, result->task, sizeof(facts->task));
    (void)snprintf(facts->runtime, sizeof(facts->runtime), "%s", result->runtime);
    facts->isolation = result->isolation;
    facts->can = keeper->session.box->can;
    facts->protections = result->protections;
    memcpy(facts->held_by, result->held_by, sizeof(facts->held_by));
    memcpy(facts->limits, result->limits, sizeof(facts->limits));
    return 0;
}

static int start(struct keeper *keeper, struct ask *ask, struct carrel_error *err)
{
    int r = keeper_start(keeper, ask->client, ask->request, ask->fds, ask->n_fds, err);

    ask->is_answered = r == 0;
    return r;
}

static int attach(struct keeper *keeper, struct ask *ask, struct carrel_error *err)
{
    int r = keeper_attach(keeper, ask->client, ask->request, err);

    ask->is_answered = r == 0;
    return r;
}

static int send_signal(struct keeper *keeper, struct ask *ask, struct carrel_error *err)
{
    const struct keeper_message *request = ask->request;

    ask->is_answered = !(request->flags & KEEPER_ANSWER);
    if (request->flags & KEEPER_TERMINATE) {
        keeper_terminate(keeper, request->process);
        return 0;
    }
    int r = keeper_signal(keeper, request->process, request->value, err);
    return ask->is_answered ? 0 : r;
}

static bool may_take_room(const struct file_request *request)
{
    static const bool takes[FILE_OP_COUNT] = {
        [FILE_MAKE_DIR] = true,
        [FILE_LINK] = true,
        [FILE_SYMLINK] = true,
        [FILE_UNPACK] = true,
    };

    if (request->op == FILE_OPEN)
        return (request->flags & O_ACCMODE) != O_RDONLY;
    return takes[request->op];
}

static int file(struct keeper *keeper, struct ask *ask, struct carrel_error *err)
{
    struct file_request request = ask->request->file;
    struct payload payload = { 0 };
    const int *fds = ask->fds;
    int n_fds = ask->n_fds;
    int next = 0;

    int r = keeper_payload_read(ask->request, &fds, &n_fds, 2, &payload, err);
    if (r < 0)
        return r;
    request.path = payload.text;
    request.other = payload.argv[0];
    request.dir = ask->request->flags & KEEPER_HAS_DIR && next < n_fds ? fds[next++] : -1;
    request.watch = ask->request->flags & KEEPER_HAS_WATCH && next < n_fds ? fds[next] : -1;
    struct file_answer answer = FILE_ANSWER_INIT;
    r = file_check(&request, err);
    if (r == 0 && may_take_room(&request))
        r = keeper_check_disk(keeper, err);
    if (r == 0)
        r = recorder_file(&keeper->session.recorder, &keeper->below, &request, err);
    if (r == 0)
        r = sandbox_file(keeper->session.box, &request, &answer, err);
    payload_unmap(&payload);
    if (r < 0)
        return r;
    keeper->clients[ask->client].has_file |= answer.fd >= 0;
    if (may_take_room(&request))
        disk_wake(&keeper->session.disk);
    ask->answer_fd = fd_steal(&answer.fd);
    ask->answer.file_answer = answer;
    return 0;
}

static int give_text(struct ask *ask, const struct buf *text, struct carrel_error *err)
{
    if (text->is_short)
        return err_set_errno(err, -ENOMEM, "answer");
    ask->answer_fd = keeper_text_make(text->data, text->len, err);
    return ask->answer_fd < 0 ? ask->answer_fd : 0;
}

static int list_processes(struct keeper *keeper, struct ask *ask, struct carrel_error *err)
{
    AUTO(buf_finish) struct buf text = BUF_INIT(16U << 20);

    int r = keeper_write_processes(keeper, &text, err);
    return r < 0 ? r : give_text(ask, &text, err);
}

static int inspect(struct keeper *keeper, struct ask *ask, struct carrel_error *err)
{
    AUTO(buf_finish) struct buf text = BUF_INIT(1U << 20);

    keeper_write_state(keeper, &text);
    return give_text(ask, &text, err);
}

/* Publishes the state before the answer: the client may read it next. The rest follows in the
 * next round of the loop. */
static void show(const struct keeper *keeper)
{
    struct registry_status status;

    if (registry_get_status(keeper->entry, &status, NULL) < 0)
        return;
    status.state = keeper->is_paused ? REGISTRY_PAUSED : REGISTRY_RUNNING;
    status.lease_end_ns = keeper->lease_end_ns;
    status.idle_ms = keeper->idle_ms;
    status.idle_since_ns = keeper_idle_since(keeper);
    (void)registry_set_status(keeper->entry, &status, NULL); /* the next round tries again */
}

static int note(
        struct keeper *keeper, const char *event, const char *detail, struct carrel_error *err)
{
    keeper->is_changed = true;
    show(keeper);
    return recorder_note(&keeper->session.recorder, event, detail, err);
}

static int renew(struct keeper *keeper, struct ask *ask, struct carrel_error *err)
{
    const struct keeper_message *request = ask->request;
    uint64_t end = keeper->lease_end_ns;
    uint64_t idle_ms = keeper->idle_ms;
    char detail[96];

    if ((request->lease_ms != KEEPER_NO_TIME && request->lease_ms > KEEPER_MAX_MS) ||
            (request->idle_ms != KEEPER_NO_TIME && request->idle_ms > KEEPER_MAX_MS))
        return err_set(err, -EINVAL, "a lease or an idle time has %ju days at most",
                (uintmax_t)(KEEPER_MAX_MS / (24 * 3600 * 1000)));
    if (request->lease_ms == KEEPER_NO_TIME)
        end = 0;
    else if (request->lease_ms)
        end = clock_boot_ns() + request->lease_ms * UINT64_C(1000000);
    if (request->idle_ms)
        idle_ms = request->idle_ms == KEEPER_NO_TIME ? 0 : request->idle_ms;
    int r = sandbox_set_lease(keeper->session.box, end, idle_ms, err);
    if (r < 0)
        return r;
    keeper->lease_end_ns = end;
    keeper->idle_ms = idle_ms;
    (void)snprintf(detail, sizeof(detail), "{\"lease_ms\":%ju,\"idle_ms\":%ju}",
            end ? (uintmax_t)((end - clock_boot_ns()) / UINT64_C(1000000)) : 0,
            (uintmax_t)idle_ms);
    return note(keeper, "lease_renewed", detail, err);
}

static int pause_it(struct keeper *keeper, struct ask *ask, struct carrel_error *err)
{
    (void)ask;
    int r = sandbox_pause(keeper->session.box, err);
    if (r < 0)
        return r;
    keeper->is_paused = true;
    return note(keeper, "sandbox_paused", NULL, err);
}

static int resume_it(struct keeper *keeper, struct ask *ask, struct carrel_error *err)
{
    (void)ask;
    int r = sandbox_resume(keeper->session.box, err);
    if (r < 0)
        return r;
    keeper->is_paused = false;
    return note(keeper, "sandbox_resumed", NULL, err);
}

static void fill_limits(const uint64_t *value, struct carrel_run_options *options)
{
    if (value[LIMIT_MEMORY])
        options->memory_bytes = value[LIMIT_MEMORY];
    if (value[LIMIT_CPU])
        options->cpu_milli = value[LIMIT_CPU];
    if (value[LIMIT_PIDS])
        options->pids = value[LIMIT_PIDS];
    if (value[LIMIT_IO_READ])
        options->io_read_bytes = value[LIMIT_IO_READ];
    if (value[LIMIT_IO_WRITE])
        options->io_write_bytes = value[LIMIT_IO_WRITE];
}

void keeper_fill_limits(const struct keeper *keeper, struct carrel_run_options *options)
{
    fill_limits(keeper->changed.value, options);
}

/* The policy allows the same limits as when the sandbox is made. */
static int permit_limits(
        struct keeper *keeper, const struct keeper_message *request, struct carrel_error *err)
{
    AUTO(permit_finish) struct permit permit = { 0 };
    const struct run_request *made = keeper->session.request;
    struct carrel_run_options options = *made->options;
    static const char *const none[] = { "update", NULL };

    options.argv = none;
    fill_limits(request->limit, &options);
    return permit_make(&options, made->policy, NULL, &permit, err);
}

static int update(struct keeper *keeper, struct ask *ask, struct carrel_error *err)
{
    static const enum limit changeable[] = { LIMIT_MEMORY, LIMIT_CPU, LIMIT_PIDS, LIMIT_IO_READ,
        LIMIT_IO_WRITE };
    struct carrel_run_result *result = keeper->session.result;
    struct sandbox_limits limits = { 0 };
    unsigned which = 0;
    AUTO(buf_finish) struct buf detail = BUF_INIT(1024);
    struct json json = { .out = &detail };

    int r = permit_limits(keeper, ask->request, err);
    if (r < 0)
        return r;
    memcpy(limits.value, result->limits, sizeof(limits.value));
    json_object(&json, NULL);
    for (size_t i = 0; i < ARRAY_LEN(changeable); i++) {
        uint64_t value = ask->request->limit[changeable[i]];
        if (value == 0)
            continue;
        limits.value[changeable[i]] = value;
        which |= LIMIT_BIT(changeable[i]);
        json_u64(&json, limit_name(changeable[i]), value);
    }
    json_end_object(&json);
    r = spec_check_limits(&limits, err);
    if (r == 0)
        r = sandbox_update(keeper->session.box, &limits, which, err);
    if (r < 0)
        return r;
    memcpy(result->limits, limits.value, sizeof(result->limits));
    for (size_t i = 0; i < ARRAY_LEN(changeable); i++)
        if (which & LIMIT_BIT(changeable[i]))
            keeper->changed.value[changeable[i]] = limits.value[changeable[i]];
    (void)keeper_publish_record(
            keeper, NULL); /* they apply, even if the list does not show them */
    return note(keeper, "limits_changed", detail.data, err);
}

static int payload_alone(struct ask *ask, struct payload *out, struct carrel_error *err)
{
    const int *fds = ask->fds;
    int n_fds = ask->n_fds;

    return keeper_payload_read(ask->request, &fds, &n_fds, 0, out, err);
}

static int take_snapshot(struct keeper *keeper, struct ask *ask, struct carrel_error *err)
{
    struct payload payload = { 0 };
    bool is_copied = false;

    int r = payload_alone(ask, &payload, err);
    if (r < 0)
        return r;
    r = keeper_snapshot(keeper, payload.text, &is_copied, err);
    payload_unmap(&payload);
    ask->answer.flags = is_copied ? KEEPER_COPIED : 0;
    return r;
}

static int fork_it(struct keeper *keeper, struct ask *ask, struct carrel_error *err)
{
    struct payload payload = { 0 };
    bool has_labels = ask->request->flags & KEEPER_LABELS;

    int r = payload_alone(ask, &payload, err);
    if (r < 0)
        return r;
    const char *const *labels = has_labels ? (const char *const *)payload.argv : NULL;
    r = keeper_check_labels(labels, err);
    if (r == 0)
        r = ask->answer_fd = keeper_fork(keeper, ask->request, labels, err);
    payload_unmap(&payload);
    return r < 0 ? r : 0;
}

/* Answered at the end, in keeper.c. */
static int destroy(struct keeper *keeper, struct ask *ask, struct carrel_error *err)
{
    (void)err;
    keeper->end = KEEPER_DESTROYED;
    if (keeper->destroyer < 0)
        keeper->destroyer = (int)ask->client;
    ask->is_answered = true;
    return 0;
}

static int (*const handlers[])(struct keeper *, struct ask *, struct carrel_error *) = {
    [KEEPER_HELLO] = hello,
    [KEEPER_START] = start,
    [KEEPER_ATTACH] = attach,
    [KEEPER_SIGNAL] = send_signal,
    [KEEPER_FILE] = file,
    [KEEPER_PROCESSES] = list_processes,
    [KEEPER_INSPECT] = inspect,
    [KEEPER_RENEW] = renew,
    [KEEPER_PAUSE] = pause_it,
    [KEEPER_RESUME] = resume_it,
    [KEEPER_UPDATE] = update,
    [KEEPER_SNAPSHOT] = take_snapshot,
    [KEEPER_FORK] = fork_it,
    [KEEPER_DESTROY] = destroy,
};

static int handle(struct keeper *keeper, struct ask *ask, struct carrel_error *err)
{
    uint32_t kind = ask->request->kind;

    if (kind >= ARRAY_LEN(handlers) || !handlers[kind])
        return err_set(err, -EPROTO, "unknown request %u", kind);
    if (kind != KEEPER_HELLO && keeper->clients[ask->client].events < 0)
        return err_set(err, -EPROTO, "no hello");
    return handlers[kind](keeper, ask, err);
}

void keeper_serve(struct keeper *keeper, size_t client)
{
    struct keeper_message request;
    struct carrel_error err = { 0 };
    int fds[KEEPER_MAX_FDS];

    int n = keeper_receive(keeper->clients[client].sock, &request, fds, MSG_DONTWAIT);
    if (n == -EAGAIN)
        return;
    if (n < 0) {
        keeper_drop_client(keeper, client);
        return;
    }
    struct ask ask = {
        .client = client,
        .request = &request,
        .fds = fds,
        .n_fds = n,
        .answer.kind = KEEPER_DONE,
        .answer_fd = -1,
    };
    int r = handle(keeper, &ask, &err);
    keeper->is_changed |= keeper->idle_ms > 0; /* the idle time begins again */
    if (r < 0) {
        ask.answer = (struct keeper_message){ .kind = KEEPER_FAILED, .error = err };
        ask.answer.error.code = r;
        ask.is_answered = false;
    }
    if (!ask.is_answered && keeper_send(keeper->clients[client].sock, &ask.answer,
                                    &ask.answer_fd, ask.answer_fd >= 0, MSG_DONTWAIT) < 0)
        keeper_drop_client(keeper, client);
    fd_close(ask.answer_fd);
    for (int i = 0; i < n; i++)
        fd_close(fds[i]);
}
