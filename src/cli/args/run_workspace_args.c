/* run_workspace_args.c - a workspace for the run: which, from what, and what becomes of it. */
#include "cli/args/run_workspace_args.h"
#include "base/auto.h"
#include "base/err.h"
#include "base/str.h"
#include "cli/args/run_args.h"
#include <errno.h>

static struct run_workspace_args *workspace_of(void *target)
{
    return &((struct run_args *)target)->workspace;
}

/* What an option has to do with: each kind includes those above it. */
enum kind {
    KIND_ANY,  /* also with a workspace that is there already */
    KIND_MAKE, /* decides how a workspace is made */
    KIND_GIT,  /* and means nothing without git */
};

static void ask(void *target, const char *option, enum kind kind)
{
    struct run_workspace_args *workspace = workspace_of(target);

    if (!workspace->asked_by)
        workspace->asked_by = option;
    if (kind >= KIND_MAKE && !workspace->made_by)
        workspace->made_by = option;
    if (kind >= KIND_GIT && !workspace->needs_git)
        workspace->needs_git = option;
}

static int take_text(
        const char **out, const char *value, const char *expected, struct carrel_error *err)
{
    if (!value[0])
        return err_set(err, -EINVAL, "expected %s", expected);
    *out = value;
    return 0;
}

static int add_word(char ***list, size_t *n, const char *word, struct carrel_error *err)
{
    char **longer = reallocarray(*list, *n + 2, sizeof(*longer));

    if (!longer)
        return err_set_errno(err, -ENOMEM, "list");
    *list = longer;
    longer[*n] = strdup(word);
    if (!longer[*n])
        return err_set_errno(err, -ENOMEM, "list");
    longer[++*n] = NULL;
    return 0;
}

struct choice {
    const char *name;
    int value;
};

/* `expected` lists the names for the message. */
static int choose(const struct choice *choices, size_t n, const char *value,
        const char *expected, int *out, struct carrel_error *err)
{
    char shown[64];

    for (size_t i = 0; i < n; i++) {
        if (strcmp(choices[i].name, value) != 0)
            continue;
        *out = choices[i].value;
        return 0;
    }
    return err_set(err, -EINVAL, "'%s' is not one of %s",
            str_escape(value, strlen(value), shown, sizeof(shown)), expected);
}

int run_take_workspace(void *t, const char *v, struct carrel_error *err)
{
    (void)v;
    (void)err;
    ask(t, "--workspace", KIND_GIT);
    return 0;
}

int run_take_repo(void *t, const char *v, struct carrel_error *err)
{
    ask(t, "--repo", KIND_GIT);
    return take_text(&workspace_of(t)->options.repo, v, "a directory in a git repository", err);
}

int run_take_base(void *t, const char *v, struct carrel_error *err)
{
    ask(t, "--base", KIND_GIT);
    return take_text(
            &workspace_of(t)->options.base, v, "a revision, such as main or HEAD~2", err);
}

int run_take_fork(void *t, const char *v, struct carrel_error *err)
{
    ask(t, "--fork", KIND_MAKE);
    return take_text(&workspace_of(t)->options.fork, v, "a run's id, such as R-456", err);
}

int run_take_task(void *t, const char *v, struct carrel_error *err)
{
    ask(t, "--task", KIND_MAKE);
    return take_text(&workspace_of(t)->options.task, v, "an id, such as T-123", err);
}

int run_take_run(void *t, const char *v, struct carrel_error *err)
{
    ask(t, "--run", KIND_MAKE);
    return take_text(&workspace_of(t)->options.run, v, "an id, such as R-456", err);
}

int run_take_dirty(void *t, const char *v, struct carrel_error *err)
{
    (void)v;
    (void)err;
    ask(t, "--dirty", KIND_GIT);
    workspace_of(t)->options.is_dirty = true;
    return 0;
}

