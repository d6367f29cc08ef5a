/* confine.h - drops every right that a parser of untrusted bytes does not need. */
#pragma once
#include <stdint.h>

struct carrel_error;

/*
 * For a child that is about to parse: no new privileges, no capability, no further process, no
 * network, no signal to others, bounded memory and open files, no descriptor except those in
 * `keep`; files can be created and removed below `dir` only (-1: nowhere, and nothing can be
 * opened). This cannot be undone. If the kernel's Landlock does not cover links (before 5.19),
 * only the table of system calls enforces the restriction to `dir`.
 */
int confine_self(int dir, const int *keep, unsigned n_keep, uint64_t memory_bytes,
        struct carrel_error *err);
