/* inspect.h - is a run's commit one that may wait in the quarantine? */
#pragma once
#include "git/git.h"
#include "workspace/harvest/harvest.h"

struct carrel_error;

/*
 * Looks at `tip` over `base` through `git`, which sees all objects. It must be a commit, with
 * everything it reaches; commits and changed paths must be within the limits, and the paths
 * such as may stand in a tree; submodules are new only where that is allowed. -EBADMSG, -EFBIG.
 */
int inspect(const struct git *git, const char *tip, const char *base,
        const struct harvest_limits *limits, struct carrel_error *err);

/* Time and memory of a git process that reads what a run made. */
struct git_io inspect_bounds(const struct harvest_limits *limits);

/*
 * What it means that such a process ended with `r`, a status or a negative errno: if it
 * complained or was killed (by a limit, or by what it read) that is -EBADMSG. `what` goes
 * before its words.
 */
int inspect_refused(int r, const char *what, struct carrel_error *err);
