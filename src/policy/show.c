/* show.c - a policy for callers of the library: each key and file as plain data. */
#include "base/err.h"
#include "base/options.h"
#include "base/str.h"
#include "base/suggest.h"
#include "policy/join.h"
#include "policy/keys.h"
#include <carrel/policy.h>
#include <errno.h>
#include <unistd.h>

#define JSON_MAX (4U << 20)

struct carrel_policy {
    struct policy *policy;
    struct carrel_policy_key keys[POLICY_KEYS];
    struct carrel_policy_value values[POLICY_KEYS];
    struct carrel_policy_value maxima[POLICY_KEYS];
    struct carrel_policy_file files[JOIN_DOCUMENTS_MAX];
    size_t n_files;
};

void carrel_policy_free(struct carrel_policy *policy)
{
    if (!policy)
        return;
    policy_free(policy->policy);
    free(policy);
}
DEFINE_AUTO(struct carrel_policy *, carrel_policy_free)

/* `out` is `value` in the public form, or NULL where there is none. */
static int show_value(struct policy *policy, const struct policy_value *value,
        struct carrel_policy_value *room, const struct carrel_policy_value **out)
{
    char from[JOIN_PLACE_MAX];

    if (!value->is_set)
        return 0;
    (void)policy_position_text(&value->position, from, sizeof(from));
    *room = (struct carrel_policy_value){
        .size = sizeof(*room),
        .text = value->list ? NULL : value->text,
        .list = value->list,
        .authority = policy_authority_name(value->position.authority),
        .name = value->position.name,
        .line = value->position.line,
        .column = value->position.column,
        .from = arena_copy(&policy->arena, from, strlen(from)),
    };
    *out = room;
    return room->from ? 0 : -ENOMEM;
}

static int show_keys(struct carrel_policy *shown)
{
    struct policy *policy = shown->policy;
    int r = 0;

    for (enum policy_key key = 0; r == 0 && key < POLICY_KEYS; key++) {
        struct carrel_policy_key *out = &shown->keys[key];
        *out = (struct carrel_policy_key){
            .size = sizeof(*out),
            .name = policy_key_name(key),
            .is_built_in = policy_is_built_in(policy, key),
        };
        r = show_value(policy, policy_get(policy, key), &shown->values[key], &out->value);
        if (r == 0)
            r = show_value(
                    policy, policy_maximum(policy, key), &shown->maxima[key], &out->maximum);
    }
    return r;
}

static void show_files(struct carrel_policy *shown)
{
    struct policy_file file;

    for (; policy_file_at(shown->policy, shown->n_files, &file); shown->n_files++)
        shown->files[shown->n_files] = (struct carrel_policy_file){
            .size = sizeof(struct carrel_policy_file),
            .name = file.name,
            .authority = policy_authority_name(file.authority),
            .gives_values = file.gives_values,
        };
}

int carrel_policy_load(const struct carrel_policy_options *options, struct carrel_policy **out,
        struct carrel_error *err)
{
    struct carrel_policy_options own = CARREL_POLICY_OPTIONS_INIT;

    err = ERR_OR_IGNORED(err);
    int r = OPTIONS_TAKE(&own, options, CARREL_POLICY_OPTIONS_INIT, err);
    if (r < 0)
        return r;
    const struct policy_request request = {
        .file = own.file,
        .profile = own.profile,
        .environment = (const char *const *)environ,
    };
    AUTO(carrel_policy_free) struct carrel_policy *shown = calloc(1, sizeof(*shown));
    if (!shown)
        return err_set_errno(err, -ENOMEM, "policy");
    r = policy_load(&request, &shown->policy, err);
    if (r < 0)
        return r;
    r = show_keys(shown);
    if (r < 0)
        return err_set_errno(err, r, "policy");
    show_files(shown);
    *out = ptr_steal(&shown);
    return 0;
}

int carrel_policy_json(const struct carrel_policy *policy, char **out, struct carrel_error *err)
{
    AUTO(buf_finish) struct buf text = BUF_INIT(JSON_MAX);
    struct json json = { .out = &text };

    policy_write_json(policy->policy, &json);
    return buf_take(&text, out, ERR_OR_IGNORED(err));
}

const char *carrel_policy_hash(const struct carrel_policy *policy)
{
    return policy_hash(policy->policy);
}

int carrel_policy_key_each(const struct carrel_policy *policy,
        int (*visit)(const struct carrel_policy_key *key, void *context), void *context,
        struct carrel_error *err)
{
    int r = 0;

    (void)err;
    for (size_t i = 0; r == 0 && i < POLICY_KEYS; i++)
        r = visit(&policy->keys[i], context);
    return r;
}

int carrel_policy_key_get(const struct carrel_policy *policy, const char *name,
        const struct carrel_policy_key **out, struct carrel_error *err)
{
    const char *best = NULL;
    size_t distance = SIZE_MAX;
    char shown[64];

    err = ERR_OR_IGNORED(err);
    for (size_t i = 0; i < POLICY_KEYS; i++) {
        if (strcmp(policy->keys[i].name, name) == 0) {
            *out = &policy->keys[i];
            return 0;
        }
        suggest_offer(policy->keys[i].name, name, strlen(name), &best, &distance);
    }
    (void)str_escape(name, strlen(name), shown, sizeof(shown));
    if (best)
        (void)err_set(err, -ENOENT, "unknown key '%s' (did you mean '%s'?)", shown, best);
    else
        (void)err_set(err, -ENOENT, "unknown key '%s'", shown);
    return err_from(err, -ENOENT, CARREL_FROM_CALLER);
}

int carrel_policy_file_each(const struct carrel_policy *policy,
        int (*visit)(const struct carrel_policy_file *file, void *context), void *context,
        struct carrel_error *err)
{
    int r = 0;

    (void)err;
    for (size_t i = 0; r == 0 && i < policy->n_files; i++)
        r = visit(&policy->files[i], context);
    return r;
}
