/* launch.h - from init to a running program. */
#pragma once
#include <stdbool.h>
#include <sys/types.h>

struct carrel_error;
struct plan;

struct launch {
    const struct plan *plan;
    uid_t uid; /* whom the program runs as */
    gid_t gid;
    int fds[3];
    bool has_tty;
    const char *cwd;
    char **argv;
    char **env;
    char *stack_end; /* of LAUNCH_STACK bytes, for the child until it is the program */
};
#define LAUNCH_STACK (64U << 10)

/*
 * Starts a program with everything dropped that init still has. Returns its pid, or a negative
 * errno as sandbox_start() documents it. Allocates nothing.
 */
pid_t launch_process(const struct launch *launch, struct carrel_error *err);
