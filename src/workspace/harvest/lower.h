/*
 * lower.h - looks up paths in the pristine layers of a workspace's base.
 *
 * The layers are stacked like those of an overlay: a whiteout hides what is below it, and an
 * opaque directory hides the one below it. Only the requested entries are read.
 */
#pragma once
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

struct carrel_error;

#define LOWER_MAX_LAYERS 64

struct lower {
    int layers[LOWER_MAX_LAYERS]; /* topmost first */
    unsigned n;
};

enum lower_kind { LOWER_NONE, LOWER_FILE /* or a link */, LOWER_DIR };

struct lower_entry {
    enum lower_kind kind;
    uint64_t layers; /* LOWER_DIR: bit i for each layer whose directory is part of it */
};

int lower_open(struct lower *lower, const char *const *paths, struct carrel_error *err);
void lower_close(struct lower *lower);

/* The root of the base. */
struct lower_entry lower_root(const struct lower *lower);

/* The entry at `path`, whose parent directory is `parent`: start at the root. */
int lower_find(const struct lower *lower, const struct lower_entry *parent, const char *path,
        struct lower_entry *out, struct carrel_error *err);

/*
 * The entry at `path`, found from the root downward with lower_find(): links are not followed,
 * and hidden entries do not exist. Returns an enum lower_kind; LOWER_NONE is 0.
 */
int lower_has(const struct lower *lower, const char *path, struct carrel_error *err);

/*
 * Opens the regular file at `path`, whose parent directory is `parent`. -ENOENT if there is
 * none or it is something else.
 */
int lower_open_file(const struct lower *lower, const struct lower_entry *parent,
        const char *path, struct carrel_error *err);

/* A character device 0/0: an overlay's mark of a removed entry. */
static inline int lower_is_whiteout(const struct stat *st)
{
    return S_ISCHR(st->st_mode) && st->st_rdev == 0;
}

/* --- reads what an overlay file system wrote into the attributes of a file --- */

enum overlay_mark {
    OVERLAY_PLAIN,
    OVERLAY_OPAQUE, /* a directory that hides what is below it */
};

/*
 * Reads the marks of the open file or directory `fd`, under "trusted.overlay." and
 * "user.overlay.". Those that only help the kernel are ignored. -EUCLEAN: there is one that
 * changes what the file means and that we never request (redirect, metacopy, whiteout as an
 * attribute), or an unknown one.
 */
int overlay_marks(int fd, enum overlay_mark *mark);
