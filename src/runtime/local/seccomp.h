/* seccomp.h - which system calls a program in the sandbox may make. */
#pragma once
#include <stddef.h>

struct carrel_error;
struct sock_filter;

/*
 * Puts the filter of seccomp_rules.h on the calling thread, for good; everything it starts
 * inherits it. One system call on prepared bytes: allocates nothing, safe between clone and
 * exec. no_new_privs must be set before, or the kernel refuses (-EACCES).
 */
int seccomp_install(struct carrel_error *err);

/*
 * The same in two parts, for an init that starts many programs: the first, on init itself, is
 * what it and they have in common; the second takes from a program what only init may. Together
 * they are the filter above, at a fraction of its price for each program.
 */
int seccomp_install_init(struct carrel_error *err);
int seccomp_install_rest(struct carrel_error *err);

/*
 * Beside either of them, where somebody watches how much disk is used: takes the calls that
 * take space at once, however much it is (-EOPNOTSUPP, as a file system says that cannot). What
 * is written takes its time, and can be seen.
 */
int seccomp_install_watched(struct carrel_error *err);

/* The prepared programs, for tests: the whole filter, its two parts, and what comes beside. */
enum seccomp_part { SECCOMP_WHOLE, SECCOMP_INIT, SECCOMP_REST, SECCOMP_WATCHED };
const struct sock_filter *seccomp_program_code(enum seccomp_part part);
size_t seccomp_program_len(enum seccomp_part part);
