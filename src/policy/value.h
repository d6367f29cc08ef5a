/* value.h - parses one word of a policy file or a variable into a value. */
#pragma once
#include "policy/keys.h"

struct arena;

/*
 * Fills number and text of *out for every kind except lists; `text` must outlive it. -EINVAL
 * and -ERANGE say what is wrong and what was expected, without naming the key.
 */
int value_parse(enum policy_key key, const char *text, struct policy_value *out,
        struct carrel_error *err);

/* Whether a text, or an item of a list, is valid for the key. */
int value_check_word(const struct key_words *words, const char *word, struct carrel_error *err);

/* true, yes, on, 1 and their opposites; false for anything else. */
bool value_parse_bool(const char *text, bool *out);

/* Whether two lists hold the same items; NULL is a list without any. */
bool value_list_has(const char *const *list, const char *item);
size_t value_list_len(const char *const *list);
