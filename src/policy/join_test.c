/* join_test.c - files of three authorities, given as text. */
#include "base/err.h"
#include "harness.h"
#include "policy/document.h"
#include "policy/environment.h"
#include "policy/join.h"
#include <errno.h>

/* What policy_load() does once it has the texts; NULL: no such file. */
struct texts {
    const char *repository, *named, *user, *system;
    const char *profile;
    const char *const *environment;
};

static struct carrel_error err;

static int add(struct policy *policy, const char *text, const char *name,
        enum policy_authority authority, const char *profile)
{
    struct document document;
    struct layer *layer = NULL;

    int r = document_read(&policy->arena, text, strlen(text), name, &document, &err);
    if (r == 0)
        r = document_layer(&document, &policy->arena, authority,
                profile && document_has_profile(&document, profile) ? profile : NULL, &layer,
                &err);
    if (r < 0)
        return r;
    policy->layers[policy->n_layers++] = layer;
    if (authority != POLICY_OF_REPOSITORY && !policy->base)
        policy->base = layer;
    return 0;
}

static int join(const struct texts *texts, struct policy **out)
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
        r = join_layers(policy, &err);
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

/* JOINED(.user = "..."): a policy that must come out. */
static struct policy *joined(const struct texts *texts)
{
    struct policy *policy = NULL;
    int r = join(texts, &policy);

    if (r < 0)
        test_fail(__FILE__, __LINE__, "refused: %s", err.message);
    return policy;
}
#define JOINED(...) joined(&(struct texts){ __VA_ARGS__ })

/* REFUSED(message, .user = "..."): the message, which may go on, and -EPERM. */
static void refused(int line, const char *message, const struct texts *texts)
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

static const char *place(const struct policy_value *value)
{
    static char text[JOIN_PLACE_MAX];

    return policy_place_text(&value->place, text, sizeof(text));
}

/* ---- values ---- */

TEST(without_files_all_is_built_in)
{
    AUTO(policy_free) struct policy *policy = JOINED(0);

    CHECK_EQ(policy_get(policy, POLICY_MEMORY)->number, 512U << 20);
    CHECK_EQ(policy_get(policy, POLICY_TIMEOUT)->number, 300000);
    CHECK_STR(policy_get(policy, POLICY_TYPE)->text, "local");
    CHECK_EQ(policy_get(policy, POLICY_NETWORK)->number, 0);
    CHECK(!policy_get(policy, POLICY_PRICE_RUN)->is_set);
    CHECK(!policy_maximum(policy, POLICY_MEMORY)->is_set);
    CHECK_STR(place(policy_get(policy, POLICY_MEMORY)), "built in");
}

TEST(the_short_form_works)
{
    AUTO(policy_free)
    struct policy *policy =
            JOINED(.user = "sandbox: {enabled: true, type: local, network: false}");

    CHECK_EQ(policy_get(policy, POLICY_ENABLED)->number, 1);
    CHECK_STR(policy_get(policy, POLICY_NETWORK)->text, "none");
    CHECK_STR(place(policy_get(policy, POLICY_NETWORK)), "user.yaml:1:48");
}

TEST(network_true_is_the_host_s)
{
    AUTO(policy_free) struct policy *policy = JOINED(.user = "sandbox: {network: true}");

    CHECK_EQ(policy_get(policy, POLICY_NETWORK)->number, 1);
    CHECK_STR(policy_get(policy, POLICY_NETWORK)->text, "host");
}

TEST(one_file_gives_the_values)
{
    AUTO(policy_free)
    struct policy *policy = JOINED(.user = "sandbox: {limits: {pids: 10}}",
            .system = "sandbox: {limits: {cpu: 2}}");

    CHECK_EQ(policy_get(policy, POLICY_PIDS)->number, 10);
    CHECK_EQ(policy_get(policy, POLICY_CPU)->number, 1000);
}

