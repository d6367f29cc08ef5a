/* permit.c - flags over the policy, never past it. */
#include "core/request/permit.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "git/repo.h"
#include "policy/policy.h"
#include "workspace/workspace.h"
#include <carrel/run.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static bool is_written(const struct policy_value *value)
{
    return value->is_set && value->position.authority != POLICY_BUILT_IN;
}

/* What people call a limit, and where it is in the options. */
enum unit { UNIT_COUNT, UNIT_SIZE, UNIT_TIME, UNIT_MILLI };
static const struct amount {
    enum policy_key key;
    char flag[16];
    enum unit unit;
    size_t offset;
} amounts[] = {
#define AMOUNT(key, flag, unit, member)                                                        \
    {                                                                                          \
        key, flag, unit, offsetof(struct carrel_run_options, member)                           \
    }
    AMOUNT(POLICY_TIMEOUT, "--timeout", UNIT_TIME, timeout_ms),
    AMOUNT(POLICY_CPU, "--cpu", UNIT_MILLI, cpu_milli),
    AMOUNT(POLICY_MEMORY, "--memory", UNIT_SIZE, memory_bytes),
    AMOUNT(POLICY_DISK, "--disk", UNIT_SIZE, disk_bytes),
    AMOUNT(POLICY_PIDS, "--pids", UNIT_COUNT, pids),
    AMOUNT(POLICY_FILES, "--files", UNIT_COUNT, files),
    AMOUNT(POLICY_IO_READ, "--io-read", UNIT_SIZE, io_read_bytes),
    AMOUNT(POLICY_IO_WRITE, "--io-write", UNIT_SIZE, io_write_bytes),
    AMOUNT(POLICY_OUTPUT, "--max-output", UNIT_SIZE, output_bytes),
};

static const char *amount_text(enum unit unit, uint64_t value, char text[static 32])
{
    switch (unit) {
    case UNIT_SIZE:
        return str_size(value, text);
    case UNIT_TIME:
        return str_duration(value, text);
    case UNIT_MILLI:
        return str_milli(value, text);
    case UNIT_COUNT:
        break;
    }
    (void)snprintf(text, 32, "%" PRIu64, value);
    return text;
}

/* A limit that was written down is a demand; a built-in one stays 0: the default. */
static int permit_amounts(
        struct carrel_run_options *o, const struct policy *policy, struct carrel_error *err)
{
    for (size_t i = 0; i < ARRAY_LEN(amounts); i++) {
        const struct amount *amount = &amounts[i];
        const struct policy_value *value = policy_get(policy, amount->key);
        uint64_t *given = (uint64_t *)(void *)((char *)o + amount->offset);
        char text[32];
        char flag[64];
        if (*given == 0) {
            *given = is_written(value) ? value->number : 0;
            continue;
        }
        (void)snprintf(flag, sizeof(flag), "%s %s", amount->flag,
                amount_text(amount->unit, *given, text));
        int r = policy_check_number(policy, amount->key, *given, flag, err);
        if (r < 0)
            return r;
    }
    return 0;
}

/* A runtime that is asked for by name is taken as it is, unless a policy wants more. */
static int permit_runtime(
        struct permit *permit, const struct policy *policy, struct carrel_error *err)
{
    const struct policy_value *enabled = policy_get(policy, POLICY_ENABLED);
    const struct policy_value *type = policy_get(policy, POLICY_TYPE);
    const struct policy_value *minimum = policy_get(policy, POLICY_MINIMUM_ISOLATION);
    struct carrel_run_options *o = &permit->options;
    char position[256];

