/* signals.h - signal settings that a child must not inherit. */
#pragma once

/*
 * Sets every signal to its default action, those too that the C library keeps for itself and
 * that a caller may have had ignored. Allocates nothing: safe between clone and exec.
 */
void signals_reset(void);
