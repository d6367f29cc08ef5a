/*
 * document.h - a whole policy file: its own keys, and the profiles in it.
 *
 * The keys at the top are the base of every profile; `extends: OTHER` inserts the keys of
 * another profile between them.
 */
#pragma once
#include "policy/document_values.h"

struct document {
    const char *name; /* of the file */
    const struct node *root;
    const struct node *profiles; /* a mapping, or NULL */
};

/* Checks the profiles too. Everything is allocated in `arena`, in which `name` must be, too. */
int document_read(struct arena *arena, const char *text, size_t len, const char *name,
        struct document *out, struct carrel_error *err);

bool document_has_profile(const struct document *document, const char *profile);

/* The name of the profile after this one. NULL: start with the first; NULL after the last. */
const char *document_next_profile(const struct document *document, const char *profile);

/* Offers all profile names to suggest_offer(). */
void document_offer_profiles(const struct document *document, const char *profile,
        const char **best, size_t *distance);

/* The file's values with this profile, which must be in it; NULL: without one. */
int document_read_values(const struct document *document, struct arena *arena,
        enum policy_authority authority, const char *profile, struct document_values **out,
        struct carrel_error *err);
