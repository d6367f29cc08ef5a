/*
 * packed.h - a packed-refs file: one "<oid> <name>" per line, sorted by name, and after a tag
 * a line "^<oid>" with what it stands for.
 *
 * git replaces the file whole and never changes it in place, so what is open stays as it is.
 */
#pragma once
#include "base/auto.h"
#include <stdbool.h>
#include <stddef.h>

struct carrel_error;

struct packed {
    const char *data; /* the lines, sorted, without the header */
    size_t len;
    bool is_fully_peeled; /* a name without a "^" line is known to be no tag object */
    void *map;            /* of the file, or NULL */
    size_t map_len;
    char *sorted; /* what data is in when the file was not sorted */
};
void packed_close(struct packed packed);
DEFINE_AUTO(struct packed, packed_close)

/* Opens the file in the directory `dir` of the repository; one that is not there is empty. */
int packed_open(const char *dir, struct packed *out, struct carrel_error *err);

/* The same from text, which must stay as long as *out. -EBADMSG: the last line is cut short. */
int packed_parse(const char *text, size_t len, struct packed *out);

/*
 * Where the lines of `name` (of `len` bytes) are or would be: the offset of the first line
 * whose name is not less. In logarithmic time.
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

/* Reads the record at `offset`. False at the end, or when the line is not one. */
bool packed_read(const struct packed *packed, size_t offset, struct packed_ref *ref);
