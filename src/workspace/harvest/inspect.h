/* inspect.h - decides whether a run's commit may be kept in the quarantine. */
#pragma once
#include "git/git.h"
#include "workspace/harvest/harvest.h"

struct carrel_error;

/*
 * Checks `tip` over `base` through `git`, which sees all objects. It must be a commit, with
 * everything it reaches; commits and changed paths must be within the limits, and the paths
 * valid in a tree; new submodules only if allowed. -EBADMSG, -EFBIG.
 */
int inspect(const struct git *git, const char *tip, const char *base,
        const struct harvest_limits *limits, struct carrel_error *err);

/* Time and memory limits of a git process that reads what a run made. */
struct git_io inspect_bounds(const struct harvest_limits *limits);

/*
 * Translates the result `r` of such a process, a status or a negative errno: if it complained
 * or was killed (by a limit, or by what it read), that is -EBADMSG. `what` precedes its
 * message.
 */
int inspect_refused(int r, const char *what, struct carrel_error *err);
