#include "base/json_read.h"
#include "base/sha256.h"
#include "journal/bench_fixture.h"
#include "journal/journal.h"
#include <errno.h>
#include <sys/stat.h>

/* Reads a file below the runs; lines[] are ended with NUL. Returns how many. */
static size_t read_lines(
        const struct bench *bench, const char *name, struct buf *text, char **lines, size_t max)
{
    size_t n = 0;

    bench_read(bench, name, text);
    for (char *at = text->data; at && *at;) {
        char *end = strchr(at, '\n');
        CHECK(end && n < max);
        *end = '\0';
        lines[n++] = at;
        at = end + 1;
    }
    return n;
}

static void check_member(const char *line, const char *key, const char *expected)
{
    struct json_value value;

    CHECK_EQ(json_read_check(line, strlen(line), &value, NULL), 0);
    if (!json_read_equals(json_read_member(value, key), expected))
        test_fail(__FILE__, __LINE__, "%s is not '%s' in %s", key, expected, line);
}

TEST(records_are_numbered_chained_and_sealed)
{
    AUTO(bench_finish) struct bench bench = bench_make();
    AUTO(buf_finish) struct buf text = BUF_INIT(1 << 20);
    char *lines[8];
    char prev[JOURNAL_HASH] =
            "0000000000000000000000000000000000000000000000000000000000000000";
    AUTO(journal_close) struct journal *journal = bench_open(&bench, "R-1", NULL);

    CHECK(!journal_is_continued(journal));
    bench_add(journal, "run_started", "a");
    bench_add(journal, "process_started", "b");
    bench_seal(journal);
    CHECK_EQ(read_lines(&bench, "R-1/journal.jsonl", &text, lines, 8), 3);
    for (size_t i = 0; i < 3; i++) {
        /* By hand, without carrel's own functions. */
        char *at = strstr(lines[i], ",\"hash\":\"");
        char hash[SHA256_HEX];
        char begin[32];
        CHECK(at);
        sha256_hex(lines[i], (size_t)(at - lines[i]), hash);
        check_member(lines[i], "hash", hash);
        check_member(lines[i], "prev", prev);
        check_member(lines[i], "run", "R-1");
        (void)snprintf(begin, sizeof(begin), "{\"seq\":%zu,\"time\":\"20", i + 1);
        CHECK_MEM(lines[i], strlen(begin), begin, strlen(begin));
        (void)stpcpy(prev, hash);
    }
    check_member(lines[0], "event", "run_started");
    check_member(lines[1], "text", "b");
    check_member(lines[2], "event", "sealed");
    check_member(lines[2], "reason", "exited");
    CHECK(strstr(lines[2], ",\"records\":3,"));
}

TEST(files_and_directories_are_ours_alone)
{
    AUTO(bench_finish) struct bench bench = bench_make();
    AUTO(journal_close) struct journal *journal = bench_open(&bench, "R-1", NULL);
    static const char *const paths[] = { "", "/R-1", "/index.jsonl", "/R-1/journal.jsonl" };

    (void)journal;
    for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
        char path[200];
        struct stat st;
        (void)snprintf(path, sizeof(path), "%s%s", bench.runs, paths[i]);
        CHECK_EQ(stat(path, &st), 0);
        CHECK_EQ(st.st_mode & 0777, S_ISDIR(st.st_mode) ? 0700 : 0600);
    }
}

TEST(the_index_tells_of_every_run_and_its_seal)
{
    AUTO(bench_finish) struct bench bench = bench_make();
    AUTO(buf_finish) struct buf text = BUF_INIT(1 << 20);
    struct carrel_error err = { 0 };
    char hash[JOURNAL_HASH];
    char *lines[8];
    AUTO(journal_close) struct journal *first = bench_open(&bench, "R-1", NULL);
    AUTO(journal_close) struct journal *second = bench_open(&bench, "R-2", NULL);

    bench_add(first, "run_started", "a");
    CHECK_EQ(journal_seal(first, "timeout", hash, &err), 0);
    CHECK_EQ(journal_note_pruned(bench.runs, "R-1", &err), 0);
    CHECK_EQ(read_lines(&bench, "index.jsonl", &text, lines, 8), 4);
    check_member(lines[0], "event", "run_begun");
    check_member(lines[0], "run", "R-1");
    check_member(lines[0], "task", "T-1");
    check_member(lines[1], "run", "R-2");
    check_member(lines[2], "event", "run_sealed");
    check_member(lines[2], "run", "R-1");
    check_member(lines[2], "reason", "timeout");
    check_member(lines[2], "seal", hash);
    CHECK(strstr(lines[2], ",\"records\":2,"));
    check_member(lines[3], "event", "run_pruned");
    (void)second;
}

