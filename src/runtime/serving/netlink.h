/*
 * netlink.h - init creates netlink sockets for the sandbox's programs.
 *
 * The kernel charges no memory cgroup for the answers queued in such a socket, up to twice
 * net.core.rmem_max in each: 8 MB on Linux 6.18. Programs need one for a moment, to list their
 * interfaces (getifaddrs), so a small number at a time is enough; with thousands of them one
 * sandbox could exhaust the machine's memory, whatever its limit. No limit of the kernel counts
 * them. So the filter makes programs wait, and init counts and creates one more or refuses.
 */
#pragma once

struct seccomp_notif;

#define NETLINK_MOST 8 /* at a time, in a sandbox */
#define NETLINK_MOST_MORE                                                                      \
    32 /* on the host's network: beyond the existing ones, including its own */

/*
 * How many sockets there are in our network namespace, of all processes; the kernel's own do
 * not count. -1: unknown.
 */
int netlink_count(void);

/*
 * Answers a program that waits at `listener` for its socket() call (asked.h): with a socket,
 * unless there are `most` already (ENOBUFS), or the number is unknown.
 */
void netlink_answer(int listener, const struct seccomp_notif *request, int most);
