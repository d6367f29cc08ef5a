/* Takes memory of every kind: its own, files in memory, and the kernel's on its behalf. */
#include "attack.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

enum { MIB = 1 << 20 };

/* Each takes `mib` more and keeps it. Returns what it got, in MiB; errno tells why less. */
typedef size_t take_fn(size_t mib);

static size_t map(size_t mib, int flags)
{
    for (size_t i = 0; i < mib; i++) {
        char *at = mmap(NULL, MIB, PROT_READ | PROT_WRITE, flags | MAP_ANONYMOUS, -1, 0);
        if (at == MAP_FAILED)
            return i;
        memset(at, 'x', MIB);
    }
    return mib;
}

static size_t take_heap(size_t mib)
{
    return map(mib, MAP_PRIVATE);
}

static size_t take_shared(size_t mib)
{
    return map(mib, MAP_SHARED);
}

static size_t fill(int fd, size_t mib)
{
    static char chunk[MIB];
    memset(chunk, 'x', sizeof(chunk));
    for (size_t i = 0; i < mib; i++)
        for (size_t at = 0; at < MIB;) {
            ssize_t n = write(fd, chunk + at, MIB - at);
            if (n < 0)
                return i;
            at += (size_t)n;
        }
    return mib;
}

static size_t take_tmpfs(size_t mib)
{
    char path[] = "/dev/shm/carrel-escape-XXXXXX";
    int fd = mkstemp(path);
    if (fd < 0)
        cannot("%s: %s", path, strerror(errno));
    (void)unlink(path); /* held by the descriptor: freed on exit */
    return fill(fd, mib);
}

static size_t take_memfd(size_t mib)
{
    int fd = (int)memfd_create("attack", MFD_CLOEXEC);
    return fd < 0 ? 0 : fill(fd, mib);
}

/* A pipe of one MiB each; its content is kernel memory. */
static size_t take_pipes(size_t mib)
{
    for (size_t i = 0; i < mib; i++) {
        int fds[2];
        if (pipe2(fds, O_CLOEXEC) < 0 || fcntl(fds[1], F_SETPIPE_SZ, MIB) < 0 ||
                fill(fds[1], 1) == 0)
            return i;
    }
    return mib;
}

static size_t take_sockets(size_t mib)
{
    static char chunk[32768];
    size_t bytes = 0;
    while (bytes < mib * MIB) {
        int pair[2];
        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) < 0)
            return bytes / MIB;
        for (int end = 0; end < 2; end++)
            for (ssize_t n; (n = write(pair[end], chunk, sizeof(chunk))) > 0;)
                bytes += (size_t)n;
        if (errno != EAGAIN)
            return bytes / MIB;
    }
    return mib;
}

/* Loopback: unread data waits in the kernel. Stops when a socket is full. */
static size_t take_tcp(size_t mib)
{
    static char chunk[65536];
    const int flags = SOCK_STREAM | SOCK_CLOEXEC;
    struct sockaddr_in at = { .sin_family = AF_INET,
        .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t len = sizeof(at);
    size_t bytes = 0;
    int listener = socket(AF_INET, flags, 0);
    if (listener < 0 || bind(listener, (struct sockaddr *)&at, sizeof(at)) < 0 ||
            listen(listener, 64) < 0 || getsockname(listener, (struct sockaddr *)&at, &len) < 0)
        return 0;
    while (bytes < mib * MIB) {
        size_t before = bytes;
        int near = socket(AF_INET, flags, 0);
        if (near < 0 || connect(near, (struct sockaddr *)&at, sizeof(at)) < 0)
            break;
        int far = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
        for (ssize_t n; (n = send(near, chunk, sizeof(chunk), MSG_DONTWAIT)) > 0;)
            bytes += (size_t)n;
        if (far < 0 || bytes - before < sizeof(chunk))
            break;
    }
    return bytes / MIB < mib ? bytes / MIB : mib;
}

/* Two thirds of it first: the sum counts, wherever the kernel keeps account of a part. */
static size_t take_both(size_t mib)
{
    size_t heap = take_heap(mib * 2 / 3);
    return heap < mib * 2 / 3 ? heap : heap + take_tcp(mib - heap);
}

/*
 * Each error of the kernel repeats the whole request, and stays queued until it is read. The
 * kernel reports how much it keeps for such a socket.
 */
static size_t take_netlink(size_t mib)
{
    static char request[60000];
    const struct nlmsghdr header = { .nlmsg_len = sizeof(request),
        .nlmsg_type = UINT16_MAX,
        .nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK };
    const int most = 4 * MIB; /* the kernel grants its maximum, twice */
    size_t bytes = 0;
    memcpy(request, &header, sizeof(header));
    while (bytes < mib * MIB) {
        uint32_t memory[SK_MEMINFO_VARS] = { 0 };
        socklen_t len = sizeof(memory);
        int sock = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE);
        if (sock < 0)
            return bytes / MIB;
        (void)setsockopt(sock, SOL_SOCKET, SO_RCVBUF, &most, sizeof(most));
        (void)setsockopt(sock, SOL_SOCKET, SO_SNDBUF, &most, sizeof(most));
        for (int i = 0; i < 256 && send(sock, request, sizeof(request), 0) > 0; i++)
            ;
        if (getsockopt(sock, SOL_SOCKET, SO_MEMINFO, memory, &len) < 0)
            cannot("SO_MEMINFO: %s", strerror(errno));
        bytes += memory[SK_MEMINFO_RMEM_ALLOC];
    }
    return mib;
}

/* Small objects that are easily forgotten: names of files, each in its own directory entry. */
static size_t take_page_cache(size_t mib)
{
    int fd = open("page-cache", O_CREAT | O_TRUNC | O_RDWR | O_CLOEXEC, 0600);
    if (fd < 0)
        cannot("page-cache: %s", strerror(errno));
    (void)unlink("page-cache");
    return fill(fd, mib);
}

static const struct kind {
    const char *name;
    take_fn *take;
} kinds[] = {
    { "heap", take_heap },
    { "shared", take_shared },
    { "tmpfs", take_tmpfs },
    { "memfd", take_memfd },
    { "pipes", take_pipes },
    { "sockets", take_sockets },
    { "tcp", take_tcp },
    { "heap-and-tcp", take_both },
    { "netlink", take_netlink },
    { "page-cache", take_page_cache },
};

static const struct kind *find(const char *name)
{
    for (size_t i = 0; name && i < ARRAY_LEN(kinds); i++)
        if (strcmp(kinds[i].name, name) == 0)
            return &kinds[i];
    cannot("no such kind of memory");
}

/* attack KIND MIB */
static void attack(char **args)
{
    const struct kind *kind = find(args[0]);
    size_t mib = number(args[1]);
    size_t got = kind->take(mib);
    int why = errno;
    if (got >= mib)
        succeeded(kind->name, "%zu MiB", got);
    else if (is_among(why, REASONS(ENOMEM, ENOSPC, EMFILE, EPERM, ENOBUFS, EAGAIN)))
        refused(kind->name, "%s after %zu MiB", errno_name(why), got);
    else
        failed(kind->name, why, NULL);
}

/* control KIND MIB */
static void control(char **args)
{
    const struct kind *kind = find(args[0]);
    size_t mib = number(args[1]);
    works(kind->name, kind->take(mib) == mib);
}

int main(int argc, char **argv)
{
    return attack_main(argc, argv,
            (struct attack_mode[]){ { "attack", attack }, { "control", control }, { 0 } });
}
