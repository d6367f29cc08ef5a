/* wire.c - typed messages over packets. */
#include "runtime/wire.h"
#include "base/fd.h"
#include "base/packet.h"
#include <errno.h>
#include <string.h>

int wire_send(
        int sock, const struct wire_message *message, const int *fds, size_t n_fds, int flags)
{
    return packet_send(sock, message, sizeof(*message), fds, n_fds, flags);
}

int wire_receive(int sock, struct wire_message *message, int *fds, int flags)
{
    for (size_t i = 0; i < WIRE_MAX_FDS; i++)
        fds[i] = -1;
    int n = packet_receive(sock, message, sizeof(*message), fds, WIRE_MAX_FDS, flags);
    if (n < 0)
        return n;
    if (message->kind >= WIRE_MAPPED && message->kind < WIRE_READY)
        return n; /* messages of the host are trusted */
    if (message->kind >= WIRE_READY && message->kind <= WIRE_GONE &&
            memchr(message->error.message, '\0', sizeof(message->error.message)))
        return n;
    for (int i = 0; i < n; i++)
        fd_close(fd_steal(&fds[i]));
    return -EPROTO;
}

int wire_payload(struct wire_message *message, const int **fds, int *n_fds, struct payload *out)
{
    if (message->payload.len > 0)
        return payload_unpack(&message->payload, out);
    if (*n_fds < 1)
        return -EPROTO;
    (*n_fds)--;
    return payload_map(*(*fds)++, out);
}
