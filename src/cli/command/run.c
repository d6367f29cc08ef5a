/* run.c - carrel run. */
#include "cli/command/run.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/str.h"
#include "cli/args/run_args.h"
#include "cli/commands.h"
#include "cli/own_program.h"
#include "cli/print/result_file.h"
#include "cli/terminal.h"
#include "core/result/result.h"
#include "core/result/text_form.h"
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <sys/signalfd.h>
#include <unistd.h>

static void print_help(void)
{
    (void)puts(
            "Usage: carrel run [options] [--] PROGRAM [ARG...]\n"
            "       carrel run [options] -c 'SHELL LINE' [ARG...]\n\n"
            "Runs a program in its own sandbox, passes its output on, and ends everything\n"
            "it started when it ends. The exit status is the program's own; 124 timeout,\n"
            "125 carrel failed or refused, 126 cannot execute, 127 not found, 128+n signal.\n\n"
            "Options:");
    options_print(run_rows, n_run_rows);
}

static int status_of_error(const struct carrel_error *err)
{
    switch (err->code) {
    case -ENOENT:
        return STATUS_NOT_FOUND;
    case -EACCES:
    case -EISDIR:
    case -ENOEXEC:
        return STATUS_CANNOT_EXECUTE;
    default:
        return STATUS_FAILED;
    }
}

/*
 * Signals that end us end the sandbox first. One that our caller had ignored (nohup, a
 * background job) stays ignored: a signalfd would see it all the same.
 */
static int open_signals(struct carrel_error *err)
{
    static const int wanted[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGWINCH };
    struct sigaction now;
    sigset_t set;

    (void)sigemptyset(&set);
    for (size_t i = 0; i < ARRAY_LEN(wanted); i++)
        if (sigaction(wanted[i], NULL, &now) == 0 && now.sa_handler != SIG_IGN)
            (void)sigaddset(&set, wanted[i]);
    if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
        return err_set_errno(err, -errno, "block signals");
    int fd = signalfd(-1, &set, SFD_CLOEXEC);
    return fd < 0 ? err_set_errno(err, -errno, "signalfd") : fd;
}

/* One line that is written over. */
static void print_progress(uint64_t done, uint64_t total, void *context)
{
    (void)context;
    (void)fprintf(stderr, "\rcarrel: checking out %" PRIu64 " of %" PRIu64 " files%s", done,
            total, done == total ? "\n" : "");
}

static int write_result(const struct run_args *args, const struct carrel_run_result *result,
        struct carrel_error *err)
{
    const char *json = carrel_run_result_json(result);
    size_t len;
    int r = 0;

    if (args->is_json) {
        r = fd_write_all(STDOUT_FILENO, json, strlen(json));
        if (r == 0)
            r = fd_write_all(STDOUT_FILENO, "\n", 1);
    } else if (args->is_text) {
        AUTO(buf_finish) struct buf text = BUF_INIT(SIZE_MAX / 4);
        text_form_write(
                result, result->output_bytes ? result->output_bytes : TEXT_FORM_BYTES, &text);
        r = text.is_short ? -ENOMEM : fd_write_all(STDOUT_FILENO, text.data, text.len);
    } else if (args->is_capped) {
        const char *text = carrel_run_result_stdout(result, &len);
        r = fd_write_all(STDOUT_FILENO, text, len);
        text = carrel_run_result_stderr(result, &len);
        if (r == 0)
            r = fd_write_all(STDERR_FILENO, text, len);
    }
    if (r < 0)
        return err_set_errno(err, r, "write the result");
    if (args->output)
        r = result_file_write(args->output, json, strlen(json), err);
    return r == 0 && result->output_error < 0
                   ? err_set_errno(err, result->output_error, "write the output")
                   : r;
}

void program_print_note(const struct run_args *args, const char *note)
{
    char shown[2048];

    if (note[0] && !args->is_quiet)
        (void)fprintf(stderr, "carrel: note: %s\n",
                str_escape(note, strlen(note), shown, sizeof(shown)));
}

static void print_notes(const struct run_args *args, const struct carrel_run_result *result)
{
    const char *message = carrel_run_result_message(result);
    const char *note = carrel_run_result_note(result);
    char shown[2048]; /* parts of both may be the program's words */

    if (args->is_quiet)
        return;
    program_print_note(args, note);
    if (message[0] && !args->is_text && carrel_run_result_reason(result) != CARREL_SIGNALED)
        (void)fprintf(stderr, "carrel: %s\n",
                str_escape(message, strlen(message), shown, sizeof(shown)));
}

