/*
 * What one program leaves for the next: not files, which are meant to stay, but the state of
 * processes. `facts` prints it, one fact per line; `leave PROGRAM...` changes all of it that
 * can be changed, including that of its parent and of process 1, from which later ones may be
 * forked, and executes PROGRAM.
 */
#include "attack.h"
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

extern char **environ;

static void print_signals(void)
{
    sigset_t blocked;
    unsigned long long ignored = 0;
    unsigned long long masked = 0;

    (void)sigprocmask(SIG_BLOCK, NULL, &blocked);
    for (int i = 1; i < NSIG; i++) {
        struct sigaction action;
        if (sigaction(i, NULL, &action) == 0 && action.sa_handler == SIG_IGN)
            ignored |= 1ULL << (i - 1);
        if (sigismember(&blocked, i) == 1)
            masked |= 1ULL << (i - 1);
    }
    printf("ignored-signals %llx\nblocked-signals %llx\n", ignored, masked);
}

static void print_descriptors(void)
{
    printf("descriptors");
    for (int fd = 3; fd < 1024; fd++)
        if (fcntl(fd, F_GETFD) >= 0)
            printf(" %d", fd);
    printf("\n");
}

static void print_limits(void)
{
    printf("limits");
    for (int i = 0; i < RLIM_NLIMITS; i++) {
        struct rlimit limit = { 0 };
        (void)getrlimit((__rlimit_resource_t)i, &limit);
        printf(" %llx:%llx", (unsigned long long)limit.rlim_cur,
                (unsigned long long)limit.rlim_max);
    }
    printf("\n");
}

static void print_file(const char *name, const char *path)
{
    char text[256] = "";
    FILE *file = fopen(path, "re");

    if (file) {
        if (!fgets(text, sizeof(text), file))
            text[0] = '\0';
        (void)fclose(file);
    }
    text[strcspn(text, "\n")] = '\0';
    printf("%s %s\n", name, text);
}

static void facts(char **args)
{
    char cwd[4096];
    char host[256] = "";
    cpu_set_t cpus;
    struct itimerval timer = { 0 };
    mode_t mask = umask(0);

    (void)args;
    (void)umask(mask);
    for (char **e = environ; *e; e++)
        if (strncmp(*e, "LEFT", 4) == 0 || strncmp(*e, "LC_ALL", 6) == 0)
            printf("variable-%s\n", *e);
    printf("umask %03o\n", (unsigned)mask);
    printf("directory %s\n", getcwd(cwd, sizeof(cwd)) ? cwd : "none");
    print_signals();
    print_descriptors();
    print_limits();
    errno = 0;
    printf("nice %d\n", getpriority(PRIO_PROCESS, 0));
    CPU_ZERO(&cpus);
    (void)sched_getaffinity(0, sizeof(cpus), &cpus);
    printf("processors %d\n", CPU_COUNT(&cpus));
    printf("scheduler %d\n", sched_getscheduler(0));
    printf("input-output-priority %ld\n", syscall(SYS_ioprio_get, 1, 0));
    print_file("oom-score", "/proc/self/oom_score_adj");
    print_file("personality", "/proc/self/personality");
    (void)getitimer(ITIMER_REAL, &timer);
    printf("timer %d\n", timer.it_value.tv_sec != 0);
    printf("timer-slack %d\n", prctl(PR_GET_TIMERSLACK));
    printf("dumpable %d\n", prctl(PR_GET_DUMPABLE));
    printf("own-session %d\n", getsid(0) == getpid());
    (void)gethostname(host, sizeof(host) - 1);
    printf("host-name %s\n", host);
}

/* What a program may do to another one of its user. */
static void spoil(pid_t pid)
{
    const struct rlimit tight = { 11, 11 };
    cpu_set_t cpus;
    char path[64];

    (void)prlimit(pid, RLIMIT_NOFILE, &tight, NULL);
    (void)prlimit(pid, RLIMIT_CORE, &(struct rlimit){ 0, 0 }, NULL);
    (void)prlimit(pid, RLIMIT_STACK, &(struct rlimit){ 1 << 20, 1 << 20 }, NULL);
    (void)setpriority(PRIO_PROCESS, (id_t)pid, 10);
    (void)setpriority(PRIO_PGRP, (id_t)pid, 10);
    CPU_ZERO(&cpus);
    CPU_SET(0, &cpus);
    (void)sched_setaffinity(pid, sizeof(cpus), &cpus);
    (void)sched_setscheduler(pid, SCHED_BATCH, &(struct sched_param){ 0 });
    (void)syscall(SYS_ioprio_set, 1, pid, 3 << 13);
    (void)snprintf(path, sizeof(path), "/proc/%d/oom_score_adj", (int)pid);
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd >= 0) {
        (void)!write(fd, "500", 3);
        (void)close(fd);
    }
}

static void leave(char **args)
{
    sigset_t all;

    (void)setenv("LEFT", "behind", 1);
    (void)setenv("LC_ALL", "C", 1);
    (void)umask(077);
    (void)chdir("/");
    for (int i = 1; i < NSIG; i++)
        (void)signal(i, SIG_IGN);
    (void)sigfillset(&all);
    (void)sigprocmask(SIG_BLOCK, &all, NULL);
    (void)dup2(0, 7);
    (void)prctl(PR_SET_TIMERSLACK, 123456);
    /* On the host other processes and the host name are not changed. */
    if (!getenv("ALONE")) {
        (void)sethostname("taken", 5);
        (void)setpriority(PRIO_USER, 0, 10); /* of all processes of the same user */
        (void)syscall(SYS_ioprio_set, 3, getuid(), 3 << 13);
        spoil(getppid());
        spoil(1);
        (void)kill(1, SIGSTOP);
        (void)kill(1, SIGTERM);
        (void)kill(1, SIGUSR1);
    }
    spoil(0);
    if (args[0])
        (void)execv(args[0], args);
}

static void control(char **args)
{
    (void)args;
    works("umask", umask(077) != 077 && umask(077) == 077);
    works("variable", setenv("LEFT", "x", 1) == 0);
}

int main(int argc, char **argv)
{
    return attack_main(argc, argv,
            (struct attack_mode[]){
                    { "facts", facts }, { "leave", leave }, { "control", control }, { 0 } });
}
