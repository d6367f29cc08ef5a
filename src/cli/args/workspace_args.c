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
    const uint64_t day_s = 24 * 3600;
    size_t len = strlen(v);
    uint64_t days;
    uint64_t ms;

    AUTO(free) char *text = strdup(v);
    if (!text)
        return err_set_errno(err, -ENOMEM, "time");
    if (len > 1 && text[len - 1] == 'd') {
        text[len - 1] = '\0';
        if (str_parse_u64(text, &days) == 0 && days <= UINT32_MAX) {
            args_of(t)->older_than_s = days * day_s;
            return 0;
        }
    } else if (str_parse_duration(v, &ms, NULL) == 0) {
        args_of(t)->older_than_s = ms / 1000;
        return 0;
    }
    char shown[64];
    return err_set(err, -EINVAL,
            "'%s' is not a time; expected a number with an optional unit s, m, h or d, such as "
            "30d",
            str_escape(v, len, shown, sizeof(shown)));
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
    [OPTION_JSON] = FLAG("json", "print one JSON object, and nothing else", is_json),
    [OPTION_HELP] = FLAG("help", "this text", wants_help),
};

static size_t select_rows(unsigned options, struct option_row rows[static OPTION_COUNT])
{
    size_t n = 0;

    for (size_t i = 0; i < OPTION_COUNT; i++)
        if (options & OPTION_BIT(i))
            rows[n++] = workspace_rows[i];
    return n;
}

void workspace_args_print(unsigned options)
{
    struct option_row rows[OPTION_COUNT];

    options_print(rows, select_rows(options, rows));
}

int workspace_args_parse(struct workspace_args *args, unsigned options, int argc, char **argv,
        struct carrel_error *err)
{
    struct option_row rows[OPTION_COUNT];
    const size_t n = select_rows(options, rows);

    *args = (struct workspace_args){ 0 };
    args->words = calloc((size_t)argc + 1, sizeof(*args->words));
    if (!args->words)
        return err_set_errno(err, -ENOMEM, "arguments");
    int r = options_parse_mixed(rows, n, argc, argv, args, args->words, err);
    if (r < 0)
        return r;
    args->n_words = (size_t)r;
    return 0;
}

void workspace_args_finish(struct workspace_args *args)
{
    free(args->words);
}

bool workspace_args_has_color(const struct workspace_args *args)
{
    const char *term = getenv("TERM");
    const char *no_color = getenv("NO_COLOR");

    if (args->color != COLOR_AUTO)
        return args->color == COLOR_ALWAYS;
    return isatty(STDOUT_FILENO) && term && strcmp(term, "dumb") != 0 &&
           !(no_color && no_color[0]);
}
