/* keys.c - one row for each key. */
#include "policy/keys.h"
#include "base/auto.h"
#include "policy/words.h"
#include <assert.h>
#include <stdio.h>

#define WORDS(...)                                                                             \
    (const char *const[])                                                                      \
    {                                                                                          \
        __VA_ARGS__, NULL                                                                      \
    }
#define NOTHING                                                                                \
    (const char *const[])                                                                      \
    {                                                                                          \
        NULL                                                                                   \
    }
#define SET(n, t)                                                                              \
    {                                                                                          \
        .is_set = true, .number = (n), .text = (t)                                             \
    }
#define SET_LIST(...)                                                                          \
    {                                                                                          \
        .is_set = true, .list = __VA_ARGS__                                                    \
    }
#define YES SET(1, "true")
#define NO SET(0, "false")

/* Sizes and times as numbers, beside their text. */
#define K 1024ULL
#define M (1024 * K)
#define G (1024 * M)
#define SECOND 1000ULL
#define DAY (24 * 3600 * SECOND)

#define LESS ORDER_LESS_IS_TIGHTER
#define MORE ORDER_MORE_IS_TIGHTER

static const struct key_row rows[POLICY_KEYS] = {
    [POLICY_ENABLED] = { "sandbox.enabled", KEY_BOOL, LESS, BOUND_NONE, REPO_TIGHTEN,
            .built_in = YES },
    /* Less isolation is looser; join.c compares. */
    [POLICY_TYPE] = { "sandbox.type", KEY_TEXT, ORDER_NONE, BOUND_NONE, REPO_TIGHTEN,
            .words = &words_runtime, .built_in = SET(0, "local") },
    [POLICY_FALLBACK] = { "sandbox.fallback", KEY_LIST, ORDER_NONE, BOUND_NONE, REPO_SUBSET,
            .words = &words_runtime, .built_in = SET_LIST(NOTHING) },
    [POLICY_MINIMUM_ISOLATION] = { "sandbox.minimum_isolation", KEY_CHOICE, MORE, BOUND_VALUE,
            REPO_TIGHTEN, .choices = WORDS("none", "kernel", "vm"),
            .built_in = SET(POLICY_ISOLATION_KERNEL, "kernel") },
    [POLICY_NETWORK] = { "sandbox.network", KEY_CHOICE, LESS, BOUND_WRITTEN, REPO_TIGHTEN,
            .takes_bool = true, .choices = WORDS("none", "host"), .built_in = SET(0, "none") },
    [POLICY_REQUIRE] = { "sandbox.require", KEY_LIST, ORDER_NONE, BOUND_ADD, REPO_ADD,
            .words = &words_protection, .built_in = SET_LIST(NOTHING) },
    [POLICY_BEST_EFFORT] = { "sandbox.best_effort", KEY_LIST, ORDER_NONE, BOUND_NONE,
            REPO_SUBSET, .words = &words_limit, .built_in = SET_LIST(NOTHING) },
    [POLICY_IDS] = { "sandbox.ids", KEY_CHOICE, .repository = REPO_NEVER,
            .choices = WORDS("own", "sub"), .built_in = SET(0, "own") },
    [POLICY_HOSTNAME] = { "sandbox.hostname", KEY_TEXT, .repository = REPO_NEVER,
            .words = &words_hostname, .built_in = SET(0, "carrel") },
    /* Images belong to the user, and may have content that is not meant for every program. */
    [POLICY_IMAGE] = { "sandbox.image", KEY_TEXT, .repository = REPO_NEVER,
            .words = &words_image },

    [POLICY_TIMEOUT] = { "sandbox.limits.timeout", KEY_DURATION, LESS, BOUND_WRITTEN,
            REPO_TIGHTEN, .built_in = SET(300 * SECOND, "300s") },
    [POLICY_CPU] = { "sandbox.limits.cpu", KEY_MILLI, LESS, BOUND_WRITTEN, REPO_TIGHTEN,
            .built_in = SET(1000, "1.0") },
    [POLICY_MEMORY] = { "sandbox.limits.memory", KEY_SIZE, LESS, BOUND_WRITTEN, REPO_TIGHTEN,
            .built_in = SET(512 * M, "512M") },
    [POLICY_DISK] = { "sandbox.limits.disk", KEY_SIZE, LESS, BOUND_WRITTEN, REPO_TIGHTEN,
            .built_in = SET(1 * G, "1G") },
    [POLICY_PIDS] = { "sandbox.limits.pids", KEY_COUNT, LESS, BOUND_WRITTEN, REPO_TIGHTEN,
            .built_in = SET(256, "256") },
    [POLICY_FILES] = { "sandbox.limits.files", KEY_COUNT, LESS, BOUND_WRITTEN, REPO_TIGHTEN,
            .built_in = SET(4096, "4096") },
    [POLICY_IO_READ] = { "sandbox.limits.io_read", KEY_SIZE, LESS, BOUND_WRITTEN,
            .repository = REPO_TIGHTEN },
    [POLICY_IO_WRITE] = { "sandbox.limits.io_write", KEY_SIZE, LESS, BOUND_WRITTEN,
            .repository = REPO_TIGHTEN },
    /* For all living sandboxes of a user together: one repository must not raise it. */
    [POLICY_MAX_CONCURRENT] = { "sandbox.limits.max_concurrent", KEY_COUNT, LESS, BOUND_WRITTEN,
            REPO_TIGHTEN, .built_in = SET(1000, "1000") },
    [POLICY_MAX_QUEUED] = { "sandbox.limits.max_queued", KEY_COUNT, LESS, BOUND_WRITTEN,
            REPO_TIGHTEN, .takes_zero = true, .built_in = SET(100, "100") },
    [POLICY_QUEUE_TIME] = { "sandbox.limits.queue_time", KEY_DURATION, LESS, BOUND_WRITTEN,
            REPO_TIGHTEN, .built_in = SET(60 * SECOND, "60s") },

    /* Unset: no list, so no bound. A repository's list can only remove items. */
    [POLICY_MOUNTS_ALLOW] = { "sandbox.mounts.allow", KEY_LIST, ORDER_NONE, BOUND_LIST,
            REPO_BOUND, .words = &words_mount },
    [POLICY_ENV_ALLOW] = { "sandbox.environment.allow", KEY_LIST, ORDER_NONE, BOUND_LIST,
            REPO_BOUND, .words = &words_pattern },
    [POLICY_ENV_PASS] = { "sandbox.environment.pass", KEY_LIST, ORDER_NONE, BOUND_NONE,
            REPO_SUBSET, .words = &words_pattern, .built_in = SET_LIST(NOTHING) },
    /* LD_PRELOAD or a proxy would take the secrets of the operator's next program. */
    [POLICY_ENV_SET] = { "sandbox.environment.set", KEY_MAP, .repository = REPO_NEVER,
            .words = &words_variable, .built_in = SET_LIST(NOTHING) },

    /* A workspace shows the repository to the program. */
    [POLICY_WORKSPACE] = { "workspace.enabled", KEY_BOOL, LESS, BOUND_NONE, REPO_TIGHTEN,
            .built_in = NO },
    [POLICY_WORKSPACE_HISTORY] = { "workspace.history", KEY_CHOICE, LESS, BOUND_WRITTEN,
            REPO_TIGHTEN, .choices = WORDS("cut", "full"), .built_in = SET(1, "full") },
    [POLICY_WORKSPACE_TREE] = { "workspace.tree", KEY_CHOICE, .repository = REPO_NEVER,
            .choices = WORDS("auto", "overlay", "copy"), .built_in = SET(0, "auto") },
    /* Uncommitted files may be private: a repository must not expose them to a program. */
    [POLICY_WORKSPACE_DIRTY] = { "workspace.dirty", KEY_BOOL, LESS, BOUND_NONE, REPO_TIGHTEN,
            .built_in = NO },
    [POLICY_WORKSPACE_INCLUDE] = { "workspace.include", KEY_LIST, ORDER_NONE, BOUND_NONE,
            REPO_SUBSET, .words = &words_glob, .built_in = SET_LIST(NOTHING) },
    [POLICY_WORKSPACE_SETUP] = { "workspace.setup", KEY_TEXT, .repository = REPO_NEVER,
            .words = &words_line },
    [POLICY_WORKSPACE_SETUP_KEYS] = { "workspace.setup_keys", KEY_LIST,
            .repository = REPO_NEVER, .words = &words_glob, .built_in = SET_LIST(NOTHING) },
    [POLICY_ON_SUCCESS] = { "workspace.on_success", KEY_CHOICE, LESS, BOUND_WRITTEN,
            REPO_TIGHTEN, .choices = WORDS("discard", "keep", "commit", "apply"),
            .built_in = SET(1, "keep") },
    [POLICY_ON_FAILURE] = { "workspace.on_failure", KEY_CHOICE, .repository = REPO_NEVER,
            .choices = WORDS("discard", "keep"), .built_in = SET(1, "keep") },

    /* It also inspects the code, so a repository must not choose it. */
    [POLICY_PYTHON] = { "python.interpreter", KEY_TEXT, .repository = REPO_NEVER,
            .words = &words_program, .built_in = SET(0, "python3") },
    [POLICY_IMPORTS_MODE] = { "python.imports.mode", KEY_CHOICE, MORE, BOUND_WRITTEN,
            REPO_TIGHTEN, .choices = WORDS("off", "warn", "block"),
            .built_in = SET(POLICY_IMPORTS_WARN, "warn") },
    [POLICY_IMPORTS_BLOCK] = { "python.imports.block", KEY_LIST, ORDER_NONE, BOUND_NONE,
            REPO_ADD, .words = &words_module,
            .built_in = SET_LIST(WORDS("os", "subprocess", "shutil", "socket", "pathlib",
                    "ctypes", "multiprocessing", "signal", "pty", "importlib", "runpy", "posix",
                    "fcntl", "_ctypes", "_posixsubprocess", "_socket")) },
    [POLICY_IMPORTS_ALLOW] = { "python.imports.allow", KEY_LIST, ORDER_NONE, BOUND_LIST,
            REPO_BOUND, .words = &words_module },
    [POLICY_ALLOW_TRUSTED] = { "python.allow_trusted", KEY_BOOL, LESS, BOUND_VALUE,
            REPO_TIGHTEN, .built_in = YES },

    [POLICY_OUTPUT] = { "output.max", KEY_SIZE, LESS, BOUND_WRITTEN, REPO_TIGHTEN,
            .max = 1 * G, /* it is kept in memory */
            .built_in = SET(10 * K, "10K") },
    [POLICY_OUTPUT_FILE] = { "output.file_max", KEY_SIZE, LESS, BOUND_WRITTEN, REPO_TIGHTEN,
            .built_in = SET(64 * M, "64M") },

    [POLICY_JOURNAL] = { "journal.enabled", KEY_BOOL, MORE, BOUND_NONE, REPO_TIGHTEN,
            .built_in = YES },
    [POLICY_JOURNAL_REQUIRED] = { "journal.required", KEY_BOOL, MORE, BOUND_VALUE, REPO_TIGHTEN,
            .built_in = NO },
    [POLICY_JOURNAL_FSYNC] = { "journal.fsync", KEY_CHOICE, .repository = REPO_NEVER,
            .choices = WORDS("never", "end", "always"), .built_in = SET(0, "never") },
    [POLICY_JOURNAL_SIGN] = { "journal.sign", KEY_BOOL, .repository = REPO_NEVER,
            .built_in = NO },
    [POLICY_JOURNAL_KEY] = { "journal.key", KEY_TEXT, .repository = REPO_NEVER,
            .words = &words_file },
    [POLICY_JOURNAL_MAX] = { "journal.max_bytes", KEY_SIZE, LESS, BOUND_WRITTEN, REPO_TIGHTEN,
            .built_in = SET(64 * M, "64M") },

    [POLICY_STORE_CODE] = { "artifacts.store_code", KEY_CHOICE, MORE, BOUND_WRITTEN,
            REPO_TIGHTEN, .choices = WORDS("never", "on_error", "always"),
            .built_in = SET(POLICY_STORE_ON_ERROR, "on_error") },
    [POLICY_ARTIFACTS_BYTES] = { "artifacts.max_bytes", KEY_SIZE, .repository = REPO_NEVER,
            .built_in = SET(1 * G, "1G") },
    [POLICY_ARTIFACTS_AGE] = { "artifacts.max_age", KEY_DURATION, .repository = REPO_NEVER,
            .built_in = SET(30 * DAY, "30d") },

    [POLICY_MONITOR_MEMORY] = { "monitor.memory", KEY_PERCENT, LESS, BOUND_NONE, REPO_TIGHTEN,
            .built_in = SET(90, "90") },
    [POLICY_MONITOR_CPU] = { "monitor.cpu", KEY_PERCENT, LESS, BOUND_NONE,
            .repository = REPO_TIGHTEN },
    [POLICY_MONITOR_PIDS] = { "monitor.pids", KEY_PERCENT, LESS, BOUND_NONE, REPO_TIGHTEN,
            .built_in = SET(90, "90") },
    [POLICY_MONITOR_DISK] = { "monitor.disk", KEY_PERCENT, LESS, BOUND_NONE, REPO_TIGHTEN,
            .built_in = SET(90, "90") },

    [POLICY_PRICE_CURRENCY] = { "prices.currency", KEY_TEXT, .repository = REPO_NEVER,
            .words = &words_currency },
    [POLICY_PRICE_RUN] = { "prices.run", KEY_PRICE, .repository = REPO_NEVER },
    [POLICY_PRICE_CPU] = { "prices.cpu_second", KEY_PRICE, .repository = REPO_NEVER },
    [POLICY_PRICE_MEMORY] = { "prices.memory_gb_second", KEY_PRICE, .repository = REPO_NEVER },
};

