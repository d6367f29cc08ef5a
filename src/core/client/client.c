/* client.c - finds living sandboxes and sends requests to their keepers. */
#include "core/client/client.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/options.h"
#include "base/payload.h"
#include "core/client/keeper_alive.h"
#include "core/client/remote.h"
#include "core/files/file_access.h"
#include "core/keeper/claim.h"
#include "core/keeper/sweep.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define TEXT_MAX (64U << 20)

void carrel_sandbox_free(struct carrel_sandbox *sandbox)
{
    if (!sandbox)
        return;
    remote_free(sandbox->box);
    free(sandbox);
}

/* Retries while the queue of the keeper is full, unless the keeper is stuck. */
static int connect_to(
        const struct registry_entry *entry, pid_t keeper, struct carrel_error *err)
{
    struct keeper_check check = KEEPER_CHECK_INIT;

    for (;;) {
        int sock = registry_connect(entry, KEEPER_CHECK_MS, err);
        if (sock != -ETIMEDOUT)
            return sock;
        int r = keeper_check_alive(&check, keeper, KEEPER_HELLO, err);
        if (r < 0)
            return r;
    }
}

static int find(const struct registry *reg, const char *word, struct carrel_sandbox *sandbox,
        struct carrel_error *err)
{
    AUTO(registry_entry_free) struct registry_entry *entry = NULL;
    struct registry_status status = { 0 };

    int r = registry_find(reg, word, &entry, err);
    if (r == -ENOENT || r == -ENOTUNIQ)
        return err_from(err, r, CARREL_FROM_CALLER);
    if (r < 0)
        return r;
    memcpy(sandbox->id, entry->id, sizeof(sandbox->id));
    (void)registry_get_status(entry, &status, NULL); /* else its pid is unknown */
    int sock = connect_to(entry, status.pid, err);
    if (sock < 0)
        return sock;
    r = remote_open(sock, status.pid, &sandbox->box, err);
    if (r < 0)
        return r;
    const struct keeper_facts *facts = &sandbox->box->facts;
    result_note_held(
            facts->held_by, facts->limits, (enum isolation)facts->isolation, sandbox->note);
    return 0;
}

static int find_and_connect(
        const char *word, struct carrel_sandbox *sandbox, struct carrel_error *err)
{
    AUTO(registry_close) struct registry reg = REGISTRY_NONE;

    int r = registry_open(&reg, err);
    if (r == 0)
        r = find(&reg, word, sandbox, err);
    if (r == -ENOENT || r == -ESRCH)
        (void)keeper_sweep(&reg, NULL); /* it may have died; the next caller retries */
    return r;
}

int carrel_sandbox_open(const char *word, struct carrel_sandbox **out, struct carrel_error *err)
{
    AUTO(carrel_sandbox_free) struct carrel_sandbox *sandbox = calloc(1, sizeof(*sandbox));

    err = ERR_OR_IGNORED(err);
    if (!word)
        return err_set(err, -EINVAL, "no sandbox is named");
    if (!sandbox)
        return err_set_errno(err, -ENOMEM, "sandbox");
    int r = find_and_connect(word, sandbox, err);
    if (r < 0)
        return r;
    *out = ptr_steal(&sandbox);
    return 0;
}

int client_connect(struct carrel_sandbox *sandbox, struct carrel_error *err)
{
    if (sandbox->box)
        return 0;
    int r = find_and_connect(sandbox->id, sandbox, err);
    return r == -ENOENT ? err_set(err, -ESRCH, "the sandbox has ended") : r;
}

const char *carrel_sandbox_id(const struct carrel_sandbox *sandbox)
{
    return sandbox->id;
}

const char *carrel_sandbox_note(const struct carrel_sandbox *sandbox)
{
    return sandbox->note;
}

static int access_ask(struct file_access *access, const struct file_request *request,
        struct file_answer *answer, struct carrel_error *err)
{
    return sandbox_file(access->box, request, answer, err);
}

static void access_close(struct file_access *access)
{
    sandbox_free(access->box);
}

