/*
 * index.c - reads index files and changes their owner. Every number is checked before its use.
 */
#include "git/format/index.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/sha1.h"
#include "base/sha256.h"
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_BYTES (UINT32_C(1) << 31) /* some twenty million files */

/* Offsets in an entry. */
enum { AT_MTIME = 8, AT_MODE = 24, AT_UID = 28, AT_GID = 32, AT_SIZE = 36, AT_OID = 40 };

enum { FLAG_VALID = 0x8000, FLAG_EXTENDED = 0x4000, FLAG_STAGE = 0x3000, NAME_MASK = 0x0fff };

void index_free(struct index *index)
{
    if (!index)
        return;
    free(index->data);
    free(index->entries);
    free(index);
}

static uint32_t load32(const unsigned char *at)
{
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

static void store32(unsigned char *at, uint32_t value)
{
    at[0] = (unsigned char)(value >> 24);
    at[1] = (unsigned char)(value >> 16);
    at[2] = (unsigned char)(value >> 8);
    at[3] = (unsigned char)value;
}

static size_t oid_bytes(const struct index *index)
{
    return index->is_sha256 ? SHA256_BYTES : SHA1_BYTES;
}

/* The checksum of everything before the trailer. */
static void checksum(const struct index *index, unsigned char digest[static SHA256_BYTES])
{
    size_t len = index->len - oid_bytes(index);

    if (index->is_sha256) {
        (void)crypto_hash_sha256(digest, index->data, len);
    } else {
        struct sha1 sha;
        sha1_init(&sha);
        sha1_add(&sha, index->data, len);
        sha1_finish(&sha, digest);
    }
}

static int load_file(int fd, struct index *index, struct carrel_error *err)
{
    struct stat st;

    if (fstat(fd, &st) < 0)
        return err_set_errno(err, -errno, "stat an index");
    if (st.st_size < (off_t)(12 + oid_bytes(index)) || st.st_size >= (off_t)MAX_BYTES)
        return err_set(err, -EBADMSG, "an index of %jd bytes", (intmax_t)st.st_size);
    index->len = (size_t)st.st_size;
    index->data = malloc(index->len);
    if (!index->data)
        return err_set_errno(err, -ENOMEM, "read an index");

    size_t got = 0;
    while (got < index->len) {
        ssize_t n = pread(fd, index->data + got, index->len - got, (off_t)got);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return err_set_errno(err, -errno, "read an index");
        if (n == 0)
            return err_set(err, -EBADMSG, "an index that was truncated meanwhile");
        got += (size_t)n;
    }
    return 0;
}

/*
 * Parses the entry at `at`; the entries must end before `end`. Returns the start of the next
 * one; 0 if it is malformed or not part of a pristine tree.
 */
static size_t parse_entry(struct index *index, size_t at, size_t end, struct index_entry *out)
{
    const unsigned char *data = index->data + at;
    size_t name_at = AT_OID + oid_bytes(index) + 2;

    if (end - at < name_at + 1)
        return 0;
    unsigned flags = (unsigned)data[name_at - 2] << 8 | data[name_at - 1];
    if (flags & (FLAG_VALID | FLAG_STAGE))
        return 0;
    if (flags & FLAG_EXTENDED) {
        /* Two more bytes, in version 3; no flag in them is valid in a pristine tree. */
        if (end - at < name_at + 3 || data[name_at] != 0 || data[name_at + 1] != 0)
            return 0;
        name_at += 2;
    }

    size_t len = strnlen((const char *)data + name_at, end - at - name_at);
    size_t total = (name_at + len + 8) & ~(size_t)7; /* one to eight NULs */
    if (len == 0 || total > end - at)
        return 0;
    if ((flags & NAME_MASK) != (len < NAME_MASK ? len : NAME_MASK))
        return 0;
    for (size_t i = name_at + len; i < total; i++)
        if (data[i] != 0)
            return 0;
    *out = (struct index_entry){
        .path = (const char *)data + name_at,
        .path_len = len,
        .mode = load32(data + AT_MODE),
        .mtime_s = load32(data + AT_MTIME),
        .size = load32(data + AT_SIZE),
        .at = (uint32_t)at,
    };
    return at + total;
}

/*
 * An extension is a name, a length, and as many bytes. Refuses split and sparse indexes, which
 * refer to data outside of this file.
 */
static bool extensions_are_fine(const struct index *index, size_t at, size_t end)
{
    static const char known[][5] = { "TREE", "REUC", "UNTR", "FSMN", "EOIE", "IEOT" };

    while (at < end) {
        bool is_known = false;
        if (end - at < 8)
            return false;
        for (size_t i = 0; i < ARRAY_LEN(known); i++)
            is_known |= memcmp(index->data + at, known[i], 4) == 0;
        uint32_t len = load32(index->data + at + 4);
        if (!is_known || len > end - at - 8)
            return false;
        at += 8 + (size_t)len;
    }
    return true;
}

static int parse(struct index *index, struct carrel_error *err)
{
    unsigned char digest[SHA256_BYTES];
    size_t end = index->len - oid_bytes(index);
    size_t at = 12;

    assert(index->data);
    checksum(index, digest);
    if (memcmp(digest, index->data + end, oid_bytes(index)) != 0)
        return err_set(err, -EBADMSG, "an index with a wrong checksum");
    uint32_t version = load32(index->data + 4);
    if (memcmp(index->data, "DIRC", 4) != 0 || version < 2 || version > 3)
        return err_set(err, -EBADMSG, "an index of an unknown kind (version %u)", version);

    size_t n = load32(index->data + 8);
    if (n > index->len / (AT_OID + oid_bytes(index) + 4))
        return err_set(err, -EBADMSG, "an index that claims more entries than it has room for");
    index->entries = calloc(n ? n : 1, sizeof(index->entries[0]));
    if (!index->entries)
        return err_set_errno(err, -ENOMEM, "read an index");
    for (; index->n < n; index->n++) {
        struct index_entry *entry = &index->entries[index->n];
        at = parse_entry(index, at, end, entry);
        if (at == 0)
            return err_set(err, -EBADMSG, "an index with an unexpected entry %zu", index->n);
        if (index->n > 0 && strcmp(entry[-1].path, entry->path) >= 0)
            return err_set(err, -EBADMSG, "an index that is not sorted");
    }
    if (!extensions_are_fine(index, at, end))
        return err_set(err, -EBADMSG, "an index with an extension that carrel does not know");
    return 0;
}

int index_read(int fd, bool is_sha256, struct index **out, struct carrel_error *err)
{
    AUTO(index_free) struct index *index = calloc(1, sizeof(*index));
    if (!index)
        return err_set_errno(err, -ENOMEM, "read an index");
    index->is_sha256 = is_sha256;

    int r = load_file(fd, index, err);
    if (r == 0)
        r = parse(index, err);
    if (r < 0)
        return r;
    *out = ptr_steal(&index);
    return 0;
}

void index_set_owner(struct index *index, uid_t uid, gid_t gid)
{
    for (size_t i = 0; i < index->n; i++) {
        unsigned char *entry = index->data + index->entries[i].at;
        store32(entry + AT_UID, uid);
        store32(entry + AT_GID, gid);
    }
}

int index_write(struct index *index, int dir, const char *name, struct carrel_error *err)
{
    char tmp[PATH_MAX];
    unsigned char digest[SHA256_BYTES];

    checksum(index, digest);
    memcpy(index->data + index->len - oid_bytes(index), digest, oid_bytes(index));

    if (snprintf(tmp, sizeof(tmp), "%s.new", name) >= (int)sizeof(tmp))
        return err_set_errno(err, -ENAMETOOLONG, "write an index");
    AUTO(fd_close)
    int fd = openat(dir, tmp, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0644);
    if (fd < 0)
        return err_set_errno(err, -errno, "write an index");
    int r = fd_write_all(fd, index->data, index->len);
    if (r == 0 && renameat(dir, tmp, dir, name) < 0)
        r = -errno;
    if (r < 0) {
        (void)unlinkat(dir, tmp, 0); /* half-written; the error below is what matters */
        return err_set_errno(err, r, "write an index");
    }
    return 0;
}

/* The first entry that is not before `path`. */
static size_t lower_bound(const struct index *index, const char *path, size_t len)
{
    size_t low = 0;
    size_t high = index->n;

    while (low < high) {
        size_t mid = low + (high - low) / 2;
        const struct index_entry *entry = &index->entries[mid];
        size_t common = entry->path_len < len ? entry->path_len : len;
        int order = memcmp(entry->path, path, common);
        if (order < 0 || (order == 0 && entry->path_len < len))
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

const struct index_entry *index_find(const struct index *index, const char *path)
{
    size_t at = lower_bound(index, path, strlen(path));

    if (at == index->n || strcmp(index->entries[at].path, path) != 0)
        return NULL;
    return &index->entries[at];
}

bool index_has_dir(const struct index *index, const char *path, size_t len)
{
    /* "a" may be followed by "a-b" before "a/c": so look for what begins with "a/". */
    char text[4097];

    if (len + 1 >= sizeof(text))
        return false;
    memcpy(text, path, len);
    text[len] = '/';
    size_t at = lower_bound(index, text, len + 1);
    return at < index->n && index->entries[at].path_len > len + 1 &&
           memcmp(index->entries[at].path, text, len + 1) == 0;
}
