/* all.h - destroying living sandboxes: some by name, or all of them. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

struct buf;
struct carrel_error;

/*
 * Destroys the sandboxes that the words name, in parallel. A keeper that does not answer is an
 * error, or is killed with its sandbox where `is_force`. `summary` says what became of their
 * workspaces. Continues after a failure: `failed` is called for each, the first is returned.
 */
struct client_end {
    const char *const *words;
    size_t n;
    bool is_force;
    struct buf *summary;
    void (*failed)(const char *word, const struct carrel_error *err);
};
int client_end(const struct client_end *end, struct carrel_error *err);

/* All of this user's. Continues after a failure and returns the first. */
int client_end_all(bool is_force, struct carrel_error *err);
