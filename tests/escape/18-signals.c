/* Signals everything it may: all processes of its user, and one of the host by pid. */
#include "attack.h"
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/*
 * attack PID [all]: the driver checks whether PID survives. `all` is only for where no other
 * process can be hit: in the sandbox, or under a user id without other processes.
 */
static void attack(char **args)
{
    pid_t pid = (pid_t)number(args[0]);
    attempt("signal-by-number", kill(pid, SIGUSR1), REASONS(ESRCH, EPERM));
    pid_t group = getpgid(pid);
    attempt("signal-group", kill(group > 0 ? -group : -pid, 0), REASONS(ESRCH, EPERM));
    attempt("queue-signal", sigqueue(pid, SIGUSR1, (union sigval){ 0 }), REASONS(ESRCH, EPERM));
    if (!args[1])
        return;
    if (geteuid() == 0)
        cannot("signal all as root");
    /* Its result is not checked: it may reach processes of the sandbox, which is allowed. */
    (void)kill(-1, SIGKILL);
    printf("ASKED kill-all\n");
    fflush(stdout);
    if (strcmp(args[1], "and-init") == 0 && kill(1, SIGKILL) == 0)
        printf("ASKED kill-init\n");
}

static void control(char **args)
{
    int status = 0;
    (void)args;
    pid_t pid = fork();
    if (pid == 0)
        for (;;)
            pause();
    works("kill-child", kill(pid, SIGTERM) == 0);
    works("child-is-gone", waitpid(pid, &status, 0) == pid && WTERMSIG(status) == SIGTERM);
}

/* On the host: something to kill. */
static void victim(char **args)
{
    (void)args;
    signal(SIGUSR1, SIG_IGN);
    ready("%d", getpid());
    for (;;)
        pause();
}

int main(int argc, char **argv)
{
    return attack_main(argc, argv,
            (struct attack_mode[]){ { "attack", attack }, { "control", control },
                    { "victim", victim }, { 0 } });
}