int run_take_include(void *t, const char *v, struct carrel_error *err)
{
    struct run_workspace_args *workspace = workspace_of(t);

    ask(t, "--include", KIND_GIT);
    if (!v[0])
        return err_set(err, -EINVAL, "expected a pattern of ignored files, such as .env");
    int r = add_word(&workspace->include, &workspace->n_include, v, err);
    workspace->options.include = (const char *const *)workspace->include;
    return r;
}

int run_take_history(void *t, const char *v, struct carrel_error *err)
{
    static const struct choice choices[] = {
        { "full", CARREL_HISTORY_FULL },
        { "cut", CARREL_HISTORY_CUT },
    };
    int history = CARREL_HISTORY_DEFAULT;

    ask(t, "--history", KIND_GIT);
    int r = choose(choices, ARRAY_LEN(choices), v, "full, cut", &history, err);
    workspace_of(t)->options.history = (enum carrel_history)history;
    return r;
}

int run_take_setup(void *t, const char *v, struct carrel_error *err)
{
    ask(t, "--setup", KIND_MAKE);
    return take_text(&workspace_of(t)->options.setup, v, "a shell line, such as 'npm ci'", err);
}

int run_take_setup_key(void *t, const char *v, struct carrel_error *err)
{
    struct run_workspace_args *workspace = workspace_of(t);

    ask(t, "--setup-key", KIND_MAKE);
    if (!v[0])
        return err_set(err, -EINVAL, "expected a file of the tree, such as package-lock.json");
    int r = add_word(&workspace->setup_keys, &workspace->n_setup_keys, v, err);
    workspace->options.setup_keys = (const char *const *)workspace->setup_keys;
    return r;
}

int run_take_tree(void *t, const char *v, struct carrel_error *err)
{
    static const struct choice choices[] = {
        { "auto", CARREL_TREE_AUTO },
        { "overlay", CARREL_TREE_OVERLAY },
        { "copy", CARREL_TREE_COPY },
    };
    int tree = CARREL_TREE_AUTO;

    ask(t, "--tree", KIND_MAKE);
    int r = choose(choices, ARRAY_LEN(choices), v, "auto, overlay, copy", &tree, err);
    workspace_of(t)->options.tree = (enum carrel_tree)tree;
    return r;
}

int run_take_on_success(void *t, const char *v, struct carrel_error *err)
{
    static const struct choice choices[] = {
        { "keep", CARREL_KEEP },
        { "commit", CARREL_COMMIT },
        { "apply", CARREL_APPLY },
        { "discard", CARREL_DISCARD },
    };
    int action = CARREL_KEEP;

    ask(t, "--on-success", KIND_ANY);
    int r = choose(
            choices, ARRAY_LEN(choices), v, "keep, commit, apply, discard", &action, err);
    workspace_of(t)->options.on_success = (enum carrel_outcome_action)action;
    return r;
}

int run_take_on_failure(void *t, const char *v, struct carrel_error *err)
{
    static const struct choice choices[] = {
        { "keep", CARREL_KEEP },
        { "discard", CARREL_DISCARD },
    };
    int action = CARREL_KEEP;

    ask(t, "--on-failure", KIND_ANY);
    int r = choose(choices, ARRAY_LEN(choices), v, "keep, discard", &action, err);
    workspace_of(t)->options.on_failure = (enum carrel_outcome_action)action;
    return r;
}

int run_take_cow(void *t, const char *v, struct carrel_error *err)
{
    (void)v;
    (void)err;
    ask(t, "--cow", KIND_MAKE);
    workspace_of(t)->is_cow = true;
    return 0;
}

