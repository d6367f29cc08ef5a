/* name.h - the names of a workspace: task, run, branch. */
#pragma once
#include <stdbool.h>

struct carrel_error;

#define NAME_ID_MAX 64
#define NAME_BRANCH_MAX (2 * NAME_ID_MAX + 16)

/*
 * An id becomes part of a path, of a branch and of an argument. So it is letters, digits, '.',
 * '_' and '-', at most NAME_ID_MAX of them, starts with a letter or digit, has no "..", does
 * not end in '.' or ".lock", and is not "runs" (a directory of ours). `what` is "task" or
 * "run".
 */
int name_check_id(const char *id, const char *what, struct carrel_error *err);

/* "task-<T>-run-<R>" */
void name_branch(const char *task, const char *run, char branch[static NAME_BRANCH_MAX]);

/* Whether carrel creates branches of this name (for any task and run). */
bool name_is_run_branch(const char *branch);

/* Exactly 40 or 64 lower-case hex digits. */
bool name_is_oid(const char *text);
