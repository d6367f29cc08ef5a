/*
 * key.c - keys in one-line files, and signatures. libsodium is initialised only to sign or to
 * check.
 */
#include "journal/key.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/sha256.h"
#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdio.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

_Static_assert(crypto_sign_PUBLICKEYBYTES == JOURNAL_KEY_BYTES, "the size of public keys");
_Static_assert(crypto_sign_SEEDBYTES == JOURNAL_KEY_BYTES, "the size of seeds");

struct journal_key {
    unsigned char secret[crypto_sign_SECRETKEYBYTES];
    unsigned char public[crypto_sign_PUBLICKEYBYTES];
};

#define KEY_DIGITS (2 * JOURNAL_KEY_BYTES)
#define SIGNATURE_DIGITS (2 * crypto_sign_BYTES)

static const char secret_word[] = "carrel-journal-seed ";
static const char public_word[] = "carrel-journal-key ";

/*
 * Prefix of everything that is signed, so that a signature cannot be used for another purpose.
 */
static const char purpose[] = "carrel journal seal\n";

static int start(struct carrel_error *err)
{
    return sodium_init() < 0 ? err_set(err, -EIO, "libsodium does not start") : 0;
}

/* One line: the word, a key in hex, a newline. */
static int parse_key(const char *text, size_t len, const char *word,
        unsigned char key[static JOURNAL_KEY_BYTES])
{
    size_t n = strlen(word);
    size_t got = 0;

    if (len != n + KEY_DIGITS + 1 || memcmp(text, word, n) != 0 || text[len - 1] != '\n' ||
            sodium_hex2bin(key, JOURNAL_KEY_BYTES, text + n, KEY_DIGITS, NULL, &got, NULL) !=
                    0 ||
            got != JOURNAL_KEY_BYTES)
        return -EBADMSG;
    return 0;
}

/* `forbidden`: permissions of other users that make the key untrustworthy. */
static int load(const char *path, const char *word, mode_t forbidden,
        unsigned char key[static JOURNAL_KEY_BYTES], struct carrel_error *err)
{
    char text[160];
    struct stat st;

    AUTO(fd_close) int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0)
        return err_set_errno(err, -errno, "open '%s'", path);
    if (fstat(fd, &st) < 0)
        return err_set_errno(err, -errno, "stat '%s'", path);
    if (!S_ISREG(st.st_mode))
        return err_set(err, -EINVAL, "'%s' is not a regular file", path);
    if (st.st_uid != geteuid() && st.st_uid != 0)
        return err_set(err, -EACCES, "'%s' belongs to another user", path);
    if (st.st_mode & forbidden)
        return err_set(err, -EACCES, "'%s' can be %s by others (mode %04o)", path,
                forbidden & 0044 ? "read or written" : "written", (unsigned)st.st_mode & 07777);
    ssize_t n = fd_read_all(fd, text, sizeof(text));
    if (n < 0)
        return err_set_errno(err, (int)n, "read '%s'", path);
    int r = parse_key(text, (size_t)n, word, key);
    sodium_memzero(text, sizeof(text));
    return r < 0 ? err_set(err, r, "'%s' is not a key file of this kind ('%s…')", path, word)
                 : 0;
}

int journal_key_load(const char *path, struct journal_key **out, struct carrel_error *err)
{
    unsigned char seed[crypto_sign_SEEDBYTES];
    AUTO(journal_key_free) struct journal_key *key = calloc(1, sizeof(*key));

    if (!key)
        return err_set_errno(err, -ENOMEM, "load key");
    int r = load(path, secret_word, 0077, seed, err);
    if (r < 0)
        return r;
    r = start(err);
    if (r == 0 && crypto_sign_seed_keypair(key->public, key->secret, seed) != 0)
        r = err_set(err, -EIO, "'%s' gives no key", path);
    sodium_memzero(seed, sizeof(seed));
    if (r < 0)
        return r;
    *out = ptr_steal(&key);
    return 0;
}

void journal_key_free(struct journal_key *key)
{
    if (key)
        sodium_memzero(key, sizeof(*key));
    free(key);
}

static int write_new(
        const char *path, const char *text, size_t len, mode_t mode, struct carrel_error *err)
{
    AUTO(fd_close)
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
    if (fd < 0)
        return err_set_errno(err, -errno, "create '%s'", path);
    int r = fd_write_all(fd, text, len);
    if (r == 0 && fsync(fd) < 0)
        r = -errno;
    if (r < 0) {
        (void)unlink(path);
        return err_set_errno(err, r, "write '%s'", path);
    }
    return 0;
}

static int write_key(const char *path, const char *word,
        const unsigned char key[static JOURNAL_KEY_BYTES], mode_t mode,
        struct carrel_error *err)
{
    char hex[KEY_DIGITS + 1];
    char text[160];

    sodium_bin2hex(hex, sizeof(hex), key, JOURNAL_KEY_BYTES);
    int n = snprintf(text, sizeof(text), "%s%s\n", word, hex);
    int r = write_new(path, text, (size_t)n, mode, err);
    sodium_memzero(hex, sizeof(hex));
    sodium_memzero(text, sizeof(text));
    return r;
}

