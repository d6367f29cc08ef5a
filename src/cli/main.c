/* main.c - the commands and what they are called. */
#include "base/auto.h"
#include "base/err.h"
#include "base/str.h"
#include "base/suggest.h"
#include "cli/commands.h"
#include "cli/print/report.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>

static int cmd_help(int argc, char **argv);
static int cmd_version(int argc, char **argv);

enum group { RUN, SANDBOXES, FILES, WORKSPACES, RECORDS, MACHINE };

static const char *const groups[] = {
    [RUN] = "Run a program",
    [SANDBOXES] = "Living sandboxes",
    [FILES] = "Files of a living sandbox",
    [WORKSPACES] = "Workspaces",
    [RECORDS] = "Records of runs",
    [MACHINE] = "This machine",
};

static const struct {
    const char *name;
    int (*run)(int argc, char **argv);
    enum group group;
    const char *help; /* NULL: not listed */
} commands[] = {
    { "run", cmd_run, RUN, "run a program in a new sandbox" },
    { "python", cmd_python, RUN, "run Python code in a new sandbox: JSON in, JSON out" },

    { "create", cmd_create, SANDBOXES, "create a sandbox and print its id" },
    { "exec", cmd_exec, SANDBOXES, "run a program in a sandbox" },
    { "attach", cmd_attach, SANDBOXES, "follow a program started with 'exec --detach'" },
    { "list", cmd_list, SANDBOXES, "list sandboxes, and those waiting for a free slot" },
    { "inspect", cmd_inspect, SANDBOXES, "print everything known about a sandbox, as JSON" },
    { "ps", cmd_ps, SANDBOXES, "list the processes of a sandbox" },
    { "signal", cmd_signal, SANDBOXES, "send a signal to a program in a sandbox" },
    { "renew", cmd_renew, SANDBOXES, "extend the lease of a sandbox" },
    { "update", cmd_update, SANDBOXES, "change the limits of a sandbox" },
    { "pause", cmd_pause, SANDBOXES, "freeze all processes of a sandbox" },
    { "resume", cmd_resume, SANDBOXES, "continue a paused sandbox" },
    { "snapshot", cmd_snapshot, SANDBOXES, "save the files of a sandbox under a name" },
    { "snapshots", cmd_snapshots, SANDBOXES, "list the snapshots" },
    { "fork", cmd_fork, SANDBOXES, "create sandboxes from the current files of another" },
    { "destroy", cmd_destroy, SANDBOXES, "end a sandbox and everything in it" },

    { "cp", cmd_cp, FILES, "copy files between the host and a sandbox" },
    { "ls", cmd_ls, FILES, "list a directory" }, { "cat", cmd_cat, FILES, "print files" },
    { "write", cmd_write, FILES, "write standard input to a file" },
    { "stat", cmd_stat, FILES, "print type, permissions, owner, size and time of a file" },
    { "mkdir", cmd_mkdir, FILES, "make directories" },
    { "mv", cmd_mv, FILES, "rename or move a file" }, { "rm", cmd_rm, FILES, "remove files" },
    { "watch", cmd_watch, FILES, "print changes as they happen" },
    { "export", cmd_export, FILES, "write a directory to standard output, as a tar archive" },
    { "import", cmd_import, FILES, "unpack a tar archive from standard input" },

    { "workspace", cmd_workspace, WORKSPACES,
            "review, commit, apply or discard what runs changed" },

    { "runs", cmd_runs, RECORDS, "list, show and prune finished runs" },
    { "journal", cmd_journal, RECORDS, "read and verify the tamper-evident journal" },

    { "health", cmd_health, MACHINE,
            "show which protections work here, and how to fix others" },
    { "test", cmd_test, MACHINE, "test limits and isolation with real attempts to escape" },
    { "policy", cmd_policy, MACHINE, "show, check or write a policy: what runs may do" },
    { "image", cmd_image, MACHINE, "import, pull, list and remove root filesystems" },
    { "cleanup", cmd_cleanup, MACHINE, "remove what crashed runs left behind" },
    { "help", cmd_help, MACHINE, "print this text, or explain a command: help COMMAND" },
    { "version", cmd_version, MACHINE, "print the version" },

    { "archive", cmd_archive, FILES, NULL },   /* part of `import` and `image import` */
    { "host", cmd_host, MACHINE, NULL },       /* part of `health` and `test` */
    { "keeper", cmd_keeper, SANDBOXES, NULL }, /* part of `create` and `fork` */
    { "probe", cmd_probe, MACHINE, NULL },     /* part of `test` */
};

static int cmd_version(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    (void)puts("carrel " CARREL_VERSION);
    return 0;
}

static void print_help(void)
{
    (void)puts(
            "Usage: carrel COMMAND [options]\n\n"
            "Runs programs in sandboxes: isolated, limited, recorded, with a git worktree of\n"
            "their own if you like.");
    for (size_t g = 0; g < ARRAY_LEN(groups); g++) {
        printf("\n%s:\n", groups[g]);
        for (size_t i = 0; i < ARRAY_LEN(commands); i++)
            if (commands[i].help && commands[i].group == g)
                printf("  %-10s %s\n", commands[i].name, commands[i].help);
    }
    (void)puts("\nTo begin:     carrel run -- echo hello\n"
               "One command:  carrel help COMMAND\n"
               "The manual:   man carrel");
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
    if (argc > 1 && strcmp(argv[1], "version") == 0) {
        (void)puts("Usage: carrel version\n\nPrints the version.");
    } else if (argc > 1 && strcmp(argv[1], "help") != 0) {
        char *words[] = { argv[1], (char[]){ "--help" }, NULL };
        return run_command(argv[1], 2, words);
    } else {
        print_help();
    }
    return report_finish(0);
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
    /* The caller may ignore it, which is inherited; the status of git would be lost. */
    (void)signal(SIGCHLD, SIG_DFL);
    if (argc > 0 && is_git_monitor(argv[0]))
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