TEST(what_a_repository_does_not_mention_stays_as_it_is_without_it)
{
    AUTO(policy_free)
    struct policy *policy = JOINED(.repository = "sandbox: {limits: {pids: 5}}",
            .user = "sandbox: {limits: {pids: 10}}\npython: {imports: {mode: block}}");

    CHECK_EQ(policy_get(policy, POLICY_PIDS)->number, 5);
    CHECK_EQ(policy_get(policy, POLICY_IMPORTS_MODE)->number, POLICY_IMPORTS_BLOCKED);
    CHECK_STR(place(policy_get(policy, POLICY_IMPORTS_MODE)), "user.yaml:2:26");
}

/* ---- bounds ---- */

TEST(a_maximum_below_what_is_built_in_lowers_it)
{
    AUTO(policy_free)
    struct policy *policy = JOINED(.user = "sandbox: {limits: {memory: {maximum: 256M}}}");

    CHECK_EQ(policy_get(policy, POLICY_MEMORY)->number, 256U << 20);
    CHECK_STR(policy_get(policy, POLICY_MEMORY)->text, "256M");
    CHECK_STR(place(policy_get(policy, POLICY_MEMORY)), "user.yaml:1:38");
    CHECK_EQ(policy_maximum(policy, POLICY_MEMORY)->number, 256U << 20);
}

TEST(a_repository_s_maximum_lowers_a_user_s_value)
{
    AUTO(policy_free)
    struct policy *policy = JOINED(.repository = "sandbox: {limits: {memory: {maximum: 64M}}}",
            .user = "sandbox: {limits: {memory: 1G}}");

    CHECK_EQ(policy_get(policy, POLICY_MEMORY)->number, 64U << 20);
}

TEST(a_default_above_its_own_maximum_is_refused)
{
    REFUSED("user.yaml:1:38: sandbox.limits.memory 2G is more than the maximum 1G of "
            "user.yaml:1:51",
            .user = "sandbox: {limits: {memory: {default: 2G, maximum: 1G}}}");
}

TEST(a_value_above_a_higher_maximum_is_refused_with_both_places)
{
    REFUSED("carrel.yaml:1:28: sandbox.limits.memory 8G is more than the maximum 2G of "
            "system.yaml:1:38",
            .repository = "sandbox: {limits: {memory: 8G}}",
            .system = "sandbox: {limits: {memory: {maximum: 2G}}}");
    REFUSED("user.yaml:1:28: sandbox.limits.memory 8G is more than the maximum 2G of "
            "system.yaml:1:38",
            .user = "sandbox: {limits: {memory: 8G}}",
            .system = "sandbox: {limits: {memory: {maximum: 2G}}}");
    REFUSED("named.yaml:1:28: sandbox.limits.memory 8G is more than the maximum 2G of "
            "user.yaml:1:38",
            .named = "sandbox: {limits: {memory: 8G}}",
            .user = "sandbox: {limits: {memory: {maximum: 2G}}}");
}

TEST(a_maximum_above_a_higher_maximum_is_refused)
{
    REFUSED("user.yaml:1:38: sandbox.limits.memory 4G is more than the maximum 2G of "
            "system.yaml:1:38",
            .user = "sandbox: {limits: {memory: {maximum: 4G}}}",
            .system = "sandbox: {limits: {memory: {maximum: 2G}}}");
}

TEST(of_several_maxima_the_tightest_counts)
{
    AUTO(policy_free)
    struct policy *policy = JOINED(.repository = "sandbox: {limits: {memory: {maximum: 1G}}}",
            .user = "sandbox: {limits: {memory: {maximum: 2G}}}",
            .system = "sandbox: {limits: {memory: {maximum: 4G}}}");

    CHECK_STR(policy_maximum(policy, POLICY_MEMORY)->text, "1G");
    CHECK_EQ(policy_check_number(policy, POLICY_MEMORY, 1U << 30, "--memory 1G", &err), 0);
    CHECK_EQ(policy_check_number(policy, POLICY_MEMORY, (1U << 30) + 1, "--memory x", &err),
            -EPERM);
    CHECK_STR(err.message, "--memory x is more than the maximum 1G of carrel.yaml:1:38");
}

