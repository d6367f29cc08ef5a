/*
 * run.c - the verb: one program, from options to result.
 *
 * create, start, then one loop over everything that can happen: output, input, the end of the
 * program, the deadline, a signal to us. Whatever happened, the sandbox is stopped as a whole
 * before the rest of its output is read, so nothing that a program left running can hold us.
 */
#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "core/disk_watch.h"
#include "core/environment.h"
#include "core/hint.h"
#include "core/outcome.h"
#include "core/pump.h"
#include "core/result.h"
#include "core/spec.h"
#include "core/state.h"
#include "core/workplace.h"
#include "runtime/runtime.h"
#include "workspace/renew.h"
#include <carrel/run.h>
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#define DEFAULT_TIMEOUT_MS 300000U
#define DEFAULT_OUTPUT_BYTES (10U << 10)
#define GRACE_MS 500  /* between SIGTERM and SIGKILL */
#define FLUSH_MS 2000 /* for a caller that does not read, once the run was cut short */
#define NS_PER_MS UINT64_C(1000000)

struct run {
    const struct carrel_run_options *options;
    struct carrel_run_result *result;
    struct workplace *place; /* NULL: the run has no workspace of its own */
    struct disk_watch watch;
    struct runtime *runtime;
    struct sandbox *box;
    struct process process;
    struct capture out, err_out;
    struct pump pumps[3]; /* stdin, stdout, stderr */
    int sinks[2];         /* the caller's stdout and stderr, opened anew; -1: as they are */
    char out_path[PATH_MAX], err_path[PATH_MAX];
    uint64_t deadline_ns; /* of the program, then of its grace */
    bool is_ending;       /* SIGTERM was sent */
    bool is_over;
};

static int check_options(const struct carrel_run_options *o, struct carrel_error *err)
{
    if (o->size != sizeof(*o))
        return err_set(err, -EINVAL,
                "struct carrel_run_options has another size than this library's; start from "
                "CARREL_RUN_OPTIONS_INIT");
    if (!o->argv || !o->argv[0] || !o->argv[0][0])
        return err_set(err, -EINVAL, "no program to run");
    return 0;
}

/* ENOENT, EACCES and ENOEXEC speak of the program alone; here it was something else. */
static int not_the_program(int code, struct carrel_error *err)
{
    if (code == -ENOENT || code == -EACCES || code == -ENOEXEC)
        err->code = -EINVAL;
    return err->code;
}

/* Makes or takes up the run's workspace; its mounts come after the caller's. */
static int open_place(struct run *run, struct spec *spec, struct carrel_error *err)
{
    struct carrel_run_result *result = run->result;
    const struct workplace_request request = {
        .options = run->options->workspace,
        .runtime = spec->runtime,
        .spec = &spec->box,
        .task = result->task,
        .run = result->run,
    };

    int r = workplace_open(&request, &run->place, err);
    if (r == 0)
        r = spec_add_mounts(spec, run->place->mounts, run->place->n_mounts, err);
    if (r == 0)
        r = workspace_begin_use(run->place->ws, err);
    if (r == 0)
        r = disk_watch_begin(
                &run->watch, run->place->ws->dir, spec->box.limits.value[LIMIT_DISK], err);
    return r;
}

static int create(struct run *run, struct carrel_error *err)
{
    struct carrel_run_result *result = run->result;
    AUTO(spec_finish) struct spec spec = { 0 };

    int r = spec_make(run->options, result->run, &spec, err);
    if (r == 0 && run->options->workspace)
        r = open_place(run, &spec, err);
    if (r == 0)
        r = sandbox_begin(spec.runtime, &spec.box, &run->box, err);
    if (r < 0)
        return r;
    run->runtime = spec.runtime;

    result->runtime = runtime_name(spec.runtime);
    result->isolation = runtime_isolation(spec.runtime);
    result->protections = run->box->protections;
    memcpy(result->held_by, run->box->held_by, sizeof(result->held_by));
    memcpy(result->limits, spec.box.limits.value, sizeof(result->limits));
    result_note_limits(result);
    result->workspace = strdup(run->box->workspace);
    return result->workspace ? 0 : err_set_errno(err, -ENOMEM, "result");
}

