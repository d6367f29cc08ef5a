/*
 * library_threads.c - many threads that use libcarrel at once; only its public headers.
 *
 *     library_threads THREADS RUNS SANDBOXES    of each thread
 *
 * tests/cli/library.bats builds it with a thread sanitizer.
 */
#include <carrel/carrel.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_THREADS 64

static int runs, sandboxes;
static atomic_int failures;

static void fail(const char *what, const struct carrel_error *err)
{
    (void)fprintf(stderr, "library_threads: %s: %s\n", what, err->message);
    atomic_fetch_add(&failures, 1);
}

static void check(const char *what, int r, struct carrel_run_result *result,
        const struct carrel_error *err)
{
    size_t len;

    if (r < 0)
        fail(what, err);
    else if (strcmp(carrel_run_result_stdout(result, &len), "hello\n") != 0)
        fail("its output", err);
    carrel_run_result_free(result);
}

static void run(const struct carrel_run_options *options)
{
    struct carrel_error err = { 0 };
    struct carrel_run_result *result = NULL;

    check("carrel_run", carrel_run(options, &result, &err), result, &err);
}

static void keep(const struct carrel_run_options *options)
{
    const struct carrel_sandbox_options made = CARREL_SANDBOX_OPTIONS_INIT;
    struct carrel_error err = { 0 };
    struct carrel_sandbox *sandbox = NULL;
    struct carrel_run_result *result = NULL;

    if (carrel_sandbox_create(&made, &sandbox, &err) < 0) {
        fail("carrel_sandbox_create", &err);
        return;
    }
    check("exec", carrel_sandbox_exec(sandbox, options, &result, &err), result, &err);
    if (carrel_sandbox_destroy(sandbox, NULL, &err) < 0)
        fail("destroy", &err);
    carrel_sandbox_free(sandbox);
}

static void *work(void *arg)
{
    static const char *const argv[] = { "echo", "hello", NULL };
    struct carrel_run_options options = CARREL_RUN_OPTIONS_INIT;

    (void)arg;
    options.argv = argv;
    for (int i = 0; i < runs; i++)
        run(&options);
    for (int i = 0; i < sandboxes; i++)
        keep(&options);
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t threads[MAX_THREADS];
    int n = argc == 4 ? atoi(argv[1]) : 0;

    if (n < 1 || n > MAX_THREADS)
        return 2;
    runs = atoi(argv[2]);
    sandboxes = atoi(argv[3]);
    for (int i = 0; i < n; i++)
        if (pthread_create(&threads[i], NULL, work, NULL) != 0)
            return 2;
    for (int i = 0; i < n; i++)
        (void)pthread_join(threads[i], NULL);
    (void)printf("%d failures\n", atomic_load(&failures));
    return failures > 0;
}
