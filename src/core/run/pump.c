/* pump.c - one stream in one direction. */
#include "core/run/pump.h"
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

int pump_open_sink(int fd)
{
    char path[32];
    struct stat st;

    if (fd < 0 || fstat(fd, &st) < 0 || !(S_ISFIFO(st.st_mode) || S_ISCHR(st.st_mode)))
        return -1; /* a file does not block; a socket is asked not to with each write */
    (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    return open(path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
}

void pump_init(struct pump *p, int from, int to, struct capture *capture)
{
    p->from = from;
    p->to = to;
    p->capture = capture;
    p->begin = p->end = 0;
    p->error = 0;
    p->never_blocks = false;
}

void pump_put(struct pump *p, const char *bytes, size_t len)
{
    assert(p->begin == p->end && len <= sizeof(p->bytes));
    memcpy(p->bytes, bytes, len);
    p->begin = 0;
    p->end = len;
}

bool pump_is_done(const struct pump *p)
{
    return p->from < 0 && p->begin == p->end;
}

bool pump_is_empty(const struct pump *p)
{
    return p->begin == p->end;
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
    if (n <= 0) { /* EIO: the last user of the terminal has closed it */
        p->from = -1;
        return PUMP_SOURCE_ENDED;
    }
    if (p->capture)
        capture_add(p->capture, p->bytes, (size_t)n);
    p->begin = 0;
    p->end = p->to >= 0 ? (size_t)n : 0;
    return PUMP_GOES_ON;
}

/* There is no reader: a closed pipe, socket, descriptor, or a terminal that hung up. */
static bool has_left(int code)
{
    return code == EPIPE || code == ECONNRESET || code == EBADF || code == EIO;
}

/* For a blocking sink PIPE_BUF at most: poll() promises so much. */
static enum pump_state drain(struct pump *p)
{
    size_t len = p->end - p->begin;

    if (!p->never_blocks && len > PIPE_BUF)
        len = PIPE_BUF;
    ssize_t n = send(p->to, p->bytes + p->begin, len, MSG_DONTWAIT | MSG_NOSIGNAL);

    if (n < 0 && errno == ENOTSOCK)
        n = write(p->to, p->bytes + p->begin, len);
    if (n < 0 && (errno == EINTR || errno == EAGAIN))
        return PUMP_GOES_ON;
    if (n < 0) {
        p->error = has_left(errno) ? 0 : -errno;
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
