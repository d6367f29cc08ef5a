/*
 * ignore.h - gitignore(5): whether a path is ignored.
 *
 * Pure: patterns are text with the directory of their file. The answers equal those of `git
 * check-ignore --no-index`; a test compares the two over random patterns and paths.
 *
 * A run may have written the patterns, and made them slow. So the work is bounded: at most
 * IGNORE_MAX_BYTES of patterns at a time, and a number of steps that grows with the queries.
 */
#pragma once
#include "base/auto.h"
#include <stdbool.h>
#include <stddef.h>

struct carrel_error;
struct ignore;

#define IGNORE_MAX_BYTES (16U << 20)

int ignore_new(struct ignore **out, struct carrel_error *err);
void ignore_free(struct ignore *ignore);
DEFINE_AUTO(struct ignore *, ignore_free)

/*
 * Adds the patterns of a file in the directory `dir` ("" for the root, "a/b"). Later files
 * override earlier ones, so add info/exclude first and then from the root downward.
 * ignore_pop() removes the newest file again when a walk leaves its directory. -EFBIG: more
 * than IGNORE_MAX_BYTES.
 */
int ignore_push(struct ignore *ignore, const char *dir, const char *text, size_t len,
        struct carrel_error *err);
void ignore_pop(struct ignore *ignore);

/*
 * `path` is relative to the root. Tests this path alone: its parents are known not to be
 * ignored. Also false if the steps are used up: see ignore_is_spent().
 */
bool ignore_matches(struct ignore *ignore, const char *path, bool is_dir);

/* The steps were used up: answers since then are unreliable. */
bool ignore_is_spent(const struct ignore *ignore);
