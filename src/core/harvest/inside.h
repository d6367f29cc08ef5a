/*
 * inside.h - a harvest by git itself, in a fresh sandbox that has the workspace: inside.sh.
 *
 * The git dir is the run's, and so is its configuration. Filters of the run's choice are part
 * of what git would commit, and run; hooks and the file system monitor are switched off.
 */
#pragma once
#include "core/harvest/harvest.h"
#include "git/name.h"
#include "workspace/harvest/harvest.h"
#include <limits.h>

/* A harvest in progress. */
struct harvest_job {
    struct worktree *worktree;
    struct runtime *runtime;
    const struct harvest_bounds *bounds;
    struct harvest_limits limits;
    char quarantine[PATH_MAX];
    char tip[OID_MAX];
    char snapshot[OID_MAX];
    struct changes changes;
    uint64_t n_other_commits;
    int upper; /* directory with what was changed, of all layers */
};

enum inside_part {
    INSIDE_COMMITS, /* what the run committed */
    INSIDE_ALL,     /* and what it did not: committed first */
};

/* Sets tip, snapshot and n_other_commits; their objects are in the quarantine afterwards. */
int inside_take(struct harvest_job *job, enum inside_part part, struct carrel_error *err);