TEST(choices_have_an_order)
{
    REFUSED("user.yaml:1:20: sandbox.network host is looser than the maximum none of "
            "system.yaml:1:30",
            .user = "sandbox: {network: true}",
            .system = "sandbox: {network: {maximum: none}}");
    REFUSED("user.yaml:1:27: python.imports.mode off is looser than the maximum warn of "
            "system.yaml:1:36",
            .user = "python: {imports: {mode:  off}}",
            .system = "python: {imports: {mode: {maximum: warn}}}");
    AUTO(policy_free)
    struct policy *policy = JOINED(.system = "artifacts: {store_code: {maximum: always}}");
    CHECK_EQ(policy_get(policy, POLICY_STORE_CODE)->number, POLICY_STORE_ALWAYS);
    CHECK_EQ(policy_check_number(
                     policy, POLICY_STORE_CODE, POLICY_STORE_NEVER, "--store never", &err),
            -EPERM);
}

TEST(what_is_required_above_is_required)
{
    AUTO(policy_free)
    struct policy *policy = JOINED(.user = "sandbox: {require: [landlock]}",
            .system = "sandbox: {require: [seccomp]}\njournal: {required: true}\n"
                      "python: {allow_trusted: false}");
    const char *const *list = policy_get(policy, POLICY_REQUIRE)->list;

    CHECK_STR(list[0], "landlock");
    CHECK_STR(list[1], "seccomp");
    CHECK(!list[2]);
    CHECK_EQ(policy_get(policy, POLICY_ALLOW_TRUSTED)->number, 0);
    CHECK_EQ(policy_get(policy, POLICY_JOURNAL_REQUIRED)->number, 1);
    CHECK_EQ(policy_check_number(policy, POLICY_ALLOW_TRUSTED, 1, "--trusted", &err), -EPERM);
    CHECK_STR(err.message,
            "--trusted is not allowed: python.allow_trusted is false in system.yaml:3:25");
    CHECK_EQ(policy_check_number(policy, POLICY_JOURNAL, 0, "--journal off", &err), -EPERM);
    CHECK_STR(err.message,
            "--journal off is not allowed: journal.required is true in system.yaml:2:21");
    REFUSED("user.yaml:1:25: python.allow_trusted true is looser than the value false of "
            "system.yaml:1:25",
            .user = "python: {allow_trusted: true}",
            .system = "python: {allow_trusted: false}");
    REFUSED("user.yaml:1:20: journal.enabled is false, but journal.required is true "
            "(system.yaml:1:21)",
            .user = "journal: {enabled: false}", .system = "journal: {required: true}");
}

/* ---- isolation ---- */

TEST(process_may_be_written_where_no_minimum_is)
{
    AUTO(policy_free) struct policy *policy = JOINED(.user = "sandbox: {type: process}");

    CHECK_STR(policy_get(policy, POLICY_TYPE)->text, "process");
    CHECK_EQ(policy_get(policy, POLICY_MINIMUM_ISOLATION)->number, POLICY_ISOLATION_NONE);
    REFUSED("user.yaml:1:17: sandbox.type process isolates less than the minimum, but "
            "sandbox.minimum_isolation is kernel (system.yaml:1:30)",
            .user = "sandbox: {type: process}",
            .system = "sandbox: {minimum_isolation: kernel}");
    REFUSED("user.yaml:1:17: sandbox.type local isolates less than the minimum",
            .user = "sandbox: {type: local, minimum_isolation: vm}");
    REFUSED("user.yaml:1:30: sandbox.minimum_isolation none is looser than the value kernel of",
            .user = "sandbox: {minimum_isolation: none}",
            .system = "sandbox: {minimum_isolation: kernel}");
    REFUSED("environment SANDBOX_TYPE: sandbox.type process isolates less than the minimum",
            .repository = "sandbox: {minimum_isolation: kernel}",
            .environment = (const char *const[]){ "SANDBOX_TYPE=process", NULL });
}

