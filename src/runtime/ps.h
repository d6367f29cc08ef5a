/* ps.h - reads processes from the host's /proc. */
#pragma once
#include <stddef.h>
#include <sys/types.h>

struct carrel_error;
struct sandbox;
struct sandbox_process;

/*
 * Fills in everything except `process`. Ids are the host's, and so is `inner_parent`;
 * `inner_pid` is the pid in the namespace below ours, if there is one. -ESRCH: it has exited.
 */
int ps_read(pid_t pid, struct sandbox_process *out);

/*
 * All that the adapter's `pids` lists, for its `ps`: the same of each, but `inner_parent` is a
 * pid of the sandbox; 0: of a process that is not listed, which is the runtime's. Returns how
 * many.
 */
int ps_list(
        struct sandbox *box, struct sandbox_process *out, size_t max, struct carrel_error *err);
