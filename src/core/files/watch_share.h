/*
 * watch_share.h - how many directories one watch of a tree takes.
 *
 * A program in the sandbox decides how many directories there are; the kernel counts the
 * watches for the caller's user, who may need some elsewhere. So each watch of a tree gets a
 * share of what the user may have: a quarter, or half as much as the largest share that another
 * one leaves. All together have no more than a half.
 */
#pragma once
#include <stddef.h>

struct carrel_error;

/* Returns a descriptor, which holds the share until it is closed; *most is its size. */
int watch_share_take(size_t *most, struct carrel_error *err);