TEST(a_run_in_progress_cannot_be_opened_again)
{
    AUTO(bench_finish) struct bench bench = bench_make();
    const struct journal_options options = { .runs = bench.runs, .run = "R-1" };
    struct carrel_error err = { 0 };
    struct journal *again = NULL;
    AUTO(journal_close) struct journal *journal = bench_open(&bench, "R-1", NULL);

    (void)journal;
    CHECK_EQ(journal_open(&options, &again, &err), -EBUSY);
    CHECK_STR(err.message, "journal of run 'R-1': the run is in progress");
    CHECK(!again);
}

TEST(a_run_that_is_taken_up_goes_on_in_the_same_chain)
{
    AUTO(bench_finish) struct bench bench = bench_make();
    AUTO(buf_finish) struct buf text = BUF_INIT(1 << 20);
    char *lines[8];

    for (int i = 0; i < 2; i++) {
        AUTO(journal_close) struct journal *journal = bench_open(&bench, "R-1", NULL);
        CHECK_EQ(journal_is_continued(journal), i > 0);
        bench_add(journal, "run_started", "a");
        bench_seal(journal);
    }
    CHECK_EQ(read_lines(&bench, "R-1/journal.jsonl", &text, lines, 8), 4);
    for (size_t i = 1; i < 4; i++) {
        char *hash = strstr(lines[i - 1], "\"hash\":\"") + 8;
        hash[64] = '\0';
        check_member(lines[i], "prev", hash);
    }
    CHECK(strstr(lines[3], ",\"records\":4,"));
    CHECK_EQ(read_lines(&bench, "index.jsonl", &text, lines, 8), 4);
    check_member(lines[2], "event", "run_continued");
}

TEST(a_torn_record_is_cut_off_and_noted)
{
    AUTO(bench_finish) struct bench bench = bench_make();
    AUTO(buf_finish) struct buf text = BUF_INIT(1 << 20);
    struct journal *journal = bench_open(&bench, "R-1", NULL);
    char *lines[8];

    bench_add(journal, "run_started", "a");
    journal_close(journal);
    bench_append(&bench, "R-1/journal.jsonl", "{\"seq\":2,\"ti");
    bench_append(&bench, "index.jsonl", "{\"seq");
    journal = bench_open(&bench, "R-1", NULL);
    bench_add(journal, "run_resumed", "b");
    journal_close(journal);

    CHECK_EQ(read_lines(&bench, "R-1/journal.jsonl", &text, lines, 8), 3);
    check_member(lines[1], "event", "recovered");
    CHECK(strstr(lines[1], ",\"dropped_bytes\":12,"));
    check_member(lines[2], "event", "run_resumed");
    CHECK_EQ(read_lines(&bench, "index.jsonl", &text, lines, 8), 3);
    check_member(lines[1], "event", "torn");
    CHECK(strstr(lines[1], ",\"dropped_bytes\":5,"));
    check_member(lines[2], "event", "run_continued");
}

TEST(a_file_that_holds_nothing_but_a_torn_record_begins_anew)
{
    AUTO(bench_finish) struct bench bench = bench_make();
    AUTO(buf_finish) struct buf text = BUF_INIT(1 << 20);
    char *lines[8];

    journal_close(bench_open(&bench, "R-1", NULL));
    bench_append(&bench, "R-1/journal.jsonl", "{\"seq\":1,\"ti");
    journal_close(bench_open(&bench, "R-1", NULL));
    CHECK_EQ(read_lines(&bench, "R-1/journal.jsonl", &text, lines, 8), 1);
    check_member(lines[0], "event", "recovered");
    CHECK_MEM(lines[0], 9, "{\"seq\":1,", 9);
}

TEST(what_does_not_end_in_a_record_is_not_continued)
{
    AUTO(bench_finish) struct bench bench = bench_make();
    const struct journal_options options = { .runs = bench.runs, .run = "R-1" };
    struct carrel_error err = { 0 };
    struct journal *journal = bench_open(&bench, "R-1", NULL);

    bench_add(journal, "run_started", "a");
    journal_close(journal);
    bench_append(&bench, "R-1/journal.jsonl", "{}\n");
    CHECK_EQ(journal_open(&options, &journal, &err), -EBADMSG);
    CHECK_STR(err.message,
            "journal of run 'R-1': it cannot be continued; see 'carrel journal verify', "
            "and move the file away to continue the run: the last record of 'journal.jsonl' "
            "is invalid: its end does not have the form of a record");
}

