/*
 * netlink.h - the netlink sockets of a sandbox's programs, which init makes for them.
 *
 * The kernel charges nobody for the answers that wait in such a socket, up to twice
 * net.core.rmem_max in each: 8 MB on Linux 6.18. Programs need one for a moment, to learn their
 * interfaces (getifaddrs), so that a small number at a time is enough; with thousands of them
 * one sandbox would take all memory of the machine, whatever its limit is. No limit of the
 * kernel counts them. So the filter has programs wait, init counts, and hands out one more or
 * refuses.
 */
#pragma once

#define NETLINK_MOST 8 /* at a time, in a sandbox */
#define NETLINK_MOST_MORE                                                                      \
    32 /* on the host's network: beyond what is there, its own included                        \
        */

/*
 * How many there are in our network namespace, of whomever; the kernel's own do not count.
 * -1: nobody knows.
 */
int netlink_count(void);

/*
 * Answers one program that waits at `listener` for its socket() call: with a socket, unless
 * there are `most` already (ENOBUFS), or nobody knows how many there are. Never blocks for
 * long, and never fails: a program that has ended meanwhile needs no answer.
 */
void netlink_answer(int listener, int most);
