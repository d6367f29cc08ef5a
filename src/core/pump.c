/* pump.c - one stream in one direction. */
#include "core/pump.h"
#include <errno.h>
#include <limits.h>
#include <unistd.h>

void pump_init(struct pump *p, int from, int to, struct capture *capture)
{
    p->from = from;
    p->to = to;
    p->capture = capture;
    p->begin = p->end = 0;
}

bool pump_is_done(const struct pump *p)
{
    return p->from < 0 && p->begin == p->end;
}

void pump_watch(const struct pump *p, struct pollfd *watch)
{
    bool is_waiting_to_write = p->begin < p->end;

    *watch = (struct pollfd){
        .fd = is_waiting_to_write ? p->to : p->from,
        .events = is_waiting_to_write ? POLLOUT : POLLIN,
    };
}

static enum pump_state fill(struct pump *p)
{
    ssize_t n = read(p->from, p->bytes, sizeof(p->bytes));

    if (n < 0 && (errno == EINTR || errno == EAGAIN))
        return PUMP_GOES_ON;
    if (n <= 0) { /* EIO is how a terminal says that its last user has left */
        p->from = -1;
        return PUMP_SOURCE_ENDED;
    }
    if (p->capture)
        capture_add(p->capture, p->bytes, (size_t)n);
    p->begin = 0;
    p->end = p->to >= 0 ? (size_t)n : 0;
    return PUMP_GOES_ON;
}

/* poll() promises room for PIPE_BUF bytes, no more. */
static enum pump_state drain(struct pump *p)
{
    size_t len = p->end - p->begin < PIPE_BUF ? p->end - p->begin : PIPE_BUF;
    ssize_t n = write(p->to, p->bytes + p->begin, len);

    if (n < 0 && (errno == EINTR || errno == EAGAIN))
        return PUMP_GOES_ON;
    if (n < 0) {
        p->to = -1;
        p->begin = p->end = 0;
        return PUMP_SINK_CLOSED;
    }
    p->begin += (size_t)n;
    return PUMP_GOES_ON;
}

enum pump_state pump_move(struct pump *p, short revents)
{
    if (!revents)
        return PUMP_GOES_ON;
    return p->begin < p->end ? drain(p) : fill(p);
}
