/*
 * ignore.h - gitignore(5): does a path count as untracked junk?
 *
 * Pure: patterns come as text with the directory they stand in. Gives the same answers as
 * `git check-ignore --no-index`; a test compares the two over random patterns and paths.
 *
 * The patterns may be a run's own, made to be slow. So the work is bounded: at most
 * IGNORE_MAX_BYTES of patterns at a time, and a number of steps that grows with the questions.
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

/* Adds the patterns of a file that stands in directory `dir` ("" for the root, "a/b"); later
 * files win over earlier ones, so add info/exclude first and then from the root downward.
 * ignore_pop() takes the newest file away again when a walk leaves its directory. -EFBIG: more
 * than IGNORE_MAX_BYTES. */
int ignore_push(struct ignore *ignore, const char *dir, const char *text, size_t len,
        struct carrel_error *err);
void ignore_pop(struct ignore *ignore);

/* `path` relative to the root; asks about this path alone, its parents are known not to be
 * ignored. False as well when the steps are used up: then ignore_is_spent(). */
bool ignore_matches(struct ignore *ignore, const char *path, bool is_dir);

/* Some answer was cut short, so what was answered since cannot be trusted. */
bool ignore_is_spent(const struct ignore *ignore);
