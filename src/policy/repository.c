/* repository.c - one rule for each kind of row in the table. */
#include "policy/repository.h"
#include "base/err.h"
#include "policy/keys.h"
#include "policy/value.h"
#include <errno.h>
#include <stdio.h>

#define REMEDY                                                                                 \
    "a policy found in a repository may only tighten: put it into your own policy, or name "   \
    "this file with --policy to vouch for it"

/* "FILE:LINE:COLUMN: KEY WORD: WHY; REMEDY" */
static int refuse(enum policy_key key, const struct policy_value *value, const char *word,
        const char *why, struct carrel_error *err)
{
    char here[JOIN_PLACE_MAX];

    return err_set(err, -EPERM, "%s: %s %s: %s; %s",
            policy_position_text(&value->position, here, sizeof(here)), policy_key_name(key),
            word, why, REMEDY);
}

/* As above, with the tighter value and its position. */
static int refuse_looser(enum policy_key key, const struct policy_value *value,
        const struct policy_value *rest, struct carrel_error *err)
{
    char there[JOIN_PLACE_MAX];
    char why[JOIN_PLACE_MAX + 64];

    (void)snprintf(why, sizeof(why), "is looser than %s (%s)", rest->text,
            policy_position_text(&rest->position, there, sizeof(there)));
    return refuse(key, value, value->text, why, err);
}

static int tighten(const struct policy *policy, enum policy_key key,
        const struct policy_value *value, struct carrel_error *err)
{
    const struct policy_value *rest = policy->values[key];

    /* The tightest end of what becomes of a run's work throws it away. */
    if (key == POLICY_ON_SUCCESS && value->number == 0 && rest->number != 0)
        return refuse(key, value, value->text, "would throw work away", err);
    return rest->is_set && key_is_looser(key, value->number, rest->number)
                   ? refuse_looser(key, value, rest, err)
                   : 0;
}

/* Less isolation is looser; so is a remote machine, which sees the code. */
static int tighten_type(
        const struct policy *policy, const struct policy_value *value, struct carrel_error *err)
{
    const struct policy_value *rest = policy->values[POLICY_TYPE];

    if (strcmp(value->text, rest->text) == 0)
        return 0;
    if (policy_runtime_isolation(value->text) < policy_runtime_isolation(rest->text))
        return refuse_looser(POLICY_TYPE, value, rest, err);
    if (key_runtime_is_remote(value->text) &&
            !value_list_has(policy->values[POLICY_FALLBACK]->list, value->text))
        return refuse(POLICY_TYPE, value, value->text,
                "runs on other machines than the caller chose", err);
    return 0;
}

static int check_subset(const struct policy *policy, enum policy_key key,
        const struct policy_value *value, struct carrel_error *err)
{
    const struct policy_value *rest = policy->values[key];
    char there[JOIN_PLACE_MAX];
    char why[JOIN_PLACE_MAX + 64];

    for (size_t i = 0; value->list[i]; i++) {
        bool is_covered = false;
        for (size_t j = 0; !is_covered && rest->list[j]; j++)
            is_covered = key_covers(key, rest->list[j], value->list[i]);
        if (is_covered)
            continue;
        (void)snprintf(why, sizeof(why), "is not in the list without this file (%s)",
                policy_position_text(&rest->position, there, sizeof(there)));
        return refuse(key, value, value->list[i], why, err);
    }
    return 0;
}

static int check(const struct policy *policy, enum policy_key key,
        const struct policy_value *value, struct carrel_error *err)
{
    switch (key_row(key)->repository) {
    case REPO_TIGHTEN:
        return key == POLICY_TYPE ? tighten_type(policy, value, err)
                                  : tighten(policy, key, value, err);
    case REPO_SUBSET:
        return check_subset(policy, key, value, err);
    case REPO_NEVER:
        return refuse(key, value,
                value->text                     ? value->text
                : value->list && value->list[0] ? value->list[0]
                                                : "",
                "cannot be set by a repository", err);
    case REPO_ADD:
    case REPO_BOUND:
        break;
    }
    return 0;
}

int repository_join(
        struct policy *policy, const struct document_values *given, struct carrel_error *err)
{
    const struct policy_value *values[POLICY_KEYS];

    /* Compare with the policy without the file, whatever the order of its keys. */
    memcpy(values, policy->values, sizeof(values));
    for (enum policy_key key = 0; key < POLICY_KEYS; key++) {
        const struct policy_value *value = &given->values[key];
        if (!value->is_set)
            continue;
        int r = check(policy, key, value, err);
        if (r < 0)
            return r;
        if (key_row(key)->repository != REPO_ADD)
            values[key] = value;
    }
    memcpy(policy->values, values, sizeof(values));
    for (enum policy_key key = 0; key < POLICY_KEYS; key++) {
        bool is_added = given->values[key].is_set && key_row(key)->repository == REPO_ADD;
        int r = is_added ? join_add(policy, key, &given->values[key], err) : 0;
        if (r < 0)
            return r;
    }
    return 0;
}
