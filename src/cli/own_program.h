/* own_program.h - where carrel's executable is. */
#pragma once
#include <stddef.h>

/* `path`, or NULL when it was replaced meanwhile, or cannot be reached. */
const char *own_program(char *path, size_t size);
