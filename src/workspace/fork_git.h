/* fork_git.h - the private git dir of a workspace that is a fork of another one. */
#pragma once

struct carrel_error;
struct lower;

/*
 * Fills `dir`, the empty gitupper/ of the fork, whose git dir lies on all of `below`: its
 * branch is where the other workspace had its own, or at `base`, and is checked out if that one
 * was. What is read here was written by a run.
 */
int fork_git_fill(const struct lower *below, const char *old_branch, const char *branch,
        const char *base, int dir, struct carrel_error *err);
