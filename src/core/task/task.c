/*
 * task.c - one thread per call.
 *
 * What takes time in these calls are dozens of system calls, file systems and other processes,
 * in that order: a thread that waits for them is the one mechanism that fits all. The thread
 * blocks every signal, so that the caller's own handlers never run in it.
 */
#include "base/auto.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/options.h"
#include "core/client/client.h"
#include "core/request/take.h"
#include <carrel/task.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

/* What is to be called. Members that a call does not take are NULL. */
struct call {
    int (*work)(struct carrel_task *task);
    const struct carrel_run_options *run;
    const struct carrel_python_options *python;
    const struct carrel_sandbox_options *sandbox_options;
    const struct carrel_fork_options *fork;
    struct carrel_sandbox *sandbox;
    const char *name;
    carrel_task_work *other; /* of the caller */
    void *context;
};

struct carrel_task {
    struct call call;
    pthread_t thread;
    int done;      /* eventfd, set at the end */
    int cancel[2]; /* pipe: a struct signalfd_siginfo, as from a signalfd */
    /* Of the thread, until its end: */
    struct taken_run run; /* the caller's options, with our signal_fd */
    int code;
    struct carrel_error err;
    struct carrel_run_result *result;
    struct carrel_sandbox *made;
};

static void task_drop(struct carrel_task *task)
{
    if (!task)
        return;
    if (task->call.sandbox)
        atomic_store(&task->call.sandbox->is_in_task, false);
    carrel_run_result_free(task->result);
    carrel_sandbox_free(task->made);
    fd_close(task->done);
    fd_close(task->cancel[0]);
    fd_close(task->cancel[1]);
    free(task);
}
DEFINE_AUTO(struct carrel_task *, task_drop)

static void *run_thread(void *arg)
{
    struct carrel_task *task = arg;
    const uint64_t one = 1;

    task->code = task->call.work(task);
    (void)!write(task->done, &one, sizeof(one)); /* cannot fail: it is the only one */
    return NULL;
}

static int start_thread(struct carrel_task *task)
{
    sigset_t all;
    sigset_t before;

    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    int r = pthread_create(&task->thread, NULL, run_thread, task);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return -r;
}

static int start(const struct call *call, struct carrel_task **out, struct carrel_error *err)
{
    err = ERR_OR_IGNORED(err);
    AUTO(task_drop) struct carrel_task *task = calloc(1, sizeof(*task));
    if (!task)
        return err_set_errno(err, -ENOMEM, "task");
    task->done = task->cancel[0] = task->cancel[1] = -1;
    if (call->sandbox && atomic_exchange(&call->sandbox->is_in_task, true))
        return err_set(err, -EBUSY, "another task uses the handle of this sandbox");
    task->call = *call; /* from here on task_drop() releases the handle */
    task->done = eventfd(0, EFD_CLOEXEC);
    int r = task->done < 0 || pipe2(task->cancel, O_CLOEXEC | O_NONBLOCK) < 0 ? -errno : 0;
    if (r == 0)
        r = start_thread(task);
    if (r < 0)
        return err_set_errno(err, r, "start a thread");
    *out = ptr_steal(&task);
    return 0;
}

/* The caller's options with a signal_fd of ours; a cancel looks like a signal there. */
static const struct carrel_run_options *cancellable(
        struct carrel_task *task, const struct carrel_run_options *given)
{
    struct carrel_run_options *own = &task->run.options;

    if (take_run(&task->run, given, NULL) < 0)
        return given; /* the call says why */
    if (own->signal_fd < 0)
        own->signal_fd = task->cancel[0];
    return own;
}

static int do_run(struct carrel_task *task)
{
    return carrel_run(cancellable(task, task->call.run), &task->result, &task->err);
}

static int do_python(struct carrel_task *task)
{
    struct carrel_python_options options = CARREL_PYTHON_OPTIONS_INIT;

    int r = OPTIONS_TAKE(&options, task->call.python, CARREL_PYTHON_OPTIONS_INIT, &task->err);
    if (r < 0)
        return r;
    options.run = cancellable(task, options.run);
    return carrel_python(&options, &task->result, &task->err);
}

