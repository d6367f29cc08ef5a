/* wire.c - typed messages over packets. */
#include "core/keeper/wire.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/packet.h"
#include "base/payload.h"
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#define READY_MS 10000 /* for room in the socket: the receiver may be gone */

int keeper_send(
        int sock, const struct keeper_message *message, const int *fds, size_t n_fds, int flags)
{
    return packet_send(sock, message, sizeof(*message), fds, n_fds, flags);
}

int keeper_receive(int sock, struct keeper_message *message, int *fds, int flags)
{
    for (size_t i = 0; i < KEEPER_MAX_FDS; i++)
        fds[i] = -1;
    int n = packet_receive(sock, message, sizeof(*message), fds, KEEPER_MAX_FDS, flags);
    if (n < 0)
        return n;
    if (message->kind >= KEEPER_HELLO && message->kind < KEEPER_DONE)
        return n;
    if (message->kind >= KEEPER_DONE && message->kind <= KEEPER_EXITED &&
            memchr(message->error.message, '\0', sizeof(message->error.message)))
        return n;
    for (int i = 0; i < n; i++)
        fd_close(fd_steal(&fds[i]));
    return -EPROTO;
}

void keeper_send_ready(int report, const struct keeper_ready *ready, int receipt)
{
    const uint64_t deadline = clock_ns() + READY_MS * UINT64_C(1000000);
    struct pollfd room = { .fd = report, .events = POLLOUT };

    while (packet_send(report, ready, sizeof(*ready), &receipt, receipt >= 0, MSG_DONTWAIT) ==
                    -EAGAIN &&
            clock_ns() < deadline)
        (void)poll(&room, 1, clock_poll_ms(deadline)); /* in any case it is sent again */
}

int keeper_receive_ready(int report, struct keeper_ready *ready, int *receipt)
{
    *receipt = -1;
    int n = packet_receive(report, ready, sizeof(*ready), receipt, 1, 0);
    if (n < 0)
        return n;
    ready->id[sizeof(ready->id) - 1] = '\0';
    const struct carrel_error told = ready->error;
    if (told.code != 0)
        (void)err_take(&ready->error, &told);
    ready->note[sizeof(ready->note) - 1] = '\0';
    bool has_receipt = ready->error.code == 0 && !ready->is_progress;
    if (ready->error.code <= 0 && has_receipt == (n == 1))
        return 0;
    fd_close(fd_steal(receipt));
    return -EPROTO;
}

int keeper_payload_read(struct keeper_message *request, const int **fds, int *n_fds, int max,
        struct payload *out, struct carrel_error *err)
{
    const int is_far = request->payload.len == 0;

    if (*n_fds < is_far || *n_fds > is_far + max)
        return err_set(err, -EPROTO, "%d descriptors with a request that takes %d", *n_fds,
                is_far + max);
    int r = is_far ? payload_read((*fds)[0], out) : payload_unpack(&request->payload, out);
    *fds += is_far;
    *n_fds -= is_far;
    if (r == -ENOTSUP)
        return err_set(err, -EPROTO, "the request's payload is not a memory file");
    if (r == -EPROTO)
        return err_set(err, r, "the request's payload is malformed");
    return r < 0 ? err_set_errno(err, r, "read the request") : 0;
}

int keeper_text_make(const char *text, size_t len, struct carrel_error *err)
{
    AUTO(fd_close) int fd = memfd_create("carrel", MFD_CLOEXEC);
    if (fd < 0)
        return err_set_errno(err, -errno, "memory file");
    int r = fd_write_all(fd, text, len);
    if (r < 0)
        return err_set_errno(err, r, "memory file");
    return fd_steal(&fd);
}

int keeper_text_read(int fd, struct buf *out, struct carrel_error *err)
{
    char chunk[16U << 10];
    off_t at = 0;

    for (;;) {
        ssize_t n = pread(fd, chunk, sizeof(chunk), at);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return err_set_errno(err, -errno, "answer of the sandbox's keeper");
        if (n == 0)
            return out->is_short ? err_set_errno(err, -ENOMEM, "answer of the keeper") : 0;
        buf_add(out, chunk, (size_t)n);
        at += n;
    }
}
