/*
 * seccomp_test.c - the filter in the kernel: a process installs it on itself and checks the
 * answers.
 */
#include "base/auto.h"
#include "base/err.h"
#include "harness.h"
#include "runtime/serving/seccomp.h"
#include "runtime/serving/seccomp_rules.h"
#include <limits.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/fs.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define BIT_32 (UINT64_C(1) << 32)

static void install(void)
{
    struct carrel_error err = { 0 };

    int listener = -1;

    CHECK_EQ(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
    CHECK_EQ(seccomp_install_init(&listener, &err), 0);
    CHECK_EQ(close(listener), 0); /* then there is no answer: ENOSYS */
    CHECK_EQ(seccomp_install_rest(&err), 0);
}

/* Runs `body` in a child process and returns its wait status; 0 is success. */
static int run_apart(void (*body)(void))
{
    pid_t child = fork();
    int status = -1;

    if (child == 0) {
        body();
        _exit(0); /* without the leak check, which needs the refused ptrace */
    }
    CHECK(child > 0);
    CHECK_EQ(waitpid(child, &status, 0), child);
    return status;
}

/* Arguments with which nothing happens should the filter allow the call. */
static const struct real_call {
    int number;
    int error;
    uint64_t args[4];
} real_calls[] = {
    { SYS_ptrace, EPERM, { PTRACE_TRACEME } },
    { SYS_process_vm_readv, EPERM, { 1 } },
    { SYS_bpf, EPERM, { 0 } },
    { SYS_keyctl, EPERM, { 0 } },
    { SYS_mount, EPERM, { 0 } },
    { SYS_chroot, EPERM, { 0 } },
    { SYS_setns, EPERM, { UINT64_MAX } },
    { SYS_unshare, EPERM, { CLONE_NEWUSER } },
    { SYS_unshare, EPERM, { CLONE_NEWNS } },
    { SYS_clone3, ENOSYS, { 0 } },
    { SYS_openat2, ENOSYS, { 0 } },
    { SYS_io_uring_setup, ENOSYS, { 0 } },
    { 1000, ENOSYS, { 0 } },
    { SYS_ioctl, EPERM, { UINT64_MAX, TIOCSTI } },
    { SYS_ioctl, EPERM, { UINT64_MAX, TIOCSTI | BIT_32 } },
    { SYS_ioctl, EBADF, { UINT64_MAX, TIOCGWINSZ } },
    { SYS_socket, EAFNOSUPPORT, { AF_PACKET, SOCK_RAW } },
    { SYS_socket, EAFNOSUPPORT, { AF_VSOCK, SOCK_STREAM } },
    { SYS_socket, EAFNOSUPPORT, { AF_ALG, SOCK_SEQPACKET } },
    { SYS_socket, EPERM, { AF_INET, SOCK_RAW, IPPROTO_ICMP } },
    { SYS_socket, EPROTONOSUPPORT, { AF_NETLINK, SOCK_RAW, NETLINK_AUDIT } },
    { SYS_socket, ENOSYS, { AF_NETLINK, SOCK_RAW, NETLINK_ROUTE } },
    { SYS_personality, EPERM, { ADDR_NO_RANDOMIZE } },
    { SYS_openat, EPERM, { 0, 0, O_CREAT, 04755 } },
    { SYS_openat, EFAULT, { 0, 0, O_CREAT, 0755 } },
    { SYS_mknodat, EPERM, { 0, 0, S_IFCHR | 0666 } },
    { SYS_fchmod, EPERM, { UINT64_MAX, 04755 } },
    { SYS_fchmod, EBADF, { UINT64_MAX, 0755 } },
    { SYS_fallocate, EBADF, { UINT64_MAX, 0, 0, 1 } },
};

static void make_calls(const struct real_call *calls, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const uint64_t *args = calls[i].args;
        long r = syscall(calls[i].number, args[0], args[1], args[2], args[3]);
        int error = errno;
        if (r != -1 || error != calls[i].error)
            test_fail(__FILE__, __LINE__, "call %zu returned %ld, errno %d instead of %d", i, r,
                    error, calls[i].error);
    }
}

static void make_real_calls(void)
{
    install();
    make_calls(real_calls, ARRAY_LEN(real_calls));
}

TEST(the_kernel_answers_as_the_filter_says)
{
    CHECK_EQ(run_apart(make_real_calls), 0);
}

static void *add_one(void *number)
{
    ++*(int *)number;
    return NULL;
}

static int do_nothing(void *unused)
{
    (void)unused;
    _exit(0);
}

/* glibc tries clone3 first; a thread proves that it handles the answer. */
static void start_threads_and_programs(void)
{
    char *argv[] = { (char[]){ "sh" }, (char[]){ "-c" }, (char[]){ "exit 7" }, NULL };
    char *env[] = { NULL };
    pthread_t thread;
    int number = 1;
    int status;
    pid_t child;

    install();
    CHECK_EQ(pthread_create(&thread, NULL, add_one, &number), 0);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    CHECK_EQ(number, 2);
    CHECK_EQ(posix_spawn(&child, "/bin/sh", NULL, NULL, argv, env), 0);
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK_EQ(WEXITSTATUS(status), 7);
}

