/*
 * library_loop.c - one thread with an event loop that keeps many sandboxes at once; only the
 * public headers of libcarrel.
 *
 *     library_loop AT_ONCE SANDBOXES
 *
 * Each sandbox is made by a task, runs a program whose streams the loop serves, and is
 * destroyed by a task. tests/cli/library.bats builds it with an address sanitizer.
 */
#include <carrel/carrel.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MOST 64

enum step { IDLE, CREATING, RUNNING, DESTROYING };

struct slot {
    enum step step;
    struct carrel_task *task;
    struct carrel_sandbox *sandbox;
    struct carrel_process *process;
    char text[32];
    size_t len;
};

static const struct carrel_sandbox_options create_options = CARREL_SANDBOX_OPTIONS_INIT;
static struct carrel_run_options program = CARREL_RUN_OPTIONS_INIT;
static int failures, done;

static void fail(struct slot *slot, const char *what, const struct carrel_error *err)
{
    (void)fprintf(stderr, "library_loop: %s: %s\n", what, err ? err->message : "");
    failures++;
    done++;
    carrel_process_free(slot->process);
    carrel_sandbox_free(slot->sandbox);
    *slot = (struct slot){ .step = IDLE };
}

static void begin(struct slot *slot)
{
    struct carrel_error err = { 0 };

    *slot = (struct slot){ .step = CREATING };
    if (carrel_sandbox_create_start(&create_options, &slot->task, &err) < 0)
        fail(slot, "create", &err);
}

/* "cat" writes back what it reads, and ends with its input. */
static void start_program(struct slot *slot)
{
    struct carrel_error err = { 0 };
    struct carrel_task *task = slot->task;

    slot->task = NULL;
    if (carrel_task_finish(task, NULL, &slot->sandbox, &err) < 0 ||
            carrel_process_start(slot->sandbox, &program, &slot->process, &err) < 0) {
        fail(slot, "start", &err);
        return;
    }
    slot->step = RUNNING;
    if (write(carrel_process_stream(slot->process, CARREL_STDIN), "hello", 5) != 5)
        fail(slot, "write", NULL);
    else
        carrel_process_close(slot->process, CARREL_STDIN);
}

static void read_output(struct slot *slot)
{
    const int fd = carrel_process_stream(slot->process, CARREL_STDOUT);
    ssize_t n = read(fd, slot->text + slot->len, sizeof(slot->text) - 1 - slot->len);

    if (n > 0)
        slot->len += (size_t)n;
    else if (n == 0)
        carrel_process_close(slot->process, CARREL_STDOUT);
}

static void look_at_program(struct slot *slot)
{
    struct carrel_error err = { 0 };
    struct carrel_run_result *result = NULL;

    int r = carrel_process_result(slot->process, &result, &err);
    if (r == 0)
        return;
    if (r > 0 && carrel_process_stream(slot->process, CARREL_STDOUT) >= 0)
        read_output(slot);
    const bool is_right =
            r > 0 && carrel_run_result_status(result) == 0 && strcmp(slot->text, "hello") == 0;
    carrel_run_result_free(result);
    carrel_process_free(slot->process);
    slot->process = NULL;
    if (!is_right) {
        fail(slot, "the program", &err);
        return;
    }
    slot->step = DESTROYING;
    if (carrel_sandbox_destroy_start(slot->sandbox, &slot->task, &err) < 0)
        fail(slot, "destroy", &err);
}

static void end(struct slot *slot)
{
    struct carrel_error err = { 0 };
    struct carrel_task *task = slot->task;

    slot->task = NULL;
    if (carrel_task_finish(task, NULL, NULL, &err) < 0) {
        fail(slot, "destroy", &err);
        return;
    }
    carrel_sandbox_free(slot->sandbox);
    *slot = (struct slot){ .step = IDLE };
    done++;
}

static void serve(struct slot *slot, const struct pollfd *watch)
{
    switch (slot->step) {
    case IDLE:
        break;
    case CREATING:
        if (watch[0].revents)
            start_program(slot);
        break;
    case RUNNING:
        if (watch[1].revents)
            read_output(slot);
        if (watch[0].revents)
            look_at_program(slot);
        break;
    case DESTROYING:
        if (watch[0].revents)
            end(slot);
        break;
    }
}

static void watch_slot(const struct slot *slot, struct pollfd *watch)
{
    watch[0] = watch[1] = (struct pollfd){ .fd = -1, .events = POLLIN };
    if (slot->task)
        watch[0].fd = carrel_task_fd(slot->task);
    if (slot->process) {
        watch[0].fd = carrel_process_fd(slot->process);
        watch[1].fd = carrel_process_stream(slot->process, CARREL_STDOUT);
    }
}

int main(int argc, char **argv)
{
    static const char *const words[] = { "cat", NULL };
    static struct slot slots[MOST];
    struct pollfd watch[2 * MOST];
    const int n = argc == 3 ? atoi(argv[1]) : 0;
    const int all = argc == 3 ? atoi(argv[2]) : 0;
    int begun = 0;

    if (n < 1 || n > MOST)
        return 2;
    program.argv = words;
    program.stdin_fd = 0;
    while (done < all) {
        for (int i = 0; i < n; i++) {
            if (slots[i].step == IDLE && begun < all) {
                begun++;
                begin(&slots[i]);
            }
            watch_slot(&slots[i], &watch[2 * i]);
        }
        if (done < all && poll(watch, (nfds_t)(2 * n), -1) < 0)
            return 2;
        for (int i = 0; i < n; i++)
            serve(&slots[i], &watch[2 * i]);
    }
    (void)printf("%d failures\n", failures);
    return failures > 0;
}
