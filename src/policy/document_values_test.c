/* document_values_test.c - keys, values and profiles of one file. */
#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"
#include "harness.h"
#include "policy/document.h"
#include "policy/keys.h"
#include "policy/value.h"
#include <carrel/policy.h>
#include <errno.h>

static struct carrel_error err;

static void refused(int line, const char *text, const char *said)
{
    int r = policy_check(text, strlen(text), "test", &err);

    if (r >= 0)
        test_fail(__FILE__, line, "not refused: %s", text);
    if (strncmp(err.message, said, strlen(said)) != 0)
        test_check_str(__FILE__, line, "message", err.message, said);
}
#define REFUSED(text, said) refused(__LINE__, text, said)

static void accepted(int line, const char *text)
{
    if (policy_check(text, strlen(text), "test", &err) < 0)
        test_fail(__FILE__, line, "refused: %s", err.message);
}
#define ACCEPTED(text) accepted(__LINE__, text)

/* The values of a text, with a profile. */
static const struct document_values *values_of(
        struct arena *arena, const char *text, const char *profile)
{
    struct document document;
    struct document_values *own = NULL;
    int r = document_read(arena, text, strlen(text), "test", &document, &err);

    if (r == 0)
        r = document_read_values(&document, arena, POLICY_OF_USER, profile, &own, &err);
    if (r < 0)
        test_fail(__FILE__, __LINE__, "refused: %s", err.message);
    return own;
}

TEST(an_empty_policy_is_one)
{
    ACCEPTED("");
    ACCEPTED("# nothing\n");
    ACCEPTED("{}");
    ACCEPTED("sandbox:\npython:\n  imports:\nprofiles:\n");
}

TEST(a_misspelt_key_is_answered_with_the_nearest)
{
    REFUSED("sandbox: {limits: {memroy: 1G}}",
            "test:1:20: unknown key 'sandbox.limits.memroy' (did you mean 'memory'?)");
    REFUSED("sandbx: {}", "test:1:1: unknown key 'sandbx' (did you mean 'sandbox'?)");
    REFUSED("profile: {}", "test:1:1: unknown key 'profile' (did you mean 'profiles'?)");
    REFUSED("profiles: {a: {extend: b}}",
            "test:1:16: unknown key 'extend' (did you mean 'extends'?)");
    REFUSED("sandbox: {limits: {memory: {deflt: 1G}}}",
            "test:1:29: unknown key 'sandbox.limits.memory.deflt'; expected one of: default");
}

TEST(a_key_in_the_wrong_place_is_answered_with_the_right_one)
{
    REFUSED("memory: 1G",
            "test:1:1: unknown key 'memory' (did you mean 'sandbox.limits.memory'?)");
    REFUSED("sandbox: {timeout: 1s}", "test:1:11: unknown key 'sandbox.timeout' (did you mean "
                                      "'sandbox.limits.timeout'?)");
}

TEST(an_unknown_key_is_answered_with_those_that_there_are)
{
    REFUSED("output: {bananas: 1}",
            "test:1:10: unknown key 'output.bananas'; expected one of: max, file_max");
    REFUSED("kitchen: 1",
            "test:1:1: unknown key 'kitchen'; expected one of: sandbox, workspace, python, "
            "output, journal, artifacts, monitor, prices, profiles");
    REFUSED("'': 1", "test:1:1: unknown key ''; expected one of: sandbox");
    REFUSED("sandbox.network: none", "test:1:1: unknown key 'sandbox.network'");
    REFUSED("sandbox: {limits.memory: 1G}", "test:1:11: unknown key 'sandbox.limits.memory'");
    REFUSED("\"\\e[31m\": 1", "test:1:1: unknown key '\\x1b[31m'");
}

