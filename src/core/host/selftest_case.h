/* selftest_case.h - what the cases of the self-test share with its set-up. */
#pragma once
#include "core/host/selftest.h"
#include "core/result/result.h"
#include <carrel/run.h>
#include <limits.h>

#define SELFTEST_MARK_NAME "carrel-mark" /* of the process that must not be seen or killed */

struct selftest {
    const char *runtime;
    const char *probe; /* carrel, as a program inside finds it */
    struct carrel_mount mount;
    char mark[20];        /* unguessable; in our environment and in every shell's arguments */
    char pid_ns[64];      /* our process namespace, as /proc/self/ns/pid shows it */
    char port[8];         /* of the listener */
    char best_effort[64]; /* limits that are only partially enforced; may be empty */
    enum limit_holder held_by[LIMIT_COUNT];
    pid_t marked;     /* child that must not be seen or killed */
    int descriptor;   /* inheritable: programs must not have it */
    int listener;     /* on 127.0.0.1 */
    int abstract;     /* listens on the abstract socket named by `mark` */
    size_t n_open;    /* our descriptors before the first case */
    size_t at;        /* next case */
    bool is_hopeless; /* not even the first case got a sandbox */
};

struct selftest_case {
    const char *group;
    const char *name;
    void (*run)(struct selftest *test, const struct selftest_case *c, struct selftest_row *row);
    const char *text;   /* name of a case of selftest.sh, or of a probe */
    const char *wanted; /* what it must print, without the newline */
};

extern const struct selftest_case selftest_cases[];
extern const size_t n_selftest_cases;

/* How a case ends. `fmt` is what was seen. */
void selftest_end(struct selftest_row *row, enum selftest_outcome outcome, const char *fmt, ...)
        __attribute__((format(printf, 3, 4)));

/*
 * Runs a program with `options`, to which are added: carrel as a mount, the time limit, the
 * limits that are best-effort here. NULL: it could not be run, and the row says so.
 */
struct carrel_run_result *selftest_program(struct selftest *test, const char *const *argv,
        struct carrel_run_options *options, struct selftest_row *row);

/* The same for a case of selftest.sh and its argument. */
struct carrel_run_result *selftest_shell(struct selftest *test, const char *name,
        const char *argument, struct carrel_run_options *options, struct selftest_row *row);

/* The same for a probe and its argument. */
struct carrel_run_result *selftest_probe(struct selftest *test, const char *name,
        const char *argument, struct carrel_run_options *options, struct selftest_row *row);

/* Counts processes of this machine that have the mark in their arguments. */
unsigned selftest_count_marked(const struct selftest *test);

/* Ends the marked child. False when another process has done so. */
bool selftest_end_marked(struct selftest *test);

size_t selftest_count_open(void); /* descriptors of this process */