TEST(a_flag_is_held_to_a_written_minimum)
{
    AUTO(policy_free)
    struct policy *policy = JOINED(.system = "sandbox: {minimum_isolation: kernel}");

    CHECK_EQ(policy_check_number(policy, POLICY_MINIMUM_ISOLATION,
                     (uint64_t)policy_runtime_isolation("process"), "--runtime process", &err),
            -EPERM);
    CHECK_EQ(policy_check_number(policy, POLICY_MINIMUM_ISOLATION,
                     (uint64_t)policy_runtime_isolation("e2b"), "--runtime e2b", &err),
            0);
}

TEST(nothing_falls_below_the_minimum)
{
    REFUSED("user.yaml:1:21: sandbox.fallback process isolates less than the minimum, but "
            "sandbox.minimum_isolation is kernel (built in)",
            .user = "sandbox: {fallback: [docker, process]}");
    AUTO(policy_free)
    struct policy *policy =
            JOINED(.user = "sandbox: {fallback: [docker, process], minimum_isolation: none}");
    CHECK_STR(policy_get(policy, POLICY_FALLBACK)->list[1], "process");
}

TEST(a_disabled_sandbox_loads)
{
    AUTO(policy_free) struct policy *policy = JOINED(.user = "sandbox: {enabled: false}");

    CHECK_EQ(policy_get(policy, POLICY_ENABLED)->number, 0);
    CHECK_STR(policy_get(policy, POLICY_TYPE)->text, "local");
}

/* ---- a repository ---- */

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
                                           "in the list that counts without it (built in)" },
        { "sandbox: {minimum_isolation: none}",
                "carrel.yaml:1:30: sandbox.minimum_isolation none: is looser than kernel" },
        { "sandbox: {best_effort: [memory]}",
                "carrel.yaml:1:24: sandbox.best_effort memory: is not in" },
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
                "carrel.yaml:1:16: journal.key /tmp/key: is not its to say" },
        { "journal: {sign: false}", "carrel.yaml:1:17: journal.sign false: is not its to say" },
        { "journal: {fsync: never}",
                "carrel.yaml:1:18: journal.fsync never: is not its to say" },
        { "artifacts: {store_code: never}",
                "carrel.yaml:1:25: artifacts.store_code never: is looser than on_error" },
        { "artifacts: {max_bytes: 1K}",
                "carrel.yaml:1:24: artifacts.max_bytes 1K: is not its to say" },
        { "artifacts: {max_age: 1s}",
                "carrel.yaml:1:22: artifacts.max_age 1s: is not its to say" },
        { "monitor: {memory: 99}", "carrel.yaml:1:19: monitor.memory 99: is looser than 90" },
        { "prices: {run: 0}", "carrel.yaml:1:15: prices.run 0: is not its to say" },
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        REFUSED(cases[i].said, .repository = cases[i].text);
        /* The same text, vouched for. */
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

TEST(a_repository_may_name_what_a_higher_file_names)
{
    AUTO(policy_free)
    struct policy *policy = JOINED(.repository = "sandbox: {type: e2b, fallback: [local]}",
            .user = "sandbox: {type: local, fallback: [e2b, local]}");

    CHECK_STR(policy_get(policy, POLICY_TYPE)->text, "e2b");
}

/* ---- lists that allow ---- */

TEST(every_list_must_allow_a_variable)
{
    AUTO(policy_free)
    struct policy *policy =
            JOINED(.user = "sandbox: {environment: {allow: [LC_*, AWS_REGION]}}",
                    .system = "sandbox: {environment: {allow: [L*, AWS_*]}}");

    CHECK_EQ(policy_check_item(policy, POLICY_ENV_ALLOW, "LC_ALL", false, "--env", &err), 0);
    CHECK_EQ(policy_check_item(policy, POLICY_ENV_ALLOW, "LANG", false, "--env LANG", &err),
            -EPERM);
    CHECK_STR(err.message,
            "--env LANG: sandbox.environment.allow does not allow 'LANG' (user.yaml:1:32)");
    REFUSED("user.yaml:1:32: sandbox.environment.allow: 'PATH' is not in the list of "
            "system.yaml:1:32",
            .user = "sandbox: {environment: {allow: [LANG, PATH]}}",
            .system = "sandbox: {environment: {allow: [L*]}}");
    REFUSED("user.yaml:1:31: sandbox.environment.pass: sandbox.environment.allow does not "
            "allow 'HOME' (system.yaml:1:32)",
            .user = "sandbox: {environment: {pass: [HOME]}}",
            .system = "sandbox: {environment: {allow: [L*]}}");
}

