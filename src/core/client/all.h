/* all.h - ending sandboxes that stay: some by their names, or all of them. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

struct buf;
struct carrel_error;

/*
 * Ends those that the words mean, beside each other. One whose keeper does not answer is an
 * error, or killed with it where `is_force`. `summary` gets what became of their workspaces.
 * Goes on after a failure; `failed` hears of each, the first is returned.
 */
struct client_end {
    const char *const *words;
    size_t n;
    bool is_force;
    struct buf *summary;
    void (*failed)(const char *word, const struct carrel_error *err);
};
int client_end(const struct client_end *end, struct carrel_error *err);

/* All of this user's. Goes on after a failure and returns the first. */
int client_end_all(bool is_force, struct carrel_error *err);
