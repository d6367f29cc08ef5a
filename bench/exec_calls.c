/*
 * exec_calls.c - /bin/true in a living sandbox, as a library call, next to a bare spawn.
 *
 *     exec_calls [ROUNDS]
 *
 * In each round both run once, in alternating order. A bare spawn is posix_spawn to waitpid; a
 * call is carrel_sandbox_exec() to its result, including the journal. Prints median and p99 of
 * both in microseconds, and the ratio of the medians.
 */
#include <carrel/carrel.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

static double now_us(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

static int spawn_bare(void)
{
    char *argv[] = { (char[]){ "/bin/true" }, NULL };
    pid_t pid;
    int status;

    return posix_spawn(&pid, argv[0], NULL, NULL, argv, environ) != 0 ||
                           waitpid(pid, &status, 0) < 0
                   ? -1
                   : status;
}

static int exec_living(struct carrel_sandbox *sandbox)
{
    static const char *const argv[] = { "/bin/true", NULL };
    struct carrel_run_options options = CARREL_RUN_OPTIONS_INIT;
    struct carrel_run_result *result = NULL;
    struct carrel_error err = { 0 };

    options.argv = argv;
    if (carrel_sandbox_exec(sandbox, &options, &result, &err) < 0) {
        (void)fprintf(stderr, "exec_calls: %s\n", err.message);
        return -1;
    }
    int status = carrel_run_result_status(result);
    carrel_run_result_free(result);
    return status;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;

    return x < y ? -1 : x > y;
}

static double quantile(double *samples, size_t n, double q)
{
    qsort(samples, n, sizeof(*samples), by_value);
    return samples[(size_t)(q * (double)(n - 1))];
}

int main(int argc, char **argv)
{
    size_t rounds = argc > 1 ? strtoul(argv[1], NULL, 10) : 500;
    struct carrel_sandbox_options options = CARREL_SANDBOX_OPTIONS_INIT;
    struct carrel_sandbox *sandbox = NULL;
    struct carrel_error err = { 0 };
    double *samples[2] = { calloc(rounds, sizeof(double)), calloc(rounds, sizeof(double)) };
    int status = 1;

    if (!samples[0] || !samples[1] || rounds == 0)
        return 1;
    if (carrel_sandbox_create(&options, &sandbox, &err) < 0) {
        (void)fprintf(stderr, "exec_calls: %s\n", err.message);
        return 1;
    }
    for (size_t i = 0; i < 20 + rounds; i++) {
        for (size_t k = 0; k < 2; k++) {
            size_t which = (i + k) % 2;
            double began = now_us();
            if ((which ? exec_living(sandbox) : spawn_bare()) != 0)
                goto destroy_sandbox;
            if (i >= 20) /* the first rounds warm the caches */
                samples[which][i - 20] = now_us() - began;
        }
    }
    double bare = quantile(samples[0], rounds, 0.5);
    double living = quantile(samples[1], rounds, 0.5);
    printf("bare spawn\t%.0f\t%.0f\n", bare, quantile(samples[0], rounds, 0.99));
    printf("carrel_sandbox_exec\t%.0f\t%.0f\n", living, quantile(samples[1], rounds, 0.99));
    printf("ratio\t%.2f\n", living / bare);
    status = 0;

destroy_sandbox:
    (void)carrel_sandbox_destroy(
            sandbox, NULL, NULL); /* if it fails, the lease ends the sandbox */
    carrel_sandbox_free(sandbox);
    free(samples[0]);
    free(samples[1]);
    return status;
}
