/* lines.h - the lines of a file that may be long, and may still grow. */
#pragma once
#include "base/auto.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct journal_lines {
    int fd;         /* not ours */
    uint64_t at;    /* how much of the file was read */
    uint64_t limit; /* what comes after is left alone; UINT64_MAX: nothing */
    char *data;
    size_t begin, end; /* what was read and not yet given out */
};

struct journal_lines journal_lines_of(int fd);
void journal_lines_finish(struct journal_lines lines);
DEFINE_AUTO(struct journal_lines, journal_lines_finish)

/*
 * The next line, without its newline; good until the next call. Returns 1; 0 at the end, where
 * lines->end - lines->begin bytes without a newline remain, and where a later call goes on with
 * what has come since; -EMSGSIZE: no record is that long; another negative errno.
 */
int journal_lines_next(struct journal_lines *lines, const char **line, size_t *len);
