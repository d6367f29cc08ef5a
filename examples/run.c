/*
 * run.c - runs a program that may be hostile, with limits, and says how it ended.
 *
 *     cc run.c $(pkg-config --cflags --libs carrel) -o run
 *     ./run sh -c 'echo hello; exit 3'
 */
#include <carrel/carrel.h>
#include <stdio.h>

/* What a caller can do about a failure depends on where its cause lies. */
static int explain(const struct carrel_error *err)
{
    fprintf(stderr, "%s (%s, cause: %s)\n", err->message, err->reason,
            carrel_origin_name(err->origin));
    return err->origin == CARREL_FROM_PROGRAM ? 127 : 125;
}

int main(int argc, char **argv)
{
    struct carrel_run_options options = CARREL_RUN_OPTIONS_INIT;
    struct carrel_run_result *result = NULL;
    struct carrel_error err;

    if (argc < 2) {
        fprintf(stderr, "usage: run PROGRAM [ARG...]\n");
        return 2;
    }
    options.argv = (const char *const *)argv + 1;
    options.timeout_ms = 10 * 1000;
    options.output_bytes = 64 << 10;
    options.stdout_fd = 1; /* live, besides what the result keeps */
    options.stderr_fd = 2;
    if (carrel_run(&options, &result, &err) < 0)
        return explain(&err);

    if (carrel_run_result_message(result)[0])
        fprintf(stderr, "%s\n", carrel_run_result_message(result));
    int status = carrel_run_result_status(result);
    carrel_run_result_free(result);
    return status;
}
