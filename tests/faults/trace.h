/* trace.h - one run of carrel under ptrace, with at most one fault in it. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define TRACE_MAX_CALLS 4096

/*
 * A call is identified by its process, its name and how many of that name came before it there:
 * other sandboxes on the machine may add a call here and there (there is more to sweep), but
 * rarely one of the same name.
 */
struct call {
    char role[24]; /* "0" is carrel, "0.2" its second child, "0.2.1" the first child of that */
    unsigned index;
    long number;
};

struct fault {
    const struct call *at; /* NULL: none */
    int error;             /* 0: kill carrel instead */
};

struct run {
    char *confinement; /* of the program, when it was executed; the caller frees it */
    char program[24];  /* its role */
    bool has_run;      /* it was executed at all */
    bool has_fired;    /* the call of the fault was made */
    bool is_hung;
    int status; /* wait status of carrel */
    int n_left; /* processes that outlived it */
    char left[256];
    char out[16384];
    char err[4096];
};

/* The calls of a run, from carrel's first one to the execution of the program. */
struct trace {
    struct call calls[TRACE_MAX_CALLS];
    size_t n;
};

/* Once, in each process that calls trace_run(). */
void trace_begin(void);

/* Runs carrel. `record` may be NULL. Ends the whole program when tracing itself fails. */
void trace_run(
        char *const *argv, const struct fault *fault, struct run *run, struct trace *record);
