/* workspace.c - carrel workspace: the subcommands, and which workspace is meant. */
#include "cli/command/workspace.h"
#include "base/auto.h"
#include "base/err.h"
#include "base/json.h"
#include "base/path.h"
#include "base/str.h"
#include "cli/args/report_args.h"
#include "cli/args/subcommands.h"
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

struct verb {
    const char *name;
    const char *words; /* what --help calls the words it takes */
    const char *help;
    const char *more; /* further lines for its own --help */
    size_t min, max;  /* how many words */
    unsigned options; /* --help is in every set */
    int (*run)(const struct workspace_args *args);
    int (*run_program)(int argc, char **argv); /* instead: takes the options of carrel run */
};

#define ONE_NAME .words = "[NAME]", .max = 1

static const struct verb verbs[] = {
    { "list", "", "the workspaces of this repository, or of all",
            "Columns: run, task, state, base commit, age, branch. States: running; kept (its\n"
            "work is here and nowhere else); applied (in your files, too); committed (on its\n"
            "branch); interrupted (its carrel was killed; nothing is lost); creating.",
            0, 0, BIT(OPTION_ALL) | BIT(OPTION_JSON), verb_list, NULL },
    { "show", .help = "all that is known of one, and what it changed", ONE_NAME,
            .options = BIT(OPTION_JSON), .run = verb_show },
    { "status", .help = "its changed files, one per line", ONE_NAME,
            .more = "Two letters for each: what the run committed, and what it left "
                    "uncommitted\n"
                    "(A added, M modified, D deleted, T another type), then the path.",
            .options = BIT(OPTION_JSON), .run = verb_status },
    { "diff", .help = "what the run changed, as a unified diff", ONE_NAME,
            .more = "Commits and uncommitted work together, against the commit it began with.",
            .options = BIT(OPTION_STAT) | BIT(OPTION_NAME_STATUS) | BIT(OPTION_UNCOMMITTED) |
                       BIT(OPTION_COLOR) | BIT(OPTION_JSON),
            .run = verb_diff },
    { "log", .help = "the commits that the run made", ONE_NAME,
            .options = BIT(OPTION_COLOR) | BIT(OPTION_JSON), .run = verb_log },
    { "patch", .help = "all of it as patches for git am", ONE_NAME, .options = BIT(OPTION_JSON),
            .run = verb_patch },
    { "commit", .help = "put its work on its branch in your repository", ONE_NAME,
            .more = "Your checked-out files stay as they are. Work that the run did not "
                    "commit\n"
                    "itself becomes one more commit.",
            .options = BIT(OPTION_MESSAGE) | BIT(OPTION_M) | BIT(OPTION_JSON),
            .run = verb_commit },
    { "apply", .help = "put its changes into your checked-out files", ONE_NAME,
            .more = "All of them or none: where one of your files is in the way, the "
                    "conflicts\n"
                    "are listed, nothing is changed and the exit status is 1.",
            .options = BIT(OPTION_SQUASH) | BIT(OPTION_MERGE) | BIT(OPTION_REPO) |
                       BIT(OPTION_JSON),
            .run = verb_apply },
    { "merge", .help = "merge its branch into yours", ONE_NAME,
            .more = "Its work is put on its branch first. Conflicts are listed, nothing of "
                    "yours\n"
                    "is changed then and the exit status is 1.",
            .options = BIT(OPTION_REPO) | BIT(OPTION_JSON), .run = verb_merge },
    { "cherry-pick", .help = "put each of its commits on top of yours", ONE_NAME,
            .more = "Its work is put on its branch first. Conflicts are listed, nothing of "
                    "yours\n"
                    "is changed then and the exit status is 1.",
            .options = BIT(OPTION_REPO) | BIT(OPTION_JSON), .run = verb_cherry_pick },
    { "discard", "[NAME...]", "remove workspaces; refused when work would be lost",
            "The branch stays if work was put on it that no other branch has, also with "
            "--force.",
            0, SIZE_MAX, BIT(OPTION_FORCE) | BIT(OPTION_JSON), verb_discard, NULL },
    { "open", .help = "give it a directory where your own git works; prints it", ONE_NAME,
            .more = "Its work is put on its branch first, and that branch is checked out "
                    "there.\n"
                    "What is changed there comes back by being committed.",
            .options = BIT(OPTION_AT) | BIT(OPTION_JSON), .run = verb_open },
    { "close", .help = "take that directory away; refused while it has uncommitted changes",
            ONE_NAME, .options = BIT(OPTION_JSON), .run = verb_close },
    { "move", "[NAME] DIR", "move that directory", NULL, 1, 2, BIT(OPTION_JSON), verb_move,
            NULL },
    { "shell", .words = "[NAME]", .help = "a shell in it, in a sandbox",
            .run_program = verb_shell },
    { "resume", .words = "[NAME] -- PROGRAM [ARG...]", .help = "run another program in it",
            .run_program = verb_resume },
    { "lock", .help = "keep it from being discarded or pruned", ONE_NAME,
            .options = BIT(OPTION_REASON) | BIT(OPTION_JSON), .run = verb_lock },
    { "unlock", .help = "allow that again", ONE_NAME, .options = BIT(OPTION_JSON),
            .run = verb_unlock },
    { "repair", .help = "write anew what the repository should know of it", ONE_NAME,
            .options = BIT(OPTION_JSON), .run = verb_repair },
    { "prune", "", "discard those that have no work of their own",
            "Finished and unlocked ones that changed nothing, or whose work is on their "
            "branch.\n"
            "Of this repository, or with --all of every one.",
            0, 0,
            BIT(OPTION_ALL) | BIT(OPTION_OLDER_THAN) | BIT(OPTION_DRY_RUN) | BIT(OPTION_JSON),
            verb_prune, NULL },
};

