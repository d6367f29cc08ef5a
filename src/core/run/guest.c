/* guest.c - see guest.h. Nothing that comes from the guest is trusted, and nothing blocks. */
#include "core/run/guest.h"
#include "base/auto.h"
#include "base/err.h"
#include "base/fd.h"
#include "runtime/runtime.h"
#include <errno.h>
#include <string.h>
#include <unistd.h>

#define GO_AHEAD "\n"

static void close_task(struct guest *g)
{
    loop_io_stop(&g->on_task);
    fd_close(fd_steal(&g->process->extra_fds[0]));
}

static void close_report(struct guest *g)
{
    loop_io_stop(&g->on_report);
    fd_close(fd_steal(&g->process->extra_fds[1]));
}

/* A guest that has exited reads nothing any more: its exit says why. */
static int write_task(struct loop_io *io, uint32_t events, struct carrel_error *err)
{
    struct guest *g = container_of(io, struct guest, on_task);

    (void)events;
    (void)err;
    ssize_t n = fd_write_no_signal(
            g->process->extra_fds[0], g->task + g->written, g->task_len - g->written);
    if (n < 0 && errno != EAGAIN && errno != EINTR)
        close_task(g);
    else if (n > 0)
        g->written += (size_t)n;
    if (g->written == g->task_len)
        loop_io_stop(io); /* it stays open until the findings are here */
    return 0;
}

/* The guest may start the program. Findings that are too long end it instead. */
static void answer_findings(struct guest *g)
{
    if (g->process->extra_fds[0] >= 0 && g->has_findings)
        (void)fd_write_no_signal(g->process->extra_fds[0], GO_AHEAD, strlen(GO_AHEAD));
    close_task(g);
}

static void take(struct guest *g, const char *data, size_t len)
{
    const char *end = g->has_findings ? data : memchr(data, '\n', len);

    if (!g->has_findings) {
        buf_add(&g->findings, data, end ? (size_t)(end - data) : len);
        g->has_findings = end && !g->findings.is_short;
        if (end || g->findings.is_short)
            answer_findings(g);
        if (!end)
            return;
        end++;
    }
    buf_add(&g->report, end, len - (size_t)(end - data));
}

/* False: there is no more for now, or at all. */
static bool read_some(struct guest *g)
{
    char chunk[16U << 10];

    ssize_t n = read(g->process->extra_fds[1], chunk, sizeof(chunk));
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return false;
    if (n > 0)
        take(g, chunk, (size_t)n);
    if (n > 0 && !g->findings.is_short && !g->report.is_short)
        return true;
    close_report(g); /* at its end, or over its limit */
    return false;
}

static int read_report(struct loop_io *io, uint32_t events, struct carrel_error *err)
{
    (void)events;
    (void)err;
    (void)read_some(container_of(io, struct guest, on_report));
    return 0;
}

int guest_begin(
        struct guest *g, struct loop *loop, struct process *process, struct carrel_error *err)
{
    g->process = process;
    loop_io_init(&g->on_task, loop, write_task);
    loop_io_init(&g->on_report, loop, read_report);
    for (size_t i = 0; i < PROCESS_EXTRA; i++) {
        int r = fd_set_nonblocking(process->extra_fds[i]);
        if (r < 0)
            return err_set_errno(err, r, "streams of the guest");
    }
    int r = loop_io_watch(&g->on_task, process->extra_fds[0], EPOLLOUT, err);
    return r < 0 ? r : loop_io_watch(&g->on_report, process->extra_fds[1], EPOLLIN, err);
}

void guest_end(struct guest *g)
{
    if (!g->process)
        return;
    close_task(g);
    while (g->process->extra_fds[1] >= 0 && read_some(g))
        ;
    close_report(g);
}

void guest_finish(struct guest *g)
{
    buf_finish(g->findings);
    buf_finish(g->report);
}
