/* store.c - drafts, entries and their locks. */
#include "base/store.h"
#include "base/dir.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/tree.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#define TMP ".tmp"
#define TRIES 100 /* against a sweep that is in the way */
#define BATCH 64  /* locks held while a namer is asked */

static int open_dir(int at, const char *name)
{
    int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    return fd < 0 ? -errno : fd;
}

static int lock(int fd, int operation)
{
    while (flock(fd, operation) < 0)
        if (errno != EINTR)
            return -errno;
    return 0;
}

/* Makes every directory of `path` that is missing. */
static int make_path(const char *path)
{
    char part[PATH_MAX];

    if (strlen(path) >= sizeof(part))
        return -ENAMETOOLONG;
    for (const char *slash = path; slash;) {
        slash = strchr(slash + 1, '/');
        (void)snprintf(part, sizeof(part), "%.*s",
                (int)(slash ? (size_t)(slash - path) : strlen(path)), path);
        if (mkdir(part, 0700) < 0 && errno != EEXIST)
            return -errno;
    }
    return 0;
}

int store_open(const char *path, struct store *out, struct carrel_error *err)
{
    AUTO(store_finish) struct store store = STORE_INIT;

    store.path = strdup(path);
    if (!store.path)
        return err_set_errno(err, -ENOMEM, "open '%s'", path);
    store.top = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (store.top < 0)
        return err_set_errno(err, -errno, "open '%s'", path);
    store.tmp = open_dir(store.top, TMP);
    if (store.tmp == -ENOENT && mkdirat(store.top, TMP, 0700) < 0 && errno != EEXIST)
        return err_set_errno(err, -errno, "create '%s/" TMP "'", path);
    if (store.tmp == -ENOENT)
        store.tmp = open_dir(store.top, TMP);
    if (store.tmp < 0)
        return err_set_errno(err, store.tmp, "open '%s/" TMP "'", path);
    *out = store;
    store = STORE_INIT;
    return 0;
}

int store_make(const char *path, struct store *out, struct carrel_error *err)
{
    int r = store_open(path, out, err);

    if (r != -ENOENT)
        return r;
    r = make_path(path);
    return r < 0 ? err_set_errno(err, r, "create '%s'", path) : store_open(path, out, err);
}

void store_finish(struct store store)
{
    free(store.path);
    fd_close(store.top);
    fd_close(store.tmp);
}

bool store_is_named(int dir, int parent, const char *name)
{
    struct stat by_name;
    struct stat by_fd;

    return fstatat(parent, name, &by_name, AT_SYMLINK_NOFOLLOW) == 0 &&
           fstat(dir, &by_fd) == 0 && by_name.st_ino == by_fd.st_ino &&
           by_name.st_dev == by_fd.st_dev;
}

/* -ENOENT also when the name was given to another, or to none, while this waited. */
static int open_locked(int parent, const char *name, int operation)
{
    AUTO(fd_close) int dir = open_dir(parent, name);
    int r = dir < 0 ? dir : lock(dir, operation);

    if (r < 0)
        return r;
    return store_is_named(dir, parent, name) ? fd_steal(&dir) : -ENOENT;
}

int store_hold(const struct store *store, const char *name)
{
    return open_locked(store->top, name, LOCK_SH);
}

int store_lock(const struct store *store, int operation, struct carrel_error *err)
{
    /* Opened anew: a flock belongs to the open file, and each holder needs its own. */
    AUTO(fd_close) int dir = open_dir(store->tmp, ".");
    int r = dir < 0 ? dir : lock(dir, operation);

    return r < 0 ? err_set_errno(err, r, "lock '%s'", store->path) : fd_steal(&dir);
}

