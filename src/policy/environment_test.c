/* environment_test.c - the variables of orchestrators. */
#include "policy/join_fixture.h"

TEST(the_environment_is_over_files_and_under_maxima)
{
    const char *const environment[] = { "SANDBOX_TIMEOUT_SEC=1.5", "DOCKER_MEMORY_LIMIT=512m",
        "DOCKER_CPU_LIMIT=1.5", "SANDBOX_MAX_OUTPUT_KB=20", "SANDBOX_STORE_CODE=always",
        "SANDBOX_BLOCK_DANGEROUS_IMPORTS=true", "SANDBOX_TYPE=docker", NULL };
    AUTO(policy_free)
    struct policy *policy =
            JOINED(.user = "sandbox: {limits: {timeout: 10s}}", .environment = environment);

    CHECK_EQ(policy_get(policy, POLICY_TIMEOUT)->number, 1500);
    CHECK_EQ(policy_get(policy, POLICY_MEMORY)->number, 512U << 20);
    CHECK_EQ(policy_get(policy, POLICY_CPU)->number, 1500);
    CHECK_EQ(policy_get(policy, POLICY_OUTPUT)->number, 20480);
    CHECK_EQ(policy_get(policy, POLICY_STORE_CODE)->number, POLICY_STORE_ALWAYS);
    CHECK_EQ(policy_get(policy, POLICY_IMPORTS_MODE)->number, POLICY_IMPORTS_BLOCKED);
    CHECK_STR(policy_get(policy, POLICY_TYPE)->text, "docker");
    CHECK_STR(place(policy_get(policy, POLICY_TYPE)), "environment SANDBOX_TYPE");
    REFUSED("environment SANDBOX_TIMEOUT_SEC: sandbox.limits.timeout 1.5s is more than the "
            "maximum 1s of carrel.yaml:1:39",
            .repository = "sandbox: {limits: {timeout: {maximum: 1s}}}",
            .environment = environment);
}

TEST(not_to_block_imports_is_to_warn)
{
    const char *const environment[] = { "SANDBOX_BLOCK_DANGEROUS_IMPORTS=0", NULL };

    AUTO(policy_free)
    struct policy *blocked =
            JOINED(.user = "python: {imports: {mode: block}}", .environment = environment);
    CHECK_STR(policy_get(blocked, POLICY_IMPORTS_MODE)->text, "warn");
    AUTO(policy_free)
    struct policy *off =
            JOINED(.user = "python: {imports: {mode: off}}", .environment = environment);
    CHECK_STR(policy_get(off, POLICY_IMPORTS_MODE)->text, "off");
    REFUSED("environment SANDBOX_BLOCK_DANGEROUS_IMPORTS: python.imports.mode warn is looser",
            .user = "python: {imports: {mode: {maximum: block}}}", .environment = environment);
}

TEST(an_invalid_variable_is_an_error)
{
    static const struct {
        const char *entry;
        const char *said;
    } cases[] = {
        { "SANDBOX_TYPE=dcoker",
                "environment SANDBOX_TYPE: 'dcoker' is not a runtime such as local (did you "
                "mean 'docker'?)" },
        { "SANDBOX_TYPE=", "environment SANDBOX_TYPE: is empty; expected a runtime such as" },
        { "SANDBOX_TIMEOUT_SEC=10s",
                "environment SANDBOX_TIMEOUT_SEC: '10s' is not a number of seconds" },
        { "SANDBOX_TIMEOUT_SEC=-1", "environment SANDBOX_TIMEOUT_SEC: '-1' is not a number" },
        { "SANDBOX_TIMEOUT_SEC=0", "environment SANDBOX_TIMEOUT_SEC: must be more than 0" },
        { "SANDBOX_TIMEOUT_SEC=99999999999999999999",
                "environment SANDBOX_TIMEOUT_SEC: '99999999999999999999' is not a number" },
        { "SANDBOX_MAX_OUTPUT_KB=1.5",
                "environment SANDBOX_MAX_OUTPUT_KB: '1.5' is not a number of kilobytes" },
        { "SANDBOX_MAX_OUTPUT_KB=2000000",
                "environment SANDBOX_MAX_OUTPUT_KB: may not be more than 1G" },
        { "SANDBOX_BLOCK_DANGEROUS_IMPORTS=maybe",
                "environment SANDBOX_BLOCK_DANGEROUS_IMPORTS: 'maybe' is not true or false" },
        { "SANDBOX_STORE_CODE=sometimes",
                "environment SANDBOX_STORE_CODE: 'sometimes' is not one of never, on_error, "
                "always" },
        { "DOCKER_CPU_LIMIT=two", "environment DOCKER_CPU_LIMIT: 'two' is not a number" },
        { "DOCKER_MEMORY_LIMIT=1x", "environment DOCKER_MEMORY_LIMIT: '1x' is not a size" },
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const char *const environment[] = { cases[i].entry, NULL };
        AUTO(policy_free) struct policy *policy = NULL;
        CHECK_EQ(join(&(struct texts){ .environment = environment }, &policy), -EINVAL);
        if (strncmp(err.message, cases[i].said, strlen(cases[i].said)) != 0)
            CHECK_STR(err.message, cases[i].said);
    }
}
