/* repo_format.h - the format of a repository according to its own configuration. */
#pragma once
#include "base/auto.h"
#include <stdbool.h>
#include <stddef.h>

struct carrel_error;

struct repo_format {
    bool is_bare;
    bool is_sha256;
    bool is_partial; /* objects may be missing and are fetched from a promisor remote */
    bool has_worktree_config; /* config.worktree counts too */
    bool has_file_refs;
    bool may_name_commands;  /* filters, files of the host, or it includes another file */
    bool may_name_transport; /* it may say with which programs to fetch; likewise */
    char *work_tree;         /* core.worktree; NULL: not set */
};
#define REPO_FORMAT_INIT                                                                       \
    (struct repo_format)                                                                       \
    {                                                                                          \
        .has_file_refs = true                                                                  \
    }
void repo_format_finish(struct repo_format format);
DEFINE_AUTO(struct repo_format, repo_format_finish)

/*
 * Reads configuration text in addition to what `format` has. Includes are not followed: git
 * does not do it either for these settings. If there are unknown extensions, refs are left to
 * git, which supports or refuses them. -EBADMSG: not git configuration; -ENOTSUP: unknown
 * format version. `name` appears in messages only.
 */
int repo_format_parse(struct repo_format *format, const char *text, size_t len,
        const char *name, struct carrel_error *err);
