/* run.h - a run, as other verbs of core use it. */
#pragma once
#include <carrel/run.h>

struct capture;
struct carrel_error;
struct sandbox;

/*
 * What a language adds to a run of its interpreter: files that must be there before it starts,
 * and what it leaves behind for us.
 */
struct run_guest {
    /* The sandbox stands, and nothing runs in it yet. */
    int (*prepare)(void *context, struct sandbox *box, struct carrel_error *err);
    /* The program has ended; the sandbox and what is in it are still there. */
    void (*collect)(void *context, struct sandbox *box);
    /* The result is judged by its status: what the guest knows better. */
    void (*judge)(void *context, struct carrel_run_result *result, const struct capture *err);
    void *context;
};

/* carrel_run(), and a guest (NULL: none). */
int run_execute(const struct carrel_run_options *options, const struct run_guest *guest,
        struct carrel_run_result **out, struct carrel_error *err);
