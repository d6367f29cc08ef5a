/* repository_test.c - a repository's file, and what it must not do. */
#include "policy/join_fixture.h"
#include "policy/no_looser.h"
#include "policy/random_policy.h"

TEST(a_repository_may_not_open_anything)
{
    static const struct {
        const char *text;
        const char *said;
    } cases[] = {
        { "sandbox: {network: host}",
                "carrel.yaml:1:20: sandbox.network host: is looser than none (built in)" },
        { "sandbox: {type: process}",
                "carrel.yaml:1:17: sandbox.type process: is looser than local (built in)" },
        { "sandbox: {type: e2b}",
                "carrel.yaml:1:17: sandbox.type e2b: runs on other machines" },
        { "sandbox: {fallback: [docker]}", "carrel.yaml:1:21: sandbox.fallback docker: is not "
                                           "in the list without this file (built in)" },
        { "sandbox: {minimum_isolation: none}",
                "carrel.yaml:1:30: sandbox.minimum_isolation none: is looser than kernel" },
        { "sandbox: {best_effort: [memory]}",
                "carrel.yaml:1:24: sandbox.best_effort memory: is not in" },
        { "sandbox: {limits: {max_concurrent: 1001}}",
                "carrel.yaml:1:36: sandbox.limits.max_concurrent 1001: is looser than 1000" },
        { "sandbox: {limits: {max_queued: 101}}",
                "carrel.yaml:1:32: sandbox.limits.max_queued 101: is looser than 100" },
        { "sandbox: {limits: {queue_time: 61s}}",
                "carrel.yaml:1:32: sandbox.limits.queue_time 61s: is looser than 60s" },
        { "sandbox: {environment: {pass: [AWS_SECRET]}}",
                "carrel.yaml:1:31: sandbox.environment.pass AWS_SECRET: is not in" },
        { "workspace: {dirty: true}",
                "carrel.yaml:1:20: workspace.dirty true: is looser than false (built in)" },
        { "workspace: {include: [.env]}",
                "carrel.yaml:1:22: workspace.include .env: is not in" },
        { "workspace: {on_success: apply}",
                "carrel.yaml:1:25: workspace.on_success apply: is looser than keep" },
        { "python: {interpreter: /workspace/python}",
                "carrel.yaml:1:23: python.interpreter /workspace/python: is a path" },
        { "python: {imports: {mode: off}}",
                "carrel.yaml:1:26: python.imports.mode off: is looser than warn" },
        { "output: {file_max: 1G}",
                "carrel.yaml:1:20: output.file_max 1G: is looser than 64M" },
        { "journal: {enabled: false}",
                "carrel.yaml:1:20: journal.enabled false: is looser than true (built in)" },
        { "journal: {max_bytes: 1G}", "carrel.yaml:1:22: journal.max_bytes 1G: is looser" },
        { "journal: {key: /tmp/key}",
                "carrel.yaml:1:16: journal.key /tmp/key: cannot be set by a repository" },
        { "journal: {sign: false}",
                "carrel.yaml:1:17: journal.sign false: cannot be set by a repository" },
        { "journal: {fsync: never}",
                "carrel.yaml:1:18: journal.fsync never: cannot be set by a repository" },
        { "artifacts: {store_code: never}",
                "carrel.yaml:1:25: artifacts.store_code never: is looser than on_error" },
        { "artifacts: {max_bytes: 1K}",
                "carrel.yaml:1:24: artifacts.max_bytes 1K: cannot be set by a repository" },
        { "artifacts: {max_age: 1s}",
                "carrel.yaml:1:22: artifacts.max_age 1s: cannot be set by a repository" },
        { "monitor: {memory: 99}", "carrel.yaml:1:19: monitor.memory 99: is looser than 90" },
        { "prices: {run: 0}", "carrel.yaml:1:15: prices.run 0: cannot be set by a repository" },
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        REFUSED(cases[i].said, .repository = cases[i].text);
        /* The same text, named with --policy. */
        AUTO(policy_free) struct policy *policy = NULL;
        int r = join(&(struct texts){ .named = cases[i].text }, &policy);
        CHECK(r == 0 || strstr(cases[i].text, "minimum_isolation: none"));
    }
}

TEST(a_refusal_says_what_to_do)
{
    REFUSED("carrel.yaml:1:20: sandbox.network host: is looser than none (built in); a policy "
            "found in a repository may only tighten: put it into your own policy, or name this "
            "file with --policy to vouch for it",
            .repository = "sandbox: {network: host}");
}