int journal_key_make(const char *secret_path, const char *public_path,
        char public_hex[static JOURNAL_KEY], struct carrel_error *err)
{
    unsigned char seed[crypto_sign_SEEDBYTES];
    struct journal_key key;

    int r = start(err);
    if (r < 0)
        return r;
    if (getrandom(seed, sizeof(seed), 0) != (ssize_t)sizeof(seed))
        return err_set_errno(err, -errno, "getrandom");
    (void)crypto_sign_seed_keypair(key.public, key.secret, seed); /* cannot fail */
    r = write_key(public_path, public_word, key.public, 0644, err);
    if (r == 0) {
        r = write_key(secret_path, secret_word, seed, 0600, err);
        if (r < 0)
            (void)unlink(public_path); /* half a pair is of no use */
    }
    if (r == 0)
        sodium_bin2hex(public_hex, JOURNAL_KEY, key.public, sizeof(key.public));
    sodium_memzero(seed, sizeof(seed));
    sodium_memzero(&key, sizeof(key));
    return r;
}

void journal_key_id(const char *public_hex, char id[static JOURNAL_KEY_ID])
{
    unsigned char key[JOURNAL_KEY_BYTES];
    char hash[SHA256_HEX];
    size_t got = 0;

    id[0] = '\0';
    if (sodium_hex2bin(key, sizeof(key), public_hex, strlen(public_hex), NULL, &got, NULL) != 0)
        return;
    sha256_hex(key, got, hash);
    (void)snprintf(id, JOURNAL_KEY_ID, "%.*s", JOURNAL_KEY_ID - 1, hash);
}

int journal_trust_load(const char *path, struct journal_trust *out, struct carrel_error *err)
{
    struct journal_trust trust = { 0 };

    int r = load(path, public_word, 0022, trust.key, err);
    if (r == 0)
        *out = trust;
    return r;
}

int journal_sign(const struct journal_key *key, struct json *json, struct carrel_error *err)
{
    unsigned char signature[crypto_sign_BYTES];
    char signature_hex[SIGNATURE_DIGITS + 1];
    char key_hex[KEY_DIGITS + 1];
    crypto_sign_state state;
    const struct buf *line = json->out;

    int r = start(err);
    if (r < 0)
        return r;
    if (line->is_short)
        return 0; /* the writer of the line reports it */
    if (crypto_sign_init(&state) != 0 ||
            crypto_sign_update(&state, (const unsigned char *)purpose, sizeof(purpose) - 1) !=
                    0 ||
            crypto_sign_update(&state, (const unsigned char *)line->data, line->len) != 0 ||
            crypto_sign_final_create(&state, signature, NULL, key->secret) != 0)
        return err_set(err, -EIO, "libsodium does not sign");
    sodium_bin2hex(key_hex, sizeof(key_hex), key->public, sizeof(key->public));
    sodium_bin2hex(signature_hex, sizeof(signature_hex), signature, sizeof(signature));
    json_str(json, "key", key_hex);
    json_str(json, "signature", signature_hex);
    return 0;
}

static const char before_key[] = ",\"key\":\"";
static const char before_signature[] = "\",\"signature\":\"";
#define KEY_AT (sizeof(before_key) - 1)
#define SIGNATURE_AT (KEY_AT + KEY_DIGITS + sizeof(before_signature) - 1)
#define MEMBERS (SIGNATURE_AT + SIGNATURE_DIGITS + 1)

size_t journal_signature_length(const char *text, size_t len)
{
    if (len < MEMBERS)
        return 0;
    const char *at = text + len - MEMBERS;
    bool has_form = memcmp(at, before_key, KEY_AT) == 0 &&
                    memcmp(at + KEY_AT + KEY_DIGITS, before_signature,
                            sizeof(before_signature) - 1) == 0 &&
                    at[MEMBERS - 1] == '"';
    return has_form ? MEMBERS : 0;
}

int journal_signature_check(const struct journal_trust *trust, const char *text, size_t len,
        size_t of_signature, char signer[static JOURNAL_KEY], struct carrel_error *err)
{
    unsigned char key[JOURNAL_KEY_BYTES];
    unsigned char signature[crypto_sign_BYTES];
    crypto_sign_state state;
    char id[JOURNAL_KEY_ID];
    size_t got = 0;

    signer[0] = '\0';
    if (of_signature == 0)
        return trust && trust->is_required ? err_set(err, -EBADMSG, "it is not signed") : 0;
    int r = start(err);
    if (r < 0)
        return r;
    const char *at = text + len;
    if (sodium_hex2bin(key, sizeof(key), at + KEY_AT, KEY_DIGITS, NULL, &got, NULL) != 0 ||
            got != sizeof(key) ||
            sodium_hex2bin(signature, sizeof(signature), at + SIGNATURE_AT, SIGNATURE_DIGITS,
                    NULL, &got, NULL) != 0 ||
            got != sizeof(signature))
        return err_set(err, -EBADMSG, "its signature is malformed");
    if (crypto_sign_init(&state) != 0 ||
            crypto_sign_update(&state, (const unsigned char *)purpose, sizeof(purpose) - 1) !=
                    0 ||
            crypto_sign_update(&state, (const unsigned char *)text, len) != 0 ||
            crypto_sign_final_verify(&state, signature, key) != 0)
        return err_set(err, -EBADMSG, "its signature is wrong");
    sodium_bin2hex(signer, JOURNAL_KEY, key, sizeof(key));
    journal_key_id(signer, id);
    if (trust && sodium_memcmp(trust->key, key, sizeof(key)) != 0)
        return err_set(err, -EBADMSG, "it is signed by another key (%s)", id);
    return 0;
}
