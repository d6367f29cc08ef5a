/* join.c - selects the value in force, and enforces bounds. */
#include "policy/join.h"
#include "base/err.h"
#include "policy/keys.h"
#include "policy/repository.h"
#include "policy/value.h"
#include <errno.h>
#include <stdio.h>

/* ---- bounds ---- */

static const char *looser_word(enum policy_key key)
{
    enum key_kind kind = key_row(key)->kind;

    return kind == KEY_BOOL || kind == KEY_CHOICE ? "is looser than" : "is more than";
}

static int passes_maximum(enum policy_key key, const struct policy_value *value,
        const struct policy_value *maximum, struct carrel_error *err)
{
    char here[JOIN_PLACE_MAX];
    char there[JOIN_PLACE_MAX];

    return err_set(err, -EPERM, "%s: %s %s %s the %s %s of %s",
            policy_position_text(&value->position, here, sizeof(here)), policy_key_name(key),
            value->text, looser_word(key),
            key_row(key)->bound == BOUND_VALUE ? "value" : "maximum", maximum->text,
            policy_position_text(&maximum->position, there, sizeof(there)));
}

/*
 * From the highest authority down, so that of two equal maxima the higher authority is named.
 */
static int join_maxima(struct policy *policy, struct carrel_error *err)
{
    for (size_t i = policy->n_documents; i > 0; i--) {
        const struct document_values *given = policy->documents[i - 1];
        for (enum policy_key key = 0; key < POLICY_KEYS; key++) {
            const struct policy_value *own = &given->maxima[key];
            const struct policy_value *tightest = policy->maxima[key];
            if (!own->is_set)
                continue;
            if (tightest->is_set && key_is_looser(key, own->number, tightest->number))
                return passes_maximum(key, own, tightest, err);
            if (!tightest->is_set || key_is_looser(key, tightest->number, own->number))
                policy->maxima[key] = own;
        }
    }
    return 0;
}

/* Whether `maximum` refuses the value instead of lowering it. */
static bool is_bound_by(const struct policy_value *value, const struct policy_value *maximum)
{
    enum policy_authority authority = value->position.authority;

    if (authority == POLICY_OF_ENVIRONMENT)
        return true;
    return authority != POLICY_BUILT_IN && authority <= maximum->position.authority;
}

static int hold_values(struct policy *policy, struct carrel_error *err)
{
    for (enum policy_key key = 0; key < POLICY_KEYS; key++) {
        for (size_t i = 0; i < policy->n_documents; i++) {
            const struct policy_value *value = policy->values[key];
            const struct policy_value *maximum = &policy->documents[i]->maxima[key];
            if (!maximum->is_set ||
                    (value->is_set && !key_is_looser(key, value->number, maximum->number)))
                continue;
            /* An amount that is not set is not limited, and above every maximum. */
            if (value->is_set && is_bound_by(value, maximum))
                return passes_maximum(key, value, maximum, err);
            policy->values[key] = maximum;
        }
    }
    return 0;
}

/* ---- lists ---- */

/* Every item of a document's list must be covered by the list of every document above. */
static int hold_list(
        const struct policy *policy, size_t at, enum policy_key key, struct carrel_error *err)
{
    const struct policy_value *own = &policy->documents[at]->values[key];
    char here[JOIN_PLACE_MAX];
    char there[JOIN_PLACE_MAX];

    for (size_t i = at + 1; i < policy->n_documents; i++) {
        const struct policy_value *above = &policy->documents[i]->values[key];
        for (size_t j = 0; above->is_set && own->list[j]; j++) {
            bool is_covered = false;
            for (size_t k = 0; !is_covered && above->list[k]; k++)
                is_covered = key_covers(key, above->list[k], own->list[j]);
            if (!is_covered)
                return err_set(err, -EPERM, "%s: %s: '%s' is not in the list of %s",
                        policy_position_text(&own->position, here, sizeof(here)),
                        policy_key_name(key), own->list[j],
                        policy_position_text(&above->position, there, sizeof(there)));
        }
    }
    return 0;
}

int join_value(struct policy *policy, enum policy_key key, const struct policy_value *value,
        struct carrel_error *err)
{
    struct policy_value *copy = arena_alloc(&policy->arena, sizeof(*copy));

    if (!copy)
        return err_set_errno(err, -ENOMEM, "policy");
    *copy = *value;
    policy->values[key] = copy;
    return 0;
}

int join_add(struct policy *policy, enum policy_key key, const struct policy_value *more,
        struct carrel_error *err)
{
    struct policy_value value = *policy->values[key];
    size_t before = value_list_len(value.list);
    size_t n = before;

    const char **joined =
            arena_alloc(&policy->arena, (n + value_list_len(more->list) + 1) * sizeof(*joined));
    if (!joined)
        return err_set_errno(err, -ENOMEM, "policy");
    for (size_t i = 0; i < n; i++)
        joined[i] = value.list[i];
    for (size_t i = 0; more->list[i]; i++)
        if (!value_list_has(value.list, more->list[i]))
            joined[n++] = more->list[i];
    value.is_set = true;
    value.list = joined;
    if (n > before || value.position.authority == POLICY_BUILT_IN)
        value.position = more->position;
    return join_value(policy, key, &value, err);
}

