/*
 * exec.c - one program in a living sandbox, from start to result.
 *
 * The loop is that of a run (follow.c). The end differs: the sandbox stays, and processes that
 * the program left in it may hold its streams, so the client does not wait for the end of
 * these.
 */
#include "core/client/exec.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "core/client/client.h"
#include "core/client/remote.h"
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#define NS_PER_MS UINT64_C(1000000)
#define DEFAULT_OUTPUT_BYTES (10U << 10)
#define KILLED_MS 5000 /* until a killed program must be reported */

void exec_free(struct exec *exec)
{
    if (!exec)
        return;
    process_close(exec->process);
    follow_finish(&exec->follow);
    output_finish(&exec->output);
    carrel_run_result_free(exec->result);
    free(exec);
}

static int check_options(const struct carrel_run_options *o, struct carrel_error *err)
{
    if (o->workspace || o->n_mounts || o->root || o->image || o->is_git_writable ||
            o->memory_bytes || o->disk_bytes || o->pids || o->cpu_milli || o->files ||
            o->require || o->best_effort || o->policy || o->profile || o->runtime ||
            o->hostname || o->ids != CARREL_IDS_DEFAULT ||
            o->network != CARREL_NETWORK_DEFAULT || o->journal != CARREL_JOURNAL_DEFAULT ||
            o->store_code != CARREL_STORE_DEFAULT)
        return err_set(err, -EINVAL,
                "limits, mounts, the record and other properties of a sandbox are fixed when "
                "it is created");
    return 0;
}

int exec_new(struct carrel_sandbox *sandbox, const struct carrel_run_options *options,
        struct exec **out, struct carrel_error *err)
{
    AUTO(exec_free) struct exec *exec = calloc(1, sizeof(*exec));
    if (!exec)
        return err_set_errno(err, -ENOMEM, "run");
    exec->process = PROCESS_INIT; /* exec_free() closes what it has */
    exec->output = (struct output)OUTPUT_INIT;
    exec->follow.sinks[0] = exec->follow.sinks[1] = -1;
    int r = take_run(&exec->own, options, err);
    if (r == 0)
        r = check_options(&exec->own.options, err);
    if (r == 0)
        r = client_connect(sandbox, err);
    if (r < 0)
        return r;
    exec->sandbox = sandbox;
    exec->disk = DISK_INIT;
    exec->began_ns = clock_ns();
    exec->result = result_new();
    if (!exec->result)
        return err_set_errno(err, -ENOMEM, "run");

    const struct keeper_facts *facts = &sandbox->box->facts;
    struct carrel_run_result *result = exec->result;
    struct runtime *runtime;
    memcpy(result->run, facts->run, sizeof(result->run));
    memcpy(result->task, facts->task, sizeof(result->task));
    (void)snprintf(result->sandbox, sizeof(result->sandbox), "%s", sandbox->id);
    result->runtime =
            runtime_find(facts->runtime, &runtime, NULL) < 0 ? "local" : runtime_name(runtime);
    result->isolation = (enum isolation)facts->isolation;
    result->protections = facts->protections;
    memcpy(result->held_by, facts->held_by, sizeof(result->held_by));
    memcpy(result->limits, facts->limits, sizeof(result->limits));
    exec->follow.cpu_milli = result->limits[LIMIT_CPU];
    result_note_limits(result);
    result->output_bytes = exec->own.options.output_bytes ? exec->own.options.output_bytes
                                                          : DEFAULT_OUTPUT_BYTES;
    r = output_open(&exec->output, result, false, 0, err);
    if (r < 0)
        return r;
    *out = ptr_steal(&exec);
    return 0;
}

/* Each program's output has files of its own. */
static void name_output(struct exec *exec)
{
    struct output *output = &exec->output;

    (void)snprintf(output->out_path, sizeof(output->out_path), "%s/stdout-exec-%u", output->dir,
            exec->process.id);
    (void)snprintf(output->err_path, sizeof(output->err_path), "%s/stderr-exec-%u", output->dir,
            exec->process.id);
}

static int start(struct carrel_sandbox *sandbox, const struct carrel_run_options *o,
        bool is_detached, struct process *process, struct carrel_error *err)
{
    struct remote *box = sandbox->box;
    static const char *const no_env[] = { NULL };
    const struct process_spec spec = {
        .argv = o->argv,
        .env = o->env ? o->env : no_env,
        .cwd = o->cwd,
        .has_stdin = o->stdin_fd >= 0,
        .has_tty = o->has_tty,
        .rows = o->rows,
        .cols = o->cols,
        .has_user = o->has_user,
        .uid = o->uid,
        .gid = o->gid,
    };

    box->is_detaching = is_detached;
    box->timeout_ms = o->timeout_ms;
    return sandbox_start(&box->base, &spec, process, err);
}

