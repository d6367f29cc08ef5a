/* python_rules.h - which modules a Python program may import, and what happens if it does more.
 */
#pragma once
#include <carrel/python.h>

struct json;
struct policy;

/* Whether the policy lets the caller ask for this. -EPERM with both places. */
int python_rules_check(const struct carrel_python_options *options, const struct policy *policy,
        struct carrel_error *err);

/* The mode that the options and the policy make together; never CARREL_IMPORTS_DEFAULT. */
enum carrel_imports python_rules_mode(
        const struct carrel_python_options *options, const struct policy *policy);

/* Writes mode, block and allow, as the guest reads them, into an open object. */
void python_rules_write(const struct carrel_python_options *options,
        const struct policy *policy, struct json *json);
