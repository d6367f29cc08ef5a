/*
 * program.h - one program of the host, run to its end: fed, listened to, and killed when it
 * takes too long.
 */
#pragma once
#include "base/buf.h"
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct carrel_error;

struct program {
    const char *path; /* of the file to execute, absolute */
    const char *name; /* in messages: "git rev-parse" */
    const char *const *argv;
    const char *const *env;
    const char *cwd;

    /* stdin: the first of source, input, input_fd that is there; else end of file at once. */
    ssize_t (*source)(void *context, char *data, size_t size, struct carrel_error *err);
    const void *input;
    size_t input_len;
    int input_fd; /* -1: none */

    /* stdout: the first of output_fd, sink, output that is there; else dropped. */
    int output_fd; /* -1: none */
    int (*sink)(void *context, const char *data, size_t len, struct carrel_error *err);
    struct buf *output;
    void *context; /* of source and sink */

    struct buf *complaints; /* the last bytes of stderr, at most its max; never NULL */

    unsigned timeout_ms;       /* 0: none */
    uint64_t max_memory_bytes; /* RLIMIT_DATA; 0: as the caller has it */
    uint64_t max_file_bytes;   /* RLIMIT_FSIZE; 0: as the caller has it */
    bool finishes;             /* also when its caller is killed */
};

/*
 * Runs it. Returns its exit status (0..255), or a negative errno: it could not be started;
 * -ETIMEDOUT; -EFBIG: `output` overflowed; -EINTR: a signal killed it; what source or sink
 * said. When the call returns the program is gone. Nothing is inherited but the three streams;
 * all signals are at their defaults. A program that stops reading its input is not an error.
 */
int program_run(const struct program *program, struct carrel_error *err);
