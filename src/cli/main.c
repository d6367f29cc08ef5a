/* main.c - the commands and what they are called. */
#include "base/auto.h"
#include "base/err.h"
#include "base/str.h"
#include "base/suggest.h"
#include "cli/commands.h"
#include "cli/git_monitor.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>

static int cmd_help(int argc, char **argv);
static int cmd_version(int argc, char **argv);

static const struct {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *help;
} commands[] = {
    { "run", cmd_run, "run a program in its own sandbox" },
    { "python", cmd_python,
            "run Python code in its own sandbox; inputs go in, a result comes out" },
    { "create", cmd_create, "make a sandbox that stays, and print its id" },
    { "exec", cmd_exec, "run a program in a sandbox that stays" },
    { "attach", cmd_attach, "go on with a detached program" },
    { "ps", cmd_ps, "list the processes of a sandbox" },
    { "signal", cmd_signal, "send a signal to a program in a sandbox" },
    { "inspect", cmd_inspect, "print all that is known of a sandbox" },
    { "renew", cmd_renew, "give a sandbox more time" },
    { "pause", cmd_pause, "halt the processes of a sandbox" },
    { "resume", cmd_resume, "let them go on" },
    { "update", cmd_update, "change limits of a living sandbox" },
    { "snapshot", cmd_snapshot, "name the files of a sandbox as they are now" },
    { "snapshots", cmd_snapshots, "list the snapshots" },
    { "fork", cmd_fork, "make sandboxes that begin with the files of another" },
    { "destroy", cmd_destroy, "end a sandbox and everything in it" },
    { "workspace", cmd_workspace,
            "look at, take over or remove what runs made of a repository" },
    { "list", cmd_list, "list the living sandboxes, and those that wait" },
    { "runs", cmd_runs, "list, show and prune the runs there were" },
    { "image", cmd_image, "import, list and remove root filesystems for sandboxes" },
    { "policy", cmd_policy, "show, check or begin a policy: what runs may do" },
    { "journal", cmd_journal, "read and verify what carrel wrote down of its runs" },
    { "cp", cmd_cp, "copy files between the host and a living sandbox" },
    { "ls", cmd_ls, "list a directory of a living sandbox" },
    { "cat", cmd_cat, "print files of a living sandbox" },
    { "write", cmd_write, "write standard input to a file of a living sandbox" },
    { "rm", cmd_rm, "remove files of a living sandbox" },
    { "mv", cmd_mv, "move a file of a living sandbox" },
    { "mkdir", cmd_mkdir, "make directories in a living sandbox" },
    { "stat", cmd_stat, "say what a file of a living sandbox is" },
    { "watch", cmd_watch, "tell of changes in a living sandbox as they happen" },
    { "export", cmd_export, "write files of a living sandbox to a tar" },
    { "import", cmd_import, "unpack a tar into a living sandbox" },
    { "health", cmd_health, "say which protections work here, and what to do if not" },
    { "test", cmd_test, "try the sandbox: limits driven to their bounds, attempts to get out" },
    { "cleanup", cmd_cleanup, "remove what a crash left" },
    { "probe", cmd_probe, NULL }, /* a part of `test`, not for people: not listed */
    { "help", cmd_help, "this text, or 'help COMMAND'" },
    { "version", cmd_version, "print the version" },
};

/* Whoever wrote the message has escaped what is not ours; the backslashes in it stay. */
int report_error(int status, const struct carrel_error *err)
{
    char shown[4 * sizeof(err->message)]; /* enough for all of it */
    const char *text = err->message;
    size_t at = 0;

    shown[0] = '\0';
    while (*text) {
        size_t len = strcspn(text, "\\");
        at += strlen(str_escape(text, len, shown + at, sizeof(shown) - at));
        text += len;
        if (*text)
            shown[at++] = *text++;
        shown[at] = '\0';
    }
    (void)fprintf(stderr, "carrel: %s\n", shown);
    return status;
}

static int cmd_version(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    (void)puts("carrel " CARREL_VERSION);
    return 0;
}

static void print_help(void)
{
    (void)puts("Usage: carrel COMMAND [options]\n\n"
               "Gives every run of a program its own sandbox.\n\nCommands:");
    for (size_t i = 0; i < ARRAY_LEN(commands); i++)
        if (commands[i].help)
            printf("  %-10s %s\n", commands[i].name, commands[i].help);
    (void)puts("\nTry: carrel run -- echo hello\n"
               "'carrel COMMAND --help' explains a command; manual pages: carrel(1), "
               "carrel-run(1), carrel-workspace(1).");
}

static int run_command(const char *name, int argc, char **argv)
{
    struct carrel_error err = { 0 };
    const char *best = NULL;
    size_t distance = SIZE_MAX;
    char shown[64];

    for (size_t i = 0; i < ARRAY_LEN(commands); i++) {
        if (strcmp(commands[i].name, name) == 0)
            return commands[i].run(argc, argv);
        if (commands[i].help)
            suggest_offer(commands[i].name, name, strlen(name), &best, &distance);
    }
    (void)str_escape(name, strlen(name), shown, sizeof(shown));
    if (best)
        (void)err_set(&err, -EINVAL, "unknown command '%s' (did you mean '%s'?)", shown, best);
    else
        (void)err_set(&err, -EINVAL, "unknown command '%s'; 'carrel help' lists them", shown);
    return report_error(STATUS_FAILED, &err);
}

static int cmd_help(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "help") != 0 && strcmp(argv[1], "version") != 0) {
        char *words[] = { argv[1], (char[]){ "--help" }, NULL };
        return run_command(argv[1], 2, words);
    }
    print_help();
    return 0;
}

/* Opens missing standard streams: the next file opened must not become one of them. */
static void fill_streams(void)
{
    for (int fd = 0; fd <= 2; fd++)
        if (fcntl(fd, F_GETFD) < 0 && errno == EBADF)
            (void)open("/dev/null", O_RDWR); /* takes the lowest number, which is this one */
}

int main(int argc, char **argv)
{
    fill_streams();
    /* EPIPE instead of the signal: carrel must live on to end the sandbox. */
    (void)signal(SIGPIPE, SIG_IGN);
    /* EFBIG instead of the signal: a journal that cannot grow must be reported. */
    (void)signal(SIGXFSZ, SIG_IGN);
    if (argc > 0 && git_monitor_is_meant(argv[0]))
        return git_monitor(argc, argv);
    if (argc < 2) {
        struct carrel_error err = { 0 };
        (void)err_set(
                &err, -EINVAL, "no command; try 'carrel run -- echo hello', or 'carrel help'");
        return report_error(STATUS_FAILED, &err);
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)
        return cmd_help(1, argv);
    if (strcmp(argv[1], "--version") == 0)
        return cmd_version(argc, argv);
    return run_command(argv[1], argc - 1, argv + 1);
}
