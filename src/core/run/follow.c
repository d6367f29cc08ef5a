/*
 * follow.c - the loop of a run: output, input, the end of the program, the deadline, a signal.
 *
 * No program can block it: no write blocks, and no process that it left delays the deadline.
 */
#include "core/run/follow.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/trim.h"
#include "core/disk/disk.h"
#include "core/result/result.h"
#include "runtime/runtime.h"
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#define GRACE_MS 500  /* between SIGTERM and SIGKILL */
#define FLUSH_MS 2000 /* for a caller that does not read, once the run was cut short */
#define NS_PER_MS UINT64_C(1000000)

static void begin_end(struct follow *f, enum carrel_reason reason)
{
    if (f->is_ending)
        return;
    f->is_ending = true;
    f->reason = reason;
    if (f->may_linger) /* the sandbox stays: the rest of the process group is ended, too */
        (void)sandbox_terminate(f->box, f->process->id, GRACE_MS, NULL);
    else
        (void)sandbox_signal(f->box, f->process->id, SIGTERM, NULL); /* SIGKILL follows */
    f->deadline_ns = clock_ns() + GRACE_MS * NS_PER_MS;
}

/* The program's terminal becomes as large as the caller's. A wrong size is harmless. */
static void pass_size(const struct follow *f)
{
    struct winsize size;

    if (f->options->has_tty && ioctl(f->options->stdin_fd, TIOCGWINSZ, &size) == 0)
        (void)sandbox_resize(f->box, f->process, size.ws_row, size.ws_col, NULL);
}

static void on_signal(struct follow *f)
{
    const struct carrel_run_options *o = f->options;
    struct signalfd_siginfo info = { 0 };

    ssize_t n = read(o->signal_fd, &info, sizeof(info));
    if (n < 0)
        return;
    if (n < (ssize_t)sizeof(info)) /* no signalfd: an eventfd, or the end of a pipe */
        info.ssi_signo = SIGTERM;
    if (info.ssi_signo != SIGWINCH) {
        f->cancel_signal = (int)info.ssi_signo;
        if (f->is_ending || f->is_visitor)
            f->is_over = true; /* asked twice, or nothing to wait for */
        if (f->is_visitor)
            f->reason = CARREL_CANCELLED;
        else
            begin_end(f, CARREL_CANCELLED);
    } else {
        pass_size(f);
    }
}

static int on_event(struct follow *f, struct carrel_error *err)
{
    struct sandbox_event event;

    int r = sandbox_next_event(f->box, &event, err);
    if (r < 0)
        return r;
    if (event.kind == EVENT_EXITED && event.process == f->process->id) {
        f->has_status = true;
        f->wait_status = event.wait_status;
        f->is_over = true;
    } else if (event.kind == EVENT_GONE) {
        f->is_over = true;
        f->is_lost = event.why == GONE_LOST;
    }
    return 0;
}

/*
 * EOT ends the input of a terminal. Within a line the first one only delivers what was typed of
 * it, and the second one is the end of file.
 */
static void end_typing(struct pump *pump)
{
    const char last = pump->end > 0 ? pump->bytes[pump->end - 1] : '\n';
    const bool is_within_line = last != '\n' && last != '\r' && last != '\x04';

    pump_put(pump, "\x04\x04", is_within_line ? 2 : 1);
}

/* Closes what the pump is done with: the program sees end of file, or a broken pipe. */
static void on_stream(struct follow *f, int i, uint32_t events)
{
    struct pump *pump = &f->pumps[i];
    int *const ours[] = { &f->process->stdin_fd, &f->process->stdout_fd,
        &f->process->stderr_fd };

    enum pump_state state = pump_move(pump, (short)events);
    f->has_moved = true;
    if (state != PUMP_GOES_ON)
        loop_io_stop(&f->streams[i]);
    switch (state) {
    case PUMP_GOES_ON:
        break;
    case PUMP_SOURCE_ENDED:
        if (i == 0 && f->options->has_tty)
            end_typing(pump);
        else if (i == 0)
            fd_close(fd_steal(ours[0]));
        break;
    case PUMP_SINK_CLOSED:
        pump->from = -1;
        if (!f->options->has_tty)
            fd_close(fd_steal(ours[i]));
        break;
    }
}

