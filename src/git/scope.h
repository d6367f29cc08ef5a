/*
 * scope.h - which git settings are the user's, and which a repository brings along.
 *
 * The configuration of a repository may be the work of a run that could write there. What it
 * says about the form of files is data. Where it names a program, or a file of the host, only
 * the user's own configuration and the system's count.
 */
#pragma once
#include "base/buf.h"
#include "git/git.h"
#include <limits.h>
#include <stdbool.h>

struct carrel_error;

/* The path that is the user's last value of `key`: 1, or 0 if they have none. */
int scope_users_path(const struct git *git, const char *key, char path[static PATH_MAX],
        struct carrel_error *err);

/* What a git that obeys the user must be told, to obey no one else. */
struct scope_guard {
    char **settings;    /* for struct git; NULL: nothing */
    char *filters;      /* the filters that are left off, separated by ", "; NULL: none */
    bool has_transport; /* the repository says how, and with which programs, to fetch */
};
void scope_guard_finish(struct scope_guard guard);
DEFINE_AUTO(struct scope_guard, scope_guard_finish)

/* Of filters and of files of the host that the repository sets, the user's own values are used,
 * or none. What counts with the git dir `other` is included: it may be on another branch, and
 * have a config.worktree of its own. */
int scope_guard(const struct git *git, const char *other, struct scope_guard *out,
        struct carrel_error *err);

/* No filter at all runs, the user's neither: for content that came from a run. */
int scope_no_filters(const struct git *git, char ***settings, struct carrel_error *err);

void scope_free_settings(char **settings);
DEFINE_AUTO(char **, scope_free_settings)
