/*
 * session.c - a sandbox that stays: files go in, programs run, two ways are tried from one
 * state, and a file comes out.
 *
 *     cc session.c $(pkg-config --cflags --libs carrel) -o session && ./session
 */
#include <carrel/carrel.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct carrel_error err;

static void must(int r, const char *what)
{
    if (r >= 0)
        return;
    fprintf(stderr, "%s: %s\n", what, err.message);
    exit(1);
}

static void shell(struct carrel_sandbox *sandbox, const char *line)
{
    const char *const argv[] = { "sh", "-c", line, NULL };
    struct carrel_run_options options = CARREL_RUN_OPTIONS_INIT;
    struct carrel_run_result *result = NULL;

    options.argv = argv;
    options.stderr_fd = 2;
    must(carrel_sandbox_exec(sandbox, &options, &result, &err), line);
    if (carrel_run_result_status(result) != 0)
        fprintf(stderr, "%s: status %d\n", line, carrel_run_result_status(result));
    carrel_run_result_free(result);
}

/* A descriptor from which `text` can be read. */
static int text_fd(const char *text)
{
    int ends[2];

    if (pipe(ends) < 0 || write(ends[1], text, strlen(text)) < 0)
        exit(1);
    close(ends[1]);
    return ends[0];
}

static void take_fork(
        const char *id, int receipt, const struct carrel_error *failure, void *context)
{
    char *kept = context;

    if (failure)
        return; /* carrel_sandbox_fork() returns the first of them */
    snprintf(kept, 64, "%s", id);
    carrel_sandbox_received(receipt); /* from here on it stays */
}

int main(void)
{
    struct carrel_sandbox_options made = CARREL_SANDBOX_OPTIONS_INIT;
    struct carrel_fork_options fork = CARREL_FORK_OPTIONS_INIT;
    struct carrel_sandbox *sandbox = NULL;
    struct carrel_sandbox *other = NULL;
    char forked[64] = "";

    made.lease_ms = 60 * 1000; /* it ends by itself, should this program be killed */
    must(carrel_sandbox_create(&made, &sandbox, &err), "create");

    int in = text_fd("3\n1\n2\n");
    must(carrel_files_write(sandbox, "numbers", in, NULL, &err), "write");
    close(in);
    shell(sandbox, "sort numbers > sorted");

    fork.ready = take_fork;
    fork.context = forked;
    must(carrel_sandbox_fork(sandbox, &fork, &err), "fork");
    must(carrel_sandbox_open(forked, &other, &err), "open");
    shell(sandbox, "echo original >> sorted");
    shell(other, "echo fork >> sorted");

    must(carrel_files_read(sandbox, "sorted", 1, NULL, &err), "read");
    must(carrel_files_read(other, "sorted", 1, NULL, &err), "read");

    must(carrel_sandbox_destroy(other, NULL, &err), "destroy");
    must(carrel_sandbox_destroy(sandbox, NULL, &err), "destroy");
    carrel_sandbox_free(other);
    carrel_sandbox_free(sandbox);
    return 0;
}