/* What changed in the workspace, and what can be done with it; nothing without one. */
static void print_summary(const struct run_args *args, const struct carrel_run_result *result)
{
    const char *text = carrel_run_result_summary(result);
    size_t len = strlen(text);

    if (args->is_quiet || args->is_json || len == 0)
        return;
    (void)fprintf(stderr, "%s%s", text, text[len - 1] == '\n' ? "" : "\n");
}

/* The caller that asked for JSON gets JSON, also when there was no run. */
static int fail_run(const struct run_args *args, int status, const struct carrel_error *err)
{
    struct carrel_error second = { 0 };
    struct carrel_run_result *result = NULL;

    if ((args->is_json || args->is_text || args->output) &&
            result_from_error(err, &result) == 0) {
        result->output_bytes = args->options.output_bytes; /* a budget holds for failures too */
        (void)write_result(args, result, &second); /* the first failure is the one to report */
    }
    carrel_run_result_free(result);
    return report_error(status, err);
}

int program_fail(const struct run_args *args, const struct carrel_error *err)
{
    return fail_run(args, status_of_error(err), err);
}

static int run_plainly(void *context, const struct carrel_run_options *options,
        struct carrel_run_result **out, struct carrel_error *err)
{
    (void)context;
    return carrel_run(options, out, err);
}

int run_program(struct run_args *args)
{
    return run_program_by(args, run_plainly, NULL);
}

int run_program_by(struct run_args *args, run_verb *verb, void *context)
{
    struct carrel_error err = { 0 };
    struct carrel_run_options *o = &args->options;
    struct carrel_run_result *result = NULL;
    struct terminal terminal = { 0 };
    char own[PATH_MAX];

    o->signal_fd = open_signals(&err);
    if (o->signal_fd < 0)
        return fail_run(args, STATUS_FAILED, &err);
    if (!args->is_quiet && !args->is_json && isatty(STDERR_FILENO))
        args->workspace.options.progress = print_progress;
    args->workspace.options.program = own_program(own, sizeof(own));
    bool is_live = !args->is_json && !args->is_text && !args->is_capped;
    o->stdout_fd = is_live ? STDOUT_FILENO : -1;
    o->stderr_fd = is_live ? STDERR_FILENO : -1;
    o->stdin_fd = args->has_stdin || (o->has_tty && isatty(STDIN_FILENO)) ? STDIN_FILENO : -1;
    if (o->has_tty)
        terminal_begin(&terminal, o);
    int r = verb(context, o, &result, &err);
    args->workspace.options.program = NULL; /* it was ours, and goes with us */
    terminal_end(&terminal);
    fd_close(o->signal_fd);
    if (r < 0)
        return fail_run(args, status_of_error(&err), &err);

    print_notes(args, result);
    int status = carrel_run_result_status(result);
    r = write_result(args, result, &err);
    if (r < 0)
        status = report_error(STATUS_FAILED, &err);
    print_summary(args, result);
    carrel_run_result_free(result);
    return status;
}

/* A word that could not be read must not hide what the caller asked for further on. */
static bool asks_for_json(int argc, char **argv)
{
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
        if (strcmp(argv[i], "--json") == 0 || strcmp(argv[i], "--format=json") == 0 ||
                (strcmp(argv[i], "--format") == 0 && i + 1 < argc &&
                        strcmp(argv[i + 1], "json") == 0))
            return true;
    return false;
}

int program_refuse(struct run_args *args, int argc, char **argv, const struct carrel_error *err)
{
    args->is_json = asks_for_json(argc, argv);
    return fail_run(args, STATUS_FAILED, err);
}

int cmd_run(int argc, char **argv)
{
    struct carrel_error err = { 0 };
    struct run_args args;
    int status = 0;

    int r = run_args_parse(&args, argc, argv, &err);
    if (args.wants_help) {
        print_help();
    } else if (r < 0) {
        status = program_refuse(&args, argc, argv, &err);
    } else {
        status = run_program(&args);
    }
    run_args_finish(&args);
    return status;
}