    permit->least_isolation = (unsigned)minimum->number;
    if (o->runtime) {
        int isolation = policy_runtime_isolation(o->runtime);
        if (isolation >= 0 && is_written(minimum) && (uint64_t)isolation < minimum->number)
            return err_set(err, -EPERM,
                    "--runtime %s isolates less than sandbox.minimum_isolation of %s allows",
                    o->runtime,
                    policy_position_text(&minimum->position, position, sizeof(position)));
        if (isolation >= 0 && (unsigned)isolation < permit->least_isolation)
            permit->least_isolation = (unsigned)isolation;
    } else {
        o->runtime = type->text;
        permit->fallback = policy_get(policy, POLICY_FALLBACK)->list;
    }
    bool is_process = strcmp(o->runtime, "process") == 0;
    if (enabled->number == 0 && !is_process)
        return err_set(err, -EPERM,
                "sandbox.enabled is false (%s): to run without a sandbox write 'type: "
                "process', too",
                policy_position_text(&enabled->position, position, sizeof(position)));
    return 0;
}

static int permit_network(
        struct carrel_run_options *o, const struct policy *policy, struct carrel_error *err)
{
    const struct policy_value *network = policy_get(policy, POLICY_NETWORK);

    if (o->network == CARREL_NETWORK_DEFAULT) {
        if (is_written(network))
            o->network = network->number ? CARREL_NETWORK_HOST : CARREL_NETWORK_NONE;
        return 0;
    }
    return policy_check_number(policy, POLICY_NETWORK, o->network == CARREL_NETWORK_HOST,
            o->network == CARREL_NETWORK_HOST ? "--network host" : "--network none", err);
}

/* Whether a comma-separated list names `item`. */
static bool names(const char *list, const char *item)
{
    size_t len = strlen(item);

    for (const char *at = list; at && *at; at += strcspn(at, ","), at += *at == ',')
        if (strncmp(at, item, len) == 0 && (at[len] == ',' || at[len] == '\0'))
            return true;
    return false;
}

static bool is_in(const char *const *list, const char *item, size_t len)
{
    for (; list && *list; list++)
        if (strlen(*list) == len && memcmp(*list, item, len) == 0)
            return true;
    return false;
}

/* "a,b" and what the policy lists, as one list. */
static int join(
        const char *given, const char *const *list, char **out, struct carrel_error *err)
{
    AUTO(buf_finish) struct buf text = BUF_INIT(4096);

    *out = NULL;
    if (given)
        buf_add_str(&text, given);
    for (; list && *list; list++) {
        if (names(given, *list))
            continue;
        buf_addf(&text, "%s%s", text.len ? "," : "", *list);
    }
    if (text.is_short)
        return err_set_errno(err, -ENOMEM, "list");
    if (given || text.len > 0) /* an empty list of the caller's is a mistake to be told of */
        *out = text.len ? ptr_steal(&text.data) : strdup("");
    return 0;
}

/* A policy that lists limits means these: a flag cannot weaken another. */
static int check_best_effort(
        const char *given, const struct policy *policy, struct carrel_error *err)
{
    const struct policy_value *allowed = policy_get(policy, POLICY_BEST_EFFORT);
    char position[256];

    if (!is_written(allowed))
        return 0;
    for (const char *at = given; at && *at; at += strcspn(at, ","), at += *at == ',') {
        size_t len = strcspn(at, ",");
        if (!is_in(allowed->list, at, len))
            return err_set(err, -EPERM,
                    "--best-effort %.*s is not among sandbox.best_effort of %s", (int)len, at,
                    policy_position_text(&allowed->position, position, sizeof(position)));
    }
    return 0;
}

static int permit_lists(
        struct permit *permit, const struct policy *policy, struct carrel_error *err)
{
    struct carrel_run_options *o = &permit->options;

    int r = check_best_effort(o->best_effort, policy, err);
    if (r == 0)
        r = join(o->require, policy_get(policy, POLICY_REQUIRE)->list, &permit->require, err);
    if (r == 0)
        r = join(o->best_effort, policy_get(policy, POLICY_BEST_EFFORT)->list,
                &permit->best_effort, err);
    o->require = permit->require;
    o->best_effort = permit->best_effort;
    if (o->ids == CARREL_IDS_DEFAULT)
        o->ids = policy_get(policy, POLICY_IDS)->number ? CARREL_IDS_SUB : CARREL_IDS_OWN;
    if (!o->hostname && is_written(policy_get(policy, POLICY_HOSTNAME)))
        o->hostname = policy_get(policy, POLICY_HOSTNAME)->text;
    if (!o->image && !o->root)
        o->image = policy_get(policy, POLICY_IMAGE)->text;
    return r;
}

