/*
 * file_act.h - carries out a file request, in the process that may resolve its paths.
 *
 * That is a sandbox's init, or the adapter itself if programs share our root. Allocates
 * nothing, takes no lock and never waits for a program.
 */
#pragma once
#include "runtime/files.h"

/* Where a path begins: the pair of openat(2). */
struct file_where {
    int base;
    const char *path;
};

/*
 * RESOLVE flags for paths relative to a directory descriptor: they stay below it, without
 * links.
 */
uint64_t file_resolve_beneath(void);

struct stat;
void file_stat_fill(const struct stat *st, struct file_stat *out);

/*
 * where[0] is for the request's path, where[1] for `other` of a rename and a link; the caller
 * has handled `dir` and user of the request. `resolve`: RESOLVE_... for every path; magic links
 * are refused in any case.
 */
int file_act(const struct file_request *request, const struct file_where where[static 2],
        uint64_t resolve, struct file_answer *answer, struct carrel_error *err);
