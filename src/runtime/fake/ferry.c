/* ferry.c - see ferry.h. One loop over poll(2); nothing is allocated after the clone. */
#include "runtime/fake/ferry.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/packet.h"
#include "base/process.h"
#include "runtime/runtime.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/sched.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define MANY (5 * 1024)       /* streams, of as many programs as a sandbox has */
#define LARGE_PIPE (1U << 20) /* what an ordinary user may ask for; pipe(7) */

enum order_kind { ORDER_CARRY, ORDER_RESIZE, ORDER_FLUSH };

struct order {
    enum order_kind kind;
    uint32_t process;
    bool is_input; /* to the program */
    uint16_t rows, cols;
};

struct stream {
    int from; /* -1: free */
    int to;
    uint32_t process;
    bool is_input;
    bool has_ended; /* `from` has; what is in `bytes` is still to be written */
    size_t at, end;
    char bytes[PIPE_BUF];
};

/* Of the process; the caller has none of it. */
struct crossing {
    int control;
    int owner;
    bool is_left; /* the caller has closed its end */
    size_t n;     /* slots ever used */
    struct stream streams[MANY];
    struct pollfd polled[2 + 2 * MANY];
};

static void stream_close(struct stream *stream)
{
    fd_close(fd_steal(&stream->from));
    fd_close(fd_steal(&stream->to));
}

/* One read or one write. Returns whether something changed. */
static bool stream_move(struct stream *stream)
{
    if (stream->from < 0)
        return false;
    if (stream->at < stream->end) {
        ssize_t n = write(stream->to, stream->bytes + stream->at, stream->end - stream->at);
        if (n < 0 && errno != EAGAIN && errno != EINTR)
            stream_close(stream); /* no reader */
        else if (n > 0)
            stream->at += (size_t)n;
        return n > 0 || stream->from < 0;
    }
    if (stream->has_ended) {
        stream_close(stream);
        return true;
    }
    ssize_t n = read(stream->from, stream->bytes, sizeof(stream->bytes));
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return false;
    stream->at = 0;
    stream->end = n > 0 ? (size_t)n : 0;
    stream->has_ended = n <= 0; /* a terminal ends with EIO */
    return true;
}

static int carry(struct crossing *crossing, const struct order *order, const int fds[static 2])
{
    size_t i = 0;

    while (i < crossing->n && crossing->streams[i].from >= 0)
        i++;
    if (i == MANY)
        return -EAGAIN;
    int r = fd_set_nonblocking(fds[0]);
    if (r == 0)
        r = fd_set_nonblocking(fds[1]);
    if (r < 0)
        return r;
    if (i == crossing->n)
        crossing->n++;
    struct stream *stream = &crossing->streams[i];
    stream->from = fds[0];
    stream->to = fds[1];
    stream->process = order->process;
    stream->is_input = order->is_input;
    stream->has_ended = false;
    stream->at = stream->end = 0;
    return 0;
}

static int resize(const struct crossing *crossing, const struct order *order)
{
    const struct winsize size = { .ws_row = order->rows, .ws_col = order->cols };

    for (size_t i = 0; i < crossing->n; i++) {
        const struct stream *stream = &crossing->streams[i];
        if (stream->from >= 0 && stream->process == order->process &&
                ioctl(stream->is_input ? stream->to : stream->from, TIOCSWINSZ, &size) == 0)
            return 0;
    }
    return -ENOTTY;
}

/* Returns how many streams are left because their readers take no more now. */
static int flush(struct crossing *crossing)
{
    int n_left = 0;

    for (size_t i = 0; i < crossing->n; i++) {
        struct stream *stream = &crossing->streams[i];
        if (stream->is_input)
            stream_close(stream);
        while (stream_move(stream))
            ;
        if (stream->from >= 0 && fcntl(stream->to, F_SETPIPE_SZ, LARGE_PIPE) > 0)
            while (stream_move(stream))
                ;
        n_left += stream->from >= 0;
    }
    return n_left;
}

static void obey(struct crossing *crossing)
{
    struct order order;
    int fds[2];
    int r = packet_receive(crossing->control, &order, sizeof(order), fds, 2, MSG_DONTWAIT);

    if (r == -EAGAIN)
        return;
    if (r < 0) {
        crossing->is_left = true;
        return;
    }
    switch (order.kind) {
    case ORDER_CARRY:
        r = r == 2 ? carry(crossing, &order, fds) : -EPROTO;
        break;
    case ORDER_RESIZE:
        r = resize(crossing, &order);
        break;
    case ORDER_FLUSH:
        r = flush(crossing);
        break;
    }
    (void)packet_send(crossing->control, &r, sizeof(r), NULL, 0, 0);
}

/* Both ends of each stream: one that has no reader any more must end at once. */
static nfds_t watch(struct crossing *crossing)
{
    nfds_t n = 2;

    crossing->polled[0] = (struct pollfd){ .fd = crossing->is_left ? -1 : crossing->control,
        .events = POLLIN };
    crossing->polled[1] = (struct pollfd){ .fd = crossing->owner, .events = POLLIN };
    for (size_t i = 0; i < crossing->n; i++) {
        const struct stream *stream = &crossing->streams[i];
        bool is_full = stream->at < stream->end;
        crossing->polled[n++] =
                (struct pollfd){ .fd = is_full ? -1 : stream->from, .events = POLLIN };
        crossing->polled[n++] =
                (struct pollfd){ .fd = stream->to, .events = is_full ? POLLOUT : 0 };
    }
    return n;
}