static int start(struct run *run, struct carrel_error *err)
{
    const struct carrel_run_options *o = run->options;
    AUTO(environment_free) char **env = NULL;

    int r = environment_make(run->box, o->env, o->has_tty, &env, err);
    if (r < 0)
        return r;
    const struct process_spec spec = {
        .argv = o->argv,
        .env = (const char *const *)env,
        .cwd = o->cwd,
        .has_stdin = o->stdin_fd >= 0,
        .ends_sandbox = true,
        .has_tty = o->has_tty,
        .rows = o->rows,
        .cols = o->cols,
    };
    r = sandbox_start(run->box, &spec, &run->process, err);
    if (r == -ENOENT && !o->root) /* what another root lacks, the host cannot lend */
        return hint_missing_program(o->argv[0], err);
    if (r < 0)
        return r;
    /* Reading must never block: after the end there may be nothing left to read. */
    r = fd_set_nonblocking(run->process.stdout_fd);
    if (r == 0 && run->process.stderr_fd >= 0)
        r = fd_set_nonblocking(run->process.stderr_fd);
    if (r == 0 && run->process.stdin_fd >= 0)
        r = fd_set_nonblocking(run->process.stdin_fd);
    return r < 0 ? not_the_program(err_set_errno(err, r, "streams"), err) : 0;
}

static void begin_end(struct run *run, enum carrel_reason reason)
{
    if (run->is_ending)
        return;
    run->is_ending = true;
    run->result->reason = reason;
    (void)sandbox_signal(run->box, run->process.id, SIGTERM, NULL); /* SIGKILL follows */
    run->deadline_ns = clock_ns() + GRACE_MS * NS_PER_MS;
}

static void on_signal(struct run *run)
{
    const struct carrel_run_options *o = run->options;
    struct signalfd_siginfo info;
    struct winsize size;

    if (read(o->signal_fd, &info, sizeof(info)) != (ssize_t)sizeof(info))
        return;
    if (info.ssi_signo != SIGWINCH) {
        run->result->cancel_signal = (int)info.ssi_signo;
        if (run->is_ending)
            run->is_over = true; /* asked twice */
        begin_end(run, CARREL_CANCELLED);
    } else if (o->has_tty && ioctl(o->stdin_fd, TIOCGWINSZ, &size) == 0) {
        (void)ioctl(run->process.stdin_fd, TIOCSWINSZ, &size); /* a wrong size harms nobody */
    }
}

static int on_event(struct run *run, struct carrel_error *err)
{
    struct sandbox_event event;

    int r = sandbox_next_event(run->box, &event, err);
    if (r < 0)
        return r;
    if (event.kind == EVENT_EXITED && event.process == run->process.id) {
        run->result->has_status = true;
        run->result->wait_status = event.wait_status;
        run->is_over = true;
    } else if (event.kind == EVENT_GONE) {
        run->is_over = true;
    }
    return 0;
}

/* Closes what the pump is done with: the program sees end of file, or a broken pipe. */
static void on_stream(struct run *run, int i, short revents)
{
    struct pump *pump = &run->pumps[i];
    int *const ours[] = { &run->process.stdin_fd, &run->process.stdout_fd,
        &run->process.stderr_fd };

    switch (pump_move(pump, revents)) {
    case PUMP_GOES_ON:
        break;
    case PUMP_SOURCE_ENDED:
        if (i == 0 && run->options->has_tty)
            (void)write(*ours[0], "\x04", 1); /* how a terminal's input ends */
        else if (i == 0)
            fd_close(fd_steal(ours[0]));
        break;
    case PUMP_SINK_CLOSED:
        pump->from = -1;
        if (!run->options->has_tty)
            fd_close(fd_steal(ours[i]));
        break;
    }
}

static void start_pumps(struct run *run)
{
    const struct carrel_run_options *o = run->options;

    pump_init(&run->pumps[0], o->stdin_fd, run->process.stdin_fd, NULL);
    run->sinks[0] = pump_open_sink(o->stdout_fd);
    run->sinks[1] = pump_open_sink(o->stderr_fd);
    pump_init(&run->pumps[1], run->process.stdout_fd,
            run->sinks[0] < 0 ? o->stdout_fd : run->sinks[0], &run->out);
    pump_init(&run->pumps[2], run->process.stderr_fd,
            run->sinks[1] < 0 ? o->stderr_fd : run->sinks[1], &run->err_out);
}

enum { WATCH_STDIN, WATCH_STDOUT, WATCH_STDERR, WATCH_BOX, WATCH_SIGNAL, WATCHED };

