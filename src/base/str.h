/* str.h - parses numbers, sizes and times: the whole text is valid, or it is refused. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct carrel_error;

/* Digits only: no sign, no space, no leading plus. -EINVAL or -ERANGE, *out untouched. */
int str_parse_u64(const char *text, uint64_t *out);

/* "512M", "10K", "1G", "4096": bytes; units K M G T (also KiB, MB ...: all powers of 1024). */
int str_parse_size(const char *text, uint64_t *bytes, struct carrel_error *err);

/* "300", "300s", "1500ms", "5m", "2h", "30d": milliseconds; a bare number is seconds; "1.5s"
 * works. */
int str_parse_duration(const char *text, uint64_t *ms, struct carrel_error *err);

/* "1", "0.5", "16": thousandths. */
int str_parse_milli(const char *text, uint64_t *milli, struct carrel_error *err);

/* "NAME" of an environment variable: a letter or underscore, then letters, digits, underscores.
 */
bool str_is_env_name(const char *name, size_t len);

/* "512M" and the like, exact when the value is a whole multiple; for messages. */
const char *str_size(uint64_t bytes, char text[static 32]);

/*
 * 1500 -> "1.5", 2000 -> "2", 20 -> "0.02": thousandths as a decimal without trailing zeroes.
 */
const char *str_milli(uint64_t milli, char text[static 32]);

/* "300s", "1.5s", "20ms"; for messages. */
const char *str_duration(uint64_t ms, char text[static 32]);

/*
 * Copies any bytes into `out` so that they are safe on a terminal, stay on one line and hide
 * nothing: control characters, invisible characters (utf8_is_hidden()), backslash and invalid
 * UTF-8 become \xNN. Always terminates; truncates when full.
 */
const char *str_escape(const void *data, size_t len, char *out, size_t size);
