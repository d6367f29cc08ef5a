/* sandbox.c - the commands on one living sandbox. */
#include "base/auto.h"
#include "base/err.h"
#include "base/str.h"
#include "cli/args/sandbox_args.h"
#include "cli/args/signal_name.h"
#include "cli/commands.h"
#include "cli/print/report.h"
#include "cli/print/sandbox_print.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>

#define JSON_ROW                                                                               \
    OPTION_FLAG("json", "print JSON and nothing else", struct sandbox_args, run.is_json)
#define HELP_ROW OPTION_FLAG("help", "print this text", struct sandbox_args, run.wants_help)

static struct sandbox_args *args_of(void *target)
{
    return target;
}

static int more_than_nothing(uint64_t value, struct carrel_error *err)
{
    return value > 0 ? 0 : err_set(err, -EINVAL, "must be more than 0");
}

static int take_size(const char *v, uint64_t *out, struct carrel_error *err)
{
    int r = str_parse_size(v, out, err);

    return r < 0 ? r : more_than_nothing(*out, err);
}

static int take_memory(void *t, const char *v, struct carrel_error *err)
{
    return take_size(v, &args_of(t)->limits.memory_bytes, err);
}

static int take_io_read(void *t, const char *v, struct carrel_error *err)
{
    return take_size(v, &args_of(t)->limits.io_read_bytes, err);
}

static int take_io_write(void *t, const char *v, struct carrel_error *err)
{
    return take_size(v, &args_of(t)->limits.io_write_bytes, err);
}

static int take_cpu(void *t, const char *v, struct carrel_error *err)
{
    int r = str_parse_milli(v, &args_of(t)->limits.cpu_milli, err);

    return r < 0 ? r : more_than_nothing(args_of(t)->limits.cpu_milli, err);
}

static int take_pids(void *t, const char *v, struct carrel_error *err)
{
    if (str_parse_u64(v, &args_of(t)->limits.pids) < 0)
        return err_set(err, -EINVAL, "expected a number such as 256");
    return more_than_nothing(args_of(t)->limits.pids, err);
}

static const struct option_row plain_rows[] = { JSON_ROW, HELP_ROW };

static const struct option_row renew_rows[] = {
    { "lease", "TIME|none", "end the sandbox this long from now (default: 1h)",
            .take = sandbox_take_lease },
    { "idle", "TIME|none", "end the sandbox when it was unused for this time",
            .take = sandbox_take_idle },
    HELP_ROW,
};

static const struct option_row update_rows[] = {
    { "memory", "SIZE", "memory of all processes together", .take = take_memory },
    { "cpu", "CORES", "CPU time per second, in cores", .take = take_cpu },
    { "pids", "N", "processes and threads", .take = take_pids },
    { "io-read", "SIZE", "read so much per second from each disk", .take = take_io_read },
    { "io-write", "SIZE", "write so much per second to each disk", .take = take_io_write },
    HELP_ROW,
};

static const struct option_row destroy_rows[] = {
    OPTION_FLAG("all", "end every sandbox of this user", struct sandbox_args, is_all),
    OPTION_FLAG("force", "kill the keeper of a sandbox that does not respond",
            struct sandbox_args, is_force),
    HELP_ROW,
};

static int ps(
        struct sandbox_args *args, struct carrel_sandbox *sandbox, struct carrel_error *err)
{
    AUTO(carrel_free) char *json = NULL;

    int r = carrel_sandbox_processes(sandbox, &json, err);
    if (r < 0)
        return r;
    return args->run.is_json ? report_print_line(json, 0) : sandbox_print_processes(json, err);
}

static int inspect(
        struct sandbox_args *args, struct carrel_sandbox *sandbox, struct carrel_error *err)
{
    AUTO(carrel_free) char *json = NULL;

    (void)args;
    int r = carrel_sandbox_inspect(sandbox, &json, err);
    return r < 0 ? r : report_print_line(json, 0);
}

static int send_signal(
        struct sandbox_args *args, struct carrel_sandbox *sandbox, struct carrel_error *err)
{
    uint64_t process;

    int number = args->n_words > 2 ? signal_from_name(args->words[2], err) : 15;
    if (number < 0)
        return number;
    if (str_parse_u64(args->words[1], &process) < 0 || process == 0 || process > UINT32_MAX)
        return err_set(
                err, -EINVAL, "expected the number of a process, as 'carrel ps' shows it");
    return carrel_sandbox_signal(sandbox, (uint32_t)process, number, err);
}

