/*
 * document.h - a whole policy file: its own keys, and the profiles in it.
 *
 * The keys at the top are the base of every profile; `extends: OTHER` puts the keys of another
 * profile in between.
 */
#pragma once
#include "policy/document_values.h"

struct document {
    const char *name; /* of the file */
    const struct node *root;
    const struct node *profiles; /* a mapping, or NULL */
};

/* Checks the profiles too. Everything is in `arena`; so must `name` be. */
int document_read(struct arena *arena, const char *text, size_t len, const char *name,
        struct document *out, struct carrel_error *err);

bool document_has_profile(const struct document *document, const char *profile);

/* The name of the profile that comes after this one; NULL before the first, after the last. */
const char *document_next_profile(const struct document *document, const char *profile);

/* Keeps the name in *best that is nearest to `profile`; as suggest_offer(). */
void document_offer_profiles(const struct document *document, const char *profile,
        const char **best, size_t *distance);

/* What the file says with this profile, which must be in it; NULL: without one. */
int document_read_values(const struct document *document, struct arena *arena,
        enum policy_authority authority, const char *profile, struct layer **out,
        struct carrel_error *err);