static void begin_pumps(struct follow *f)
{
    const struct carrel_run_options *o = f->options;

    pump_init(&f->pumps[0], o->stdin_fd, f->process->stdin_fd, NULL);
    if (o->has_tty && o->stdin_fd < 0 && !f->is_visitor)
        end_typing(&f->pumps[0]); /* there is no input */
    f->sinks[0] = pump_open_sink(o->stdout_fd);
    f->sinks[1] = pump_open_sink(o->stderr_fd);
    pump_init(&f->pumps[1], f->process->stdout_fd, f->sinks[0] < 0 ? o->stdout_fd : f->sinks[0],
            f->out);
    pump_init(&f->pumps[2], f->process->stderr_fd, f->sinks[1] < 0 ? o->stderr_fd : f->sinks[1],
            f->err);
    f->pumps[1].never_blocks = f->sinks[0] >= 0;
    f->pumps[2].never_blocks = f->sinks[1] >= 0;
    if (f->is_visitor) /* it was started for another terminal, or for none */
        pass_size(f);
}

/* --- the loop --- */

static int on_stdin(struct loop_io *io, uint32_t events, struct carrel_error *err)
{
    (void)err;
    on_stream(container_of(io, struct follow, streams[0]), 0, events);
    return 0;
}

static int on_stdout(struct loop_io *io, uint32_t events, struct carrel_error *err)
{
    (void)err;
    on_stream(container_of(io, struct follow, streams[1]), 1, events);
    return 0;
}

static int on_stderr(struct loop_io *io, uint32_t events, struct carrel_error *err)
{
    (void)err;
    on_stream(container_of(io, struct follow, streams[2]), 2, events);
    return 0;
}

static int on_box(struct loop_io *io, uint32_t events, struct carrel_error *err)
{
    (void)events;
    return on_event(container_of(io, struct follow, box_events), err);
}

static int on_signal_fd(struct loop_io *io, uint32_t events, struct carrel_error *err)
{
    (void)events;
    (void)err;
    on_signal(container_of(io, struct follow, signals));
    return 0;
}

static int on_deadline(struct loop_timer *timer, struct carrel_error *err)
{
    struct follow *f = container_of(timer, struct follow, deadline);

    (void)err;
    if (f->is_flushing)
        f->is_flushed = true;
    else if (f->is_ending)
        f->is_over = true;
    else
        begin_end(f, CARREL_TIMEOUT);
    return 0;
}

static int on_disk(struct loop_timer *timer, struct carrel_error *err)
{
    struct follow *f = container_of(timer, struct follow, disk_look);

    (void)err;
    if (disk_poll(f->disk)) {
        f->is_ending = f->is_over = true; /* without a grace period */
        f->reason = CARREL_DISK_LIMIT;
    }
    return 0;
}

/* Once: what a run needs later is little. */
static int on_trim(struct loop_timer *timer, struct carrel_error *err)
{
    (void)timer;
    (void)err;
    trim_program();
    return 0;
}

/* follow_to_end() looks how long. */
static int on_rest(struct loop_timer *timer, struct carrel_error *err)
{
    (void)timer;
    (void)err;
    return 0;
}

