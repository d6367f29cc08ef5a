/*
 * nameless.h - files that have lost their last name and are still held by a sandbox's
 * processes.
 *
 * They take space on the host and no walk of directories finds them. A process holds a file by
 * a descriptor, a mapping, as its program or its working directory; each thread may have
 * descriptors of its own. All of that is to be seen in /proc.
 *
 * The program may know that we look, and how. So whatever cannot be seen is said to be so, and
 * the caller decides: descriptors that lie unread in a unix socket, processes that forbid us to
 * look (an ordinary user may not look into one that is not dumpable), files that are mapped and
 * not open (only root may ask for their size), and more of anything than we take time for.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct sandbox;

#define NAMELESS_MOUNTS 8

/* The mounts whose files count. */
struct nameless_mounts {
    struct {
        uint64_t id; /* as statx() and mountinfo have it: unique on the host */
        dev_t dev;   /* as a line of maps has it */
    } items[NAMELESS_MOUNTS];
    size_t n;
};

/* Adds the mount that the host's directory `dir` is on: there files of it are mapped, too. */
int nameless_add_dir(struct nameless_mounts *mounts, int dir);

/*
 * Adds the mounts at `targets` (NULL-terminated) as the process sees them, from the text of its
 * mountinfo. One that is not there is passed over, and so is FUSE: who serves it keeps what has
 * no name, under one that we can find. -E2BIG: no room.
 */
int nameless_add_mounts(
        struct nameless_mounts *mounts, const char *mountinfo, const char *const *targets);

struct nameless {
    uint64_t bytes; /* each file once, as the host pays for it */
    uint64_t inodes;
    bool is_doubtful; /* there may be more */
    bool is_cut;      /* there is more, and we did not take the time for it */
};

/* Looks through all processes of the sandbox; a negative errno when it could not even begin. */
int nameless_count(
        struct sandbox *box, const char *const *targets, int dir, struct nameless *out);
