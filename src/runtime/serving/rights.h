/* rights.h - as which users a server and its programs act, and with which limits. */
#pragma once
#include "runtime/spawn.h"
#include <stdbool.h>
#include <sys/types.h>

#define RIGHTS_RLIMITS 10

struct rights {
    uid_t own_uid; /* the server's */
    gid_t own_gid;
    uid_t uid; /* of a program that asks for no other */
    gid_t gid;
    bool has_range; /* programs may have other users; else they have the server's own */
    struct spawn_rlimit rlimits[RIGHTS_RLIMITS]; /* of every program */
    size_t n_rlimits;
    const char *workspace; /* where relative paths of requests begin */
};
