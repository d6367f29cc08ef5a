/*
 * find.c - from a word to a sandbox, and to its owner.
 *
 * A name is read once. From then on the id, which is never used again, and a descriptor of its
 * directory are used: a later sandbox of the same name cannot be reached by accident.
 */
#include "base/err.h"
#include "base/str.h"
#include "base/suggest.h"
#include "registry/entries.h"
#include "registry/registry.h"
#include "registry/status.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define PREFIX_MIN 6 /* "S-" and four more */

/* -ENOENT: not there, or dead. */
static int open_entry(const struct registry *reg, const char *id, struct registry_entry **out,
        struct carrel_error *err)
{
    struct status_facts facts;
    AUTO(registry_entry_free) struct registry_entry *entry = calloc(1, sizeof(*entry));

    if (!entry)
        return err_set_errno(err, -ENOMEM, "sandbox '%s'", id);
    entry->top = entry->dir = entry->listen_fd = -1;
    (void)stpcpy(entry->id, id);
    entry->status_fd = status_open(reg->dir, id);
    if (entry->status_fd < 0)
        return err_set_errno(err, entry->status_fd, "open the status of sandbox '%s'", id);
    entry->dir = openat(reg->dir, id, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (entry->dir < 0)
        return err_set_errno(err, -errno, "open the directory of sandbox '%s'", id);
    entry->top = fcntl(reg->dir, F_DUPFD_CLOEXEC, 0);
    if (entry->top < 0)
        return err_set_errno(err, -errno, "sandbox '%s'", id);
    if (!registry_is_alive(entry))
        return err_set_errno(err, -ENOENT, "sandbox '%s'", id);
    int r = status_read(entry->status_fd, &facts);
    if (r < 0)
        return err_set(err, r, "sandbox '%s' is of another version of carrel", id);
    entry->number = facts.number;
    entry->began_ns = facts.began_ns;
    (void)stpcpy(entry->name, facts.name);
    *out = ptr_steal(&entry);
    return 0;
}

/* The living one whose id begins with `prefix`. */
static int open_prefixed(const struct registry *reg, const char *prefix,
        struct registry_entry **out, struct carrel_error *err)
{
    AUTO(registry_entry_free) struct registry_entry *found = NULL;
    AUTO(entry_names_finish) struct entry_names ids = { 0 };
    const size_t len = strlen(prefix);

    int r = entry_names_read(reg->dir, "status", &ids, err);
    for (size_t i = 0; r == 0 && i < ids.n; i++) {
        AUTO(registry_entry_free) struct registry_entry *entry = NULL;
        if (strncmp(ids.list[i], prefix, len) != 0)
            continue;
        r = open_entry(reg, ids.list[i], &entry, err);
        if (r == -ENOENT) {
            r = 0;
            continue;
        }
        if (r == 0 && found)
            return err_set(err, -ENOTUNIQ, "'%s' may be %s or %s; write more of it", prefix,
                    found->id, entry->id);
        if (r == 0)
            found = ptr_steal(&entry);
    }
    if (r < 0)
        return r;
    if (!found)
        return -ENOENT;
    *out = ptr_steal(&found);
    return 0;
}

static int say_none(const struct registry *reg, const char *word, struct carrel_error *err)
{
    AUTO(entry_names_finish) struct entry_names names = { 0 };
    const char *best = NULL;
    size_t distance = SIZE_MAX;
    char shown[128];

    (void)str_escape(word, strlen(word), shown, sizeof(shown));
    if (entry_names_read(reg->dir, "names", &names, NULL) == 0) {
        for (size_t i = 0; i < names.n; i++)
            if (strcmp(names.list[i], word) != 0) /* a dead one's, or just made */
                suggest_offer(names.list[i], word, strlen(word), &best, &distance);
    }
    if (best)
        return err_set(err, -ENOENT,
                "no living sandbox '%s' (did you mean '%s'? 'carrel list' shows them)", shown,
                best);
    return err_set(err, -ENOENT, "no living sandbox '%s' ('carrel list' shows them)", shown);
}

int registry_find(const struct registry *reg, const char *word, struct registry_entry **out,
        struct carrel_error *err)
{
    char id[REGISTRY_WORD_MAX + 1];
    int r = -ENOENT;

    if (!entry_is_word(word))
        return say_none(reg, word, err);
    if (strncmp(word, "S-", 2) != 0) {
        r = entry_name_read(reg->dir, word, id);
        if (r == 0)
            r = open_entry(reg, id, out, err);
    } else {
        r = open_entry(reg, word, out, err);
        if (r == -ENOENT && strlen(word) >= PREFIX_MIN)
            r = open_prefixed(reg, word, out, err);
    }
    return r == -ENOENT ? say_none(reg, word, err) : r;
}

static int say_gone(const struct registry_entry *entry, struct carrel_error *err)
{
    return err_set(
            err, -ESRCH, "sandbox '%s' is gone", entry->name[0] ? entry->name : entry->id);
}

/* 0: without a limit. */
static int bound_sending(int sock, unsigned max_ms)
{
    const struct timeval most = { .tv_sec = max_ms / 1000, .tv_usec = max_ms % 1000 * 1000 };

    return setsockopt(sock, SOL_SOCKET, SO_SNDTIMEO, &most, sizeof(most)) < 0 ? -errno : 0;
}

int registry_connect(
        const struct registry_entry *entry, unsigned max_ms, struct carrel_error *err)
{
    struct sockaddr_un at = { .sun_family = AF_UNIX };
    struct registry_status status;

    if (!registry_is_alive(entry))
        return say_gone(entry, err);
    if (registry_get_status(entry, &status, NULL) == 0 && status.state == REGISTRY_WAITING)
        return err_set(
                err, -EAGAIN, "sandbox '%s' waits in the queue: there is none yet", entry->id);
    AUTO(fd_close) int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return err_set_errno(err, -errno, "make a socket");
    (void)snprintf(at.sun_path, sizeof(at.sun_path), "/proc/self/fd/%d/sock", entry->dir);
    int r = bound_sending(fd, max_ms); /* it also applies to connect(): see socket(7) */
    while (r == 0 && connect(fd, (const struct sockaddr *)&at, sizeof(at)) < 0)
        r = errno == EINTR ? 0 : -errno;
    if (r == 0)
        r = bound_sending(fd, 0);
    if (r == -EAGAIN)
        r = -ETIMEDOUT;
    if (r == -ENOENT || r == -ECONNREFUSED || r == -ECONNRESET)
        return say_gone(entry, err);
    if (r < 0)
        return err_set_errno(err, r, "connect to sandbox '%s'", entry->id);
    return fd_steal(&fd);
}
