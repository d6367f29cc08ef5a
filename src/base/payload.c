/* payload.c - a block of strings with its own pointer arrays. */
#include "base/payload.h"
#include "base/err.h"
#include "base/fd.h"
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* The block: this header, argc + 1 slots, envc + 1 slots, then the strings one after another.
 */
struct header {
    uint64_t argc;
    uint64_t envc;
};

#define PAYLOAD_MAX (64U << 20) /* more than execve(2) takes */

static uint64_t count(const char *const *list, uint64_t *bytes)
{
    uint64_t n = 0;

    for (; list && list[n]; n++)
        *bytes += strlen(list[n]) + 1;
    return n;
}

static char *put(char *at, const char *text)
{
    size_t len = strlen(text) + 1;

    memcpy(at, text, len);
    return at + len;
}

struct layout {
    struct header header;
    uint64_t table;
    uint64_t size;
};

static struct layout measure(const char *text, const char *const *argv, const char *const *env)
{
    uint64_t bytes = strlen(text) + 1;
    struct layout layout = { .header = { .argc = count(argv, &bytes),
                                     .envc = count(env, &bytes) } };

    layout.table = sizeof(layout.header) +
                   (layout.header.argc + layout.header.envc + 2) * sizeof(uint64_t);
    layout.size = layout.table + bytes;
    return layout;
}

/* `block` is all zeroes. */
static void fill(char *block, const struct layout *layout, const char *text,
        const char *const *argv, const char *const *env)
{
    memcpy(block, &layout->header, sizeof(layout->header));
    char *at = put(block + layout->table, text);
    for (uint64_t i = 0; i < layout->header.argc; i++)
        at = put(at, argv[i]);
    for (uint64_t i = 0; i < layout->header.envc; i++)
        at = put(at, env[i]);
}

int payload_make(const char *text, const char *const *argv, const char *const *env,
        struct carrel_error *err)
{
    const struct layout layout = measure(text, argv, env);

    if (layout.size > PAYLOAD_MAX)
        return err_set(err, -E2BIG, "arguments and environment are larger than 64M");
    AUTO(free) char *block = calloc(1, layout.size);
    if (!block)
        return err_set_errno(err, -ENOMEM, "arguments and environment");
    fill(block, &layout, text, argv, env);

    AUTO(fd_close) int fd = memfd_create("carrel-payload", MFD_CLOEXEC);
    if (fd < 0)
        return err_set_errno(err, -errno, "memfd_create for arguments");
    int r = fd_write_all(fd, block, layout.size);
    if (r < 0)
        return err_set_errno(err, r, "write arguments");
    return fd_steal(&fd);
}

int payload_make_near(const char *text, const char *const *argv, const char *const *env,
        struct payload_near *near, int *fd, struct carrel_error *err)
{
    const struct layout layout = measure(text, argv, env);

    *fd = -1;
    *near = (struct payload_near){ 0 };
    if (layout.size <= sizeof(near->bytes)) {
        near->len = layout.size;
        fill(near->bytes, &layout, text, argv, env);
        return 0;
    }
    int made = payload_make(text, argv, env, err);
    if (made < 0)
        return made;
    *fd = made;
    return 0;
}

/* Fills `slots` with pointers to the next `n` strings and a final NULL. NULL: past the end. */
static char *point(char **slots, uint64_t n, char *at, char *end)
{
    for (uint64_t i = 0; i < n; i++) {
        char *nul = at < end ? memchr(at, '\0', (size_t)(end - at)) : NULL;
        if (!nul)
            return NULL;
        slots[i] = at;
        at = nul + 1;
    }
    slots[n] = NULL;
    return at;
}

/* Validates the block and fills its pointer arrays, in place. */
static int lay_out(char *block, uint64_t size, struct payload *out)
{
    struct header header;

    memcpy(&header, block, sizeof(header));
    struct payload payload = { 0 };
    uint64_t slots = (size - sizeof(header)) / sizeof(uint64_t);
    char *end = block + size;
    char *nul = NULL;
    char *at = NULL;
    if (header.argc < slots && header.envc < slots && header.argc + header.envc + 2 <= slots) {
        payload.argv = (char **)(void *)(block + sizeof(header));
        payload.env = payload.argv + header.argc + 1;
        payload.text = (char *)(payload.env + header.envc + 1);
        nul = payload.text < end ? memchr(payload.text, '\0', (size_t)(end - payload.text))
                                 : NULL;
    }
    if (nul)
        at = point(payload.argv, header.argc, nul + 1, end);
    if (at)
        at = point(payload.env, header.envc, at, end);
    if (!at)
        return -EPROTO;
    *out = payload;
    return 0;
}

/* On failure it is unmapped. */
static int lay_out_map(char *map, uint64_t size, struct payload *out)
{
    int r = lay_out(map, size, out);

    if (r < 0) {
        (void)munmap(map, size);
        return r;
    }
    out->map = map;
    out->map_bytes = size;
    return 0;
}

int payload_unpack(struct payload_near *near, struct payload *out)
{
    if (near->len < sizeof(struct header) || near->len > sizeof(near->bytes))
        return -EPROTO;
    return lay_out(near->bytes, near->len, out);
}

/* The size of the block; an error if it cannot be one. */
static int64_t size_of(int fd)
{
    struct stat st;

    if (fstat(fd, &st) < 0)
        return -errno;
    if (st.st_size < (off_t)sizeof(struct header) || st.st_size > (off_t)PAYLOAD_MAX)
        return -EPROTO;
    return st.st_size;
}

int payload_map(int fd, struct payload *out)
{
    int64_t size = size_of(fd);

    if (size < 0)
        return (int)size;
    char *map = mmap(NULL, (size_t)size, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
    return map == MAP_FAILED ? -errno : lay_out_map(map, (uint64_t)size, out);
}

static int read_at_once(int fd, char *to, size_t size)
{
    for (size_t done = 0; done < size;) {
        ssize_t n = pread(fd, to + done, size - done, (off_t)done);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n < 0 ? -errno : -EPROTO; /* truncated meanwhile */
        done += (size_t)n;
    }
    return 0;
}

/*
 * The block is read, not mapped: the sender could change a mapping after our checks, or
 * truncate the file and so raise SIGBUS here. Only memory files have seals, so F_GET_SEALS
 * tells that the read cannot block, as it may on a pipe or a FUSE file.
 */
int payload_read(int fd, struct payload *out)
{
    if (fcntl(fd, F_GET_SEALS) < 0)
        return -ENOTSUP;
    int64_t size = size_of(fd);
    if (size < 0)
        return (int)size;
    char *map = mmap(
            NULL, (size_t)size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (map == MAP_FAILED)
        return -errno;
    int r = read_at_once(fd, map, (size_t)size);
    if (r < 0) {
        (void)munmap(map, (size_t)size);
        return r;
    }
    return lay_out_map(map, (uint64_t)size, out);
}

void payload_unmap(struct payload *payload)
{
    if (payload->map)
        (void)munmap(payload->map, payload->map_bytes);
    payload->map = NULL;
}
