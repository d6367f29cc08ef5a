/* lines.h - reads the lines of a file that may be long and may still grow. */
#pragma once
#include "base/auto.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct journal_lines {
    int fd;         /* owned by the caller */
    uint64_t at;    /* how much of the file was read */
    uint64_t limit; /* bytes after it are not read; UINT64_MAX: no limit */
    char *data;
    size_t begin, end; /* read and not yet returned */
};

struct journal_lines journal_lines_of(int fd);
void journal_lines_finish(struct journal_lines lines);
DEFINE_AUTO(struct journal_lines, journal_lines_finish)

/*
 * The next line, without its newline; valid until the next call. Returns 1; 0 at the end, where
 * lines->end - lines->begin bytes without a newline remain, and where a later call continues
 * with what was appended since; -EMSGSIZE: longer than any record; another negative errno.
 */
int journal_lines_next(struct journal_lines *lines, const char **line, size_t *len);
