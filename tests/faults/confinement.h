/* confinement.h - the confinement of a process, seen from outside. */
#pragma once
#include <sys/types.h>

/*
 * One line for each fact: ids, capabilities, namespaces, cgroups and their limits, mounts,
 * descriptors, resource limits ... without the numbers that differ from run to run, so that two
 * equal sandboxes have the same text. The caller frees it; NULL: out of memory.
 */
char *confinement_describe(pid_t pid);