TEST(a_wrong_type_is_refused_with_what_was_expected)
{
    REFUSED("[sandbox]", "test:1:1: expected keys with values, found a list");
    REFUSED("sandbox", "test:1:1: expected keys with values, found a word");
    REFUSED("sandbox: [a]", "test:1:10: sandbox: expected keys with values, found a list");
    REFUSED("sandbox: {enabled: 2}", "test:1:20: sandbox.enabled: '2' is not true or false");
    REFUSED("sandbox: {enabled: }",
            "test:1:20: sandbox.enabled: expected true or false, found nothing");
    REFUSED("sandbox: {enabled: [true]}",
            "test:1:20: sandbox.enabled: expected true or false, found a list");
    REFUSED("sandbox: {enabled: {default: true}}",
            "test:1:20: sandbox.enabled: expected true or false, found a mapping");
    REFUSED("sandbox: {network: maybe}",
            "test:1:20: sandbox.network: 'maybe' is not one of none, host, false, true");
    REFUSED("sandbox: {limits: {memory: lots}}",
            "test:1:28: sandbox.limits.memory: 'lots' is not a size; expected a number");
    REFUSED("sandbox: {limits: {memory: 0}}",
            "test:1:28: sandbox.limits.memory: must be more than 0");
    REFUSED("sandbox: {limits: {memory: -1}}", "test:1:28: sandbox.limits.memory: '-1' is not");
    REFUSED("sandbox: {limits: {memory: [1G]}}",
            "test:1:28: sandbox.limits.memory: expected a size such as 512M, found a list");
    REFUSED("sandbox: {limits: {memory: {maximum: [1G]}}}",
            "test:1:38: sandbox.limits.memory: expected a size such as 512M, found a list");
    REFUSED("sandbox: {limits: {timeout: 1y}}",
            "test:1:29: sandbox.limits.timeout: '1y' is not");
    REFUSED("sandbox: {limits: {cpu: one}}", "test:1:25: sandbox.limits.cpu: 'one' is not a");
    REFUSED("sandbox: {limits: {pids: 1.5}}", "test:1:26: sandbox.limits.pids: '1.5' is not a");
    REFUSED("sandbox: {limits: {pids: 99999999999999999999}}",
            "test:1:26: sandbox.limits.pids: '99999999999999999999' is not a number");
    REFUSED("sandbox: {fallback: docker}",
            "test:1:21: sandbox.fallback: expected a list, each of it a runtime such as local, "
            "found a word");
    REFUSED("sandbox: {fallback: [[docker]]}", "test:1:22: sandbox.fallback: expected a list");
    REFUSED("sandbox: {environment: {set: [A=1]}}",
            "test:1:30: sandbox.environment.set: expected names with values");
    REFUSED("sandbox: {environment: {set: {A: [1]}}}",
            "test:1:34: sandbox.environment.set: expected names with values");
    REFUSED("sandbox: {environment: {set: {A-B: 1}}}",
            "test:1:36: sandbox.environment.set: 'A-B' is not the name of a variable");
    REFUSED("output: {max: 2G}", "test:1:15: output.max: may not be more than 1G");
    REFUSED("monitor: {memory: 101}", "test:1:19: monitor.memory: '101' is not a number from");
    REFUSED("monitor: {memory: 0}", "test:1:19: monitor.memory: '0' is not a number from 1");
    REFUSED("prices: {run: 1e-3}", "test:1:15: prices.run: '1e-3' is not a price");
    REFUSED("prices: {run: 0.0000000001}", "test:1:15: prices.run: '0.0000000001' is not a");
    REFUSED("prices: {run: 99999999999999999999}", "test:1:15: prices.run: '9999");
    REFUSED("prices: {run: .5}", "test:1:15: prices.run: '.5' is not a price");
    REFUSED("prices: {run: 5.}", "test:1:15: prices.run: '5.' is not a price");
    REFUSED("profiles: [a]", "test:1:11: profiles: expected names with keys");
}

TEST(words_are_checked)
{
    REFUSED("sandbox: {type: dcoker}",
            "test:1:17: sandbox.type: 'dcoker' is not a runtime such as local (did you mean "
            "'docker'?)");
    REFUSED("sandbox: {type: qemu}",
            "test:1:17: sandbox.type: 'qemu' is not a runtime such as local; expected one of: "
            "local process docker e2b kubernetes vm");
    REFUSED("sandbox: {require: [secomp]}",
            "test:1:21: sandbox.require: 'secomp' is not a protection such as seccomp (did you "
            "mean 'seccomp'?)");
    REFUSED("sandbox: {best_effort: [timeout]}", "test:1:25: sandbox.best_effort: 'timeout'");
    REFUSED("sandbox: {hostname: -x}", "test:1:21: sandbox.hostname: '-x' is not 1 to 63");
    REFUSED("sandbox: {mounts: {allow: [data]}}",
            "test:1:28: sandbox.mounts.allow: 'data' is not an absolute path");
    REFUSED("sandbox: {mounts: {allow: [/data/../etc]}}", "test:1:28: sandbox.mounts.allow: ");
}

