/* sources.h - the host's side of the caller's mounts. */
#pragma once
#include <stddef.h>
#include <stdint.h>

struct carrel_error;
struct plan;

/* fds[i] is a detached mount for the plan's source i, or -1 where the child opens it itself. */
struct sources {
    int *fds;
    size_t n;
};

/*
 * Checks every source and puts its path into a form without links. As root, also makes the
 * mounts: the child, under another id, could not reach them, and what the source's owner owns
 * must belong to the program's user inside (an id-mapped mount). `base` is the host id behind
 * id 0.
 */
int sources_open(
        struct sources *sources, struct plan *plan, uint32_t base, struct carrel_error *err);
void sources_close(struct sources *sources);
