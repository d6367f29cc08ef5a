/* caller.c - a library: it does not disturb its caller, and ends with it. */
#include "base/clock.h"
#include "base/fd.h"
#include "base/packet.h"
#include "harness.h"
#include "place.h"
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

CONTRACT(twenty_sandboxes_leave_neither_descriptors_nor_processes)
{
    const int before = count_descriptors();

    for (int i = 0; i < 20; i++) {
        AUTO(sandbox_free) struct sandbox *box = make_sandbox();
        AUTO(outcome_finish)
        struct outcome got = run_shell(box, "(sleep 1000 >/dev/null 2>&1 &)");
        CHECK_EQ(got.status, 0);
    }
    CHECK_EQ(count_descriptors(), before);
    CHECK_EQ(waitpid(-1, NULL, __WALL), -1);
    CHECK_EQ(errno, ECHILD);
}

static volatile sig_atomic_t child_signals;

static void count_child_signal(int signal)
{
    (void)signal;
    child_signals++;
}

CONTRACT(the_callers_own_children_and_signals_are_left_alone)
{
    const struct sigaction action = { .sa_handler = count_child_signal };

    CHECK_EQ(sigaction(SIGCHLD, &action, NULL), 0);
    AUTO(sandbox_free) struct sandbox *box = make_sandbox();
    AUTO(outcome_finish) struct outcome got = run_shell(box, "exit 0");
    CHECK_EQ(waitpid(-1, NULL, WNOHANG), -1); /* no child that is visible to the caller */
    CHECK_EQ(errno, ECHILD);
    CHECK_EQ(sandbox_stop(box, NULL, &err), 0);
    CHECK_EQ(child_signals, 0);
}

static void *make_in_thread(void *out)
{
    *(struct sandbox **)out = make_sandbox();
    return NULL;
}

CONTRACT(a_sandbox_outlives_the_thread_that_made_it)
{
    AUTO(sandbox_free) struct sandbox *box = NULL;
    pthread_t thread;

    CHECK_EQ(pthread_create(&thread, NULL, make_in_thread, &box), 0);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    AUTO(outcome_finish) struct outcome got = run_shell(box, "echo alive");
    CHECK_STR(got.out.data, "alive\n");
}

/* The caller, in a child process: starts something lasting, shows its output, is killed. */
_Noreturn static void be_killed(int sock)
{
    struct sandbox *box = make_sandbox();
    const char *line = "(setsid sleep 1000 &); echo ready; sleep 1000";
    struct process process = start_shell(box, line);

    if (fork() == 0) { /* a process that inherits everything must not keep the sandbox alive */
        (void)alarm(30);
        for (;;)
            (void)pause();
    }
    (void)packet_send(sock, "x", 1, &process.stdout_fd, 1, 0);
    for (;;)
        (void)pause();
}

CONTRACT(everything_ends_when_the_caller_is_killed)
{
    int pair[2];
    int out = -1;
    char byte;
    AUTO(buf_finish) struct buf text = BUF_INIT(4096);

    CHECK_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
    pid_t pid = fork();
    if (pid == 0)
        be_killed(pair[1]);
    CHECK_EQ(packet_receive(pair[0], &byte, 1, &out, 1, 0), 1);
    read_until(out, &text, "ready");
    CHECK_EQ(kill(pid, SIGKILL), 0);
    CHECK_EQ(waitpid(pid, NULL, 0), pid);
    read_to_end(out, &text); /* the last process that held it has exited */
    fd_close(out);

    /* Files are removed last, and no event tells when. */
    const uint64_t deadline = clock_ns() + UINT64_C(10) * 1000000000;
    struct stat st;
    do {
        (void)poll(NULL, 0, 10);
        CHECK_EQ(stat(getenv("TMPDIR"), &st), 0);
    } while (st.st_nlink > 2 && clock_ns() < deadline);
}