int follow_begin(struct follow *f, struct carrel_error *err)
{
    static loop_io_call *const calls[] = { on_stdin, on_stdout, on_stderr };

    begin_pumps(f);
    pace_begin(&f->pace, f->cpu_milli);
    int r = loop_init(&f->loop, err);
    for (size_t i = 0; i < ARRAY_LEN(calls); i++)
        loop_io_init(&f->streams[i], &f->loop, calls[i]);
    loop_io_init(&f->box_events, &f->loop, on_box);
    loop_io_init(&f->signals, &f->loop, on_signal_fd);
    loop_timer_init(&f->deadline, &f->loop, on_deadline);
    loop_timer_init(&f->disk_look, &f->loop, on_disk);
    loop_timer_init(&f->trim, &f->loop, on_trim);
    loop_timer_init(&f->rest, &f->loop, on_rest);
    loop_timer_set(&f->trim, clock_ns() + TRIM_AFTER_MS * NS_PER_MS);
    if (r == 0)
        r = loop_io_watch(&f->box_events, f->box->event_fd, EPOLLIN, err);
    return r < 0 ? r : loop_io_watch(&f->signals, f->options->signal_fd, EPOLLIN, err);
}

/* Which side of a stream is waited for changes with each move. */
static void watch_streams(struct follow *f, int first)
{
    for (int i = first; i < 3; i++) {
        struct pollfd wanted;
        pump_watch(&f->pumps[i], &wanted);
        if (i > 0 && f->rest_ns)
            wanted.events = 0;
        if (loop_io_watch(&f->streams[i], wanted.fd, (uint32_t)wanted.events, NULL) < 0)
            on_stream(f, i, EPOLLERR); /* a descriptor that is none: reading it says so */
    }
}

int follow_to_end(struct follow *f, struct carrel_error *err)
{
    int r = 0;

    while (r == 0 && !f->is_over) {
        f->rest_ns = pace_look(&f->pace);
        watch_streams(f, 0);
        loop_timer_set(&f->rest, f->rest_ns ? f->rest_ns : CLOCK_NEVER);
        loop_timer_set(&f->deadline, f->deadline_ns);
        loop_timer_set(&f->disk_look, f->disk->next_ns);
        r = loop_turn(&f->loop, err);
    }
    loop_io_stop(&f->box_events);
    loop_io_stop(&f->signals);
    loop_io_stop(&f->streams[0]);
    loop_timer_set(&f->deadline, CLOCK_NEVER);
    loop_timer_set(&f->disk_look, CLOCK_NEVER);
    loop_timer_set(&f->trim, CLOCK_NEVER);
    loop_timer_set(&f->rest, CLOCK_NEVER);
    f->rest_ns = 0;
    return r;
}

void follow_flush(struct follow *f)
{
    const bool is_cut_short = f->is_ending || f->is_lost;
    const uint64_t deadline_ns = is_cut_short ? clock_ns() + FLUSH_MS * NS_PER_MS : CLOCK_NEVER;

    f->is_flushing = true;
    while (!f->is_flushed && (!pump_is_done(&f->pumps[1]) || !pump_is_done(&f->pumps[2]))) {
        bool is_empty = pump_is_empty(&f->pumps[1]) && pump_is_empty(&f->pumps[2]);
        watch_streams(f, 1);
        /* The deadline, or else no wait: what is in the pipes now is all. */
        loop_timer_set(&f->deadline, f->may_linger && is_empty ? 1 : deadline_ns);
        f->has_moved = false;
        if (loop_turn(&f->loop, NULL) < 0)
            return;
        f->is_flushed = f->is_flushed && !f->has_moved;
    }
}

/* A program that was told to end, and whose end was not seen, was killed with its sandbox. */
void follow_conclude(const struct follow *f, struct carrel_run_result *result)
{
    result->reason = f->is_lost ? CARREL_INFRASTRUCTURE : f->reason;
    result->is_lost = f->is_lost;
    result->cancel_signal = f->cancel_signal;
    result->has_status = f->has_status || (f->is_ending && !f->is_lost);
    result->wait_status = f->has_status ? f->wait_status : SIGKILL;
}

int follow_output_error(const struct follow *f)
{
    return f->pumps[1].error < 0 ? f->pumps[1].error : f->pumps[2].error;
}

void follow_finish(struct follow *f)
{
    loop_finish(&f->loop);
    fd_close(f->sinks[0]);
    fd_close(f->sinks[1]);
}
