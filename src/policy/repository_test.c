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
        { "sandbox: {limits: {memory: 1000G}}", "carrel.yaml:1:28: sandbox.limits.memory "
                                                "1000G: is looser than 512M (built in)" },
        { "sandbox: {limits: {cpu: 64}}",
                "carrel.yaml:1:25: sandbox.limits.cpu 64: is looser than 1.0 (built in)" },
        { "sandbox: {limits: {timeout: 300d}}",
                "carrel.yaml:1:29: sandbox.limits.timeout 300d: is looser than 300s" },
        { "sandbox: {limits: {max_concurrent: 1001}}",
                "carrel.yaml:1:36: sandbox.limits.max_concurrent 1001: is looser than 1000" },
        { "sandbox: {limits: {max_queued: 101}}",
                "carrel.yaml:1:32: sandbox.limits.max_queued 101: is looser than 100" },
        { "sandbox: {limits: {queue_time: 61s}}",
                "carrel.yaml:1:32: sandbox.limits.queue_time 61s: is looser than 60s" },
        { "sandbox: {environment: {pass: [AWS_SECRET]}}",
                "carrel.yaml:1:31: sandbox.environment.pass AWS_SECRET: is not in" },
        { "sandbox: {environment: {set: {LD_PRELOAD: /workspace/x.so}}}",
                "carrel.yaml:1:30: sandbox.environment.set" },
        { "sandbox: {hostname: x}",
                "carrel.yaml:1:21: sandbox.hostname x: cannot be set by a repository" },
        { "workspace: {enabled: true}",
                "carrel.yaml:1:22: workspace.enabled true: is looser than false (built in)" },
        { "workspace: {setup: make}",
                "carrel.yaml:1:20: workspace.setup make: cannot be set by a repository" },
        { "workspace: {setup_keys: [a]}", "carrel.yaml:1:25: workspace.setup_keys" },
        { "workspace: {tree: copy}",
                "carrel.yaml:1:19: workspace.tree copy: cannot be set by a repository" },
        { "workspace: {on_failure: discard}", "carrel.yaml:1:25: workspace.on_failure discard: "
                                              "cannot be set by a repository" },
        { "workspace: {on_success: discard}",
                "carrel.yaml:1:25: workspace.on_success discard: would throw work away" },
        { "output: {max: 1G}", "carrel.yaml:1:15: output.max 1G: is looser than 10K" },
        { "workspace: {dirty: true}",
                "carrel.yaml:1:20: workspace.dirty true: is looser than false (built in)" },
        { "workspace: {include: [.env]}",
                "carrel.yaml:1:22: workspace.include .env: is not in" },
        { "workspace: {on_success: apply}",
                "carrel.yaml:1:25: workspace.on_success apply: is looser than keep" },
        { "python: {interpreter: cat}",
                "carrel.yaml:1:23: python.interpreter cat: cannot be set by a repository" },
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
                                 "  limits: {memory: 64M, timeout: 1m}\n"
                                 "  environment: {allow: [CI]}\n"
                                 "python: {imports: {mode: block, block: [requests]}, "
                                 "allow_trusted: "
                                 "false}\n"
                                 "journal: {required: true}\n"
                                 "artifacts: {store_code: always}\n"
                                 "workspace: {enabled: false, on_success: keep}\n");
    const char *const *block = policy_get(policy, POLICY_IMPORTS_BLOCK)->list;
    size_t n = 0;

    CHECK_EQ(policy_get(policy, POLICY_MEMORY)->number, 64ULL << 20);
    CHECK_STR(block[0], "os");
    while (block[n])
        n++;
    CHECK_STR(block[n - 1], "requests");
    CHECK_EQ(policy_check_item(policy, POLICY_ENV_ALLOW, "PATH", false, "--env PATH", &err),
            -EPERM);
}

TEST(a_value_binds_a_repository_even_where_a_maximum_is_higher)
{
    REFUSED("carrel.yaml:1:28: sandbox.limits.memory 2G: is looser than 1G (user.yaml:1:28)",
            .repository = "sandbox: {limits: {memory: 2G}}",
            .user = "sandbox: {limits: {memory: 1G}}");
    REFUSED("carrel.yaml:1:28: sandbox.limits.memory 2G: is looser than 1G (user.yaml:1:38)",
            .repository = "sandbox: {limits: {memory: 2G}}",
            .user = "sandbox: {limits: {memory: {default: 1G, maximum: 4G}}}");
    REFUSED("carrel.yaml:1:20: sandbox.network host: is looser than none (built in)",
            .repository = "sandbox: {network: host}",
            .system = "sandbox: {network: {maximum: host}}");
    AUTO(policy_free)
    struct policy *policy = JOINED(.repository = "sandbox: {limits: {memory: 1G}}",
            .user = "sandbox: {limits: {memory: {default: 2G, maximum: 4G}}}");
    CHECK_EQ(policy_get(policy, POLICY_MEMORY)->number, 1ULL << 30);
}

TEST(a_repository_may_not_set_a_variable)
{
    REFUSED("carrel.yaml:1:30: sandbox.environment.set PROXY=evil: cannot be set by a "
            "repository",
            .repository = "sandbox: {environment: {set: {PROXY: evil}}}");
    REFUSED("carrel.yaml:1:30: sandbox.environment.set A=1: cannot be set by a repository",
            .repository = "sandbox: {environment: {set: {A: 1}}}",
            .user = "sandbox: {environment: {set: {A: 1}}}");
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
