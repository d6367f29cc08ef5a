/* workspace_resume.c - carrel workspace resume, shell: a new sandbox for an old workspace. */
#include "base/auto.h"
#include "base/err.h"
#include "base/str.h"
#include "cli/args/run_args.h"
#include "cli/command/workspace.h"
#include "cli/print/report.h"
#include "cli/program.h"
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

static const char resume_help[] =
        "Usage: carrel workspace resume [NAME] [options] -- PROGRAM [ARG...]\n"
        "       carrel workspace resume [NAME] [options] -c 'SHELL LINE' [ARG...]\n\n"
        "Runs another program in the workspace of a finished run, with its files and\n"
        "commits. Takes the options of 'carrel run', except those that make a workspace.\n\n"
        "Options:";

static const char shell_help[] =
        "Usage: carrel workspace shell [NAME] [options]\n\n"
        "Starts a shell (bash, or sh) in the workspace of a finished run, in a sandbox.\n"
        "Without a terminal it reads standard input. Takes the options of 'carrel run';\n"
        "the default of --timeout is 24h.\n\n"
        "Options:";

static int resume(int argc, char **argv, const char *help, bool is_shell)
{
    AUTO(carrel_workspace_free) struct carrel_workspace *workspace = NULL;
    struct carrel_error err = { 0 };
    struct run_args args;
    const char *given;
    int status = 0;

    int r = run_args_parse_resume(&args, argc, argv, &given, &err);
    if (r == 0 && args.wants_help) {
        (void)puts(help);
        options_print(run_rows, n_run_rows);
        run_args_finish(&args);
        return report_finish(0);
    }
    if (r == 0 && is_shell && args.argv[4]) /* sh -c LINE sh, and a word of the caller's */
        r = err_set(&err, -EINVAL,
                "shell takes no program; expected 'carrel workspace resume NAME -- PROGRAM'");
    if (r == 0)
        r = carrel_workspace_find(given, NULL, &workspace, &err);
    if (r < 0) {
        status = program_refuse(&args, argc, argv, &err);
    } else {
        args.workspace.options.resume = verb_name(workspace);
        status = program_run(&args, NULL, NULL);
    }
    run_args_finish(&args);
    return status;
}

int verb_resume(int argc, char **argv)
{
    return resume(argc, argv, resume_help, false);
}

/* The same with a program of ours: its words come first, so that the caller's options win. */
int verb_shell(int argc, char **argv)
{
    static char line[] = "if command -v bash >/dev/null; then exec bash; fi; exec sh";
    static char tty[] = "--tty", input[] = "--stdin", c[] = "-c", timeout[] = "--timeout=24h";
    AUTO(free) char **words = calloc((size_t)argc + 5, sizeof(*words));

    if (!words) {
        struct carrel_error err = { 0 };
        (void)err_set_errno(&err, -ENOMEM, "arguments");
        return report_error(STATUS_FAILED, &err);
    }
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
        struct carrel_error err = { 0 };
        if (strncmp(argv[i], "-c", 2) != 0)
            continue;
        (void)err_set(&err, -EINVAL,
                "shell takes no program; expected 'carrel workspace resume NAME -c LINE'");
        return report_error(STATUS_FAILED, &err);
    }
    words[0] = argv[0];
    words[1] = c;
    words[2] = line;
    words[3] = timeout;
    words[4] = isatty(STDIN_FILENO) ? tty : input;
    for (int i = 1; i < argc; i++)
        words[4 + i] = argv[i];
    return resume(argc + 4, words, shell_help, true);
}
