/*
 * keys.h - the table of all keys: type, built-in value, which direction is tighter, and what a
 * repository's file may do with it.
 *
 * All code that treats keys alike reads this table: checking, joining, `policy show`, the hash,
 * and the tests that compare it with the manual and with the template.
 */
#pragma once
#include "policy/policy.h"

enum key_kind {
    KEY_BOOL,
    KEY_SIZE,     /* bytes */
    KEY_DURATION, /* milliseconds */
    KEY_MILLI,    /* thousandths */
    KEY_COUNT,
    KEY_PERCENT,
    KEY_PRICE,  /* billionths */
    KEY_CHOICE, /* the index of a word in `choices` */
    KEY_TEXT,
    KEY_LIST, /* of texts */
    KEY_MAP,  /* names with values; a list of "NAME=VALUE" in struct policy_value */
};

/* Which of two values is the tighter one. */
enum key_order { ORDER_NONE, ORDER_LESS_IS_TIGHTER, ORDER_MORE_IS_TIGHTER };

/* How a file binds every lower authority. */
enum key_bound {
    BOUND_NONE,
    BOUND_WRITTEN, /* {default: X, maximum: Y}: Y is the loosest value allowed */
    BOUND_VALUE,   /* its value is the bound, too */
    BOUND_LIST,    /* only items that its list covers are allowed */
    BOUND_ADD,     /* the items of its list are added to every policy */
};

/* What a repository's file may write; "the rest" is the policy without that file. */
enum key_repository {
    REPO_BOUND,   /* a list that must allow what the caller asks for: any */
    REPO_TIGHTEN, /* nothing looser than the rest, built-in values included */
    REPO_SUBSET,  /* a list: only items of the rest */
    REPO_ADD,     /* a list: its items are added to those of the rest */
    REPO_NEVER,
};

/* What a text, or an item of a list, may be. */
struct key_words {
    const char *expected;     /* for messages */
    const char *const *known; /* these alone, NULL-terminated; NULL: see is_valid */
    bool (*is_valid)(const char *word);
    bool (*covers)(const char *allowed, const char *asked); /* NULL: the same text */
};

/* Kept small: the table has pointers, so its pages are private to each process. */
struct key_row {
    const char *name;
    enum key_kind kind : 8;
    enum key_order order : 8;
    enum key_bound bound : 8;
    enum key_repository repository : 8;
    bool takes_bool;            /* a choice of two: false is the first, true the second */
    bool takes_zero;            /* an amount for which 0 makes sense */
    const char *const *choices; /* NULL-terminated */
    const struct key_words *words;
    uint64_t max; /* the largest value; 0: no such bound */
    struct policy_value built_in;
};

const struct key_row *key_row(enum policy_key key);

/* The key of that name, or POLICY_KEYS. */
enum policy_key key_find(const char *name);

/* Whether `path` ("sandbox.limits") is the beginning of a key's name. */
bool key_is_section(const char *path);

/* Whether the allowed item covers the requested one. */
bool key_covers(enum policy_key key, const char *allowed, const char *asked);

/* Whether `value` is less tight than `bound`. */
bool key_is_looser(enum policy_key key, uint64_t value, uint64_t bound);

/* "a size such as 512M"; `text` is a buffer for composed texts. */
const char *key_expected(enum policy_key key, char *text, size_t size);

/* Whether that runtime uses remote machines; false for unknown names. */
bool key_runtime_is_remote(const char *runtime);
