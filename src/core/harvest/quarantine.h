/*
 * quarantine.h - the objects of a workspace's result, while they are not in the repository: see
 * workspace/harvest/harvest.h.
 */
#pragma once
#include "workspace/harvest/harvest.h"
#include <limits.h>

struct carrel_error;
struct worktree;

/* Where they are. */
int quarantine_path(
        const struct worktree *place, char path[static PATH_MAX], struct carrel_error *err);

/* What is between two commits; nothing is written to *out when they are one. */
int quarantine_sum_up(const struct worktree *place, const char *from, const char *to,
        struct harvest_summary *out, struct carrel_error *err);
