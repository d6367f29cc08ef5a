/*
 * aside.h - work in a thread of its own, while the caller waits.
 *
 * The umask belongs to all threads of a process that share it. The library must not change the
 * caller's, not even for a moment: another thread may create a file then.
 */
#pragma once
#include <sys/types.h>

struct carrel_error;

/*
 * Runs `work` in a thread that has its own umask and working directory; threads that it starts
 * share them. All signals are blocked in it. Returns what `work` returns.
 */
int aside_run(
        mode_t umask, int (*work)(void *context), void *context, struct carrel_error *err);
