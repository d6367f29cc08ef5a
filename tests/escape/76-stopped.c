/* Puts itself where signals are not acted on: stopped, or waiting for a vfork child. */
#include "attack.h"
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static void on_term(int sig)
{
    (void)sig; /* would end it politely; it never runs while the process is stopped */
    _exit(0);
}

/* The parent cannot be reached by anything but SIGKILL until the child has gone. */
static void wait_for_vfork_child(void)
{
    signal(SIGTERM, SIG_IGN);
    pid_t pid = vfork();
    if (pid == 0)
        for (;;)
            syscall(SYS_ppoll, NULL, 0, NULL, NULL, 0);
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
