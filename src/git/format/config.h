/*
 * config.h - which of the user's git settings a run gets, and how they are written.
 *
 * Pure. A setting that is not in the table in config.c is left out: configuration names
 * programs, servers and passwords, and an unknown key must not reach a run.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>

struct buf;

struct config_terms {
    bool is_sha256;
    const char *attributes_file; /* core.attributesFile as the run sees it; NULL: none */
};

/*
 * Adds a configuration file for a private git dir, made of our own settings and of `list`: the
 * user's `git config --list -z` (NULL and 0: nothing).
 */
void config_write(
        const struct config_terms *terms, const char *list, size_t len, struct buf *out);

/*
 * Adds one setting. `sub` may be NULL; without a `value` (NULL) git reads true. A value of any
 * bytes is read back unchanged. A `sub` with a newline cannot be written: false.
 */
bool config_add(struct buf *out, const char *section, const char *sub, const char *name,
        const char *value);

/* The last value of `key` in such a list; NULL: none. It points into the list. */
const char *config_find(const char *list, size_t len, const char *key);