/* Until the program has ended or must end now. */
static int follow(struct run *run, struct carrel_error *err)
{
    struct pollfd watch[WATCHED];

    while (!run->is_over) {
        for (int i = 0; i < 3; i++)
            pump_watch(&run->pumps[i], &watch[i]);
        watch[WATCH_BOX] = (struct pollfd){ .fd = run->box->event_fd, .events = POLLIN };
        watch[WATCH_SIGNAL] =
                (struct pollfd){ .fd = run->options->signal_fd, .events = POLLIN };
        uint64_t wake_ns =
                run->deadline_ns < run->watch.next_ns ? run->deadline_ns : run->watch.next_ns;
        int n = poll(watch, WATCHED, clock_poll_ms(wake_ns));
        if (n < 0 && errno != EINTR)
            return err_set_errno(err, -errno, "poll");
        if (n > 0) {
            for (int i = 0; i < 3; i++)
                on_stream(run, i, watch[i].revents);
            if (watch[WATCH_SIGNAL].revents)
                on_signal(run);
            int r = watch[WATCH_BOX].revents ? on_event(run, err) : 0;
            if (r < 0)
                return r;
        }
        if (!run->is_over && clock_ns() >= run->watch.next_ns &&
                disk_watch_is_over(&run->watch)) {
            run->is_ending = run->is_over = true; /* at once: every moment costs the host */
            run->result->reason = CARREL_DISK_LIMIT;
        }
        if (!run->is_over && clock_ns() >= run->deadline_ns) {
            if (run->is_ending)
                run->is_over = true;
            else
                begin_end(run, CARREL_TIMEOUT);
        }
    }
    return 0;
}

/* The sandbox is gone; what it wrote is still in the pipes. */
static void flush(struct run *run)
{
    uint64_t deadline = run->is_ending ? clock_ns() + FLUSH_MS * NS_PER_MS : CLOCK_NEVER;
    struct pollfd watch[2];

    while (!pump_is_done(&run->pumps[1]) || !pump_is_done(&run->pumps[2])) {
        for (int i = 0; i < 2; i++)
            pump_watch(&run->pumps[1 + i], &watch[i]);
        int n = poll(watch, 2, clock_poll_ms(deadline));
        if (n == 0 || (n < 0 && errno != EINTR))
            return;
        for (int i = 0; n > 0 && i < 2; i++)
            on_stream(run, 1 + i, watch[i].revents);
    }
}

/* The sandbox is gone; what becomes of the workspace depends on how the program ended. */
static int end_place(struct run *run, struct carrel_error *err)
{
    struct carrel_run_result *result = run->result;
    bool is_success = result->reason == CARREL_EXITED && result->wait_status == 0;

    int r = outcome_reach(run->place, run->runtime, run->options->workspace, is_success,
            result->limits[LIMIT_DISK], &result->outcome, err);
    if (r < 0)
        return r;
    outcome_write_text(result->outcome, result->run, &result->summary);
    return 0;
}

/* What the pipes still hold is the program's last word also when it was killed. */
static int finish(struct run *run, uint64_t began_ns, struct carrel_error *err)
{
    struct carrel_run_result *result = run->result;

    int r = sandbox_stop(run->box, &result->usage, err);
    if (r < 0)
        return r;
    result->duration_ms = (clock_ns() - began_ns) / NS_PER_MS;
    if (!result->has_status && run->is_ending) {
        result->has_status = true;
        result->wait_status = SIGKILL;
    }
    flush(run);
    result_judge(result);
    r = run->place ? end_place(run, err) : 0;
    if (r < 0)
        return r;

    capture_text(&run->out, &result->stdout_text);
    capture_text(&run->err_out, &result->stderr_text);
    result->stdout_bytes = run->out.total;
    result->stderr_bytes = run->err_out.total;
    result->is_truncated =
            capture_is_truncated(&run->out) || capture_is_truncated(&run->err_out);
    if (run->out.file >= 0 && run->out.file_error == 0)
        result->stdout_file = strdup(run->out_path);
    if (run->err_out.file >= 0 && run->err_out.file_error == 0)
        result->stderr_file = strdup(run->err_path);
    r = result_write_json(result);
    return r < 0 ? err_set_errno(err, r, "result") : 0;
}

