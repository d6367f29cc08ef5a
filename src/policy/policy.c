/* policy.c - loads a policy, and answers questions about it. */
#include "policy/policy.h"
#include "base/err.h"
#include "base/str.h"
#include "base/suggest.h"
#include "policy/document.h"
#include "policy/environment.h"
#include "policy/file.h"
#include "policy/join.h"
#include "policy/keys.h"
#include "policy/words.h"
#include <carrel/policy.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>

#define SYSTEM_FILE "/etc/carrel/policy.yaml"

/* The files of one load, the least authority first. */
struct sources {
    struct document documents[JOIN_DOCUMENTS_MAX];
    enum policy_authority authority[JOIN_DOCUMENTS_MAX];
    size_t n;
    int base; /* the one that gives values; -1: none */
};

static struct policy *new_policy(struct carrel_error *err)
{
    struct policy *policy = calloc(1, sizeof(*policy));

    if (!policy)
        (void)err_set_errno(err, -ENOMEM, "policy");
    return policy;
}

void policy_free(struct policy *policy)
{
    if (!policy)
        return;
    if (policy->arena.chunk)
        arena_finish(policy->arena);
    free(policy);
}

/* ---- finding and reading ---- */

static int add_source(struct policy *policy, struct sources *sources, const struct file *file,
        enum policy_authority authority, struct carrel_error *err)
{
    sources->authority[sources->n] = authority;
    return document_read(&policy->arena, file->text, file->len, file->name,
            &sources->documents[sources->n++], err);
}

/* ~/.config/carrel/policy.yaml; false: the environment has neither HOME nor XDG_CONFIG_HOME. */
static bool user_path(const char *const *environment, char path[static PATH_MAX])
{
    const char *config = environment_get(environment, "XDG_CONFIG_HOME");
    const char *home = environment_get(environment, "HOME");
    int n = -1;

    if (config && config[0] == '/')
        n = snprintf(path, PATH_MAX, "%s/carrel/policy.yaml", config);
    else if (home && home[0] == '/')
        n = snprintf(path, PATH_MAX, "%s/.config/carrel/policy.yaml", home);
    return n > 0 && n < PATH_MAX;
}

static int find_sources(struct policy *policy, const struct policy_request *request,
        struct sources *sources, struct carrel_error *err)
{
    const bool is_none = request->file && strcmp(request->file, "none") == 0;
    const bool is_named = request->file && !is_none;
    char path[PATH_MAX];
    struct file file;
    int r = 0;

    if (is_named) {
        r = file_read_named(&policy->arena, request->file, &file, err);
        if (r == 0)
            r = add_source(policy, sources, &file, POLICY_OF_USER, err);
    } else if (!is_none) {
        r = file_find_repository(&policy->arena, request->cwd, &file, err);
        if (r > 0)
            r = add_source(policy, sources, &file, POLICY_OF_REPOSITORY, err);
    }
    if (r < 0)
        return r;
    sources->base = is_named ? 0 : -1;
    if (!is_none && (request->user_file || user_path(request->environment, path))) {
        r = file_read_user(
                &policy->arena, request->user_file ? request->user_file : path, &file, err);
        if (r > 0 && !is_named)
            sources->base = (int)sources->n;
        if (r > 0)
            r = add_source(policy, sources, &file, POLICY_OF_USER, err);
    }
    if (r < 0)
        return r;
    r = file_read_system(&policy->arena,
            request->system_file ? request->system_file : SYSTEM_FILE, &file, err);
    if (r > 0 && !is_none && sources->base < 0)
        sources->base = (int)sources->n;
    return r > 0 ? add_source(policy, sources, &file, POLICY_OF_SYSTEM, err) : r;
}

/* ---- profiles ---- */

/* Only files that give values can have the profile: files with bounds only are not searched. */
static bool gives_values(const struct sources *sources, size_t i)
{
    return (int)i == sources->base || sources->authority[i] == POLICY_OF_REPOSITORY;
}

static int check_profile(
        const struct sources *sources, const char *profile, struct carrel_error *err)
{
    const char *best = NULL;
    size_t distance = SIZE_MAX;
    size_t n = 0;
    char shown[64];
    char suggest[64];

    for (size_t i = 0; i < sources->n; i++) {
        if (!gives_values(sources, i))
            continue;
        if (document_has_profile(&sources->documents[i], profile))
            return 0;
        document_offer_profiles(&sources->documents[i], profile, &best, &distance);
        n++;
    }
    (void)str_escape(profile, strlen(profile), shown, sizeof(shown));
    if (n == 0)
        return err_set(
                err, -ENOENT, "there is no profile '%s': no policy file gives values", shown);
    if (best)
        return err_set(err, -ENOENT, "there is no profile '%s' (did you mean '%s'?)", shown,
                str_escape(best, strlen(best), suggest, sizeof(suggest)));
    return err_set(
            err, -ENOENT, "there is no profile '%s' in %s", shown, sources->documents[0].name);
}

static int read_documents(struct policy *policy, const struct sources *sources,
        const char *profile, struct carrel_error *err)
{
    int r = profile ? check_profile(sources, profile, err) : 0;

    for (size_t i = 0; r == 0 && i < sources->n; i++) {
        const struct document *document = &sources->documents[i];
        bool has_profile =
                profile && gives_values(sources, i) && document_has_profile(document, profile);
        struct document_values *given = NULL;
        r = document_read_values(document, &policy->arena, sources->authority[i],
                has_profile ? profile : NULL, &given, err);
        policy->documents[policy->n_documents++] = given;
        if ((int)i == sources->base)
            policy->base = given;
    }
    return r;
}

