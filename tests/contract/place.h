/*
 * place.h - a sandbox for tests, and the output of its programs.
 *
 * The files beside this one state what every runtime promises, and test it on each of them
 * through the port. What is not checked here is not the contract. A runtime may refuse what it
 * cannot do, with -ENOTSUP and its name; it may not do less under the same name.
 */
#pragma once
#include "base/buf.h"
#include "base/err.h"
#include "runtime/runtime.h"

/*
 * CONTRACT(sentence) is TEST(sentence), once for every runtime; `subject` names the current
 * one. Only this list names the runtimes; `traced` is local behind traced.h, and `wrapped` is
 * local inside the fake, which is a process otherwise.
 */
#define FOR_EACH_RUNTIME(X, sentence)                                                          \
    X(local, sentence)                                                                         \
    X(process, sentence)                                                                       \
    X(traced, sentence)                                                                        \
    X(wrapped, sentence)                                                                       \
    X(fake, sentence)

#define CONTRACT_FOR(name_, sentence)                                                          \
    static void name_##_##sentence(void)                                                       \
    {                                                                                          \
        place_begin(#name_);                                                                   \
        sentence();                                                                            \
        place_end();                                                                           \
    }                                                                                          \
    __attribute__((constructor)) static void register_##name_##_##sentence(void)               \
    {                                                                                          \
        static struct test test = { .name = #name_ ": " #sentence,                             \
            .run = name_##_##sentence };                                                       \
        test_register(&test);                                                                  \
    }
#define CONTRACT(sentence)                                                                     \
    static void sentence(void);                                                                \
    FOR_EACH_RUNTIME(CONTRACT_FOR, sentence)                                                   \
    static void sentence(void)

extern struct carrel_error err; /* every call's last argument */
extern struct runtime *subject;
extern const char *const plain_env[]; /* only a PATH */

/*
 * Gives the test a temporary directory of its own, as TMPDIR. Skips if the runtime is missing.
 */
void place_begin(const char *runtime);
/* Checks that the runtime left nothing in it. */
void place_end(void);

/* Limits that any machine can satisfy, none of them demanded. */
struct sandbox_spec plain_spec(void);
struct sandbox *make_sandbox(void);
int create(const struct sandbox_spec *spec, struct sandbox **out);

struct process_spec plain_process(const char *const *argv);
struct process start(struct sandbox *box, const struct process_spec *spec);
struct process start_shell(struct sandbox *box, const char *line);
int try_start(struct sandbox *box, const char *const *argv, const char *cwd);

/* Waits for the next event; a test that waits too long fails. */
struct sandbox_event await_event(struct sandbox *box);
bool is_readable(int fd); /* now */

struct outcome {
    int status; /* of waitpid() */
    struct buf out;
    struct buf err;
};
void outcome_finish(struct outcome outcome);
DEFINE_AUTO(struct outcome, outcome_finish)

/* Reads both streams to their end and takes the process's exit. Closes its descriptors. */
struct outcome finish(struct sandbox *box, struct process *process);
struct outcome run_shell(struct sandbox *box, const char *line);
void read_to_end(int fd, struct buf *buf); /* a terminal's end too */
void read_until(int fd, struct buf *buf, const char *text);

int count_descriptors(void);
