/*
 * join_fixture.h - policies from texts instead of files, so that no privilege is needed: what
 * policy_load() does once it has read them.
 */
#pragma once
#include "base/err.h"
#include "harness.h"
#include "policy/document.h"
#include "policy/environment.h"
#include "policy/join.h"
#include <errno.h>

/* NULL: no such file. */
struct texts {
    const char *repository, *named, *user, *system;
    const char *profile;
    const char *const *environment;
};

static struct carrel_error err;

static inline int add(struct policy *policy, const char *text, const char *name,
        enum policy_authority authority, const char *profile)
{
    struct document document;
    struct document_values *given = NULL;

    int r = document_read(&policy->arena, text, strlen(text), name, &document, &err);
    if (r == 0)
        r = document_read_values(&document, &policy->arena, authority,
                profile && document_has_profile(&document, profile) ? profile : NULL, &given,
                &err);
    if (r < 0)
        return r;
    policy->documents[policy->n_documents++] = given;
    if (authority != POLICY_OF_REPOSITORY && !policy->base)
        policy->base = given;
    return 0;
}

static inline int join(const struct texts *texts, struct policy **out)
{
    AUTO(policy_free) struct policy *policy = calloc(1, sizeof(*policy));
    int r = 0;

    CHECK(policy);
    if (texts->repository)
        r = add(policy, texts->repository, "carrel.yaml", POLICY_OF_REPOSITORY, texts->profile);
    if (r == 0 && texts->named)
        r = add(policy, texts->named, "named.yaml", POLICY_OF_USER, texts->profile);
    if (r == 0 && texts->user)
        r = add(policy, texts->user, "user.yaml", POLICY_OF_USER, texts->profile);
    if (r == 0 && texts->system)
        r = add(policy, texts->system, "system.yaml", POLICY_OF_SYSTEM, texts->profile);
    if (r == 0)
        r = join_documents(policy, &err);
    if (r == 0)
        r = environment_join(policy, texts->environment, &err);
    if (r == 0)
        r = join_settle(policy, &err);
    if (r == 0)
        r = join_hash(policy, &err);
    if (r == 0)
        *out = ptr_steal(&policy);
    return r;
}

/* JOINED(.user = "..."): a policy that must be valid. */
static inline struct policy *joined(const struct texts *texts)
{
    struct policy *policy = NULL;
    int r = join(texts, &policy);

    if (r < 0)
        test_fail(__FILE__, __LINE__, "refused: %s", err.message);
    return policy;
}
#define JOINED(...) joined(&(struct texts){ __VA_ARGS__ })

/* REFUSED(message, .user = "..."): the beginning of the message, and -EPERM. */
static inline void refused(int line, const char *message, const struct texts *texts)
{
    AUTO(policy_free) struct policy *policy = NULL;
    int r = join(texts, &policy);

    if (r >= 0)
        test_fail(__FILE__, line, "%s", "not refused");
    if (strncmp(err.message, message, strlen(message)) != 0)
        test_fail(__FILE__, line, "said: %s", err.message);
    test_check_eq(__FILE__, line, "code", r, -EPERM);
}
#define REFUSED(message, ...) refused(__LINE__, message, &(struct texts){ __VA_ARGS__ })

static inline const char *place(const struct policy_value *value)
{
    static char text[JOIN_PLACE_MAX];

    return policy_position_text(&value->position, text, sizeof(text));
}
