/* interpreter.h - which interpreter runs, and what of the host it needs to be shown. */
#pragma once
#include "base/auto.h"
#include <carrel/python.h>

struct policy;

struct interpreter {
    char *interpreter;           /* as the sandbox will look for it */
    struct carrel_mount *mounts; /* the caller's, then ours, all read-only */
    size_t n_mounts;
    size_t n_given; /* how many of them are the caller's */
    int *fds;       /* what is mounted by ours: their sources are /proc/self/fd/N */
    size_t n_fds;
    size_t n_installations; /* of ours, how many are not the environment itself: the last ones
                             */
};

void interpreter_finish(struct interpreter interpreter);
DEFINE_AUTO(struct interpreter, interpreter_finish)

/*
 * --venv, --python, the policy's or what the sandbox has. A virtual environment is shown at its
 * own absolute path; the installation it is based on too, where /usr does not hold it. So is
 * the installation of an interpreter that is named by its absolute path. Nothing is shown but a
 * directory that is a virtual environment or holds Python's own library; -EPERM for the root
 * directory, a home, and what holds the environment, which a program may have planted. -EINVAL:
 * there is no virtual environment.
 */
int interpreter_find(const struct carrel_python_options *options, const struct policy *policy,
        struct interpreter *out, struct carrel_error *err);
