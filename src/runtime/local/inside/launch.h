/* launch.h - starts a program from init. */
#pragma once
#include <stdbool.h>
#include <sys/types.h>

struct carrel_error;
struct plan;

struct launch {
    const struct plan *plan;
    uid_t uid; /* the user of the program */
    gid_t gid;
    int fds[3];
    bool has_tty;
    const char *cwd;
    char **argv;
    char **env;
    char *stack_end; /* of LAUNCH_STACK bytes, for the child until it is the program */
};
#define LAUNCH_STACK (64U << 10)

/* As spawn_program(), after dropping everything that init still has. Fills in the rest of base.
 */
pid_t launch_process(const struct launch *launch, struct carrel_error *err);
