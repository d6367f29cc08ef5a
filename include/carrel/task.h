/*
 * task.h - calls that take time, without waiting for them.
 *
 * Each of these begins what the call of the same name without _start does, and returns at once.
 * A thread of the library does the work, with all signals blocked. The options, and all that
 * they point to, must stay as they are until the task is finished or freed.
 */
#pragma once
#include <carrel/python.h>
#include <carrel/sandbox.h>

#ifdef __cplusplus
extern "C" {
#endif

struct carrel_task;

CARREL_PUBLIC int carrel_run_start(const struct carrel_run_options *options,
        struct carrel_task **out, struct carrel_error *err);
CARREL_PUBLIC int carrel_python_start(const struct carrel_python_options *options,
        struct carrel_task **out, struct carrel_error *err);
CARREL_PUBLIC int carrel_sandbox_create_start(const struct carrel_sandbox_options *options,
        struct carrel_task **out, struct carrel_error *err);

/* No other call may use the handle until the task is finished; another task: -EBUSY. */
CARREL_PUBLIC int carrel_sandbox_exec_start(struct carrel_sandbox *sandbox,
        const struct carrel_run_options *options, struct carrel_task **out,
        struct carrel_error *err);
CARREL_PUBLIC int carrel_sandbox_snapshot_start(struct carrel_sandbox *sandbox,
        const char *name, struct carrel_task **out, struct carrel_error *err);
CARREL_PUBLIC int carrel_sandbox_fork_start(struct carrel_sandbox *sandbox,
        const struct carrel_fork_options *options, struct carrel_task **out,
        struct carrel_error *err);
CARREL_PUBLIC int carrel_sandbox_destroy_start(
        struct carrel_sandbox *sandbox, struct carrel_task **out, struct carrel_error *err);

/*
 * Every other call: `work` makes it, in the thread, and its value is what carrel_task_finish()
 * returns. It must not call fork() or change the process; what it puts into `context` may be
 * read after carrel_task_finish(). It cannot be cancelled.
 */
typedef int carrel_task_work(void *context, struct carrel_error *err);
CARREL_PUBLIC int carrel_task_call(carrel_task_work *work, void *context,
        struct carrel_task **out, struct carrel_error *err);

/* Readable from the end of the work on. It belongs to the task. */
CARREL_PUBLIC int carrel_task_fd(const struct carrel_task *task);

/*
 * Asks it to end early. A program ends as by a signal at signal_fd, and the result says
 * CARREL_CANCELLED; a sandbox that is being made is destroyed (-ECANCELED). Snapshots, forks
 * and the end of a sandbox cannot be cancelled: they finish.
 */
CARREL_PUBLIC void carrel_task_cancel(struct carrel_task *task);

/*
 * Waits for the end, returns what the call returned, and frees the task. *result is set by
 * carrel_run_start(), carrel_python_start() and carrel_sandbox_exec_start(), *sandbox by
 * carrel_sandbox_create_start(); either may be NULL where it is not wanted.
 */
CARREL_PUBLIC int carrel_task_finish(struct carrel_task *task,
        struct carrel_run_result **result, struct carrel_sandbox **sandbox,
        struct carrel_error *err);

/* Cancels it, waits for the end and drops what came of it. NULL is fine. */
CARREL_PUBLIC void carrel_task_free(struct carrel_task *task);

#ifdef __cplusplus
}
#endif