static int do_exec(struct carrel_task *task)
{
    return carrel_sandbox_exec(
            task->call.sandbox, cancellable(task, task->call.run), &task->result, &task->err);
}

static int do_create(struct carrel_task *task)
{
    return client_create(task->call.sandbox_options, task->cancel[0], &task->made, &task->err);
}

static int do_snapshot(struct carrel_task *task)
{
    return carrel_sandbox_snapshot(task->call.sandbox, task->call.name, NULL, &task->err);
}

static int do_fork(struct carrel_task *task)
{
    return carrel_sandbox_fork(task->call.sandbox, task->call.fork, &task->err);
}

static int do_destroy(struct carrel_task *task)
{
    return carrel_sandbox_destroy(task->call.sandbox, NULL, &task->err);
}

static int do_other(struct carrel_task *task)
{
    return task->call.other(task->call.context, &task->err);
}

int carrel_run_start(const struct carrel_run_options *options, struct carrel_task **out,
        struct carrel_error *err)
{
    return start(&(struct call){ .work = do_run, .run = options }, out, err);
}

int carrel_python_start(const struct carrel_python_options *options, struct carrel_task **out,
        struct carrel_error *err)
{
    return start(&(struct call){ .work = do_python, .python = options }, out, err);
}

int carrel_sandbox_create_start(const struct carrel_sandbox_options *options,
        struct carrel_task **out, struct carrel_error *err)
{
    return start(&(struct call){ .work = do_create, .sandbox_options = options }, out, err);
}

int carrel_sandbox_exec_start(struct carrel_sandbox *sandbox,
        const struct carrel_run_options *options, struct carrel_task **out,
        struct carrel_error *err)
{
    const struct call call = { .work = do_exec, .sandbox = sandbox, .run = options };

    return start(&call, out, err);
}

int carrel_sandbox_snapshot_start(struct carrel_sandbox *sandbox, const char *name,
        struct carrel_task **out, struct carrel_error *err)
{
    const struct call call = { .work = do_snapshot, .sandbox = sandbox, .name = name };

    return start(&call, out, err);
}

int carrel_sandbox_fork_start(struct carrel_sandbox *sandbox,
        const struct carrel_fork_options *options, struct carrel_task **out,
        struct carrel_error *err)
{
    const struct call call = { .work = do_fork, .sandbox = sandbox, .fork = options };

    return start(&call, out, err);
}

int carrel_sandbox_destroy_start(
        struct carrel_sandbox *sandbox, struct carrel_task **out, struct carrel_error *err)
{
    return start(&(struct call){ .work = do_destroy, .sandbox = sandbox }, out, err);
}

int carrel_task_call(carrel_task_work *work, void *context, struct carrel_task **out,
        struct carrel_error *err)
{
    const struct call call = { .work = do_other, .other = work, .context = context };

    if (!work)
        return err_set(ERR_OR_IGNORED(err), -EINVAL, "no work for a task");
    return start(&call, out, err);
}

int carrel_task_fd(const struct carrel_task *task)
{
    return task->done;
}

void carrel_task_cancel(struct carrel_task *task)
{
    const struct signalfd_siginfo info = { .ssi_signo = SIGTERM };

    (void)!write(task->cancel[1], &info, sizeof(info)); /* full: it was cancelled before */
}

int carrel_task_finish(struct carrel_task *task, struct carrel_run_result **result,
        struct carrel_sandbox **sandbox, struct carrel_error *err)
{
    (void)pthread_join(task->thread, NULL);
    int code = task->code;
    if (code < 0 && err)
        *err = task->err;
    if (code == 0 && result)
        *result = ptr_steal(&task->result);
    if (code == 0 && sandbox)
        *sandbox = ptr_steal(&task->made);
    task_drop(task);
    return code;
}

void carrel_task_free(struct carrel_task *task)
{
    if (!task)
        return;
    carrel_task_cancel(task);
    (void)carrel_task_finish(task, NULL, NULL, NULL);
}
