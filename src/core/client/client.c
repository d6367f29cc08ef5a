/* client.c - finding a sandbox that stays, and what can be asked of its keeper. */
#include "core/client/client.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/payload.h"
#include "core/client/remote.h"
#include "core/files/file_access.h"
#include "core/keeper/claim.h"
#include "core/keeper/sweep.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

void living_free(struct living *living)
{
    if (!living)
        return;
    distant_free(living->box);
    registry_entry_free(living->entry);
    free(living);
}

/* Its queue may be full of others that it does not answer either. */
static int connect_to(
        const struct registry_entry *entry, pid_t keeper, struct carrel_error *err)
{
    struct distant_look look = DISTANT_LOOK_INIT;

    for (;;) {
        int sock = registry_connect(entry, DISTANT_LOOK_MS, err);
        if (sock != -ETIMEDOUT)
            return sock;
        int r = distant_look(&look, keeper, KEEPER_HELLO, err);
        if (r < 0)
            return r;
    }
}

static int find(const struct registry *reg, const char *word, struct living *living,
        struct carrel_error *err)
{
    int r = registry_find(reg, word, &living->entry, err);
    if (r < 0)
        return r;
    struct registry_status status = { 0 };
    (void)registry_get_status(living->entry, &status, NULL); /* then its process is not known */
    int sock = connect_to(living->entry, status.pid, err);
    if (sock < 0)
        return sock;
    return distant_open(sock, status.pid, &living->box, err);
}

int living_open(const char *word, struct living **out, struct carrel_error *err)
{
    AUTO(living_free) struct living *living = calloc(1, sizeof(*living));
    AUTO(registry_close) struct registry reg = REGISTRY_NONE;

    if (!living)
        return err_set_errno(err, -ENOMEM, "sandbox");
    int r = registry_open(&reg, err);
    if (r < 0)
        return r;
    r = find(&reg, word, living, err);
    if (r == -ENOENT || r == -ESRCH)
        (void)living_sweep(&reg, NULL); /* it may have died; whoever comes next tries again */
    if (r < 0)
        return r;
    *out = ptr_steal(&living);
    return 0;
}

static int access_ask(struct file_access *access, const struct file_request *request,
        struct file_answer *answer, struct carrel_error *err)
{
    return sandbox_file(access->box, request, answer, err);
}

static int door_check_room(struct file_access *access, struct carrel_error *err)
{
    return distant_check_room(access->box, err);
}

static void access_close(struct file_access *access)
{
    sandbox_free(access->box);
}

int client_file_access(const char *word, struct file_access *access, struct carrel_error *err)
{
    static const struct file_access_ops ops = {
        .ask = access_ask, .check_room = door_check_room, .close = access_close
    };
    AUTO(living_free) struct living *living = NULL;

    int r = living_open(word, &living, err);
    if (r < 0)
        return r;
    *access = FILE_ACCESS_INIT;
    access->ops = &ops;
    access->box = &ptr_steal(&living->box)->base;
    return 0;
}

static int ask(struct living *living, struct keeper_message *message, struct carrel_error *err)
{
    int r = distant_ask(living->box, message, NULL, 0, NULL, err);

    return r < 0 ? r : 0;
}

static int ask_text(struct living *living, enum keeper_kind kind, struct buf *text,
        struct carrel_error *err)
{
    struct keeper_message message = { .kind = (uint32_t)kind };
    int fds[KEEPER_MAX_FDS];

    int n = distant_ask(living->box, &message, NULL, 0, fds, err);
    if (n < 0)
        return n;
    int r = n == 1 ? keeper_text_read(fds[0], text, err)
                   : err_set(err, -EPROTO, "the keeper sent no text");
    for (int i = 0; i < n; i++)
        fd_close(fds[i]);
    return r;
}

int living_signal(struct living *living, uint32_t process, int signal, struct carrel_error *err)
{
    struct keeper_message message = {
        .kind = KEEPER_SIGNAL,
        .flags = KEEPER_ANSWER,
        .process = process,
        .value = signal,
    };

    return ask(living, &message, err);
}

