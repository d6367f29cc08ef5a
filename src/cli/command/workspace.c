/* workspace.c - carrel workspace: the subcommands. */
#include "cli/command/workspace.h"
#include "base/auto.h"
#include "cli/args/workspace_args.h"
#include "cli/commands.h"
#include "cli/print/report.h"
#include <stdint.h>

#define BIT OPTION_BIT

#define ONE_NAME .words = "[NAME]", .max = 1

static const struct subcommand verbs[] = {
    { "list", "", "list the workspaces of this repository",
            "Columns: run, task, state, base commit, age, branch.\n\n"
            "States: running; kept (the changes are only in the workspace); applied (also in\n"
            "your files); committed (on the run's branch); interrupted (carrel was killed,\n"
            "nothing is lost); creating.",
            0, 0, BIT(OPTION_ALL), verb_list, NULL },
    { "show", .help = "print everything known about a workspace", ONE_NAME, .run = verb_show },
    { "status", .help = "list changed files", ONE_NAME,
            .more = "Each line has two letters and a path. The first letter is what the run\n"
                    "committed, the second what it left uncommitted: A added, M modified, D "
                    "deleted,\n"
                    "T type changed.",
            .run = verb_status },
    { "diff", .help = "print the changes as a unified diff", ONE_NAME,
            .more = "Commits and uncommitted changes together, against the base commit.",
            .options = BIT(OPTION_STAT) | BIT(OPTION_NAME_STATUS) | BIT(OPTION_UNCOMMITTED) |
                       BIT(OPTION_COLOR),
            .run = verb_diff },
    { "log", .help = "list the commits of the run", ONE_NAME, .options = BIT(OPTION_COLOR),
            .run = verb_log },
    { "patch", .help = "print the changes as patches for git am", ONE_NAME, .run = verb_patch },
    { "commit", .help = "put the changes on the run's branch in your repository", ONE_NAME,
            .more = "Your working tree is not changed. Uncommitted changes of the run become "
                    "one more\n"
                    "commit.",
            .options = BIT(OPTION_MESSAGE) | BIT(OPTION_M), .run = verb_commit },
    { "apply", .help = "apply the changes to your working tree", ONE_NAME,
            .more = "Applies all changes or none: on conflict the conflicting files are "
                    "listed,\n"
                    "nothing is changed, and the exit status is 1.",
            .options = BIT(OPTION_SQUASH) | BIT(OPTION_MERGE) | BIT(OPTION_REPO),
            .run = verb_apply },
    { "merge", .help = "merge the run's branch into your branch", ONE_NAME,
            .more = "The changes are put on the run's branch first. On conflict the "
                    "conflicting files\n"
                    "are listed, your branch is not changed, and the exit status is 1.",
            .options = BIT(OPTION_REPO), .run = verb_merge },
    { "cherry-pick", .help = "add the run's commits on top of your branch", ONE_NAME,
            .more = "The changes are put on the run's branch first. On conflict the "
                    "conflicting files\n"
                    "are listed, your branch is not changed, and the exit status is 1.",
            .options = BIT(OPTION_REPO), .run = verb_cherry_pick },
    { "discard", "[NAME...]", "remove workspaces; refused if changes would be lost",
            "The run's branch is kept if it has commits that no other branch has, also with\n"
            "--force.",
            0, SIZE_MAX, BIT(OPTION_FORCE), verb_discard, NULL },
    { "open", .help = "check the workspace out to a directory and print it", ONE_NAME,
            .more = "The changes are put on the run's branch first, and that branch is checked "
                    "out in\n"
                    "the directory, where your own git works. Commit there to change the "
                    "workspace.",
            .options = BIT(OPTION_AT), .run = verb_open },
    { "close", .help = "remove that directory; refused if it has changes", ONE_NAME,
            .run = verb_close },
    { "move", "[NAME] DIR", "move that directory", NULL, 1, 2, 0, verb_move, NULL },
    { "shell", .words = "[NAME]", .help = "start a shell in a sandbox with the workspace",
            .run_program = verb_shell },
    { "resume", .words = "[NAME] -- PROGRAM [ARG...]",
            .help = "run another program with the workspace", .run_program = verb_resume },
    { "lock", .help = "protect a workspace from discard and prune", ONE_NAME,
            .options = BIT(OPTION_REASON), .run = verb_lock },
    { "unlock", .help = "remove that protection", ONE_NAME, .run = verb_unlock },
    { "repair", .help = "rewrite the repository's records of a workspace", ONE_NAME,
            .run = verb_repair },
    { "prune", "", "discard workspaces without unsaved changes",
            "Discards finished, unlocked workspaces that changed nothing or whose changes are\n"
            "on their branch: those of this repository, or with --all of every one.",
            0, 0, BIT(OPTION_ALL) | BIT(OPTION_OLDER_THAN) | BIT(OPTION_DRY_RUN), verb_prune,
            NULL },
};

int verb_find(const struct subcommand_args *args, struct carrel_workspace **out,
        struct carrel_error *err)
{
    return carrel_workspace_find(args->words[0], NULL, out, err);
}

const char *verb_name(const struct carrel_workspace *workspace)
{
    return carrel_workspace_info(workspace)->name;
}

int cmd_workspace(int argc, char **argv)
{
    static const struct subcommands set = {
        .command = "workspace",
        .help = "Usage: carrel workspace SUBCOMMAND [options] [NAME]\n\n"
                "Reviews, takes over or removes what runs changed in their git worktrees\n"
                "('carrel run --workspace'). NAME is RUN or TASK/RUN, as 'list' shows it. It "
                "can\n"
                "be left out if the repository here has only one workspace.",
        .end = "Exit status: 0; 1 on conflict; 125 if carrel failed or refused. That of the\n"
               "program for resume and shell.",
        .list = verbs,
        .n = ARRAY_LEN(verbs),
        .rows = workspace_rows,
        .n_rows = ARRAY_LEN(workspace_rows),
    };
    struct workspace_args args = { 0 };

    return subcommands_run(&set, argc, argv, &args.common);
}