static int prepare_captures(struct run *run, struct carrel_error *err)
{
    struct carrel_run_result *result = run->result;
    char state[PATH_MAX];
    bool has_state = state_path(state, sizeof(state), NULL) == 0;

    if (has_state) {
        int n = snprintf(run->out_path, PATH_MAX, "%s/runs/%s/stdout", state, result->run);
        has_state = n > 0 && n < PATH_MAX;
        n = snprintf(run->err_path, PATH_MAX, "%s/runs/%s/stderr", state, result->run);
        has_state = has_state && n > 0 && n < PATH_MAX;
    }
    if (capture_init(&run->out, result->output_bytes, has_state ? run->out_path : NULL) < 0 ||
            capture_init(
                    &run->err_out, result->output_bytes, has_state ? run->err_path : NULL) < 0)
        return err_set_errno(err, -ENOMEM, "output buffers");
    return 0;
}

static struct run *run_new(const struct carrel_run_options *options)
{
    struct run *run = calloc(1, sizeof(*run));

    if (!run)
        return NULL;
    run->options = options;
    run->process = PROCESS_INIT;
    run->sinks[0] = run->sinks[1] = -1;
    run->out.file = run->err_out.file = -1;
    run->result = calloc(1, sizeof(*run->result));
    if (!run->result) {
        free(run);
        return NULL;
    }
    run->result->usage = USAGE_INIT;
    run->result->timeout_ms = options->timeout_ms ? options->timeout_ms : DEFAULT_TIMEOUT_MS;
    run->result->output_bytes =
            options->output_bytes ? options->output_bytes : DEFAULT_OUTPUT_BYTES;
    run->result->stdout_text = run->result->stderr_text = BUF_INIT(SIZE_MAX / 4);
    run->result->json = BUF_INIT(SIZE_MAX / 4);
    run->result->summary = BUF_INIT(64U << 10);
    run->watch = (struct disk_watch)DISK_WATCH_INIT;
    return run;
}

static void run_free(struct run *run)
{
    if (!run)
        return;
    process_close(run->process);
    fd_close(run->sinks[0]);
    fd_close(run->sinks[1]);
    sandbox_free(run->box);
    workplace_free(run->place); /* after the sandbox: it holds the lock */
    capture_finish(&run->out);
    capture_finish(&run->err_out);
    carrel_run_result_free(run->result);
    free(run);
}
DEFINE_AUTO(struct run *, run_free)

static int take_id(const char *given, const char *what, char prefix, char id[static 20],
        size_t size, struct carrel_error *err)
{
    if (!given)
        return state_new_id(prefix, id, err);
    (void)snprintf(id, size, "%s", given);
    return name_check_id(given, what, err);
}

/* The caller's ids, the workspace's when one is taken up again, or new ones. */
static int name_run(struct run *run, struct carrel_error *err)
{
    const struct carrel_workspace_options *o = run->options->workspace;
    struct carrel_run_result *result = run->result;

    if (!o)
        return state_new_id('R', result->run, err);
    if (o->resume)
        return workplace_find_ids(o->resume, result->task, result->run, err);
    int r = take_id(o->task, "task", 'T', result->task, sizeof(result->task), err);
    if (r == 0)
        r = take_id(o->run, "run", 'R', result->run, sizeof(result->run), err);
    return r;
}

/* No program ran: a workspace made for it holds nothing. */
static int drop_place(struct run *run, int code)
{
    if (!run->place || run->options->workspace->resume)
        return code;
    sandbox_free(ptr_steal(&run->box));
    (void)workplace_discard(run->place, true, NULL); /* else swept */
    return code;
}

int carrel_run(const struct carrel_run_options *options, struct carrel_run_result **out,
        struct carrel_error *err)
{
    struct carrel_error ignored;
    uint64_t began_ns = clock_ns();

    if (!err)
        err = &ignored;
    int r = check_options(options, err);
    if (r < 0)
        return r;
    AUTO(run_free) struct run *run = run_new(options);
    if (!run)
        return err_set_errno(err, -ENOMEM, "run");

    r = name_run(run, err);
    if (r == 0)
        r = prepare_captures(run, err);
    if (r == 0)
        r = create(run, err);
    if (r < 0)
        return drop_place(run, not_the_program(r, err));
    r = start(run, err);
    if (r < 0)
        return drop_place(run, r);
    run->deadline_ns = clock_ns() + run->result->timeout_ms * NS_PER_MS;
    start_pumps(run);
    r = follow(run, err);
    if (r == 0)
        r = finish(run, began_ns, err);
    if (r < 0)
        return r;
    *out = ptr_steal(&run->result);
    return 0;
}
