#include "base/json.h"
#include "core/python/python_rules.h"
#include "harness.h"
#include "policy/policy.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define LIST(...) ((const char *const[]){ __VA_ARGS__, NULL })

static struct carrel_error err;

/* The policy that a file with this text makes; NULL: what is built in. */
static struct policy *policy_of(const char *text)
{
    struct policy *policy = NULL;
    char path[] = "/tmp/carrel-rules.XXXXXX";

    if (!text) {
        CHECK_EQ(policy_built_in(&policy, &err), 0);
        return policy;
    }
    int fd = mkstemp(path);
    CHECK(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
    (void)close(fd);
    const struct policy_request request = { .file = path,
        .user_file = "/nonexistent/user.yaml",
        .system_file = "/nonexistent/policy.yaml" };
    int r = policy_load(&request, &policy, &err);
    (void)unlink(path);
    CHECK_EQ(r, 0);
    return policy;
}

/* What the guest is told; it stays until the next call. */
static const char *told(const struct carrel_python_options *o, const char *policy_text)
{
    static struct buf out;
    struct policy *policy = policy_of(policy_text);
    struct json json = { .out = &out };

    buf_finish(out);
    out = BUF_INIT(1 << 20);
    json_object(&json, NULL);
    python_rules_write(o, policy, &json);
    json_end_object(&json);
    policy_free(policy);
    return out.data;
}

static int checked(const struct carrel_python_options *o, const char *policy_text)
{
    struct policy *policy = policy_of(policy_text);
    int r = python_rules_check(o, policy, &err);

    policy_free(policy);
    return r;
}

TEST(the_default_warns_of_the_list_that_is_built_in)
{
    struct carrel_python_options o = CARREL_PYTHON_OPTIONS_INIT;
    const char *text = told(&o, NULL);

    CHECK(strstr(text, "{\"mode\":\"warn\",\"block\":[\"os\",\"subprocess\",\"shutil\","
                       "\"socket\",\"pathlib\",\"ctypes\","));
    CHECK(strstr(text, "],\"allow\":null}"));
}

TEST(a_flag_overrides_the_policy_and_trust_overrides_both)
{
    struct carrel_python_options o = CARREL_PYTHON_OPTIONS_INIT;
    static const char policy[] = "python: {imports: {mode: block}}\n";

    CHECK(strstr(told(&o, policy), "\"mode\":\"block\""));
    o.imports = CARREL_IMPORTS_WARN;
    CHECK(strstr(told(&o, policy), "\"mode\":\"warn\""));
    o.imports = CARREL_IMPORTS_BLOCK;
    o.is_trusted = true;
    CHECK(strstr(told(&o, policy), "\"mode\":\"off\""));
    CHECK_EQ(checked(&o, policy), 0);
}

TEST(a_policy_may_refuse_trust)
{
    struct carrel_python_options o = CARREL_PYTHON_OPTIONS_INIT;

    o.is_trusted = true;
    CHECK_EQ(checked(&o, "python: {allow_trusted: false}\n"), -EPERM);
    CHECK(strstr(err.message, "--trusted is not allowed: python.allow_trusted is false in "));
}

TEST(a_list_of_what_is_allowed_replaces_the_one_that_is_built_in)
{
    struct carrel_python_options o = CARREL_PYTHON_OPTIONS_INIT;

    o.allow_imports = LIST("os", "math");
    o.block_imports = LIST("os.path");
    CHECK_STR(told(&o, NULL),
            "{\"mode\":\"warn\",\"block\":[\"os.path\"],\"allow\":[\"os\",\"math\"]}");
    CHECK_STR(told(&o, "python: {imports: {block: [json]}}\n"),
            "{\"mode\":\"warn\",\"block\":[\"json\",\"os.path\"],\"allow\":[\"os\",\"math\"]}");
}

TEST(modules_to_block_are_added_to_the_list)
{
    struct carrel_python_options o = CARREL_PYTHON_OPTIONS_INIT;

    o.block_imports = LIST("json");
    CHECK(strstr(told(&o, NULL), "[\"os\",\"subprocess\","));
    CHECK(strstr(told(&o, NULL), ",\"json\"],\"allow\":null}"));
}

TEST(a_list_of_the_policys_binds_that_of_a_flag)
{
    struct carrel_python_options o = CARREL_PYTHON_OPTIONS_INIT;
    static const char policy[] = "python: {imports: {allow: [math, json]}}\n";

    CHECK_STR(
            told(&o, policy), "{\"mode\":\"warn\",\"block\":[],\"allow\":[\"math\",\"json\"]}");
    o.allow_imports = LIST("math");
    CHECK_EQ(checked(&o, policy), 0);
    o.allow_imports = LIST("math", "os");
    CHECK_EQ(checked(&o, policy), -EPERM);
    CHECK(strstr(err.message, "--allow-import os"));
}