int policy_load(
        const struct policy_request *request, struct policy **out, struct carrel_error *err)
{
    struct sources sources = { .base = -1 };
    AUTO(policy_free) struct policy *policy = new_policy(err);
    if (!policy)
        return -ENOMEM;

    int r = find_sources(policy, request, &sources, err);
    if (r == 0)
        r = read_documents(policy, &sources, request->profile, err);
    if (r == 0)
        r = join_documents(policy, err);
    if (r == 0)
        r = environment_join(policy, request->environment, err);
    if (r == 0)
        r = join_settle(policy, err);
    if (r == 0)
        r = join_hash(policy, err);
    if (r < 0)
        return err_from(err, r, CARREL_FROM_POLICY);
    *out = ptr_steal(&policy);
    return 0;
}

int policy_built_in(struct policy **out, struct carrel_error *err)
{
    AUTO(policy_free) struct policy *policy = new_policy(err);
    if (!policy)
        return -ENOMEM;

    int r = join_documents(policy, err);
    if (r == 0)
        r = join_hash(policy, err);
    if (r < 0)
        return err_from(err, r, CARREL_FROM_POLICY);
    *out = ptr_steal(&policy);
    return 0;
}

/* ---- a file by itself ---- */

static int check_with(const struct document *document, struct arena *arena, const char *profile,
        struct carrel_error *err)
{
    struct document_values *given = NULL;
    AUTO(policy_free) struct policy *policy = new_policy(err);
    if (!policy)
        return -ENOMEM;

    int r = document_read_values(document, arena, POLICY_OF_USER, profile, &given, err);
    if (r < 0)
        return r;
    policy->documents[policy->n_documents++] = policy->base = given;
    r = join_documents(policy, err);
    return r < 0 ? r : join_settle(policy, err);
}

int policy_check(const char *text, size_t len, const char *name, struct carrel_error *err)
{
    AUTO(arena_finish) struct arena arena = { 0 };
    struct document document;

    int r = document_read(&arena, text, len, name, &document, err);
    if (r < 0)
        return r;
    const char *profile = NULL; /* the file without one comes first */
    do {
        r = check_with(&document, &arena, profile, err);
        profile = document_next_profile(&document, profile);
    } while (r == 0 && profile);
    return r;
}

int carrel_policy_check(const char *path, struct carrel_error *err)
{
    AUTO(arena_finish) struct arena arena = { 0 };
    struct file file;

    err = ERR_OR_IGNORED(err);
    int r = file_read_named(&arena, path, &file, err);
    if (r == 0)
        r = policy_check(file.text, file.len, file.name, err);
    return r < 0 ? err_from(err, r, CARREL_FROM_POLICY) : 0;
}

/* ---- questions ---- */

const struct policy_value *policy_get(const struct policy *policy, enum policy_key key)
{
    return policy->values[key];
}

const struct policy_value *policy_maximum(const struct policy *policy, enum policy_key key)
{
    return policy->maxima[key];
}

const char *policy_key_name(enum policy_key key)
{
    return key_row(key)->name;
}

const char *policy_position_text(
        const struct policy_position *position, char *text, size_t size)
{
    if (!position->name)
        (void)snprintf(text, size, "built in");
    else if (position->authority == POLICY_OF_ENVIRONMENT)
        (void)snprintf(text, size, "environment %s", position->name);
    else
        (void)snprintf(
                text, size, "%s:%u:%u", position->name, position->line, position->column);
    return text;
}

int policy_check_number(const struct policy *policy, enum policy_key key, uint64_t number,
        const char *flag, struct carrel_error *err)
{
    const struct policy_value *maximum = policy->maxima[key];
    const struct key_row *row = key_row(key);
    char there[JOIN_PLACE_MAX];

    if (!maximum->is_set || !key_is_looser(key, number, maximum->number))
        return 0;
    (void)policy_position_text(&maximum->position, there, sizeof(there));
    if (row->kind == KEY_BOOL || row->bound == BOUND_VALUE)
        (void)err_set(err, -EPERM, "%s is not allowed: %s is %s in %s", flag,
                key == POLICY_JOURNAL ? policy_key_name(POLICY_JOURNAL_REQUIRED) : row->name,
                maximum->text, there);
    else
        (void)err_set(err, -EPERM, "%s is %s than the maximum %s of %s", flag,
                row->kind == KEY_CHOICE ? "looser" : "more", maximum->text, there);
    return err_from(err, -EPERM, CARREL_FROM_POLICY);
}

static bool allows(enum policy_key key, const char *allowed, const char *item, bool is_writable)
{
    if (key == POLICY_MOUNTS_ALLOW)
        return words_mount_covers(allowed, item, is_writable);
    return key_covers(key, allowed, item);
}

int policy_check_item(const struct policy *policy, enum policy_key key, const char *item,
        bool is_writable, const char *flag, struct carrel_error *err)
{
    char there[JOIN_PLACE_MAX];
    char shown[128];

    for (size_t i = 0; i < policy->n_documents; i++) {
        const struct policy_value *list = &policy->documents[i]->values[key];
        bool is_allowed = !list->is_set;
        for (size_t j = 0; !is_allowed && list->list[j]; j++)
            is_allowed = allows(key, list->list[j], item, is_writable);
        if (is_allowed)
            continue;
        (void)err_set(err, -EPERM, "%s: %s does not allow '%s'%s (%s)", flag,
                policy_key_name(key), str_escape(item, strlen(item), shown, sizeof(shown)),
                key == POLICY_MOUNTS_ALLOW && is_writable ? " to be written" : "",
                policy_position_text(&list->position, there, sizeof(there)));
        return err_from(err, -EPERM, CARREL_FROM_POLICY);
    }
    return 0;
}
