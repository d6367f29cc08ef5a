/*
 * monitor.h - what git need not look at: the answer to its question to a file system monitor.
 *
 * git asks every tracked file whether it changed, and through an overlay each first question is
 * dear. But the overlay's upper directory is the list of changes: a directory that has no
 * counterpart there is as it was in the pristine tree. So git asks us (githooks(5),
 * fsmonitor-watchman, version 2), and we name what it must look at itself.
 *
 * Runs in the sandbox, as a program of the run: it guards nothing, it only must not be wrong.
 * It keeps no record of its own. A path is left out of the answer only when
 *
 *   - it lies below a directory that is not in the upper one, and the index says of it byte
 *     for byte what the index of the pristine tree says; or
 *   - lstat(2) gives what the index says, by git's own rule, and in nanoseconds.
 *
 * A directory that a setup layer has, too, counts as changed.
 *
 * Whatever does not fit this picture (another work tree, another index, an index of another
 * form) is answered with "look at everything".
 */
#pragma once
#include <stdbool.h>

struct buf;

/* Beside the index in the private git dir: a copy of the one that the run began with. */
#define MONITOR_PRISTINE "index.pristine"

/* What is looked at; descriptors are not owned. */
struct monitor {
    int tree;          /* the work tree */
    int upper;         /* the upper directory of its overlay */
    int layer;         /* of a setup, over the pristine tree; -1: none */
    int git;           /* the git dir */
    const char *token; /* that git sent: of the index it has read */
};

/*
 * Appends the paths, each ended by NUL. False: the answer must be "look at everything"; what
 * was appended does not count then.
 */
bool monitor_list(const struct monitor *monitor, struct buf *out);

/*
 * Whether the git command with these arguments (each ended by NUL, as in /proc/PID/cmdline)
 * does well with an answer. git 2.32 to 2.42 take a file that they need not look at for a
 * deleted one where they compare a commit with the work tree: git diff HEAD, for one. So only
 * commands that never do so get an answer, and others look at everything, as without us.
 */
bool monitor_helps(const char *args, unsigned long len);
