/*
 * expiry.h - what is made once for many workspaces, and goes when nobody used it for long.
 *
 *   <state>/layers/<key>/             what a setup line made
 *   <state>/cuts/<repo>/<commit>/     a commit without its history
 *   <state>/folders/<key>/.git/       snapshots of a folder without git
 *
 * Each is a directory whose time of change is that of its last use. Who uses it says so under a
 * shared flock on it; who removes it holds the lock alone, so that what is looked at is still
 * true when the name goes. What a workspace names stays, however old.
 */
#pragma once
#include <stdint.h>

struct carrel_error;

/* It is used now. -ENOENT: there is none (any more), make it. */
int cached_use(int parent, const char *name);

/* Removes what nobody used for `max_age_s` and no workspace names, and what crashes left of
 * it. Returns how many. */
int expiry_sweep(const char *state, uint64_t max_age_s, struct carrel_error *err);
