/* calls.h - names of system calls and errors, and which failures are acceptable. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

/* "openat"; "call_123" for one that is not in the table. Valid until the next call. */
const char *call_name(long number);

/* With the arguments that carrel gives it. */
bool call_cannot_fail(long number);

/* Calls that confine: a failure must be a refusal even if no difference is visible. */
bool call_must_refuse(long number, int error);

/* "EPERM" -> EPERM; 0: unknown. */
int error_number(const char *name, size_t len);
