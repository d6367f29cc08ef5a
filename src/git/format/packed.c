/* packed.c - binary search in packed-refs. */
#include "git/format/packed.h"
#include "base/err.h"
#include "base/fd.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define PACKED_MAX ((off_t)1 << 30)

void packed_close(struct packed packed)
{
    if (packed.map)
        (void)munmap(packed.map, packed.map_len);
    free(packed.sorted);
}

static size_t line_end(const struct packed *packed, size_t offset)
{
    const char *end = memchr(packed->data + offset, '\n', packed->len - offset);

    return end ? (size_t)(end - packed->data) : packed->len;
}

bool packed_read(const struct packed *packed, size_t offset, struct packed_ref *ref)
{
    if (offset >= packed->len)
        return false;

    const char *line = packed->data + offset;
    size_t end = line_end(packed, offset);
    const char *space = memchr(line, ' ', end - offset);
    if (!space)
        return false;

    ref->oid = line;
    ref->oid_len = (size_t)(space - line);
    ref->name = space + 1;
    ref->name_len = end - offset - ref->oid_len - 1;
    ref->next = end < packed->len ? end + 1 : end;
    if (ref->next < packed->len && packed->data[ref->next] == '^') {
        end = line_end(packed, ref->next);
        ref->next = end < packed->len ? end + 1 : end;
    }
    return true;
}

static int compare(const char *a, size_t a_len, const char *b, size_t b_len)
{
    int order = memcmp(a, b, a_len < b_len ? a_len : b_len);

    if (order != 0)
        return order;
    return a_len < b_len ? -1 : a_len > b_len;
}

/* The start of the record that the byte at `offset` belongs to, not before `low`. */
static size_t record_start(const struct packed *packed, size_t low, size_t offset)
{
    for (;;) {
        while (offset > low && packed->data[offset - 1] != '\n')
            offset--;
        if (offset == low || packed->data[offset] != '^')
            return offset;
        offset--;
    }
}

size_t packed_find(const struct packed *packed, const char *name, size_t len)
{
    size_t low = 0, high = packed->len; /* both are starts of records, or the end */

    while (low < high) {
        size_t middle = record_start(packed, low, low + (high - low) / 2);
        struct packed_ref ref;

        if (!packed_read(packed, middle, &ref))
            return packed->len;
        if (compare(ref.name, ref.name_len, name, len) < 0)
            low = ref.next;
        else
            high = middle;
    }
    return low;
}

static int by_name(const void *a, const void *b)
{
    const struct packed_ref *x = a, *y = b;

    return compare(x->name, x->name_len, y->name, y->name_len);
}

/* Old versions of git did not sort the file. */
static int sort(struct packed *packed)
{
    size_t n = 0, len = 0, start = 0;
    struct packed_ref ref;

    for (size_t at = 0; packed_read(packed, at, &ref); at = ref.next)
        n++;
    AUTO(free) struct packed_ref *refs = calloc(n + 1, sizeof(*refs));
    packed->sorted = malloc(packed->len + 1);
    if (!refs || !packed->sorted)
        return -ENOMEM;
    for (size_t i = 0; i < n; i++, start = refs[i - 1].next)
        (void)packed_read(packed, start, &refs[i]);
    qsort(refs, n, sizeof(*refs), by_name);
    for (size_t i = 0; i < n; i++) {
        size_t bytes = refs[i].next - (size_t)(refs[i].oid - packed->data);
        memcpy(packed->sorted + len, refs[i].oid, bytes);
        len += bytes;
    }
    packed->data = packed->sorted;
    packed->len = len;
    return 0;
}

/* "sorted" and "fully-peeled" are promises of the writer of the file. */
int packed_parse(const char *text, size_t len, struct packed *out)
{
    static const char mark[] = "# pack-refs with:";
    struct packed packed = { .data = text, .len = len };
    bool is_sorted = false;

    if (len > 0 && text[len - 1] != '\n')
        return -EBADMSG;
    while (packed.len > 0 && packed.data[0] == '#') {
        size_t end = line_end(&packed, 0);
        char line[256];

        (void)snprintf(line, sizeof(line), "%.*s ", (int)(end < 200 ? end : 200), packed.data);
        if (strncmp(line, mark, strlen(mark)) == 0) {
            is_sorted = strstr(line, " sorted ");
            packed.is_fully_peeled = strstr(line, " fully-peeled ");
        }
        end += end < packed.len;
        packed.data += end;
        packed.len -= end;
    }
    int r = is_sorted ? 0 : sort(&packed);
    if (r < 0)
        packed_close(packed);
    else
        *out = packed;
    return r;
}

int packed_open(const char *dir, struct packed *out, struct carrel_error *err)
{
    char path[PATH_MAX + 16];
    struct stat st;
    int r;

    (void)snprintf(path, sizeof(path), "%s/packed-refs", dir);
    AUTO(fd_close)
    int fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (fd < 0 && errno == ENOENT) {
        *out = (struct packed){ .data = "" };
        return 0;
    }
    if (fd < 0 || fstat(fd, &st) < 0)
        return err_set_errno(err, -errno, "open '%s'", path);
    if (!S_ISREG(st.st_mode) || st.st_size > PACKED_MAX)
        return err_set(err, -EFBIG, "'%s' is not a file of at most 1 GiB", path);
    if (st.st_size == 0) {
        *out = (struct packed){ .data = "" };
        return 0;
    }

    size_t len = (size_t)st.st_size;
    void *map = mmap(NULL, len, PROT_READ, MAP_PRIVATE, fd, 0);
    if (map == MAP_FAILED)
        return err_set_errno(err, -errno, "read '%s'", path);
    r = packed_parse(map, len, out);
    if (r < 0) {
        (void)munmap(map, len);
        if (r == -EBADMSG)
            return err_set(err, r, "'%s' is truncated; try: git fsck", path);
        return err_set_errno(err, r, "read '%s'", path);
    }
    out->map = map;
    out->map_len = len;
    return 0;
}
