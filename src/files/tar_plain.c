/* tar_plain.c - see tar_plain.h. Allocates nothing. */
#include "files/tar_plain.h"
#include "base/err.h"
#include "base/fd.h"
#include "files/tar_format.h"
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* What pax records have said of the next entry; NULL: nothing. */
struct pax {
    const char *path;
    const char *target;
    const char *size;
    const char *mtime;
    char text[TAR_PAX_MAX + 1];
};

void tar_plain_init(struct tar_plain *tar, int fd, unsigned max_depth)
{
    tar->fd = fd;
    tar->left = 0;
    tar->pad = 0;
    tar->max_depth = max_depth;
}

static int bad(struct carrel_error *err, const char *what)
{
    return err_set(err, -EBADMSG, "the stream is not a tar of ours: %s", what);
}

static int read_exactly(
        const struct tar_plain *tar, void *data, size_t len, struct carrel_error *err)
{
    ssize_t n = fd_read_all(tar->fd, data, len);

    if (n < 0)
        return err_set_errno(err, (int)n, "read the tar");
    return (size_t)n < len ? bad(err, "it ends early") : 0;
}

static int skip(const struct tar_plain *tar, uint64_t bytes, struct carrel_error *err)
{
    char block[16384];
    int r = 0;

    while (r == 0 && bytes > 0) {
        size_t n = bytes < sizeof(block) ? (size_t)bytes : sizeof(block);
        r = read_exactly(tar, block, n, err);
        bytes -= n;
    }
    return r;
}

static size_t padding(uint64_t bytes)
{
    return (size_t)((TAR_BLOCK - bytes % TAR_BLOCK) % TAR_BLOCK);
}

/* Octal digits that fill the field but for its last byte. */
static bool read_octal(const char *field, size_t size, uint64_t *out)
{
    uint64_t value = 0;

    for (size_t i = 0; i < size - 1; i++) {
        if (field[i] < '0' || field[i] > '7')
            return false;
        value = value * 8 + (uint64_t)(field[i] - '0');
    }
    *out = value;
    return field[size - 1] == '\0';
}

static bool read_decimal(const char *text, uint64_t *out)
{
    uint64_t value = 0;

    if (!*text)
        return false;
    for (; *text; text++)
        if (*text < '0' || *text > '9' || __builtin_mul_overflow(value, 10, &value) ||
                __builtin_add_overflow(value, (uint64_t)(*text - '0'), &value))
            return false;
    *out = value;
    return true;
}

static bool has_right_sum(const struct tar_header *header)
{
    struct tar_header copy = *header;
    const unsigned char *bytes = (const unsigned char *)&copy;
    uint64_t said;
    unsigned sum = 0;

    memset(copy.sum, ' ', sizeof(copy.sum));
    for (size_t i = 0; i < sizeof(copy); i++)
        sum += bytes[i];
    return read_octal(header->sum, sizeof(header->sum) - 1, &said) && said == sum &&
           header->sum[sizeof(header->sum) - 1] == ' ';
}

static bool is_zero(const struct tar_header *header)
{
    static const struct tar_header zero;

    return memcmp(header, &zero, sizeof(zero)) == 0;
}

/* Returns 0 at the end of the archive, which is two blocks of zeroes. */
static int read_header(
        const struct tar_plain *tar, struct tar_header *header, struct carrel_error *err)
{
    int r = read_exactly(tar, header, sizeof(*header), err);
    if (r < 0)
        return r;
    if (is_zero(header)) {
        r = read_exactly(tar, header, sizeof(*header), err);
        return r < 0 ? r : is_zero(header) ? 0 : bad(err, "its end is not one");
    }
    if (memcmp(header->magic, TAR_MAGIC, sizeof(header->magic)) != 0 || !has_right_sum(header))
        return bad(err, "a header is damaged");
    return 1;
}

/* Cuts "LEN key=value\n" off at *at, and the newline from its value. */
static bool cut_record(char **at, const char *end, char **key, char **value)
{
    char *digits = *at;
    char *space = memchr(digits, ' ', (size_t)(end - digits));
    uint64_t len;

    if (!space)
        return false;
    *space = '\0';
    if (!read_decimal(digits, &len) || len > (uint64_t)(end - digits) ||
            digits + len <= space + 1 || digits[len - 1] != '\n')
        return false;
    *at = digits + len;
    (*at)[-1] = '\0';
    *key = space + 1;
    *value = strchr(*key, '=');
    if (!*value || strlen(*key) + 1 != (size_t)(*at - *key)) /* a NUL in it */
        return false;
    *(*value)++ = '\0';
    return true;
}

static bool keep_record(struct pax *pax, const char *key, const char *value)
{
    const struct {
        const char *key;
        const char **value;
    } known[] = {
        { "path", &pax->path },
        { "linkpath", &pax->target },
        { "size", &pax->size },
        { "mtime", &pax->mtime },
    };

    for (size_t i = 0; i < ARRAY_LEN(known); i++)
        if (strcmp(known[i].key, key) == 0 && !*known[i].value) {
            *known[i].value = value;
            return true;
        }
    return false;
}

static int read_pax(const struct tar_plain *tar, const struct tar_header *header,
        struct pax *pax, struct carrel_error *err)
{
    uint64_t len;
    char *key;
    char *value;

