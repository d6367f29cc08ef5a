/*
 * repository.h - what a file that came with a repository may change: it may only tighten.
 *
 * An agent can write that file, and its next run would be under it. So each key is held
 * against the policy as it is without the file, by the rule in the table of keys; what it does
 * not mention stays as it is.
 */
#pragma once
#include "policy/join.h"

/* policy->values are those without the file, policy->maxima those of all files. */
int repository_join(struct policy *policy, const struct layer *layer, struct carrel_error *err);
