/* run_policy_args.c - --policy, --profile, --journal, --store-code. */
#include "cli/args/run_policy_args.h"
#include "base/auto.h"
#include "base/err.h"
#include "base/str.h"
#include "cli/args/run_args.h"
#include <errno.h>

static struct carrel_run_options *options_of(void *target)
{
    return &((struct run_args *)target)->options;
}

int run_take_policy(void *t, const char *v, struct carrel_error *err)
{
    if (!v[0])
        return err_set(err, -EINVAL, "expected a file, such as carrel.yaml, or none");
    options_of(t)->policy = v;
    return 0;
}

int run_take_profile(void *t, const char *v, struct carrel_error *err)
{
    if (!v[0])
        return err_set(err, -EINVAL, "expected the name of a profile in the policy");
    options_of(t)->profile = v;
    return 0;
}

int run_take_journal(void *t, const char *v, struct carrel_error *err)
{
    char shown[64];

    if (strcmp(v, "on") == 0)
        options_of(t)->journal = CARREL_JOURNAL_ON;
    else if (strcmp(v, "off") == 0)
        options_of(t)->journal = CARREL_JOURNAL_OFF;
    else
        return err_set(err, -EINVAL, "'%s' is not on or off",
                str_escape(v, strlen(v), shown, sizeof(shown)));
    return 0;
}

int run_take_store_code(void *t, const char *v, struct carrel_error *err)
{
    static const struct {
        const char *name;
        enum carrel_store store;
    } known[] = { { "never", CARREL_STORE_NEVER }, { "on_error", CARREL_STORE_ON_ERROR },
        { "always", CARREL_STORE_ALWAYS } };
    char shown[64];

    for (size_t i = 0; i < ARRAY_LEN(known); i++) {
        if (strcmp(v, known[i].name) != 0)
            continue;
        options_of(t)->store_code = known[i].store;
        return 0;
    }
    return err_set(err, -EINVAL, "'%s' is not one of never, on_error, always",
            str_escape(v, strlen(v), shown, sizeof(shown)));
}
