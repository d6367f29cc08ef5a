/*
 * index.h - git's index file (gitformat-index(5), versions 2 and 3): read whole, given another
 * owner, written with a new checksum.
 *
 * git compares the owner of every file with the index. The run may see its files under another
 * id than on disk; with a wrong owner in the index the first `git status` would read the whole
 * tree again.
 */
#pragma once
#include "base/auto.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct carrel_error;

struct index_entry {
    const char *path; /* NUL-terminated */
    size_t path_len;
    uint32_t mode;    /* as git records it: 0100644 0100755 0120000 0160000 */
    uint32_t mtime_s; /* of the file when it was recorded */
    uint32_t size;
    uint32_t at; /* its offset in the file */
};

struct index {
    unsigned char *data;
    size_t len;
    bool is_sha256;
    struct index_entry *entries; /* sorted by path bytes */
    size_t n;
};
void index_free(struct index *index);
DEFINE_AUTO(struct index *, index_free)

/*
 * Reads an index from `fd`. It may come from a sandbox, so everything is checked: checksum,
 * sizes, order. Only a pristine tree is accepted: no conflicts, no skip-worktree or
 * assume-unchanged entries, no extension that refers to other files. -EBADMSG for anything
 * else.
 */
int index_read(int fd, bool is_sha256, struct index **out, struct carrel_error *err);

/* Sets this owner in every entry. */
void index_set_owner(struct index *index, uid_t uid, gid_t gid);

/* Replaces the file at `name`, below `dir`. */
int index_write(struct index *index, int dir, const char *name, struct carrel_error *err);

/* The entry with this path, or NULL. */
const struct index_entry *index_find(const struct index *index, const char *path);

/* Whether there are entries below the directory `path` (`len` bytes, no trailing slash). */
bool index_has_dir(const struct index *index, const char *path, size_t len);
