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

/* The prepared program, for tests. */
const struct sock_filter *seccomp_program_code(void);
size_t seccomp_program_len(void);
