/* entries.h - entries of an archive as a stream, from the process that parses to its reader. */
#pragma once
#include <stdint.h>

#define ENTRY_END UINT32_MAX /* as a kind: no more entries */

/* Followed by the two strings and the bytes of a file. */
struct entry_record {
    uint32_t kind; /* enum tar_kind */
    uint32_t mode;
    uint64_t bytes;
    int64_t seconds;
    uint32_t nanoseconds;
    uint16_t path_len;
    uint16_t target_len;
};
