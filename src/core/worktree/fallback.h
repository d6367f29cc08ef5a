/* fallback.h - workspaces without the kernel's overlay: their git dir and their files. */
#pragma once

struct carrel_error;
struct worktree;

/* What the modes other than the kernel's overlay need before the first program. */
int fallback_fill(const struct worktree *place, struct carrel_error *err);
