/* text.c - what others wrote, in a record: bounded, and never without a trace of the rest. */
#include "base/sha256.h"
#include "base/utf8.h"
#include "journal/journal.h"
#include <stdio.h>

static void name(char out[static 64], const char *key, const char *what)
{
    (void)snprintf(out, 64, "%.40s_%s", key, what);
}

static void write_rest(struct json *json, const char *key, uint64_t bytes, struct sha256 *sha)
{
    char hex[2 * SHA256_BYTES + 1];
    char member[64];

    sha256_finish_hex(sha, hex);
    name(member, key, "bytes");
    json_u64(json, member, bytes);
    name(member, key, "sha256");
    json_str(json, member, hex);
}

/* At most `max` bytes, without a character that the cut would go through. */
static size_t cut(const char *text, size_t len, size_t max)
{
    if (len <= max)
        return len;
    size_t n = max;
    while (n > 0 && max - n < 3 && ((unsigned char)text[n] & 0xc0) == 0x80)
        n--;
    return ((unsigned char)text[n] & 0xc0) == 0x80 ? max : n;
}

void journal_text(struct json *json, const char *key, const char *text, size_t len, size_t max)
{
    struct sha256 sha;

    size_t n = cut(text, len, max);
    json_bytes(json, key, text, n);
    if (n == len && utf8_is_text(text, len))
        return;
    sha256_init(&sha);
    sha256_add(&sha, text, len);
    write_rest(json, key, len, &sha);
}

void journal_words(struct json *json, const char *key, const char *const *words, size_t max)
{
    enum { QUOTES = 3 }; /* and the comma: many empty words are long, too */
    struct sha256 sha;
    uint64_t bytes = 0;
    uint64_t count = 0;
    bool is_cut = false;
    bool is_text = true;
    char member[64];

    json_array(json, key);
    for (const char *const *word = words; *word; word++) {
        size_t len = strlen(*word);
        bytes += len + 1;
        count++;
        if (is_cut || max < QUOTES) {
            is_cut = true;
            continue;
        }
        max -= QUOTES;
        size_t n = cut(*word, len, max);
        json_bytes(json, NULL, *word, n);
        is_cut = n < len;
        is_text = is_text && utf8_is_text(*word, len);
        max -= n;
    }
    json_end_array(json);
    if (!is_cut && is_text)
        return;
    sha256_init(&sha);
    for (const char *const *word = words; *word; word++)
        sha256_add(&sha, *word, strlen(*word) + 1);
    name(member, key, "count");
    json_u64(json, member, count);
    write_rest(json, key, bytes, &sha);
}
