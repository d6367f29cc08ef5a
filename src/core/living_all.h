/* living_all.h - ending sandboxes that stay: one by its name, or all of them. */
#pragma once
#include <stdbool.h>

struct buf;
struct carrel_error;

/*
 * Ends the one that `word` means. One whose keeper does not answer is an error, or killed with
 * it where `is_force`. `summary` gets what became of its workspace.
 */
int living_end(const char *word, bool is_force, struct buf *summary, struct carrel_error *err);

/* All of this user's. Goes on after a failure and returns the first. */
int living_end_all(bool is_force, struct carrel_error *err);
