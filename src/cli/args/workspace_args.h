/* workspace_args.h - the options of `carrel workspace`; each subcommand takes some of them. */
#pragma once
#include "base/auto.h"
#include "cli/args/subcommands.h"
#include <stdint.h>

enum workspace_option {
    OPTION_ALL,
    OPTION_STAT,
    OPTION_NAME_STATUS,
    OPTION_UNCOMMITTED,
    OPTION_COLOR,
    OPTION_MESSAGE,
    OPTION_M, /* -m */
    OPTION_SQUASH,
    OPTION_MERGE,
    OPTION_FORCE,
    OPTION_OLDER_THAN,
    OPTION_DRY_RUN,
    OPTION_AT,
    OPTION_REPO,
    OPTION_REASON,
    OPTION_COUNT, /* their number */
};

enum color_choice { COLOR_AUTO, COLOR_ALWAYS, COLOR_NEVER };

struct workspace_args {
    struct subcommand_args common;
    bool is_all;
    bool is_stat;
    bool is_names;
    bool is_uncommitted;
    bool is_squash;
    bool is_merge;
    bool is_forced;
    bool is_dry_run;
    enum color_choice color;
    const char *message;
    const char *at;
    const char *repo;
    const char *reason;
    uint64_t older_than_s;
};

static inline const struct workspace_args *workspace_args_of(const struct subcommand_args *args)
{
    return container_of(args, const struct workspace_args, common);
}

extern const struct option_row workspace_rows[OPTION_COUNT];

/* Whether output to standard output is to be coloured. */
bool workspace_args_has_color(const struct subcommand_args *args);
