/* packet.c - SOCK_SEQPACKET and SCM_RIGHTS, see unix(7). */
#include "base/packet.h"
#include "base/fd.h"
#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>

union control {
    char bytes[CMSG_SPACE(PACKET_MAX_FDS * sizeof(int))];
    struct cmsghdr align;
};

/* sendmsg() does not write to its buffers, but struct msghdr is not const. */
static void *unconst(const void *data)
{
    void *plain;

    memcpy(&plain, &data, sizeof(plain));
    return plain;
}

int packet_send(int sock, const void *data, size_t len, const int *fds, size_t n_fds, int flags)
{
    union control control = { 0 };
    struct iovec io = { .iov_base = unconst(data), .iov_len = len };
    struct msghdr header = { .msg_iov = &io, .msg_iovlen = 1 };
    ssize_t n;

    assert(n_fds <= PACKET_MAX_FDS);
    if (n_fds > 0) {
        header.msg_control = control.bytes;
        header.msg_controllen = CMSG_SPACE(n_fds * sizeof(int));
        struct cmsghdr *c = CMSG_FIRSTHDR(&header);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(n_fds * sizeof(int));
        memcpy(CMSG_DATA(c), fds, n_fds * sizeof(int));
    }
    do {
        n = sendmsg(sock, &header, flags | MSG_NOSIGNAL);
    } while (n < 0 && errno == EINTR);
    if (n < 0)
        return errno == ECONNRESET ? -EPIPE : -errno;
    return 0;
}

/*
 * Extracts every descriptor from the control data first, so that all are owned on any failure.
 */
static size_t take(struct msghdr *header, int taken[static PACKET_MAX_FDS])
{
    size_t n = 0;

    for (struct cmsghdr *c = CMSG_FIRSTHDR(header); c; c = CMSG_NXTHDR(header, c)) {
        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
            continue;
        size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (size_t i = 0; i < count && n < PACKET_MAX_FDS; i++)
            memcpy(&taken[n++], CMSG_DATA(c) + i * sizeof(int), sizeof(int));
    }
    return n;
}

int packet_receive(int sock, void *data, size_t len, int *fds, size_t max_fds, int flags)
{
    union control control;
    struct iovec io = { .iov_base = data, .iov_len = len };
    struct msghdr header = {
        .msg_iov = &io,
        .msg_iovlen = 1,
        .msg_control = control.bytes,
        .msg_controllen = sizeof(control.bytes),
    };
    int taken[PACKET_MAX_FDS];
    ssize_t n;

    assert(max_fds <= PACKET_MAX_FDS);
    /*
     * ECONNRESET: the peer closed the socket with unread data of ours. It is reported once,
     * before the packets that the peer had sent; the next call returns those, or the end.
     */
    do {
        n = recvmsg(sock, &header, flags | MSG_CMSG_CLOEXEC);
    } while (n < 0 && (errno == EINTR || errno == ECONNRESET));
    if (n < 0)
        return -errno;

    size_t n_taken = take(&header, taken);
    bool is_whole = n == (ssize_t)len && !(header.msg_flags & (MSG_TRUNC | MSG_CTRUNC));
    if (is_whole && n_taken <= max_fds) {
        if (n_taken > 0)
            memcpy(fds, taken, n_taken * sizeof(int));
        return (int)n_taken;
    }
    for (size_t i = 0; i < n_taken; i++)
        fd_close(taken[i]);
    return n == 0 ? -EPIPE : -EPROTO;
}
