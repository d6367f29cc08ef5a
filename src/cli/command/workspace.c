/* workspace.c - carrel workspace: the subcommands, and which workspace is meant. */
#include "cli/command/workspace.h"
#include "base/auto.h"
#include "base/err.h"
#include "base/path.h"
#include "base/str.h"
#include "cli/args/workspace_args.h"
#include "cli/commands.h"
#include "cli/print/report.h"
#include "core/harvest/verbs.h"
#include <errno.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

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

/* Whether it belongs to the folder that the current directory is, or lies in. */
static bool is_of_folder(const struct workspace *ws, const char *cwd)
{
    return ws->is_folder && ws->top && path_is_clean(ws->top) && path_is_below(cwd, ws->top);
}

static int take_the_only(const struct workspace_list *list, const char *cwd, const char *where,
        char *name, struct carrel_error *err)
{
    AUTO(buf_finish) struct buf names = BUF_INIT(256);
    const struct workspace *found = NULL;
    size_t n = 0;

    for (size_t i = 0; i < list->n; i++) {
        const struct workspace *ws = list->items[i];
        if (cwd && !is_of_folder(ws, cwd))
            continue;
        found = ws;
        if (++n <= 4)
            buf_addf(&names, "%s%s/%s", n > 1 ? ", " : "", ws->task, ws->run);
    }
    if (n == 0 && cwd)
        return err_set(err, -ENOENT,
                "no workspace was named, and the current directory is in no git repository; "
                "'carrel workspace list' shows those there are");
    if (n == 0)
        return err_set(err, -ENOENT,
                "this repository has no workspace; 'carrel run --workspace -- PROGRAM' makes "
                "one, and 'carrel workspace list --all' shows those of other repositories");
    if (n > 1)
        return err_set(err, -EINVAL, "this %s has %zu workspaces; name one of them: %s%s",
                where, n, names.data ? names.data : "", n > 4 ? ", ..." : "");
    (void)snprintf(name, WORKSPACE_NAME_MAX, "%s/%s", found->task, found->run);
    return 0;
}

int verb_name_in(const char *dir, const char *given, char name[static WORKSPACE_NAME_MAX],
        struct carrel_error *err)
{
    AUTO(workspace_list_free) struct workspace_list *list = NULL;
    char cwd[PATH_MAX];

    if (given) {
        if (!given[0] || strlen(given) >= WORKSPACE_NAME_MAX) {
            char shown[64];
            return err_set(err, -EINVAL,
                    "'%s' is not the name of a workspace; expected RUN or TASK/RUN",
                    str_escape(given, strlen(given), shown, sizeof(shown)));
        }
        return workspaces_resolve(given, dir, name, WORKSPACE_NAME_MAX, err);
    }
    int r = workspaces_list(dir, &list, err);
    if (r == 0)
        return take_the_only(list, NULL, "repository", name, err);
    if (r != -ENOENT)
        return r;
    if (!getcwd(cwd, sizeof(cwd)))
        return err_set_errno(err, -errno, "current directory");
    r = workspaces_list(NULL, &list, err);
    return r < 0 ? r : take_the_only(list, cwd, "folder", name, err);
}

int verb_name(const char *given, char name[static WORKSPACE_NAME_MAX], struct carrel_error *err)
{
    return verb_name_in(".", given, name, err);
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
