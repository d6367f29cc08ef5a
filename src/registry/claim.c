/*
 * claim.c - creates an entry, waits for a slot, removes the entry.
 *
 * Everything is made under the lock, in this order: directory, socket, status (locked), name.
 * A process that is killed on the way leaves a directory without a status, or an unlocked
 * status: a sweep removes both. A waiting entry does not hold the lock and has no socket.
 */
#include "base/clock.h"
#include "base/err.h"
#include "base/str.h"
#include "registry/entries.h"
#include "registry/guard.h"
#include "registry/queue.h"
#include "registry/registry.h"
#include "registry/status.h"
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define BACKLOG 1024   /* the kernel takes less where it must */
#define SWEEP_FEW 8    /* on the way of a new entry */
#define ID_PREFIX "S-" /* what begins so is an id, never a name */

static int check(const struct registry_request *request, struct carrel_error *err)
{
    char shown[128];

    if (!entry_is_word(request->id) || strncmp(request->id, ID_PREFIX, 2) != 0)
        return err_set(err, -EINVAL, "'%s' is not the id of a sandbox",
                str_escape(request->id, strlen(request->id), shown, sizeof(shown)));
    const char *name = request->name;
    if (name && !entry_is_word(name))
        return err_set(err, -EINVAL, "'%s' cannot be the name of a sandbox",
                str_escape(name, strlen(name), shown, sizeof(shown)));
    if (name && strncmp(name, ID_PREFIX, 2) == 0)
        return err_set(err, -EINVAL,
                "'%s' cannot be the name of a sandbox: what begins with '" ID_PREFIX
                "' is an id",
                str_escape(name, strlen(name), shown, sizeof(shown)));
    return 0;
}

/* The name is free, or its owner is dead and is removed. */
static int free_name(int top, const char *name, struct carrel_error *err)
{
    char id[REGISTRY_WORD_MAX + 1];

    int r = entry_name_read(top, name, id);
    if (r == -ENOENT)
        return 0;
    if (r < 0)
        return err_set_errno(err, r, "read the owner of the name '%s'", name);
    r = entry_erase_dead(top, id, err);
    if (r < 0)
        return r;
    if (r == 0)
        return err_set(err, -EEXIST,
                "the living sandbox %s is named '%s' (destroy it, or take another name)", id,
                name);
    return entry_erase(top, id, name, err); /* its status did not have the name */
}

/* Each new entry checks a few others: in the long run, all of them. */
static void sweep_few(int top, const struct entry_names *ids, uint64_t number)
{
    size_t n = ids->n < SWEEP_FEW ? ids->n : SWEEP_FEW;

    for (size_t i = 0; i < n; i++)
        (void)entry_erase_dead(top, ids->list[(number * SWEEP_FEW + i) % ids->n], NULL);
}

/* 1: admitted; 0: it has to wait; -EAGAIN: there is no room in the queue. */
static int check_limit(int top, const struct registry_request *request,
        const struct entry_names *ids, struct carrel_error *err)
{
    struct queue_look look;

    if (request->max_living == 0 || ids->n < request->max_living)
        return 1;
    int r = queue_look(top, request->id, UINT64_MAX, &look, err);
    if (r < 0)
        return r;
    if (queue_is_free(&look, request->max_living))
        return 1;
    if (request->queue_ms == 0 || request->max_queued == 0)
        return err_set(err, -EAGAIN,
                "no place for another sandbox: %ju alive of at most %ju; destroy one ('carrel "
                "list' shows them), or let new ones wait (sandbox.limits.max_queued of the "
                "policy)",
                (uintmax_t)look.n_living, (uintmax_t)request->max_living);
    if (look.n_waiting >= request->max_queued)
        return err_set(err, -EAGAIN,
                "no place for another sandbox: %ju alive of at most %ju, %ju waiting of at "
                "most %ju; destroy one or try again later ('carrel list' shows them)",
                (uintmax_t)look.n_living, (uintmax_t)request->max_living,
                (uintmax_t)look.n_waiting, (uintmax_t)request->max_queued);
    return 0;
}

/* The path of the socket may be longer than an address takes, so it is named by descriptor. */
static int listen_at(int dir)
{
    struct sockaddr_un at = { .sun_family = AF_UNIX };
    AUTO(fd_close)
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (fd < 0)
        return -errno;
    (void)snprintf(at.sun_path, sizeof(at.sun_path), "/proc/self/fd/%d/sock", dir);
    if (bind(fd, (const struct sockaddr *)&at, sizeof(at)) < 0 ||
            fchmodat(dir, "sock", 0600, 0) < 0 || listen(fd, BACKLOG) < 0)
        return -errno;
    return fd_steal(&fd);
}

static int open_socket(struct registry_entry *entry, struct carrel_error *err)
{
    int fd = listen_at(entry->dir);

    if (fd < 0)
        return err_set_errno(err, fd, "listen for clients of sandbox '%s'", entry->id);
    entry->listen_fd = fd;
    return 0;
}

static int make(
        struct registry_entry *entry, enum registry_state state, struct carrel_error *err)
{
    struct status_facts facts = {
        .number = entry->number,
        .began_ns = entry->began_ns,
        .status = { .state = state, .pid = getpid() },
    };
    int r = 0;

