/* document_values.c - nodes into values, by the table of keys. */
#include "policy/document_values.h"
#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"
#include "base/suggest.h"
#include "policy/keys.h"
#include "policy/node.h"
#include "policy/value.h"
#include <errno.h>
#include <stdio.h>

#define PATH_ROOM 128

struct taker {
    struct document_values *given;
    struct arena *arena;
    const char *skip;
    struct carrel_error *err;
};

static int out_of_memory(struct taker *taker)
{
    return err_set_errno(taker->err, -ENOMEM, "read '%s'", taker->given->name);
}

/* Puts "FILE:LINE:COLUMN: KEY: " before what is wrong with a value. */
static int wrong(struct taker *taker, const struct node *node, const char *key, int code)
{
    return err_wrap(taker->err, code, "%s:%u:%u: %s", taker->given->name, node->line,
            node->column, key);
}

static struct policy_position place_of(const struct taker *taker, const struct node *node)
{
    return (struct policy_position){
        .authority = taker->given->authority,
        .name = taker->given->name,
        .line = node->line,
        .column = node->column,
    };
}

/* ---- unknown keys ---- */

/* The next part of a key's name below `path`, copied into `part`. */
static bool next_part(const char *key, const char *path, char part[static PATH_ROOM])
{
    size_t len = strlen(path);

    if (len > 0 && (strncmp(key, path, len) != 0 || key[len++] != '.'))
        return false;
    size_t part_len = strcspn(key + len, ".");
    memcpy(part, key + len, part_len);
    part[part_len] = '\0';
    return true;
}

/* The last part of a name: people write `memory` where `sandbox.limits.memory` is meant. */
static const char *elsewhere(const char *word)
{
    for (enum policy_key key = 0; key < POLICY_KEYS; key++) {
        const char *name = key_row(key)->name;
        const char *dot = strrchr(name, '.');
        if (strcmp(dot + 1, word) == 0)
            return name;
    }
    return NULL;
}

static int unknown_key(struct taker *taker, const struct node *node, const char *path)
{
    char parts[POLICY_KEYS][PATH_ROOM];
    char shown[64];
    char list[200] = "";
    size_t at = 0;
    size_t n = 0;
    const char *best = NULL;
    size_t distance = SIZE_MAX;

    for (enum policy_key key = 0; key < POLICY_KEYS; key++) {
        if (!next_part(key_row(key)->name, path, parts[n]) ||
                (n > 0 && strcmp(parts[n], parts[n - 1]) == 0))
            continue;
        n++;
    }
    for (size_t i = 0; i < n; i++) {
        suggest_offer(parts[i], node->key, strlen(node->key), &best, &distance);
        if (at < sizeof(list))
            at += (size_t)snprintf(
                    list + at, sizeof(list) - at, "%s%s", i > 0 ? ", " : "", parts[i]);
    }
    if (!path[0]) {
        suggest_offer(taker->skip, node->key, strlen(node->key), &best, &distance);
        if (at < sizeof(list))
            (void)snprintf(list + at, sizeof(list) - at, ", %s", taker->skip);
    }
    if (!best)
        best = elsewhere(node->key);
    (void)str_escape(node->key, strlen(node->key), shown, sizeof(shown));
    int r = best ? err_set(taker->err, -EINVAL, "unknown key '%s%s%s' (did you mean '%s'?)",
                           path, path[0] ? "." : "", shown, best)
                 : err_set(taker->err, -EINVAL, "unknown key '%s%s%s'; expected one of: %s",
                           path, path[0] ? "." : "", shown, list);
    return err_wrap(
            taker->err, r, "%s:%u:%u", taker->given->name, node->key_line, node->key_column);
}

/* ---- values ---- */

static int wrong_type(struct taker *taker, const struct node *node, enum policy_key key)
{
    static const char *const found[] = {
        [NODE_SCALAR] = "a word",
        [NODE_LIST] = "a list",
        [NODE_MAP] = "a mapping",
    };
    char expected[160];

    (void)err_set(taker->err, -EINVAL, "expected %s, found %s",
            key_expected(key, expected, sizeof(expected)),
            node->kind == NODE_SCALAR && node->is_null ? "nothing" : found[node->kind]);
    return wrong(taker, node, key_row(key)->name, -EINVAL);
}

static int take_scalar(struct taker *taker, const struct node *node, enum policy_key key,
        struct policy_value *out)
{
    if (node->kind != NODE_SCALAR || node->is_null)
        return wrong_type(taker, node, key);
    int r = value_parse(key, node->text, out, taker->err);
    if (r < 0)
        return wrong(taker, node, key_row(key)->name, r);
    out->position = place_of(taker, node);
    return 0;
}

