/*
 * expiry.h - caches that many workspaces share, whose entries expire when they are not used.
 *
 *   <state>/setups/<key>/                     what a setup command made
 *   <state>/cuts/<repository>/<commit>/       a commit without its history
 *   <state>/folders/<key>/                    snapshots of a folder without git
 *
 * Each is a store, see base/store.h. The modification time of an entry's directory is that of
 * its last use. An entry that a workspace names does not expire.
 */
#pragma once
#include <stdint.h>

struct carrel_error;
struct store;

/* Records that the entry is used now. Negative errno; -ENOENT: there is none, make it. */
int expiry_use(const struct store *store, const char *name);

/*
 * Removes what was not used for `max_age_s` and no workspace names, and what crashes left.
 * Returns how many.
 */
int expiry_sweep(const char *state, uint64_t max_age_s, struct carrel_error *err);
