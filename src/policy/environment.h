/* environment.h - the variables by which orchestrators have always configured sandboxes. */
#pragma once
#include "policy/join.h"

/* The value of NAME in a list of NAME=VALUE; NULL: not there. */
const char *environment_get(const char *const *environment, const char *name);

/* Puts what the variables say over the values. An invalid one is an error, never a default. */
int environment_join(
        struct policy *policy, const char *const *environment, struct carrel_error *err);
