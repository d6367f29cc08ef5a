/* spawn.h - starts a program from the process that will reap it: init or a supervisor. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct carrel_error;

struct spawn_rlimit {
    int resource;
    uint64_t value; /* soft and hard; an existing lower hard limit is kept */
};

#define SPAWN_FDS 5

struct spawn {
    int fds[SPAWN_FDS]; /* become 0, 1, 2 and so on */
    size_t n_fds;
    bool has_tty;
    const struct spawn_rlimit *rlimits;
    size_t n_rlimits;
    const char *cwd; /* "": the caller's own */
    char **argv;
    char **env;
    char *stack_end; /* of SPAWN_STACK bytes, for the child until exec */
    /* Give up what the program must not have: with the limits set, and just before exec. */
    int (*drop)(struct spawn *spawn);
    int (*seal)(struct spawn *spawn, struct carrel_error *err); /* may be NULL */
};
#define SPAWN_STACK (64U << 10)

/*
 * Starts the program, in a session of its own and with no other descriptor open. Every signal
 * is blocked and at its default action. Returns its pid, or a negative errno as sandbox_start()
 * documents it. Allocates nothing.
 */
pid_t spawn_program(struct spawn *spawn, struct carrel_error *err);

/* Unlocks and sizes the terminal behind `master`. Returns the program's end. */
int spawn_terminal(int master, uint16_t rows, uint16_t cols, struct carrel_error *err);