int client_file_access(const char *word, struct file_access *access, struct carrel_error *err)
{
    static const struct file_access_ops ops = { .ask = access_ask, .close = access_close };
    AUTO(carrel_sandbox_free) struct carrel_sandbox *sandbox = NULL;

    int r = carrel_sandbox_open(word, &sandbox, err);
    if (r < 0)
        return r;
    *access = FILE_ACCESS_INIT;
    access->ops = &ops;
    access->box = &ptr_steal(&sandbox->box)->base;
    return 0;
}

/* One request; the answer's descriptors are in `fds`, or are closed if that is NULL. */
static int ask(struct carrel_sandbox *sandbox, struct keeper_message *message, int *fds,
        struct carrel_error *err)
{
    int r = client_connect(sandbox, err);

    return r < 0 ? r : remote_ask(sandbox->box, message, NULL, 0, fds, err);
}

static int ask_plain(struct carrel_sandbox *sandbox, struct keeper_message *message,
        struct carrel_error *err)
{
    int r = ask(sandbox, message, NULL, ERR_OR_IGNORED(err));

    return r < 0 ? r : 0;
}

static int ask_text(struct carrel_sandbox *sandbox, enum keeper_kind kind, char **out,
        struct carrel_error *err)
{
    struct keeper_message message = { .kind = (uint32_t)kind };
    AUTO(buf_finish) struct buf text = BUF_INIT(TEXT_MAX);
    int fds[KEEPER_MAX_FDS];

    err = ERR_OR_IGNORED(err);
    int n = ask(sandbox, &message, fds, err);
    if (n < 0)
        return n;
    int r = n == 1 ? keeper_text_read(fds[0], &text, err)
                   : err_set(err, -EPROTO, "the keeper sent no text");
    for (int i = 0; i < n; i++)
        fd_close(fds[i]);
    return r < 0 || !out ? r : buf_take(&text, out, err);
}

int carrel_sandbox_signal(
        struct carrel_sandbox *sandbox, uint32_t process, int signal, struct carrel_error *err)
{
    struct keeper_message message = {
        .kind = KEEPER_SIGNAL,
        .flags = KEEPER_ANSWER,
        .process = process,
        .value = signal,
    };

    return ask_plain(sandbox, &message, err);
}

int carrel_sandbox_processes(
        struct carrel_sandbox *sandbox, char **json, struct carrel_error *err)
{
    return ask_text(sandbox, KEEPER_PROCESSES, json, err);
}

int carrel_sandbox_inspect(
        struct carrel_sandbox *sandbox, char **json, struct carrel_error *err)
{
    return ask_text(sandbox, KEEPER_INSPECT, json, err);
}

int carrel_sandbox_renew(struct carrel_sandbox *sandbox, uint64_t lease_ms, uint64_t idle_ms,
        struct carrel_error *err)
{
    struct keeper_message message = {
        .kind = KEEPER_RENEW,
        .lease_ms = lease_ms,
        .idle_ms = idle_ms,
    };

    return ask_plain(sandbox, &message, err);
}

int carrel_sandbox_pause(struct carrel_sandbox *sandbox, struct carrel_error *err)
{
    err = ERR_OR_IGNORED(err);
    int r = client_connect(sandbox, err);

    return r < 0 ? r : sandbox_pause(&sandbox->box->base, err);
}

int carrel_sandbox_resume(struct carrel_sandbox *sandbox, struct carrel_error *err)
{
    err = ERR_OR_IGNORED(err);
    int r = client_connect(sandbox, err);

    return r < 0 ? r : sandbox_resume(&sandbox->box->base, err);
}

int carrel_sandbox_update(struct carrel_sandbox *sandbox, const struct carrel_limits *limits,
        struct carrel_error *err)
{
    struct carrel_limits own = CARREL_LIMITS_INIT;
    unsigned which = 0;

