/* Takes all processors: many threads, and a higher scheduling priority. */
#include "attack.h"
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static volatile bool is_over;

static double seconds(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void *burn(void *arg)
{
    while (!is_over)
        ;
    return arg;
}

static long be_nice(const void *arg)
{
    (void)arg;
    return setpriority(PRIO_PROCESS, 0, -20);
}

static long be_real_time(const void *arg)
{
    struct sched_param param = { .sched_priority = 99 };
    (void)arg;
    return sched_setscheduler(0, SCHED_FIFO, &param);
}

static long have_deadline(const void *arg)
{
    struct {
        unsigned size, policy;
        unsigned long long flags;
        int nice;
        unsigned priority;
        unsigned long long runtime, deadline, period;
    } attr = { sizeof(attr), 6 /* SCHED_DEADLINE */, 0, 0, 0, 9000000, 10000000, 10000000 };
    (void)arg;
    return syscall(SYS_sched_setattr, 0, &attr, 0);
}

static long first_at_disk(const void *arg)
{
    (void)arg;
    return syscall(SYS_ioprio_set, 1, 0, 1 << 13 /* IOPRIO_CLASS_RT, 0 */);
}

/* Prints "SHARE <hundredths of a processor>": what `threads` of us got within `ms`. */
static void hog(char **args)
{
    size_t threads = number(args[0]);
    unsigned long ms = number(args[1]);
    double wall = seconds(CLOCK_MONOTONIC);
    for (size_t i = 0; i < threads; i++) {
        pthread_t t;
        if (pthread_create(&t, NULL, burn, NULL) != 0)
            cannot("thread %zu: %s", i, strerror(errno));
    }
    while (seconds(CLOCK_MONOTONIC) - wall < (double)ms / 1000)
        (void)nanosleep(&(struct timespec){ .tv_nsec = 20000000 }, NULL);
    double cpu = seconds(CLOCK_PROCESS_CPUTIME_ID);
    wall = seconds(CLOCK_MONOTONIC) - wall;
    printf("SHARE %.0f\n", 100 * cpu / wall);
    fflush(stdout);
    _exit(0);
}

static void attack(char **args)
{
    const int *const reasons = REASONS(EPERM, EACCES, ENOSYS);
    (void)args;
    attempt_in_child("nice", be_nice, NULL, NULL, reasons);
    attempt_in_child("real-time", be_real_time, NULL, NULL, reasons);
    attempt_in_child("deadline", have_deadline, NULL, REASONS(EBUSY), reasons);
    attempt_in_child("io-real-time", first_at_disk, NULL, NULL, reasons);
}

static void control(char **args)
{
    (void)args;
    works("be-nicer", setpriority(PRIO_PROCESS, 0, 5) == 0);
    works("yield", sched_yield() == 0);
}

int main(int argc, char **argv)
{
    return attack_main(argc, argv,
            (struct attack_mode[]){
                    { "attack", attack }, { "hog", hog }, { "control", control }, { 0 } });
}