/* Reading must never block: after the end there may be nothing left to read. */
static int make_nonblocking(const struct process *process, struct carrel_error *err)
{
    const int fds[] = { process->stdin_fd, process->stdout_fd, process->stderr_fd };

    for (size_t i = 0; i < ARRAY_LEN(fds); i++) {
        int r = fds[i] < 0 ? 0 : fd_set_nonblocking(fds[i]);
        if (r < 0)
            return err_set_errno(err, r, "streams");
    }
    return 0;
}

int exec_start(struct exec *exec, struct carrel_error *err)
{
    struct carrel_sandbox *sandbox = exec->sandbox;

    int r = start(sandbox, &exec->own.options, false, &exec->process, err);
    if (r < 0)
        return r;
    name_output(exec);
    exec->result->timeout_ms = sandbox->box->timeout_ms;
    return make_nonblocking(&exec->process, err);
}

/* The grace period is over: kills it. */
static int kill_and_wait(struct exec *exec, struct carrel_error *err)
{
    struct sandbox *box = &exec->sandbox->box->base;
    uint64_t deadline = clock_ns() + KILLED_MS * NS_PER_MS;
    struct pollfd watch = { .fd = box->event_fd, .events = POLLIN };
    struct sandbox_event event = { .kind = EVENT_NONE };

    (void)sandbox_signal(box, exec->process.id, SIGKILL, NULL);
    while (!(event.kind == EVENT_EXITED && event.process == exec->process.id)) {
        int n = poll(&watch, 1, clock_poll_ms(deadline));
        if (n == 0 || (n < 0 && errno != EINTR))
            return 0; /* it hangs in the kernel; the caller does not wait for that */
        int r = n < 0 ? 0 : sandbox_next_event(box, &event, err);
        if (r < 0)
            return r;
        if (event.kind == EVENT_GONE)
            return 0;
    }
    exec->follow.has_status = true;
    exec->follow.wait_status = event.wait_status;
    return 0;
}

int exec_finish(struct exec *exec, struct carrel_run_result **out, struct carrel_error *err)
{
    struct carrel_run_result *result = exec->result;
    const struct follow *follow = &exec->follow;
    const struct remote *box = exec->sandbox->box;

    result->duration_ms = (clock_ns() - exec->began_ns) / NS_PER_MS;
    /* The end of a sandbox ends its programs, and closes the connection: not a loss. */
    result->reason = box->is_over_time && follow->reason != CARREL_CANCELLED ? CARREL_TIMEOUT
                                                                             : follow->reason;
    result->cancel_signal = follow->cancel_signal;
    result->has_status = follow->has_status || follow->is_ending;
    result->wait_status = follow->has_status ? follow->wait_status : SIGKILL;
    result->usage.oom_kills = box->oom_kills;
    result->usage.pids_refused = box->pids_refused;
    result->usage.is_disk_full = box->is_over_disk;
    output_take(&exec->output, result);
    result_set_reason(result);
    output_name(&exec->output, result);
    int r = result_write_json(result);
    if (r < 0)
        return err_set_errno(err, r, "result");
    *out = ptr_steal(&exec->result);
    return 0;
}

static int follow(struct exec *exec, uint64_t timeout_ms, struct carrel_error *err)
{
    struct follow *f = &exec->follow;

    f->options = &exec->own.options;
    f->box = &exec->sandbox->box->base;
    f->process = &exec->process;
    f->disk = &exec->disk;
    f->out = &exec->output.out;
    f->err = &exec->output.err;
    f->may_linger = true;
    f->deadline_ns = timeout_ms ? clock_ns() + timeout_ms * NS_PER_MS : CLOCK_NEVER;
    int r = follow_begin(f, err);
    if (r == 0)
        r = follow_to_end(f, err);
    if (r == 0 && !f->has_status && f->is_ending)
        r = kill_and_wait(exec, err);
    if (r < 0)
        return r;
    follow_flush(f);
    exec->result->output_error = follow_output_error(f);
    return 0;
}

int carrel_sandbox_exec(struct carrel_sandbox *sandbox,
        const struct carrel_run_options *options, struct carrel_run_result **out,
        struct carrel_error *err)
{
    AUTO(exec_free) struct exec *exec = NULL;

