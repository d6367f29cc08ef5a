/*
 * workspace.h - the subcommands of `carrel workspace`. Each calls one function of
 * core/harvest/verbs.h and prints what came of it; the table in workspace.c lists them.
 */
#pragma once
#include "workspace/workspace.h"
#include <stddef.h>

struct carrel_error;
struct subcommand_args;

/* apply, merge and cherry-pick found conflicts. Failures are 125 as everywhere. */
enum { STATUS_CONFLICT = 1 };

#define WORKSPACE_NAME_MAX ((size_t)2 * NAME_ID_MAX + 2)

/* Each returns the exit status. */
int verb_list(const struct subcommand_args *args);
int verb_show(const struct subcommand_args *args);
int verb_status(const struct subcommand_args *args);
int verb_diff(const struct subcommand_args *args);
int verb_log(const struct subcommand_args *args);
int verb_patch(const struct subcommand_args *args);
int verb_commit(const struct subcommand_args *args);
int verb_apply(const struct subcommand_args *args);
int verb_merge(const struct subcommand_args *args);
int verb_cherry_pick(const struct subcommand_args *args);
int verb_discard(const struct subcommand_args *args);
int verb_prune(const struct subcommand_args *args);
int verb_open(const struct subcommand_args *args);
int verb_close(const struct subcommand_args *args);
int verb_move(const struct subcommand_args *args);
int verb_lock(const struct subcommand_args *args);
int verb_unlock(const struct subcommand_args *args);
int verb_repair(const struct subcommand_args *args);

/* These two take the options of `carrel run`. */
int verb_resume(int argc, char **argv);
int verb_shell(int argc, char **argv);

/*
 * Which workspace is meant: `given`, or when that is NULL the only one of the repository (or
 * folder) of the current directory. Of several with the run that is given it is the one of that
 * repository. With none or several there the error says so and lists them.
 */
int verb_name(
        const char *given, char name[static WORKSPACE_NAME_MAX], struct carrel_error *err);

/* The same for the repository at `dir`. */
int verb_name_in(const char *dir, const char *given, char name[static WORKSPACE_NAME_MAX],
        struct carrel_error *err);