TEST(every_list_must_allow_a_mount)
{
    AUTO(policy_free)
    struct policy *policy =
            JOINED(.user = "sandbox: {mounts: {allow: [/data/in, '/data/out:rw']}}",
                    .system = "sandbox: {mounts: {allow: ['/data:rw', /opt]}}");
    const enum policy_key key = POLICY_MOUNTS_ALLOW;

    CHECK_EQ(policy_check_item(policy, key, "/data/in/x", false, "--mount", &err), 0);
    CHECK_EQ(policy_check_item(policy, key, "/data/in/x", true, "--mount", &err), -EPERM);
    CHECK_EQ(policy_check_item(policy, key, "/data/out", true, "--mount", &err), 0);
    CHECK_EQ(policy_check_item(policy, key, "/data/outer", false, "--mount", &err), -EPERM);
    CHECK_EQ(policy_check_item(policy, key, "/opt/x", false, "--mount", &err), -EPERM);
    REFUSED("user.yaml:1:27: sandbox.mounts.allow: '/opt:rw' is not in the list of "
            "system.yaml:1:27",
            .user = "sandbox: {mounts: {allow: ['/opt:rw']}}",
            .system = "sandbox: {mounts: {allow: [/opt]}}");
}

TEST(without_a_list_everything_is_allowed)
{
    AUTO(policy_free) struct policy *policy = JOINED(.user = "sandbox: {network: none}");

    CHECK_EQ(policy_check_item(policy, POLICY_MOUNTS_ALLOW, "/", true, "--mount", &err), 0);
    CHECK_EQ(policy_check_item(policy, POLICY_ENV_ALLOW, "A", false, "--env", &err), 0);
    CHECK_EQ(policy_check_item(policy, POLICY_IMPORTS_ALLOW, "os", false, "import", &err), 0);
}

/* ---- the environment ---- */

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

/* ---- the hash ---- */

TEST(the_hash_is_of_what_counts)
{
    AUTO(policy_free) struct policy *a = JOINED(.user = "sandbox: {limits: {memory: 1G}}");
    AUTO(policy_free)
    struct policy *b = JOINED(.system = "# elsewhere\nsandbox:\n  limits: {memory: 1024M}\n");
    AUTO(policy_free) struct policy *c = JOINED(.user = "sandbox: {limits: {memory: 2G}}");
    AUTO(policy_free)
    struct policy *d =
            JOINED(.user = "sandbox: {limits: {memory: {default: 1G, maximum: 1G}}}");
    AUTO(policy_free)
    struct policy *e = JOINED(.user = "sandbox: {limits: {memory: 1G}}",
            .system = "sandbox: {mounts: {allow: [/data]}}");

    AUTO(policy_free) struct policy *none = JOINED(0);
    AUTO(policy_free)
    struct policy *same =
            JOINED(.user = "sandbox: {network: false, fallback: [], type: local}\n"
                           "workspace: {tree: auto}");

    CHECK_STR(policy_hash(none), policy_hash(same));
    CHECK(strcmp(policy_hash(none), policy_hash(a)) != 0);
    CHECK_EQ(strlen(policy_hash(a)), 64);
    CHECK_STR(policy_hash(a), policy_hash(b));
    CHECK(strcmp(policy_hash(a), policy_hash(c)) != 0);
    CHECK(strcmp(policy_hash(a), policy_hash(d)) != 0);
    CHECK(strcmp(policy_hash(a), policy_hash(e)) != 0);
}