const struct key_row *key_row(enum policy_key key)
{
    assert(key < POLICY_KEYS);
    return &rows[key];
}

enum policy_key key_find(const char *name)
{
    enum policy_key key = 0;

    while (key < POLICY_KEYS && strcmp(rows[key].name, name) != 0)
        key++;
    return key;
}

bool key_is_section(const char *path)
{
    size_t len = strlen(path);

    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (strncmp(rows[i].name, path, len) == 0 && rows[i].name[len] == '.')
            return true;
    return false;
}

bool key_covers(enum policy_key key, const char *allowed, const char *asked)
{
    const struct key_words *words = rows[key].words;

    return words->covers ? words->covers(allowed, asked) : strcmp(allowed, asked) == 0;
}

bool key_is_looser(enum policy_key key, uint64_t value, uint64_t bound)
{
    switch (key_row(key)->order) {
    case ORDER_LESS_IS_TIGHTER:
        return value > bound;
    case ORDER_MORE_IS_TIGHTER:
        return value < bound;
    case ORDER_NONE:
        break;
    }
    return false;
}

static const char *expected_choice(const struct key_row *row, char *text, size_t size)
{
    size_t at = (size_t)snprintf(text, size, "one of");

    for (size_t i = 0; row->choices[i] && at < size; i++)
        at += (size_t)snprintf(
                text + at, size - at, "%s %s", i > 0 ? "," : "", row->choices[i]);
    if (row->takes_bool && at < size)
        (void)snprintf(text + at, size - at, ", false, true");
    return text;
}

const char *key_expected(enum policy_key key, char *text, size_t size)
{
    static const char *const expected[] = {
        [KEY_BOOL] = "true or false",
        [KEY_SIZE] = "a size such as 512M",
        [KEY_DURATION] = "a time such as 300s, 5m or 30d",
        [KEY_MILLI] = "a number such as 1.5",
        [KEY_COUNT] = "a number such as 256",
        [KEY_PERCENT] = "a number from 1 to 100",
        [KEY_PRICE] = "a price such as 0.000024",
        [KEY_MAP] = "names with values, such as {LANG: C.UTF-8}",
    };
    const struct key_row *row = key_row(key);

    switch (row->kind) {
    case KEY_CHOICE:
        return expected_choice(row, text, size);
    case KEY_TEXT:
        return row->words->expected;
    case KEY_LIST:
        (void)snprintf(text, size, "a list, each of it %s", row->words->expected);
        return text;
    case KEY_BOOL:
    case KEY_SIZE:
    case KEY_DURATION:
    case KEY_MILLI:
    case KEY_COUNT:
    case KEY_PERCENT:
    case KEY_PRICE:
    case KEY_MAP:
        break;
    }
    return expected[row->kind];
}