/* NAME, or PREFIX*. */
static bool is_passed(const char *const *patterns, const char *name, size_t len)
{
    for (; *patterns; patterns++) {
        size_t n = strlen(*patterns);
        bool is_prefix = n > 0 && (*patterns)[n - 1] == '*';
        if (is_prefix ? len >= n - 1 && memcmp(*patterns, name, n - 1) == 0
                      : len == n && memcmp(*patterns, name, n) == 0)
            return true;
    }
    return false;
}

bool permit_passes(const struct policy *policy, const char *variable)
{
    const char *const *pass = policy_get(policy, POLICY_ENV_PASS)->list;

    return pass && is_passed(pass, variable, strcspn(variable, "="));
}

static int check_variable(
        const struct policy *policy, const char *entry, struct carrel_error *err)
{
    char flag[300];

    AUTO(free) char *name = strndup(entry, strcspn(entry, "="));
    if (!name)
        return err_set_errno(err, -ENOMEM, "environment");
    (void)snprintf(flag, sizeof(flag), "--env %s", name);
    return policy_check_item(policy, POLICY_ENV_ALLOW, name, false, flag, err);
}

static size_t count(const char *const *list)
{
    size_t n = 0;

    while (list && list[n])
        n++;
    return n;
}

/* The policy's own, then what it passes on, then the caller's: a later one wins. */
static int permit_environment(struct permit *permit, const struct policy *policy,
        const char *const *environment, struct carrel_error *err)
{
    const char *const *given = permit->options.env;
    const char *const *set = policy_get(policy, POLICY_ENV_SET)->list;
    const char *const *pass = policy_get(policy, POLICY_ENV_PASS)->list;
    size_t n = 0;

    for (size_t i = 0; i < count(given); i++) {
        int r = check_variable(policy, given[i], err);
        if (r < 0)
            return r;
    }
    if (count(set) + count(pass) == 0)
        return 0;
    permit->env = calloc(count(set) + count(environment) + count(given) + 1, sizeof(char *));
    if (!permit->env)
        return err_set_errno(err, -ENOMEM, "environment");
    for (size_t i = 0; i < count(set); i++)
        permit->env[n++] = set[i];
    for (size_t i = 0; pass && i < count(environment); i++)
        if (is_passed(pass, environment[i], strcspn(environment[i], "=")))
            permit->env[n++] = environment[i];
    for (size_t i = 0; i < count(given); i++)
        permit->env[n++] = given[i];
    permit->options.env = permit->env;
    return 0;
}

#define ON_SUCCESS_COMMIT 2 /* as the policy orders actions */

/* The names are the policy's, which has checked them. */
static enum carrel_outcome_action action_of(const struct policy_value *value)
{
    static const struct {
        char name[16];
        enum carrel_outcome_action action;
    } actions[] = { { "commit", CARREL_COMMIT }, { "apply", CARREL_APPLY },
        { "discard", CARREL_DISCARD } };

    for (size_t i = 0; i < ARRAY_LEN(actions); i++)
        if (value->text && strcmp(value->text, actions[i].name) == 0)
            return actions[i].action;
    return CARREL_KEEP;
}

static enum carrel_tree tree_of(const struct policy_value *value)
{
    static const struct {
        char name[16];
        enum carrel_tree tree;
    } trees[] = { { "overlay", CARREL_TREE_OVERLAY }, { "copy", CARREL_TREE_COPY } };

    for (size_t i = 0; i < ARRAY_LEN(trees); i++)
        if (value->text && strcmp(value->text, trees[i].name) == 0)
            return trees[i].tree;
    return CARREL_TREE_AUTO;
}

