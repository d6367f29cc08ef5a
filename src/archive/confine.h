/* confine.h - a process that reads hostile bytes gives away what it does not need. */
#pragma once
#include <stdint.h>

struct carrel_error;

/*
 * For a child that is about to parse: no new privileges, no capability, no further process, no
 * network, no signal to others, memory and open files bounded, no descriptor but those of
 * `keep`; files can be made and removed below `dir` only (-1: nowhere, and nothing can be
 * opened). There is no way back. Where the kernel has no Landlock that covers links (before
 * 5.19), the table of system calls is what is left of the last promise.
 */
int confine_self(int dir, const int *keep, unsigned n_keep, uint64_t memory_bytes,
        struct carrel_error *err);
