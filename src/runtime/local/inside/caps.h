/* caps.h - capabilities: what init keeps, and that programs have none. */
#pragma once
#include <stdint.h>

struct carrel_error;

/* For init: an empty bounding set. Changes nothing else, so it may come before caps_keep(). */
int caps_bound(struct carrel_error *err);

/*
 * For init, after caps_bound(): no inheritable or ambient set, no special meaning of uid 0,
 * no_new_privs; of the permitted and effective sets only `keep` (bits of capabilities below 32)
 * stays.
 */
int caps_keep(uint32_t keep, struct carrel_error *err);

/* Makes everything permitted effective again, after a change of the file system uid. */
int caps_raise(struct carrel_error *err);

/* For a program, before exec: nothing at all. Returns 0 or a negative errno. */
int caps_drop_all(void);
