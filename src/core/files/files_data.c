/* files_data.c - bytes from here to there. */
#include "core/files/files_data.h"
#include "base/auto.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/str.h"
#include "core/files/file_access.h"
#include <errno.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define CHUNK ((size_t)256 << 10)
#define ATTEMPTS 3
#define TICK_NS (20 * 1000 * 1000) /* longer than any kernel's */

int data_spend(struct data_budget *budget, uint64_t bytes, struct carrel_error *err)
{
    char size[32];

    if (bytes > budget->max - budget->used)
        return err_set(
                err, -EFBIG, "this is more than %s of data", str_size(budget->max, size));
    budget->used += bytes;
    return 0;
}

static int wrote(struct data_budget *budget, uint64_t bytes, struct carrel_error *err)
{
    return budget->access ? file_door_wrote(budget->access, bytes, err) : 0;
}

int data_pump(int in, int out, struct data_budget *budget, struct carrel_error *err)
{
    AUTO(free) char *chunk = malloc(CHUNK);
    if (!chunk)
        return err_set_errno(err, -ENOMEM, "copy");
    for (;;) {
        ssize_t n = read(in, chunk, CHUNK);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return err_set_errno(err, -errno, "read");
        if (n == 0)
            return 0;
        int r = data_spend(budget, (uint64_t)n, err);
        if (r < 0)
            return r;
        r = fd_write_all(out, chunk, (size_t)n);
        if (r < 0)
            return err_set_errno(err, r, "write");
        r = wrote(budget, (uint64_t)n, err);
        if (r < 0)
            return r;
    }
}

static int write_at(int out, const char *data, size_t len, off_t at)
{
    while (len > 0) {
        ssize_t n = pwrite(out, data, len, at);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        data += n;
        at += n;
        len -= (size_t)n;
    }
    return 0;
}

/* A file that became shorter ends early: data_check_same() will tell. */
static int copy_by_hand(int in, int out, off_t from, off_t to, struct data_budget *budget,
        struct carrel_error *err)
{
    AUTO(free) char *chunk = malloc(CHUNK);
    if (!chunk)
        return err_set_errno(err, -ENOMEM, "copy");
    while (from < to) {
        size_t want = to - from < (off_t)CHUNK ? (size_t)(to - from) : CHUNK;
        ssize_t n = pread(in, chunk, want, from);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return err_set_errno(err, -errno, "read");
        if (n == 0)
            return 0;
        int r = write_at(out, chunk, (size_t)n, from);
        if (r < 0)
            return err_set_errno(err, r, "write");
        r = wrote(budget, (uint64_t)n, err);
        if (r < 0)
            return r;
        from += n;
    }
    return 0;
}

/* The kernel copies where it can; between two kinds of file systems it says that it cannot. */
static int copy_range(int in, int out, off_t from, off_t to, struct data_budget *budget,
        struct carrel_error *err)
{
    while (from < to) {
        off_t read_at = from;
        off_t written_at = from;
        off_t left = to - from;
        size_t want = left < (off_t)FILE_DOOR_BYTES ? (size_t)left : FILE_DOOR_BYTES;
        ssize_t n = copy_file_range(in, &read_at, out, &written_at, want, 0);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return copy_by_hand(in, out, from, to, budget, err);
        int r = wrote(budget, (uint64_t)n, err);
        if (r < 0)
            return r;
        from += n;
    }
    return 0;
}

static int copy_once(int in, int out, const struct stat *st, struct data_budget *budget,
        struct carrel_error *err)
{
    off_t at = 0;

    if (st->st_size == 0) /* empty, or made up by the kernel as it is read */
        return lseek(out, 0, SEEK_SET) < 0 ? err_set_errno(err, -errno, "read")
                                           : data_pump(in, out, budget, err);
    while (at < st->st_size) {
        off_t from = lseek(in, at, SEEK_DATA);
        if (from < 0 && errno == ENXIO)
            break; /* a hole up to the end */
        off_t to = from < 0 ? -1 : lseek(in, from, SEEK_HOLE);
        if (from < 0) /* a file system without holes */
            from = at;
        if (to < 0 || to > st->st_size)
            to = st->st_size;
        if (from >= to)
            break;
        int r = data_spend(budget, (uint64_t)(to - from), err);
        if (r == 0)
            r = copy_range(in, out, from, to, budget, err);
        if (r < 0)
            return r;
        at = to;
    }
    return ftruncate(out, st->st_size) < 0 ? err_set_errno(err, -errno, "write") : 0;
}

static bool is_same_time(const struct timespec *a, const struct timespec *b)
{
    return a->tv_sec == b->tv_sec && a->tv_nsec == b->tv_nsec;
}

int data_check_same(int fd, const struct stat *before, struct carrel_error *err)
{
    struct stat now;

    if (fstat(fd, &now) < 0)
        return err_set_errno(err, -errno, "stat");
    if (now.st_size == before->st_size && is_same_time(&now.st_mtim, &before->st_mtim) &&
            is_same_time(&now.st_ctim, &before->st_ctim))
        return 0;
    return err_set(err, -EBUSY, "it changed while it was read");
}

static bool is_recent(const struct timespec *when)
{
    struct timespec now;

    if (clock_gettime(CLOCK_REALTIME, &now) < 0)
        return true;
    int64_t ns =
            (int64_t)(now.tv_sec - when->tv_sec) * 1000000000 + now.tv_nsec - when->tv_nsec;
    return ns > -TICK_NS && ns < TICK_NS; /* one in the future was set by hand */
}

/*
 * The time of a write is that of its beginning. One that had begun when we looked would not be
 * seen in the end: but it holds a lock that a search for holes takes, too (ext4, tmpfs,
 * overlayfs, btrfs; reads of xfs take it anyway), so we take it afterwards. And before
 * Linux 6.13 two writes within a tick have the same time: what was written just now is looked
 * at a tick later.
 */
int data_settle(int fd, struct stat *st, struct carrel_error *err)
{
    const struct timespec tick = { .tv_nsec = TICK_NS };

    for (int i = 0;; i++) {
        if (fstat(fd, st) < 0)
            return err_set_errno(err, -errno, "stat");
        (void)lseek(fd, 0, SEEK_HOLE); /* for the lock alone */
        if (i > 0 || (!is_recent(&st->st_mtim) && !is_recent(&st->st_ctim)))
            break;
        (void)nanosleep(&tick, NULL); /* cut short by a signal that ends us anyway */
    }
    return lseek(fd, 0, SEEK_SET) < 0 ? err_set_errno(err, -errno, "read") : 0;
}

int data_copy(int in, int out, struct data_budget *budget, struct carrel_error *err)
{
    const uint64_t used = budget->used;
    int r = -EBUSY;

    for (int i = 0; i < ATTEMPTS && r == -EBUSY; i++) {
        struct stat st;
        budget->used = used;
        r = data_settle(in, &st, err);
        if (r == 0 && ftruncate(out, 0) < 0)
            r = err_set_errno(err, -errno, "copy");
        if (r < 0)
            return r;
        r = copy_once(in, out, &st, budget, err);
        if (r == 0)
            r = data_check_same(in, &st, err);
    }
    return r;
}
