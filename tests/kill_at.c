/*
 * kill_at.c - kill -9 of a program, or of a process that it forks, at a chosen system call.
 *
 * usage: kill_at GENERATION N PROGRAM [ARG...]
 *
 * GENERATION 0 is the program itself, 1 its children, 2 their children. The first process of
 * that generation is killed as it enters its Nth call; all others continue. N of 0 kills none
 * and prints on descriptor 9, when the program has exited, how many calls there were. Exits
 * when the program does, with its status, or with 99 if no process reached the Nth call.
 */
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#define MAX_PROCESSES 256

struct traced {
    pid_t pid; /* 0: free */
    int generation;
    bool is_inside; /* of a call: the next stop is its end */
    bool is_held;   /* stopped until its parent's event tells its generation */
};

static struct traced all[MAX_PROCESSES];

static struct traced *find(pid_t pid)
{
    for (size_t i = 0; i < MAX_PROCESSES; i++)
        if (all[i].pid == pid)
            return &all[i];
    return NULL;
}

#define UNKNOWN (-1) /* its first stop was seen before its parent's event */

static struct traced *add(pid_t pid, int generation)
{
    struct traced *one = find(pid);

    if (!one) {
        one = find(0);
        if (!one)
            exit(98);
        *one = (struct traced){ .pid = pid, .generation = UNKNOWN };
    }
    if (generation != UNKNOWN)
        one->generation = generation;
    return one;
}

static void go_on(pid_t pid, int signal)
{
    (void)ptrace(PTRACE_SYSCALL, pid, NULL, signal); /* it may have exited meanwhile: fine */
}

/* A child that continued before its generation is known would make uncounted calls. */
static void release(struct traced *child)
{
    if (child->is_held)
        go_on(child->pid, 0);
    child->is_held = false;
}

static pid_t begin(char **argv)
{
    pid_t pid = fork();
    int status;

    if (pid == 0) {
        (void)close(9);
        if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) < 0)
            _exit(77);
        (void)raise(SIGSTOP);
        (void)execvp(argv[0], argv);
        _exit(127);
    }
    if (pid < 0 || waitpid(pid, &status, 0) != pid || !WIFSTOPPED(status))
        exit(77);
    if (ptrace(PTRACE_SETOPTIONS, pid, NULL,
                PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK |
                        PTRACE_O_TRACECLONE | PTRACE_O_TRACEEXEC) < 0)
        exit(77);
    (void)add(pid, 0);
    go_on(pid, 0);
    return pid;
}

struct target {
    int generation;
    long nth; /* 0: none is killed */
    long n_calls;
    pid_t pid; /* the first of its generation; 0: none yet */
    bool is_dead;
};

static void on_call(struct traced *one, struct target *target)
{
    one->is_inside = !one->is_inside;
    if (!one->is_inside || one->generation != target->generation || target->is_dead)
        return;
    if (target->pid == 0)
        target->pid = one->pid;
    if (target->pid != one->pid)
        return;
    target->n_calls++;
    if (target->nth && target->n_calls == target->nth) {
        (void)kill(one->pid, SIGKILL);
        target->is_dead = true;
    }
}

static void on_stop(pid_t pid, int status, struct target *target)
{
    int event = status >> 16;
    int signal = WSTOPSIG(status);
    struct traced *one = add(pid, UNKNOWN);
    unsigned long child;

    if (event == PTRACE_EVENT_FORK || event == PTRACE_EVENT_VFORK ||
            event == PTRACE_EVENT_CLONE) {
        if (ptrace(PTRACE_GETEVENTMSG, pid, NULL, &child) == 0)
            release(add((pid_t)child, one->generation + 1));
        go_on(pid, 0);
    } else if (one->generation == UNKNOWN) {
        one->is_held = true;
    } else if (signal == (SIGTRAP | 0x80) && !event) {
        on_call(one, target);
        go_on(pid, 0);
    } else if (event || (signal == SIGSTOP && !one->is_inside)) {
        go_on(pid, 0); /* the latter is the first stop of a forked process */
    } else {
        go_on(pid, signal);
    }
}

int main(int argc, char **argv)
{
    int status;
    int result = 0;

    if (argc < 4)
        return 2;
    struct target target = { .generation = atoi(argv[1]), .nth = atol(argv[2]) };
    pid_t program = begin(argv + 3);
    for (;;) {
        pid_t pid = waitpid(-1, &status, __WALL);
        if (pid < 0 && errno == EINTR)
            continue;
        if (pid < 0)
            break;
        if (WIFSTOPPED(status)) {
            on_stop(pid, status, &target);
            continue;
        }
        struct traced *one = find(pid);
        if (one)
            *one = (struct traced){ 0 };
        if (pid == program) {
            result = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
            break; /* the others continue without us */
        }
    }
    (void)dprintf(9, "%ld\n", target.n_calls);
    return target.nth && !target.is_dead ? 99 : result;
}
