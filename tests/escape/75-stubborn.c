/*
 * Resists its end: ignores every signal that can be ignored, leaves its session twice, keeps
 * the pipes open and changes its name.
 */
#include "attack.h"
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

static void stay(void)
{
    for (int i = 1; i < NSIG; i++)
        signal(i, SIG_IGN);
    for (;;)
        pause();
}

static void detach(char *name)
{
    if (fork() != 0)
        return;
    setsid();
    if (fork() != 0)
        _exit(0);
    setsid();
    (void)prctl(PR_SET_NAME, "kworker/0:1");
    memset(name, 'k', strlen(name)); /* argv[0], as ps shows it */
    stay();
}

static char *program_name;

/* attack linger|leave: the detached one stays in both. */
static void attack(char **args)
{
    bool is_leaving = args[0] && strcmp(args[0], "leave") == 0;
    detach(program_name);
    detach(program_name);
    ready("%d", getpid());
    if (!is_leaving)
        stay();
}

static void control(char **args)
{
    (void)args;
    works("end-by-itself", true);
}

int main(int argc, char **argv)
{
    program_name = argv[0];
    return attack_main(argc, argv,
            (struct attack_mode[]){ { "attack", attack }, { "control", control }, { 0 } });
}
