/* exec.h - one program in a living sandbox, as exec.c and process.c share it. */
#pragma once
#include "base/auto.h"
#include "core/disk/disk.h"
#include "core/request/take.h"
#include "core/result/capture.h"
#include "core/result/result.h"
#include "core/run/follow.h"
#include "runtime/runtime.h"
#include <carrel/sandbox.h>

struct exec {
    struct carrel_sandbox *sandbox;
    struct taken_run own; /* the caller's options */
    struct carrel_run_result *result;
    struct process process;
    struct output output;
    struct follow follow;
    struct disk disk; /* no limit: the keeper enforces it */
    uint64_t began_ns;
};
void exec_free(struct exec *exec); /* NULL is fine */
DEFINE_AUTO(struct exec *, exec_free)

/* Takes and checks the options, and connects the handle. */
int exec_new(struct carrel_sandbox *sandbox, const struct carrel_run_options *options,
        struct exec **out, struct carrel_error *err);

/* Starts the program; its streams are non-blocking. */
int exec_start(struct exec *exec, struct carrel_error *err);

/* The result, from how `follow` says it ended. */
int exec_finish(struct exec *exec, struct carrel_run_result **out, struct carrel_error *err);
