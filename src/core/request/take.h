/* take.h - the options of a public call, completed with defaults (base/options.h). */
#pragma once
#include <carrel/run.h>

struct carrel_error;

struct taken_run {
    struct carrel_run_options options;
    struct carrel_workspace_options workspace; /* options.workspace points here, or is NULL */
};

/*
 * NULL: all defaults. *own must stay where it is. Text and arrays still belong to the caller.
 */
int take_run(struct taken_run *own, const struct carrel_run_options *given,
        struct carrel_error *err);
