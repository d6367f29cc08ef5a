/*
 * payload.h - argv, environment and working directory of a process, in one block.
 *
 * Most fit a message, but a megabyte of arguments is allowed, and init must not allocate. So
 * the host lays them out with room for the pointer arrays, in the message if they are short and
 * else in a memory file, and init turns that into pointers in place.
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

/* Part of a message. */
struct payload_near {
    uint64_t len; /* 0: it is in a memory file */
    _Alignas(uint64_t) char bytes[504];
};

/* Host: makes the block in a memory file. argv and env may be NULL. Returns a descriptor. */
int payload_make(const char *text, const char *const *argv, const char *const *env,
        struct carrel_error *err);

/* The same in `near`, where it fits; then *fd becomes -1. */
int payload_make_near(const char *text, const char *const *argv, const char *const *env,
        struct payload_near *near, int *fd, struct carrel_error *err);

/* What came in a message, which it then points to. -EPROTO: malformed. */
int payload_unpack(struct payload_near *near, struct payload *out);

/* init: maps the block of a host that it trusts. Allocates nothing else. -EPROTO when it is
 * malformed. */
int payload_map(int fd, struct payload *out);

/*
 * The same for a block of somebody who may still change it: it is copied before it is looked
 * at. -ENOTSUP: not a memory file; -EPROTO: malformed.
 */
int payload_read(int fd, struct payload *out);
void payload_unmap(struct payload *payload);
