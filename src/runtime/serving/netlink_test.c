/* netlink_test.c - a process that answers like init, and others that ask it. */
#include "base/auto.h"
#include "base/err.h"
#include "harness.h"
#include "runtime/serving/asked.h"
#include "runtime/serving/netlink.h"
#include "runtime/serving/seccomp.h"
#include "runtime/serving/seccomp_rules.h"
#include <ifaddrs.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { FEW = 4, CROWD = 40 };

static int open_one(int flags)
{
    return socket(AF_NETLINK, SOCK_RAW | flags, NETLINK_ROUTE);
}

/* Answers until all children have exited. Returns 0 if each of them succeeded. */
static int answer_all(int listener, int most)
{
    struct asked asked = { .netlink_most = most };
    int status;

    for (;;) {
        struct pollfd watch = { .fd = listener, .events = POLLIN };
        if (poll(&watch, 1, 10) > 0)
            asked_answer(listener, &asked);
        pid_t pid = waitpid(-1, &status, WNOHANG);
        if (pid < 0)
            return 0;
        if (pid > 0 && status != 0)
            return -1;
    }
}

/* Runs `body` in `n` programs at once, under the whole filter, with a process that answers. */
static int run_programs(int n, int most, void (*body)(void))
{
    pid_t init = fork();
    int status = -1;

    if (init == 0) {
        struct carrel_error err = { 0 };
        int listener = -1;
        if (unshare(CLONE_NEWUSER | CLONE_NEWNET) < 0)
            _exit(77);
        CHECK_EQ(netlink_count(), 0);
        CHECK_EQ(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
        CHECK_EQ(seccomp_install_init(&listener, &err), 0);
        if (listener < 0)
            _exit(77);
        for (int i = 0; i < n; i++) {
            pid_t program = fork();
            if (program != 0)
                continue;
            CHECK_EQ(close(listener), 0);
            CHECK_EQ(seccomp_install_rest(&err), 0);
            body();
            _exit(0);
        }
        _exit(answer_all(listener, most) < 0);
    }
    CHECK(init > 0);
    CHECK_EQ(waitpid(init, &status, 0), init);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
        SKIP("no namespaces of our own, or under a filter that asks somebody already");
    return status;
}

static void use_up(void)
{
    int fds[FEW];

    for (int i = 0; i < FEW; i++) {
        fds[i] = open_one(i % 2 ? SOCK_CLOEXEC : SOCK_NONBLOCK);
        CHECK(fds[i] >= 0);
        CHECK_EQ(fcntl(fds[i], F_GETFD), i % 2 ? FD_CLOEXEC : 0);
        CHECK_EQ(fcntl(fds[i], F_GETFL) & O_NONBLOCK, i % 2 ? 0 : O_NONBLOCK);
    }
    CHECK_EQ(open_one(0), -1);
    CHECK_EQ(errno, ENOBUFS);
    CHECK_EQ(close(fds[0]), 0);
    CHECK(open_one(0) >= 0); /* one was closed */
    CHECK_EQ(open_one(0), -1);
    CHECK_EQ(errno, ENOBUFS);
}

TEST(a_program_has_a_few_sockets_at_a_time_and_no_more)
{
    CHECK_EQ(run_programs(1, FEW, use_up), 0);
}

static void look_at_interfaces(void)
{
    for (int i = 0; i < 50; i++) {
        struct ifaddrs *addresses = NULL;
        CHECK_EQ(getifaddrs(&addresses), 0);
        freeifaddrs(addresses);
    }
}

TEST(interfaces_can_be_asked_for_again_and_again)
{
    CHECK_EQ(run_programs(1, 1, look_at_interfaces), 0);
}

static void take_what_there_is(void)
{
    for (int i = 0; i < FEW; i++) {
        (void)open_one(SOCK_CLOEXEC); /* most of them get none */
        CHECK(netlink_count() <= FEW);
    }
}

/* A race between the count and what it counts would show here. */
TEST(a_crowd_that_asks_at_once_gets_no_more_than_one_that_waits)
{
    CHECK_EQ(run_programs(CROWD, FEW, take_what_there_is), 0);
}

static void ask_for_what_cannot_be(void)
{
    const uint64_t mark = (uint64_t)SECCOMP_INIT_MARK << 32;
    const struct rlimit none = { 0, 0 };
    int pair[2];

    CHECK_EQ(syscall(SYS_socket, AF_NETLINK, SOCK_RAW | mark, NETLINK_ROUTE), -1);
    CHECK_EQ(errno, EINVAL); /* init's mark, used by a program */
    CHECK_EQ(socketpair(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE, pair), -1);
    CHECK_EQ(errno, EOPNOTSUPP);
    CHECK_EQ(socket(AF_NETLINK, SOCK_STREAM, NETLINK_ROUTE), -1);
    CHECK_EQ(errno, ESOCKTNOSUPPORT);
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
    CHECK_EQ(open_one(0), -1);
    CHECK_EQ(errno, EMFILE); /* the program's own limit, not init's */
}

TEST(a_refusal_is_the_one_that_the_kernel_would_give)
{
    CHECK_EQ(run_programs(1, FEW, ask_for_what_cannot_be), 0);
}

static void die_waiting(void)
{
    (void)alarm(1); /* if the answer comes first, it exits as well */
    for (;;)
        if (open_one(SOCK_CLOEXEC) < 0 && fork() == 0) {
            (void)kill(getppid(), SIGKILL);
            _exit(0);
        }
}

TEST(who_ends_while_it_waits_holds_nobody_up)
{
    int status = run_programs(3, 0, die_waiting);

    CHECK(WIFEXITED(status)); /* they were killed, and the answering process was not blocked */
}