static int renew(
        struct sandbox_args *args, struct carrel_sandbox *sandbox, struct carrel_error *err)
{
    uint64_t lease_ms = args->has_idle ? 0 : CARREL_LEASE_MS;
    uint64_t idle_ms = 0;

    if (args->has_lease)
        lease_ms = args->lease_ms ? args->lease_ms : CARREL_NEVER;
    if (args->has_idle)
        idle_ms = args->idle_ms ? args->idle_ms : CARREL_NEVER;
    return carrel_sandbox_renew(sandbox, lease_ms, idle_ms, err);
}

static int pause_it(
        struct sandbox_args *args, struct carrel_sandbox *sandbox, struct carrel_error *err)
{
    (void)args;
    return carrel_sandbox_pause(sandbox, err);
}

static int resume_it(
        struct sandbox_args *args, struct carrel_sandbox *sandbox, struct carrel_error *err)
{
    (void)args;
    return carrel_sandbox_resume(sandbox, err);
}

static int update(
        struct sandbox_args *args, struct carrel_sandbox *sandbox, struct carrel_error *err)
{
    const struct carrel_limits *limits = &args->limits;

    if (!limits->memory_bytes && !limits->cpu_milli && !limits->pids &&
            !limits->io_read_bytes && !limits->io_write_bytes)
        return err_set(err, -EINVAL,
                "nothing to change: give --memory, --cpu, --pids, --io-read or --io-write");
    return carrel_sandbox_update(sandbox, &args->limits, err);
}

enum { PS, INSPECT, SIGNAL, RENEW, PAUSE, RESUME, UPDATE };

static const struct {
    struct sandbox_command command;
    int (*run)(struct sandbox_args *args, struct carrel_sandbox *sandbox,
            struct carrel_error *err);
} commands[] = {
    [PS] = { { .usage = "carrel ps ID [options]",
                     .help = "Lists the processes of a sandbox. PROCESS is the number to use "
                             "with\n"
                             "'carrel signal' and 'carrel attach'.",
                     .rows = plain_rows,
                     .n_rows = ARRAY_LEN(plain_rows),
                     .min_words = 1,
                     .max_words = 1 },
            ps },
    [INSPECT] = { { .usage = "carrel inspect ID",
                          .help = "Prints everything known about a sandbox, as one JSON "
                                  "object.",
                          .rows = plain_rows,
                          .n_rows = ARRAY_LEN(plain_rows),
                          .min_words = 1,
                          .max_words = 1 },
            inspect },
    [SIGNAL] = { { .usage = "carrel signal ID PROCESS [SIGNAL]",
                         .help = "Sends a signal (default: TERM) to a program started in a "
                                 "sandbox and to its\n"
                                 "process group.",
                         .rows = &plain_rows[1],
                         .n_rows = 1,
                         .min_words = 2,
                         .max_words = 3 },
            send_signal },
    [RENEW] = { { .usage = "carrel renew ID [options]",
                        .help = "Extends the lease of a sandbox: to an hour from now, or as "
                                "--lease says.",
                        .rows = renew_rows,
                        .n_rows = ARRAY_LEN(renew_rows),
                        .min_words = 1,
                        .max_words = 1 },
            renew },
    [PAUSE] = { { .usage = "carrel pause ID",
                        .help = "Freezes every process of a sandbox until 'carrel resume'. Its "
                                "lease still runs.",
                        .rows = &plain_rows[1],
                        .n_rows = 1,
                        .min_words = 1,
                        .max_words = 1 },
            pause_it },
    [RESUME] = { { .usage = "carrel resume ID",
                         .help = "Continues the processes of a paused sandbox.",
                         .rows = &plain_rows[1],
                         .n_rows = 1,
                         .min_words = 1,
                         .max_words = 1 },
            resume_it },
    [UPDATE] = { { .usage = "carrel update ID [options]",
                         .help = "Changes the limits of a sandbox, up to the maximum that the "
                                 "policy allows.",
                         .rows = update_rows,
                         .n_rows = ARRAY_LEN(update_rows),
                         .min_words = 1,
                         .max_words = 1 },
            update },
};

