/* workspace_args.c - one table for all subcommands: an option means the same in each. */
#include "cli/args/workspace_args.h"
#include "base/auto.h"
#include "base/err.h"
#include "base/str.h"
#include <errno.h>
#include <unistd.h>

static struct workspace_args *args_of(void *target)
{
    return target;
}

static int take_color(void *t, const char *v, struct carrel_error *err)
{
    static const char *const names[] = {
        [COLOR_AUTO] = "auto",
        [COLOR_ALWAYS] = "always",
        [COLOR_NEVER] = "never",
    };
    char shown[64];

    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        if (strcmp(v, names[i]) != 0)
            continue;
        args_of(t)->color = (enum color_choice)i;
        return 0;
    }
    return err_set(err, -EINVAL, "'%s' is not one of auto, always, never",
            str_escape(v, strlen(v), shown, sizeof(shown)));
}

static int take_message(void *t, const char *v, struct carrel_error *err)
{
    if (!v[0])
        return err_set(err, -EINVAL, "expected the text of a commit message");
    args_of(t)->message = v;
    return 0;
}

static int take_older_than(void *t, const char *v, struct carrel_error *err)
{
    uint64_t ms = 0;

    int r = str_parse_duration(v, &ms, err);
    args_of(t)->older_than_s = ms / 1000;
    return r;
}

static int take_at(void *t, const char *v, struct carrel_error *err)
{
    if (!v[0])
        return err_set(err, -EINVAL, "expected a directory that does not exist yet");
    args_of(t)->at = v;
    return 0;
}

static int take_repo(void *t, const char *v, struct carrel_error *err)
{
    if (!v[0])
        return err_set(err, -EINVAL, "expected a directory of a git repository");
    args_of(t)->repo = v;
    return 0;
}

static int take_reason(void *t, const char *v, struct carrel_error *err)
{
    (void)err;
    args_of(t)->reason = v;
    return 0;
}

#define FLAG(name, help, member) OPTION_FLAG(name, help, struct workspace_args, member)

const struct option_row workspace_rows[OPTION_COUNT] = {
    [OPTION_ALL] = FLAG("all", "workspaces of every repository", is_all),
    [OPTION_STAT] = FLAG("stat", "only the number of changed lines per file", is_stat),
    [OPTION_NAME_STATUS] = FLAG("name-status", "only file names, with A, M, D or T", is_names),
    [OPTION_UNCOMMITTED] =
            FLAG("uncommitted", "only what the run did not commit", is_uncommitted),
    [OPTION_COLOR] = { "color", "WHEN", "auto (default: on a terminal), always or never",
            .take = take_color },
    [OPTION_MESSAGE] = { "message", "TEXT", "commit message for uncommitted changes",
            .take = take_message },
    [OPTION_M] = { "m", "TEXT", "same as --message", .take = take_message },
    [OPTION_SQUASH] = FLAG("squash", "apply: stage the changes", is_squash),
    [OPTION_MERGE] = FLAG("merge", "apply: merge the run's branch", is_merge),
    [OPTION_FORCE] = FLAG("force", "discard changes that exist nowhere else", is_forced),
    [OPTION_OLDER_THAN] = { "older-than", "TIME", "only workspaces older than this: 30d, 12h",
            .take = take_older_than },
    [OPTION_DRY_RUN] = FLAG("dry-run", "print what would be done, do nothing", is_dry_run),
    [OPTION_AT] = { "at", "DIR", "directory to check out to", .take = take_at },
    [OPTION_REPO] = { "repo", "DIR", "worktree that receives the changes", .take = take_repo },
    [OPTION_REASON] = { "reason", "TEXT", "why it is locked, shown by 'show'",
            .take = take_reason },
};

bool workspace_args_has_color(const struct subcommand_args *args)
{
    const enum color_choice color = workspace_args_of(args)->color;
    const char *term = getenv("TERM");
    const char *no_color = getenv("NO_COLOR");

    if (color != COLOR_AUTO)
        return color == COLOR_ALWAYS;
    return isatty(STDOUT_FILENO) && term && strcmp(term, "dumb") != 0 &&
           !(no_color && no_color[0]);
}
