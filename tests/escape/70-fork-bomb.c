/* Takes every pid. */
#include "attack.h"
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static void judge(const char *what, size_t n, size_t cap, int why)
{
    if (n >= cap)
        succeeded(what, "%zu", n);
    else if (why == EAGAIN || why == ENOMEM)
        refused(what, "%s after %zu", errno_name(why), n);
    else
        failed(what, why, NULL);
}

/* They are killed with their parent, so a killed test leaves nothing. */
static size_t fork_up_to(size_t cap, int *why)
{
    pid_t *pids = calloc(cap, sizeof(*pids));
    size_t n = 0;
    if (!pids)
        cannot("memory");
    for (; n < cap; n++) {
        pids[n] = fork();
        *why = errno;
        if (pids[n] < 0)
            break;
        if (pids[n] == 0) {
            (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
            if (getppid() != 1)
                pause();
            _exit(0);
        }
    }
    for (size_t i = 0; i < n; i++)
        (void)kill(pids[i], SIGKILL);
    for (size_t i = 0; i < n; i++)
        waitpid(pids[i], NULL, 0);
    free(pids);
    return n;
}

static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;

static void *wait_at_gate(void *arg)
{
    pthread_mutex_lock(&gate);
    pthread_mutex_unlock(&gate);
    return arg;
}

static size_t threads_up_to(size_t cap, int *why)
{
    pthread_t *threads = calloc(cap, sizeof(*threads));
    pthread_attr_t attr;
    size_t n = 0;
    if (!threads)
        cannot("memory");
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, 16384);
    pthread_mutex_lock(&gate);
    for (; n < cap; n++) {
        *why = pthread_create(&threads[n], &attr, wait_at_gate, NULL);
        if (*why != 0)
            break;
    }
    pthread_mutex_unlock(&gate);
    for (size_t i = 0; i < n; i++)
        pthread_join(threads[i], NULL);
    free(threads);
    return n;
}

/* attack CAP: stops at CAP by itself, so that it can be shown without a sandbox. */
static void attack(char **args)
{
    size_t cap = number(args[0]);
    int why = 0;
    size_t n = fork_up_to(cap, &why);
    judge("processes", n, cap, why);
    n = threads_up_to(cap, &why);
    judge("threads", n, cap, why);
}

static void *breed(void *arg)
{
    for (;;) {
        pthread_t t;
        if (pthread_create(&t, NULL, breed, NULL) == 0)
            pthread_detach(t);
        pid_t pid = fork();
        if (pid == 0)
            setsid();
    }
    return arg;
}

/* Unlimited; only where something else stops it. */
static void wild(char **args)
{
    (void)args;
    if (getppid() != 1)
        cannot("not in a sandbox");
    for (int i = 1; i < NSIG; i++)
        signal(i, SIG_IGN);
    ready("breeding");
    breed(NULL);
}

static void control(char **args)
{
    int why = 0;
    (void)args;
    works("ten-processes", fork_up_to(10, &why) == 10);
    works("ten-threads", threads_up_to(10, &why) == 10);
}

int main(int argc, char **argv)
{
    return attack_main(argc, argv,
            (struct attack_mode[]){
                    { "attack", attack }, { "wild", wild }, { "control", control }, { 0 } });
}