TEST(a_broken_index_stops_every_run)
{
    AUTO(bench_finish) struct bench bench = bench_make();
    const struct journal_options options = { .runs = bench.runs, .run = "R-2" };
    struct carrel_error err = { 0 };
    struct journal *journal = bench_open(&bench, "R-1", NULL);
    char path[200];
    struct stat st;

    journal_close(journal);
    bench_append(&bench, "index.jsonl", "{}\n");
    CHECK_EQ(journal_open(&options, &journal, &err), -EBADMSG);
    CHECK(strstr(err.message, "the index of runs cannot be continued"));
    (void)snprintf(path, sizeof(path), "%s/R-2", bench.runs);
    CHECK(stat(path, &st) < 0 && errno == ENOENT);
}

#define TEN_TIMES(text) text text text text text text text text text text

TEST(an_id_that_is_no_id_is_refused)
{
    static const char *const ids[] = { "", ".", "..", "a/b", "a b", "\xc3\xa9", "a\n", ".a",
        TEN_TIMES("aaaaaaaaaaaaaaaa") };
    AUTO(bench_finish) struct bench bench = bench_make();

    for (size_t i = 0; i < ARRAY_LEN(ids); i++) {
        const struct journal_options options = { .runs = bench.runs, .run = ids[i] };
        struct journal *journal = NULL;
        CHECK_EQ(journal_open(&options, &journal, NULL), -EINVAL);
        CHECK_EQ(journal_note_pruned(bench.runs, ids[i], NULL), -EINVAL);
    }
}

TEST(a_full_journal_takes_a_seal_and_nothing_else)
{
    AUTO(bench_finish) struct bench bench = bench_make();
    const struct journal_options options = {
        .runs = bench.runs,
        .run = "R-1",
        .max_bytes = 2000,
    };
    struct carrel_error err = { 0 };
    AUTO(journal_close) struct journal *journal = NULL;
    char hash[JOURNAL_HASH];
    char path[200];
    struct stat st;
    int n = 0;
    int r;

    CHECK_EQ(journal_open(&options, &journal, &err), 0);
    do {
        json_str(journal_begin(journal, "limit_hit"), "text", "some text of some length");
        r = journal_add(journal, &err);
    } while (r == 0 && ++n < 100);
    CHECK_EQ(r, -EFBIG);
    CHECK_STR(err.message, "the journal of run 'R-1' is full");
    CHECK(n > 3 && n < 10);
    (void)journal_begin(journal, "x"); /* would still fit, but no record may follow a gap */
    CHECK_EQ(journal_add(journal, &err), -EFBIG);
    (void)snprintf(path, sizeof(path), "%s/R-1/journal.jsonl", bench.runs);
    CHECK_EQ(stat(path, &st), 0);
    CHECK(st.st_size <= 2000);
    CHECK_EQ(journal_seal(journal, "infrastructure", hash, &err), 0);
}

TEST(a_record_that_is_too_long_ends_the_journal)
{
    AUTO(bench_finish) struct bench bench = bench_make();
    AUTO(buf_finish) struct buf text = BUF_INIT(1 << 20);
    AUTO(journal_close) struct journal *journal = bench_open(&bench, "R-1", NULL);
    AUTO(free) char *huge = malloc(JOURNAL_RECORD_MAX + 1);
    struct carrel_error err = { 0 };
    char hash[JOURNAL_HASH];
    char *lines[8];

    CHECK(huge);
    memset(huge, 'a', JOURNAL_RECORD_MAX);
    huge[JOURNAL_RECORD_MAX] = '\0';
    bench_add(journal, "run_started", "a");
    json_str(journal_begin(journal, "limit_hit"), "text", huge);
    CHECK_EQ(journal_add(journal, &err), -EMSGSIZE);
    (void)journal_begin(journal, "short");
    CHECK_EQ(journal_add(journal, &err), -EMSGSIZE);
    CHECK_EQ(journal_seal(journal, "exited", hash, &err), -EMSGSIZE);
    CHECK_EQ(read_lines(&bench, "R-1/journal.jsonl", &text, lines, 8), 1);
}

static void check_text(const char *text, size_t len, size_t max, const char *expected)
{
    AUTO(buf_finish) struct buf out = BUF_INIT(10000);
    struct json json = { .out = &out };

    journal_text(&json, "t", text, len, max);
    CHECK_STR(out.data, expected);
}

