#include "journal/bench_fixture.h"
#include "journal/key.h"
#include "journal/verify.h"
#include <errno.h>
#include <sys/stat.h>

/* Creates a pair of keys in the bench's directory. */
static struct journal_key *make_key(const struct bench *bench, const char *name,
        struct journal_trust *trust, char public_hex[static JOURNAL_KEY])
{
    struct carrel_error err = { 0 };
    struct journal_key *key = NULL;
    char secret[200];
    char open[200];

    (void)snprintf(secret, sizeof(secret), "%s/%s.key", bench->dir, name);
    (void)snprintf(open, sizeof(open), "%s/%s.pub", bench->dir, name);
    if (journal_key_make(secret, open, public_hex, &err) < 0 ||
            journal_key_load(secret, &key, &err) < 0 ||
            journal_trust_load(open, trust, &err) < 0)
        test_fail(__FILE__, __LINE__, "%s", err.message);
    return key;
}

static struct journal_verdict verify(
        const struct bench *bench, const char *name, const struct journal_trust *trust)
{
    const struct journal_known known = { .trust = trust };
    struct journal_verdict verdict;
    char path[200];

    AUTO(fd_close) int fd = open(bench_path(bench, name, path), O_RDONLY | O_CLOEXEC);
    CHECK(fd >= 0);
    CHECK_EQ(journal_verify(fd, &known, &verdict, NULL), 0);
    return verdict;
}

TEST(a_seal_that_was_signed_verifies_by_its_key)
{
    AUTO(bench_finish) struct bench bench = bench_make();
    char public_hex[JOURNAL_KEY];
    struct journal_trust trust;
    AUTO(journal_key_free) struct journal_key *key = make_key(&bench, "a", &trust, public_hex);

    bench_run(&bench, "R-1", 3, key);
    bench_run(&bench, "R-1", 3, key);
    struct journal_verdict verdict = verify(&bench, "R-1/journal.jsonl", &trust);
    CHECK_EQ(verdict.state, CARREL_RECORD_SEALED);
    CHECK_STR(verdict.chain.signer, public_hex);
    CHECK_EQ(verify(&bench, "R-1/journal.jsonl", NULL).state, CARREL_RECORD_SEALED);
}

TEST(a_seal_that_was_signed_by_another_is_bad)
{
    AUTO(bench_finish) struct bench bench = bench_make();
    char hex[JOURNAL_KEY];
    char id[JOURNAL_KEY_ID];
    struct journal_trust trust;
    struct journal_trust other;
    AUTO(journal_key_free) struct journal_key *key = make_key(&bench, "a", &trust, hex);
    AUTO(journal_key_free) struct journal_key *thief = make_key(&bench, "b", &other, hex);

    (void)key;
    bench_run(&bench, "R-1", 3, thief);
    struct journal_verdict verdict = verify(&bench, "R-1/journal.jsonl", &trust);
    CHECK_EQ(verdict.state, CARREL_RECORD_BAD);
    CHECK_EQ(verdict.bad_record, 4);
    journal_key_id(hex, id);
    CHECK_EQ(strlen(id), 16);
    CHECK(strstr(verdict.why, "it is signed by another key") && strstr(verdict.why, id));
}

TEST(a_seal_without_a_signature_is_bad_where_one_is_required)
{
    AUTO(bench_finish) struct bench bench = bench_make();
    char hex[JOURNAL_KEY];
    struct journal_trust trust;
    AUTO(journal_key_free) struct journal_key *key = make_key(&bench, "a", &trust, hex);

    (void)key;
    bench_run(&bench, "R-1", 3, NULL);
    CHECK_EQ(verify(&bench, "R-1/journal.jsonl", &trust).state, CARREL_RECORD_SEALED);
    trust.is_required = true;
    struct journal_verdict verdict = verify(&bench, "R-1/journal.jsonl", &trust);
    CHECK_EQ(verdict.state, CARREL_RECORD_BAD);
    CHECK_STR(verdict.why, "it is not signed");
}

