/*
 * attack.h - how an attack program reports what it tried and the result.
 *
 * Each program has the modes `attack` (tries what must fail in a sandbox) and `control` (does
 * the allowed form of the same thing). Some have more, for the part that stays on the host.
 * Every attempt prints one line, which the driver (tests/escape/run) reads:
 *
 *     SUCCEEDED <what> <detail>   the attack succeeded
 *     REFUSED <what> <reason>     it failed, and for a reason that counts as a refusal
 *     INVISIBLE <what>            its target does not exist here
 *     OTHER <what> <reason>       it failed, but not for a stated reason: proves nothing
 *     WORKS <what>, FAILS <what> <reason>     in `control` mode
 *
 * The program exits with 1 if anything succeeded (or failed, for `control`), else 2 if anything
 * failed for another reason, else 0.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))

/* A list of errno values; 0 ends it. */
#define REASONS(...) ((const int[]){ __VA_ARGS__, 0 })

/* The answers of the system call filter. */
#define BY_FILTER REASONS(EPERM, ENOSYS)

/* `args` are the words after the mode, NULL-terminated. */
typedef void attack_fn(char **args);

struct attack_mode {
    const char *name;
    attack_fn *fn;
};

/* Runs the mode that argv[1] names; returns the exit status for main(). NULL ends the table. */
int attack_main(int argc, char **argv, const struct attack_mode *modes);

void succeeded(const char *what, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void refused(const char *what, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void invisible(const char *what);

/* SUCCEEDED for result >= 0, else what errno means: REFUSED if it is among `reasons`. */
void attempt(const char *what, long result, const int *reasons);

/* The same for a failure that was seen earlier. */
void failed(const char *what, int why, const int *reasons);

/* The result of one control; errno is shown if it is not fine. */
void works(const char *what, bool is_fine);

/* The call under test. Returns >= 0 or sets errno, as system calls do. */
typedef long attempt_fn(const void *arg);

/*
 * Makes the call in a child, where a kill by the filter is harmless and new namespaces end
 * again. `reached` (or NULL) lists errors that count as success: the call was made in a
 * harmless form, and only its arguments were refused.
 */
void attempt_in_child(const char *what, attempt_fn *fn, const void *arg, const int *reached,
        const int *reasons);

/* One message and exit status 99: the test itself could not be done. */
void cannot(const char *fmt, ...) __attribute__((format(printf, 1, 2), noreturn));

bool is_among(int why, const int *reasons);
const char *errno_name(int why);

/* A number from a word on the command line; cannot() if it is none. */
unsigned long number(const char *word);

/* Prints "READY <fmt>" for the driver and flushes it. */
void ready(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
