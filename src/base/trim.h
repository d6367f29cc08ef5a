/*
 * trim.h - memory that a process gives back when it has nothing to do but wait.
 *
 * There may be hundreds of such processes, and each began as a copy of one that had a lot to
 * do. None of this changes what a process can do later: what it needs again comes back, as
 * zeroes, when it is touched.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>

#define TRIM_AFTER_MS 500 /* with nothing to do, before it is worth the while */

/*
 * Calls `call` on a stack of its own, so that it, or a copy of this process that it makes, can
 * give up the one that exec made: trim_leave_stack(). Once, and only in a static program
 * without threads; elsewhere, and without memory, it just calls.
 */
int trim_call(int (*call)(void *arg), void *arg);

/*
 * Inside trim_call(), which must not return then: the stack outside goes, and with it the
 * arguments and the environment of the process, but for `environ` itself. So do the tables that
 * only commands read: cli/layout.ld says which.
 */
void trim_leave_stack(void);

/* Whether arguments and environment lie where exec put them. */
bool trim_has_stack(void);

/* Free memory of the heap, and the stack below the caller: its calls were deeper before. */
void trim_memory(void);

/* The same in our own, static program. Whoever uses the library has a heap of its own. */
void trim_program(void);

/* All of a stack of our own below the caller; nothing if it runs on another one. */
void trim_own_stack(char *stack, size_t size);

/*
 * Goes on in `next`, which must not return, on `stack`, and gives up the stack so far, the
 * tables of commands and the heap for good: nothing may be used afterwards that lies there, nor
 * malloc() be called, nor the arguments and the environment of the process looked at. Only in a
 * static program without threads, where nothing else can have its memory there; elsewhere just
 * `next` is called.
 */
_Noreturn void trim_move_stack(char *stack, size_t size, void (*next)(void));
