/*
 * key.h - Ed25519 keys that sign seals, and whom a reader of seals trusts.
 *
 * A chain of hashes shows that nothing was changed after it was written; who could write all of
 * it anew is kept out by a signature alone.
 */
#pragma once
#include "base/auto.h"
#include "base/json.h"
#include "journal/journal.h"

#define JOURNAL_KEY_BYTES 32
#define JOURNAL_KEY_ID 17 /* 16 hex digits of the SHA-256 of the public key, and a NUL */

/*
 * Makes a new pair in two files that must not exist: the secret one with mode 0600. -EEXIST:
 * one is there, and both stay as they were. `public_hex` gets the public key.
 */
int journal_key_make(const char *secret_path, const char *public_path,
        char public_hex[static JOURNAL_KEY], struct carrel_error *err);

/* Reads the secret file. It must be ours, and nobody else's to read: -EACCES. -ENOENT: none. */
int journal_key_load(const char *path, struct journal_key **out, struct carrel_error *err);
void journal_key_free(struct journal_key *key); /* NULL is fine */
DEFINE_AUTO(struct journal_key *, journal_key_free)

/* The name of a key for people. */
void journal_key_id(const char *public_hex, char id[static JOURNAL_KEY_ID]);

/* Whose signatures count. */
struct journal_trust {
    unsigned char key[JOURNAL_KEY_BYTES];
    bool is_required; /* a seal without a signature is a fault too */
};

/* Reads the public file of a pair. Nobody else may be able to write it. -ENOENT: none. */
int journal_trust_load(const char *path, struct journal_trust *out, struct carrel_error *err);

/* Adds the members `key` and `signature`, about all that the line has so far. */
int journal_sign(const struct journal_key *key, struct json *json, struct carrel_error *err);

/* How many bytes at the end of `text` have the form of what journal_sign() adds; 0: none. */
size_t journal_signature_length(const char *text, size_t len);

/*
 * Checks what journal_sign() added at text + len, of_signature bytes. `trust` may be NULL: then
 * any key will do. `signer` gets the public key in hex, or "".
 */
int journal_signature_check(const struct journal_trust *trust, const char *text, size_t len,
        size_t of_signature, char signer[static JOURNAL_KEY], struct carrel_error *err);