TEST(what_is_fine_is_accepted)
{
    ACCEPTED("sandbox: {environment: {allow: ['*', LC_*, A1], pass: [A, LC_*]}}");
    ACCEPTED("sandbox: {mounts: {allow: [/, '/a b:rw', '/x:ro']}}");
    ACCEPTED("python: {imports: {mode: block, allow: [numpy, os.path, _x]}}");
    ACCEPTED("monitor: {memory: 90%, cpu: 1, pids: 100}");
    ACCEPTED("prices: {currency: EUR, run: 0, cpu_second: 0.000000001}");
    ACCEPTED("artifacts: {max_age: 30d}\njournal: {max_bytes: {maximum: 1G}}");
    ACCEPTED("sandbox: {limits: {timeout: {default: 5m, maximum: 1h}, memory: '512M'}}");
    ACCEPTED("sandbox: {enabled: no, type: process}");
}

TEST(prices_are_exact)
{
    AUTO(arena_finish) struct arena arena = { 0 };
    const struct document_values *own =
            values_of(&arena, "prices: {run: 12.5, cpu_second: 0.000000001}", NULL);

    CHECK_EQ(own->values[POLICY_PRICE_RUN].number, 12500000000);
    CHECK_EQ(own->values[POLICY_PRICE_CPU].number, 1);
}

/* ---- profiles ---- */

static const char profiles[] = "sandbox: {limits: {pids: 1, files: 1, memory: 1K}}\n"
                               "profiles:\n"
                               "  a: {sandbox: {limits: {pids: 2, files: 2}}}\n"
                               "  b:\n"
                               "    extends: a\n"
                               "    sandbox: {limits: {pids: 3}}\n";

TEST(a_queue_may_have_no_place_at_all)
{
    AUTO(arena_finish) struct arena arena = { 0 };
    const struct document_values *own =
            values_of(&arena, "sandbox: {limits: {max_queued: 0, max_concurrent: 3}}", NULL);

    CHECK(own->values[POLICY_MAX_QUEUED].is_set);
    CHECK_EQ(own->values[POLICY_MAX_QUEUED].number, 0);
    CHECK_EQ(own->values[POLICY_MAX_CONCURRENT].number, 3);
    REFUSED("sandbox: {limits: {max_concurrent: 0}}",
            "test:1:36: sandbox.limits.max_concurrent: must be more than 0");
    REFUSED("sandbox: {limits: {queue_time: 0s}}",
            "test:1:32: sandbox.limits.queue_time: must be more than 0");
}

TEST(the_top_is_the_base_of_every_profile)
{
    AUTO(arena_finish) struct arena arena = { 0 };
    static const struct {
        const char *profile;
        uint64_t pids, files;
    } cases[] = { { NULL, 1, 1 }, { "a", 2, 2 }, { "b", 3, 2 } };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const struct document_values *own = values_of(&arena, profiles, cases[i].profile);
        CHECK_EQ(own->values[POLICY_PIDS].number, cases[i].pids);
        CHECK_EQ(own->values[POLICY_FILES].number, cases[i].files);
        CHECK_EQ(own->values[POLICY_MEMORY].number, 1024);
    }
}

