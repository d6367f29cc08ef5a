/* random_policy.h - random policy files: well-formed, and with values of every kind. */
#pragma once
#include "base/buf.h"
#include "policy/keys.h"
#include <stdio.h>

/* xorshift: the same on every machine. */
static inline unsigned random_below(uint64_t *state, unsigned n)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return (unsigned)((*state >> 11) % n);
}

static const char *const random_words[POLICY_KEYS][6] = {
    [POLICY_HOSTNAME] = { "a", "b" },
    [POLICY_IMAGE] = { "a", "b/c:1", "none" },
    [POLICY_MOUNTS_ALLOW] = { "/a", "/a/b:rw", "/:rw", "/c:ro" },
    [POLICY_ENV_ALLOW] = { "A", "A*", "B", "'*'" },
    [POLICY_ENV_PASS] = { "A", "AB", "B", "A*" },
    [POLICY_WORKSPACE_INCLUDE] = { ".env", "x" },
    [POLICY_WORKSPACE_SETUP] = { "make", "true" },
    [POLICY_WORKSPACE_SETUP_KEYS] = { "lock" },
    [POLICY_PYTHON] = { "python3", "python3.12", "/opt/python" },
    [POLICY_IMPORTS_BLOCK] = { "os", "os.path", "requests", "x" },
    [POLICY_IMPORTS_ALLOW] = { "os", "os.path", "json" },
    [POLICY_JOURNAL_KEY] = { "/k" },
    [POLICY_PRICE_CURRENCY] = { "EUR" },
    [POLICY_ENV_SET] = { "A: 1", "A: 2", "B: 1" },
};

static inline const char *random_word(enum policy_key key, uint64_t *state)
{
    static const char *const by_kind[][4] = {
        [KEY_BOOL] = { "true", "false" },
        [KEY_SIZE] = { "1K", "10M", "600M" },
        [KEY_DURATION] = { "1s", "10m", "2h", "60d" },
        [KEY_MILLI] = { "0.5", "1.0", "4" },
        [KEY_COUNT] = { "1", "256", "9999" },
        [KEY_PERCENT] = { "10", "90", "99" },
        [KEY_PRICE] = { "0", "1.5" },
        [KEY_MAP] = { NULL },
    };
    const struct key_row *row = key_row(key);
    const char *const *words = row->kind == KEY_CHOICE           ? row->choices
                               : row->words && row->words->known ? row->words->known
                               : random_words[key][0]            ? random_words[key]
                                                                 : by_kind[row->kind];
    unsigned n = 0;

    while (n < 4 && words[n])
        n++;
    return words[random_below(state, n)];
}

static inline void add_random_value(struct buf *out, enum policy_key key, uint64_t *state)
{
    const struct key_row *row = key_row(key);
    const bool is_map = row->kind == KEY_MAP;

    if (row->kind == KEY_LIST || is_map) {
        /* At most one member of a mapping: the words may name the same one twice. */
        unsigned n = random_below(state, is_map ? 2 : 4);
        buf_add_str(out, is_map ? "{" : "[");
        for (unsigned i = 0; i < n; i++)
            buf_addf(out, "%s%s", i > 0 ? ", " : "", random_word(key, state));
        buf_add_str(out, is_map ? "}" : "]");
    } else if (row->bound == BOUND_WRITTEN && random_below(state, 2)) {
        const char *first = random_word(key, state);
        buf_addf(out, "{maximum: %s", first);
        if (random_below(state, 2))
            buf_addf(out, ", default: %s", random_word(key, state));
        buf_add_str(out, "}");
    } else {
        buf_add_str(out, random_word(key, state));
    }
}

/* About one key in `rarity` is written. */
static inline void add_random_policy(struct buf *out, unsigned rarity, uint64_t *state)
{
    char section[64] = "";

    for (enum policy_key key = 0; key < POLICY_KEYS; key++) {
        const char *name = key_row(key)->name;
        const char *dot = strrchr(name, '.');
        const char *first = strchr(name, '.');
        char path[64];
        if (random_below(state, rarity) != 0)
            continue;
        (void)snprintf(path, sizeof(path), "%.*s", (int)(dot - name), name);
        if (strncmp(section, path, (size_t)(first - name)) != 0 || !section[0])
            buf_addf(out, "%.*s:\n", (int)(first - name), name);
        if (dot != first && strcmp(section, path) != 0)
            buf_addf(out, "  %.*s:\n", (int)(dot - first - 1), first + 1);
        (void)strcpy(section, path);
        buf_addf(out, "%s%s: ", dot != first ? "    " : "  ", dot + 1);
        add_random_value(out, key, state);
        buf_add_str(out, "\n");
    }
}
