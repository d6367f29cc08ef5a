/* client.c - finds living sandboxes and sends requests to their keepers. */
#include "core/client/client.h"
#include "base/err.h"
#include "base/fd.h"
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

void carrel_sandbox_free(struct carrel_sandbox *sandbox)
{
    if (!sandbox)
        return;
    remote_free(sandbox->box);
    registry_entry_free(sandbox->entry);
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
    int r = registry_find(reg, word, &sandbox->entry, err);
    if (r < 0)
        return r;
    struct registry_status status = { 0 };
    (void)registry_get_status(sandbox->entry, &status, NULL); /* else its pid is unknown */
    int sock = connect_to(sandbox->entry, status.pid, err);
    if (sock < 0)
        return sock;
    return remote_open(sock, status.pid, &sandbox->box, err);
}

int carrel_sandbox_open(const char *word, struct carrel_sandbox **out, struct carrel_error *err)
{
    AUTO(carrel_sandbox_free) struct carrel_sandbox *sandbox = calloc(1, sizeof(*sandbox));
    AUTO(registry_close) struct registry reg = REGISTRY_NONE;

    err = ERR_OR_IGNORED(err);
    if (!sandbox)
        return err_set_errno(err, -ENOMEM, "sandbox");
    int r = registry_open(&reg, err);
    if (r < 0)
        return r;
    r = find(&reg, word, sandbox, err);
    if (r == -ENOENT || r == -ESRCH)
        (void)keeper_sweep(&reg, NULL); /* it may have died; the next caller retries */
    if (r < 0)
        return r;
    *out = ptr_steal(&sandbox);
    return 0;
}

const char *carrel_sandbox_id(const struct carrel_sandbox *sandbox)
{
    return sandbox->entry->id;
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

static int ask(struct carrel_sandbox *sandbox, struct keeper_message *message,
        struct carrel_error *err)
{
    int r = remote_ask(sandbox->box, message, NULL, 0, NULL, err);

    return r < 0 ? r : 0;
}

static int ask_text(struct carrel_sandbox *sandbox, enum keeper_kind kind, struct buf *text,
        struct carrel_error *err)
{
    struct keeper_message message = { .kind = (uint32_t)kind };
    int fds[KEEPER_MAX_FDS];

    int n = remote_ask(sandbox->box, &message, NULL, 0, fds, err);
    if (n < 0)
        return n;
    int r = n == 1 ? keeper_text_read(fds[0], text, err)
                   : err_set(err, -EPROTO, "the keeper sent no text");
    for (int i = 0; i < n; i++)
        fd_close(fds[i]);
    return r;
}

int client_signal(
        struct carrel_sandbox *sandbox, uint32_t process, int signal, struct carrel_error *err)
{
    struct keeper_message message = {
        .kind = KEEPER_SIGNAL,
        .flags = KEEPER_ANSWER,
        .process = process,
        .value = signal,
    };

    return ask(sandbox, &message, err);
}

int client_processes(struct carrel_sandbox *sandbox, struct buf *json, struct carrel_error *err)
{
    return ask_text(sandbox, KEEPER_PROCESSES, json, err);
}

int client_inspect(struct carrel_sandbox *sandbox, struct buf *json, struct carrel_error *err)
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

    return ask(sandbox, &message, ERR_OR_IGNORED(err));
}

int carrel_sandbox_pause(struct carrel_sandbox *sandbox, struct carrel_error *err)
{
    return ask(sandbox, &(struct keeper_message){ .kind = KEEPER_PAUSE }, ERR_OR_IGNORED(err));
}

int carrel_sandbox_resume(struct carrel_sandbox *sandbox, struct carrel_error *err)
{
    return ask(sandbox, &(struct keeper_message){ .kind = KEEPER_RESUME }, ERR_OR_IGNORED(err));
}

int client_update(struct carrel_sandbox *sandbox, const uint64_t limit[static LIMIT_COUNT],
        struct carrel_error *err)
{
    struct keeper_message message = { .kind = KEEPER_UPDATE };

    memcpy(message.limit, limit, sizeof(message.limit));
    return ask(sandbox, &message, err);
}

int client_snapshot(struct carrel_sandbox *sandbox, const char *name, bool *is_copied,
        struct carrel_error *err)
{
    struct keeper_message message = { .kind = KEEPER_SNAPSHOT };

    AUTO(fd_close) int payload = -1;
    int r = payload_make_near(name, NULL, NULL, &message.payload, &payload, err);
    if (r == 0)
        r = remote_ask(sandbox->box, &message, &payload, payload >= 0, NULL, err);
    *is_copied = message.flags & KEEPER_COPIED;
    return r < 0 ? r : 0;
}

int carrel_sandbox_snapshot(
        struct carrel_sandbox *sandbox, const char *name, struct carrel_error *err)
{
    bool is_copied;

    return client_snapshot(sandbox, name, &is_copied, ERR_OR_IGNORED(err));
}

/* Takes the report of each fork; a fork without a report has failed, too. */
static int await_forks(int from, const struct client_fork *fork, struct carrel_error *err)
{
    struct keeper_ready ready;
    uint32_t n = 0;
    int first = 0;
    int receipt;

    for (; n < fork->n && keeper_receive_ready(from, &ready, &receipt) == 0; n++) {
        fork->ready(
                fork->context, ready.id, receipt, ready.error.code < 0 ? &ready.error : NULL);
        if (ready.error.code < 0 && first == 0) {
            first = ready.error.code;
            *err = ready.error;
        }
    }
    if (first == 0 && n < fork->n)
        return err_set(err, -ECHILD, "%u of %u forks ended before they were ready", fork->n - n,
                fork->n);
    return first;
}

int client_fork(struct carrel_sandbox *sandbox, const struct client_fork *fork,
        struct carrel_error *err)
{
    struct keeper_message message = {
        .kind = KEEPER_FORK,
        .value = (int32_t)fork->n,
        .flags = (fork->inherits_env ? KEEPER_INHERIT : 0U) |
                 (fork->labels ? KEEPER_LABELS : 0U),
    };
    int fds[KEEPER_MAX_FDS];

    int r = keeper_check_labels(fork->labels, err);
    if (r < 0)
        return r;
    AUTO(fd_close) int payload = -1;
    r = payload_make_near("", fork->labels, NULL, &message.payload, &payload, err);
    if (r < 0)
        return r;
    int n = remote_ask(sandbox->box, &message, &payload, payload >= 0, fds, err);
    if (n < 0)
        return n;
    r = n == 1 ? await_forks(fds[0], fork, err)
               : err_set(err, -EPROTO, "the keeper sent no socket");
    for (int i = 0; i < n; i++)
        fd_close(fds[i]);
    return r;
}

void client_received(int receipt)
{
    (void)send(receipt, "", 1, MSG_NOSIGNAL); /* else the sandbox has ended already */
    fd_close(receipt);
}

int client_destroy(
        struct carrel_sandbox *sandbox, struct buf *summary, struct carrel_error *err)
{
    return ask_text(sandbox, KEEPER_DESTROY, summary, err);
}

int carrel_sandbox_destroy(struct carrel_sandbox *sandbox, struct carrel_error *err)
{
    AUTO(buf_finish) struct buf summary = BUF_INIT(1U << 20);

    return client_destroy(sandbox, &summary, ERR_OR_IGNORED(err));
}
