/* ps.h - what the host's /proc says about one process. */
#pragma once
#include <sys/types.h>

struct sandbox_process;

/*
 * Fills in everything but `process`. Ids are the host's, and so is `inner_parent`; `inner_pid`
 * is the number in the namespace below ours, where there is one. -ESRCH: it has ended.
 */
int ps_read(pid_t pid, struct sandbox_process *out);
