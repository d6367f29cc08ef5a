/* no_looser.h - compares a policy with and without a repository's file. */
#pragma once
#include "policy/keys.h"

/* Every item of `narrow` is covered by one of `wide`. */
static inline bool is_within(
        enum policy_key key, const char *const *narrow, const char *const *wide)
{
    for (size_t i = 0; narrow && narrow[i]; i++) {
        bool is_covered = false;
        for (size_t j = 0; !is_covered && wide && wide[j]; j++)
            is_covered = key_covers(key, wide[j], narrow[i]);
        if (!is_covered)
            return false;
    }
    return true;
}

static inline bool is_no_looser(
        const struct policy *with, const struct policy *without, enum policy_key key)
{
    const struct policy_value *value = policy_get(with, key);
    const struct policy_value *rest = policy_get(without, key);
    const struct policy_value *maximum = policy_maximum(with, key);
    const struct policy_value *above = policy_maximum(without, key);

    if (above->is_set &&
            (!maximum->is_set || key_is_looser(key, maximum->number, above->number)))
        return false;
    switch (key_row(key)->repository) {
    case REPO_TIGHTEN:
        if (key == POLICY_TYPE)
            return policy_runtime_isolation(value->text) >=
                   policy_runtime_isolation(rest->text);
        return !rest->is_set || !key_is_looser(key, value->number, rest->number);
    case REPO_SUBSET:
        return is_within(key, value->list, rest->list);
    case REPO_ADD:
        return is_within(key, rest->list, value->list);
    case REPO_NEVER:
        return value->position.authority != POLICY_OF_REPOSITORY;
    case REPO_BOUND:
        break;
    }
    return true;
}
