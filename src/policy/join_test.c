/* join_test.c - which value is in force, and which bounds apply. */
#include "policy/join_fixture.h"

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

TEST(a_maximum_of_what_is_not_limited_otherwise_is_the_limit)
{
    AUTO(policy_free)
    struct policy *policy = JOINED(.repository = "sandbox: {limits: {io_write: 1M}}",
            .system = "sandbox: {limits: {io_read: {maximum: 10M}}}");
    AUTO(policy_free) struct policy *none = JOINED(.user = "sandbox: {}");

    CHECK_EQ(policy_get(policy, POLICY_IO_READ)->number, 10U << 20);
    CHECK_STR(place(policy_get(policy, POLICY_IO_READ)), "system.yaml:1:39");
    CHECK_EQ(policy_get(policy, POLICY_IO_WRITE)->number, 1U << 20); /* tighter than none */
    CHECK(!policy_get(none, POLICY_IO_READ)->is_set);
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
    REFUSED("carrel.yaml:1:28: sandbox.limits.memory 400M is more than the maximum 200M of "
            "system.yaml:1:38",
            .repository = "sandbox: {limits: {memory: 400M}}",
            .system = "sandbox: {limits: {memory: {maximum: 200M}}}");
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
