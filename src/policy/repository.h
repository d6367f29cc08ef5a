/*
 * repository.h - applies a repository's file, which may only tighten.
 *
 * An agent can write that file, and its next run would use it. So each key is compared with the
 * policy without the file, by the rule in the table of keys; keys that the file lacks stay
 * unchanged.
 */
#pragma once
#include "policy/join.h"

/* policy->values are those without the file, policy->maxima those of all files. */
int repository_join(
        struct policy *policy, const struct document_values *given, struct carrel_error *err);
