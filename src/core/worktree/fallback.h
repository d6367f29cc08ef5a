/* fallback.h - workspaces without the kernel's overlay: a git dir and a checkout. */
#pragma once
#include <stdbool.h>

struct carrel_error;
struct worktree;

/* Makes what WORKSPACE_COPY needs before the first program. `is_of_run`: of the commit, see
 * prepare.h. */
int fallback_fill(const struct worktree *worktree, bool is_of_run, struct carrel_error *err);
