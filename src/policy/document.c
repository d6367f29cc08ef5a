/* document.c - profiles and what they extend. */
#include "policy/document.h"
#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"
#include "base/suggest.h"
#include "policy/node.h"
#include <errno.h>

#define CHAIN_MAX 16 /* profiles that extend one another */
#define PROFILES_MAX 64

static const struct node *member(const struct node *map, const char *key)
{
    for (const struct node *node = map ? map->item : NULL; node; node = node->next)
        if (strcmp(node->key, key) == 0)
            return node;
    return NULL;
}

static int wrong(const struct document *document, const struct node *node, const char *what,
        struct carrel_error *err)
{
    return err_set(
            err, -EINVAL, "%s:%u:%u: %s", document->name, node->line, node->column, what);
}

bool document_has_profile(const struct document *document, const char *profile)
{
    return member(document->profiles, profile);
}

const char *document_next_profile(const struct document *document, const char *profile)
{
    const struct node *node = profile              ? member(document->profiles, profile)->next
                              : document->profiles ? document->profiles->item
                                                   : NULL;

    return node ? node->key : NULL;
}

void document_offer_profiles(const struct document *document, const char *profile,
        const char **best, size_t *distance)
{
    const struct node *node = document->profiles ? document->profiles->item : NULL;

    for (; node; node = node->next)
        suggest_offer(node->key, profile, strlen(profile), best, distance);
}

static int unknown_base(
        const struct document *document, const struct node *extends, struct carrel_error *err)
{
    const char *best = NULL;
    size_t distance = SIZE_MAX;
    char shown[64];
    char suggest[64];

    document_offer_profiles(document, extends->text, &best, &distance);
    (void)str_escape(extends->text, strlen(extends->text), shown, sizeof(shown));
    if (best)
        return err_set(err, -EINVAL,
                "%s:%u:%u: extends: there is no profile '%s' (did you mean '%s'?)",
                document->name, extends->line, extends->column, shown,
                str_escape(best, strlen(best), suggest, sizeof(suggest)));
    return err_set(err, -EINVAL, "%s:%u:%u: extends: there is no profile '%s'", document->name,
            extends->line, extends->column, shown);
}

/* The profile and those that it extends, the profile itself first. */
static int find_chain(const struct document *document, const struct node *profile,
        const struct node *chain[static CHAIN_MAX], size_t *n, struct carrel_error *err)
{
    for (*n = 0; *n < CHAIN_MAX;) {
        chain[(*n)++] = profile;
        const struct node *extends =
                profile->kind == NODE_MAP ? member(profile, "extends") : NULL;
        if (!extends)
            return 0;
        if (extends->kind != NODE_SCALAR || extends->is_null)
            return wrong(document, extends, "extends: expected the name of a profile", err);
        profile = member(document->profiles, extends->text);
        if (!profile)
            return unknown_base(document, extends, err);
        for (size_t i = 0; i < *n; i++)
            if (chain[i] == profile)
                return wrong(document, extends, "extends: the profiles extend each other", err);
    }
    return wrong(document, profile, "extends: too many profiles extend each other", err);
}

/* Every profile must be valid, not only the requested one: errors are found early. */
static int check_profiles(
        const struct document *document, struct arena *arena, struct carrel_error *err)
{
    const struct node *chain[CHAIN_MAX];
    const struct node *node = document->profiles ? document->profiles->item : NULL;
    size_t n;

    for (size_t i = 0; node; node = node->next, i++) {
        struct document_values aside = { .name = document->name };
        if (i == PROFILES_MAX)
            return wrong(document, node, "profiles: too many", err);
        int r = find_chain(document, node, chain, &n, err);
        if (r == 0)
            r = document_values_take(&aside, arena, node, "extends", err);
        if (r < 0)
            return r;
    }
    return 0;
}

int document_read(struct arena *arena, const char *text, size_t len, const char *name,
        struct document *out, struct carrel_error *err)
{
    struct document document = { .name = name };
    struct node *root = NULL;

    int r = node_read(arena, text, len, name, &root, err);
    if (r < 0)
        return r;
    document.root = root;
    const struct node *profiles =
            root && root->kind == NODE_MAP ? member(root, "profiles") : NULL;
    if (profiles && profiles->kind == NODE_SCALAR && profiles->is_null)
        profiles = NULL;
    if (profiles && profiles->kind != NODE_MAP)
        return wrong(&document, profiles, "profiles: expected names with keys", err);
    document.profiles = profiles;
    r = check_profiles(&document, arena, err);
    if (r < 0)
        return r;
    *out = document;
    return 0;
}

static int take_profile(const struct document *document, struct arena *arena,
        const char *profile, struct document_values *given, struct carrel_error *err)
{
    const struct node *chain[CHAIN_MAX];
    size_t n;

    int r = find_chain(document, member(document->profiles, profile), chain, &n, err);
    for (; r == 0 && n > 0; n--)
        r = document_values_take(given, arena, chain[n - 1], "extends", err);
    return r;
}

int document_read_values(const struct document *document, struct arena *arena,
        enum policy_authority authority, const char *profile, struct document_values **out,
        struct carrel_error *err)
{
    struct document_values *given = arena_alloc(arena, sizeof(*given));

    if (!given)
        return err_set_errno(err, -ENOMEM, "read '%s'", document->name);
    given->authority = authority;
    given->name = document->name;
    int r = document->root ? document_values_take(given, arena, document->root, "profiles", err)
                           : 0;
    if (r == 0 && profile)
        r = take_profile(document, arena, profile, given, err);
    if (r < 0)
        return r;
    *out = given;
    return 0;
}
