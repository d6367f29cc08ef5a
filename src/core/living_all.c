/*
 * living_all.c - ending sandboxes, also those whose keeper hangs.
 *
 * All of them: every keeper is asked first, then each is waited for, so that they end beside
 * each other.
 */
#include "core/living_all.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "core/distant.h"
#include "core/living.h"
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define GONE_MS 10000

/*
 * Kills the keeper; init ends the sandbox then. The number is that of the owner as long as the
 * entry is alive, which is asked when the process is held and cannot be another's any more.
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
    r = registry_sweep(&reg, err);
    return r < 0 ? r : 0;
}

int living_end(const char *word, bool is_force, struct buf *summary, struct carrel_error *err)
{
    AUTO(living_free) struct living *living = NULL;

    if (is_force)
        return end_by_force(word, err);
    int r = living_open(word, &living, err);
    return r < 0 ? r : living_destroy(living, summary, err);
}

/* --- all --- */

struct ids {
    char (*items)[REGISTRY_WORD_MAX + 1];
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
        void *more = reallocarray(ids->items, room, sizeof(ids->items[0]));
        if (!more)
            return -ENOMEM;
        ids->items = more;
        ids->room = room;
    }
    memcpy(ids->items[ids->n], view->id, strlen(view->id) + 1);
    ids->n++;
    return 0;
}

struct ending {
    struct living *living; /* NULL: was not reached */
};

/* Asked, and not waited for. */
static int ask_to_end(struct living *living)
{
    const struct keeper_message message = { .kind = KEEPER_DESTROY };

    return keeper_send(living->box->sock, &message, NULL, 0, 0);
}

static int await_end(struct living *living, struct carrel_error *err)
{
    struct keeper_message message;
    int fds[KEEPER_MAX_FDS];

    int n = keeper_receive(living->box->sock, &message, fds, 0);
    for (int i = 0; i < n; i++)
        fd_close(fds[i]);
    if (n >= 0 && message.kind == KEEPER_FAILED)
        return err_set(err, message.error.code < 0 ? message.error.code : -EIO, "%s: %s",
                living->entry->id, message.error.message);
    return 0; /* it said so, or is gone without a word */
}

static void note_first(
        int r, const struct carrel_error *own, int *first, struct carrel_error *err)
{
    if (r >= 0 || *first < 0 || r == -ENOENT || r == -ESRCH)
        return; /* one that ended meanwhile is what was asked for */
    *first = r;
    *err = *own;
}

static int end_these(const struct ids *ids, bool is_force, struct carrel_error *err)
{
    struct ending *endings = calloc(ids->n ? ids->n : 1, sizeof(*endings));
    int first = 0;

    if (!endings)
        return err_set_errno(err, -ENOMEM, "list of sandboxes");
    for (size_t i = 0; i < ids->n; i++) {
        struct carrel_error own = { 0 };
        int r = is_force ? end_by_force(ids->items[i], &own)
                         : living_open(ids->items[i], &endings[i].living, &own);
        if (r == 0 && endings[i].living)
            (void)ask_to_end(endings[i].living); /* the wait tells */
        note_first(r, &own, &first, err);
    }
    for (size_t i = 0; i < ids->n; i++) {
        struct carrel_error own = { 0 };
        int r = endings[i].living ? await_end(endings[i].living, &own) : 0;
        note_first(r, &own, &first, err);
        living_free(endings[i].living);
    }
    free(endings);
    return first;
}

int living_end_all(bool is_force, struct carrel_error *err)
{
    AUTO(registry_close) struct registry reg = REGISTRY_NONE;
    struct ids ids = { 0 };

    int r = registry_open(&reg, err);
    if (r == 0)
        r = registry_each(&reg, collect, &ids, err);
    if (r == 0)
        r = end_these(&ids, is_force, err);
    free(ids.items);
    return r;
}
