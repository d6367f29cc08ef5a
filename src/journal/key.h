/*
 * key.h - Ed25519 keys that sign seals, and the keys that a reader trusts.
 *
 * The chain of hashes shows that no record was changed afterwards. Only a signature protects
 * against a writer that recomputes the whole chain.
 */
#pragma once
#include "base/auto.h"
#include "base/json.h"
#include "journal/journal.h"

#define JOURNAL_KEY_BYTES 32
#define JOURNAL_KEY_ID 17 /* 16 hex digits of the SHA-256 of the public key, and a NUL */

/*
 * Creates a new pair in two files that must not exist: the secret one with mode 0600. -EEXIST:
 * one exists, and both are left unchanged. `public_hex` gets the public key.
 */
int journal_key_make(const char *secret_path, const char *public_path,
        char public_hex[static JOURNAL_KEY], struct carrel_error *err);

/*
 * Reads the secret file. It must belong to this user and be readable by no other: -EACCES.
 * -ENOENT: none.
 */
int journal_key_load(const char *path, struct journal_key **out, struct carrel_error *err);
void journal_key_free(struct journal_key *key); /* NULL is fine */
DEFINE_AUTO(struct journal_key *, journal_key_free)

/* A short name of a key, for people. */
void journal_key_id(const char *public_hex, char id[static JOURNAL_KEY_ID]);

/* The key whose signatures count. */
struct journal_trust {
    unsigned char key[JOURNAL_KEY_BYTES];
    bool is_required; /* an unsigned seal is an error too */
};

/* Reads the public file of a pair. It must not be writable by other users. -ENOENT: none. */
int journal_trust_load(const char *path, struct journal_trust *out, struct carrel_error *err);

/* Adds the members `key` and `signature`, which cover all that the line has so far. */
int journal_sign(const struct journal_key *key, struct json *json, struct carrel_error *err);

/* How many bytes at the end of `text` have the form of what journal_sign() adds; 0: none. */
size_t journal_signature_length(const char *text, size_t len);

/*
 * Checks what journal_sign() added at text + len, of_signature bytes. If `trust` is NULL, any
 * key is accepted. `signer` gets the public key in hex, or "".
 */
int journal_signature_check(const struct journal_trust *trust, const char *text, size_t len,
        size_t of_signature, char signer[static JOURNAL_KEY], struct carrel_error *err);
