/*
 * writable.h - directories of the host that running sandboxes may write to, and those that must
 * hold still while carrel works on them.
 *
 *   <shared run directory>/writable/<id>    held by flock: what it is for, the run, and the
 *                                           places: what each one is and where it was
 *
 * All processes of a user use the same directory, whatever their environment (rundir.h). Root
 * also looks at the notes of other users, as far as they are about files of these users; a user
 * does not see those of root.
 *
 * Both sides first write their note and then look at those of others, so at least one of two
 * that begin together sees the other, and is refused. A file whose lock is free belongs to a
 * process that has ended, and is removed.
 *
 * Places are compared by what they are and by their names: one of both may have been renamed
 * since. One that is no longer where it was might be anywhere, so it is in the way. What lies
 * elsewhere only because of a bind mount on the host is not recognised.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>

struct carrel_error;

struct writable_place {
    const char *path;
    int fd;        /* it, open; -1: the path is looked up */
    bool is_still; /* it lies in the last place that is not, and cannot be written to there */
};

/*
 * A sandbox of `run` may write to these. Returns a descriptor; closing it, or the end of the
 * process, takes the note back. -EBUSY: one of them, or one above or below, must hold still.
 */
int writable_note(const char *run, const struct writable_place *places, size_t n,
        struct carrel_error *err);

/* The opposite: -EBUSY if a sandbox may write to one of them, or to one above or below. */
int writable_forbid(
        const char *run, const char *const *dirs, size_t n, struct carrel_error *err);
