/*
 * Crashes on purpose. A core file would carry memory out of the sandbox; a core handler
 * (core_pattern with a pipe) is started by the kernel on the host, as root, and is fed with
 * what the program chose. The kernel starts the handler whatever the limit on core files is,
 * with one exception: a soft limit of exactly 1 (core(5), "Piping core dumps to a program").
 */
#include "attack.h"
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* Checks the state afterwards: a filter may also report success and change nothing. */
static long judge(long result, int why)
{
    struct rlimit now;
    if (getrlimit(RLIMIT_CORE, &now) == 0 && now.rlim_cur == 1) {
        errno = result < 0 ? why : EPERM;
        return -1;
    }
    return 0;
}

static long raise_limit(const void *arg)
{
    struct rlimit all = { RLIM_INFINITY, RLIM_INFINITY };
    (void)arg;
    long r = setrlimit(RLIMIT_CORE, &all);
    return judge(r, errno);
}

/* Lowering a limit needs no privilege: only the filter can refuse it. */
static long wake_handler(const void *arg)
{
    const struct rlimit none = { 0, 1 };
    const unsigned long *resource = arg;
    long r = syscall(SYS_prlimit64, 0, *resource, &none, NULL);
    return judge(r, errno);
}

#ifdef SYS_setrlimit
static long wake_handler_old(const void *arg)
{
    const struct rlimit none = { 0, 1 };
    const unsigned long *resource = arg;
    long r = syscall(SYS_setrlimit, *resource, &none);
    return judge(r, errno);
}
#endif

static bool has_core_file(void)
{
    DIR *dir = opendir(".");
    bool is_found = false;
    for (struct dirent *e; dir && (e = readdir(dir));)
        is_found = is_found || strncmp(e->d_name, "core", 4) == 0;
    if (dir)
        closedir(dir);
    return is_found;
}

static int crash(void)
{
    int status = 0;
    pid_t pid = fork();
    if (pid == 0) {
        struct rlimit limit;
        (void)prctl(PR_SET_DUMPABLE, 1);
        if (getrlimit(RLIMIT_CORE, &limit) == 0) {
            limit.rlim_cur = limit.rlim_max;
            (void)setrlimit(RLIMIT_CORE, &limit);
        }
        raise(SIGSEGV);
        _exit(0);
    }
    waitpid(pid, &status, 0);
    return status;
}

static void attack(char **args)
{
    struct rlimit limit;
    (void)args;
    int status = crash();
    if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGSEGV)
        cannot("the crash ended with status %d", status);
    if (WCOREDUMP(status) || has_core_file())
        succeeded("core-file", "dumped");
    else
        refused("core-file", "not dumped");
    getrlimit(RLIMIT_CORE, &limit);
    if (limit.rlim_cur == 1)
        refused("core-handler", "soft limit 1");
    else
        succeeded("core-handler", "soft limit %lu: a piped handler would start",
                (unsigned long)limit.rlim_cur);
    const unsigned long plain = RLIMIT_CORE;
    const unsigned long high = RLIMIT_CORE | (1UL << 32); /* the kernel uses 32 bits */
    attempt_in_child("wake-core-handler", wake_handler, &plain, NULL, REASONS(EPERM));
    attempt_in_child("wake-core-handler-bit32", wake_handler, &high, NULL, REASONS(EPERM));
#ifdef SYS_setrlimit
    attempt_in_child("wake-by-setrlimit", wake_handler_old, &plain, NULL, REASONS(EPERM));
    attempt_in_child("wake-by-setrlimit-bit32", wake_handler_old, &high, NULL, REASONS(EPERM));
#endif
    attempt_in_child("raise-core-limit", raise_limit, NULL, NULL, REASONS(EPERM));
}

static void control(char **args)
{
    struct rlimit limit;
    (void)args;
    int status = crash();
    works("crash-is-seen", WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
    works("read-limit", getrlimit(RLIMIT_CORE, &limit) == 0);
    works("lower-other-limit",
            getrlimit(RLIMIT_NOFILE, &limit) == 0 && setrlimit(RLIMIT_NOFILE, &limit) == 0);
}

int main(int argc, char **argv)
{
    return attack_main(argc, argv,
            (struct attack_mode[]){ { "attack", attack }, { "control", control }, { 0 } });
}
