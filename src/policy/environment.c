/* environment.c - one row for each variable. */
#include "policy/environment.h"
#include "base/err.h"
#include "base/str.h"
#include "policy/value.h"
#include <errno.h>
#include <stdio.h>

/* Translates the value of a variable into the text of a policy file. */
typedef int translate(const struct policy *policy, const char *value, char text[static 64],
        struct carrel_error *err);

static int as_it_is(const struct policy *policy, const char *value, char text[static 64],
        struct carrel_error *err)
{
    (void)policy;
    if (strlen(value) >= 64)
        return err_set(err, -EINVAL, "is too long");
    (void)strcpy(text, value);
    return 0;
}

static int as_seconds(const struct policy *policy, const char *value, char text[static 64],
        struct carrel_error *err)
{
    char shown[64];
    char number[32];
    uint64_t milli;

    (void)policy;
    if (str_parse_milli(value, &milli, NULL) < 0)
        return err_set(err, -EINVAL,
                "'%s' is not a number of seconds; expected one such as 30 or 1.5",
                str_escape(value, strlen(value), shown, sizeof(shown)));
    (void)snprintf(text, 64, "%ss", str_milli(milli, number));
    return 0;
}

static int as_kilobytes(const struct policy *policy, const char *value, char text[static 64],
        struct carrel_error *err)
{
    char shown[64];
    uint64_t count;

    (void)policy;
    if (str_parse_u64(value, &count) < 0)
        return err_set(err, -EINVAL,
                "'%s' is not a number of kilobytes; expected one such as 10",
                str_escape(value, strlen(value), shown, sizeof(shown)));
    (void)snprintf(text, 64, "%juK", (uintmax_t)count);
    return 0;
}

/* "false" only asks not to block: a policy that warns, or does not inspect, stays unchanged. */
static int as_import_mode(const struct policy *policy, const char *value, char text[static 64],
        struct carrel_error *err)
{
    const struct policy_value *mode = policy->values[POLICY_IMPORTS_MODE];
    char shown[64];
    bool is_blocked = strcmp(value, "1") == 0;

    if (!is_blocked && strcmp(value, "0") != 0 && !value_parse_bool(value, &is_blocked))
        return err_set(err, -EINVAL, "'%s' is not true or false",
                str_escape(value, strlen(value), shown, sizeof(shown)));
    if (is_blocked)
        (void)strcpy(text, "block");
    else
        (void)strcpy(text, mode->number == POLICY_IMPORTS_OFF ? "off" : "warn");
    return 0;
}

static const struct {
    const char *name;
    enum policy_key key;
    translate *translate;
} rows[] = {
    { "SANDBOX_TYPE", POLICY_TYPE, as_it_is },
    { "SANDBOX_TIMEOUT_SEC", POLICY_TIMEOUT, as_seconds },
    { "SANDBOX_MAX_OUTPUT_KB", POLICY_OUTPUT, as_kilobytes },
    { "SANDBOX_BLOCK_DANGEROUS_IMPORTS", POLICY_IMPORTS_MODE, as_import_mode },
    { "SANDBOX_STORE_CODE", POLICY_STORE_CODE, as_it_is },
    { "DOCKER_CPU_LIMIT", POLICY_CPU, as_it_is },
    { "DOCKER_MEMORY_LIMIT", POLICY_MEMORY, as_it_is },
};

const char *environment_get(const char *const *environment, const char *name)
{
    size_t len = strlen(name);

    for (size_t i = 0; environment && environment[i]; i++)
        if (strncmp(environment[i], name, len) == 0 && environment[i][len] == '=')
            return environment[i] + len + 1;
    return NULL;
}

bool environment_is_read(const char *variable)
{
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        size_t len = strlen(rows[i].name);
        if (strncmp(variable, rows[i].name, len) == 0 && variable[len] == '=')
            return true;
    }
    return false;
}

static int take(struct policy *policy, size_t row, const char *text, struct carrel_error *err)
{
    struct policy_value value;
    char translated[64];
    char expected[160];

    if (!text[0])
        return err_set(err, -EINVAL, "is empty; expected %s, or no such variable",
                key_expected(rows[row].key, expected, sizeof(expected)));
    int r = rows[row].translate(policy, text, translated, err);
    const char *kept =
            r < 0 ? NULL : arena_copy(&policy->arena, translated, strlen(translated));
    if (r == 0 && !kept)
        r = err_set_errno(err, -ENOMEM, "policy");
    if (r == 0)
        r = value_parse(rows[row].key, kept, &value, err);
    if (r < 0)
        return r;
    value.position = (struct policy_position){ .authority = POLICY_OF_ENVIRONMENT,
        .name = rows[row].name };
    return join_value(policy, rows[row].key, &value, err);
}

int environment_join(
        struct policy *policy, const char *const *environment, struct carrel_error *err)
{
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const char *text = environment_get(environment, rows[i].name);
        int r = text ? take(policy, i, text, err) : 0;
        if (r < 0)
            return err_wrap(err, r, "environment %s", rows[i].name);
    }
    return 0;
}
