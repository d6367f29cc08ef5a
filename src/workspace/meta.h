/*
 * meta.h - the record of a workspace as text: one "key value" line for each thing known.
 *
 * Pure. Backslash and newline in a value are written as \\ and \n, so a path of any bytes stays
 * one line. Unknown keys are passed over: an older carrel meets a newer record.
 */
#pragma once
#include <stddef.h>

struct buf;
struct carrel_error;
struct workspace;

#define META_MAX 32768 /* two paths of PATH_MAX, each byte escaped, and some lines */

/* Adds everything that workspace.h lists under "meta". */
void meta_write(const struct workspace *ws, struct buf *out);

/*
 * Replaces what was known. -EBADMSG: not a whole record, the message says what is wrong; `ws`
 * is then partly filled.
 */
int meta_read(struct workspace *ws, const char *text, size_t len, struct carrel_error *err);
