/* hint.h - why a program that is on the host is not in the sandbox. */
#pragma once

struct carrel_error;

/*
 * Called when `name` was not found in the sandbox. Where the host has it, the message says so
 * and how to expose it. Returns err->code.
 */
int hint_missing_program(const char *name, struct carrel_error *err);
