/* signals.h - signal settings that a child must not inherit, and its birth. */
#pragma once
#include <signal.h>

/*
 * Sets every signal to its default action, those too that the C library keeps for itself and
 * that a caller may have had ignored. Allocates nothing: safe between clone and exec.
 */
void signals_reset(void);

/*
 * Around a clone, for this thread: a handler of the caller's must not run in the copy, still
 * less in a child that has the same memory. errno stays as it is.
 */
void signals_block(sigset_t *before);
void signals_unblock(const sigset_t *before);
