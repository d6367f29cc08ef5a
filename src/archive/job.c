/*
 * job.c - carrel archive: the process that parses.
 *
 * It has the memory of a program that was just executed and three descriptors. Before it reads
 * the first byte of an archive it confines itself. The packer reads no archive, and has to read
 * all below a directory: it is not confined.
 */
#include "archive/job.h"
#include "archive/confine.h"
#include "archive/entries.h"
#include "archive/inflate.h"
#include "archive/pack.h"
#include "archive/unpack.h"
#include "base/err.h"
#include "base/fd.h"
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

/* xz and zstd need much memory: xz -9 takes 65 MB, zstd --long=31 two gigabytes. */
#define INFLATE_MEMORY (3ULL << 30)
#define UNPACK_MEMORY (1ULL << 30)
#define CHUNK (1U << 17)

static const int all_fds[] = { JOB_STREAM_FD, JOB_ANSWER_FD, JOB_SOURCE_FD };

/* --- entries --- */

static int send_data(struct tar_reader *reader, struct carrel_error *err)
{
    AUTO(free) char *chunk = malloc(CHUNK);
    if (!chunk)
        return err_set_errno(err, -ENOMEM, "read the archive");
    for (;;) {
        ssize_t n = tar_reader_read(reader, chunk, CHUNK, err);
        if (n <= 0)
            return (int)n;
        int r = fd_write_all(JOB_STREAM_FD, chunk, (size_t)n);
        if (r < 0)
            return err_set_errno(err, r, "hand on");
    }
}

static int send_entry(
        struct tar_reader *reader, const struct tar_entry *entry, struct carrel_error *err)
{
    const char *target = entry->target ? entry->target : "";
    size_t path_len = strlen(entry->path);
    size_t target_len = strlen(target);
    struct entry_record record;

    if (path_len > TAR_PATH_MAX || target_len > TAR_PATH_MAX)
        return err_set_errno(err, -ENAMETOOLONG, "a name in the archive");
    memset(&record, 0, sizeof(record)); /* the padding, too */
    record.kind = (uint32_t)entry->kind;
    record.mode = entry->mode;
    record.bytes = entry->kind == TAR_FILE ? entry->bytes : 0;
    record.seconds = entry->mtime.tv_sec;
    record.nanoseconds = (uint32_t)entry->mtime.tv_nsec;
    record.path_len = (uint16_t)path_len;
    record.target_len = (uint16_t)target_len;
    int r = fd_write_all(JOB_STREAM_FD, &record, sizeof(record));
    if (r == 0)
        r = fd_write_all(JOB_STREAM_FD, entry->path, path_len);
    if (r == 0)
        r = fd_write_all(JOB_STREAM_FD, target, target_len);
    if (r < 0)
        return err_set_errno(err, r, "hand on");
    return entry->kind == TAR_FILE ? send_data(reader, err) : 0;
}

static int send_entries(
        const struct tar_limits *limits, struct unpacked *unused, struct carrel_error *err)
{
    const struct entry_record end = { .kind = ENTRY_END };
    AUTO(tar_reader_free) struct tar_reader *reader = NULL;
    struct tar_entry entry;

    (void)unused;
    int r = confine_self(-1, all_fds, ARRAY_LEN(all_fds), INFLATE_MEMORY, err);
    if (r == 0)
        r = tar_reader_open(JOB_SOURCE_FD, TAR_ANY, limits, &reader, err);
    if (r < 0)
        return r;
    while ((r = tar_reader_next(reader, &entry, err)) > 0) {
        r = send_entry(reader, &entry, err);
        if (r < 0)
            return r;
    }
    return r < 0 ? r : fd_write_all(JOB_STREAM_FD, &end, sizeof(end));
}

/* --- the others --- */

static int inflate(
        const struct tar_limits *limits, struct unpacked *unused, struct carrel_error *err)
{
    (void)limits;
    (void)unused;
    int r = confine_self(-1, all_fds, ARRAY_LEN(all_fds), INFLATE_MEMORY, err);
    return r < 0 ? r : inflate_stream(JOB_SOURCE_FD, JOB_STREAM_FD, err);
}

static int unpack(
        const struct tar_limits *limits, struct unpacked *out, struct carrel_error *err)
{
    int r = confine_self(JOB_SOURCE_FD, all_fds, ARRAY_LEN(all_fds), UNPACK_MEMORY, err);

    return r < 0 ? r : unpack_tree(JOB_STREAM_FD, JOB_SOURCE_FD, limits, out, err);
}

static int pack(const struct tar_limits *limits, struct unpacked *out, struct carrel_error *err)
{
    struct packed packed = { 0 };

    (void)limits;
    int r = pack_tree(JOB_SOURCE_FD, JOB_STREAM_FD, &packed, err);
    out->skipped = packed.skipped;
    return r;
}

static int read_job(struct job *job, struct carrel_error *err)
{
    ssize_t n = fd_read_all(JOB_ANSWER_FD, job, sizeof(*job));

    if (n < 0)
        return err_set_errno(err, (int)n, "read the request");
    if (n != sizeof(*job) || job->version != JOB_VERSION || job->kind >= JOB_KINDS)
        return err_set(
                err, -EPROTO, "libcarrel and the program carrel are of different versions");
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    if (getppid() != job->parent)
        return err_set(err, -ESRCH, "the caller has ended");
    return 0;
}

int job_execute(void)
{
    static int (*const works[JOB_KINDS])(
            const struct tar_limits *limits, struct unpacked *out, struct carrel_error *err) = {
        [JOB_ENTRIES] = send_entries,
        [JOB_INFLATE] = inflate,
        [JOB_UNPACK] = unpack,
        [JOB_PACK] = pack,
    };
    struct verdict verdict;
    struct job job;

    memset(&verdict, 0, sizeof(verdict)); /* the padding, too */
    verdict.version = JOB_VERSION;
    (void)umask(022);
    (void)signal(SIGPIPE, SIG_IGN); /* a write to a closed stream becomes an error */
    int r = read_job(&job, &verdict.err);
    if (r == 0)
        r = works[job.kind](&job.limits, &verdict.unpacked, &verdict.err);
    verdict.result = r;
    /* Without what runs at the end of a program, which the filter might refuse. */
    _exit(fd_write_all(JOB_ANSWER_FD, &verdict, sizeof(verdict)) < 0);
}
