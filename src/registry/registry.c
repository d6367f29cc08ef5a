/* registry.c - the directory, and what an entry holds. */
#include "registry/registry.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/rundir.h"
#include "registry/status.h"
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static int open_ours(int rundir, struct carrel_error *err)
{
    struct stat st;

    if (mkdirat(rundir, "sandboxes", 0700) < 0 && errno != EEXIST)
        return err_set_errno(err, -errno, "make the directory of living sandboxes");
    AUTO(fd_close)
    int dir = openat(rundir, "sandboxes", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (dir < 0 || fstat(dir, &st) < 0)
        return err_set_errno(err, -errno, "open the directory of living sandboxes");
    if (st.st_uid != geteuid() || (st.st_mode & 077))
        return err_set(err, -EPERM,
                "the directory of living sandboxes belongs to another user or is open to "
                "others; remove it");
    return fd_steal(&dir);
}

int registry_open_at(struct registry *reg, int rundir, struct carrel_error *err)
{
    static const char *const parts[] = { "status", "names" };

    AUTO(fd_close) int dir = open_ours(rundir, err);
    if (dir < 0)
        return dir;
    for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
        if (mkdirat(dir, parts[i], 0700) < 0 && errno != EEXIST)
            return err_set_errno(err, -errno, "make '%s' of the living sandboxes", parts[i]);
    }
    reg->dir = fd_steal(&dir);
    return 0;
}

int registry_open(struct registry *reg, struct carrel_error *err)
{
    AUTO(fd_close) int rundir = rundir_open(err);

    return rundir < 0 ? rundir : registry_open_at(reg, rundir, err);
}

void registry_close(struct registry reg)
{
    fd_close(reg.dir);
}

const char *registry_state_name(enum registry_state state)
{
    static const char *const names[] = {
        [REGISTRY_WAITING] = "waiting",
        [REGISTRY_CREATED] = "created",
        [REGISTRY_RUNNING] = "running",
        [REGISTRY_PAUSED] = "paused",
        [REGISTRY_ENDING] = "ending",
    };

    return (size_t)state < ARRAY_LEN(names) ? names[state] : "unknown";
}

void registry_entry_free(struct registry_entry *entry)
{
    if (!entry)
        return;
    fd_close(entry->top);
    fd_close(entry->dir);
    fd_close(entry->status_fd);
    fd_close(entry->listen_fd);
    free(entry);
}

bool registry_is_alive(const struct registry_entry *entry)
{
    struct stat st;

    /* An owner that has removed it may hold the lock for a while yet. */
    return fstat(entry->status_fd, &st) == 0 && st.st_nlink > 0 &&
           (entry->is_owner || status_is_locked(entry->status_fd));
}

int registry_get_status(const struct registry_entry *entry, struct registry_status *status,
        struct carrel_error *err)
{
    struct status_facts facts;

    int r = status_read(entry->status_fd, &facts);
    if (r < 0)
        return err_set_errno(err, r, "read the status of sandbox '%s'", entry->id);
    *status = facts.status;
    return 0;
}

int registry_set_status(const struct registry_entry *entry,
        const struct registry_status *status, struct carrel_error *err)
{
    struct status_facts facts = {
        .number = entry->number, .began_ns = entry->began_ns, .status = *status
    };

    assert(entry->is_owner);
    (void)stpcpy(facts.name, entry->name);
    int r = status_write(entry->status_fd, &facts);
    return r < 0 ? err_set_errno(err, r, "write the status of sandbox '%s'", entry->id) : 0;
}

int registry_publish(
        struct registry_entry *entry, const char *json, size_t len, struct carrel_error *err)
{
    const int flags = O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC;

    assert(entry->is_owner);
    if (len > REGISTRY_RECORD_MAX)
        return err_set(err, -EFBIG, "the record of sandbox '%s' is too long", entry->id);
    AUTO(fd_close) int fd = openat(entry->dir, "record.new", flags, 0600);
    int r = fd < 0 ? -errno : fd_write_all(fd, json, len);
    if (r == 0 && renameat(entry->dir, "record.new", entry->dir, "record.json") < 0)
        r = -errno;
    return r < 0 ? err_set_errno(err, r, "write the record of sandbox '%s'", entry->id) : 0;
}

int registry_get_record(
        const struct registry_entry *entry, struct buf *text, struct carrel_error *err)
{
    int r = fd_add_file(entry->dir, "record.json", text, err);

    return r < 0 ? err_wrap(err, r, "sandbox '%s'", entry->id) : 0;
}
