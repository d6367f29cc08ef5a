/* environment.h - the variables a program starts with: few, and none of the caller's. */
#pragma once
#include "base/auto.h"
#include <stdbool.h>

struct carrel_error;
struct sandbox;

/* A minimal environment for `box`, then `added` ("K=V", a later one replaces an earlier one).
 */
int environment_make(const struct sandbox *box, const char *const *added, bool has_tty,
        char ***out, struct carrel_error *err);
void environment_free(char **env);
DEFINE_AUTO(char **, environment_free)
