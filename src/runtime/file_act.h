/*
 * file_act.h - does what a file request says, in the process that may resolve its paths.
 *
 * That is a sandbox's init, or the adapter itself where programs share our root. Allocates
 * nothing, takes no lock and never waits for a program.
 */
#pragma once
#include "runtime/files.h"

/* Where a path begins: openat(2)'s pair. */
struct file_where {
    int base;
    const char *path;
};

/* How paths may go below a directory that was given along: nowhere else, and by no link. */
uint64_t file_resolve_beneath(void);

/*
 * where[0] is for the request's path, where[1] for `other` of a rename and a link; the dir and
 * the user of the request are the caller's matter. `resolve`: RESOLVE_... for every path;
 * magic links are refused in any case.
 */
int file_act(const struct file_request *request, const struct file_where where[static 2],
        uint64_t resolve, struct file_answer *answer, struct carrel_error *err);
