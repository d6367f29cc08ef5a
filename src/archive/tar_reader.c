/*
 * tar_reader.c - reads entries with libarchive, and checks them.
 *
 * libarchive converts names that their header declares as UTF-8 into the locale's character
 * set. If it cannot (there is no locale here), it warns and returns the bytes unchanged. These
 * are what we want, so a warning about an entry is not a failure.
 */
#include "archive/tar_reader.h"
#include "archive/stream.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/str.h"
#include <archive_entry.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

struct tar_reader {
    struct archive *archive;
    struct tar_limits limits;
    uint64_t entries;
    uint64_t bytes;
    uint64_t size; /* of the current entry */
    uint64_t at;   /* offset in it: what tar_reader_read() has returned */
    const char *block;
    uint64_t block_at;
    size_t block_len;
    char path[TAR_PATH_MAX + 1];
    char target[TAR_PATH_MAX + 1];
    struct stream stream;
};

void tar_reader_free(struct tar_reader *reader)
{
    if (!reader)
        return;
    stream_free(reader->archive);
    free(reader);
}

static bool is_supported(struct archive *archive, enum tar_packing packing)
{
    if (archive_read_support_format_tar(archive) != ARCHIVE_OK)
        return false;
    return packing == TAR_PLAIN ||
           (archive_read_support_filter_gzip(archive) == ARCHIVE_OK &&
                   archive_read_support_filter_zstd(archive) == ARCHIVE_OK &&
                   archive_read_support_filter_xz(archive) == ARCHIVE_OK);
}

int tar_reader_open(int fd, enum tar_packing packing, const struct tar_limits *limits,
        struct tar_reader **out, struct carrel_error *err)
{
    AUTO(tar_reader_free) struct tar_reader *reader = calloc(1, sizeof(*reader));
    if (reader)
        reader->archive = archive_read_new();
    if (!reader || !reader->archive)
        return err_set_errno(err, -ENOMEM, "read an archive");
    if (!is_supported(reader->archive, packing))
        return stream_error(reader->archive, err);

    reader->limits = limits ? *limits : TAR_LIMITS;
    if (!reader->limits.entries)
        reader->limits.entries = TAR_LIMITS.entries;
    if (!reader->limits.bytes)
        reader->limits.bytes = TAR_LIMITS.bytes;
    if (!reader->limits.depth)
        reader->limits.depth = TAR_LIMITS.depth;
    reader->stream.fd = fd;
    int r = stream_open(reader->archive, &reader->stream, err);
    if (r < 0)
        return r;
    *out = ptr_steal(&reader);
    return 0;
}

static enum tar_kind kind_of(struct archive_entry *entry)
{
    if (archive_entry_hardlink(entry))
        return TAR_HARDLINK;
    switch (archive_entry_filetype(entry)) {
    case AE_IFREG:
        return TAR_FILE;
    case AE_IFDIR:
        return TAR_DIRECTORY;
    case AE_IFLNK:
        return TAR_SYMLINK;
    default:
        return TAR_OTHER;
    }
}

static int read_target(struct tar_reader *reader, struct archive_entry *entry,
        enum tar_kind kind, struct carrel_error *err)
{
    const char *target =
            kind == TAR_HARDLINK ? archive_entry_hardlink(entry) : archive_entry_symlink(entry);
    if (!target || !*target)
        return err_set(err, -EINVAL, "a link without a target");
    if (kind == TAR_HARDLINK)
        return tar_clean_path(target, reader->limits.depth, reader->target, err);
    size_t len = strlen(target);
    if (len > TAR_PATH_MAX)
        return err_set(err, -ENAMETOOLONG, "a link to a name that is too long");
    memcpy(reader->target, target, len + 1);
    return 0;
}

static int count(struct tar_reader *reader, int64_t size, struct carrel_error *err)
{
    if (++reader->entries > reader->limits.entries)
        return err_set(err, -EFBIG, "the archive has more than %ju entries",
                (uintmax_t)reader->limits.entries);
    if (size < 0 || (uint64_t)size > reader->limits.bytes - reader->bytes)
        return err_set(err, -EFBIG, "the files of the archive hold more than %ju bytes",
                (uintmax_t)reader->limits.bytes);
    reader->bytes += (uint64_t)size;
    return 0;
}

/* Copies the names: libarchive's own are invalid after the next call. */
static int take(struct tar_reader *reader, struct archive_entry *entry, struct tar_entry *out,
        struct carrel_error *err)
{
    const char *path = archive_entry_pathname(entry);
    enum tar_kind kind = kind_of(entry);
    char shown[200];

