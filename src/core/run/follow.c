/*
 * follow.c - the loop of a run: output, input, the end of the program, the deadline, a signal.
 *
 * Nothing a program does can hold it: no write blocks, and a deadline is a deadline also for a
 * program that left others running.
 */
#include "core/run/follow.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/trim.h"
#include "core/disk/disk.h"
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
    if (f->may_linger) /* the sandbox goes on: what it leaves of its group is ended, too */
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
        (void)ioctl(f->process->stdin_fd, TIOCSWINSZ, &size);
}

static void on_signal(struct follow *f)
{
    const struct carrel_run_options *o = f->options;
    struct signalfd_siginfo info;

    if (read(o->signal_fd, &info, sizeof(info)) != (ssize_t)sizeof(info))
        return;
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
    }
    return 0;
}

/*
 * How a terminal's input ends. Within a line the first one only hands over what there is of it;
 * a program that reads on sees the end with the second.
 */
static void end_typing(struct pump *pump)
{
    const char last = pump->end > 0 ? pump->bytes[pump->end - 1] : '\n';
    const bool is_within_line = last != '\n' && last != '\r' && last != '\x04';

    pump_put(pump, "\x04\x04", is_within_line ? 2 : 1);
}

/* Closes what the pump is done with: the program sees end of file, or a broken pipe. */
static void on_stream(struct follow *f, int i, short revents)
{
    struct pump *pump = &f->pumps[i];
    int *const ours[] = { &f->process->stdin_fd, &f->process->stdout_fd,
        &f->process->stderr_fd };

    switch (pump_move(pump, revents)) {
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

void follow_begin(struct follow *f)
{
    const struct carrel_run_options *o = f->options;

    pump_init(&f->pumps[0], o->stdin_fd, f->process->stdin_fd, NULL);
    if (o->has_tty && o->stdin_fd < 0 && !f->is_visitor)
        end_typing(&f->pumps[0]); /* no typing to wait for */
    f->sinks[0] = pump_open_sink(o->stdout_fd);
    f->sinks[1] = pump_open_sink(o->stderr_fd);
    pump_init(&f->pumps[1], f->process->stdout_fd, f->sinks[0] < 0 ? o->stdout_fd : f->sinks[0],
            f->out);
    pump_init(&f->pumps[2], f->process->stderr_fd, f->sinks[1] < 0 ? o->stderr_fd : f->sinks[1],
            f->err);
    if (f->is_visitor) /* it was started for another terminal, or for none */
        pass_size(f);
}

enum { WATCH_STDIN, WATCH_STDOUT, WATCH_STDERR, WATCH_BOX, WATCH_SIGNAL, WATCHED };

int follow_to_end(struct follow *f, struct carrel_error *err)
{
    struct pollfd watch[WATCHED];
    uint64_t rest_ns = clock_ns() + TRIM_AFTER_MS * NS_PER_MS;

    while (!f->is_over) {
        for (int i = 0; i < 3; i++)
            pump_watch(&f->pumps[i], &watch[i]);
        watch[WATCH_BOX] = (struct pollfd){ .fd = f->box->event_fd, .events = POLLIN };
        watch[WATCH_SIGNAL] = (struct pollfd){ .fd = f->options->signal_fd, .events = POLLIN };
        uint64_t wake_ns =
                f->deadline_ns < f->disk->next_ns ? f->deadline_ns : f->disk->next_ns;
        int n = clock_poll(watch, WATCHED, wake_ns < rest_ns ? wake_ns : rest_ns);
        if (n < 0 && errno != EINTR)
            return err_set_errno(err, -errno, "poll");
        if (clock_ns() >= f->disk->next_ns && disk_poll(f->disk)) {
            f->is_ending = f->is_over = true; /* at once: every moment costs the host */
            f->reason = CARREL_DISK_LIMIT;
        }
        if (n > 0) {
            for (int i = 0; i < 3; i++)
                on_stream(f, i, watch[i].revents);
            if (watch[WATCH_SIGNAL].revents)
                on_signal(f);
            int r = watch[WATCH_BOX].revents ? on_event(f, err) : 0;
            if (r < 0)
                return r;
        }
        if (n == 0 && clock_ns() >= rest_ns) {
            trim_program(); /* once: what a run needs later is little */
            rest_ns = CLOCK_NEVER;
        }
        if (!f->is_over && clock_ns() >= f->deadline_ns) {
            if (f->is_ending)
                f->is_over = true;
            else
                begin_end(f, CARREL_TIMEOUT);
        }
    }
    return 0;
}

void follow_flush(struct follow *f)
{
    uint64_t deadline = f->is_ending ? clock_ns() + FLUSH_MS * NS_PER_MS : CLOCK_NEVER;
    struct pollfd watch[2];

    while (!pump_is_done(&f->pumps[1]) || !pump_is_done(&f->pumps[2])) {
        for (int i = 0; i < 2; i++)
            pump_watch(&f->pumps[1 + i], &watch[i]);
        bool is_empty = pump_is_empty(&f->pumps[1]) && pump_is_empty(&f->pumps[2]);
        int n = poll(watch, 2, f->may_linger && is_empty ? 0 : clock_poll_ms(deadline));
        if (n == 0 || (n < 0 && errno != EINTR))
            return;
        for (int i = 0; n > 0 && i < 2; i++)
            on_stream(f, 1 + i, watch[i].revents);
    }
}

int follow_output_error(const struct follow *f)
{
    return f->pumps[1].error < 0 ? f->pumps[1].error : f->pumps[2].error;
}

void follow_finish(struct follow *f)
{
    fd_close(f->sinks[0]);
    fd_close(f->sinks[1]);
}
