/* environment.h - the variables by which orchestrators configure sandboxes. */
#pragma once
#include "policy/join.h"

/* The value of NAME in a list of NAME=VALUE; NULL: not set. */
const char *environment_get(const char *const *environment, const char *name);

/* Whether "NAME=VALUE" is one of the variables that a policy is made of. */
bool environment_is_read(const char *variable);

/* Overrides values by the variables. An invalid variable is an error, never a default. */
int environment_join(
        struct policy *policy, const char *const *environment, struct carrel_error *err);