static bool is_done(const struct crossing *crossing)
{
    for (size_t i = 0; i < crossing->n; i++)
        if (crossing->streams[i].from >= 0)
            return false;
    return crossing->is_left;
}

_Noreturn static void cross(struct crossing *crossing)
{
    const int keep[] = { crossing->control, crossing->owner };

    (void)prctl(PR_SET_NAME, "carrel-ferry");
    signals_reset();
    fd_close_all_but(keep, ARRAY_LEN(keep));
    fd_raise_limit();
    while (!is_done(crossing)) {
        nfds_t n = watch(crossing);
        if (poll(crossing->polled, n, -1) < 0 || crossing->polled[1].revents)
            break;
        for (size_t i = 0; 2 + 2 * i < n; i++) {
            struct stream *stream = &crossing->streams[i];
            if (crossing->polled[3 + 2 * i].revents & (POLLERR | POLLHUP))
                stream_close(stream);
            else if (crossing->polled[2 + 2 * i].revents || crossing->polled[3 + 2 * i].revents)
                (void)stream_move(stream);
        }
        if (crossing->polled[0].revents)
            obey(crossing);
    }
    _exit(EXIT_SUCCESS);
}

long ferry_clone(int *pidfd)
{
    sigset_t before;

    signals_block(&before);
    long pid = syscall(SYS_clone, (long)CLONE_PIDFD, NULL, pidfd, NULL, 0L);
    if (pid == 0)
        return 0;
    int r = -errno;
    signals_unblock(&before);
    return pid < 0 ? r : pid;
}

int ferry_start(struct ferry *ferry, struct carrel_error *err)
{
    AUTO(free) struct crossing *crossing = calloc(1, sizeof(*crossing));
    int pair[2];

    if (!crossing)
        return err_set_errno(err, -ENOMEM, "start a ferry");
    AUTO(fd_close) int owner = pidfd_open(getpid(), 0);
    if (owner < 0 || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return err_set_errno(err, -errno, "connect a ferry");
    crossing->control = pair[1];
    crossing->owner = owner;
    long pid = ferry_clone(&ferry->pidfd);
    if (pid == 0)
        cross(crossing);
    fd_close(pair[1]);
    ferry->control = pair[0];
    return pid < 0 ? err_set_errno(err, (int)pid, "start a ferry") : 0;
}

static int ask(struct ferry *ferry, const struct order *order, const int *fds, size_t n_fds)
{
    int answer = 0;

    int r = packet_send(ferry->control, order, sizeof(*order), fds, n_fds, 0);
    if (r == 0)
        r = packet_receive(ferry->control, &answer, sizeof(answer), NULL, 0, 0);
    return r < 0 ? r : answer;
}

/* Gives one stream away; *fd becomes the caller's end of a new pipe. */
static int take(
        struct ferry *ferry, uint32_t process, int *fd, bool is_input, struct carrel_error *err)
{
    const struct order order = {
        .kind = ORDER_CARRY, .process = process, .is_input = is_input
    };
    int ends[2];

    if (*fd < 0)
        return 0;
    if (pipe2(ends, O_CLOEXEC) < 0)
        return err_set_errno(err, -errno, "make a pipe");
    const int fds[2] = { is_input ? ends[0] : *fd, is_input ? *fd : ends[1] };
    int r = ask(ferry, &order, fds, 2);
    fd_close(*fd);
    fd_close(ends[is_input ? 0 : 1]);
    *fd = ends[is_input ? 1 : 0];
    return r < 0 ? err_set_errno(err, r, "hand a stream to the ferry") : 0;
}

int ferry_take(struct ferry *ferry, struct process *process, struct carrel_error *err)
{
    const struct {
        int *fd;
        bool is_input;
    } all[] = {
        { &process->stdin_fd, true },
        { &process->stdout_fd, false },
        { &process->stderr_fd, false },
        { &process->extra_fds[0], true },
        { &process->extra_fds[1], false },
    };
    int r = 0;

    for (size_t i = 0; r == 0 && i < ARRAY_LEN(all); i++)
        r = take(ferry, process->id, all[i].fd, all[i].is_input, err);
    return r;
}

int ferry_resize(struct ferry *ferry, uint32_t process, uint16_t rows, uint16_t cols,
        struct carrel_error *err)
{
    const struct order order = {
        .kind = ORDER_RESIZE, .process = process, .rows = rows, .cols = cols
    };

    int r = ask(ferry, &order, NULL, 0);
    if (r == -ENOTTY)
        return err_set(err, r, "the process has no terminal");
    return r < 0 ? err_set_errno(err, r, "resize a terminal") : 0;
}

int ferry_flush(struct ferry *ferry, struct carrel_error *err)
{
    const struct order order = { .kind = ORDER_FLUSH };

    int r = ask(ferry, &order, NULL, 0);
    if (r < 0)
        return err_set_errno(err, r, "deliver the output");
    ferry->n_left = r;
    return 0;
}

void ferry_kill(struct ferry *ferry)
{
    if (ferry->pidfd >= 0)
        (void)pidfd_send_signal(ferry->pidfd, SIGKILL, NULL, 0);
    ferry->n_left = 0;
}

void ferry_finish(struct ferry *ferry)
{
    if (ferry->control >= 0)
        (void)ferry_flush(ferry, NULL); /* fails if it was killed */
    fd_close(fd_steal(&ferry->control));
    if (ferry->pidfd >= 0 && ferry->n_left == 0)
        while (waitid(P_PIDFD, (id_t)ferry->pidfd, NULL, WEXITED | __WALL) < 0 &&
                errno == EINTR)
            ;
    fd_close(fd_steal(&ferry->pidfd));
}
