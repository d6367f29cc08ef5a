/* protection.h - the names of a sandbox's protections. */
#pragma once
#include <stddef.h>
#include <stdint.h>

struct carrel_error;

/* One bit each, so that a set is a number. The table in protection.c describes each one. */
enum protection {
    PROTECT_USERNS,
    PROTECT_MOUNTNS,
    PROTECT_PIDNS,
    PROTECT_NETNS,
    PROTECT_IPCNS,
    PROTECT_UTSNS,
    PROTECT_CGROUPNS,
    PROTECT_IDMAP,
    PROTECT_ROOTFS,
    PROTECT_PROC,
    PROTECT_DEV,
    PROTECT_NO_NEW_PRIVS,
    PROTECT_CAPABILITIES,
    PROTECT_SECCOMP,
    PROTECT_LANDLOCK,
    PROTECT_NO_NESTING,
    PROTECT_RLIMITS,
    PROTECT_MEMORY,
    PROTECT_PIDS,
    PROTECT_CPU,
    PROTECT_DISK,
    PROTECT_SESSION,
    PROTECT_ENVIRONMENT,
    PROTECT_DESCRIPTORS,
    PROTECT_COUNT
};

#define PROTECT_BIT(p) (UINT64_C(1) << (p))

const char *protection_name(enum protection p);    /* "seccomp" */
const char *protection_meaning(enum protection p); /* one line for people */

/* Reads "seccomp,landlock" into a set. An unknown name is an error that lists the known ones.
 */
int protection_parse(const char *text, uint64_t *set, struct carrel_error *err);