TEST(what_a_profile_extends_must_be_there_and_end)
{
    REFUSED("profiles: {abc: {}, b: {extends: abd}}",
            "test:1:34: extends: there is no profile 'abd' (did you mean 'abc'?)");
    REFUSED("profiles: {a: {extends: a}}",
            "test:1:25: extends: the profiles extend each other");
    REFUSED("profiles: {a: {extends: b}, b: {extends: c}, c: {extends: b}}",
            "test:1:59: extends: the profiles extend each other");
    REFUSED("profiles: {a: {extends: [b]}}", "test:1:25: extends: expected the name of a");
    REFUSED("profiles: {a: {extends: }}", "test:1:25: extends: expected the name of a");
    REFUSED("profiles: {a: {profiles: {}}}", "test:1:16: unknown key 'profiles'");
    REFUSED("profiles: {p0: {extends: p1}, p1: {extends: p2}, p2: {extends: p3},\n"
            " p3: {extends: p4}, p4: {extends: p5}, p5: {extends: p6}, p6: {extends: p7},\n"
            " p7: {extends: p8}, p8: {extends: p9}, p9: {extends: q0}, q0: {extends: q1},\n"
            " q1: {extends: q2}, q2: {extends: q3}, q3: {extends: q4}, q4: {extends: q5},\n"
            " q5: {extends: q6}, q6: {}}",
            "test:5:25: extends: too many profiles");
}

TEST(every_profile_is_checked)
{
    REFUSED("profiles: {a: {sandbox: {limits: {memroy: 1}}}}",
            "test:1:35: unknown key 'sandbox.limits.memroy'");
    REFUSED("sandbox: {limits: {memory: {maximum: 1G}}}\n"
            "profiles: {a: {sandbox: {limits: {memory: 2G}}}}",
            "test:2:43: sandbox.limits.memory 2G is more than the maximum 1G of test:1:38");
}

/* ---- the table ---- */

TEST(what_is_built_in_is_what_it_says)
{
    for (enum policy_key key = 0; key < POLICY_KEYS; key++) {
        const struct key_row *row = key_row(key);
        struct policy_value value;
        CHECK(row->name);
        CHECK_EQ(key_find(row->name), key);
        if (row->kind == KEY_LIST || row->kind == KEY_MAP) {
            for (size_t i = 0; row->built_in.is_set && row->built_in.list[i]; i++)
                CHECK_EQ(value_check_word(row->words, row->built_in.list[i], &err), 0);
            continue;
        }
        if (!row->built_in.is_set)
            continue;
        CHECK_EQ(value_parse(key, row->built_in.text, &value, &err), 0);
        CHECK_EQ(value.number, row->built_in.number);
    }
}

TEST(rows_fit_together)
{
    for (enum policy_key key = 0; key < POLICY_KEYS; key++) {
        const struct key_row *row = key_row(key);
        const bool is_list = row->kind == KEY_LIST || row->kind == KEY_MAP;
        char text[160];
        CHECK(key_expected(key, text, sizeof(text)));
        CHECK_EQ(row->kind == KEY_CHOICE, row->choices != NULL);
        CHECK_EQ(is_list || row->kind == KEY_TEXT, row->words != NULL);
        CHECK(is_list || (row->repository != REPO_SUBSET && row->repository != REPO_ADD));
        if (row->bound == BOUND_WRITTEN || row->bound == BOUND_VALUE)
            CHECK(row->order != ORDER_NONE);
        if (row->repository == REPO_TIGHTEN && key != POLICY_TYPE)
            CHECK(row->order != ORDER_NONE);
    }
}

/* ---- the template ---- */

TEST(the_template_is_a_policy_and_has_every_key)
{
    AUTO(arena_finish) struct arena arena = { 0 };
    const char *in = carrel_policy_template();
    char *all = arena_alloc(&arena, strlen(in) + 1);
    char *out = all;

    ACCEPTED(in);
    for (bool is_start = true; *in; in++) {
        if (is_start && *in == '#' && in[1] != ' ' && in[1] != '\n') {
            is_start = false;
            continue; /* a key that is commented out */
        }
        is_start = *in == '\n' || (is_start && *in == ' ');
        *out++ = *in;
    }
    ACCEPTED(all);
    const struct document_values *own = values_of(&arena, all, "quick-and-strict");
    for (enum policy_key key = 0; key < POLICY_KEYS; key++)
        if (!own->values[key].is_set)
            test_fail(__FILE__, __LINE__, "the template lacks %s", key_row(key)->name);
}