/* {default: X, maximum: Y} */
static int take_bounded(struct taker *taker, const struct node *map, enum policy_key key)
{
    const char *name = key_row(key)->name;
    char shown[64];
    int r = 0;

    for (const struct node *node = map->item; r == 0 && node; node = node->next) {
        if (strcmp(node->key, "default") == 0)
            r = take_scalar(taker, node, key, &taker->given->values[key]);
        else if (strcmp(node->key, "maximum") == 0)
            r = take_scalar(taker, node, key, &taker->given->maxima[key]);
        else
            r = err_set(taker->err, -EINVAL,
                    "%s:%u:%u: unknown key '%s.%s'; expected one of: default, maximum",
                    taker->given->name, node->key_line, node->key_column, name,
                    str_escape(node->key, strlen(node->key), shown, sizeof(shown)));
    }
    return r;
}

static const char **new_list(
        struct taker *taker, const struct node *node, struct policy_value *out)
{
    size_t n = 0;

    for (const struct node *item = node->item; item; item = item->next)
        n++;
    const char **list = arena_alloc(taker->arena, (n + 1) * sizeof(*list));
    *out = (struct policy_value){
        .is_set = true, .list = list, .position = place_of(taker, node)
    };
    return list;
}

static int take_list(struct taker *taker, const struct node *node, enum policy_key key)
{
    const struct key_row *row = key_row(key);
    struct policy_value value;

    if (node->kind != NODE_LIST)
        return wrong_type(taker, node, key);
    const char **list = new_list(taker, node, &value);
    if (!list)
        return out_of_memory(taker);
    for (const struct node *item = node->item; item; item = item->next) {
        if (item->kind != NODE_SCALAR || item->is_null)
            return wrong_type(taker, item, key);
        int r = value_check_word(row->words, item->text, taker->err);
        if (r < 0)
            return wrong(taker, item, row->name, r);
        *list++ = item->text;
    }
    taker->given->values[key] = value;
    return 0;
}

static int take_map(struct taker *taker, const struct node *node, enum policy_key key)
{
    const struct key_row *row = key_row(key);
    struct policy_value value;

    if (node->kind != NODE_MAP)
        return wrong_type(taker, node, key);
    const char **list = new_list(taker, node, &value);
    if (!list)
        return out_of_memory(taker);
    for (const struct node *item = node->item; item; item = item->next) {
        if (item->kind != NODE_SCALAR)
            return wrong_type(taker, item, key);
        int r = value_check_word(row->words, item->key, taker->err);
        if (r < 0)
            return wrong(taker, item, row->name, r);
        size_t size = strlen(item->key) + strlen(item->text) + 2;
        char *entry = arena_alloc(taker->arena, size);
        if (!entry)
            return out_of_memory(taker);
        (void)snprintf(entry, size, "%s=%s", item->key, item->is_null ? "" : item->text);
        *list++ = entry;
    }
    taker->given->values[key] = value;
    return 0;
}

static int take_key(struct taker *taker, const struct node *node, enum policy_key key)
{
    const struct key_row *row = key_row(key);

    if (row->kind == KEY_LIST)
        return take_list(taker, node, key);
    if (row->kind == KEY_MAP)
        return take_map(taker, node, key);
    if (row->bound == BOUND_WRITTEN && node->kind == NODE_MAP)
        return take_bounded(taker, node, key);
    int r = take_scalar(taker, node, key, &taker->given->values[key]);
    if (r == 0 && row->bound == BOUND_VALUE)
        taker->given->maxima[key] = taker->given->values[key];
    return r;
}

/* ---- sections ---- */

static int take_section(struct taker *taker, const struct node *map, const char *path)
{
    if (map->kind == NODE_SCALAR && map->is_null)
        return 0; /* all of it is commented out */
    if (map->kind != NODE_MAP)
        return err_set(taker->err, -EINVAL, "%s:%u:%u: %s%sexpected keys with values, found %s",
                taker->given->name, map->line, map->column, path, path[0] ? ": " : "",
                map->kind == NODE_LIST ? "a list" : "a word");
    for (const struct node *node = map->item; node; node = node->next) {
        char whole[PATH_ROOM];
        int r;
        if (!path[0] && strcmp(node->key, taker->skip) == 0)
            continue;
        int len = snprintf(whole, sizeof(whole), "%s%s%s", path, path[0] ? "." : "", node->key);
        /* A dot would be a second way to write a key, and so a way to write it twice. */
        bool is_whole = (size_t)len < sizeof(whole) && !strchr(node->key, '.');
        enum policy_key key = is_whole ? key_find(whole) : POLICY_KEYS;
        if (key < POLICY_KEYS)
            r = take_key(taker, node, key);
        else if (is_whole && key_is_section(whole))
            r = take_section(taker, node, whole);
        else
            r = unknown_key(taker, node, path);
        if (r < 0)
            return r;
    }
    return 0;
}

int document_values_take(struct document_values *given, struct arena *arena,
        const struct node *map, const char *skip, struct carrel_error *err)
{
    struct taker taker = { .given = given, .arena = arena, .skip = skip, .err = err };

    return take_section(&taker, map, "");
}
