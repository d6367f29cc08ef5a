/* store.c - directories, locks and drafts. */
#include "image/store.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/tree.h"
#include "image/record.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

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
    return open_store(state, MISSING_IS_MADE, out, err);
}

void image_store_finish(struct image_store store)
{
    free(store.path);
    fd_close(store.top);
    fd_close(store.layers);
    fd_close(store.drafts);
}

int image_store_lock(int dir, short type)
{
    struct flock lock = { .l_type = type, .l_whence = SEEK_SET };
    AUTO(fd_close) int fd = openat(dir, "lock", O_RDWR | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    if (fcntl(fd, F_OFD_SETLK, &lock) < 0)
        return -errno;
    return fd_steal(&fd);
}

int image_store_hold_layer(const struct image_store *store, const char *id)
{
    struct stat held;
    struct stat named;
    char path[STORE_ID_LEN + 8];

    (void)snprintf(path, sizeof(path), "%s/lock", id);
    AUTO(fd_close)
    int dir = openat(store->layers, id, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (dir < 0)
        return -errno;
    AUTO(fd_close) int lock = image_store_lock(dir, F_RDLCK);
    if (lock == -EAGAIN || lock == -EACCES)
        return -ENOENT; /* somebody is removing it */
    if (lock < 0)
        return lock;
    /* It may have been taken away between the two. */
    if (fstat(lock, &held) < 0 || fstatat(store->layers, path, &named, AT_SYMLINK_NOFOLLOW) < 0)
        return -errno;
    return held.st_ino == named.st_ino ? fd_steal(&lock) : -ENOENT;
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

static int unique(char name[static 40])
{
    uint64_t bits[2];

    if (getrandom(bits, sizeof(bits), 0) != (ssize_t)sizeof(bits))
        return -errno;
    (void)snprintf(name, 40, "%016jx%016jx", (uintmax_t)bits[0], (uintmax_t)bits[1]);
    return 0;
}

int image_store_draft(
        const struct image_store *store, struct draft *out, struct carrel_error *err)
{
    struct draft draft = DRAFT_INIT;

    int r = unique(draft.name);
    /* Shared: whoever looks for drafts of the dead must not see one that has no lock yet. */
    AUTO(fd_close) int gate = r < 0 ? r : close_gate(store, LOCK_SH);
    if (gate < 0)
        return err_set_errno(err, gate, "begin a draft");
    if (mkdirat(store->drafts, draft.name, 0700) < 0)
        return err_set_errno(err, -errno, "begin a draft");
    draft.dir = openat(store->drafts, draft.name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    AUTO(fd_close)
    int made = draft.dir < 0
                       ? -1
                       : openat(draft.dir, "lock", O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    draft.lock = made < 0 ? -errno : image_store_lock(draft.dir, F_WRLCK);
    if (draft.lock < 0) {
        r = err_set_errno(err, draft.lock, "begin a draft");
        draft.lock = -1;
        image_store_drop_draft(store, &draft);
        return r;
    }
    *out = draft;
    return 0;
}

void image_store_drop_draft(const struct image_store *store, struct draft *draft)
{
    if (draft->name[0])
        (void)tree_remove(store->drafts, draft->name, NULL); /* else the sweep takes it */
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
    char trash[40];

    int r = is_named(store, id, err);
    if (r != 0)
        return r < 0 ? r : 0;
    AUTO(fd_close)
    int dir = openat(store->layers, id, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    AUTO(fd_close) int lock = dir < 0 ? -1 : image_store_lock(dir, F_WRLCK);
    if (lock < 0)
        return 0; /* in use, or gone */
    r = is_named(store, id, err);
    if (r != 0)
        return r < 0 ? r : 0;
    r = unique(trash);
    if (r == 0 && renameat(store->layers, id, store->drafts, trash) < 0)
        r = -errno;
    if (r < 0)
        return err_set_errno(err, r, "remove a layer");
    r = tree_remove(store->drafts, trash, err);
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

/*
 * The lock of a draft whose maker is dead; -1: it lives. The gate is closed: one without a lock
 * was left so.
 */
static int claim_draft(int drafts, const char *name)
{
    AUTO(fd_close)
    int dir = openat(drafts, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (dir < 0)
        return -1;
    AUTO(fd_close)
    int made = openat(dir, "lock", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    int lock = made < 0 ? -1 : image_store_lock(dir, F_WRLCK);
    return lock < 0 ? -1 : lock;
}

static int sweep_drafts(const struct image_store *store, struct carrel_error *err)
{
    AUTO(dir_close) DIR *dir = read_dir(store->drafts);
    int n = 0;

    if (!dir)
        return err_set_errno(err, -errno, "read the drafts");
    for (struct dirent *entry; (entry = readdir(dir));) {
        if (entry->d_name[0] == '.')
            continue;
        int gate = close_gate(store, LOCK_EX);
        if (gate < 0)
            return err_set_errno(err, gate, "look at drafts");
        AUTO(fd_close) int lock = claim_draft(store->drafts, entry->d_name);
        fd_close(gate); /* the lock is ours: removing may take as long as it wants */
        if (lock < 0)
            continue;
        int r = tree_remove(store->drafts, entry->d_name, err);
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
