/* fallback.h - workspaces without the kernel's overlay: a git dir and a checkout. */
#pragma once

struct carrel_error;
struct worktree;

/* What the modes other than the kernel's overlay need before the first program. */
int fallback_fill(const struct worktree *place, struct carrel_error *err);
