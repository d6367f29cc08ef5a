/*
 * checkout_sweep.c - removes old entries from the cache.
 *
 * An entry stays, however old, while a process holds it, another entry lies on it, or a
 * workspace needs it. A new layer or workspace holds what it lies on until it has its name, so
 * the question is exact when it is asked with the entry locked.
 */
#include "base/dir.h"
#include "base/err.h"
#include "base/fd.h"
#include "git/name.h"
#include "workspace/cache/checkout.h"
#include "workspace/workspace.h"
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

struct entry {
    char *name; /* NULL: removed */
    struct checkout_facts facts;
    bool is_broken; /* no record, or not whole since a crash of the machine */
    struct timespec used;
};

struct sweep {
    const char *state;
    struct store store;
    struct store_names names;
    struct entry *entries;
    uint64_t bytes; /* of all entries */
};

static void sweep_finish(struct sweep sweep)
{
    free(sweep.entries);
    store_names_finish(sweep.names);
    store_finish(sweep.store);
}
DEFINE_AUTO(struct sweep, sweep_finish)

static const char *commit_of(const char *name)
{
    return strchr(name, '/') + 1;
}

/* Records that the entry reached the disk, so that it outlives a crash of the machine. */
static void mark_synced(int dir, const struct entry *entry, int top, bool *is_synced)
{
    const struct timespec times[2] = { { .tv_nsec = UTIME_OMIT }, entry->used };

    if (entry->is_broken || faccessat(dir, "synced", F_OK, 0) == 0)
        return;
    *is_synced = *is_synced || syncfs(top) == 0;
    if (!*is_synced)
        return;
    fd_close(openat(dir, "synced", O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    (void)futimens(dir, times); /* this was no use of it */
}

static void look_at(struct sweep *sweep, struct entry *entry, bool *is_synced)
{
    AUTO(fd_close) int dir = store_hold(&sweep->store, entry->name);
    struct stat st;

    if (dir < 0 || !name_is_oid(commit_of(entry->name)) || fstat(dir, &st) < 0) {
        entry->name = NULL; /* removed meanwhile, or no entry */
        return;
    }
    entry->used = st.st_mtim;
    entry->is_broken = checkout_facts_read(dir, &entry->facts) < 0 ||
                       !checkout_is_whole(dir, &entry->facts);
    sweep->bytes += entry->facts.bytes;
    mark_synced(dir, entry, sweep->store.top, is_synced);
}

static int list_entries(struct sweep *sweep, struct carrel_error *err)
{
    bool is_synced = false;
    int r = store_list(&sweep->store, STORE_GROUPS, &sweep->names, err);
    if (r < 0)
        return r;

    sweep->entries = calloc(sweep->names.n + 1, sizeof(sweep->entries[0]));
    if (!sweep->entries)
        return err_set_errno(err, -ENOMEM, "sweep the checkouts");
    for (size_t i = 0; i < sweep->names.n; i++) {
        sweep->entries[i].name = sweep->names.list[i];
        look_at(sweep, &sweep->entries[i], &is_synced);
    }
    return 0;
}

struct need {
    const struct sweep *sweep;
    const struct entry *entry;
    bool is_needed;
};

static bool has_layer_above(const struct need *need)
{
    const char *commit = commit_of(need->entry->name);
    AUTO(free) char *key = strndup(need->entry->name, (size_t)(commit - need->entry->name) - 1);
    AUTO(dir_close) DIR *dir = key ? dir_open(need->sweep->store.top, key) : NULL;

    for (const char *name; dir && (name = dir_next(dir));) {
        struct checkout_facts facts;
        AUTO(fd_close)
        int fd = openat(dirfd(dir), name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (fd >= 0 && checkout_facts_read(fd, &facts) == 0 && strcmp(facts.below, commit) == 0)
            return true;
    }
    return !dir;
}

/* Of any repository: those that have the commit are clones. A workspace whose record cannot be
 * read may need any of them. */
static int note_need(struct workspace **ws, void *context)
{
    struct need *need = context;

    if (!(*ws)->base[0] || strcmp((*ws)->base, commit_of(need->entry->name)) == 0)
        need->is_needed = true;
    return 0;
}

static int name_needed(struct store_names *needed, void *context, struct carrel_error *err)
{
    struct need *need = context;

    (void)err;
    needed->has_all = has_layer_above(need) ||
                      (!need->entry->is_broken && (workspace_each(need->sweep->state, NULL,
                                                           note_need, need, NULL) < 0 ||
                                                          need->is_needed));
    return 0;
}

static int evict(struct sweep *sweep, struct entry *entry)
{
    struct need need = { .sweep = sweep, .entry = entry };
    const struct store_names one = { .list = &entry->name, .n = 1 };

    if (store_retire(&sweep->store, &one, name_needed, &need, NULL) != 1)
        return 0;
    sweep->bytes -= entry->facts.bytes;
    entry->name = NULL;
    return 1;
}

static int by_use(const void *a, const void *b)
{
    const struct timespec *one = &((const struct entry *)a)->used;
    const struct timespec *other = &((const struct entry *)b)->used;

    return (one->tv_sec > other->tv_sec) - (one->tv_sec < other->tv_sec);
}

/* Least recently used first, repeated: without a layer what was below it may be removed. */
static int evict_all(struct sweep *sweep, uint64_t max_age_s, uint64_t max_bytes)
{
    int64_t now_s = time(NULL);
    int removed = 0;
    int before;

    qsort(sweep->entries, sweep->names.n, sizeof(sweep->entries[0]), by_use);
    do {
        before = removed;
        for (size_t i = 0; i < sweep->names.n; i++) {
            struct entry *entry = &sweep->entries[i];
            bool is_old = max_age_s > 0 && now_s - entry->used.tv_sec > (int64_t)max_age_s;
            if (entry->name && (entry->is_broken || is_old || sweep->bytes > max_bytes))
                removed += evict(sweep, entry);
        }
    } while (removed > before);
    return removed;
}

int checkout_sweep(
        const char *state, uint64_t max_age_s, uint64_t max_bytes, struct carrel_error *err)
{
    AUTO(sweep_finish) struct sweep sweep = { .state = state, .store = STORE_INIT };
    AUTO(free) char *path = checkout_format("%s/checkouts", state);
    if (!path)
        return err_set_errno(err, -ENOMEM, "sweep the checkouts");

    int r = store_open(path, &sweep.store, err);
    if (r < 0)
        return r == -ENOENT ? 0 : r;
    int swept = store_sweep(&sweep.store, err);
    r = swept < 0 ? swept : list_entries(&sweep, err);
    return r < 0 ? r : swept + evict_all(&sweep, max_age_s, max_bytes);
}
