/* ps.h - reads one process from the host's /proc. */
#pragma once
#include <sys/types.h>

struct sandbox_process;

/*
 * Fills in everything except `process`. Ids are the host's, and so is `inner_parent`;
 * `inner_pid` is the pid in the namespace below ours, if there is one. -ESRCH: it has exited.
 */
int ps_read(pid_t pid, struct sandbox_process *out);
