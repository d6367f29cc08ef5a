/*
 * unpack_apart.c - the processes that read what nobody has vouched for.
 *
 *     file --> inflate --> (this process: hash, count) --> unpack --> tree
 *
 * A plain file needs no inflate. Each child is confined before it reads the first byte, says
 * how it went in one struct on a socket of its own, and dies with us.
 */
#include "archive/confine.h"
#include "archive/inflate.h"
#include "archive/unpack.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/sha256.h"
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* xz and zstd may ask for much: -9 of xz takes 65 MB, zstd --long=31 two gigabytes. */
#define INFLATE_MEMORY (3ULL << 30)
#define UNPACK_MEMORY (1ULL << 30)
#define HEADER_BYTES 4096 /* of the stream for each entry, beside its file */

struct verdict {
    int result;
    struct carrel_error err;
    struct unpacked unpacked;
};

struct child {
    pid_t pid; /* 0: none */
    int verdict;
    int stream; /* our end of the bytes it makes or takes */
};
#define CHILD_INIT                                                                             \
    {                                                                                          \
        .verdict = -1, .stream = -1                                                            \
    }

/* Also after a failure half way: it is ended if it has not been waited for. */
static void child_finish(struct child child)
{
    fd_close(child.verdict);
    fd_close(child.stream);
    if (child.pid > 0) {
        (void)kill(child.pid, SIGKILL);
        while (waitpid(child.pid, NULL, 0) < 0 && errno == EINTR)
            ;
    }
}
DEFINE_AUTO(struct child, child_finish)

struct job {
    int fd;  /* inflate: the file */
    int dir; /* unpack: the tree; inflate: -1 */
    uint64_t memory_bytes;
    const struct tar_limits *limits;
};

static int work(const struct job *job, int stream, struct verdict *verdict)
{
    if (job->dir < 0)
        return inflate_stream(job->fd, stream, &verdict->err);
    return unpack_tree(stream, job->dir, job->limits, &verdict->unpacked, &verdict->err);
}

_Noreturn static void child_main(const struct job *job, pid_t parent, int stream, int answer)
{
    struct verdict verdict = { 0 };
    int keep[] = { stream, answer, job->dir < 0 ? job->fd : job->dir };

    (void)umask(022);
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    (void)signal(SIGPIPE, SIG_IGN); /* an end that nobody reads is an error like others */
    if (getppid() != parent)
        _exit(1);
    verdict.result =
            confine_self(job->dir, keep, ARRAY_LEN(keep), job->memory_bytes, &verdict.err);
    if (verdict.result == 0)
        verdict.result = work(job, stream, &verdict);
    _exit(fd_write_all(answer, &verdict, sizeof(verdict)) < 0);
}

static int child_start(const struct job *job, struct child *out, struct carrel_error *err)
{
    int stream[2];
    int answer[2];

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, answer) < 0)
        return err_set_errno(err, -errno, "make a socket");
    AUTO(fd_close) int answers = answer[1];
    out->verdict = answer[0];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, stream) < 0)
        return err_set_errno(err, -errno, "make a socket");
    AUTO(fd_close) int theirs = stream[1];
    out->stream = stream[0];

    pid_t parent = getpid();
    pid_t pid = fork();
    if (pid < 0)
        return err_set_errno(err, -errno, "start a process");
    if (pid == 0)
        child_main(job, parent, theirs, answers);
    out->pid = pid;
    return 0;
}

/* Waits for the child's end. Without a verdict it was ended: that is one too. */
static int child_ask(struct child *child, struct verdict *out, struct carrel_error *err)
{
    struct verdict verdict;
    int status = 0;

    fd_close(fd_steal(&child->stream)); /* it is not to wait for more, nor for a reader */
    ssize_t n = fd_read_all(child->verdict, &verdict, sizeof(verdict));
    while (waitpid(child->pid, &status, 0) < 0 && errno == EINTR)
        ;
    child->pid = 0;
    if (n != sizeof(verdict))
        return err_set(err, -EIO, "the process that read it was ended by signal %d",
                WIFSIGNALED(status) ? WTERMSIG(status) : 0);
    if (verdict.result < 0) {
        /* Its words come from a process that may not be itself any more. */
        verdict.err.message[sizeof(verdict.err.message) - 1] = '\0';
        return err_set(err, verdict.result, "%s", verdict.err.message);
    }
    *out = verdict;
    return 0;
}

static int send_all(int fd, const char *data, size_t len)
{
    while (len > 0) {
        ssize_t n = send(fd, data, len, MSG_NOSIGNAL);
        if (n < 0 && errno != EINTR)
            return -errno;
        if (n > 0) {
            data += n;
            len -= (size_t)n;
        }
    }
    return 0;
}

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
        if (send_all(to, data, (size_t)n) < 0)
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
    struct job inflates = { .fd = fd, .dir = -1, .memory_bytes = INFLATE_MEMORY };
    struct job unpacks = { .dir = dir, .memory_bytes = UNPACK_MEMORY, .limits = limits };
    struct verdict verdict = { 0 };
    bool is_plain = packing == TAR_PLAIN || is_plain_file(fd);

    int r = child_start(&unpacks, &unpack, err);
    if (r == 0 && !is_plain)
        r = child_start(&inflates, &inflate, err);
    if (r < 0)
        return r;
    r = pump(is_plain ? fd : inflate.stream, unpack.stream, stream_max(limits), diff_id, err);
    if (r < 0)
        return r;
    bool has_stopped = r > 0;
    if (!is_plain && !has_stopped) {
        r = child_ask(&inflate, &verdict, err);
        if (r < 0) /* what the other one says follows from this */
            return r;
    }
    r = child_ask(&unpack, &verdict, err);
    if (r < 0)
        return r;
    if (has_stopped)
        return err_set(err, -EIO, "the process that makes the files stopped early");
    *out = verdict.unpacked;
    return 0;
}
