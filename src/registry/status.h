/* status.h - the file with the state of an entry; its lock says that the entry is alive. */
#pragma once
#include "registry/registry.h"

#define STATUS_PATH_MAX (sizeof("status/") + REGISTRY_WORD_MAX)

/* "status/ID" */
const char *status_path(const char *id, char path[static STATUS_PATH_MAX]);

/* What the file has: the entry's own facts beside what changes. */
struct status_facts {
    uint64_t number;
    uint64_t began_ns;
    char name[REGISTRY_WORD_MAX + 1];
    struct registry_status status;
};

int status_write(int fd, const struct status_facts *facts);

/* -EBADMSG: not one of ours, or not yet written. */
int status_read(int fd, struct status_facts *facts);

/*
 * Makes the file of `id` and locks it. It gets its name when it is locked and complete, so a
 * living entry never looks dead. Under the registry's lock. Returns the owner's descriptor.
 */
int status_make(int top, const char *id, const struct status_facts *facts);

/* Opens it for reading. -ENOENT: no such entry. */
int status_open(int top, const char *id);

/* Whether it is locked. Not to be asked of the owner's descriptor, whose lock it would be. */
bool status_is_locked(int fd);
