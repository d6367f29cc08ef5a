/*
 * policy_fuzz.c - a policy file with arbitrary bytes; and, if a byte 0x1e separates them, a
 * user's file and a repository's. The second must not loosen anything that the first restricts.
 */
#include "base/err.h"
#include "fuzz.h"
#include "policy/document.h"
#include "policy/join.h"
#include "policy/no_looser.h"

#define SEPARATOR 0x1e /* no policy has it */

static int add(struct policy *policy, const char *text, size_t len, enum policy_authority whose,
        struct carrel_error *err)
{
    struct document document;
    struct document_values *own = NULL;

    int r = document_read(&policy->arena, text, len, "fuzz", &document, err);
    if (r == 0)
        r = document_read_values(&document, &policy->arena, whose, NULL, &own, err);
    if (r < 0)
        return r;
    policy->documents[policy->n_documents++] = own;
    if (whose == POLICY_OF_USER)
        policy->base = own;
    return 0;
}

/* The user's file, with the repository's below it if `repository` is not NULL. */
static struct policy *join(
        const char *user, size_t user_len, const char *repository, size_t len)
{
    struct carrel_error err = { 0 };
    struct policy *policy = calloc(1, sizeof(*policy));
    int r = policy ? 0 : -1;

    if (r == 0 && repository)
        r = add(policy, repository, len, POLICY_OF_REPOSITORY, &err);
    if (r == 0)
        r = add(policy, user, user_len, POLICY_OF_USER, &err);
    if (r == 0)
        r = join_documents(policy, &err);
    if (r == 0)
        r = join_settle(policy, &err);
    if (r == 0)
        r = join_hash(policy, &err);
    if (r == 0)
        return policy;
    if (policy && !err.message[0])
        abort();
    policy_free(policy);
    return NULL;
}

static void compare(const char *user, size_t user_len, const char *repository, size_t len)
{
    AUTO(policy_free) struct policy *without = join(user, user_len, NULL, 0);
    AUTO(policy_free)
    struct policy *with = without ? join(user, user_len, repository, len) : NULL;

    for (enum policy_key key = 0; with && key < POLICY_KEYS; key++)
        if (!is_no_looser(with, without, key))
            abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data;
    const char *separator = size > 0 ? memchr(text, SEPARATOR, size) : NULL;
    struct carrel_error err = { 0 };

    int r = policy_check(text, size, "fuzz", &err);
    if (r > 0 || (r < 0 && (err.code != r || !err.message[0])))
        abort();
    if (separator)
        compare(text, (size_t)(separator - text), separator + 1,
                size - (size_t)(separator - text) - 1);
    return 0;
}