/* As init starts a program. */
static void clone_as_init_does(void)
{
    char stack[16384] __attribute__((aligned(16)));
    siginfo_t info = { 0 };
    int pidfd = -1;

    install();
    CHECK(clone(do_nothing, stack + sizeof(stack),
                  CLONE_VM | CLONE_VFORK | CLONE_PIDFD | SIGCHLD, NULL, &pidfd) > 0);
    CHECK_EQ(waitid(P_PIDFD, (id_t)pidfd, &info, WEXITED), 0);
    CHECK_EQ(info.si_code, CLD_EXITED);
}

static void open_harmless_sockets(void)
{
    install();
    CHECK(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0) >= 0);
    CHECK(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0) >= 0);
}

TEST(threads_and_programs_start_under_the_filter)
{
    CHECK_EQ(run_apart(start_threads_and_programs), 0);
}

TEST(init_can_start_processes_under_the_filter)
{
    CHECK_EQ(run_apart(clone_as_init_does), 0);
}

TEST(harmless_sockets_open_under_the_filter)
{
    CHECK_EQ(run_apart(open_harmless_sockets), 0);
}

static void install_without_no_new_privs(void)
{
    struct carrel_error err = { 0 };
    int listener = 0;

    CHECK_EQ(setgid(65534), 0);
    CHECK_EQ(setuid(65534), 0);
    CHECK_EQ(seccomp_install_init(&listener, &err), -EACCES);
    CHECK_EQ(listener, -1);
    CHECK_EQ(err.code, -EACCES);
    CHECK_STR(err.message, "install the seccomp filter: Permission denied");
}

TEST(the_filter_needs_no_new_privs)
{
    if (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1)
        SKIP("no_new_privs is set already");
    if (geteuid() != 0)
        SKIP("must be root, to give that up");
    CHECK_EQ(run_apart(install_without_no_new_privs), 0);
}

/* A filter that makes its listener decide about seccomp(). Returns the listener. */
static int watch_seccomp(void)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_seccomp, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const struct sock_fprog program = { .len = ARRAY_LEN(code), .filter = code };

    CHECK_EQ(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
    return (int)syscall(
            SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &program);
}

/* A thread that installs the second part where the first `n_full` attempts find no room. */
struct full {
    int n_full;
    int pipe[2]; /* brings the listener */
    int n;       /* attempts */
    int result;
    struct carrel_error err;
};

static void *install_in_thread(void *target)
{
    struct full *full = target;
    int listener = watch_seccomp();

    CHECK_EQ(write(full->pipe[1], &listener, sizeof(listener)), sizeof(listener));
    if (listener >= 0)
        full->result = seccomp_install_rest(&full->err);
    return NULL;
}

/* Answers like the kernel, until the thread has exited. */
static void answer_attempts(int listener, struct full *full)
{
    for (;; full->n++) {
        struct seccomp_notif request = { 0 };
        struct pollfd watch = { .fd = listener, .events = POLLIN };
        if (poll(&watch, 1, -1) < 0 || !(watch.revents & POLLIN))
            return;
        CHECK_EQ(ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &request), 0);
        struct seccomp_notif_resp answer = { .id = request.id };
        if (full->n < full->n_full)
            answer.error = -524;
        else
            answer.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
        CHECK_EQ(ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &answer), 0);
    }
}

static void install_while_full(struct full *full)
{
    pthread_t thread;
    int listener = -1;

    CHECK_EQ(pipe2(full->pipe, O_CLOEXEC), 0);
    CHECK_EQ(pthread_create(&thread, NULL, install_in_thread, full), 0);
    CHECK_EQ(read(full->pipe[0], &listener, sizeof(listener)), sizeof(listener));
    if (listener < 0)
        SKIP("under a filter with a listener already");
    answer_attempts(listener, full);
    CHECK_EQ(pthread_join(thread, NULL), 0);
}

TEST(a_full_room_for_filters_is_tried_again)
{
    struct full full = { .n_full = 3 };

    install_while_full(&full);
    CHECK_EQ(full.result, 0);
    CHECK_EQ(full.n, 4);
}

TEST(a_room_for_filters_that_stays_full_is_named)
{
    struct full full = { .n_full = INT_MAX };

    install_while_full(&full);
    CHECK_EQ(full.result, -ENOSPC);
    CHECK_EQ(full.n, 11);
    CHECK_STR(full.err.message,
            "install the seccomp filter: the machine's room for compiled filters is full "
            "(error 524); as root, raise net.core.bpf_jit_limit");
}

#ifdef __x86_64__
static void call_x32(void)
{
    install();
    (void)syscall((long)(SECCOMP_X32_FIRST | SYS_getpid));
}

static void call_32_bit(void)
{
    int result = 20; /* getpid there; writev here */

    install();
    __asm__ volatile("int $0x80" : "+a"(result) : : "memory");
}

TEST(a_real_x32_call_ends_the_process)
{
    int status = run_apart(call_x32);

    CHECK(WIFSIGNALED(status));
    CHECK_EQ(WTERMSIG(status), SIGSYS);
}

TEST(a_real_32_bit_call_ends_the_process)
{
    int status = run_apart(call_32_bit);

    CHECK(WIFSIGNALED(status));
    CHECK(WTERMSIG(status) == SIGSYS ||
            WTERMSIG(status) == SIGSEGV); /* the gate does not exist at all */
}
#endif