static int run_command(size_t which, int argc, char **argv)
{
    struct carrel_error err = { 0 };
    struct sandbox_args args;
    AUTO(carrel_sandbox_free) struct carrel_sandbox *sandbox = NULL;

    int r = sandbox_args_parse(&args, &commands[which].command, argc, argv, &err);
    int status = 0;
    if (r == 0) {
        r = carrel_sandbox_open(args.words[0], &sandbox, &err);
        if (r == 0)
            r = commands[which].run(&args, sandbox, &err);
        status = r > 0 ? r : 0;
    }
    status = r < 0 ? report_fail(args.run.is_json, &err) : report_finish(status);
    sandbox_args_finish(&args);
    return status;
}

int cmd_ps(int argc, char **argv)
{
    return run_command(PS, argc, argv);
}

int cmd_inspect(int argc, char **argv)
{
    return run_command(INSPECT, argc, argv);
}

int cmd_signal(int argc, char **argv)
{
    return run_command(SIGNAL, argc, argv);
}

int cmd_renew(int argc, char **argv)
{
    return run_command(RENEW, argc, argv);
}

int cmd_pause(int argc, char **argv)
{
    return run_command(PAUSE, argc, argv);
}

int cmd_resume(int argc, char **argv)
{
    return run_command(RESUME, argc, argv);
}

int cmd_update(int argc, char **argv)
{
    return run_command(UPDATE, argc, argv);
}

/* --- destroy --- */

static const struct sandbox_command destroy_command = {
    .usage = "carrel destroy ID... | --all [options]",
    .help = "Ends sandboxes and everything in them. Changes in a git workspace are kept, or\n"
            "handled as --on-success said when the sandbox was created.",
    .rows = destroy_rows,
    .n_rows = ARRAY_LEN(destroy_rows),
    .max_words = SIZE_MAX,
};

/* The first is reported by the caller, where it is the only one. */
static void report_failure(const char *word, const struct carrel_error *err, void *context)
{
    struct carrel_error named = { 0 };
    char shown[128];

    (void)context;
    (void)err_set(&named, err->code, "%s: %s",
            str_escape(word, strlen(word), shown, sizeof(shown)), err->message);
    (void)report_error(STATUS_FAILED, &named);
}

/* A word that was given twice means one sandbox, which ends once. NULL-terminated. */
static size_t drop_repeated(char **words, size_t n)
{
    size_t kept = 0;

    for (size_t i = 0; i < n; i++) {
        size_t j = 0;
        while (j < kept && strcmp(words[j], words[i]) != 0)
            j++;
        if (j == kept)
            words[kept++] = words[i];
    }
    words[kept] = NULL;
    return kept;
}

static int destroy_these(const struct sandbox_args *args, struct carrel_error *err)
{
    AUTO(carrel_free) char *summary = NULL;
    bool is_one = drop_repeated(args->words, args->n_words) == 1;
    const struct carrel_destroy_options options = {
        .size = sizeof(options),
        .words = (const char *const *)args->words,
        .is_force = args->is_force,
        .failed = is_one ? NULL : report_failure,
    };

    int r = carrel_sandbox_destroy_all(&options, &summary, err);
    if (summary)
        (void)fputs(summary, stderr);
    if (r < 0 && !is_one)
        return err_set(err, r, "not all sandboxes could be ended");
    return r;
}

static int destroy_all(const struct sandbox_args *args, struct carrel_error *err)
{
    const struct carrel_destroy_options options = {
        .size = sizeof(options),
        .is_all = true,
        .is_force = args->is_force,
    };

    return carrel_sandbox_destroy_all(&options, NULL, err);
}

static int destroy(const struct sandbox_args *args, struct carrel_error *err)
{
    if (args->is_all && args->n_words > 0)
        return err_set(err, -EINVAL, "--all and the name of a sandbox cannot be combined");
    if (!args->is_all && args->n_words == 0)
        return err_set(err, -EINVAL, "no sandbox given; usage: %s", destroy_command.usage);
    return args->is_all ? destroy_all(args, err) : destroy_these(args, err);
}

int cmd_destroy(int argc, char **argv)
{
    struct carrel_error err = { 0 };
    struct sandbox_args args;

    int r = sandbox_args_parse(&args, &destroy_command, argc, argv, &err);
    if (r == 0)
        r = destroy(&args, &err);
    int status = r < 0 ? report_error(STATUS_FAILED, &err) : report_finish(0);
    sandbox_args_finish(&args);
    return status;
}