/* All hashes are recomputed, which is possible without the key. */
TEST(a_signature_is_about_all_that_was_sealed)
{
    AUTO(bench_finish) struct bench bench = bench_make();
    AUTO(bench_finish) struct bench elsewhere = bench_make();
    AUTO(buf_finish) struct buf text = BUF_INIT(1 << 20);
    AUTO(buf_finish) struct buf forged = BUF_INIT(1 << 20);
    char hex[JOURNAL_KEY];
    struct journal_trust trust;
    AUTO(journal_key_free) struct journal_key *key = make_key(&bench, "a", &trust, hex);

    bench_run(&bench, "R-1", 3, key);
    bench_run(&elsewhere, "R-1", 3, NULL);
    bench_read(&bench, "R-1/journal.jsonl", &text);
    bench_read(&elsewhere, "R-1/journal.jsonl", &forged);
    /* The forged seal, with the signature of the genuine one and a hash over both. */
    const char *members = strstr(text.data, ",\"key\":\"");
    char *prev = strstr(strstr(forged.data, "\"event\":\"sealed\""), ",\"prev\":\"");
    CHECK(members && prev);
    size_t n = (size_t)(strstr(members, ",\"prev\":\"") - members);
    AUTO(buf_finish) struct buf seal = BUF_INIT(1 << 20);
    char previous[JOURNAL_HASH];
    char hash[JOURNAL_HASH];
    char *begin = memrchr(forged.data, '\n', (size_t)(prev - forged.data)) + 1;
    (void)snprintf(previous, sizeof(previous), "%.64s", prev + 9);
    buf_add(&seal, begin, (size_t)(prev - begin));
    buf_add(&seal, members, n);
    journal_line_end(&seal, previous, hash);
    buf_clear(&text);
    buf_add(&text, forged.data, (size_t)(begin - forged.data));
    buf_add(&text, seal.data, seal.len);
    bench_write(&bench, "R-1/journal.jsonl", text.data, text.len);
    struct journal_verdict verdict = verify(&bench, "R-1/journal.jsonl", &trust);
    CHECK_EQ(verdict.state, CARREL_RECORD_BAD);
    CHECK_EQ(verdict.bad_record, 4);
    CHECK_STR(verdict.why, "its signature is wrong");
}

TEST(keys_are_never_overwritten)
{
    AUTO(bench_finish) struct bench bench = bench_make();
    struct carrel_error err = { 0 };
    char secret[200];
    char open[200];
    char hex[JOURNAL_KEY];
    struct stat st;

    (void)snprintf(secret, sizeof(secret), "%s/k", bench.dir);
    (void)snprintf(open, sizeof(open), "%s/k.pub", bench.dir);
    CHECK_EQ(journal_key_make(secret, open, hex, &err), 0);
    CHECK_EQ(stat(secret, &st), 0);
    CHECK_EQ(st.st_mode & 07777, 0600);
    CHECK_EQ(journal_key_make(secret, open, hex, &err), -EEXIST);
    CHECK_EQ(unlink(open), 0);
    CHECK_EQ(journal_key_make(secret, open, hex, &err), -EEXIST);
    CHECK(stat(open, &st) < 0); /* not half a pair */
}

TEST(a_key_that_others_can_reach_is_refused)
{
    AUTO(bench_finish) struct bench bench = bench_make();
    struct carrel_error err = { 0 };
    struct journal_key *key = NULL;
    struct journal_trust trust;
    char secret[200];
    char open[200];
    char hex[JOURNAL_KEY];

    (void)snprintf(secret, sizeof(secret), "%s/k", bench.dir);
    (void)snprintf(open, sizeof(open), "%s/k.pub", bench.dir);
    CHECK_EQ(journal_key_make(secret, open, hex, &err), 0);
    CHECK_EQ(chmod(secret, 0640), 0);
    CHECK_EQ(journal_key_load(secret, &key, &err), -EACCES);
    CHECK(strstr(err.message, "can be read or written by others (mode 0640)"));
    CHECK_EQ(chmod(open, 0664), 0);
    CHECK_EQ(journal_trust_load(open, &trust, &err), -EACCES);
    CHECK(strstr(err.message, "can be written by others (mode 0664)"));
    CHECK_EQ(chmod(secret, 0600), 0);
    CHECK_EQ(chmod(open, 0644), 0);
    /* A secret file is not accepted as a public one, and vice versa. */
    CHECK_EQ(journal_key_load(open, &key, &err), -EACCES);
    CHECK_EQ(journal_trust_load(secret, &trust, &err), -EBADMSG);
    CHECK_EQ(journal_key_load("/nonexistent", &key, &err), -ENOENT);
    CHECK_EQ(journal_trust_load("/dev/null", &trust, &err), -EINVAL);
}