TEST(text_is_cut_between_characters_and_its_whole_is_hashed)
{
    check_text("abc", 3, 3, "\"t\":\"abc\"");
    check_text("", 0, 3, "\"t\":\"\"");
    check_text("abc", 3, 2,
            "\"t\":\"ab\",\"t_bytes\":3,\"t_sha256\":"
            "\"ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad\"");
    check_text("a\xe2\x82\xac", 4, 3,
            "\"t\":\"a\",\"t_bytes\":4,\"t_sha256\":"
            "\"105d293c8503cf158fa5cc8cf904ad7a67ec76ca620d8d56615363dfd21f78b5\"");
}

TEST(text_that_is_no_text_is_hashed_too)
{
    check_text("\xff", 1, 10,
            "\"t\":\"\xef\xbf\xbd\",\"t_bytes\":1,\"t_sha256\":"
            "\"a8100ae6aa1940d0b663bb31cd466142ebbdbd5187131b92d93818987832eb89\"");
}

static void check_words(const char *const *words, size_t max, const char *expected)
{
    AUTO(buf_finish) struct buf out = BUF_INIT(10000);
    struct json json = { .out = &out };

    journal_words(&json, "argv", words, max);
    CHECK_MEM(out.data, strlen(expected), expected, strlen(expected));
    CHECK_EQ(strchr(expected, '_') != NULL, strchr(out.data, '_') != NULL);
}

TEST(words_are_shown_as_far_as_they_fit)
{
    static const char *const words[] = { "ls", "", "-l\n", NULL };
    static const char *const odd[] = { "\xff", "", "b", NULL };

    check_words(words, 100, "\"argv\":[\"ls\",\"\",\"-l\\n\"]");
    check_words(words, 14, "\"argv\":[\"ls\",\"\",\"-l\\n\"]");
    check_words(words, 13,
            "\"argv\":[\"ls\",\"\",\"-l\"],\"argv_count\":3,\"argv_bytes\":8,\"argv_sha256\":"
            "\"");
    check_words(
            words, 7, "\"argv\":[\"ls\"],\"argv_count\":3,\"argv_bytes\":8,\"argv_sha256\":\"");
    check_words(words, 0, "\"argv\":[],\"argv_count\":3,\"argv_bytes\":8,\"argv_sha256\":\"");
    check_words(odd, 100,
            "\"argv\":[\"\xef\xbf\xbd\",\"\",\"b\"],\"argv_count\":3,\"argv_bytes\":5,"
            "\"argv_sha256\":\"");
}

TEST(a_megabyte_of_arguments_stays_one_bounded_record)
{
    enum { N = 9, EACH = 128 << 10 };
    AUTO(bench_finish) struct bench bench = bench_make();
    AUTO(buf_finish) struct buf text = BUF_INIT(4 << 20);
    AUTO(journal_close) struct journal *journal = bench_open(&bench, "R-1", NULL);
    AUTO(free) char *word = malloc(EACH);
    const char *words[N + 1] = { NULL };
    struct carrel_error err = { 0 };
    char *lines[8];

    CHECK(word);
    memset(word, '\x1b', EACH - 1); /* the worst case: each byte takes six */
    word[EACH - 1] = '\0';
    for (size_t i = 0; i < N; i++)
        words[i] = word;
    journal_words(journal_begin(journal, "run_started"), "argv", words, 32 << 10);
    CHECK_EQ(journal_add(journal, &err), 0);
    CHECK_EQ(read_lines(&bench, "R-1/journal.jsonl", &text, lines, 8), 1);
    CHECK(strlen(lines[0]) < JOURNAL_RECORD_MAX);
    CHECK(!strchr(lines[0], '\x1b'));
    CHECK(strstr(lines[0], "\"argv_count\":9,\"argv_bytes\":1179648,"));
}

TEST(bytes_of_any_kind_stay_one_record_and_harmless)
{
    AUTO(bench_finish) struct bench bench = bench_make();
    AUTO(buf_finish) struct buf text = BUF_INIT(1 << 20);
    AUTO(journal_close) struct journal *journal = bench_open(&bench, "R-1", NULL);
    static const char evil[] =
            "\n{\"seq\":2}\n\x1b]0;title\x07\x1b[2J\r\0\"},\xc2\x9b\xe2\x80\xae\xff";
    struct carrel_error err = { 0 };
    char *lines[8] = { NULL };

    journal_text(journal_begin(journal, "egress"), "host", evil, sizeof(evil) - 1, 1000);
    CHECK_EQ(journal_add(journal, &err), 0);
    CHECK_EQ(read_lines(&bench, "R-1/journal.jsonl", &text, lines, 8), 1);
    for (const char *c = lines[0]; c && *c; c++)
        CHECK((unsigned char)*c >= 0x20 && *c != 0x7f);
    CHECK(lines[0] && !strstr(lines[0], "\xc2\x9b") && !strstr(lines[0], "\xe2\x80\xae"));
}