    if (!read_octal(header->size, sizeof(header->size), &len) || len == 0 || len > TAR_PAX_MAX)
        return bad(err, "a pax header has no size that can be");
    int r = read_exactly(tar, pax->text, (size_t)len, err);
    if (r == 0)
        r = skip(tar, padding(len), err);
    if (r < 0)
        return r;
    for (char *at = pax->text; at < pax->text + len;)
        if (!cut_record(&at, pax->text + len, &key, &value) || !keep_record(pax, key, value))
            return bad(err, "a pax record is damaged");
    return 0;
}

static bool kind_of(char type, enum tar_kind *kind)
{
    static const struct {
        char type;
        enum tar_kind kind;
    } known[] = {
        { '0', TAR_FILE },
        { '1', TAR_HARDLINK },
        { '2', TAR_SYMLINK },
        { '5', TAR_DIRECTORY },
        { '6', TAR_OTHER },
        { TAR_TYPE_FAILED, TAR_FAILED },
    };

    for (size_t i = 0; i < ARRAY_LEN(known); i++)
        if (known[i].type == type) {
            *kind = known[i].kind;
            return true;
        }
    return false;
}

static int name_of(struct tar_plain *tar, const struct tar_header *header,
        const struct pax *pax, struct carrel_error *err)
{
    char joined[sizeof(header->prefix) + sizeof(header->name) + 2];

    (void)snprintf(joined, sizeof(joined), "%.*s%s%.*s", (int)sizeof(header->prefix),
            header->prefix, header->prefix[0] ? "/" : "", (int)sizeof(header->name),
            header->name);
    return tar_clean_path(pax->path ? pax->path : joined, tar->max_depth, tar->path, err);
}

static int target_of(struct tar_plain *tar, const struct tar_header *header,
        const struct pax *pax, enum tar_kind kind, struct carrel_error *err)
{
    char text[TAR_PATH_MAX + 1];

    int n = pax->target ? snprintf(text, sizeof(text), "%s", pax->target)
                        : snprintf(text, sizeof(text), "%.*s", (int)sizeof(header->target),
                                  header->target);
    if (n <= 0 || (size_t)n >= sizeof(text))
        return bad(err, "a link has no target that can be");
    if (kind == TAR_HARDLINK)
        return tar_clean_path(text, tar->max_depth, tar->target, err);
    memcpy(tar->target, text, (size_t)n + 1);
    return 0;
}

/* Seconds before 1970 have a sign. */
static bool read_seconds(
        const struct tar_header *header, const struct pax *pax, struct timespec *out)
{
    const bool is_negative = pax->mtime && pax->mtime[0] == '-';
    uint64_t value;

    *out = (struct timespec){ 0 };
    if (pax->mtime ? !read_decimal(pax->mtime + is_negative, &value) || value > INT64_MAX
                   : !read_octal(header->mtime, sizeof(header->mtime), &value))
        return false;
    out->tv_sec = is_negative ? -(time_t)value : (time_t)value;
    return true;
}

static int read_entry(struct tar_plain *tar, const struct tar_header *header,
        const struct pax *pax, struct tar_entry *out, struct carrel_error *err)
{
    struct tar_entry entry = { 0 };
    uint64_t mode;

    if (!kind_of(header->type, &entry.kind))
        return bad(err, "it has an entry of an unknown type");
    if (!read_octal(header->mode, sizeof(header->mode), &mode) || mode & ~(uint64_t)01777)
        return bad(err, "permissions are damaged");
    if (pax->size ? !read_decimal(pax->size, &entry.bytes) || entry.bytes > INT64_MAX
                  : !read_octal(header->size, sizeof(header->size), &entry.bytes))
        return bad(err, "a size is damaged");
    if (entry.kind != TAR_FILE && entry.bytes > 0)
        return bad(err, "something that is no file has data");
    if (!read_seconds(header, pax, &entry.mtime))
        return bad(err, "a time is damaged");
    entry.mode = (mode_t)mode;
    int r = name_of(tar, header, pax, err);
    if (r == 0 && (entry.kind == TAR_SYMLINK || entry.kind == TAR_HARDLINK ||
                          entry.kind == TAR_FAILED)) {
        r = target_of(tar, header, pax, entry.kind, err);
        entry.target = tar->target;
    }
    if (r < 0)
        return r;
    entry.path = tar->path;
    tar->left = entry.bytes;
    tar->pad = padding(entry.bytes);
    *out = entry;
    return 1;
}

int tar_plain_next(struct tar_plain *tar, struct tar_entry *out, struct carrel_error *err)
{
    struct tar_header header;
    struct pax pax;

    int r = skip(tar, tar->left, err);
    if (r == 0)
        r = skip(tar, tar->pad, err);
    tar->left = 0;
    tar->pad = 0;
    if (r == 0)
        r = read_header(tar, &header, err);
    if (r <= 0)
        return r;
    pax.path = pax.target = pax.size = pax.mtime = NULL;
    if (header.type == TAR_TYPE_PAX) {
        r = read_pax(tar, &header, &pax, err);
        if (r == 0)
            r = read_header(tar, &header, err);
        if (r <= 0)
            return r < 0 ? r : bad(err, "nothing follows a pax header");
    }
    return read_entry(tar, &header, &pax, out, err);
}

ssize_t tar_plain_read(struct tar_plain *tar, void *data, size_t size, struct carrel_error *err)
{
    size_t want = tar->left < size ? (size_t)tar->left : size;

    int r = read_exactly(tar, data, want, err);
    if (r < 0)
        return r;
    tar->left -= want;
    return (ssize_t)want;
}
