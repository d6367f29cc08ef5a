/*
 * selftest.h - does the sandbox hold, here and now?
 *
 * Small programs, every limit driven to its bound, and attempts to get out: each in a sandbox
 * of its own, made as `carrel run` makes it. Programs are /bin/sh, the core utilities and
 * carrel itself (`carrel probe`) for raw system calls. No attempt does harm where it succeeds.
 */
#pragma once
#include "base/auto.h"
#include <stdbool.h>
#include <stdint.h>

struct carrel_error;
struct selftest;

enum selftest_outcome { SELFTEST_PASSED, SELFTEST_FAILED, SELFTEST_SKIPPED };

struct selftest_row {
    const char *group; /* "basics" "limits" "escapes" "after" */
    const char *name;
    enum selftest_outcome outcome;
    char seen[200]; /* what was seen, or why it was skipped; safe on a terminal */
    uint64_t duration_ms;
};

/*
 * Sets up what programs inside must not find: a variable, an inheritable descriptor, a child
 * process, listening sockets of this process. `program` is carrel's own executable; `runtime`
 * NULL: the default one. Removes what earlier crashes left. The caller must have no children of
 * its own.
 */
int selftest_new(const char *runtime, const char *program, struct selftest **out,
        struct carrel_error *err);
void selftest_free(struct selftest *test); /* NULL is fine */
DEFINE_AUTO(struct selftest *, selftest_free)

/* Runs the next case and tells how it went; false: there is none left. */
bool selftest_next(struct selftest *test, struct selftest_row *row);
