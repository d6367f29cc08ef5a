/* packet.h - messages with attached descriptors over a SOCK_SEQPACKET socket. */
#pragma once
#include <stddef.h>
#include <sys/types.h>

#define PACKET_MAX_FDS 8

/*
 * Sends one packet. Returns 0 or a negative errno; -EPIPE: the peer closed its end (no signal
 * is raised). `flags` may be MSG_DONTWAIT, then -EAGAIN: no room now.
 */
int packet_send(
        int sock, const void *data, size_t len, const int *fds, size_t n_fds, int flags);

/*
 * Receives one packet of exactly `len` bytes with at most `max_fds` descriptors, which are
 * stored in `fds` and are close-on-exec. Another size or more descriptors: -EPROTO, and all
 * received descriptors are closed. -EPIPE at the end; with MSG_DONTWAIT, -EAGAIN. Returns the
 * number of descriptors.
 */
int packet_receive(int sock, void *data, size_t len, int *fds, size_t max_fds, int flags);
