/* sources.h - opens the sources of the caller's mounts on the host. */
#pragma once
#include <stddef.h>
#include <stdint.h>

struct carrel_error;
struct plan;

/* fds[i] is a detached mount for the plan's source i, or -1 if the child opens it itself. */
struct sources {
    int *fds;
    size_t n;
};

/*
 * Checks every source, notes which file it is and makes its path canonical. As root, also
 * creates the mounts: the child, under another id, could not reach them, and files of the
 * source's owner must belong to the program's user inside (an id-mapped mount). `base` is the
 * host id of id 0.
 */
int sources_open(
        struct sources *sources, struct plan *plan, uint32_t base, struct carrel_error *err);
void sources_close(struct sources *sources);
