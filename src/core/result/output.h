/* output.h - what a run writes: head and tail for the result, the whole in its directory. */
#pragma once
#include "core/result/capture.h"
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

struct carrel_error;
struct carrel_run_result;

struct output {
    struct capture out, err;
    char dir[PATH_MAX - 32]; /* of the run; empty: there is no place for it */
    char out_path[PATH_MAX], err_path[PATH_MAX];
};

/* Before output_open(), so that output_finish() is always right. */
#define OUTPUT_INIT                                                                            \
    {                                                                                          \
        .out.file = -1, .err.file = -1                                                         \
    }

/*
 * Names the run's directory, without making it. A run that may have been before (`is_old`)
 * keeps what it wrote then.
 */
int output_open(struct output *output, const struct carrel_run_result *result, bool is_old,
        uint64_t file_max, struct carrel_error *err);
void output_finish(struct output *output);

/* The files hold all of it, also what was short enough for the result. */
int output_keep(struct output *output, struct carrel_error *err);

/* Texts and figures for the result. */
void output_take(const struct output *output, struct carrel_run_result *result);

/* The names of the files, as far as there are any. */
void output_name(const struct output *output, struct carrel_run_result *result);
