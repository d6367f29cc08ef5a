/*
 * workspace.h - the subcommands of `carrel workspace`. Each calls one function of
 * <carrel/workspace.h> and prints what came of it; the table in workspace.c lists them.
 */
#pragma once
#include "base/auto.h"
#include <carrel/workspace.h>

struct carrel_error;
struct subcommand_args;

/* apply, merge and cherry-pick found conflicts. Failures are 125 as everywhere. */
enum { STATUS_CONFLICT = 1 };

DEFINE_AUTO(struct carrel_workspace *, carrel_workspace_free)

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

/* The workspace that args->words[0] means, or without a word the only one here. */
int verb_find(const struct subcommand_args *args, struct carrel_workspace **out,
        struct carrel_error *err);

/* Its "T/R". */
const char *verb_name(const struct carrel_workspace *workspace);
