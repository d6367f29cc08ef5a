/*
 * tar_writer.c - POSIX tar (ustar), with pax records where a name, a target or a size does not
 * fit. Names are bytes: no character set is assumed.
 */
#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "files/tar.h"
#include "files/tar_format.h"
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

struct tar_writer {
    int fd;
    uint64_t left; /* of the current file */
    size_t pad;    /* after it */
    size_t len;
    char data[1U << 16]; /* not written yet */
};

void tar_writer_free(struct tar_writer *writer)
{
    free(writer);
}

int tar_writer_open(int fd, struct tar_writer **out, struct carrel_error *err)
{
    struct tar_writer *writer = calloc(1, sizeof(*writer));
    if (!writer)
        return err_set_errno(err, -ENOMEM, "write an archive");
    writer->fd = fd;
    *out = writer;
    return 0;
}

static int flush(struct tar_writer *writer, struct carrel_error *err)
{
    int r = fd_send_all(writer->fd, writer->data, writer->len);
    writer->len = 0;
    return r < 0 ? err_set_errno(err, r, "write the archive") : 0;
}

static int put(
        struct tar_writer *writer, const void *data, size_t len, struct carrel_error *err)
{
    const char *at = data;

    while (len > 0) {
        size_t room = sizeof(writer->data) - writer->len;
        size_t n = len < room ? len : room;
        if (at)
            memcpy(writer->data + writer->len, at, n);
        else
            memset(writer->data + writer->len, 0, n);
        writer->len += n;
        at = at ? at + n : NULL;
        len -= n;
        int r = writer->len == sizeof(writer->data) ? flush(writer, err) : 0;
        if (r < 0)
            return r;
    }
    return 0;
}

static int put_zeroes(struct tar_writer *writer, size_t len, struct carrel_error *err)
{
    return put(writer, NULL, len, err);
}

static void octal(char *field, size_t size, uint64_t value)
{
    field[size - 1] = '\0';
    for (size_t i = size - 1; i > 0; i--, value /= 8)
        field[i - 1] = (char)('0' + value % 8);
}

/* Into name, or prefix and name; false when it does not fit. */
static bool split(struct tar_header *header, const char *path)
{
    size_t len = strlen(path);

    if (len <= sizeof(header->name)) {
        memcpy(header->name, path, len);
        return true;
    }
    for (const char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/')) {
        size_t before = (size_t)(slash - path);
        size_t after = len - before - 1;
        if (before > sizeof(header->prefix))
            break;
        if (after > sizeof(header->name) || after == 0)
            continue;
        memcpy(header->prefix, path, before);
        memcpy(header->name, slash + 1, after);
        return true;
    }
    memcpy(header->name, path, sizeof(header->name));
    return false;
}

/* "LEN key=value\n", where LEN counts itself. */
static void pax_record(struct buf *pax, const char *key, const char *value)
{
    size_t body = strlen(key) + strlen(value) + 3; /* space, =, newline */
    size_t len = body + 1;
    char digits[24];

    for (;;) {
        size_t whole = body + (size_t)snprintf(digits, sizeof(digits), "%zu", len);
        if (whole == len)
            break;
        len = whole;
    }
    buf_addf(pax, "%s %s=%s\n", digits, key, value);
}

static int put_header(
        struct tar_writer *writer, struct tar_header *header, struct carrel_error *err)
{
    const unsigned char *bytes = (const unsigned char *)header;
    unsigned sum = 0;

    memcpy(header->magic, TAR_MAGIC, sizeof(header->magic));
    memset(header->sum, ' ', sizeof(header->sum));
    for (size_t i = 0; i < sizeof(*header); i++)
        sum += bytes[i];
    octal(header->sum, sizeof(header->sum) - 1, sum);
    return put(writer, header, sizeof(*header), err);
}

static size_t padding(uint64_t bytes)
{
    return (size_t)((TAR_BLOCK - bytes % TAR_BLOCK) % TAR_BLOCK);
}

static int put_pax(struct tar_writer *writer, const struct buf *pax, struct carrel_error *err)
{
    struct tar_header header = { .type = 'x', .name = "pax" };

    octal(header.mode, sizeof(header.mode), 0600);
    octal(header.uid, sizeof(header.uid), 0);
    octal(header.gid, sizeof(header.gid), 0);
    octal(header.size, sizeof(header.size), pax->len);
    octal(header.mtime, sizeof(header.mtime), 0);
    int r = put_header(writer, &header, err);
    if (r == 0)
        r = put(writer, pax->data, pax->len, err);
    return r < 0 ? r : put_zeroes(writer, padding(pax->len), err);
}

