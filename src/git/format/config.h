/*
 * config.h - which of the user's git configuration a run gets, and how it is written.
 *
 * Pure. What is not on the table in config.c is left out: configuration names programs, servers
 * and passwords, and a key that nobody thought about must not reach a run.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>

struct buf;

struct config_terms {
    bool is_sha256;
    const char *attributes_file; /* value of core.attributesFile inside; NULL: none */
};

/* Adds a configuration file for a private git dir, made of our own settings and of `list`: what
 * `git config --list -z` printed for the user (NULL and 0: nothing). */
void config_write(
        const struct config_terms *terms, const char *list, size_t len, struct buf *out);

/* Adds one setting. `sub` may be NULL; a NULL `value` writes none, which git takes for true.
 * Values of any bytes come back as they were. A `sub` with a newline cannot be written: false.
 */
bool config_add(struct buf *out, const char *section, const char *sub, const char *name,
        const char *value);

/* The last value of `key` in such a list; NULL: none. It points into the list. */
const char *config_find(const char *list, size_t len, const char *key);
