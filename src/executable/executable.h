/*
 * executable.h - executes the program carrel afresh, for a part of carrel that needs a process.
 *
 * A caller of the library may have threads, memory and descriptors of its own. A part that
 * needs a process (a keeper, a parser of archives) is therefore a hidden command of the program
 * and has none of them: only the descriptors that it is given.
 */
#pragma once
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct carrel_error;

#define EXECUTABLE_OWN "/proc/self/exe" /* for a process that is carrel itself */
#define EXECUTABLE_FIRST_FD 3           /* the first descriptor that a part is given */

/* Defined in the program carrel alone, so that it executes itself; absent in libcarrel.so. */
extern const char executable_is_carrel[] __attribute__((weak, visibility("hidden")));

/*
 * The program that belongs to this code: itself, what CARREL_PROGRAM names, or the one beside
 * the library, in the bin directory of its prefix or in PATH. -ENOPKG: the message says where
 * it was looked for.
 */
int executable_find(char path[static PATH_MAX], struct carrel_error *err);

struct executable_part {
    const char *command; /* the hidden command */
    const char *cwd;     /* where to run it; NULL: where the caller is */
    const int *fds;      /* become EXECUTABLE_FIRST_FD and so on; all others are closed */
    size_t n_fds;        /* at most EXECUTABLE_MAX_FDS */
    char *const *env;    /* NULL: none */
    bool has_session;    /* it is not in the caller's session */
};
#define EXECUTABLE_MAX_FDS 160

/*
 * Starts it with /dev/null as its three streams, no signal blocked and every signal at its
 * default. The caller waits for *pid.
 */
int executable_start(const struct executable_part *part, pid_t *pid, struct carrel_error *err);

/* The same; returns a pidfd instead, by which the caller waits. */
int executable_hold(const struct executable_part *part, struct carrel_error *err);
