/*
 * line_fuzz.c - an untrusted journal: each line is accepted or refused with a reason, and an
 * accepted line has exactly the documented form.
 */
#include "base/err.h"
#include "base/utf8.h"
#include "fuzz.h"
#include "journal/key.h"
#include "journal/line.h"

static void require(bool holds)
{
    if (!holds)
        abort();
}

static void is_harmless(const unsigned char *at, size_t len)
{
    while (len > 0) {
        size_t n = utf8_valid(at, len);
        require(n > 0 && !utf8_is_control(at, n));
        at += n;
        len -= n;
    }
}

/*
 * Checks a line of the input, and again with its hash corrected, so that the fuzzer gets
 * further.
 */
static void check(struct journal_chain *chain, const char *text, size_t len)
{
    struct journal_chain before = *chain;
    struct carrel_error err = { 0 };
    struct journal_line line;

    if (journal_line_parse(text, len, &line, &err) == 0) {
        is_harmless((const unsigned char *)text, len);
        require(line.whole.text == text && line.whole.len == len);
        require(line.covered < len && line.before_prev < line.covered);
    } else {
        require(err.message[0]);
    }
    if (journal_line_check(chain, NULL, text, len, &line, &err) == 0)
        require(chain->seq == before.seq + 1);
    else
        require(chain->seq == before.seq && strcmp(chain->head, before.head) == 0);
}

static void check_mended(struct journal_chain *chain, const char *text, size_t len)
{
    AUTO(buf_finish) struct buf out = BUF_INIT(JOURNAL_RECORD_MAX);
    struct journal_line line;
    char hash[JOURNAL_HASH];
    const char *prev = chain->seq > 0 ? chain->head : journal_no_hash;

    if (journal_line_parse(text, len, &line, NULL) < 0)
        return;
    buf_add(&out, text, line.before_prev);
    journal_line_end(&out, prev, hash);
    if (!out.is_short)
        check(chain, out.data, out.len - 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct journal_chain chain = { 0 };
    struct journal_chain mended = { 0 };
    const char *text = (const char *)data;

    while (size > 0) {
        const char *newline = memchr(text, '\n', size);
        size_t len = newline ? (size_t)(newline - text) : size;
        check(&chain, text, len);
        check_mended(&mended, text, len);
        size -= newline ? len + 1 : len;
        text += newline ? len + 1 : len;
    }
    return 0;
}
