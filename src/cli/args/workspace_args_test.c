#include "base/auto.h"
#include "base/err.h"
#include "cli/args/workspace_args.h"
#include "harness.h"
#include <errno.h>
#include <string.h>

static struct workspace_args args;
static struct carrel_error err;

static int parse(unsigned options, const char *line)
{
    static char copy[512];
    static char *words[64];
    int n = 0;

    CHECK(strlen(line) < sizeof(copy));
    (void)strcpy(copy, line);
    for (char *word = strtok(copy, " "); word; word = strtok(NULL, " "))
        words[n++] = word;
    words[n] = NULL;
    const struct subcommand sub = { .words = "", .max = SIZE_MAX, .options = options };
    static const struct subcommands set = { .rows = workspace_rows, .n_rows = OPTION_COUNT };
    args = (struct workspace_args){ 0 };
    return subcommand_parse(&set, &sub, n, words, &args.common, &err);
}

static void refused(unsigned options, const char *line, const char *message)
{
    CHECK_EQ(parse(options, line), -EINVAL);
    CHECK_STR(err.message, message);
    free(args.common.words);
}

TEST(options_stand_before_and_behind_names)
{
    const unsigned set = OPTION_BIT(OPTION_STAT) | OPTION_BIT(OPTION_COLOR);

    CHECK_EQ(parse(set, "diff --stat a --color never b --json"), 0);
    CHECK_EQ(args.common.n_words, 2);
    CHECK_STR(args.common.words[0], "a");
    CHECK_STR(args.common.words[1], "b");
    CHECK(args.is_stat);
    CHECK(args.common.is_json);
    CHECK_EQ(args.color, COLOR_NEVER);
    free(args.common.words);

    CHECK_EQ(parse(set, "diff"), 0);
    CHECK_EQ(args.common.n_words, 0);
    free(args.common.words);
}

TEST(after_two_dashes_there_are_names_only)
{
    CHECK_EQ(parse(OPTION_BIT(OPTION_FORCE), "discard --force -- a --force b"), 0);
    CHECK_EQ(args.common.n_words, 3);
    CHECK_STR(args.common.words[1], "--force");
    CHECK_STR(args.common.words[2], "b");
    free(args.common.words);

    CHECK_EQ(parse(OPTION_BIT(OPTION_FORCE), "discard a -- b"), 0);
    CHECK_EQ(args.common.n_words, 2);
    CHECK(!args.is_forced);
    free(args.common.words);

    CHECK_EQ(parse(OPTION_BIT(OPTION_FORCE), "discard --"), 0);
    CHECK_EQ(args.common.n_words, 0);
    free(args.common.words);
}

TEST(an_option_of_another_subcommand_is_unknown)
{
    refused(0, "show --stat a", "unknown option '--stat'; --help lists them");
    refused(OPTION_BIT(OPTION_STAT), "diff a --stta",
            "unknown option '--stta' (did you mean '--stat'?)");
}

TEST(ages_have_days)
{
    static const struct {
        const char *line;
        uint64_t s;
    } good[] = {
        { "prune --older-than 30d", 30 * 86400 },
        { "prune --older-than 12h", 12 * 3600 },
        { "prune --older-than 90", 90 },
        { "prune --older-than 0d", 0 },
    };
    const unsigned set = OPTION_BIT(OPTION_OLDER_THAN);

    for (size_t i = 0; i < ARRAY_LEN(good); i++) {
        CHECK_EQ(parse(set, good[i].line), 0);
        CHECK_EQ(args.older_than_s, good[i].s);
        free(args.common.words);
    }
    refused(set, "prune --older-than d",
            "--older-than: 'd' is not a time; expected a number with an optional unit ms, s, "
            "m, h or d, such as 300s");
}

TEST(colours_are_always_never_or_auto)
{
    CHECK_EQ(parse(OPTION_BIT(OPTION_COLOR), "diff --color=always"), 0);
    CHECK(workspace_args_has_color(&args.common));
    free(args.common.words);
    CHECK_EQ(parse(OPTION_BIT(OPTION_COLOR), "diff --color=never"), 0);
    CHECK(!workspace_args_has_color(&args.common));
    free(args.common.words);
    refused(OPTION_BIT(OPTION_COLOR), "diff --color=red",
            "--color: 'red' is not one of auto, always, never");
}
