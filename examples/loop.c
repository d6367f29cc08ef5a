/*
 * loop.c - one thread, poll(2), and several programs in a sandbox at once, whose output is
 * shown as it comes. The sandbox itself is made by a task, so that nothing here ever waits.
 *
 *     cc loop.c $(pkg-config --cflags --libs carrel) -o loop
 *     ./loop 'sleep 0.2; echo second' 'echo first'
 */
#include <carrel/carrel.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MOST 16

static struct carrel_error err;

static _Noreturn void give_up(const char *what)
{
    fprintf(stderr, "%s: %s\n", what, err.message);
    exit(1);
}

static struct carrel_process *start(struct carrel_sandbox *sandbox, const char *line)
{
    const char *const argv[] = { "sh", "-c", line, NULL };
    struct carrel_run_options options = CARREL_RUN_OPTIONS_INIT;
    struct carrel_process *process = NULL;

    options.argv = argv;
    options.timeout_ms = 5000;
    if (carrel_process_start(sandbox, &options, &process, &err) < 0)
        give_up(line);
    return process;
}

/* Passes on what there is. */
static void copy_output(struct carrel_process *process)
{
    char data[4096];
    ssize_t n;

    while ((n = read(carrel_process_stream(process, CARREL_STDOUT), data, sizeof(data))) > 0)
        if (write(1, data, (size_t)n) != n)
            exit(1);
    if (n == 0)
        carrel_process_close(process, CARREL_STDOUT);
}

/* Returns whether it has ended. */
static int look(struct carrel_process *process)
{
    struct carrel_run_result *result = NULL;

    int r = carrel_process_result(process, &result, &err);
    if (r < 0)
        give_up("result");
    if (r > 0) {
        copy_output(process);
        printf("status %d\n", carrel_run_result_status(result));
        (void)fflush(stdout);
    }
    carrel_run_result_free(result);
    return r;
}

static void run_all(struct carrel_process **all, int n)
{
    struct pollfd watch[2 * MOST];
    int running = n;

    while (running > 0) {
        for (int i = 0; i < n; i++) {
            watch[2 * i].fd = all[i] ? carrel_process_fd(all[i]) : -1;
            watch[2 * i + 1].fd = all[i] ? carrel_process_stream(all[i], CARREL_STDOUT) : -1;
            watch[2 * i].events = watch[2 * i + 1].events = POLLIN;
        }
        if (poll(watch, (nfds_t)(2 * n), -1) < 0)
            return;
        for (int i = 0; i < n; i++) {
            if (all[i] && watch[2 * i + 1].revents)
                copy_output(all[i]);
            if (all[i] && watch[2 * i].revents && look(all[i])) {
                carrel_process_free(all[i]);
                all[i] = NULL;
                running--;
            }
        }
    }
}

int main(int argc, char **argv)
{
    struct carrel_sandbox_options options = CARREL_SANDBOX_OPTIONS_INIT;
    struct carrel_process *all[MOST];
    struct carrel_sandbox *sandbox = NULL;
    struct carrel_task *task = NULL;
    int n = argc - 1 < MOST ? argc - 1 : MOST;

    options.lease_ms = 60 * 1000;
    if (carrel_sandbox_create_start(&options, &task, &err) < 0)
        give_up("create");
    struct pollfd made = { .fd = carrel_task_fd(task), .events = POLLIN };
    while (poll(&made, 1, 100) == 0)
        fprintf(stderr, "the sandbox is being made\n");
    if (carrel_task_finish(task, NULL, &sandbox, &err) < 0)
        give_up("create");

    for (int i = 0; i < n; i++)
        all[i] = start(sandbox, argv[i + 1]);
    run_all(all, n);
    if (carrel_sandbox_destroy(sandbox, NULL, &err) < 0)
        give_up("destroy");
    carrel_sandbox_free(sandbox);
    return 0;
}
