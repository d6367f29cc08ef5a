/* report.c - a policy as JSON, and its hash. */
#include "base/err.h"
#include "base/sha256.h"
#include "policy/join.h"
#include "policy/keys.h"
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

/* Billionths as a decimal text, exactly: a JSON number would invite rounding. */
static void write_price(struct json *json, const char *key, uint64_t billionths)
{
    char text[40];
    int len = snprintf(text, sizeof(text), "%" PRIu64 ".%09" PRIu64, billionths / 1000000000,
            billionths % 1000000000);

    while (text[len - 1] == '0')
        text[--len] = '\0';
    if (text[len - 1] == '.')
        text[len - 1] = '\0';
    json_str(json, key, text);
}

static void write_list(struct json *json, const char *key, const char *const *list)
{
    json_array(json, key);
    for (size_t i = 0; list[i]; i++)
        json_str(json, NULL, list[i]);
    json_end_array(json);
}

static void write_value(struct json *json, const char *name, enum key_kind kind,
        const struct policy_value *value)
{
    if (!value->is_set) {
        json_null(json, name);
        return;
    }
    switch (kind) {
    case KEY_BOOL:
        json_bool(json, name, value->number);
        break;
    case KEY_MILLI:
        json_milli(json, name, value->number);
        break;
    case KEY_PRICE:
        write_price(json, name, value->number);
        break;
    case KEY_CHOICE:
    case KEY_TEXT:
        json_str(json, name, value->text);
        break;
    case KEY_LIST:
    case KEY_MAP:
        write_list(json, name, value->list);
        break;
    case KEY_SIZE:
    case KEY_DURATION:
    case KEY_COUNT:
    case KEY_PERCENT:
        json_u64(json, name, value->number);
        break;
    }
}

static void write_place(struct json *json, const char *name, const struct policy_value *value)
{
    char text[JOIN_PLACE_MAX];

    json_str(json, name,
            value->is_set ? policy_position_text(&value->position, text, sizeof(text)) : NULL);
}

bool policy_file_at(const struct policy *policy, size_t index, struct policy_file *out)
{
    if (index >= policy->n_documents)
        return false;
    const struct document_values *given = policy->documents[index];
    *out = (struct policy_file){
        .name = given->name,
        .authority = given->authority,
        .gives_values = given == policy->base || given->authority == POLICY_OF_REPOSITORY,
    };
    return true;
}

const char *policy_authority_name(enum policy_authority authority)
{
    static const char *const names[] = {
        [POLICY_BUILT_IN] = "built in",
        [POLICY_OF_REPOSITORY] = "repository",
        [POLICY_OF_USER] = "user",
        [POLICY_OF_SYSTEM] = "system",
        [POLICY_OF_ENVIRONMENT] = "environment",
    };

    return names[authority];
}

void policy_write_json(const struct policy *policy, struct json *json)
{
    struct policy_file file;

    json_object(json, NULL);
    json_str(json, "hash", policy_hash(policy));
    json_array(json, "files");
    for (size_t i = 0; policy_file_at(policy, i, &file); i++) {
        json_object(json, NULL);
        json_str(json, "file", file.name);
        json_str(json, "authority", policy_authority_name(file.authority));
        json_bool(json, "gives_values", file.gives_values);
        json_end_object(json);
    }
    json_end_array(json);
    json_object(json, "keys");
    for (enum policy_key key = 0; key < POLICY_KEYS; key++) {
        const struct key_row *row = key_row(key);
        json_object(json, row->name);
        write_value(json, "value", row->kind, policy->values[key]);
        write_place(json, "from", policy->values[key]);
        write_value(json, "maximum", row->kind, policy->maxima[key]);
        write_place(json, "maximum_from", policy->maxima[key]);
        json_end_object(json);
    }
    json_end_object(json);
    json_end_object(json);
}

static bool is_same_list(const char *const *a, const char *const *b)
{
    size_t i = 0;

    while (a && b && a[i] && b[i] && strcmp(a[i], b[i]) == 0)
        i++;
    return a == b || (a && b && a[i] == b[i]); /* both at their ends */
}

bool policy_is_built_in(const struct policy *policy, enum policy_key key)
{
    const struct key_row *row = key_row(key);
    const struct policy_value *value = policy->values[key];

    for (size_t i = 0; row->bound == BOUND_LIST && i < policy->n_documents; i++)
        if (policy->documents[i]->values[key].is_set)
            return false;
    return !policy->maxima[key]->is_set && value->is_set == row->built_in.is_set &&
           value->number == row->built_in.number &&
           (row->kind != KEY_TEXT || !value->is_set ||
                   strcmp(value->text, row->built_in.text) == 0) &&
           is_same_list(value->list, row->built_in.list);
}

/*
 * The values in force without their positions. Built-in values are represented by the version,
 * because every run waits for this.
 */
static void write_canonical(const struct policy *policy, struct json *json)
{
    json_object(json, NULL);
    json_str(json, "carrel", CARREL_VERSION);
    for (enum policy_key key = 0; key < POLICY_KEYS; key++) {
        const struct key_row *row = key_row(key);
        if (policy_is_built_in(policy, key))
            continue;
        json_array(json, row->name);
        write_value(json, NULL, row->kind, policy->values[key]);
        write_value(json, NULL, row->kind, policy->maxima[key]);
        for (size_t i = 0; row->bound == BOUND_LIST && i < policy->n_documents; i++)
            if (policy->documents[i]->values[key].is_set)
                write_list(json, NULL, policy->documents[i]->values[key].list);
        json_end_array(json);
    }
    json_end_object(json);
}

int join_hash(struct policy *policy, struct carrel_error *err)
{
    AUTO(buf_finish) struct buf text = BUF_INIT(1U << 20);
    struct json json = { .out = &text };

    write_canonical(policy, &json);
    if (text.is_short)
        return err_set_errno(err, -ENOMEM, "policy");
    sha256_hex(text.data, text.len, policy->hash);
    return 0;
}

const char *policy_hash(const struct policy *policy)
{
    return policy->hash;
}
