/*
 * apart.h - questions that need a process of their own: `carrel host`, executed afresh.
 *
 * Health becomes another user, and the self-test changes its environment, its descriptors and
 * its children. A caller of the library may have threads and children; the program has none.
 * It reads one struct apart_request and sends answers, each after a struct apart_head. Both
 * ends are of one version: everything else is refused.
 */
#pragma once
#include "executable/executable.h"
#include <stddef.h>
#include <stdint.h>

struct carrel_error;

enum { APART_FD = EXECUTABLE_FIRST_FD }; /* of `carrel host`: a stream socket */

enum apart_kind { APART_HEALTH, APART_TEST };

struct apart_request {
    char version[16]; /* of carrel */
    uint32_t kind;
    int64_t parent;   /* its pid: the process ends with it */
    char runtime[64]; /* APART_TEST; "": the default one */
};

enum apart_what { APART_FAILED, APART_DATA, APART_END };

struct apart_head {
    uint32_t what;
    uint32_t len; /* what follows: struct carrel_error, the data, nothing */
};

/* A test, as it crosses the socket. */
struct apart_test {
    char group[16];
    char name[64];
    uint32_t outcome;
    char seen[200];
    uint64_t duration_ms;
};

/*
 * Executes the program and calls `take` for each answer of `len` bytes, after it was put at
 * `data`. A non-zero answer of `take` ends the process and is returned.
 */
struct apart_question {
    enum apart_kind kind;
    const char *runtime; /* NULL: the default one */
    void *data;
    size_t len;
    int (*take)(void *context);
    void *context;
};
int apart_ask(const struct apart_question *question, struct carrel_error *err);

/* `carrel host`. Returns the exit status. */
int apart_execute(void);
