/*
 * traced.h - a runtime that passes every call on to another one and writes a line for each: the
 * operation, its arguments in short, its result and the microseconds it took.
 *
 *     start 'sh' '-c' 'exit 7' -> process 1 = 0 1234us
 *
 * It has the name and all that the other one has; an operation that the other one lacks, it
 * lacks too. For tests and for looking at what core asks of an adapter.
 */
#pragma once

struct runtime;

/*
 * The lines go to `fd`, one write each; a line that cannot be written is lost. `inner` and `fd`
 * must outlive it, and it must outlive its sandboxes. NULL: no memory.
 */
struct runtime *runtime_traced(struct runtime *inner, int fd);
void runtime_traced_free(struct runtime *rt); /* NULL is fine */
