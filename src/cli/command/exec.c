/* exec.c - carrel exec and carrel attach: programs in a living sandbox. */
#include "base/auto.h"
#include "base/err.h"
#include "base/json.h"
#include "base/str.h"
#include "cli/args/sandbox_args.h"
#include "cli/commands.h"
#include "cli/print/report.h"
#include "cli/program.h"
#include <carrel/sandbox.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const struct option_row exec_rows[] = {
    OPTION_FLAG("detach", "print the process number and return; see 'carrel attach'",
            struct sandbox_args, is_detached),
};

static const char *const exec_shared[] = { "c", "timeout", "max-output", "env", "env-file",
    "cwd", "user", "stdin", "tty", "json", "format", "output", "quiet", "help", NULL };

static const struct sandbox_command exec_command = {
    .usage = "carrel exec [options] ID [options] -- PROGRAM [ARG...]",
    .help = "Runs a program in a sandbox made by 'carrel create'. Output, exit status and\n"
            "result are those of 'carrel run'. The program ends with this command unless it\n"
            "is detached; processes that it leaves in the sandbox go on.",
    .rows = exec_rows,
    .n_rows = ARRAY_LEN(exec_rows),
    .shared = exec_shared,
    .min_words = 1,
    .max_words = 1,
    .takes_program = true,
};

static const char *const attach_shared[] = { "max-output", "stdin", "tty", "json", "format",
    "output", "quiet", "help", NULL };

static const struct sandbox_command attach_command = {
    .usage = "carrel attach ID PROCESS [options]",
    .help = "Follows a detached program: prints its output so far (head and tail if it is\n"
            "long), then new output, and exits with its status. Ctrl-C leaves it running.",
    .shared = attach_shared,
    .min_words = 2,
    .max_words = 2,
};

struct verb {
    struct carrel_sandbox *sandbox;
    uint32_t process; /* to attach to */
};

static int run_it(void *context, const struct carrel_run_options *options,
        struct carrel_run_result **out, struct carrel_error *err)
{
    const struct verb *verb = context;

    return carrel_sandbox_exec(verb->sandbox, options, out, err);
}

static int join_it(void *context, const struct carrel_run_options *options,
        struct carrel_run_result **out, struct carrel_error *err)
{
    const struct verb *verb = context;

    return carrel_sandbox_attach(verb->sandbox, verb->process, options, out, err);
}

static int detach(struct sandbox_args *args, struct carrel_sandbox *sandbox)
{
    struct carrel_error err = { 0 };
    struct carrel_run_options *o = &args->run.options;
    AUTO(buf_finish) struct buf text = BUF_INIT(4096);
    struct json json = { .out = &text };
    uint32_t process;

    o->stdin_fd = args->run.has_stdin ? STDIN_FILENO : -1; /* kept open for an attach */
    o->rows = 24;
    o->cols = 80;
    if (carrel_sandbox_detach(sandbox, o, &process, &err) < 0)
        return program_fail(&args->run, &err);
    program_print_note(&args->run, carrel_sandbox_note(sandbox));
    if (!args->run.is_json) {
        printf("%u\n", process);
        return report_finish(0);
    }
    json_object(&json, NULL);
    json_str(&json, "sandbox", carrel_sandbox_id(sandbox));
    json_u64(&json, "process", process);
    json_end_object(&json);
    return report_print_json(&text, 0);
}

static int execute(struct sandbox_args *args)
{
    struct carrel_error err = { 0 };
    AUTO(carrel_sandbox_free) struct carrel_sandbox *sandbox = NULL;

    if (carrel_sandbox_open(args->words[0], &sandbox, &err) < 0)
        return program_fail(&args->run, &err);
    struct verb verb = { .sandbox = sandbox };
    return args->is_detached ? detach(args, sandbox) : program_run(&args->run, run_it, &verb);
}

/* There is no result yet, nor output: attach reports them. */
static int check_detached(const struct sandbox_args *args, struct carrel_error *err)
{
    const char *option = args->run.output      ? "--output"
                         : args->run.is_capped ? "--max-output"
                         : args->run.is_text   ? "--format text"
                                               : NULL;

    if (!args->is_detached || !option)
        return 0;
    return err_set(err, -EINVAL,
            "--detach and %s cannot be combined; give it to 'carrel attach'", option);
}

int cmd_exec(int argc, char **argv)
{
    struct carrel_error err = { 0 };
    struct sandbox_args args;

    int r = sandbox_args_parse(&args, &exec_command, argc, argv, &err);
    if (r == 0)
        r = check_detached(&args, &err);
    int status = r < 0   ? program_refuse(&args.run, argc, argv, &err)
                 : r > 0 ? report_finish(0)
                         : execute(&args);
    sandbox_args_finish(&args);
    return status;
}

static int join(struct sandbox_args *args)
{
    struct carrel_error err = { 0 };
    AUTO(carrel_sandbox_free) struct carrel_sandbox *sandbox = NULL;
    struct verb verb = { 0 };
    uint64_t process;
    char shown[64];

    if (str_parse_u64(args->words[1], &process) < 0 || process > UINT32_MAX)
        (void)err_set(&err, -EINVAL,
                "'%s' is not the number of a process; 'carrel ps' shows it",
                str_escape(args->words[1], strlen(args->words[1]), shown, sizeof(shown)));
    else
        (void)carrel_sandbox_open(args->words[0], &sandbox, &err);
    if (!sandbox)
        return program_fail(&args->run, &err);
    verb.sandbox = sandbox;
    verb.process = (uint32_t)process;
    return program_run(&args->run, join_it, &verb);
}

int cmd_attach(int argc, char **argv)
{
    struct carrel_error err = { 0 };
    struct sandbox_args args;

    int r = sandbox_args_parse(&args, &attach_command, argc, argv, &err);
    int status = r < 0   ? program_refuse(&args.run, argc, argv, &err)
                 : r > 0 ? report_finish(0)
                         : join(&args);
    sandbox_args_finish(&args);
    return status;
}