    int r = tar_clean_path(path ? path : "", reader->limits.depth, reader->path, err);
    if (r < 0)
        return r;
    reader->target[0] = '\0';
    if (kind == TAR_HARDLINK || kind == TAR_SYMLINK)
        r = read_target(reader, entry, kind, err);
    if (r < 0)
        return err_wrap(err, r, "'%s'",
                str_escape(reader->path, strlen(reader->path), shown, sizeof(shown)));
    r = count(reader, kind == TAR_FILE ? archive_entry_size(entry) : 0, err);
    if (r < 0)
        return r;

    reader->size = kind == TAR_FILE ? (uint64_t)archive_entry_size(entry) : 0;
    reader->at = reader->block_at = reader->block_len = 0;
    *out = (struct tar_entry){
        .kind = kind,
        .path = reader->path,
        .target = reader->target,
        .bytes = reader->size,
        .mode = archive_entry_mode(entry) & 01777,
        .mtime = { .tv_sec = archive_entry_mtime(entry),
                .tv_nsec = archive_entry_mtime_nsec(entry) },
    };
    if (out->mtime.tv_nsec < 0 || out->mtime.tv_nsec > 999999999)
        out->mtime.tv_nsec = 0;
    return 0;
}

int tar_reader_next(struct tar_reader *reader, struct tar_entry *out, struct carrel_error *err)
{
    struct archive_entry *entry;

    switch (archive_read_next_header(reader->archive, &entry)) {
    case ARCHIVE_EOF:
        return 0;
    case ARCHIVE_OK:
    case ARCHIVE_WARN: {
        int r = take(reader, entry, out, err);
        return r < 0 ? r : 1;
    }
    default:
        return stream_error(reader->archive, err);
    }
}

/* Returns 1 and a block of the current file, in order and within its size; 0 after the last. */
static int next_block(struct tar_reader *reader, struct carrel_error *err)
{
    const void *data;
    size_t len;
    int64_t at;

    switch (archive_read_data_block(reader->archive, &data, &len, &at)) {
    case ARCHIVE_EOF:
        return 0;
    case ARCHIVE_OK:
    case ARCHIVE_WARN:
        break;
    default:
        return stream_error(reader->archive, err);
    }
    if (at < 0 || (uint64_t)at < reader->block_at + reader->block_len ||
            (uint64_t)at > reader->size || len > reader->size - (uint64_t)at)
        return err_set(err, -EBADMSG, "a file of the archive has more bytes than its size");
    reader->block = data;
    reader->block_at = (uint64_t)at;
    reader->block_len = len;
    return 1;
}

ssize_t tar_reader_read(
        struct tar_reader *reader, void *data, size_t size, struct carrel_error *err)
{
    while (reader->at == reader->block_at + reader->block_len) {
        uint64_t end = reader->at;
        int r = next_block(reader, err);
        if (r < 0)
            return r;
        if (r > 0)
            continue;
        reader->block_at = reader->size; /* the rest is a hole */
        reader->block_len = 0;
        if (end == reader->size)
            return 0;
    }
    bool is_hole = reader->at < reader->block_at;
    uint64_t end = is_hole ? reader->block_at : reader->block_at + reader->block_len;
    size_t n = end - reader->at < size ? (size_t)(end - reader->at) : size;
    if (is_hole)
        memset(data, 0, n);
    else
        memcpy(data, reader->block + (reader->at - reader->block_at), n);
    reader->at += n;
    return (ssize_t)n;
}

static int write_at(int fd, const char *data, size_t len, uint64_t at)
{
    while (len > 0) {
        ssize_t n = pwrite(fd, data, len, (off_t)at);
        if (n < 0 && errno != EINTR)
            return -errno;
        if (n > 0) {
            data += n;
            len -= (size_t)n;
            at += (uint64_t)n;
        }
    }
    return 0;
}

int tar_reader_copy(struct tar_reader *reader, int fd, struct carrel_error *err)
{
    uint64_t end = 0;
    int r;

    while ((r = next_block(reader, err)) > 0) {
        r = write_at(fd, reader->block, reader->block_len, reader->block_at);
        if (r < 0)
            return err_set_errno(err, r, "write");
        end = reader->block_at + reader->block_len;
    }
    if (r == 0 && end < reader->size && ftruncate(fd, (off_t)reader->size) < 0)
        r = err_set_errno(err, -errno, "write");
    return r;
}