    err = ERR_OR_IGNORED(err);
    int r = OPTIONS_TAKE(&own, limits, CARREL_LIMITS_INIT, err);
    if (r < 0)
        return r;
    const struct sandbox_limits wanted = {
        .value = { [LIMIT_MEMORY] = own.memory_bytes,
                [LIMIT_CPU] = own.cpu_milli,
                [LIMIT_PIDS] = own.pids,
                [LIMIT_IO_READ] = own.io_read_bytes,
                [LIMIT_IO_WRITE] = own.io_write_bytes },
    };
    for (unsigned i = 0; i < LIMIT_COUNT; i++)
        which |= wanted.value[i] ? LIMIT_BIT(i) : 0;
    r = client_connect(sandbox, err);
    return r < 0 ? r : sandbox_update(&sandbox->box->base, &wanted, which, err);
}

int carrel_sandbox_snapshot(struct carrel_sandbox *sandbox, const char *name, bool *is_copied,
        struct carrel_error *err)
{
    struct keeper_message message = { .kind = KEEPER_SNAPSHOT };

    err = ERR_OR_IGNORED(err);
    AUTO(fd_close) int payload = -1;
    int r = payload_make_near(name, NULL, NULL, &message.payload, &payload, err);
    if (r == 0)
        r = client_connect(sandbox, err);
    if (r == 0)
        r = remote_ask(sandbox->box, &message, &payload, payload >= 0, NULL, err);
    if (r < 0)
        return r;
    if (is_copied)
        *is_copied = message.flags & KEEPER_COPIED;
    return 0;
}

/* Takes the report of each fork; a fork without a report has failed, too. */
static int await_forks(
        int from, const struct carrel_fork_options *options, struct carrel_error *err)
{
    struct keeper_ready ready;
    uint32_t n = 0;
    int first = 0;
    int receipt;

    for (; n < options->n && keeper_receive_ready(from, &ready, &receipt) == 0; n++) {
        const struct carrel_error *failure = ready.error.code < 0 ? &ready.error : NULL;
        if (options->ready)
            options->ready(ready.id, receipt, failure, options->context);
        else
            carrel_sandbox_received(receipt);
        if (failure && first == 0) {
            first = failure->code;
            *err = *failure;
        }
    }
    if (first == 0 && n < options->n)
        return err_set(err, -ECHILD, "%u of %u forks ended before they were ready",
                options->n - n, options->n);
    return first;
}

int carrel_sandbox_fork(struct carrel_sandbox *sandbox,
        const struct carrel_fork_options *options, struct carrel_error *err)
{
    struct carrel_fork_options own = CARREL_FORK_OPTIONS_INIT;
    int fds[KEEPER_MAX_FDS];

    err = ERR_OR_IGNORED(err);
    int r = OPTIONS_TAKE(&own, options, CARREL_FORK_OPTIONS_INIT, err);
    if (r == 0 && own.n == 0)
        r = err_set(err, -EINVAL, "no fork is wanted: n is 0");
    if (r == 0)
        r = keeper_check_labels(own.labels, err);
    if (r == 0)
        r = client_connect(sandbox, err);
    if (r < 0)
        return r;
    struct keeper_message message = {
        .kind = KEEPER_FORK,
        .value = (int32_t)own.n,
        .flags = (own.inherits_env ? KEEPER_INHERIT : 0U) | (own.labels ? KEEPER_LABELS : 0U),
    };
    AUTO(fd_close) int payload = -1;
    r = payload_make_near("", own.labels, NULL, &message.payload, &payload, err);
    if (r < 0)
        return r;
    int n = remote_ask(sandbox->box, &message, &payload, payload >= 0, fds, err);
    if (n < 0)
        return n;
    r = n == 1 ? await_forks(fds[0], &own, err)
               : err_set(err, -EPROTO, "the keeper sent no socket");
    for (int i = 0; i < n; i++)
        fd_close(fds[i]);
    return r;
}

void carrel_sandbox_received(int receipt)
{
    (void)send(receipt, "", 1, MSG_NOSIGNAL); /* else the sandbox has ended already */
    fd_close(receipt);
}

int carrel_sandbox_destroy(
        struct carrel_sandbox *sandbox, char **summary, struct carrel_error *err)
{
    return ask_text(sandbox, KEEPER_DESTROY, summary, err);
}