    err = ERR_OR_IGNORED(err);
    int r = exec_new(sandbox, options, &exec, err);
    if (r < 0)
        return r;
    r = exec_start(exec, err);
    if (r == 0)
        r = follow(exec, sandbox->box->timeout_ms, err);
    if (r == 0)
        r = exec_finish(exec, out, err);
    if (r < 0 && err->origin == CARREL_FROM_CARREL) /* the program may run: it ends with this */
        remote_free(ptr_steal(&sandbox->box));
    return r;
}

int carrel_sandbox_detach(struct carrel_sandbox *sandbox,
        const struct carrel_run_options *options, uint32_t *process, struct carrel_error *err)
{
    struct process started = PROCESS_INIT;
    struct taken_run own;

    err = ERR_OR_IGNORED(err);
    int r = take_run(&own, options, err);
    if (r == 0)
        r = check_options(&own.options, err);
    if (r == 0)
        r = client_connect(sandbox, err);
    if (r == 0)
        r = start(sandbox, &own.options, true, &started, err);
    if (r == 0)
        *process = started.id;
    process_close(started);
    return r;
}

/* --- attach --- */

/* The kept output, of the bytes it `wrote` before, comes first, as if it were new. */
static int replay(
        int fd, uint64_t wrote, int to, struct capture *capture, struct carrel_error *err)
{
    AUTO(buf_finish) struct buf text = BUF_INIT(SIZE_MAX / 4);

    int r = keeper_text_read(fd, &text, err);
    if (r < 0 || text.len == 0)
        return r;
    capture_add(capture, text.data, text.len);
    capture_skip(capture, wrote > text.len ? wrote - text.len : 0);
    r = to < 0 ? 0 : fd_write_all(to, text.data, text.len);
    return r < 0 && r != -EPIPE ? err_set_errno(err, r, "write the output") : 0;
}

static int take_over(
        struct exec *exec, uint32_t process, bool *has_ended, struct carrel_error *err)
{
    struct keeper_message message = { .kind = KEEPER_ATTACH, .process = process };
    struct process *streams = &exec->process;
    int fds[KEEPER_MAX_FDS];
    int at = 2;

    int n = remote_ask(exec->sandbox->box, &message, NULL, 0, fds, err);
    if (n < 0)
        return n;
    streams->id = process;
    if (message.flags & KEEPER_STDIN && at < n)
        streams->stdin_fd = fd_steal(&fds[at++]);
    if (message.flags & KEEPER_STDOUT && at < n)
        streams->stdout_fd = fd_steal(&fds[at++]);
    if (message.flags & KEEPER_STDERR && at < n)
        streams->stderr_fd = fd_steal(&fds[at++]);
    *has_ended = message.flags & KEEPER_ENDED;
    exec->follow.has_status = *has_ended;
    exec->follow.wait_status = message.value;
    exec->sandbox->box->oom_kills = message.oom_kills;
    exec->sandbox->box->pids_refused = message.pids_refused;
    exec->sandbox->box->is_over_disk = message.flags & KEEPER_FULL;
    exec->sandbox->box->is_over_time = message.flags & KEEPER_TIMED_OUT;
    exec->result->timeout_ms = message.timeout_ms;
    name_output(exec);
    int r = n < 2 ? err_set(err, -EPROTO, "the keeper sent no output") : 0;
    if (r == 0)
        r = replay(fds[0], message.written[0], exec->own.options.stdout_fd, &exec->output.out,
                err);
    if (r == 0)
        r = replay(fds[1], message.written[1], exec->own.options.stderr_fd, &exec->output.err,
                err);
    for (int i = 0; i < n; i++)
        fd_close(fds[i]);
    return r;
}

int carrel_sandbox_attach(struct carrel_sandbox *sandbox, uint32_t process,
        const struct carrel_run_options *options, struct carrel_run_result **out,
        struct carrel_error *err)
{
    AUTO(exec_free) struct exec *exec = NULL;
    bool has_ended = false;

    err = ERR_OR_IGNORED(err);
    int r = exec_new(sandbox, options, &exec, err);
    if (r == 0)
        r = take_over(exec, process, &has_ended, err);
    if (r == 0) {
        exec->follow.is_visitor = true;
        exec->follow.is_over = has_ended; /* then there is nothing to follow */
        r = follow(exec, 0, err);         /* the keeper enforces its deadline */
    }
    if (r == 0)
        r = exec_finish(exec, out, err);
    return r;
}
