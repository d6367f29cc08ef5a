/*
 * process.h - one program in a living sandbox, with its streams as descriptors: for callers
 * that have an event loop of their own.
 */
#pragma once
#include <carrel/sandbox.h>

#ifdef __cplusplus
extern "C" {
#endif

struct carrel_process; /* a handle, with a connection of its own */

/*
 * Starts a program. The options are those of carrel_sandbox_exec(), without streams: with
 * stdin_fd >= 0 (which is not read) the program gets a standard input. It ends when the handle
 * is freed, and when the calling process ends, with its process group: SIGTERM, then SIGKILL.
 * Processes that left the group stay in the sandbox.
 */
CARREL_PUBLIC int carrel_process_start(struct carrel_sandbox *sandbox,
        const struct carrel_run_options *options, struct carrel_process **out,
        struct carrel_error *err);

/* Ends the program if it still runs, and closes the streams. NULL is fine. */
CARREL_PUBLIC void carrel_process_free(struct carrel_process *process);

/* As carrel_sandbox_signal() takes it. */
CARREL_PUBLIC uint32_t carrel_process_number(const struct carrel_process *process);

enum carrel_stream { CARREL_STDIN, CARREL_STDOUT, CARREL_STDERR };

/*
 * Our ends of its streams, non-blocking; -1: none. With a terminal CARREL_STDIN and
 * CARREL_STDOUT are that, and CARREL_STDERR is -1. They belong to the handle; the caller may
 * close one early with carrel_process_close(), which is how a program sees the end of its
 * input.
 */
CARREL_PUBLIC int carrel_process_stream(
        const struct carrel_process *process, enum carrel_stream stream);
CARREL_PUBLIC void carrel_process_close(
        struct carrel_process *process, enum carrel_stream stream);

/* Readable when carrel_process_result() has something to tell. It belongs to the handle. */
CARREL_PUBLIC int carrel_process_fd(const struct carrel_process *process);

/*
 * Does not block. 1 and the result: it has ended; what it wrote is in the streams: read them
 * until EAGAIN or the end (a process that it left behind may hold them open). The result has no
 * output and no usage. 0: it still runs. The keeper enforces the timeout.
 */
CARREL_PUBLIC int carrel_process_result(struct carrel_process *process,
        struct carrel_run_result **out, struct carrel_error *err);

CARREL_PUBLIC int carrel_process_signal(
        struct carrel_process *process, int signal, struct carrel_error *err);

/* The size of its terminal. */
CARREL_PUBLIC int carrel_process_resize(
        struct carrel_process *process, uint16_t rows, uint16_t cols, struct carrel_error *err);

#ifdef __cplusplus
}
#endif
