/* program.c - running one program for a command: signals, terminal, streams, and the result. */
#include "cli/program.h"
#include "base/auto.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/str.h"
#include "cli/args/run_args.h"
#include "cli/print/report.h"
#include "cli/print/result_file.h"
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

#define READER_MS 2000 /* for a reader of standard error that does not read */

static int status_of_error(const struct carrel_error *err)
{
    if (err->origin != CARREL_FROM_PROGRAM)
        return STATUS_FAILED;
    return err->code == -ENOENT ? STATUS_NOT_FOUND : STATUS_CANNOT_EXECUTE;
}

/*
 * A signal that would end carrel ends the sandbox first. A signal that the caller ignored
 * (nohup, a background job) is left out: a signalfd would report it all the same.
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

/* The caller's terminal while the program has one of its own. */
struct terminal {
    bool is_raw;
    struct termios saved;
};

/* Takes over the window size; makes the terminal raw when input is passed on from it. */
static void terminal_begin(struct terminal *terminal, struct carrel_run_options *options)
{
    struct winsize size = { .ws_row = 24, .ws_col = 80 };

    (void)ioctl(STDOUT_FILENO, TIOCGWINSZ, &size); /* not a terminal: the default stays */
    options->rows = size.ws_row;
    options->cols = size.ws_col;
    if (options->stdin_fd < 0 || tcgetattr(STDIN_FILENO, &terminal->saved) < 0)
        return;
    struct termios raw = terminal->saved;
    cfmakeraw(&raw);
    terminal->is_raw = tcsetattr(STDIN_FILENO, TCSANOW, &raw) == 0;
}

static void terminal_end(struct terminal *terminal)
{
    if (terminal->is_raw)
        (void)tcsetattr(STDIN_FILENO, TCSANOW, &terminal->saved); /* nothing left to try */
    terminal->is_raw = false;
}

/* One line, overwritten each time. */
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
        char *text = NULL;
        r = carrel_run_result_text(result, &text, err);
        if (r < 0)
            return r;
        r = fd_write_all(STDOUT_FILENO, text, strlen(text));
        carrel_free(text);
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
    const int failed = carrel_run_result_output_error(result);
    return r == 0 && failed < 0 ? err_set_errno(err, failed, "write the output") : r;
}

void program_print_note(const struct run_args *args, const char *note)
{
    char shown[2048];

    if (note[0] && !args->is_quiet)
        (void)fprintf(stderr, "carrel: note: %s\n",
                str_escape(note, strlen(note), shown, sizeof(shown)));
}

/* A reader that has stopped reading must not keep carrel past the program's time limit. */
static bool takes_lines(void)
{
    struct pollfd room = { .fd = STDERR_FILENO, .events = POLLOUT };

    return poll(&room, 1, READER_MS) > 0;
}

static void print_notes(const struct run_args *args, const struct carrel_run_result *result)
{
    const char *message = carrel_run_result_message(result);
    const char *note = carrel_run_result_note(result);
    char shown[2048]; /* both may quote the program */

    if (args->is_quiet || !takes_lines())
        return;
    program_print_note(args, note);
    if (message[0] && !args->is_text && carrel_run_result_reason(result) != CARREL_SIGNALED)
        (void)fprintf(stderr, "carrel: %s\n",
                str_escape(message, strlen(message), shown, sizeof(shown)));
}

/* What changed in the workspace and how to use it; empty without a workspace. */
static void print_summary(const struct run_args *args, const struct carrel_run_result *result)
{
    const char *text = carrel_run_result_summary(result);
    size_t len = strlen(text);

    if (args->is_quiet || args->is_json || len == 0 || !takes_lines())
        return;
    (void)fprintf(stderr, "%s%s", text, text[len - 1] == '\n' ? "" : "\n");
}

/* A caller that asked for JSON gets JSON also when nothing was run. */
static int fail(const struct run_args *args, int status, const struct carrel_error *err)
{
    struct carrel_error second = { 0 };
    struct carrel_run_result *result = NULL;

    if ((args->is_json || args->is_text || args->output) &&
            carrel_run_result_from_error(err, args->options.output_bytes, &result, NULL) == 0)
        (void)write_result(args, result, &second); /* only the first error is reported */
    carrel_run_result_free(result);
    return report_error(status, err);
}

int program_fail(const struct run_args *args, const struct carrel_error *err)
{
    return fail(args, status_of_error(err), err);
}

int program_run(struct run_args *args, program_runner *runner, void *context)
{
    struct carrel_error err = { 0 };
    struct carrel_run_options *o = &args->options;
    struct carrel_run_result *result = NULL;
    struct terminal terminal = { 0 };
    char own[PATH_MAX];

    if (args->output && result_file_check(args->output, &err) < 0)
        return fail(args, STATUS_FAILED, &err);
    o->signal_fd = open_signals(&err);
    if (o->signal_fd < 0)
        return fail(args, STATUS_FAILED, &err);
    if (!args->is_quiet && !args->is_json && isatty(STDERR_FILENO))
        args->workspace.options.progress = print_progress;
    args->workspace.options.program = own_program(own, sizeof(own));
    bool is_live = !args->is_json && !args->is_text && !args->is_capped;
    o->stdout_fd = is_live ? STDOUT_FILENO : -1;
    o->stderr_fd = is_live ? STDERR_FILENO : -1;
    o->stdin_fd = args->has_stdin || (o->has_tty && isatty(STDIN_FILENO)) ? STDIN_FILENO : -1;
    if (o->has_tty)
        terminal_begin(&terminal, o);
    int r = runner ? runner(context, o, &result, &err) : carrel_run(o, &result, &err);
    args->workspace.options.program = NULL; /* `own` ends with this function */
    terminal_end(&terminal);
    fd_close(o->signal_fd);
    if (r < 0)
        return fail(args, status_of_error(&err), &err);

    print_notes(args, result);
    int status = carrel_run_result_status(result);
    r = write_result(args, result, &err);
    if (r < 0)
        status = report_error(STATUS_FAILED, &err);
    print_summary(args, result);
    carrel_run_result_free(result);
    return status;
}

int program_refuse(struct run_args *args, int argc, char **argv, const struct carrel_error *err)
{
    args->is_json = options_ask_json(argc, argv);
    return fail(args, STATUS_FAILED, err);
}

const char *own_program(char *path, size_t size)
{
    struct stat running;
    struct stat named;
    ssize_t n = readlink("/proc/self/exe", path, size - 1);

    if (n < 0)
        return NULL;
    path[n] = '\0';
    return stat("/proc/self/exe", &running) == 0 && stat(path, &named) == 0 &&
                           running.st_dev == named.st_dev && running.st_ino == named.st_ino
                   ? path
                   : NULL;
}
