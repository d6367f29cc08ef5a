/*
 * payload.h - argv, environment and working directory of a process, in one block.
 *
 * They do not fit a message (a megabyte of arguments is allowed), and init must not allocate.
 * So the host lays them out in a memory file with room for the pointer arrays, and init maps it
 * and turns offsets into pointers in place.
 */
#pragma once
#include <stdint.h>

struct carrel_error;

struct payload {
    char *text; /* cwd of a start, path of an open */
    char **argv;
    char **env;
    void *map;
    uint64_t map_bytes;
};

/* Host: makes the block. argv and env may be NULL. Returns a descriptor. */
int payload_make(const char *text, const char *const *argv, const char *const *env,
        struct carrel_error *err);

/* init: maps the block of a host that it trusts. Allocates nothing else. -EPROTO when it is
 * malformed. */
int payload_map(int fd, struct payload *out);

/*
 * The same for a block of somebody who may still change it: it is copied before it is looked
 * at. -ENOTSUP: not a memory file; -EPROTO: malformed.
 */
int payload_read(int fd, struct payload *out);
void payload_unmap(struct payload *payload);
