/* launch.h - the way of one program from fork to exec. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <sys/resource.h>
#include <sys/types.h>

struct launch_rlimit {
    __rlimit_resource_t resource;
    rlim_t value; /* soft and hard; a lower hard limit that is already there stays */
};

struct launch {
    int payload;    /* argv, environment and working directory ("": the workspace) */
    int streams[3]; /* what becomes 0, 1 and 2; all above 2 */
    bool has_tty;   /* the streams are a terminal that becomes the session's */
    int workspace;  /* directory to start in */
    pid_t parent;   /* who dies takes the program along */
    const struct launch_rlimit *rlimits;
    size_t n_rlimits;
};

/*
 * Runs in the new process: becomes the program. If that fails, writes a struct carrel_error to
 * `status`, a close-on-exec pipe, and ends; end of file there means that the program runs.
 * Expects every signal blocked and at its default, 0 to 2 open, and a single thread.
 */
_Noreturn void launch_exec(const struct launch *launch, int status);
