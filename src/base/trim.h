/*
 * trim.h - memory that a process gives back while it only waits.
 *
 * There may be hundreds of keepers and inits, and each began as a copy of a process that had
 * much to do. Trimming does not change what a process can do later: pages come back as zeroes
 * when they are touched.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>

#define TRIM_AFTER_MS 500 /* of idleness, before trimming pays */

/*
 * Calls `call` on a newly mapped stack, so that it, or a process that it forks, can unmap the
 * stack that exec made: trim_leave_stack(). Once, and only in a static program without threads;
 * otherwise, and without memory, `call` runs on the caller's stack.
 */
int trim_call(int (*call)(void *arg), void *arg);

/*
 * Inside trim_call(), which must not return afterwards: unmaps the stack of exec, and with it
 * the arguments and the environment of the process, except the array `environ` itself.
 */
void trim_leave_stack(void);

/* Whether arguments and environment are still where exec put them. */
bool trim_has_stack(void);

/* Gives back free memory of the heap and the stack below the caller, where calls were deeper.
 */
void trim_memory(void);

/* The same in our own, static program only: a program that uses the library owns its heap. */
void trim_program(void);

/* Gives back `stack` below the caller; nothing if the caller runs on another stack. */
void trim_own_stack(char *stack, size_t size);

/*
 * Continues in `next`, which must not return, on `stack`, and unmaps the previous stack and the
 * heap: nothing on them may be used afterwards, nor malloc(), nor the arguments and the
 * environment of the process. Only in a static program without threads, where nothing else has
 * its memory there; otherwise it just calls `next`.
 */
_Noreturn void trim_move_stack(char *stack, size_t size, void (*next)(void));
