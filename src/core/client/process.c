/*
 * process.c - a program whose streams the caller reads and writes.
 *
 * It has a connection of its own, so that its end is not mistaken for another's, and freeing it
 * ends the program. The keeper enforces its timeout.
 */
#include "base/auto.h"
#include "base/err.h"
#include "base/fd.h"
#include "core/client/client.h"
#include "core/client/exec.h"
#include "core/client/remote.h"
#include <carrel/process.h>
#include <errno.h>
#include <stdlib.h>

struct carrel_process {
    struct carrel_sandbox *sandbox;
    struct exec *exec;
    bool has_result; /* it was taken */
};

void carrel_process_free(struct carrel_process *process)
{
    if (!process)
        return;
    exec_free(process->exec);
    carrel_sandbox_free(process->sandbox); /* the keeper ends the program with its connection */
    free(process);
}
DEFINE_AUTO(struct carrel_process *, carrel_process_free)

int carrel_process_start(struct carrel_sandbox *sandbox,
        const struct carrel_run_options *options, struct carrel_process **out,
        struct carrel_error *err)
{
    err = ERR_OR_IGNORED(err);
    AUTO(carrel_process_free) struct carrel_process *process = calloc(1, sizeof(*process));
    if (!process)
        return err_set_errno(err, -ENOMEM, "run");
    int r = carrel_sandbox_open(sandbox->id, &process->sandbox, err);
    if (r == -ENOENT)
        return err_set(err, -ESRCH, "the sandbox has ended");
    if (r == 0)
        r = exec_new(process->sandbox, options, &process->exec, err);
    if (r < 0)
        return r;
    process->sandbox->box->is_alone = true;
    r = exec_start(process->exec, err);
    if (r < 0)
        return r;
    *out = ptr_steal(&process);
    return 0;
}

uint32_t carrel_process_number(const struct carrel_process *process)
{
    return process->exec->process.id;
}

static int *stream_of(struct process *streams, enum carrel_stream stream)
{
    switch (stream) {
    case CARREL_STDIN:
        return &streams->stdin_fd;
    case CARREL_STDOUT:
        return &streams->stdout_fd;
    case CARREL_STDERR:
        break;
    }
    return &streams->stderr_fd;
}

int carrel_process_stream(const struct carrel_process *process, enum carrel_stream stream)
{
    return *stream_of(&process->exec->process, stream);
}

void carrel_process_close(struct carrel_process *process, enum carrel_stream stream)
{
    fd_close(fd_steal(stream_of(&process->exec->process, stream)));
}

int carrel_process_fd(const struct carrel_process *process)
{
    return process->sandbox->box->base.event_fd;
}

/* Takes what the keeper reported: 1 when the program has ended. */
static int take_events(struct carrel_process *process, struct carrel_error *err)
{
    struct follow *follow = &process->exec->follow;
    struct sandbox_event event;

    do {
        int r = sandbox_next_event(&process->sandbox->box->base, &event, err);
        if (r < 0)
            return r;
        if (event.kind == EVENT_GONE)
            return err_set(err, -ESRCH, "the sandbox has ended");
    } while (event.kind == EVENT_EXITED && event.process != process->exec->process.id);
    if (event.kind == EVENT_NONE)
        return 0;
    follow->has_status = true;
    follow->wait_status = event.wait_status;
    return 1;
}

int carrel_process_result(struct carrel_process *process, struct carrel_run_result **out,
        struct carrel_error *err)
{
    err = ERR_OR_IGNORED(err);
    if (process->has_result)
        return err_set(err, -EINVAL, "the result of this program was taken already");
    int r = take_events(process, err);
    if (r <= 0)
        return r;
    r = exec_finish(process->exec, out, err);
    process->has_result = r == 0;
    return r < 0 ? r : 1;
}

int carrel_process_signal(struct carrel_process *process, int signal, struct carrel_error *err)
{
    return sandbox_signal(&process->sandbox->box->base, process->exec->process.id, signal,
            ERR_OR_IGNORED(err));
}

int carrel_process_resize(
        struct carrel_process *process, uint16_t rows, uint16_t cols, struct carrel_error *err)
{
    err = ERR_OR_IGNORED(err);
    if (!process->exec->own.options.has_tty)
        return err_set(err, -EINVAL, "the program has no terminal");
    return sandbox_resize(
            &process->sandbox->box->base, &process->exec->process, rows, cols, err);
}
