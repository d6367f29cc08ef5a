/*
 * writable.h - directories of the host that running sandboxes may write to, and those that must
 * hold still while carrel works on them.
 *
 *   <state>/writable/<id>    held by flock: what it is for, the run, and the directories, each
 *                            ended by NUL
 *
 * The directories are named by the kernel's paths of what was opened: another lookup could find
 * something else by now. Both sides first write their note and then look at those of others, so
 * at least one of two that begin together sees the other, and is refused. A file whose lock is
 * free belongs to a process that has ended, and is removed.
 */
#pragma once
#include <stddef.h>

struct carrel_error;

/*
 * A sandbox of `run` may write to these. Returns a descriptor; closing it, or the end of the
 * process, takes the note back. -EBUSY: one of them, or one above or below, must hold still.
 */
int writable_note(const char *run, const char *const *dirs, size_t n, struct carrel_error *err);

/* The opposite: -EBUSY if a sandbox may write to one of them, or to one above or below. */
int writable_forbid(
        const char *run, const char *const *dirs, size_t n, struct carrel_error *err);
