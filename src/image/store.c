/* store.c - the directories of the images, and which layers are needed. */
#include "image/store.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/tree.h"
#include "image/base.h"
#include "image/record.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#define HOLD_MS 10000U

enum missing { MISSING_IS_MADE, MISSING_IS_ENOENT };

static int open_dir(int dir, const char *name, enum missing missing)
{
    if (missing == MISSING_IS_MADE && mkdirat(dir, name, 0700) < 0 && errno != EEXIST)
        return -errno;
    int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

static int open_store(const char *state, enum missing missing, struct image_store *out,
        struct carrel_error *err)
{
    AUTO(image_store_finish) struct image_store store = IMAGE_STORE_INIT;

    if (asprintf(&store.path, "%s/images", state) < 0) {
        store.path = NULL;
        return err_set_errno(err, -ENOMEM, "open the images");
    }
    store.top = open_dir(AT_FDCWD, store.path, missing);
    if (store.top < 0)
        return err_set_errno(err, store.top, "open the images in '%s'", store.path);
    store.layers = open_dir(store.top, "layers", missing);
    store.drafts = store.layers < 0 ? store.layers : open_dir(store.top, ".new", missing);
    if (store.drafts < 0)
        return err_set_errno(err, store.drafts, "open the images in '%s'", store.path);
    *out = store;
    store = (struct image_store)IMAGE_STORE_INIT;
    return 0;
}

int image_store_open(const char *state, struct image_store *out, struct carrel_error *err)
{
    return open_store(state, MISSING_IS_ENOENT, out, err);
}

int image_store_make(const char *state, struct image_store *out, struct carrel_error *err)
{
    AUTO(image_store_finish) struct image_store store = IMAGE_STORE_INIT;

    int r = open_store(state, MISSING_IS_MADE, &store, err);
    if (r == 0)
        r = image_base_make(store.top, err);
    if (r < 0)
        return r;
    *out = store;
    store = (struct image_store)IMAGE_STORE_INIT;
    return 0;
}

void image_store_finish(struct image_store store)
{
    free(store.path);
    fd_close(store.top);
    fd_close(store.layers);
    fd_close(store.drafts);
}

int image_store_lock(int dir, const char *name, short type)
{
    struct flock lock = { .l_type = type, .l_whence = SEEK_SET };
    AUTO(fd_close) int fd = openat(dir, name, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    if (fcntl(fd, F_OFD_SETLK, &lock) < 0)
        return errno == EACCES ? -EAGAIN : -errno;
    return fd_steal(&fd);
}

/* -ENOENT: it has gone, or what has its name now is another one. */
static int lock_layer(const struct image_store *store, const char *id, short type)
{
    struct stat held;
    struct stat named;
    char path[STORE_ID_LEN + 8];

    (void)snprintf(path, sizeof(path), "%s/lock", id);
    AUTO(fd_close)
    int dir = openat(store->layers, id, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (dir < 0)
        return -errno;
    AUTO(fd_close) int lock = image_store_lock(dir, "lock", type);
    if (lock < 0)
        return lock;
    /* It may have been taken away before it was ours. */
    if (fstat(lock, &held) < 0 || fstatat(store->layers, path, &named, AT_SYMLINK_NOFOLLOW) < 0)
        return -errno;
    return held.st_ino == named.st_ino ? fd_steal(&lock) : -ENOENT;
}

/* Whoever would remove it has it for a moment, and may find that it stays. One that was stopped
 * meanwhile is not waited for without end. */
int image_store_hold_layer(const struct image_store *store, const char *id)
{
    const uint64_t deadline = clock_ns() + HOLD_MS * UINT64_C(1000000);
    int lock;

    while ((lock = lock_layer(store, id, F_RDLCK)) == -EAGAIN && clock_ns() < deadline)
        (void)poll(NULL, 0, 1);
    return lock;
}

static int close_gate(const struct image_store *store, int operation)
{
    /* Opened anew: a flock belongs to the open file, and each holder needs its own. */
    AUTO(fd_close) int gate = openat(store->drafts, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (gate < 0)
        return -errno;
    while (flock(gate, operation) < 0)
        if (errno != EINTR)
            return -errno;
    return fd_steal(&gate);
}

#define LOCK_SUFFIX ".lock"
#define LOCK_NAME_MAX 80

static void lock_name(const char *draft, char name[static LOCK_NAME_MAX])
{
    (void)snprintf(name, LOCK_NAME_MAX, "%.60s" LOCK_SUFFIX, draft);
}

/* A name that is ours alone, and the lock that says that we live. */
static int begin_draft(const struct image_store *store, struct draft *draft)
{
    uint64_t bits[2];
    char name[LOCK_NAME_MAX];

    if (getrandom(bits, sizeof(bits), 0) != (ssize_t)sizeof(bits))
        return -errno;
    (void)snprintf(draft->name, sizeof(draft->name), "%016jx%016jx", (uintmax_t)bits[0],
            (uintmax_t)bits[1]);
    lock_name(draft->name, name);
    /* Shared: whoever looks for drafts of the dead must not see one that is not locked yet. */
    AUTO(fd_close) int gate = close_gate(store, LOCK_SH);
    if (gate < 0)
        return gate;
    AUTO(fd_close)
    int made = openat(store->drafts, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (made < 0)
        return -errno;
    draft->lock = image_store_lock(store->drafts, name, F_WRLCK);
    return draft->lock < 0 ? draft->lock : 0;
}

int image_store_draft(
        const struct image_store *store, struct draft *out, struct carrel_error *err)
{
    struct draft draft = DRAFT_INIT;

    int r = begin_draft(store, &draft);
    if (r == 0 && mkdirat(store->drafts, draft.name, 0700) < 0)
        r = -errno;
    if (r == 0)
        draft.dir = openat(store->drafts, draft.name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (r == 0 && draft.dir < 0)
        r = -errno;
    if (r < 0) {
        image_store_drop_draft(store, &draft);
        return err_set_errno(err, r, "begin a draft");
    }
    *out = draft;
    return 0;
}

/* The lock goes last: as long as there is anything, it says who is at it. */
static int remove_draft(
        const struct image_store *store, const char *draft, struct carrel_error *err)
{
    char name[LOCK_NAME_MAX];

    int r = tree_remove(store->drafts, draft, err);
    if (r < 0)
        return r;
    lock_name(draft, name);
    if (unlinkat(store->drafts, name, 0) < 0 && errno != ENOENT)
        return err_set_errno(err, -errno, "remove the lock of a draft");
    return 0;
}

void image_store_drop_draft(const struct image_store *store, struct draft *draft)
{
    if (draft->lock >= 0)
        (void)remove_draft(store, draft->name, NULL); /* else the sweep takes it */
    fd_close(draft->dir);
    fd_close(draft->lock);
    *draft = (struct draft)DRAFT_INIT;
}

static void dir_close(DIR *dir)
{
    if (dir)
        (void)closedir(dir);
}
DEFINE_AUTO(DIR *, dir_close)

static DIR *read_dir(int dir)
{
    int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *stream = fd < 0 ? NULL : fdopendir(fd);

    if (!stream)
        fd_close(fd);
    return stream;
}

int image_store_each(const struct image_store *store,
        int (*each)(const struct image_store *store, const char *name, void *arg), void *arg,
        struct carrel_error *err)
{
    char name[IMAGE_NAME_MAX + 1];
    AUTO(dir_close) DIR *dir = read_dir(store->top);

    if (!dir)
        return err_set_errno(err, -errno, "read the images");
    for (struct dirent *entry; (entry = readdir(dir));) {
        if (!image_store_name_of_file(entry->d_name, name))
            continue;
        int r = each(store, name, arg);
        if (r != 0)
            return r;
    }
    return 0;
}

struct question {
    const char *id;
    struct carrel_error *err;
};

static int names_it(const struct image_store *store, const char *name, void *arg)
{
    struct question *question = arg;
    AUTO(image_free) struct image *image = NULL;

    int r = image_record_read(store, name, &image, question->err);
    if (r == -ENOENT)
        return 0; /* it went in the meantime */
    if (r < 0)
        return r; /* what it names is not known: nothing is removed */
    for (size_t i = 0; i < image->n_layers; i++)
        if (strcmp(image->layers[i], question->id) == 0)
            return 1;
    return 0;
}

static int is_named(const struct image_store *store, const char *id, struct carrel_error *err)
{
    struct question question = { .id = id, .err = err };

    return image_store_each(store, names_it, &question, err);
}

/* 1: it went. The order is what makes it safe: see store.h. */
static int drop_layer(const struct image_store *store, const char *id, struct carrel_error *err)
{
    struct draft trash = DRAFT_INIT;

    int r = is_named(store, id, err);
    if (r != 0)
        return r < 0 ? r : 0;
    AUTO(fd_close) int lock = lock_layer(store, id, F_WRLCK);
    if (lock < 0)
        return 0; /* in use, or gone */
    r = is_named(store, id, err);
    if (r != 0)
        return r < 0 ? r : 0;
    r = begin_draft(store, &trash);
    if (r == 0 && renameat(store->layers, id, store->drafts, trash.name) < 0)
        r = -errno;
    if (r < 0)
        (void)err_set_errno(err, r, "remove a layer");
    fd_close(fd_steal(&lock)); /* it has no name any more: nobody need wait for the rest */
    image_store_drop_draft(store, &trash);
    return r < 0 ? r : 1;
}

static int sweep_layers(const struct image_store *store, struct carrel_error *err)
{
    AUTO(dir_close) DIR *dir = read_dir(store->layers);
    int n = 0;

    if (!dir)
        return err_set_errno(err, -errno, "read the layers");
    for (struct dirent *entry; (entry = readdir(dir));) {
        if (!image_store_is_layer_id(entry->d_name))
            continue;
        int r = drop_layer(store, entry->d_name, err);
        if (r < 0)
            return r;
        n += r;
    }
    return n;
}

/* The lock of a draft whose maker is dead; -ENOENT: it has none; -EAGAIN: somebody is at it. */
static int claim_draft(const struct image_store *store, const char *draft)
{
    char name[LOCK_NAME_MAX];

    lock_name(draft, name);
    AUTO(fd_close) int gate = close_gate(store, LOCK_EX);
    return gate < 0 ? gate : image_store_lock(store->drafts, name, F_WRLCK);
}

static int sweep_drafts(const struct image_store *store, struct carrel_error *err)
{
    AUTO(dir_close) DIR *dir = read_dir(store->drafts);
    int n = 0;

    if (!dir)
        return err_set_errno(err, -errno, "read the drafts");
    for (struct dirent *entry; (entry = readdir(dir));) {
        char draft[64];
        size_t len = strcspn(entry->d_name, "."); /* it may be the lock */
        if (len == 0 || len >= sizeof(draft))
            continue;
        (void)snprintf(draft, sizeof(draft), "%.*s", (int)len, entry->d_name);
        AUTO(fd_close) int lock = claim_draft(store, draft);
        if (lock < 0)
            continue;
        int r = remove_draft(store, draft, err);
        if (r < 0)
            return r;
        n++;
    }
    return n;
}

int image_store_sweep(const struct image_store *store, struct carrel_error *err)
{
    int drafts = sweep_drafts(store, err);
    int layers = drafts < 0 ? drafts : sweep_layers(store, err);

    return layers < 0 ? layers : drafts + layers;
}