    (void)stpcpy(facts.name, entry->name);
    if (mkdirat(entry->top, entry->id, 0700) < 0)
        return err_set_errno(err, -errno, "make the directory of sandbox '%s'", entry->id);
    entry->dir = openat(entry->top, entry->id, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (entry->dir < 0)
        return err_set_errno(err, -errno, "open the directory of sandbox '%s'", entry->id);
    if (state != REGISTRY_WAITING)
        r = open_socket(entry, err);
    if (r < 0)
        return r;
    entry->status_fd = status_make(entry->top, entry->id, &facts);
    if (entry->status_fd < 0)
        return err_set_errno(
                err, entry->status_fd, "make the status of sandbox '%s'", entry->id);
    r = entry->name[0] ? entry_name_make(entry->top, entry->name, entry->id) : 0;
    return r < 0 ? err_set_errno(err, r, "give the name '%s'", entry->name) : 0;
}

/* 1: admitted; 0: it has to wait. */
static int enter(struct registry_entry *entry, const struct registry_request *request,
        struct carrel_error *err)
{
    AUTO(entry_names_finish) struct entry_names ids = { 0 };
    AUTO(guard_release) int guard = guard_take(entry->top, err);

    if (guard < 0)
        return guard;
    int r = guard_next_number(guard, &entry->number, err);
    if (r == 0)
        r = entry_names_read(entry->top, "status", &ids, err);
    if (r < 0)
        return r;
    r = entry_erase_dead(entry->top, entry->id, err);
    if (r <= 0)
        return r < 0 ? r : err_set(err, -EEXIST, "there is a sandbox '%s' already", entry->id);
    sweep_few(entry->top, &ids, entry->number);
    r = entry->name[0] ? free_name(entry->top, entry->name, err) : 0;
    if (r < 0)
        return r;
    int verdict = check_limit(entry->top, request, &ids, err);
    if (verdict < 0)
        return verdict;
    r = make(entry, verdict ? REGISTRY_CREATED : REGISTRY_WAITING, err);
    if (r < 0)
        (void)entry_erase(entry->top, entry->id, entry->name, NULL); /* else the sweep does */
    return r < 0 ? r : verdict;
}

/* Under the lock: admits the entry if it is its turn. 1: it was. */
static int try_admit(struct registry_entry *entry, uint64_t max_living, struct queue_look *look,
        struct carrel_error *err)
{
    const struct registry_status status = { .state = REGISTRY_CREATED, .pid = getpid() };
    AUTO(guard_release) int guard = guard_take(entry->top, err);

    if (guard < 0)
        return guard;
    int r = queue_look(entry->top, entry->id, entry->number, look, err);
    if (r < 0 || !queue_is_free(look, max_living))
        return r;
    r = open_socket(entry, err);
    if (r == 0)
        r = registry_set_status(entry, &status, err);
    return r < 0 ? r : 1;
}

static int wait_for_slot(struct registry_entry *entry, const struct registry_request *request,
        struct carrel_error *err)
{
    const uint64_t start = clock_ns();
    const uint64_t most_ms = (CLOCK_NEVER - start) / 1000000;
    const uint64_t deadline =
            request->queue_ms >= most_ms ? CLOCK_NEVER : start + request->queue_ms * 1000000;
    AUTO(queue_waiter_finish) struct queue_waiter waiter;
    struct queue_look look;
    char waited[32];

    queue_waiter_init(&waiter, request->requester ? *request->requester : -1);
    for (;;) {
        int r = try_admit(entry, request->max_living, &look, err);
        if (r != 0)
            return r < 0 ? r : 0;
        r = queue_waiter_wait(&waiter, entry->top, &look, deadline);
        if (r == -ETIMEDOUT)
            return err_set(err, r,
                    "no place for another sandbox in %s: %ju alive of at most %ju, %ju "
                    "waiting before this one; destroy one or try again later ('carrel list' "
                    "shows them)",
                    str_duration(request->queue_ms, waited), (uintmax_t)look.n_living,
                    (uintmax_t)request->max_living, (uintmax_t)look.n_ahead);
        if (r == -ECANCELED)
            return err_set(err, r, "the process that asked for the sandbox has exited");
        if (r < 0)
            return err_set_errno(err, r, "wait for a place among the living sandboxes");
    }
}

int registry_claim(const struct registry *reg, const struct registry_request *request,
        struct registry_entry **out, struct carrel_error *err)
{
    int r = check(request, err);
    if (r < 0)
        return r;
    AUTO(registry_entry_free) struct registry_entry *entry = calloc(1, sizeof(*entry));
    if (!entry)
        return err_set_errno(err, -ENOMEM, "sandbox '%s'", request->id);
    entry->dir = entry->status_fd = entry->listen_fd = -1;
    entry->is_owner = true;
    entry->began_ns = clock_boot_ns();
    (void)stpcpy(entry->id, request->id);
    (void)stpcpy(entry->name, request->name ? request->name : "");
    entry->top = fcntl(reg->dir, F_DUPFD_CLOEXEC, 0);
    if (entry->top < 0)
        return err_set_errno(err, -errno, "sandbox '%s'", request->id);
    r = enter(entry, request, err);
    if (r == 0) {
        r = wait_for_slot(entry, request, err);
        if (r < 0)
            (void)registry_remove(entry, NULL); /* its lock is free: swept */
    }
    if (r < 0)
        return r;
    *out = ptr_steal(&entry);
    return 0;
}

int registry_remove(struct registry_entry *entry, struct carrel_error *err)
{
    AUTO(guard_release) int guard = guard_take(entry->top, err);

    assert(entry->is_owner);
    return guard < 0 ? guard : entry_erase(entry->top, entry->id, entry->name, err);
}
