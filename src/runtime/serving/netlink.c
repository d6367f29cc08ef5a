/* netlink.c - counts, creates and hands over sockets, in init, which alone is allowed to. */
#include "runtime/serving/netlink.h"
#include "base/auto.h"
#include "base/fd.h"
#include "runtime/serving/seccomp_rules.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

/*
 * One line per protocol: name, size of a socket, and number of sockets in this namespace. It
 * counts sockets from socket() to the last close; /proc/net/netlink would leave out those that
 * have not sent anything yet.
 */
int netlink_count(void)
{
    static const char name[] = "\nNETLINK ";
    char table[8192];
    char *end;

    if (fd_read_file(AT_FDCWD, "/proc/self/net/protocols", table, sizeof(table)) <= 0)
        return -1;
    const char *at = strstr(table, name);
    if (!at)
        return -1;
    (void)strtoul(at + strlen(name), &end, 10); /* the size of one */
    char *number = end;
    unsigned long n = strtoul(number, &end, 10);
    return end == number || n > INT32_MAX ? -1 : (int)n;
}

/* Creates the requested socket. An error of the kernel is the answer, too. */
static int make(const struct seccomp_data *call, int most)
{
    if (call->nr != SYS_socket) /* socketpair() */
        return -EOPNOTSUPP;
    int n = netlink_count();
    if (n < 0 || n >= most)
        return -ENOBUFS;
    uint64_t type = (uint32_t)call->args[1] | (uint64_t)SECCOMP_INIT_MARK << 32;
    int fd = (int)syscall(SYS_socket, AF_NETLINK, type | SOCK_CLOEXEC, NETLINK_ROUTE);
    return fd < 0 ? -errno : fd;
}

static void refuse(int listener, uint64_t id, int code)
{
    struct seccomp_notif_resp answer = { .id = id, .error = code };

    (void)ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &answer); /* ENOENT: it no longer waits */
}

void netlink_answer(int listener, const struct seccomp_notif *request, int most)
{
    AUTO(fd_close) int fd = make(&request->data, most);

    if (fd < 0) {
        refuse(listener, request->id, fd);
        return;
    }
    /* The socket becomes the program's descriptor and the result of its call in one step. */
    struct seccomp_notif_addfd given = {
        .id = request->id,
        .flags = SECCOMP_ADDFD_FLAG_SEND,
        .srcfd = (uint32_t)fd,
        .newfd_flags = request->data.args[1] & SOCK_CLOEXEC ? O_CLOEXEC : 0,
    };
    if (ioctl(listener, SECCOMP_IOCTL_NOTIF_ADDFD, &given) < 0 && errno != ENOENT)
        refuse(listener, request->id, -errno); /* EMFILE: its own limit of open files */
}
