/* seccomp.h - which system calls a program in the sandbox may make. */
#pragma once
#include <stddef.h>

struct carrel_error;
struct sock_filter;

/*
 * Both install a part of the filter of seccomp_rules.h on the calling thread, permanently;
 * everything it starts inherits it. The first, on init itself, is common to init and its
 * programs; the second, on each program, removes what only init may do. So a program has the
 * whole filter, at a fraction of the cost.
 *
 * A system call on prepared bytes: allocates nothing, safe between clone and exec.
 * no_new_privs must be set before, or the kernel refuses (-EACCES). If the machine's room for
 * compiled filters is full, it is tried again for about a second; then -ENOSPC.
 *
 * At *listener calls wait for an answer (asked.h); the caller owns it. -1: not possible, and
 * these calls fail.
 */
int seccomp_install_init(int *listener, struct carrel_error *err);
int seccomp_install_rest(struct carrel_error *err);

/* The prepared programs, for tests. */
enum seccomp_part { SECCOMP_INIT, SECCOMP_REST };
const struct sock_filter *seccomp_program_code(enum seccomp_part part);
size_t seccomp_program_len(enum seccomp_part part);
