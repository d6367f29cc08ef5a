/* queue.c - counts entries, and waits for a change. */
#include "registry/queue.h"
#include "base/clock.h"
#include "base/err.h"
#include "registry/entries.h"
#include "registry/status.h"
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <sys/inotify.h>
#include <unistd.h>

/*
 * inotify reports a close slightly before the lock is released, so a waiter that wakes up and
 * finds no free slot retries with backoff. The longest pause bounds the wait of an entry with a
 * wider limit than those ahead; without inotify the pause alone wakes.
 */
#define PAUSE_MIN_MS 20
#define PAUSE_MAX_MS 5000
#define PAUSE_MAX_DEAF_MS 200

static void count(struct queue_look *look, const char *id, const struct status_facts *facts,
        uint64_t number)
{
    if (facts->status.state != REGISTRY_WAITING) {
        look->n_living++;
        return;
    }
    look->n_waiting++;
    if (facts->number > number)
        return;
    look->n_ahead++;
    if (facts->number >= look->last_number) {
        look->last_number = facts->number;
        (void)stpcpy(look->last_ahead, id);
    }
}

int queue_look(int top, const char *own, uint64_t number, struct queue_look *look,
        struct carrel_error *err)
{
    AUTO(entry_names_finish) struct entry_names ids = { 0 };

    *look = (struct queue_look){ 0 };
    int r = entry_names_read(top, "status", &ids, err);
    if (r < 0)
        return r;
    for (size_t i = 0; i < ids.n; i++) {
        const char *id = ids.list[i];
        if (strcmp(id, own) == 0)
            continue;
        AUTO(fd_close) int fd = status_open(top, id);
        if (fd < 0 || !status_is_locked(fd)) {
            (void)entry_erase_dead(top, id, NULL); /* else it does not count either */
            continue;
        }
        struct status_facts facts;
        if (status_read(fd, &facts) < 0) /* of another version, but alive */
            facts = (struct status_facts){ .status = { .state = REGISTRY_RUNNING } };
        count(look, id, &facts, number);
    }
    return 0;
}

bool queue_is_free(const struct queue_look *look, uint64_t max_living)
{
    return look->n_living + look->n_ahead < max_living;
}

void queue_waiter_init(struct queue_waiter *waiter, int requester)
{
    *waiter = (struct queue_waiter){
        .inotify = inotify_init1(IN_NONBLOCK | IN_CLOEXEC),
        .watch = -1,
        .pause_ms = PAUSE_MIN_MS,
        .requester = requester,
    };
}

void queue_waiter_finish(struct queue_waiter waiter)
{
    fd_close(waiter.inotify);
}

/*
 * Only an owner opens its status for writing, so a close is its end. The admission of a waiting
 * entry is a change of its status.
 */
static void set_up(struct queue_waiter *waiter, int top, const char *on)
{
    char file[STATUS_PATH_MAX];
    char path[sizeof("/proc/self/fd/0123456789/") + STATUS_PATH_MAX];
    const uint32_t all = IN_CLOSE_WRITE | IN_DELETE;
    const uint32_t one = IN_CLOSE_WRITE | IN_MODIFY | IN_ATTRIB | IN_DELETE_SELF;

    if (waiter->watch >= 0)
        (void)inotify_rm_watch(waiter->inotify, waiter->watch); /* may be gone with its file */
    (void)snprintf(path, sizeof(path), "/proc/self/fd/%d/%s", top,
            on[0] ? status_path(on, file) : "status");
    waiter->watch = inotify_add_watch(waiter->inotify, path, on[0] ? one : all);
    (void)stpcpy(waiter->on, on);
    waiter->is_set = true;
    waiter->pause_ms = PAUSE_MIN_MS;
}

/* Only that there were events matters, not which. */
static void drain(int inotify)
{
    char events[4096] __attribute__((aligned(8)));

    while (read(inotify, events, sizeof(events)) > 0)
        continue;
}

static void grow_pause(struct queue_waiter *waiter)
{
    const uint64_t max = waiter->watch < 0 ? PAUSE_MAX_DEAF_MS : PAUSE_MAX_MS;

    waiter->pause_ms = 2 * waiter->pause_ms < max ? 2 * waiter->pause_ms : max;
}

int queue_waiter_wait(struct queue_waiter *waiter, int top, const struct queue_look *look,
        uint64_t deadline_ns)
{
    const uint64_t now = clock_ns();

    if (now >= deadline_ns)
        return -ETIMEDOUT;
    if (waiter->inotify >= 0 &&
            (!waiter->is_set || strcmp(waiter->on, look->last_ahead) != 0)) {
        set_up(waiter, top, look->last_ahead);
        return 0;
    }
    const uint64_t wake_ns = now + waiter->pause_ms * 1000000;
    struct pollfd rings[] = {
        { .fd = waiter->inotify, .events = POLLIN },
        { .fd = waiter->requester }, /* POLLHUP is always reported */
    };
    int n = poll(rings, 2, clock_poll_ms(wake_ns < deadline_ns ? wake_ns : deadline_ns));
    if (n < 0)
        return -errno;
    if (rings[1].revents)
        return -ECANCELED;
    if (n > 0) {
        drain(waiter->inotify);
        waiter->pause_ms = PAUSE_MIN_MS;
    } else {
        grow_pause(waiter);
    }
    return 0;
}