/* The folder of --workdir becomes what the workspace is made of, not a mount. */
static int take_folder(struct run_args *args, struct carrel_error *err)
{
    struct run_workspace_args *workspace = &args->workspace;
    const size_t at = args->workdir - 1;

    if (args->workdir == 0)
        return err_set(err, -EINVAL, "--cow needs --workdir DIR: the folder to work on");
    if (workspace->needs_git)
        return err_set(err, -EINVAL,
                "%s is for git repositories, --workdir DIR --cow for folders without git: "
                "give one of them",
                workspace->needs_git);
    if (!args->mounts[at].is_writable)
        return err_set(err, -EINVAL,
                "--workdir DIR:ro and --cow cannot be combined: the copy is writable");
    if (workspace->options.on_success == CARREL_COMMIT)
        return err_set(err, -EINVAL,
                "--on-success commit needs git; a folder has keep, apply and discard");
    workspace->folder = (char *)(uintptr_t)args->mounts[at].source;
    free((void *)(uintptr_t)args->mounts[at].target);
    args->options.n_mounts--;
    memmove(&args->mounts[at], &args->mounts[at + 1],
            (args->options.n_mounts - at) * sizeof(args->mounts[0]));
    workspace->options.is_folder = true;
    workspace->options.repo = workspace->folder;
    return 0;
}

static int check_mounts(const struct run_args *args, struct carrel_error *err)
{
    for (size_t i = 0; i < args->options.n_mounts; i++) {
        if (strcmp(args->mounts[i].target, "/workspace") != 0)
            continue;
        if (args->workdir != i + 1)
            return err_set(err, -EINVAL,
                    "the mount on /workspace and %s cannot be combined: both would be "
                    "/workspace",
                    args->workspace.asked_by);
        return err_set(err, -EINVAL,
                "--workdir and %s cannot be combined: both would be /workspace (a folder "
                "without git: --workdir DIR --cow)",
                args->workspace.asked_by);
    }
    return 0;
}

/* A fork is made as the workspace that it is a fork of. */
static int check_fork(const struct run_workspace_args *workspace, struct carrel_error *err)
{
    const struct carrel_workspace_options *o = &workspace->options;
    const char *given = workspace->needs_git          ? workspace->needs_git
                        : o->setup                    ? "--setup"
                        : o->tree != CARREL_TREE_AUTO ? "--tree"
                        : workspace->is_cow           ? "--cow"
                                                      : NULL;

    if (!o->fork || !given)
        return 0;
    return err_set(err, -EINVAL,
            "--fork and %s cannot be combined: a fork takes it from the workspace it starts "
            "with",
            given);
}

int run_workspace_complete(struct run_args *args, struct carrel_error *err)
{
    struct run_workspace_args *workspace = &args->workspace;
    struct carrel_workspace_options *options = &workspace->options;

    if (!workspace->asked_by)
        return 0;
    int r = check_fork(workspace, err);
    if (r == 0 && workspace->is_cow)
        r = take_folder(args, err);
    if (r == 0)
        r = check_mounts(args, err);
    if (r < 0)
        return r;
    if (options->setup_keys && !options->setup)
        return err_set(err, -EINVAL,
                "--setup-key needs --setup LINE, the command to run when that file changes");
    if (options->is_dirty && options->base)
        return err_set(err, -EINVAL,
                "--dirty and --base cannot be combined: uncommitted changes belong to the "
                "checked-out commit");
    options->size = sizeof(*options);
    args->options.workspace = options;
    return 0;
}

int run_workspace_resume(struct run_args *args, struct carrel_error *err)
{
    if (args->workspace.made_by)
        return err_set(err, -EINVAL,
                "%s applies only to a new workspace; leave it out, or create one with 'carrel "
                "run'",
                args->workspace.made_by);
    if (!args->workspace.asked_by)
        args->workspace.asked_by = "a workspace that is there already";
    return run_workspace_complete(args, err);
}

static void free_words(char **words, size_t n)
{
    for (size_t i = 0; i < n; i++)
        free(words[i]);
    free(words);
}

void run_workspace_finish(struct run_workspace_args *workspace)
{
    free_words(workspace->include, workspace->n_include);
    free_words(workspace->setup_keys, workspace->n_setup_keys);
    free(workspace->folder);
}
