/*
 * network.c - a thread that creates a network namespace.
 *
 * It is a bare kernel thread of this process: the C library does not know it, and it shares the
 * caller's thread-local memory, including errno. So it only makes system calls: one that
 * succeeds does not change errno, and if one fails, the whole setup fails. It writes its result
 * into struct netmaker, and has exited before anything reads that.
 */
#include "runtime/local/inside/network.h"
#include "base/auto.h"
#include "base/err.h"
#include "base/fd.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

/*
 * A second address of lo, which leads nowhere. With 127.0.0.1 alone getaddrinfo() takes IPv4
 * for not configured: with AI_ADDRCONFIG and AF_INET, as many libraries ask, it does not even
 * find localhost.
 */
#define OWN_ADDRESS 0x0a00020fU /* 10.0.2.15 */

static int set_address(int sock, unsigned long request, uint32_t value)
{
    struct ifreq alias = { .ifr_name = "lo:1" };
    const struct sockaddr_in address = { .sin_family = AF_INET,
        .sin_addr.s_addr = htonl(value) };

    memcpy(&alias.ifr_addr, &address, sizeof(address));
    return ioctl(sock, request, &alias);
}

static int raise_loopback(void)
{
    struct ifreq request = { .ifr_name = "lo", .ifr_flags = IFF_UP };
    int sock = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    if (sock < 0 || ioctl(sock, SIOCSIFFLAGS, &request) < 0 ||
            set_address(sock, SIOCSIFADDR, OWN_ADDRESS) < 0 ||
            set_address(sock, SIOCSIFNETMASK, UINT32_MAX) < 0)
        return -errno; /* the process exits, and its descriptors are closed */
    (void)close(sock); /* not fd_close(), which restores errno */
    return 0;
}

static int make(void *arg)
{
    struct netmaker *network = arg;

    if (unshare(CLONE_NEWNET) < 0) {
        network->code = -errno;
        network->what = "make a network namespace";
        return 0;
    }
    network->code = raise_loopback();
    if (network->code < 0) {
        network->what = "raise the loopback interface";
        return 0;
    }
    network->fd = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
    if (network->fd < 0) {
        network->code = -errno;
        network->what = "open the network namespace";
    }
    return 0;
}

int network_begin(struct netmaker *network, char *stack_end, struct carrel_error *err)
{
    const int flags = CLONE_VM | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM |
                      CLONE_PARENT_SETTID | CLONE_CHILD_CLEARTID;

    *network = (struct netmaker){ .fd = -1 };
    if (clone(make, stack_end, flags, network, &network->running, NULL, &network->running) < 0)
        return err_set_errno(err, -errno, "start a thread for the network namespace");
    return 0;
}

int network_join(struct netmaker *network, struct carrel_error *err)
{
    int tid;

    while ((tid = __atomic_load_n(&network->running, __ATOMIC_ACQUIRE)) != 0)
        (void)syscall(SYS_futex, &network->running, FUTEX_WAIT, tid, NULL, NULL, 0);
    AUTO(fd_close) int fd = network->fd;
    if (network->code < 0)
        return err_set_errno(err, network->code, "%s", network->what);
    if (setns(fd, CLONE_NEWNET) < 0)
        return err_set_errno(err, -errno, "enter the network namespace");
    return 0;
}
