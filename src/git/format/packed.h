/*
 * packed.h - a packed-refs file: one "<oid> <name>" per line, sorted by name, and after a tag a
 * line "^<oid>" with the object it refers to.
 *
 * git replaces the file whole and never changes it in place, so an open file does not change.
 */
#pragma once
#include "base/auto.h"
#include <stdbool.h>
#include <stddef.h>

struct carrel_error;

struct packed {
    const char *data; /* the lines, sorted, without the header */
    size_t len;
    bool is_fully_peeled; /* a name without a "^" line is known not to be a tag object */
    void *map;            /* of the file, or NULL */
    size_t map_len;
    char *sorted; /* a sorted copy, if the file was not sorted */
};
void packed_close(struct packed packed);
DEFINE_AUTO(struct packed, packed_close)

/* Opens the file in the directory `dir` of the repository; a missing file is empty. */
int packed_open(const char *dir, struct packed *out, struct carrel_error *err);

/* The same from text, which must outlive *out. -EBADMSG: the last line is truncated. */
int packed_parse(const char *text, size_t len, struct packed *out);

/*
 * The offset of the first record whose name is not less than `name` (of `len` bytes). In
 * logarithmic time.
 */
size_t packed_find(const struct packed *packed, const char *name, size_t len);

/* One record: its line and the "^" line after it. */
struct packed_ref {
    const char *oid; /* oid_len hex digits, not terminated */
    size_t oid_len;
    const char *name; /* not terminated */
    size_t name_len;
    size_t next; /* offset of the record after it */
};

/* Reads the record at `offset`. False at the end, or if the line is malformed. */
bool packed_read(const struct packed *packed, size_t offset, struct packed_ref *ref);
