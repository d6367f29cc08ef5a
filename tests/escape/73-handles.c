/*
 * Exhausts what the kernel counts per user or per machine: descriptors, descriptors in flight,
 * terminals, inotify instances and watches. If the count is shared with the host's user, a
 * sandbox can starve it.
 */
#include "attack.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/inotify.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

/* Each takes up to `max` and keeps them. */
typedef size_t take_fn(size_t max);

static size_t take_descriptors(size_t max)
{
    for (size_t n = 0; n < max; n++)
        if (open("/dev/null", O_RDONLY | O_CLOEXEC) < 0)
            return n;
    return max;
}

static size_t take_inotify(size_t max)
{
    for (size_t n = 0; n < max; n++)
        if (inotify_init1(IN_CLOEXEC) < 0)
            return n;
    return max;
}

/* One for each instance and file: so a few hundred files are enough. */
static size_t take_watches(size_t max)
{
    char path[64];
    int instance = -1;
    for (size_t n = 0; n < max; n++) {
        if (n % 1000 == 0)
            instance = inotify_init1(IN_CLOEXEC);
        (void)snprintf(path, sizeof(path), "/tmp/watched-%d-%zu", (int)getuid(), n % 1000);
        int fd = n < 1000 ? open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600) : -1;
        if (fd >= 0)
            (void)close(fd);
        if (inotify_add_watch(instance, path, IN_MODIFY) < 0)
            return n;
    }
    return max;
}

static size_t take_terminals(size_t max)
{
    for (size_t n = 0; n < max; n++)
        if (posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC) < 0)
            return n;
    return max;
}

/* Sent and never received: such a descriptor is in no process's table. */
static int send_one(int sock, int fd)
{
    char byte = 'x';
    union {
        char bytes[CMSG_SPACE(sizeof(int))];
        struct cmsghdr align;
    } control = { 0 };
    struct iovec iov = { &byte, 1 };
    struct msghdr msg = { .msg_iov = &iov,
        .msg_iovlen = 1,
        .msg_control = &control,
        .msg_controllen = sizeof(control) };
    struct cmsghdr *head = CMSG_FIRSTHDR(&msg);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(head), &fd, sizeof(fd));
    return sendmsg(sock, &msg, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 ? -1 : 0;
}

static size_t take_in_flight(size_t max)
{
    int pair[2] = { -1, -1 };
    for (size_t n = 0; n < max; n++) {
        if (n % 100 == 0 && socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
            return n;
        if (send_one(pair[0], STDOUT_FILENO) < 0)
            return n;
    }
    return max;
}

/* Each epoll in the next one: wakeups would recurse through all of them. */
static size_t take_epoll_nest(size_t max)
{
    struct epoll_event event = { .events = EPOLLIN };
    int inner = epoll_create1(EPOLL_CLOEXEC);
    for (size_t n = 0; n < max; n++) {
        int outer = epoll_create1(EPOLL_CLOEXEC);
        if (outer < 0 || epoll_ctl(outer, EPOLL_CTL_ADD, inner, &event) < 0)
            return n;
        inner = outer;
    }
    return max;
}

static const struct kind {
    const char *name;
    take_fn *take;
} kinds[] = {
    { "descriptors", take_descriptors },
    { "inotify", take_inotify },
    { "watches", take_watches },
    { "terminals", take_terminals },
    { "in-flight", take_in_flight },
    { "epoll-nest", take_epoll_nest },
};

static const struct kind *find(const char *name)
{
    for (size_t i = 0; name && i < ARRAY_LEN(kinds); i++)
        if (strcmp(kinds[i].name, name) == 0)
            return &kinds[i];
    cannot("no such kind");
}

static void raise_descriptor_limit(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &limit);
    }
}

/* attack KIND MAX */
static void attack(char **args)
{
    const struct kind *kind = find(args[0]);
    size_t max = number(args[1]);
    raise_descriptor_limit();
    size_t n = kind->take(max);
    int why = errno;
    if (n >= max)
        succeeded(kind->name, "%zu", n);
    else
        refused(kind->name, "%s after %zu", errno_name(why), n);
}

/* hold KIND MAX: takes them, reports it, and keeps them until it is killed. */
static void hold(char **args)
{
    const struct kind *kind = find(args[0]);
    raise_descriptor_limit();
    size_t n = kind->take(number(args[1]));
    int why = errno;
    ready("%zu %s", n, errno_name(why));
    for (;;)
        pause();
}

/* control KIND */
static void control(char **args)
{
    const struct kind *kind = find(args[0]);
    works(kind->name, kind->take(4) == 4);
}

int main(int argc, char **argv)
{
    return attack_main(argc, argv,
            (struct attack_mode[]){
                    { "attack", attack }, { "hold", hold }, { "control", control }, { 0 } });
}