TEST(a_repository_may_tighten)
{
    AUTO(policy_free)
    struct policy *policy =
            JOINED(.repository = "sandbox:\n"
                                 "  network: none\n"
                                 "  minimum_isolation: kernel\n"
                                 "  require: [landlock]\n"
                                 "  limits: {memory: 8G, timeout: 1h}\n"
                                 "  environment: {set: {CI: '1'}, allow: [CI]}\n"
                                 "python: {interpreter: python3.12,\n"
                                 "  imports: {mode: block, block: [requests]}, allow_trusted: "
                                 "false}\n"
                                 "journal: {required: true}\n"
                                 "artifacts: {store_code: always}\n"
                                 "workspace: {enabled: true, setup: make deps}\n");
    const char *const *block = policy_get(policy, POLICY_IMPORTS_BLOCK)->list;
    size_t n = 0;

    CHECK_EQ(policy_get(policy, POLICY_MEMORY)->number, 8ULL << 30);
    CHECK_STR(block[0], "os");
    while (block[n])
        n++;
    CHECK_STR(block[n - 1], "requests");
    CHECK_EQ(policy_check_item(policy, POLICY_ENV_ALLOW, "PATH", false, "--env PATH", &err),
            -EPERM);
}

TEST(a_user_s_value_binds_a_repository_unless_there_is_a_maximum)
{
    REFUSED("carrel.yaml:1:28: sandbox.limits.memory 2G: is looser than 1G (user.yaml:1:28)",
            .repository = "sandbox: {limits: {memory: 2G}}",
            .user = "sandbox: {limits: {memory: 1G}}");
    REFUSED("carrel.yaml:1:28: sandbox.limits.memory 2G: is looser than 1G (user.yaml:1:28)",
            .repository = "sandbox: {limits: {memory: 2G}}",
            .user = "sandbox: {limits: {memory: 1G}}",
            .system = "sandbox: {limits: {memory: {maximum: 4G}}}");
    AUTO(policy_free)
    struct policy *policy =
            JOINED(.repository = "sandbox: {limits: {memory: 2G}, network: host}",
                    .user = "sandbox: {limits: {memory: {default: 1G, maximum: 2G}}}",
                    .system = "sandbox: {network: {maximum: host}}");
    CHECK_EQ(policy_get(policy, POLICY_MEMORY)->number, 2ULL << 30);
    CHECK_STR(policy_get(policy, POLICY_NETWORK)->text, "host");
}

TEST(a_repository_may_not_change_a_variable_that_is_set)
{
    REFUSED("carrel.yaml:1:30: sandbox.environment.set PROXY=evil: the variable has another "
            "value at user.yaml:1:30",
            .repository = "sandbox: {environment: {set: {PROXY: evil}}}",
            .user = "sandbox: {environment: {set: {PROXY: good}}}");
    AUTO(policy_free)
    struct policy *policy = JOINED(.repository = "sandbox: {environment: {set: {B: 2}}}",
            .user = "sandbox: {environment: {set: {A: 1}}}");
    CHECK_STR(policy_get(policy, POLICY_ENV_SET)->list[0], "A=1");
    CHECK_STR(policy_get(policy, POLICY_ENV_SET)->list[1], "B=2");
}

TEST(a_repository_may_pass_on_less)
{
    AUTO(policy_free)
    struct policy *policy = JOINED(.repository = "sandbox: {environment: {pass: [LC_ALL]}}",
            .user = "sandbox: {environment: {pass: [LC_*, HOME]}}");

    CHECK_STR(policy_get(policy, POLICY_ENV_PASS)->list[0], "LC_ALL");
    CHECK(!policy_get(policy, POLICY_ENV_PASS)->list[1]);
}

TEST(a_repository_may_name_what_a_higher_file_names)
{
    AUTO(policy_free)
    struct policy *policy = JOINED(.repository = "sandbox: {type: e2b, fallback: [local]}",
            .user = "sandbox: {type: local, fallback: [e2b, local]}");

    CHECK_STR(policy_get(policy, POLICY_TYPE)->text, "e2b");
}

TEST(no_file_of_a_repository_opens_what_is_closed_without_it)
{
    uint64_t state = 0x9e3779b97f4a7c15;
    unsigned n_joined = 0;
    unsigned n_refused = 0;

    for (unsigned i = 0; i < 20000; i++) {
        AUTO(buf_finish) struct buf user = BUF_INIT(64U << 10);
        AUTO(buf_finish) struct buf repository = BUF_INIT(64U << 10);
        AUTO(policy_free) struct policy *without = NULL;
        AUTO(policy_free) struct policy *with = NULL;
        add_random_policy(&user, 8, &state);
        add_random_policy(&repository, 16, &state);
        buf_add_str(&user, "\n");
        buf_add_str(&repository, "\n");
        int r = join(&(struct texts){ .user = user.data }, &without);
        if (r < 0 && r != -EPERM) /* bounds may conflict; no other error is acceptable */
            test_fail(__FILE__, __LINE__, "%s\n%s", err.message, user.data);
        if (r < 0)
            continue;
        r = join(&(struct texts){ .user = user.data, .repository = repository.data }, &with);
        if (r < 0 && r != -EPERM)
            test_fail(__FILE__, __LINE__, "%s\n%s", err.message, repository.data);
        n_joined += r == 0;
        n_refused += r < 0;
        for (enum policy_key key = 0; r == 0 && key < POLICY_KEYS; key++)
            if (!is_no_looser(with, without, key))
                test_fail(__FILE__, __LINE__, "%s is looser:\n%s---\n%s", policy_key_name(key),
                        user.data, repository.data);
    }
    CHECK(n_joined > 1000);
    CHECK(n_refused > 1000);
}
