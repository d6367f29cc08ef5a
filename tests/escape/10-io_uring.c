/* Opens files and sockets through a ring, where no system call filter sees the calls. */
#include "attack.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/io_uring.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

static long call_setup(const void *arg)
{
    struct io_uring_params params = { 0 };
    (void)arg;
    return syscall(SYS_io_uring_setup, 4, &params);
}

static long call_enter(const void *arg)
{
    (void)arg;
    return syscall(SYS_io_uring_enter, -1, 1, 0, 0, NULL, 0);
}

static long call_register(const void *arg)
{
    (void)arg;
    return syscall(SYS_io_uring_register, -1, IORING_UNREGISTER_BUFFERS, NULL, 0);
}

static void attack(char **args)
{
    (void)args;
    attempt_in_child("io_uring_setup", call_setup, NULL, NULL, REASONS(ENOSYS));
    attempt_in_child("io_uring_enter", call_enter, NULL, REASONS(EBADF), REASONS(ENOSYS));
    attempt_in_child(
            "io_uring_register", call_register, NULL, REASONS(EBADF, EINVAL), REASONS(ENOSYS));
}

static void control(char **args)
{
    int fds[2];
    (void)args;
    works("pipe", pipe2(fds, O_CLOEXEC) == 0);
    int ep = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event event = { .events = EPOLLIN };
    works("epoll", ep >= 0 && epoll_ctl(ep, EPOLL_CTL_ADD, fds[0], &event) == 0);
    works("write", write(fds[1], "x", 1) == 1);
    works("epoll_wait", epoll_wait(ep, &event, 1, 1000) == 1);
}

int main(int argc, char **argv)
{
    return attack_main(argc, argv,
            (struct attack_mode[]){ { "attack", attack }, { "control", control }, { 0 } });
}
