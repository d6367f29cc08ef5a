/*
 * start.c - measures the cost of starting commands, several commands in turn.
 *
 *     start latency [-r ROUNDS] [-w WARMUP] ::: NAME[@N] PROGRAM [ARG...] [::: ...]
 *     start rate -j IN_FLIGHT [-r ROUNDS] [-t SLICE_MS] ::: NAME[@N] PROGRAM [ARG...] [::: ...]
 *
 * latency: from before posix_spawn to after wait4, one command at a time. In each round every
 * command runs once, in an order that changes from round to round, so that other load and the
 * kernel's cleanup after the previous command affect all of them alike. Some commands return
 * before the sandbox is gone. This program is a subreaper and reaps what they leave: the second
 * figure is the time until no process is left.
 *
 * rate: keeps IN_FLIGHT of one command running for SLICE_MS, then the same for the next one,
 * ROUNDS times. A slice ends when its last process is reaped.
 *
 * NAME@N, for a slow command, takes part in every Nth round only. "{n}" in an argument becomes
 * a number that is unique among all starts. Output goes to /dev/null.
 *
 * Prints one line per command, separated by tabs:
 *     latency: name, median, p99, least; median until no process is left; CPU time (all in
 *              microseconds); number of starts
 *     rate:    name, median of the slices' rates (per second), least, most, number of starts
 */
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MAX_COMMANDS 32
#define SETTLE_MS 100 /* between slices: a kernel thread frees namespaces later */

extern char **environ;

struct command {
    const char *name;
    char **argv;
    unsigned every; /* takes part in every Nth round */
    double *samples;
    double *gone; /* until no process is left */
    size_t n_samples;
    double cpu_us; /* of all its processes */
    unsigned long n_starts;
};

struct bench {
    struct command commands[MAX_COMMANDS];
    size_t n_commands;
    unsigned rounds;
    unsigned warmup;
    unsigned in_flight;
    unsigned slice_ms;
    posix_spawn_file_actions_t actions;
};

static _Noreturn void fail(const char *what, const char *why)
{
    (void)fprintf(stderr, "start: %s: %s\n", what, why);
    exit(2);
}

static double now_us(void)
{
    struct timespec ts;

    (void)clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec * 1e6 + (double)ts.tv_nsec / 1e3;
}

/* The argument with "{n}" replaced; the caller frees it. */
static char *expand(const char *arg, unsigned long number)
{
    const char *at = strstr(arg, "{n}");
    char *text = NULL;
    int n = at ? asprintf(&text, "%.*s%d-%lu%s", (int)(at - arg), arg, (int)getpid(), number,
                         at + 3)
               : asprintf(&text, "%s", arg);

    if (n < 0)
        fail("argument", "no memory");
    return text;
}

static pid_t spawn(struct bench *bench, struct command *command)
{
    static unsigned long number;
    char *argv[256];
    size_t n = 0;
    pid_t pid;

    number++;
    for (; command->argv[n]; n++) {
        if (n + 1 == sizeof(argv) / sizeof(argv[0]))
            fail(command->name, "too many arguments");
        argv[n] = expand(command->argv[n], number);
    }
    argv[n] = NULL;
    int r = posix_spawnp(&pid, argv[0], &bench->actions, NULL, argv, environ);
    if (r != 0)
        fail(command->name, strerror(r));
    while (n > 0)
        free(argv[--n]);
    command->n_starts++;
    return pid;
}

/* The time of a failed command means nothing. */
static void check(const struct command *command, int status)
{
    char why[64];

    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return;
    (void)snprintf(why, sizeof(why), "%s %d", WIFEXITED(status) ? "exit status" : "signal",
            WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
    fail(command->name, why);
}

static void reap(pid_t pid, int *status, struct rusage *usage)
{
    pid_t r;

    do {
        r = wait4(pid, status, 0, usage);
    } while (r < 0 && errno == EINTR);
    if (r < 0)
        fail("wait4", strerror(errno));
}

static double us_of(struct timeval tv)
{
    return (double)tv.tv_sec * 1e6 + (double)tv.tv_usec;
}

static void add_sample(struct command *command, double value)
{
    command->samples[command->n_samples++] = value;
}

static void measure_latency(struct bench *bench, struct command *command, bool is_counted)
{
    struct rusage usage;
    int status;
    double began = now_us();

    reap(spawn(bench, command), &status, &usage);
    double took = now_us() - began;
    double cpu_us = us_of(usage.ru_utime) + us_of(usage.ru_stime);
    check(command, status);
    while (wait4(-1, NULL, 0, &usage) > 0)
        cpu_us += us_of(usage.ru_utime) + us_of(usage.ru_stime);
    if (!is_counted)
        return;
    command->gone[command->n_samples] = now_us() - began;
    add_sample(command, took);
    command->cpu_us += cpu_us;
}

static void measure_rate(struct bench *bench, struct command *command)
{
    const struct timespec settle = { .tv_nsec = SETTLE_MS * 1000000L };
    unsigned running = 0;
    unsigned done = 0;
    double began = now_us();
    double end = began + bench->slice_ms * 1e3;
    int status;

    while (now_us() < end || running > 0) {
        while (running < bench->in_flight && now_us() < end) {
            (void)spawn(bench, command);
            running++;
        }
        if (running == 0)
            break;
        reap(-1, &status, NULL);
        check(command, status);
        running--;
        done++;
    }
    add_sample(command, done * 1e6 / (now_us() - began));
    (void)nanosleep(&settle, NULL);
}

/* The same sequence of orders in every run of the benchmark. */
static void shuffle(size_t *order, size_t n)
{
    static uint64_t state = 88172645463325252U;

    for (size_t i = n; i > 1; i--) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        size_t j = state % i;
        size_t kept = order[i - 1];
        order[i - 1] = order[j];
        order[j] = kept;
    }
}

