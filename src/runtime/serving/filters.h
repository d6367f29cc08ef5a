/*
 * filters.h - how many seccomp filters the sandbox's programs may add to ours.
 *
 * The kernel compiles each filter, up to about 30 KB, into room that all processes of the
 * machine share (net.core.bpf_jit_limit, 256 or 512 MB). A process may have eight of the
 * largest size. When the room is full, no process of the machine without privileges can install
 * a filter, so no sandbox can be made.
 */
#pragma once

/*
 * At a time. A filter counts for each thread that has it, so children that inherit one count
 * too. A thread that was granted one while others are counted is missed: there may be one more
 * for each thread.
 */
#define FILTERS_MOST 128

/*
 * Whether a program may install one more; `*granted` is 0 at first. -ENOMEM: no, which is the
 * kernel's answer to too many of them.
 */
int filters_grant(unsigned *granted);

/* Filters of all threads in this /proc beyond those that each program begins with, or -1. */
int filters_count(void);