static bool has_workspace_mount(const struct carrel_run_options *o)
{
    for (size_t i = 0; i < o->n_mounts; i++)
        if (strcmp(o->mounts[i].target, "/workspace") == 0)
            return true;
    return false;
}

/* What the caller said of a workspace, within what a policy allows. */
static int check_workspace(const struct carrel_workspace_options *w,
        const struct policy *policy, struct carrel_error *err)
{
    static const struct {
        char flag[24];
        uint64_t number; /* as the policy orders them */
    } actions[] = {
        [CARREL_DISCARD] = { "--on-success discard", 0 },
        [CARREL_KEEP] = { "--on-success keep", 1 },
        [CARREL_COMMIT] = { "--on-success commit", ON_SUCCESS_COMMIT },
        [CARREL_APPLY] = { "--on-success apply", 3 },
    };
    int r = 0;

    if (w->resume && w->on_failure == CARREL_DISCARD)
        return err_set(err, -EINVAL,
                "--on-failure discard is for new workspaces: this one has what earlier runs "
                "left; 'carrel workspace discard' removes it");
    if (w->on_success != CARREL_ACTION_DEFAULT)
        r = policy_check_number(policy, POLICY_ON_SUCCESS, actions[w->on_success].number,
                actions[w->on_success].flag, err);
    if (r == 0 && w->history != CARREL_HISTORY_DEFAULT)
        r = policy_check_number(policy, POLICY_WORKSPACE_HISTORY,
                w->history == CARREL_HISTORY_FULL,
                w->history == CARREL_HISTORY_FULL ? "--history full" : "--history cut", err);
    return r;
}

/* How a workspace is made and ends, where the caller did not say. */
static void fill_workspace(struct permit *permit, const struct policy *policy)
{
    struct carrel_run_options *o = &permit->options;
    struct carrel_workspace_options *w = &permit->workspace;
    bool is_wanted = policy_get(policy, POLICY_WORKSPACE)->number && !has_workspace_mount(o);

    if (!o->workspace && !is_wanted)
        return;
    if (o->workspace)
        *w = *o->workspace;
    o->workspace = w;
    permit->may_commit =
            policy_check_number(policy, POLICY_ON_SUCCESS, ON_SUCCESS_COMMIT, "", NULL) == 0;
    if (w->on_success == CARREL_ACTION_DEFAULT) {
        w->on_success = action_of(policy_get(policy, POLICY_ON_SUCCESS));
        if (w->is_folder && w->on_success == CARREL_COMMIT)
            w->on_success = CARREL_KEEP; /* a folder has no branch */
    }
    if (w->on_failure == CARREL_ACTION_DEFAULT)
        w->on_failure = w->resume ? CARREL_KEEP /* what earlier runs left is not this one's */
                                  : action_of(policy_get(policy, POLICY_ON_FAILURE));
    if (w->resume || w->fork)
        return; /* it is made already, or made as another one was */
    if (w->tree == CARREL_TREE_AUTO)
        w->tree = tree_of(policy_get(policy, POLICY_WORKSPACE_TREE));
    if (!w->setup) {
        w->setup = policy_get(policy, POLICY_WORKSPACE_SETUP)->text;
        if (!w->setup_keys)
            w->setup_keys = policy_get(policy, POLICY_WORKSPACE_SETUP_KEYS)->list;
    }
    if (w->is_folder)
        return;
    if (w->history == CARREL_HISTORY_DEFAULT)
        w->history = policy_get(policy, POLICY_WORKSPACE_HISTORY)->number ? CARREL_HISTORY_FULL
                                                                          : CARREL_HISTORY_CUT;
    if (!w->include)
        w->include = policy_get(policy, POLICY_WORKSPACE_INCLUDE)->list;
    if (!w->base && policy_get(policy, POLICY_WORKSPACE_DIRTY)->number)
        w->is_dirty = true;
}

