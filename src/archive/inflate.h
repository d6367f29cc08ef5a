/* inflate.h - gzip, zstd or xz into plain bytes. */
#pragma once

struct carrel_error;

/* From `in` to its end, to `out`. What is packed in no way that carrel knows passes as it is.
 */
int inflate_stream(int in, int out, struct carrel_error *err);
