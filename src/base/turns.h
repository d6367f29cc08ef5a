/*
 * turns.h - how soon a thread gets the processor where others want it, too.
 *
 * It asks for short turns (since Linux 6.12): they come sooner, and are not more than others
 * get. So this needs no privilege, and whoever makes the thread work does not gain by it.
 */
#pragma once
#include <stdint.h>

/* What the thread starts meanwhile has them, too. Returns what to restore. */
uint64_t turns_hurry(void);
void turns_restore(uint64_t before);

/* For good, and for the thread alone: what it starts has ordinary ones. */
void turns_hurry_alone(void);
