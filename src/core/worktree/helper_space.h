/*
 * helper_space.h - a directory of carrel that overlays write to: upper and work for a tree,
 * gitupper and gitwork for a git dir, and an empty one that can lie below.
 */
#pragma once
#include "runtime/runtime.h"

struct carrel_error;

/* Makes it, below `dir`. */
int helper_space_make(int dir, const char *name, struct carrel_error *err);

/* An overlay of the directories `lower`, topmost first, that writes to <space>/upper. */
struct sandbox_overlay helper_space_overlay(const char *const *lower, const char *space);

/* The same as a mount of a sandbox. */
struct sandbox_mount helper_space_mount(
        const struct sandbox_overlay *overlay, const char *target);