static int permit_record(
        struct carrel_run_options *o, const struct policy *policy, struct carrel_error *err)
{
    static const enum carrel_store stores[] = {
        [POLICY_STORE_NEVER] = CARREL_STORE_NEVER,
        [POLICY_STORE_ON_ERROR] = CARREL_STORE_ON_ERROR,
        [POLICY_STORE_ALWAYS] = CARREL_STORE_ALWAYS,
    };
    static const char *const flags[] = {
        [CARREL_STORE_NEVER] = "--store-code never",
        [CARREL_STORE_ON_ERROR] = "--store-code on_error",
        [CARREL_STORE_ALWAYS] = "--store-code always",
    };
    const struct policy_value *required = policy_get(policy, POLICY_JOURNAL_REQUIRED);
    char position[256];

    if (o->journal == CARREL_JOURNAL_OFF && required->number)
        return err_set(err, -EPERM, "--journal off: %s requires a record of every run",
                policy_position_text(&required->position, position, sizeof(position)));
    if (o->journal == CARREL_JOURNAL_DEFAULT)
        o->journal = policy_get(policy, POLICY_JOURNAL)->number || required->number
                             ? CARREL_JOURNAL_ON
                             : CARREL_JOURNAL_OFF;
    if (o->store_code == CARREL_STORE_DEFAULT) {
        o->store_code = stores[policy_get(policy, POLICY_STORE_CODE)->number];
        return 0;
    }
    return policy_check_number(policy, POLICY_STORE_CODE,
            (uint64_t)(o->store_code - CARREL_STORE_NEVER), flags[o->store_code], err);
}

int permit_make(const struct carrel_run_options *given, const struct policy *policy,
        const char *const *environment, struct permit *out, struct carrel_error *err)
{
    *out = (struct permit){ .options = *given };
    int r = permit_runtime(out, policy, err);
    if (r == 0)
        r = permit_amounts(&out->options, policy, err);
    if (r == 0)
        r = permit_network(&out->options, policy, err);
    if (r == 0)
        r = permit_lists(out, policy, err);
    if (r == 0)
        r = permit_environment(out, policy, environment, err);
    if (r == 0)
        r = permit_record(&out->options, policy, err);
    if (r == 0 && given->workspace)
        r = check_workspace(given->workspace, policy, err);
    if (r < 0)
        return r == -EPERM ? err_from(err, r, CARREL_FROM_POLICY) : r;
    fill_workspace(out, policy);
    out->output_file_bytes = policy_get(policy, POLICY_OUTPUT_FILE)->number;
    return 0;
}

void permit_finish(struct permit permit)
{
    free(permit.env);
    free(permit.require);
    free(permit.best_effort);
}

/* `path` is where it really is: a link in an allowed directory is no way out of it. */
static int check_place(const struct policy *policy, const char *path, const char *named,
        const char *option, struct carrel_error *err)
{
    char flag[PATH_MAX + 32];

    (void)snprintf(flag, sizeof(flag), "%s %s", option, named);
    return policy_check_item(policy, POLICY_MOUNTS_ALLOW, path, false, flag, err);
}

int permit_folder(const struct policy *policy, const char *path, const char *named,
        struct carrel_error *err)
{
    return policy ? check_place(policy, path, named, "--workdir", err) : 0;
}

int permit_repo(const struct policy *policy, const struct repo *repo, struct carrel_error *err)
{
    if (!policy)
        return 0;
    const char *top = repo->top ? repo->top : repo->common_dir;
    int r = check_place(policy, top, top, "--repo", err);
    /* Those of a linked work tree, and what a repository borrows, lie elsewhere. */
    for (size_t i = 0; r == 0 && repo->objects[i]; i++)
        r = check_place(policy, repo->objects[i], repo->objects[i], "--repo", err);
    return r;
}

int permit_workspace(
        const struct policy *policy, const struct workspace *ws, struct carrel_error *err)
{
    const char *path = ws->top ? ws->top : ws->repo;
    char real[PATH_MAX];

    if (!policy)
        return 0;
    return check_place(
            policy, realpath(path, real) ? real : path, path, "the workspace of", err);
}
