/*
 * destroy.c - ends sandboxes, also those whose keeper hangs. Every keeper is asked before the
 * first is waited for, so they end in parallel.
 */
#include "base/auto.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/options.h"
#include "core/client/client.h"
#include "core/client/remote.h"
#include "core/keeper/sweep.h"
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define GONE_MS 10000

/*
 * Kills the keeper; init then ends the sandbox. The pid is the keeper's as long as the entry is
 * alive, which is checked after the pidfd is open, when the pid cannot be reused any more.
 */
static int kill_keeper(const struct registry_entry *entry, struct carrel_error *err)
{
    struct registry_status status;

    int r = registry_get_status(entry, &status, err);
    if (r < 0)
        return r;
    if (status.pid <= 1)
        return err_set(err, -ESRCH, "it has no keeper");
    AUTO(fd_close) int pidfd = (int)syscall(SYS_pidfd_open, status.pid, 0);
    if (pidfd < 0 || !registry_is_alive(entry))
        return 0; /* gone meanwhile */
    if (syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, NULL, 0) < 0)
        return errno == ESRCH ? 0 : err_set_errno(err, -errno, "kill the keeper");
    struct pollfd gone = { .fd = pidfd, .events = POLLIN };
    while (poll(&gone, 1, GONE_MS) < 0 && errno == EINTR)
        ;
    return 0;
}

static int end_by_force(const char *word, struct carrel_error *err)
{
    AUTO(registry_close) struct registry reg = REGISTRY_NONE;
    AUTO(registry_entry_free) struct registry_entry *entry = NULL;

    int r = registry_open(&reg, err);
    if (r == 0)
        r = registry_find(&reg, word, &entry, err);
    if (r == 0)
        r = kill_keeper(entry, err);
    if (r < 0)
        return r;
    registry_entry_free(ptr_steal(&entry));
    return keeper_sweep(&reg, err);
}

/* Sends the request; does not wait for the answer. */
static int ask_to_end(struct carrel_sandbox *sandbox)
{
    const struct keeper_message message = { .kind = KEEPER_DESTROY };

    return keeper_send(sandbox->box->sock, &message, NULL, 0, 0);
}

static int await_end(
        struct carrel_sandbox *sandbox, struct buf *summary, struct carrel_error *err)
{
    struct keeper_message message;
    int fds[KEEPER_MAX_FDS];

    int r = remote_await(sandbox->box, KEEPER_DESTROY, err);
    if (r < 0)
        return r;
    int n = keeper_receive(sandbox->box->sock, &message, fds, 0);
    if (n > 0 && summary)
        (void)keeper_text_read(fds[0], summary, NULL); /* the sandbox has ended anyway */
    for (int i = 0; i < n; i++)
        fd_close(fds[i]);
    if (n >= 0 && message.kind == KEEPER_FAILED)
        return err_take(err, &message.error);
    return 0; /* it answered, or closed the socket */
}

struct ending {
    const struct carrel_destroy_options *options;
    const char *const *words;
    size_t n;
    struct buf *summary;
    int first;
    struct carrel_error *err;
};

static void note(struct ending *ending, size_t i, int r, const struct carrel_error *own)
{
    const struct carrel_destroy_options *o = ending->options;

    if (r >= 0)
        return;
    if (o->words && o->failed)
        o->failed(ending->words[i], own, o->context);
    if (ending->first == 0) {
        ending->first = r;
        *ending->err = *own;
    }
}

static int end_these(struct ending *ending)
{
    AUTO(free)
    struct carrel_sandbox **asked = calloc(ending->n + 1, sizeof(struct carrel_sandbox *));

    if (!asked)
        return err_set_errno(ending->err, -ENOMEM, "list of sandboxes");
    for (size_t i = 0; i < ending->n; i++) {
        struct carrel_error own = { 0 };
        int r = ending->options->is_force
                        ? end_by_force(ending->words[i], &own)
                        : carrel_sandbox_open(ending->words[i], &asked[i], &own);
        if (r == 0 && asked[i])
            (void)ask_to_end(asked[i]); /* the wait reports it */
        note(ending, i, r, &own);
    }
    for (size_t i = 0; i < ending->n; i++) {
        struct carrel_error own = { 0 };
        note(ending, i, asked[i] ? await_end(asked[i], ending->summary, &own) : 0, &own);
        carrel_sandbox_free(asked[i]);
    }
    return ending->first;
}

/* --- all --- */

struct ids {
    char **items;
    size_t n;
    size_t room;
};

static int collect(void *context, const struct registry_view *view)
{
    struct ids *ids = context;

    if (!view->is_alive)
        return 0;
    if (ids->n == ids->room) {
        size_t room = ids->room ? 2 * ids->room : 64;
        char **more = reallocarray(ids->items, room, sizeof(*more));
        if (!more)
            return -ENOMEM;
        ids->items = more;
        ids->room = room;
    }
    ids->items[ids->n] = strdup(view->id);
    return ids->items[ids->n++] ? 0 : -ENOMEM;
}

static int end_all(struct ending *ending, struct carrel_error *err)
{
    AUTO(registry_close) struct registry reg = REGISTRY_NONE;
    struct ids ids = { 0 };

    int r = registry_open(&reg, err);
    if (r == 0)
        r = registry_each(&reg, collect, &ids, err);
    ending->words = (const char *const *)ids.items;
    ending->n = ids.n;
    if (r == 0)
        r = end_these(ending);
    if (r == -ENOENT || r == -ESRCH)
        r = 0; /* it ended meanwhile, as requested */
    if (r == 0)
        r = keeper_sweep(&reg, err); /* of keepers that were killed before */
    for (size_t i = 0; i < ids.n; i++)
        free(ids.items[i]);
    free(ids.items);
    return r;
}

int carrel_sandbox_destroy_all(
        const struct carrel_destroy_options *options, char **summary, struct carrel_error *err)
{
    AUTO(buf_finish) struct buf text = BUF_INIT(64U << 20);
    struct carrel_destroy_options own = CARREL_DESTROY_OPTIONS_INIT;
    struct ending ending = { .options = &own, .summary = &text };

    ending.err = err = ERR_OR_IGNORED(err);
    int r = OPTIONS_TAKE(&own, options, CARREL_DESTROY_OPTIONS_INIT, err);
    if (r == 0 && own.is_all == (own.words != NULL))
        r = err_set(
                err, -EINVAL, "destroy either the sandboxes of `words` or, with is_all, all");
    if (r < 0)
        return r;
    ending.words = own.words;
    while (own.words && own.words[ending.n])
        ending.n++;
    r = own.is_all ? end_all(&ending, err) : end_these(&ending);
    int taken = summary ? buf_take(&text, summary, r < 0 ? NULL : err) : 0;
    return r < 0 ? r : taken;
}
