/* record.h - an image's file: JSON that we write, and read again. */
#pragma once
#include "base/arena.h"
#include "base/json_read.h"
#include "image/store.h"

struct carrel_error;
struct json;

#define RECORD_MAX_BYTES (4U << 20)

/* An image that is nothing yet; what is put into it comes from image_record_arena(). */
struct image *image_record_new(void);
struct arena *image_record_arena(struct image *image);

/* The text of a string as C has it: no NUL in it. -EINVAL otherwise, or when it is no string.
 */
int image_record_string(struct arena *arena, struct json_value value, const char **out);

/* An array of strings; null and no value are the empty list. */
int image_record_list(struct arena *arena, struct json_value value, const char *const **out);

int image_record_parse(
        const char *text, size_t len, struct image *image, struct carrel_error *err);

/* What image_record_parse() reads: image_write_json() is for others, and has the time as text.
 */
void image_record_write(const struct image *image, struct json *json);

int image_record_read(const struct image_store *store, const char *name, struct image **out,
        struct carrel_error *err);
int image_record_save(
        const struct image_store *store, const struct image *image, struct carrel_error *err);