static char type_of(enum tar_kind kind)
{
    switch (kind) {
    case TAR_FILE:
        return '0';
    case TAR_HARDLINK:
        return '1';
    case TAR_SYMLINK:
        return '2';
    case TAR_DIRECTORY:
        return '5';
    case TAR_OTHER:
        return '6';
    case TAR_FAILED:
        return TAR_TYPE_FAILED;
    }
    return '\0';
}

/* Values that the header cannot hold are added to `pax`. */
static void fill(struct tar_header *header, struct buf *pax, const struct tar_entry *entry)
{
    bool is_link = entry->kind == TAR_SYMLINK || entry->kind == TAR_HARDLINK ||
                   entry->kind == TAR_FAILED;
    size_t target = is_link ? strlen(entry->target) : 0;
    uint64_t bytes = entry->kind == TAR_FILE ? entry->bytes : 0;
    int64_t seconds = entry->mtime.tv_sec;
    char number[24];

    if (!split(header, entry->path))
        pax_record(pax, "path", entry->path);
    if (target > sizeof(header->target))
        pax_record(pax, "linkpath", entry->target);
    if (is_link)
        memcpy(header->target, entry->target,
                target < sizeof(header->target) ? target : sizeof(header->target));
    if (bytes > TAR_SIZE_MAX) {
        snprintf(number, sizeof(number), "%ju", (uintmax_t)bytes);
        pax_record(pax, "size", number);
    }
    if (seconds < 0 || (uint64_t)seconds > TAR_SIZE_MAX) {
        snprintf(number, sizeof(number), "%jd", (intmax_t)seconds);
        pax_record(pax, "mtime", number);
    }
    octal(header->size, sizeof(header->size), bytes > TAR_SIZE_MAX ? 0 : bytes);
    octal(header->mtime, sizeof(header->mtime), seconds < 0 ? 0 : (uint64_t)seconds);
    octal(header->mode, sizeof(header->mode), entry->mode & 01777);
    octal(header->uid, sizeof(header->uid), 0);
    octal(header->gid, sizeof(header->gid), 0);
}

int tar_writer_add(
        struct tar_writer *writer, const struct tar_entry *entry, struct carrel_error *err)
{
    AUTO(buf_finish) struct buf pax = BUF_INIT(TAR_PAX_MAX);
    struct tar_header header = { .type = type_of(entry->kind) };

    if (writer->left > 0)
        return err_set(
                err, -EIO, "a file in the archive is %ju bytes short", (uintmax_t)writer->left);
    if (!header.type)
        return err_set(err, -EINVAL, "'%s' cannot be in an archive", entry->path);
    if (strlen(entry->path) > TAR_PATH_MAX)
        return err_set(err, -ENAMETOOLONG, "a name is too long for an archive");
    fill(&header, &pax, entry);
    if (pax.is_short)
        return err_set_errno(err, -ENOMEM, "write the archive");

    int r = put_zeroes(writer, writer->pad, err);
    if (r == 0 && pax.len > 0)
        r = put_pax(writer, &pax, err);
    if (r == 0)
        r = put_header(writer, &header, err);
    writer->left = entry->kind == TAR_FILE ? entry->bytes : 0;
    writer->pad = padding(writer->left);
    return r;
}

int tar_writer_data(
        struct tar_writer *writer, const void *data, size_t len, struct carrel_error *err)
{
    if (len > writer->left)
        return err_set(err, -EIO, "a file has more bytes than were announced");
    writer->left -= len;
    return put(writer, data, len, err);
}

int tar_writer_finish(struct tar_writer *writer, struct carrel_error *err)
{
    if (writer->left > 0)
        return err_set(
                err, -EIO, "a file in the archive is %ju bytes short", (uintmax_t)writer->left);
    int r = put_zeroes(writer, writer->pad + 2 * TAR_BLOCK, err);
    return r < 0 ? r : flush(writer, err);
}

int tar_writer_fail(
        struct tar_writer *writer, int code, const char *reason, struct carrel_error *err)
{
    const struct tar_entry entry = {
        .kind = TAR_FAILED, .path = ".", .target = reason, .mode = (mode_t)-code
    };
    int r = 0;

    while (r == 0 && writer->left > 0) {
        size_t n = writer->left < TAR_BLOCK ? (size_t)writer->left : TAR_BLOCK;
        r = put_zeroes(writer, n, err);
        writer->left -= n;
    }
    if (r == 0)
        r = tar_writer_add(writer, &entry, err);
    return r < 0 ? r : tar_writer_finish(writer, err);
}
