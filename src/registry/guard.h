/* guard.h - the lock under which the registry is changed: one change after the other. */
#pragma once
#include "base/auto.h"
#include <stdint.h>

struct carrel_error;

/*
 * Waits for the lock. Each call opens the file again: two processes that share an open file
 * description would both get the lock. It is held briefly, never during another wait.
 */
int guard_take(int top, struct carrel_error *err);
void guard_release(int guard); /* negative is fine */
DEFINE_AUTO(int, guard_release)

/* The number of the next entry, which is then used up. */
int guard_next_number(int guard, uint64_t *number, struct carrel_error *err);

/*
 * A note that an owner died, beside the number. guard_take_note() removes it; 1: it was
 * there, or the file is new. Negative errno.
 */
int guard_note_death(int top);
int guard_take_note(int guard);
