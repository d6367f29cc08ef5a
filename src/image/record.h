/* record.h - an image's file: JSON that we write, and read again. */
#pragma once
#include "base/arena.h"
#include "base/json_read.h"
#include "image/store.h"

struct carrel_error;

#define RECORD_MAX_BYTES (4U << 20)

/* An image that is nothing yet; what is put into it comes from record_arena(). */
struct image *record_new(void);
struct arena *record_arena(struct image *image);

/* The text of a string as C has it: no NUL in it. -EINVAL otherwise, or when it is no string.
 */
int record_string(struct arena *arena, struct json_value value, const char **out);

/* An array of strings; null and no value are the empty list. */
int record_list(struct arena *arena, struct json_value value, const char *const **out);

void record_write(const struct image *image, struct buf *out);
int record_parse(const char *text, size_t len, struct image *image, struct carrel_error *err);

int record_read(const struct store *store, const char *name, struct image **out,
        struct carrel_error *err);
int record_save(const struct store *store, const struct image *image, struct carrel_error *err);