int store_claim(const struct store *store, const char *name, struct carrel_error *err)
{
    uint64_t hash = 0xcbf29ce484222325; /* FNV-1a: two names with one hash take turns */
    int r;

    for (const char *at = name; *at; at++)
        hash = (hash ^ (unsigned char)*at) * 0x100000001b3;
    struct flock byte = {
        .l_type = F_WRLCK,
        .l_whence = SEEK_SET,
        .l_start = (off_t)(hash >> 2),
        .l_len = 1,
    };
    AUTO(fd_close)
    int fd = openat(store->top, ".claims", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return err_set_errno(err, -errno, "open '%s/.claims'", store->path);
    do
        r = fcntl(fd, F_OFD_SETLKW, &byte);
    while (r < 0 && errno == EINTR);
    if (r < 0)
        return err_set_errno(err, -errno, "claim '%s' in '%s'", name, store->path);
    return fd_steal(&fd);
}

int store_draft(const struct store *store, struct store_draft *out, struct carrel_error *err)
{
    struct store_draft draft = STORE_DRAFT_INIT;
    int r = -EAGAIN;

    for (int i = 0; draft.dir < 0 && i < TRIES; i++) {
        r = id_new('D', draft.id, err);
        if (r < 0)
            return r;
        if (mkdirat(store->tmp, draft.id, 0700) < 0)
            return err_set_errno(err, -errno, "create a directory in '%s'", store->path);
        r = draft.dir = open_locked(store->tmp, draft.id, LOCK_SH | LOCK_NB);
        if (r < 0 && r != -ENOENT && r != -EWOULDBLOCK) /* those: a sweep was faster */
            break;
    }
    if (r >= 0 && asprintf(&draft.path, "%s/" TMP "/%s", store->path, draft.id) < 0) {
        draft.path = NULL;
        fd_close(draft.dir);
        r = -ENOMEM;
    }
    if (r < 0)
        return err_set_errno(err, r, "create a directory in '%s'", store->path);
    *out = draft;
    return 0;
}

/* "GROUP" of "GROUP/NAME"; false: the name has none. */
static bool group_of(const char *name, char group[static NAME_MAX + 1])
{
    size_t len = strcspn(name, "/");

    (void)snprintf(group, NAME_MAX + 1, "%.*s", (int)len, name);
    return name[len] == '/';
}

int store_publish(const struct store *store, struct store_draft *draft, const char *name,
        struct carrel_error *err)
{
    char group[NAME_MAX + 1];
    bool has_group = group_of(name, group);

    for (int i = 0; i < TRIES; i++) {
        if (has_group && mkdirat(store->top, group, 0700) < 0 && errno != EEXIST)
            break;
        if (renameat(store->tmp, draft->id, store->top, name) == 0) {
            free(ptr_steal(&draft->path));
            return 0;
        }
        if (errno == ENOTEMPTY)
            errno = EEXIST;
        if (errno != ENOENT || !has_group) /* else the group was empty, and removed */
            break;
    }
    return err_set_errno(err, -errno, "create '%s/%s'", store->path, name);
}

bool store_has_disk(int dir)
{
    return faccessat(dir, STORE_DISK, F_OK, AT_SYMLINK_NOFOLLOW) == 0 ||
           faccessat(dir, STORE_DISK_DRAFT, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

static bool is_mount(int dir)
{
    struct statx stx;

    return statx(dir, STORE_DISK, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT, 0, &stx) == 0 &&
           (stx.stx_attributes & STATX_ATTR_MOUNT_ROOT);
}

void store_unmount(int dir)
{
    char path[64];

    (void)snprintf(path, sizeof(path), "/proc/self/fd/%d/" STORE_DISK, dir);
    while (is_mount(dir) && umount2(path, UMOUNT_NOFOLLOW | MNT_DETACH) == 0)
        ;
    /* What cannot be unmounted or removed is found when the entry is removed. */
    (void)unlinkat(dir, STORE_DISK, AT_REMOVEDIR);
    (void)unlinkat(dir, STORE_DISK_DRAFT, 0);
}

void store_drop(const struct store *store, struct store_draft *draft)
{
    if (draft->path)
        (void)tree_remove(store->tmp, draft->id, NULL); /* else the sweep does */
    fd_close(draft->dir);
    free(draft->path);
    *draft = STORE_DRAFT_INIT;
}

/* The rename that gives a name back. */
static int give_back(const struct store *store, const char *name, char id[static ID_SIZE])
{
    char group[NAME_MAX + 1];

    int r = id_new('D', id, NULL);
    if (r < 0)
        return r;
    if (renameat(store->top, name, store->tmp, id) < 0)
        return -errno;
    if (group_of(name, group))
        (void)unlinkat(store->top, group, AT_REMOVEDIR); /* if it is empty now */
    return 0;
}

int store_unname(const struct store *store, const char *name, int dir, char id[static ID_SIZE],
        struct carrel_error *err)
{
    int r = lock(dir, LOCK_EX | LOCK_NB);

    /* A lock that cannot be converted is lost, see flock(2). */
    if (r == -EWOULDBLOCK && lock(dir, LOCK_SH) == 0)
        return err_set(err, -EBUSY, "'%s/%s' is in use", store->path, name);
    if (r == 0 && !store_is_named(dir, store->top, name))
        r = -ENOENT;
    if (r == 0)
        r = give_back(store, name, id);
    if (r < 0)
        return err_set_errno(err, r, "remove '%s/%s'", store->path, name);
    (void)lock(dir, LOCK_SH | LOCK_NB); /* waiters need not wait for the files, too */
    return 0;
}

int store_remove(const struct store *store, const char *name, int dir, struct carrel_error *err)
{
    char id[ID_SIZE];
    int r = store_unname(store, name, dir, id, err);

    if (r < 0)
        return r;
    store_unmount(dir);
    return tree_remove(store->tmp, id, err);
}

int store_names_add(struct store_names *names, const char *name)
{
    if (names->n == names->room) {
        size_t room = names->room ? 2 * names->room : 64;
        char **list = reallocarray(names->list, room, sizeof(*list));
        if (!list)
            return -ENOMEM;
        names->list = list;
        names->room = room;
    }
    char *copy = strdup(name);
    if (!copy)
        return -ENOMEM;
    names->list[names->n++] = copy;
    return 0;
}

void store_names_finish(struct store_names names)
{
    for (size_t i = 0; i < names.n; i++)
        free(names.list[i]);
    free(names.list);
}

static int compare(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

void store_names_sort(struct store_names *names)
{
    if (names->n > 0)
        qsort(names->list, names->n, sizeof(*names->list), compare);
}

bool store_names_has(const struct store_names *names, const char *name)
{
    return names->has_all || (names->n > 0 && bsearch(&name, names->list, names->n,
                                                      sizeof(*names->list), compare) != NULL);
}

static int list_group(const struct store *store, const char *group, struct store_names *names)
{
    AUTO(dir_close) DIR *dir = dir_open(store->top, group);
    int r = 0;

    if (!dir) /* those: it was removed meanwhile, or is no directory */
        return errno == ENOENT || errno == ENOTDIR || errno == ELOOP ? 0 : -errno;
    for (const char *name; r == 0 && (name = dir_next(dir));) {
        char path[2 * NAME_MAX + 2];
        (void)snprintf(path, sizeof(path), "%s/%s", group, name);
        r = name[0] == '.' ? 0 : store_names_add(names, path);
    }
    return r;
}

int store_list(const struct store *store, enum store_depth depth, struct store_names *out,
        struct carrel_error *err)
{
    AUTO(dir_close) DIR *dir = dir_open(store->top, ".");
    int r = 0;

    if (!dir)
        return err_set_errno(err, -errno, "read '%s'", store->path);
    for (const char *name; r == 0 && (name = dir_next(dir));) {
        if (name[0] != '.')
            r = depth == STORE_GROUPS ? list_group(store, name, out)
                                      : store_names_add(out, name);
    }
    store_names_sort(out);
    return r < 0 ? err_set_errno(err, r, "read '%s'", store->path) : 0;
}

struct batch {
    struct {
        const char *name;
        int dir;
        char id[ID_SIZE]; /* in .tmp; empty: it is an entry still */
    } items[BATCH];
    size_t n;
};

/* With every item locked: those that are not needed lose their name. */
static int give_back_batch(const struct store *store, struct batch *batch, store_namer *namer,
        void *context, struct carrel_error *err)
{
    AUTO(store_names_finish) struct store_names needed = { 0 };
    int r = batch->n > 0 && namer ? namer(&needed, context, err) : 0;

    store_names_sort(&needed);
    for (size_t i = 0; r == 0 && i < batch->n; i++) {
        const char *name = batch->items[i].name;
        char id[ID_SIZE];
        if (store_names_has(&needed, name))
            continue;
        r = give_back(store, name, id);
        if (r < 0)
            return err_set_errno(err, r, "remove '%s/%s'", store->path, name);
        store_unmount(batch->items[i].dir);
        memcpy(batch->items[i].id, id, sizeof(id));
    }
    return r;
}

/* Files are removed when every lock is free again, so that holders do not wait for it. */
static int retire_batch(const struct store *store, struct batch *batch, store_namer *namer,
        void *context, struct carrel_error *err)
{
    int r = give_back_batch(store, batch, namer, context, err);
    int retired = 0;

    for (size_t i = 0; i < batch->n; i++)
        fd_close(batch->items[i].dir);
    for (size_t i = 0; i < batch->n; i++) {
        if (!batch->items[i].id[0])
            continue;
        retired++;
        (void)tree_remove(store->tmp, batch->items[i].id, NULL); /* else the sweep does */
    }
    return r < 0 ? r : retired;
}

int store_retire(const struct store *store, const struct store_names *names, store_namer *namer,
        void *context, struct carrel_error *err)
{
    int retired = 0;

    for (size_t at = 0; at < names->n;) {
        struct batch batch = { .n = 0 };
        for (; at < names->n && batch.n < BATCH; at++) {
            int dir = open_locked(store->top, names->list[at], LOCK_EX | LOCK_NB);
            if (dir < 0)
                continue; /* in use, or gone */
            batch.items[batch.n].name = names->list[at];
            batch.items[batch.n++].dir = dir;
        }
        int r = retire_batch(store, &batch, namer, context, err);
        if (r < 0)
            return r;
        retired += r;
    }
    return retired;
}

int store_sweep_with(const struct store *store, store_finisher *finish, void *context,
        struct carrel_error *err)
{
    AUTO(dir_close) DIR *dir = dir_open(store->tmp, ".");
    int swept = 0;

    if (!dir)
        return err_set_errno(err, -errno, "read '%s/" TMP "'", store->path);
    for (const char *name; (name = dir_next(dir));) {
        AUTO(fd_close) int held = open_locked(store->tmp, name, LOCK_EX | LOCK_NB);
        if (held < 0 && held != -ENOTDIR && held != -ELOOP) /* those are no drafts */
            continue;
        if (held >= 0 && finish && finish(held, context) < 0)
            continue;
        if (held >= 0)
            store_unmount(held);
        swept += tree_remove(store->tmp, name, NULL) == 0;
    }
    return swept;
}

int store_sweep(const struct store *store, struct carrel_error *err)
{
    return store_sweep_with(store, NULL, NULL, err);
}
