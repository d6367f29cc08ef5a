/* launch.h - starts a program from init. */
#pragma once
#include "runtime/spawn.h"

struct rights;

struct launch {
    struct spawn base;
    const struct rights *rights;
    uid_t uid; /* the user of the program */
    gid_t gid;
};

/* As spawn_program(), after dropping everything that init still has. Fills in the rest of base.
 */
pid_t launch_process(struct launch *launch, struct carrel_error *err);
