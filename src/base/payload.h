/*
 * payload.h - argv, environment and working directory of a process, in one block.
 *
 * Most fit into a message, but a megabyte of arguments is allowed, and init must not allocate.
 * So the host lays the strings out with room for the pointer arrays, in the message if they
 * fit, else in a memory file, and init turns them into pointers in place.
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

/* The same in `near` if it fits; then *fd becomes -1. */
int payload_make_near(const char *text, const char *const *argv, const char *const *env,
        struct payload_near *near, int *fd, struct carrel_error *err);

/* Unpacks the block in a message; the result points into it. -EPROTO: malformed. */
int payload_unpack(struct payload_near *near, struct payload *out);

/* init: maps a block of the trusted host. Allocates nothing else. -EPROTO: malformed. */
int payload_map(int fd, struct payload *out);

/*
 * The same for a sender that may still change the block: it is copied before it is checked.
 * -ENOTSUP: not a memory file; -EPROTO: malformed.
 */
int payload_read(int fd, struct payload *out);
void payload_unmap(struct payload *payload);
