/*
 * checkout_sweep.c - removes old entries from the cache.
 *
 * An entry stays, however old, while a process holds it, another entry lies on it, or a
 * workspace needs it. A new layer or workspace holds what it lies on until it has its name, so
 * the question is exact when it is asked with the entry locked.
 */
#include "base/err.h"
#include "base/fd.h"
#include "base/tree.h"
#include "git/name.h"
#include "workspace/cache/checkout.h"
#include "workspace/cache/checkout_facts.h"
#include "workspace/workspace.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

struct entry {
    char *repo; /* name of its directory */
    char commit[OID_MAX];
    struct checkout_facts facts;
    bool is_broken; /* no record, or not whole since a crash of the machine */
    bool is_gone;
    int64_t used_s;
};

struct sweep {
    const char *state;
    int top; /* <state>/checkouts */
    struct entry *entries;
    size_t n, room;
    uint64_t bytes; /* of all entries */
    int removed;
};

static void sweep_finish(struct sweep sweep)
{
    for (size_t i = 0; i < sweep.n; i++)
        free(sweep.entries[i].repo);
    free(sweep.entries);
    fd_close(sweep.top);
}
DEFINE_AUTO(struct sweep, sweep_finish)

static void dir_close(DIR *dir)
{
    if (dir)
        (void)closedir(dir);
}
DEFINE_AUTO(DIR *, dir_close)

static DIR *dir_open(int at, const char *name)
{
    AUTO(fd_close) int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);

    if (dir)
        (void)fd_steal(&fd);
    return dir;
}