static int join_lists(struct policy *policy, struct carrel_error *err)
{
    for (enum policy_key key = 0; key < POLICY_KEYS; key++) {
        enum key_bound bound = key_row(key)->bound;
        for (size_t i = 0; i < policy->n_documents; i++) {
            const struct policy_value *own = &policy->documents[i]->values[key];
            int r = 0;
            if (bound == BOUND_LIST && own->is_set)
                r = hold_list(policy, i, key, err);
            if (bound == BOUND_ADD && own->is_set)
                r = join_add(policy, key, own, err);
            if (r < 0)
                return r;
        }
    }
    return 0;
}

/* ---- what must fit together ---- */

static int does_not_fit(const struct policy_value *value, const char *what,
        const struct policy_value *other, const char *with, struct carrel_error *err)
{
    char here[JOIN_PLACE_MAX];
    char there[JOIN_PLACE_MAX];

    return err_set(err, -EPERM, "%s: %s, but %s (%s)",
            policy_position_text(&value->position, here, sizeof(here)), what, with,
            policy_position_text(&other->position, there, sizeof(there)));
}

/*
 * A policy that says `process` asks for no isolation explicitly; so the built-in minimum yields
 * to that name, and to nothing else. A minimum that a file sets does not yield.
 */
static int settle_isolation(struct policy *policy, struct carrel_error *err)
{
    const enum policy_key key = POLICY_MINIMUM_ISOLATION;
    const struct policy_value *type = policy->values[POLICY_TYPE];
    const struct policy_value *fallback = policy->values[POLICY_FALLBACK];
    char what[128];
    char with[64];

    if (policy->maxima[key]->is_set)
        policy->values[key] = policy->maxima[key];
    const struct policy_value *minimum = policy->values[key];
    (void)snprintf(with, sizeof(with), "sandbox.minimum_isolation is %s", minimum->text);
    if (policy_runtime_isolation(type->text) < (int)minimum->number) {
        const struct policy_value none = {
            .is_set = true, .text = "none", .position = type->position
        };
        (void)snprintf(what, sizeof(what), "sandbox.type %s isolates less than the minimum",
                type->text);
        if (minimum->position.name)
            return does_not_fit(type, what, minimum, with, err);
        int r = join_value(policy, key, &none, err);
        if (r < 0)
            return r;
        minimum = policy->values[key];
    }
    for (size_t i = 0; fallback->list && fallback->list[i]; i++) {
        if (policy_runtime_isolation(fallback->list[i]) >= (int)minimum->number)
            continue;
        (void)snprintf(what, sizeof(what), "sandbox.fallback %s isolates less than the minimum",
                fallback->list[i]);
        return does_not_fit(fallback, what, minimum, with, err);
    }
    return 0;
}

static int settle_journal(struct policy *policy, struct carrel_error *err)
{
    const struct policy_value *required = policy->values[POLICY_JOURNAL_REQUIRED];
    const struct policy_value *enabled = policy->values[POLICY_JOURNAL];

    if (!required->number)
        return 0;
    if (!enabled->number)
        return does_not_fit(
                enabled, "journal.enabled is false", required, "journal.required is true", err);
    /* So that a flag that would switch it off exceeds a bound, like any other flag. */
    policy->maxima[POLICY_JOURNAL] = required;
    return 0;
}

/* Variables that a file passes or sets must be in every list of allowed ones. */
static int settle_environment(struct policy *policy, struct carrel_error *err)
{
    static const enum policy_key keys[] = { POLICY_ENV_PASS, POLICY_ENV_SET };

    for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
        const struct policy_value *value = policy->values[keys[i]];
        for (size_t j = 0; value->list && value->list[j]; j++) {
            char here[JOIN_PLACE_MAX];
            const char *name =
                    arena_copy(&policy->arena, value->list[j], strcspn(value->list[j], "="));
            if (!name)
                return err_set_errno(err, -ENOMEM, "policy");
            int r = policy_check_item(
                    policy, POLICY_ENV_ALLOW, name, false, policy_key_name(keys[i]), err);
            if (r < 0)
                return err_wrap(err, r, "%s",
                        policy_position_text(&value->position, here, sizeof(here)));
        }
    }
    return 0;
}

int join_documents(struct policy *policy, struct carrel_error *err)
{
    static const struct policy_value unset;
    const struct document_values *lowest =
            policy->n_documents > 0 ? policy->documents[0] : NULL;

    for (enum policy_key key = 0; key < POLICY_KEYS; key++) {
        const struct policy_value *own = policy->base ? &policy->base->values[key] : NULL;
        policy->values[key] = own && own->is_set ? own : &key_row(key)->built_in;
        policy->maxima[key] = &unset;
    }
    int r = join_maxima(policy, err);
    if (r == 0 && lowest && lowest->authority == POLICY_OF_REPOSITORY)
        r = repository_join(policy, lowest, err);
    if (r == 0)
        r = join_lists(policy, err);
    return r < 0 ? r : hold_values(policy, err);
}

int join_settle(struct policy *policy, struct carrel_error *err)
{
    int r = hold_values(policy, err);

    if (r == 0)
        r = settle_isolation(policy, err);
    if (r == 0)
        r = settle_journal(policy, err);
    return r < 0 ? r : settle_environment(policy, err);
}
