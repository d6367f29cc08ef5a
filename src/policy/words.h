/* words.h - the valid forms of texts and list items. */
#pragma once
#include "policy/keys.h"

extern const struct key_words words_runtime;    /* local, process ... */
extern const struct key_words words_protection; /* seccomp, landlock ... */
extern const struct key_words words_limit;      /* memory, pids ... */
extern const struct key_words words_hostname;
extern const struct key_words words_image;
extern const struct key_words words_mount;   /* "/data" or "/data:rw" */
extern const struct key_words words_pattern; /* NAME or PREFIX* of variables */
extern const struct key_words words_variable;
extern const struct key_words words_module;
extern const struct key_words words_program;
extern const struct key_words words_file; /* absolute path */
extern const struct key_words words_currency;
extern const struct key_words words_glob; /* of files in a repository */
extern const struct key_words words_line; /* a shell line */

/* Whether an entry of mounts.allow covers a mount of this absolute path. */
bool words_mount_covers(const char *allowed, const char *path, bool is_writable);
