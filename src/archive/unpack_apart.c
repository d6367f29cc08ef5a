/*
 * unpack_apart.c - the processes that read an untrusted archive.
 *
 *     file --> inflate --> (this process: hash, count) --> unpack --> tree
 *
 * A plain file needs no inflate. Each child is `carrel archive`, confined before it reads the
 * first byte; it reports its result in one struct on a socket of its own, and is killed when we
 * exit.
 */
#include "archive/child.h"
#include "archive/unpack.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/sha256.h"
#include <errno.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <unistd.h>

#define HEADER_BYTES 4096 /* of the stream for each entry, beside its file */

/* 1: the child at the other end has stopped reading. */
static int pump(
        int from, int to, uint64_t max, char diff_id[static 65], struct carrel_error *err)
{
    AUTO(free) char *data = malloc(1U << 17);
    struct sha256 sha;
    uint64_t total = 0;

    if (!data)
        return err_set_errno(err, -ENOMEM, "unpack");
    sha256_init(&sha);
    for (;;) {
        ssize_t n = read(from, data, 1U << 17);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return err_set_errno(err, -errno, "read");
        if (n == 0)
            break;
        total += (uint64_t)n;
        if (total > max)
            return err_set(err, -EFBIG, "it is more than %ju bytes long when unpacked",
                    (uintmax_t)max);
        sha256_add(&sha, data, (size_t)n);
        if (fd_send_all(to, data, (size_t)n) < 0)
            return 1;
    }
    sha256_finish_hex(&sha, diff_id);
    return 0;
}

static bool is_plain_file(int fd)
{
    unsigned char head[6];

    ssize_t n = pread(fd, head, sizeof(head), lseek(fd, 0, SEEK_CUR));
    return n >= 0 && tar_packing_of(head, (size_t)n) == TAR_PLAIN;
}

static uint64_t stream_max(const struct tar_limits *limits)
{
    uint64_t entries = limits && limits->entries ? limits->entries : TAR_LIMITS.entries;
    uint64_t bytes = limits && limits->bytes ? limits->bytes : TAR_LIMITS.bytes;
    uint64_t max;

    if (__builtin_mul_overflow(entries, HEADER_BYTES, &max) ||
            __builtin_add_overflow(max, bytes, &max))
        max = UINT64_MAX;
    return max;
}

int unpack_apart(int fd, enum tar_packing packing, int dir, const struct tar_limits *limits,
        struct unpacked *out, char diff_id[static 65], struct carrel_error *err)
{
    AUTO(child_finish) struct child inflate = CHILD_INIT;
    AUTO(child_finish) struct child unpack = CHILD_INIT;
    struct unpacked unpacked;
    bool is_plain = packing == TAR_PLAIN || is_plain_file(fd);

    int r = child_start(JOB_UNPACK, dir, limits, &unpack, err);
    if (r == 0 && !is_plain)
        r = child_start(JOB_INFLATE, fd, limits, &inflate, err);
    if (r < 0)
        return r;
    r = pump(is_plain ? fd : inflate.stream, unpack.stream, stream_max(limits), diff_id, err);
    if (r < 0)
        return r;
    bool has_stopped = r > 0;
    if (!is_plain && !has_stopped) {
        r = child_ask(&inflate, NULL, err);
        if (r < 0) /* the other child's error is a consequence of this one */
            return r;
    }
    r = child_ask(&unpack, &unpacked, err);
    if (r < 0)
        return r;
    if (has_stopped)
        return err_set(err, -EIO, "the process that makes the files stopped early");
    *out = unpacked;
    return 0;
}