static bool has_prefix(const char *text, const char *prefix)
{
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

static void remove_name(struct sweep *sweep, int place, const char *name)
{
    if (tree_remove(place, name, NULL) == 0) /* else the next sweep tries again */
        sweep->removed++;
}

/*
 * A lock that nobody holds is left from a crash. Its maker takes it before it makes a draft and
 * removes it after the draft, so a draft without the file has no maker either. Returns the
 * lock, -1 when there is none, or -EBUSY.
 */
static int lock_draft(int place, const char *name)
{
    struct stat by_name;
    struct stat by_fd;
    AUTO(fd_close) int fd = openat(place, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT ? -1 : -EBUSY;
    if (flock(fd, LOCK_EX | LOCK_NB) < 0 || fstat(fd, &by_fd) < 0 ||
            fstatat(place, name, &by_name, AT_SYMLINK_NOFOLLOW) < 0 ||
            by_name.st_ino != by_fd.st_ino)
        return -EBUSY;
    return fd_steal(&fd);
}

static void sweep_draft(struct sweep *sweep, int place, const char *name)
{
    char lock_name[OID_MAX + sizeof(CHECKOUT_LOCK)];
    const char *commit = name + strlen(CHECKOUT_DRAFT);
    size_t len = strcspn(commit, "-");

    if (len >= OID_MAX)
        return;
    (void)snprintf(lock_name, sizeof(lock_name), "%.*s" CHECKOUT_LOCK, (int)len, commit);
    int lock = lock_draft(place, lock_name);
    if (lock == -EBUSY)
        return;
    remove_name(sweep, place, name);
    fd_close(lock);
}

static void sweep_lock(int place, const char *name)
{
    int lock = lock_draft(place, name);

    if (lock >= 0)
        (void)unlinkat(place, name, 0); /* under the lock, as its maker would have */
    if (lock >= 0)
        fd_close(lock);
}

static int add_entry(struct sweep *sweep, int place, const char *repo, const char *commit)
{
    struct stat st;
    struct entry entry = { .is_broken = true };
    AUTO(fd_close) int dir = openat(place, commit, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0)
        return 0; /* gone meanwhile */

    if (sweep->n == sweep->room) {
        size_t room = sweep->room ? 2 * sweep->room : 32;
        struct entry *more = reallocarray(sweep->entries, room, sizeof(*more));
        if (!more)
            return -ENOMEM;
        sweep->entries = more;
        sweep->room = room;
    }
    (void)snprintf(entry.commit, sizeof(entry.commit), "%.64s", commit);
    if (checkout_facts_read(dir, &entry.facts) == 0)
        entry.is_broken = !checkout_is_whole(dir, &entry.facts);
    if (fstatat(dir, "lease", &st, AT_SYMLINK_NOFOLLOW) == 0)
        entry.used_s = st.st_mtim.tv_sec;
    entry.repo = strdup(repo);
    if (!entry.repo)
        return -ENOMEM;
    sweep->bytes += entry.facts.bytes;
    sweep->entries[sweep->n++] = entry;
    return 0;
}

/* Leftovers go at once; entries are only noted. */
static int sweep_repo(struct sweep *sweep, const char *repo)
{
    AUTO(dir_close) DIR *dir = dir_open(sweep->top, repo);
    const struct dirent *item;
    int r = 0;

    while (dir && r == 0 && (item = readdir(dir))) {
        const char *name = item->d_name;
        size_t len = strlen(name);
        if (has_prefix(name, CHECKOUT_TRASH))
            remove_name(sweep, dirfd(dir), name);
        else if (has_prefix(name, CHECKOUT_DRAFT))
            sweep_draft(sweep, dirfd(dir), name);
        else if (len > strlen(CHECKOUT_LOCK) &&
                 strcmp(name + len - strlen(CHECKOUT_LOCK), CHECKOUT_LOCK) == 0)
            sweep_lock(dirfd(dir), name);
        else if (name_is_oid(name))
            r = add_entry(sweep, dirfd(dir), repo, name);
    }
    return r;
}

/* What reached the disk is remembered, so that the entry outlives a crash of the machine. */
static void sync_entries(struct sweep *sweep)
{
    bool is_synced = false;

    for (size_t i = 0; i < sweep->n; i++) {
        const struct entry *entry = &sweep->entries[i];
        char path[600];
        (void)snprintf(path, sizeof(path), "%s/%s/synced", entry->repo, entry->commit);
        if (entry->is_broken || faccessat(sweep->top, path, F_OK, 0) == 0)
            continue;
        if (!is_synced && syncfs(sweep->top) < 0)
            return;
        is_synced = true;
        fd_close(openat(sweep->top, path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    }
}

static bool is_stood_on(const struct sweep *sweep, const struct entry *entry)
{
    for (size_t i = 0; i < sweep->n; i++) {
        const struct entry *other = &sweep->entries[i];
        if (!other->is_gone && strcmp(other->facts.below, entry->commit) == 0 &&
                strcmp(other->repo, entry->repo) == 0)
            return true;
    }
    return false;
}

/*
 * A layer that was published since the entries were noted holds the lease of what it stands on
 * until it has its name, so under the exclusive lease a second look is exact.
 */
static bool is_stood_on_now(int place, const char *commit)
{
    AUTO(dir_close) DIR *dir = dir_open(place, ".");
    const struct dirent *item;

    while (dir && (item = readdir(dir))) {
        struct checkout_facts facts;
        if (!name_is_oid(item->d_name))
            continue;
        AUTO(fd_close) int fd = openat(place, item->d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (fd >= 0 && checkout_facts_read(fd, &facts) == 0 && strcmp(facts.below, commit) == 0)
            return true;
    }
    return !dir;
}

struct need {
    const char *commit;
    bool is_needed;
};

/* Of whichever repository: those that have the same commit are clones. A workspace whose record
 * cannot be read may lie on any of them. */
static int note_need(struct workspace **ws, void *context)
{
    struct need *need = context;

    if (!(*ws)->base[0] || strcmp((*ws)->base, need->commit) == 0)
        need->is_needed = true;
    return 0;
}

/*
 * Its maker holds the lease until it has a record, so under the exclusive lease this is exact.
 * Who cannot say loses nothing.
 */
static bool is_lain_on(const struct sweep *sweep, const char *commit)
{
    struct need need = { .commit = commit };

    return workspace_each(sweep->state, NULL, note_need, &need, NULL) < 0 || need.is_needed;
}

static void evict(struct sweep *sweep, struct entry *entry)
{
    char name[OID_MAX + 8];
    AUTO(fd_close)
    int place = openat(sweep->top, entry->repo, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (place < 0 || is_stood_on(sweep, entry))
        return;
    (void)snprintf(name, sizeof(name), "%s/lease", entry->commit);
    AUTO(fd_close) int lease = openat(place, name, O_RDONLY | O_CREAT | O_CLOEXEC, 0600);
    if (lease < 0 || flock(lease, LOCK_EX | LOCK_NB) < 0 ||
            is_stood_on_now(place, entry->commit) ||
            (!entry->is_broken && is_lain_on(sweep, entry->commit)))
        return;

    char trash[NAME_MAX + 1];
    if (checkout_trash(place, entry->commit, trash, sizeof(trash)) < 0)
        return;
    entry->is_gone = true;
    sweep->bytes -= entry->facts.bytes;
    remove_name(sweep, place, trash);
}

static int by_use(const void *a, const void *b)
{
    const struct entry *one = a;
    const struct entry *other = b;

    return (one->used_s > other->used_s) - (one->used_s < other->used_s);
}

/* Least recently used first, again and again: when a layer went, what it stood on may go. */
static void evict_all(struct sweep *sweep, uint64_t max_age_s, uint64_t max_bytes)
{
    int64_t now_s = time(NULL);
    int before;

    if (sweep->n > 0)
        qsort(sweep->entries, sweep->n, sizeof(sweep->entries[0]), by_use);
    do {
        before = sweep->removed;
        for (size_t i = 0; i < sweep->n; i++) {
            struct entry *entry = &sweep->entries[i];
            bool is_old = max_age_s > 0 && now_s - entry->used_s > (int64_t)max_age_s;
            if (!entry->is_gone && (entry->is_broken || is_old || sweep->bytes > max_bytes))
                evict(sweep, entry);
        }
    } while (sweep->removed > before);
}

int checkout_sweep(
        const char *state, uint64_t max_age_s, uint64_t max_bytes, struct carrel_error *err)
{
    AUTO(sweep_finish) struct sweep sweep = { .state = state, .top = -1 };
    AUTO(free) char *path = checkout_format("%s/checkouts", state);
    const struct dirent *item;
    if (!path)
        return err_set_errno(err, -ENOMEM, "sweep the checkouts");

    sweep.top = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (sweep.top < 0)
        return errno == ENOENT ? 0 : err_set_errno(err, -errno, "open '%s'", path);
    AUTO(dir_close) DIR *dir = dir_open(sweep.top, ".");
    while (dir && (item = readdir(dir))) {
        if (item->d_name[0] == '.')
            continue;
        if (sweep_repo(&sweep, item->d_name) < 0)
            return err_set_errno(err, -ENOMEM, "sweep the checkouts");
    }
    sync_entries(&sweep);
    evict_all(&sweep, max_age_s, max_bytes);
    for (size_t i = 0; i < sweep.n; i++)
        (void)unlinkat(sweep.top, sweep.entries[i].repo, AT_REMOVEDIR); /* if it is empty now */
    return sweep.removed;
}
