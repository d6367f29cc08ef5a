/*
 * program.h - runs one program of the host to its end: feeds it, reads its output, and kills it
 * after a timeout.
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

    /* stdin: the first of source, input, input_fd that is set; else end of file at once. */
    ssize_t (*source)(void *context, char *data, size_t size, struct carrel_error *err);
    const void *input;
    size_t input_len;
    int input_fd; /* -1: none */

    /* stdout: the first of output_fd, sink, output that is set; else dropped. */
    int output_fd; /* -1: none */
    int (*sink)(void *context, const char *data, size_t len, struct carrel_error *err);
    struct buf *output;
    void *context; /* of source and sink */

    struct buf *complaints; /* the last bytes of stderr, at most its max; never NULL */

    unsigned timeout_ms;       /* 0: none */
    uint64_t max_memory_bytes; /* RLIMIT_DATA; 0: as the caller has it */
    uint64_t max_file_bytes;   /* RLIMIT_FSIZE; 0: as the caller has it */
    bool finishes;             /* even if its caller is killed */
};

/*
 * Runs it. Returns its exit status (0..255), or a negative errno: it could not be started;
 * -ETIMEDOUT; -EFBIG: `output` overflowed; -EINTR: a signal killed it; the error of source or
 * sink. The program has exited when the call returns. It inherits only the three streams; all
 * signals have their default action. A program that stops reading its input is not an error.
 */
int program_run_to_end(const struct program *program, struct carrel_error *err);
