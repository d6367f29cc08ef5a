/* python_rules.c - the policy's lists, and what the caller makes of them. */
#include "core/python/python_rules.h"
#include "base/json.h"
#include "policy/policy.h"
#include <stdio.h>

static const char *const mode_names[] = {
    [CARREL_IMPORTS_OFF] = "off",
    [CARREL_IMPORTS_WARN] = "warn",
    [CARREL_IMPORTS_BLOCK] = "block",
};

static uint64_t number_of(enum carrel_imports mode)
{
    switch (mode) {
    case CARREL_IMPORTS_OFF:
        return POLICY_IMPORTS_OFF;
    case CARREL_IMPORTS_BLOCK:
        return POLICY_IMPORTS_BLOCKED;
    case CARREL_IMPORTS_WARN:
    case CARREL_IMPORTS_DEFAULT:
        break;
    }
    return POLICY_IMPORTS_WARN;
}

int python_rules_check(const struct carrel_python_options *o, const struct policy *policy,
        struct carrel_error *err)
{
    char flag[256];
    int r = 0;

    if (o->is_trusted)
        r = policy_check_number(policy, POLICY_ALLOW_TRUSTED, true, "--trusted", err);
    if (r == 0 && o->imports != CARREL_IMPORTS_DEFAULT) {
        (void)snprintf(flag, sizeof(flag), "--imports %s", mode_names[o->imports]);
        r = policy_check_number(policy, POLICY_IMPORTS_MODE, number_of(o->imports), flag, err);
    }
    for (size_t i = 0; r == 0 && o->allow_imports && o->allow_imports[i]; i++) {
        (void)snprintf(flag, sizeof(flag), "--allow-import %s", o->allow_imports[i]);
        r = policy_check_item(
                policy, POLICY_IMPORTS_ALLOW, o->allow_imports[i], false, flag, err);
    }
    return r;
}

enum carrel_imports python_rules_mode(
        const struct carrel_python_options *o, const struct policy *policy)
{
    if (o->is_trusted)
        return CARREL_IMPORTS_OFF;
    if (o->imports != CARREL_IMPORTS_DEFAULT)
        return o->imports;
    switch (policy_get(policy, POLICY_IMPORTS_MODE)->number) {
    case POLICY_IMPORTS_OFF:
        return CARREL_IMPORTS_OFF;
    case POLICY_IMPORTS_BLOCKED:
        return CARREL_IMPORTS_BLOCK;
    default:
        return CARREL_IMPORTS_WARN;
    }
}

static void write_list(struct json *json, const char *const *list)
{
    for (; list && *list; list++)
        json_str(json, NULL, *list);
}

void python_rules_write(
        const struct carrel_python_options *o, const struct policy *policy, struct json *json)
{
    const struct policy_value *block = policy_get(policy, POLICY_IMPORTS_BLOCK);
    const struct policy_value *allow = policy_get(policy, POLICY_IMPORTS_ALLOW);
    bool has_allow = o->allow_imports || allow->is_set;

    json_str(json, "mode", mode_names[python_rules_mode(o, policy)]);
    json_array(json, "block");
    /* An explicit list of allowed modules replaces the built-in one. */
    if (!has_allow || block->position.authority != POLICY_BUILT_IN)
        write_list(json, block->list);
    write_list(json, o->block_imports);
    json_end_array(json);
    if (!has_allow) {
        json_null(json, "allow");
        return;
    }
    json_array(json, "allow");
    write_list(json, o->allow_imports ? o->allow_imports : allow->list);
    json_end_array(json);
}
