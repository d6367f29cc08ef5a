/* inflate.h - decompresses gzip, zstd or xz. */
#pragma once

struct carrel_error;

/*
 * Copies `in` to its end, decompressed, to `out`. Bytes in no known compression pass unchanged.
 */
int inflate_stream(int in, int out, struct carrel_error *err);
