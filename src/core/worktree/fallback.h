/* fallback.h - workspaces without the kernel's overlay: a git dir and a checkout. */
#pragma once

struct carrel_error;
struct worktree;

/* Makes what WORKSPACE_COPY needs before the first program. */
int fallback_fill(const struct worktree *worktree, struct carrel_error *err);