static void run_rounds(struct bench *bench, bool is_rate)
{
    size_t order[MAX_COMMANDS];

    for (size_t i = 0; i < bench->n_commands; i++)
        order[i] = i;
    for (unsigned round = 0; round < bench->warmup + bench->rounds; round++) {
        bool is_counted = round >= bench->warmup;
        shuffle(order, bench->n_commands);
        for (size_t i = 0; i < bench->n_commands; i++) {
            struct command *command = &bench->commands[order[i]];
            if ((is_counted ? round - bench->warmup : round) % command->every != 0)
                continue;
            if (is_rate)
                measure_rate(bench, command);
            else
                measure_latency(bench, command, is_counted);
        }
    }
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;

    return (x > y) - (x < y);
}

/* The sample that at least `part` of all samples do not exceed. */
static double quantile(double *samples, size_t n, double part)
{
    size_t at = (size_t)(part * (double)n);

    qsort(samples, n, sizeof(samples[0]), by_value);
    return samples[at < n ? at : n - 1];
}

static void print(const struct bench *bench, bool is_rate)
{
    for (size_t i = 0; i < bench->n_commands; i++) {
        const struct command *c = &bench->commands[i];
        size_t n = c->n_samples;
        if (n == 0)
            continue;
        double median = quantile(c->samples, n, 0.5);
        if (is_rate)
            (void)printf("%s\t%.1f\t%.1f\t%.1f\t%lu\n", c->name, median, c->samples[0],
                    c->samples[n - 1], c->n_starts);
        else
            (void)printf("%s\t%.0f\t%.0f\t%.0f\t%.0f\t%.0f\t%zu\n", c->name, median,
                    quantile(c->samples, n, 0.99), c->samples[0], quantile(c->gone, n, 0.5),
                    c->cpu_us / (double)n, n);
    }
}

static unsigned number(const char *text)
{
    char *end;
    errno = 0;
    unsigned long value = strtoul(text, &end, 10);

    if (errno || *end || end == text || value == 0 || value > 1000000)
        fail(text, "expected a number from 1 to 1000000");
    return (unsigned)value;
}

static void add_command(struct bench *bench, char **words)
{
    struct command *command = &bench->commands[bench->n_commands++];

    if (bench->n_commands == MAX_COMMANDS)
        fail("commands", "too many");
    if (!words[0] || !words[1])
        fail(":::", "expected a name and a command");
    command->name = words[0];
    command->argv = words + 1;
    command->every = 1;
    char *at = strchr(words[0], '@');
    if (at) {
        *at = '\0';
        command->every = number(at + 1);
    }
}

static void parse(struct bench *bench, int argc, char **argv)
{
    int option;

    while ((option = getopt(argc, argv, "+r:w:j:t:")) >= 0) {
        unsigned *const field = option == 'r'   ? &bench->rounds
                                : option == 'w' ? &bench->warmup
                                : option == 'j' ? &bench->in_flight
                                : option == 't' ? &bench->slice_ms
                                                : NULL;
        if (!field)
            exit(2);
        *field = number(optarg);
    }
    /* Each ":::" ends the words before it, as the NULL that an argument vector needs. */
    char **word = argv + optind;
    if (!*word || strcmp(*word, ":::") != 0)
        fail("usage", "expected ':::' before the first command");
    for (bool has_more = true; has_more;) {
        char **first = ++word;
        while (*word && strcmp(*word, ":::") != 0)
            word++;
        has_more = *word;
        *word = NULL;
        add_command(bench, first);
    }
}

int main(int argc, char **argv)
{
    static struct bench bench = {
        .rounds = 100,
        .in_flight = 1,
        .slice_ms = 500,
    };

    if (argc < 2 || (strcmp(argv[1], "latency") != 0 && strcmp(argv[1], "rate") != 0))
        fail("usage", "start latency|rate [options] ::: NAME PROGRAM [ARG...] [::: ...]");
    bool is_rate = strcmp(argv[1], "rate") == 0;
    parse(&bench, argc - 1, argv + 1);
    for (size_t i = 0; i < bench.n_commands; i++) {
        bench.commands[i].samples = calloc(bench.rounds, sizeof(double));
        bench.commands[i].gone = calloc(bench.rounds, sizeof(double));
        if (!bench.commands[i].samples || !bench.commands[i].gone)
            fail("samples", "no memory");
    }
    (void)posix_spawn_file_actions_init(&bench.actions);
    if (posix_spawn_file_actions_addopen(
                &bench.actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0) != 0 ||
            posix_spawn_file_actions_addopen(
                    &bench.actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0) != 0)
        fail("posix_spawn", "no memory");
    if (!is_rate && prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) < 0)
        fail("prctl", strerror(errno));
    run_rounds(&bench, is_rate);
    print(&bench, is_rate);
    return 0;
}
