/* env_file.h - variables from a file. */
#pragma once
#include <stddef.h>

struct carrel_error;

#define ENV_FILE_MAX (1 << 20)
/* With as much of the variable as may be shown: its name, and the = if there is one. */
#define ENV_EXPECTED "'%s' is not NAME=VALUE with a NAME of letters, digits and _"

/*
 * Reads lines "NAME=VALUE"; blank lines and lines that begin with # are passed over; the value
 * is everything behind the first =, taken as it is. Calls `add` for each. Errors begin
 * "NAME:LINE:".
 */
int env_file_parse(const char *text, size_t len, const char *name,
        int (*add)(void *target, const char *entry, size_t len, struct carrel_error *err),
        void *target, struct carrel_error *err);
