/* filters_test.c - a process that answers like init, and threads that add filters. */
#include "base/auto.h"
#include "base/err.h"
#include "harness.h"
#include "runtime/serving/asked.h"
#include "runtime/serving/filters.h"
#include "runtime/serving/seccomp.h"
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static long add_filter(bool by_prctl)
{
    struct sock_filter allow = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    const struct sock_fprog program = { .len = 1, .filter = &allow };

    return by_prctl ? prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)
                    : syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program);
}

/* Adds as many as it can, 16 in each child, and keeps them. Returns how many. */
static int add_many(pid_t children[], int n_children)
{
    int total = 0;

    for (int i = 0; i < n_children; i++) {
        int answer[2];
        int added = 0;
        CHECK_EQ(pipe(answer), 0);
        children[i] = fork();
        if (children[i] == 0) {
            while (added < 16 && add_filter(added % 2) == 0)
                added++;
            CHECK(added == 16 || errno == ENOMEM);
            CHECK_EQ(write(answer[1], &added, sizeof(added)), sizeof(added));
            (void)pause();
            _exit(0);
        }
        CHECK_EQ(read(answer[0], &added, sizeof(added)), sizeof(added));
        CHECK_EQ(close(answer[0]) | close(answer[1]), 0);
        total += added;
    }
    return total;
}

static void use_up_and_give_back(void)
{
    enum { CHILDREN = 12 };
    pid_t children[CHILDREN];

    for (int round = 0; round < 2; round++) {
        CHECK_EQ(add_many(children, CHILDREN), FILTERS_MOST);
        CHECK_EQ(add_filter(false), -1);
        CHECK_EQ(errno, ENOMEM);
        CHECK_EQ(add_filter(true), -1);
        CHECK_EQ(errno, ENOMEM);
        for (int i = 0; i < CHILDREN; i++) {
            CHECK_EQ(kill(children[i], SIGKILL), 0);
            CHECK_EQ(waitpid(children[i], NULL, 0), children[i]);
        }
    }
    CHECK_EQ(add_filter(false), 0);
}

/* Answers the program until it has exited. Returns its status. */
static int answer_program(int listener, pid_t program)
{
    struct asked asked = { 0 };
    int status = -1;

    for (;;) {
        struct pollfd watch = { .fd = listener, .events = POLLIN };
        if (poll(&watch, 1, 10) > 0)
            asked_answer(listener, &asked);
        if (waitpid(program, &status, WNOHANG) == program)
            return status;
    }
}

/* As init is: pid 1 with a /proc of its own. */
static int be_init(void *unused)
{
    struct carrel_error err = { 0 };
    int listener = -1;

    (void)unused;
    if (mount("proc", "/proc", "proc", 0, NULL) < 0)
        _exit(77);
    CHECK_EQ(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
    CHECK_EQ(seccomp_install_init(&listener, &err), 0);
    if (listener < 0)
        _exit(77);
    pid_t program = fork();
    if (program == 0) {
        CHECK_EQ(close(listener), 0);
        CHECK_EQ(seccomp_install_rest(&err), 0);
        use_up_and_give_back();
        _exit(0);
    }
    _exit(answer_program(listener, program) == 0 ? 0 : 1);
}

TEST(a_sandbox_has_so_many_filters_at_a_time_and_no_more)
{
    char stack[65536] __attribute__((aligned(16)));
    int status = -1;

    pid_t init = clone(be_init, stack + sizeof(stack),
            CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | SIGCHLD, NULL);
    if (init < 0)
        SKIP("no namespaces: %s", strerrordesc_np(errno));
    CHECK_EQ(waitpid(init, &status, 0), init);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
        SKIP("no /proc of our own, or under a filter that asks somebody already");
    CHECK_EQ(status, 0);
}
