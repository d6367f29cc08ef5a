/* status.c - one small record, written at once and read without a lock. */
#include "registry/status.h"
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/*
 * The format of the file. The kernel does not promise that a reader sees a write whole; if the
 * sum is wrong, the reader reads again.
 */
struct image {
    char magic[8];
    uint64_t sum; /* of all that follows */
    uint64_t number;
    uint64_t began_ns;
    uint64_t lease_end_ns;
    uint64_t idle_ms;
    uint64_t idle_since_ns;
    uint32_t state;
    int32_t pid;
    uint32_t n_processes;
    uint32_t n_clients;
    char name[REGISTRY_WORD_MAX + 8];
};
_Static_assert(sizeof(struct image) % 8 == 0, "no byte of it is left to chance");

static const char magic[8] = "carrel-1";

#define READ_TRIES 1000
#define DRAFT "status/.new" /* one is enough: made under the lock */

const char *status_path(const char *id, char path[static STATUS_PATH_MAX])
{
    (void)snprintf(path, STATUS_PATH_MAX, "status/%.*s", REGISTRY_WORD_MAX, id);
    return path;
}

/* FNV-1a: detects a torn write, not an attack. */
static uint64_t sum_of(const struct image *image)
{
    const unsigned char *bytes = (const unsigned char *)image;
    uint64_t sum = 0xcbf29ce484222325;

    for (size_t i = offsetof(struct image, number); i < sizeof(*image); i++)
        sum = (sum ^ bytes[i]) * 0x100000001b3;
    return sum;
}

int status_write(int fd, const struct status_facts *facts)
{
    const struct registry_status *status = &facts->status;
    struct image image = {
        .number = facts->number,
        .began_ns = facts->began_ns,
        .lease_end_ns = status->lease_end_ns,
        .idle_ms = status->idle_ms,
        .idle_since_ns = status->idle_since_ns,
        .state = status->state,
        .pid = status->pid,
        .n_processes = status->n_processes,
        .n_clients = status->n_clients,
    };

    memcpy(image.magic, magic, sizeof(magic));
    memcpy(image.name, facts->name, strnlen(facts->name, REGISTRY_WORD_MAX));
    image.sum = sum_of(&image);
    ssize_t n = pwrite(fd, &image, sizeof(image), 0);
    if (n < 0)
        return -errno;
    return n == sizeof(image) ? 0 : -EIO;
}

static int take(const struct image *image, struct status_facts *facts)
{
    if (image->state > REGISTRY_ENDING)
        return -EBADMSG;
    *facts = (struct status_facts){
        .number = image->number,
        .began_ns = image->began_ns,
        .status = {
            .state = (enum registry_state)image->state,
            .pid = image->pid,
            .lease_end_ns = image->lease_end_ns,
            .idle_ms = image->idle_ms,
            .idle_since_ns = image->idle_since_ns,
            .n_processes = image->n_processes,
            .n_clients = image->n_clients,
        },
    };
    memcpy(facts->name, image->name, strnlen(image->name, REGISTRY_WORD_MAX));
    return 0;
}

int status_read(int fd, struct status_facts *facts)
{
    struct image image;

    for (int i = 0; i < READ_TRIES; i++) {
        ssize_t n = pread(fd, &image, sizeof(image), 0);
        if (n < 0)
            return -errno;
        if (n != sizeof(image) || memcmp(image.magic, magic, sizeof(magic)) != 0)
            return -EBADMSG;
        if (image.sum == sum_of(&image))
            return take(&image, facts);
        (void)sched_yield();
    }
    return -EBADMSG;
}

int status_make(int top, const char *id, const struct status_facts *facts)
{
    struct flock all = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
    char path[STATUS_PATH_MAX];

    if (unlinkat(top, DRAFT, 0) < 0 && errno != ENOENT)
        return -errno;
    AUTO(fd_close)
    int fd = openat(top, DRAFT, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0 || fcntl(fd, F_OFD_SETLK, &all) < 0)
        return -errno;
    int r = status_write(fd, facts);
    if (r < 0)
        return r;
    if (renameat(top, DRAFT, top, status_path(id, path)) < 0)
        return -errno;
    return fd_steal(&fd);
}

int status_open(int top, const char *id)
{
    char path[STATUS_PATH_MAX];
    int fd = openat(top, status_path(id, path), O_RDONLY | O_NOFOLLOW | O_CLOEXEC);

    return fd < 0 ? -errno : fd;
}

bool status_is_locked(int fd)
{
    struct flock all = { .l_type = F_RDLCK, .l_whence = SEEK_SET };

    return fcntl(fd, F_OFD_GETLK, &all) == 0 && all.l_type != F_UNLCK;
}