static void print_help(void)
{
    (void)puts("Usage: carrel workspace SUBCOMMAND [options] [NAME]\n\n"
               "Looks after the git worktrees that runs had for themselves (carrel run "
               "--workspace)"
               ".\nNAME is a run, as list shows it, or TASK/RUN. It may be left out where the\n"
               "repository of the current directory has exactly one workspace.\n\n"
               "Subcommands:");
    for (size_t i = 0; i < ARRAY_LEN(verbs); i++)
        printf("  %-12s %s\n", verbs[i].name, verbs[i].help);
    (void)puts("\nOptions, each of some subcommands ('carrel workspace SUBCOMMAND --help'):");
    workspace_args_print(BIT(OPTION_COUNT) - 1);
    (void)puts("\nThe exit status is 0, 1 for conflicts, 125 when carrel failed or refused;\n"
               "that of the program for resume and shell.");
}

static void print_verb_help(const struct verb *verb)
{
    printf("Usage: carrel workspace %s [options]%s%s\n\n%c%s.\n", verb->name,
            verb->words[0] ? " " : "", verb->words, verb->help[0] - 'a' + 'A', verb->help + 1);
    if (verb->more)
        (void)puts(verb->more);
    (void)puts("\nOptions:");
    workspace_args_print(verb->options | BIT(OPTION_HELP));
}

int verb_fail(const struct workspace_args *args, const struct carrel_error *err)
{
    return report_fail(args->is_json, err);
}

int verb_done(const struct workspace_args *args, const char *name, const char *text)
{
    AUTO(buf_finish) struct buf out = BUF_INIT(64U << 10);
    struct json json = { .out = &out };

    if (!args->is_json) {
        (void)puts(text);
        return report_finish(0);
    }
    json_object(&json, NULL);
    json_bool(&json, "ok", true);
    json_str(&json, "name", name);
    json_end_object(&json);
    return report_print_json(&out, 0);
}

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

/* A word that could not be read must not hide what the caller asked for further on. */
static bool asks_for_json(int argc, char **argv)
{
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
        if (strcmp(argv[i], "--json") == 0)
            return true;
    return false;
}

static int run_verb(size_t index, int argc, char **argv)
{
    const struct verb *verb = &verbs[index];
    const struct subcommand_words takes = { verb->words, verb->min, verb->max };
    struct carrel_error err = { 0 };
    struct workspace_args args;
    int status = 0;

    if (verb->run_program)
        return verb->run_program(argc, argv);
    int r = workspace_args_parse(&args, verb->options | BIT(OPTION_HELP), argc, argv, &err);
    if (r == 0 && !args.wants_help)
        r = subcommand_check_words(
                "workspace", verb->name, takes, args.words, args.n_words, &err);
    if (r < 0) {
        args.is_json = asks_for_json(argc, argv);
        status = verb_fail(&args, &err);
    } else if (args.wants_help) {
        print_verb_help(verb);
    } else {
        status = verb->run(&args);
    }
    workspace_args_finish(&args);
    return status;
}

static const char *name_of(size_t index)
{
    return verbs[index].name;
}

int cmd_workspace(int argc, char **argv)
{
    static const struct subcommands set = {
        .command = "workspace",
        .first = "list",
        .n = ARRAY_LEN(verbs),
        .name = name_of,
        .print_help = print_help,
        .run = run_verb,
    };

    return subcommands_run(&set, argc, argv);
}
