/* caps.h - capabilities: init keeps a few, programs have none. */
#pragma once
#include <stdint.h>

struct carrel_error;

/* For init: empties the bounding set. Changes nothing else, so it may precede caps_keep(). */
int caps_bound(struct carrel_error *err);

/*
 * For init, after caps_bound(): no inheritable or ambient set, no special meaning of uid 0,
 * no_new_privs; of the permitted and effective sets only `keep` (bits of capabilities below 32)
 * stays.
 */
int caps_keep(uint32_t keep, struct carrel_error *err);

/* Makes everything permitted effective again, after a change of the file system uid. */
int caps_raise(struct carrel_error *err);

/* For a program, before exec: drops everything. Returns 0 or a negative errno. */
int caps_drop_all(void);
