/* Puts itself where signals are not acted on: stopped, or waiting for a vfork child. */
#include "attack.h"
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

static void on_term(int sig)
{
    (void)sig; /* would exit; it never runs while the process is stopped */
    _exit(0);
}

static int never_exec(void *arg)
{
    (void)arg;
    signal(SIGTERM, SIG_IGN);
    while (pause() < 0)
        ;
    return 0;
}

/* As vfork() does it: only SIGKILL reaches the parent until the child has exited. */
static void wait_for_vfork_child(void)
{
    static char stack[65536] __attribute__((aligned(64)));
    (void)clone(never_exec, stack + sizeof(stack), CLONE_VM | CLONE_VFORK | SIGCHLD, NULL);
}

/* attack self|group|vfork */
static void attack(char **args)
{
    if (!args[0])
        cannot("which way?");
    signal(SIGTERM, on_term);
    ready("%d", getpid());
    if (strcmp(args[0], "self") == 0)
        raise(SIGSTOP);
    else if (strcmp(args[0], "group") == 0)
        kill(0, SIGSTOP);
    else
        wait_for_vfork_child();
    for (;;)
        pause();
}

/* Stopped and continued, as job control does. */
static void control(char **args)
{
    (void)args;
    pid_t pid = fork();
    if (pid == 0) {
        kill(getppid(), SIGCONT);
        _exit(0);
    }
    works("continue", pid > 0);
}

int main(int argc, char **argv)
{
    return attack_main(argc, argv,
            (struct attack_mode[]){ { "attack", attack }, { "control", control }, { 0 } });
}