int living_processes(struct living *living, struct buf *json, struct carrel_error *err)
{
    return ask_text(living, KEEPER_PROCESSES, json, err);
}

int living_inspect(struct living *living, struct buf *json, struct carrel_error *err)
{
    return ask_text(living, KEEPER_INSPECT, json, err);
}

int living_renew(
        struct living *living, uint64_t lease_ms, uint64_t idle_ms, struct carrel_error *err)
{
    struct keeper_message message = {
        .kind = KEEPER_RENEW,
        .lease_ms = lease_ms,
        .idle_ms = idle_ms,
    };

    return ask(living, &message, err);
}

int living_pause(struct living *living, struct carrel_error *err)
{
    return ask(living, &(struct keeper_message){ .kind = KEEPER_PAUSE }, err);
}

int living_resume(struct living *living, struct carrel_error *err)
{
    return ask(living, &(struct keeper_message){ .kind = KEEPER_RESUME }, err);
}

int living_update(struct living *living, const uint64_t limit[static LIMIT_COUNT],
        struct carrel_error *err)
{
    struct keeper_message message = { .kind = KEEPER_UPDATE };

    memcpy(message.limit, limit, sizeof(message.limit));
    return ask(living, &message, err);
}

int living_snapshot(
        struct living *living, const char *name, bool *is_copied, struct carrel_error *err)
{
    struct keeper_message message = { .kind = KEEPER_SNAPSHOT };

    AUTO(fd_close) int payload = -1;
    int r = payload_make_near(name, NULL, NULL, &message.payload, &payload, err);
    if (r == 0)
        r = distant_ask(living->box, &message, &payload, payload >= 0, NULL, err);
    *is_copied = message.flags & KEEPER_COPIED;
    return r < 0 ? r : 0;
}

/* Hears of each fork; one that says nothing has failed, too. */
static int await_births(int from, const struct living_fork *fork, struct carrel_error *err)
{
    struct keeper_born born;
    uint32_t n = 0;
    int first = 0;
    int receipt;

    for (; n < fork->n && keeper_hear_birth(from, &born, &receipt) == 0; n++) {
        fork->born(fork->context, born.id, receipt, born.error.code < 0 ? &born.error : NULL);
        if (born.error.code < 0 && first == 0) {
            first = born.error.code;
            *err = born.error;
        }
    }
    if (first == 0 && n < fork->n)
        return err_set(
                err, -ECHILD, "%u of %u forks ended before they stood", fork->n - n, fork->n);
    return first;
}

int living_fork(struct living *living, const struct living_fork *fork, struct carrel_error *err)
{
    struct keeper_message message = {
        .kind = KEEPER_FORK,
        .value = (int32_t)fork->n,
        .flags = (fork->inherits_env ? KEEPER_INHERIT : 0U) |
                 (fork->labels ? KEEPER_LABELS : 0U),
    };
    int fds[KEEPER_MAX_FDS];

    int r = living_check_labels(fork->labels, err);
    if (r < 0)
        return r;
    AUTO(fd_close) int payload = -1;
    r = payload_make_near("", fork->labels, NULL, &message.payload, &payload, err);
    if (r < 0)
        return r;
    int n = distant_ask(living->box, &message, &payload, payload >= 0, fds, err);
    if (n < 0)
        return n;
    r = n == 1 ? await_births(fds[0], fork, err)
               : err_set(err, -EPROTO, "the keeper sent no socket");
    for (int i = 0; i < n; i++)
        fd_close(fds[i]);
    return r;
}

void living_received(int receipt)
{
    (void)send(receipt, "", 1, MSG_NOSIGNAL); /* else it has ended, as it would without us */
    fd_close(receipt);
}

int living_destroy(struct living *living, struct buf *summary, struct carrel_error *err)
{
    return ask_text(living, KEEPER_DESTROY, summary, err);
}
