/* tar_apart.c - asks the process that parses, and checks its answers. */
#include "archive/tar_apart.h"
#include "archive/child.h"
#include "archive/entries.h"
#include "base/err.h"
#include "base/fd.h"
#include <errno.h>
#include <stdbool.h>
#include <unistd.h>

struct tar_apart {
    struct child child;
    uint64_t left; /* of the current file */
    bool has_ended;
    struct tar_limits limits;
    char path[TAR_PATH_MAX + 1];
    char target[TAR_PATH_MAX + 1];
};

int tar_apart_open(int fd, const struct tar_limits *limits, struct tar_apart **out,
        struct carrel_error *err)
{
    AUTO(tar_apart_free) struct tar_apart *tar = calloc(1, sizeof(*tar));

    if (!tar)
        return err_set_errno(err, -ENOMEM, "read the archive");
    tar->child = (struct child)CHILD_INIT;
    tar->limits = TAR_LIMITS;
    if (limits && limits->depth)
        tar->limits.depth = limits->depth;
    int r = child_start(JOB_ENTRIES, fd, limits, &tar->child, err);
    if (r < 0)
        return r;
    *out = ptr_steal(&tar);
    return 0;
}

/* The child's error, which explains why the stream ended early, if the child is still alive. */
static int child_error(struct tar_apart *tar, struct carrel_error *err)
{
    int r = child_ask(&tar->child, NULL, err);

    return r < 0 ? r : err_set(err, -EIO, "the process that reads the archive stopped early");
}

static int receive(struct tar_apart *tar, void *data, size_t len, struct carrel_error *err)
{
    ssize_t n = fd_read_all(tar->child.stream, data, len);

    return n < 0              ? err_set_errno(err, (int)n, "read the archive")
           : (size_t)n == len ? 0
                              : child_error(tar, err);
}

static int receive_text(struct tar_apart *tar, char text[static TAR_PATH_MAX + 1], size_t len,
        struct carrel_error *err)
{
    if (len > TAR_PATH_MAX)
        return err_set(err, -EPROTO, "the process that reads the archive sent invalid data");
    int r = receive(tar, text, len, err);
    text[r < 0 ? 0 : len] = '\0';
    return r;
}

/* The child has checked all this, but the archive may have taken it over. */
static int check_entry(
        struct tar_apart *tar, const struct entry_record *record, struct carrel_error *err)
{
    char clean[TAR_PATH_MAX + 1];
    bool is_link = record->kind == TAR_SYMLINK || record->kind == TAR_HARDLINK;

    int r = tar_clean_path(tar->path, tar->limits.depth, clean, err);
    if (r == 0 && record->kind == TAR_HARDLINK)
        r = tar_clean_path(tar->target, tar->limits.depth, clean, err);
    if (r == 0 && (record->kind > TAR_OTHER || record->nanoseconds >= 1000000000 ||
                          strlen(tar->path) != record->path_len ||
                          strlen(tar->target) != record->target_len ||
                          is_link != (record->target_len > 0)))
        r = err_set(err, -EPROTO, "the process that reads the archive sent invalid data");
    return r;
}

static int skip_rest(struct tar_apart *tar, struct carrel_error *err)
{
    char space[4096];

    while (tar->left > 0) {
        ssize_t n = tar_apart_read(tar, space, sizeof(space), err);
        if (n < 0)
            return (int)n;
    }
    return 0;
}

int tar_apart_next(struct tar_apart *tar, struct tar_entry *out, struct carrel_error *err)
{
    struct entry_record record = { .kind = ENTRY_END };

    if (tar->has_ended)
        return 0;
    int r = skip_rest(tar, err);
    if (r == 0)
        r = receive(tar, &record, sizeof(record), err);
    if (r < 0)
        return r;
    if (record.kind == ENTRY_END) {
        tar->has_ended = true;
        return child_ask(&tar->child, NULL, err);
    }
    r = receive_text(tar, tar->path, record.path_len, err);
    if (r == 0)
        r = receive_text(tar, tar->target, record.target_len, err);
    if (r == 0)
        r = check_entry(tar, &record, err);
    if (r < 0)
        return r;
    tar->left = record.kind == TAR_FILE ? record.bytes : 0;
    *out = (struct tar_entry){
        .kind = (enum tar_kind)record.kind,
        .path = tar->path,
        .target = record.target_len > 0 ? tar->target : NULL,
        .bytes = tar->left,
        .mode = record.mode & 01777,
        .mtime = { .tv_sec = record.seconds, .tv_nsec = record.nanoseconds },
    };
    return 1;
}

ssize_t tar_apart_read(struct tar_apart *tar, void *data, size_t size, struct carrel_error *err)
{
    size_t want = size < tar->left ? size : (size_t)tar->left;
    ssize_t n;

    if (want == 0)
        return 0;
    do {
        n = read(tar->child.stream, data, want);
    } while (n < 0 && errno == EINTR);
    if (n < 0)
        return err_set_errno(err, -errno, "read the archive");
    if (n == 0)
        return child_error(tar, err);
    tar->left -= (uint64_t)n;
    return n;
}

void tar_apart_free(struct tar_apart *tar)
{
    if (!tar)
        return;
    child_finish(tar->child);
    free(tar);
}
