/* kill_fixture.h - for tests: kill -9 of a process at a chosen system call. */
#pragma once
#include "harness.h"
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* Calls by which the process itself changes the file system. */
static inline bool kill_is_change(unsigned long long number)
{
    switch (number) {
    case SYS_renameat2:
    case SYS_linkat:
    case SYS_unlinkat:
    case SYS_mkdirat:
    case SYS_symlinkat:
#ifdef SYS_renameat
    case SYS_renameat:
#endif
#ifdef SYS_rename
    case SYS_rename:
    case SYS_unlink:
    case SYS_rmdir:
    case SYS_mkdir:
#endif
        return true;
    default:
        return false;
    }
}

/* Every call. */
static inline bool kill_is_call(unsigned long long number)
{
    (void)number;
    return true;
}

/*
 * Calls `work` in a child process and kills it before the nth call that counts. Programs that
 * it starts are not counted. False: it finished before; `work` must return 0 then.
 */
static inline bool kill_before_the(bool (*counts)(unsigned long long number),
        int (*work)(void *context), void *context, int nth)
{
    struct __ptrace_syscall_info info;
    int status;
    pid_t pid = fork();

    CHECK(pid >= 0);
    if (pid == 0) {
        if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) < 0)
            _exit(77);
        (void)raise(SIGSTOP);
        _exit(work(context) != 0);
    }
    CHECK_EQ(waitpid(pid, &status, 0), pid);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
        SKIP("no process may be traced here");
    CHECK(WIFSTOPPED(status));
    CHECK_EQ(
            ptrace(PTRACE_SETOPTIONS, pid, NULL, PTRACE_O_EXITKILL | PTRACE_O_TRACESYSGOOD), 0);
    for (int pass = 0;;) {
        CHECK_EQ(ptrace(PTRACE_SYSCALL, pid, NULL, pass), 0);
        CHECK_EQ(waitpid(pid, &status, 0), pid);
        if (WIFEXITED(status)) {
            CHECK_EQ(WEXITSTATUS(status), 0);
            return false;
        }
        CHECK(WIFSTOPPED(status));
        pass = WSTOPSIG(status) == (SIGTRAP | 0x80) ? 0 : WSTOPSIG(status);
        if (pass)
            continue;
        CHECK(ptrace(PTRACE_GET_SYSCALL_INFO, pid, (void *)sizeof(info), &info) > 0);
        if (info.op == PTRACE_SYSCALL_INFO_ENTRY && counts(info.entry.nr) && --nth == 0)
            break;
    }
    CHECK_EQ(kill(pid, SIGKILL), 0);
    CHECK_EQ(waitpid(pid, &status, 0), pid);
    return true;
}

static inline bool kill_before(int (*work)(void *context), void *context, int nth)
{
    return kill_before_the(kill_is_change, work, context, nth);
}

static inline bool kill_before_call(int (*work)(void *context), void *context, int nth)
{
    return kill_before_the(kill_is_call, work, context, nth);
}
