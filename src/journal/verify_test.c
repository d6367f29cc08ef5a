/* Manipulations of a journal, and that each is detected: every byte, record and truncation. */
#include "base/sha256.h"
#include "journal/bench_fixture.h"
#include "journal/verify.h"
#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define RECORDS (TEST_IS_SLOW ? 400 : 1000) /* with the seal */

/* A sealed journal in memory, its lines, and what is known before each of them. */
struct book {
    struct buf text;
    const char *lines[RECORDS + 1]; /* the last is the end of the text */
    struct journal_chain before[RECORDS + 1];
};

static void book_free(struct book *book)
{
    if (book)
        buf_finish(book->text);
    free(book);
}
DEFINE_AUTO(struct book *, book_free)

static size_t length(const struct book *book, size_t i)
{
    return (size_t)(book->lines[i + 1] - book->lines[i]) - 1;
}

static struct book *book_make(const struct bench *bench, const char *run)
{
    struct book *book = calloc(1, sizeof(*book));
    struct journal_line line;
    char name[100];

    CHECK(book);
    book->text = BUF_INIT(4 << 20);
    bench_run(bench, run, RECORDS - 1, NULL);
    (void)snprintf(name, sizeof(name), "%s/journal.jsonl", run);
    bench_read(bench, name, &book->text);
    book->lines[0] = book->text.data;
    (void)snprintf(book->before[0].run, sizeof(book->before[0].run), "%s", run);
    for (size_t i = 0; i < RECORDS; i++) {
        book->lines[i + 1] = strchr(book->lines[i], '\n') + 1;
        book->before[i + 1] = book->before[i];
        CHECK_EQ(journal_line_check(&book->before[i + 1], NULL, book->lines[i], length(book, i),
                         &line, NULL),
                0);
    }
    CHECK(book->lines[RECORDS] == book->text.data + book->text.len);
    return book;
}

/* Whether `line` is accepted as number i. The chain must not move if it is refused. */
static bool passes(const struct book *book, size_t i, const char *line, size_t len)
{
    struct journal_chain chain = book->before[i];
    struct carrel_error err = { 0 };
    struct journal_line parts;

    int r = journal_line_check(&chain, NULL, line, len, &parts, &err);
    if (r < 0) {
        CHECK_EQ(r, -EBADMSG);
        CHECK(err.message[0]);
        CHECK_EQ(chain.seq, book->before[i].seq);
    }
    return r == 0;
}

static struct journal_verdict verify(const struct bench *bench, const char *text, size_t len,
        const struct journal_known *known)
{
    static const struct journal_known nothing = { 0 };
    struct journal_verdict verdict;
    struct carrel_error err = { 0 };
    char path[200];

    bench_write(bench, "copy", text, len);
    AUTO(fd_close) int fd = open(bench_path(bench, "copy", path), O_RDONLY | O_CLOEXEC);
    CHECK(fd >= 0);
    if (journal_verify(fd, known ? known : &nothing, &verdict, &err) < 0)
        test_fail(__FILE__, __LINE__, "%s", err.message);
    return verdict;
}

/* Writes the file from pieces. */
static struct journal_verdict verify_pieces(
        const struct bench *bench, const struct json_value *pieces, size_t n)
{
    AUTO(buf_finish) struct buf text = BUF_INIT(4 << 20);

    for (size_t i = 0; i < n; i++)
        buf_add(&text, pieces[i].text, pieces[i].len);
    return verify(bench, text.data, text.len, NULL);
}

/* Lines [from, to) as a piece. */
static struct json_value part(const struct book *book, size_t from, size_t to)
{
    return (struct json_value){ book->lines[from],
        (size_t)(book->lines[to] - book->lines[from]) };
}

/* Reproducible pseudo-random numbers. */
static uint32_t next_random(uint32_t *state)
{
    *state = *state * 1664525 + 1013904223;
    return *state >> 8;
}

TEST(an_untouched_journal_is_sealed)
{
    AUTO(bench_finish) struct bench bench = bench_make();
    AUTO(book_free) struct book *book = book_make(&bench, "R-1");

    struct journal_verdict verdict = verify(&bench, book->text.data, book->text.len, NULL);
    CHECK_EQ(verdict.state, CARREL_RECORD_SEALED);
    CHECK_EQ(verdict.records, RECORDS);
    CHECK_EQ(verdict.bytes, book->text.len);
    CHECK_EQ(verdict.bad_record, 0);
    CHECK_STR(verdict.chain.run, "R-1");
    CHECK_STR(verdict.why, "");
    CHECK_STR(verdict.chain.seal, book->before[RECORDS].head);
}

TEST(every_changed_byte_is_found)
{
    AUTO(bench_finish) struct bench bench = bench_make();
    AUTO(book_free) struct book *book = book_make(&bench, "R-1");
    uint32_t random = 1;

    for (size_t i = 0; i < RECORDS; i++) {
        char line[1024];
        size_t len = length(book, i);
        CHECK(len < sizeof(line));
        memcpy(line, book->lines[i], len);
        for (size_t at = 0; at < len; at++) {
            char was = line[at];
            line[at] = (char)(was ^ (char)(1 + next_random(&random) % 255));
            /* A newline ends the line there. */
            if (passes(book, i, line, line[at] == '\n' ? at : len))
                test_fail(__FILE__, __LINE__, "record %zu, byte %zu", i, at);
            line[at] = was;
        }
        CHECK(passes(book, i, line, len));
    }
}

TEST(every_value_of_every_byte_of_one_record_is_found)
{
    AUTO(bench_finish) struct bench bench = bench_make();
    AUTO(book_free) struct book *book = book_make(&bench, "R-1");

    for (size_t i = RECORDS - 2; i < RECORDS; i++) { /* a record, and the seal */
        char line[1024];
        size_t len = length(book, i);
        CHECK(len < sizeof(line));
        memcpy(line, book->lines[i], len);
        for (size_t at = 0; at < len; at++) {
            char was = line[at];
            for (unsigned flip = 1; flip < 256; flip++) {
                line[at] = (char)(was ^ (char)flip);
                CHECK(!passes(book, i, line, line[at] == '\n' ? at : len));
            }
            line[at] = was;
        }
    }
}

TEST(a_changed_byte_of_the_file_names_its_record)
{
    AUTO(bench_finish) struct bench bench = bench_make();
    AUTO(book_free) struct book *book = book_make(&bench, "R-1");
    uint32_t random = 2;

    for (int n = 0; n < 150; n++) {
        size_t at = next_random(&random) % book->text.len;
        size_t record = 0;
        if (n < 30) /* newlines are few; the last one is another test's */
            at = (size_t)(book->lines[1 + at % (RECORDS - 1)] - book->text.data) - 1;
        while (book->lines[record + 1] <= book->text.data + at)
            record++;
        char was = book->text.data[at];
        book->text.data[at] = (char)(was ^ (char)(1 + next_random(&random) % 255));
        struct journal_verdict verdict = verify(&bench, book->text.data, book->text.len, NULL);
        CHECK_EQ(verdict.state, CARREL_RECORD_BAD);
        CHECK_EQ(verdict.bad_record, record + 1);
        CHECK_EQ(verdict.records, record);
        CHECK(verdict.why[0]);
        book->text.data[at] = was;
    }
}

TEST(every_record_that_is_dropped_is_missed)
{
    AUTO(bench_finish) struct bench bench = bench_make();
    AUTO(book_free) struct book *book = book_make(&bench, "R-1");

    for (size_t i = 0; i + 1 < RECORDS; i++)
        CHECK(!passes(book, i, book->lines[i + 1], length(book, i + 1)));
    for (size_t i = 0; i + 1 < RECORDS; i += 97) {
        const struct json_value pieces[] = { part(book, 0, i), part(book, i + 1, RECORDS) };
        struct journal_verdict verdict = verify_pieces(&bench, pieces, 2);
        CHECK_EQ(verdict.state, CARREL_RECORD_BAD);
        CHECK_EQ(verdict.bad_record, i + 1);
        CHECK(strstr(verdict.why, "records are missing, repeated or out of order"));
    }
    /* Without its last one it is not sealed. */
    struct json_value most = part(book, 0, RECORDS - 1);
    CHECK_EQ(verify_pieces(&bench, &most, 1).state, CARREL_RECORD_UNSEALED);
}

TEST(every_swap_of_neighbours_and_others_is_found)
{
    AUTO(bench_finish) struct bench bench = bench_make();
    AUTO(book_free) struct book *book = book_make(&bench, "R-1");
    uint32_t random = 3;

    for (size_t i = 0; i + 1 < RECORDS; i++)
        CHECK(!passes(book, i, book->lines[i + 1], length(book, i + 1)));
    for (int n = 0; n < 30; n++) {
        size_t a = next_random(&random) % (RECORDS - 1);
        size_t b = n < 10 ? a + 1 : a + 1 + next_random(&random) % (RECORDS - 1 - a);
        const struct json_value pieces[] = {
            part(book, 0, a),
            part(book, b, b + 1),
            part(book, a + 1, b),
            part(book, a, a + 1),
            part(book, b + 1, RECORDS),
        };
        struct journal_verdict verdict = verify_pieces(&bench, pieces, ARRAY_LEN(pieces));
        CHECK_EQ(verdict.state, CARREL_RECORD_BAD);
        CHECK_EQ(verdict.bad_record, a + 1);
    }
}

TEST(repeated_and_spliced_records_are_found)
{
    AUTO(bench_finish) struct bench bench = bench_make();
    AUTO(book_free) struct book *book = book_make(&bench, "R-1");
    AUTO(book_free) struct book *other = book_make(&bench, "R-2");
    uint32_t random = 4;

    for (int n = 0; n < 20; n++) {
        size_t at = next_random(&random) % (RECORDS - 1);
        size_t old = next_random(&random) % (at + 1);
        const struct json_value replayed[] = {
            part(book, 0, at + 1),
            part(book, old, old + 1),
            part(book, at + 1, RECORDS),
        };
        const struct json_value spliced[] = {
            part(book, 0, at + 1),
            part(other, at + 1, RECORDS),
        };
        struct journal_verdict verdict = verify_pieces(&bench, replayed, ARRAY_LEN(replayed));
        CHECK_EQ(verdict.state, CARREL_RECORD_BAD);
        CHECK_EQ(verdict.bad_record, at + 2);
        verdict = verify_pieces(&bench, spliced, ARRAY_LEN(spliced));
        CHECK_EQ(verdict.state, CARREL_RECORD_BAD);
        CHECK_EQ(verdict.bad_record, at + 2);
        CHECK_STR(verdict.why, "it is of another run: 'R-2'");
    }
}

TEST(the_same_run_written_twice_cannot_be_mixed)
{
    AUTO(bench_finish) struct bench bench = bench_make();
    AUTO(bench_finish) struct bench elsewhere = bench_make();
    AUTO(book_free) struct book *book = book_make(&bench, "R-1");
    AUTO(book_free) struct book *fork = book_make(&elsewhere, "R-1");

    const struct json_value pieces[] = { part(book, 0, RECORDS / 2),
        part(fork, RECORDS / 2, RECORDS) };
    struct journal_verdict verdict = verify_pieces(&bench, pieces, 2);
    CHECK_EQ(verdict.state, CARREL_RECORD_BAD);
    CHECK_EQ(verdict.bad_record, RECORDS / 2 + 1);
    CHECK_STR(verdict.why, "it does not follow the record before it");
}

/* Changes the text of a record, and corrects its hash. */
static void forge(char *line, size_t len)
{
    char hex[SHA256_HEX];
    char *text = strstr(line, "step");
    char *hash = line + len - 66;

    CHECK(text && text < hash);
    *text = 'S';
    sha256_hex(line, (size_t)(hash - 9 - line), hex);
    memcpy(hash, hex, 64);
}

TEST(a_forged_record_does_not_fit_the_next)
{
    AUTO(bench_finish) struct bench bench = bench_make();
    AUTO(book_free) struct book *book = book_make(&bench, "R-1");
    size_t at = (size_t)(book->lines[300] - book->text.data);

    forge(book->text.data + at, length(book, 300));
    CHECK(passes(book, 300, book->lines[300], length(book, 300)));
    struct journal_verdict verdict = verify(&bench, book->text.data, book->text.len, NULL);
    CHECK_EQ(verdict.state, CARREL_RECORD_BAD);
    CHECK_EQ(verdict.bad_record, 302);
    CHECK_STR(verdict.why, "it does not follow the record before it");
}

TEST(every_cut_leaves_it_unsealed_and_the_index_finds_it)
{
    AUTO(bench_finish) struct bench bench = bench_make();
    AUTO(book_free) struct book *book = book_make(&bench, "R-1");
    struct journal_seal seal = { .records = RECORDS };
    const struct journal_known known = { .run = "R-1", .seals = &seal, .n_seals = 1 };
    uint32_t random = 5;

    memcpy(seal.hash, book->before[RECORDS].seal, sizeof(seal.hash));

    /*
     * After each whole line the journal is unsealed; an incomplete line after them does not
     * count.
     */
    for (size_t i = 0; i < RECORDS; i++)
        CHECK(!book->before[i].is_sealed);
    for (int n = 0; n < 120; n++) {
        size_t at = next_random(&random) % book->text.len;
        size_t record = 0;
        if (n < 40)
            at = (size_t)(book->lines[at % RECORDS] - book->text.data);
        if (n == 40)
            at = book->text.len - 1; /* nothing but the last newline */
        while (book->lines[record + 1] <= book->text.data + at)
            record++;
        struct journal_verdict verdict = verify(&bench, book->text.data, at, NULL);
        CHECK_EQ(verdict.state, CARREL_RECORD_UNSEALED);
        CHECK_EQ(verdict.records, record);
        CHECK_EQ(verdict.torn_bytes, at - (size_t)(book->lines[record] - book->text.data));
        CHECK_EQ(strstr(verdict.why, "is cut short") != NULL, verdict.torn_bytes > 0);
        verdict = verify(&bench, book->text.data, at, &known);
        CHECK_EQ(verdict.state, CARREL_RECORD_BAD);
        CHECK_EQ(verdict.bad_record, record + 1);
        CHECK(strstr(verdict.why, "it was truncated or replaced"));
    }
}

TEST(a_journal_of_another_run_is_not_taken_for_this)
{
    AUTO(bench_finish) struct bench bench = bench_make();
    AUTO(book_free) struct book *book = book_make(&bench, "R-1");
    const struct journal_known known = { .run = "R-2" };

    struct journal_verdict verdict = verify(&bench, book->text.data, book->text.len, &known);
    CHECK_EQ(verdict.state, CARREL_RECORD_BAD);
    CHECK_EQ(verdict.bad_record, 1);
    CHECK_STR(verdict.why, "it is of another run: 'R-1'");
}

TEST(records_after_a_seal_need_another)
{
    AUTO(bench_finish) struct bench bench = bench_make();
    AUTO(buf_finish) struct buf text = BUF_INIT(1 << 20);
    struct journal *journal = bench_open(&bench, "R-1", NULL);

    bench_add(journal, "run_started", "a");
    bench_seal(journal);
    bench_add(journal, "workspace_committed", "b");
    bench_read(&bench, "R-1/journal.jsonl", &text);
    CHECK_EQ(verify(&bench, text.data, text.len, NULL).state, CARREL_RECORD_UNSEALED);
    bench_seal(journal);
    journal_close(journal);
    bench_read(&bench, "R-1/journal.jsonl", &text);
    struct journal_verdict verdict = verify(&bench, text.data, text.len, NULL);
    CHECK_EQ(verdict.state, CARREL_RECORD_SEALED);
    CHECK_EQ(verdict.records, 4);
}

TEST(what_is_no_journal_is_bad_at_its_first_line)
{
    AUTO(bench_finish) struct bench bench = bench_make();
    AUTO(free) char *endless = malloc(2 << 20);
    static const char *const texts[] = { "\n", "{}\n", "null\n", "hello\nworld\n" };

    bench_run(&bench, "R-1", 1, NULL);
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        struct journal_verdict verdict = verify(&bench, texts[i], strlen(texts[i]), NULL);
        CHECK_EQ(verdict.state, CARREL_RECORD_BAD);
        CHECK_EQ(verdict.bad_record, 1);
    }
    CHECK(endless);
    memset(endless, 'a', 2 << 20);
    struct journal_verdict verdict = verify(&bench, endless, 2 << 20, NULL);
    CHECK_EQ(verdict.state, CARREL_RECORD_BAD);
    CHECK_STR(verdict.why, "it is longer than any record");
    CHECK_EQ(verify(&bench, "", 0, NULL).state, CARREL_RECORD_UNSEALED);
}

TEST(a_journal_that_is_written_is_in_progress)
{
    AUTO(bench_finish) struct bench bench = bench_make();
    struct journal *journal = bench_open(&bench, "R-1", NULL);
    const struct journal_known nothing = { 0 };
    struct journal_verdict verdict;
    char path[200];

    bench_add(journal, "run_started", "a");
    AUTO(fd_close)
    int fd = open(bench_path(&bench, "R-1/journal.jsonl", path), O_RDONLY | O_CLOEXEC);
    CHECK(fd >= 0);
    CHECK_EQ(journal_verify(fd, &nothing, &verdict, NULL), 0);
    CHECK_EQ(verdict.state, CARREL_RECORD_IN_PROGRESS);
    journal_close(journal);
    CHECK_EQ(journal_verify(fd, &nothing, &verdict, NULL), 0);
    CHECK_EQ(verdict.state, CARREL_RECORD_UNSEALED);
    CHECK_EQ(verdict.records, 1);
}

TEST(a_writer_that_is_killed_leaves_what_it_wrote)
{
    const struct journal_known known = { .run = "R-1" };

    for (int round = 0; round < 10; round++) {
        AUTO(bench_finish) struct bench bench = bench_make();
        struct journal_verdict verdict;
        char path[200];
        struct stat st = { 0 };
        pid_t pid = fork();
        CHECK(pid >= 0);
        if (pid == 0) {
            struct journal *journal = bench_open(&bench, "R-1", NULL);
            for (;;)
                bench_add(journal, "process_started", "on and on");
        }
        /* Kill it at an arbitrary point. */
        while (st.st_size < 20000 + 3000 * round)
            if (stat(bench_path(&bench, "R-1/journal.jsonl", path), &st) < 0)
                CHECK_EQ(errno, ENOENT);
        CHECK_EQ(kill(pid, SIGKILL), 0);
        CHECK_EQ(waitpid(pid, NULL, 0), pid);
        AUTO(fd_close) int fd = open(path, O_RDONLY | O_CLOEXEC);
        CHECK(fd >= 0);
        CHECK_EQ(journal_verify(fd, &known, &verdict, NULL), 0);
        CHECK_EQ(verdict.state, CARREL_RECORD_UNSEALED);
        CHECK(verdict.records > 50);
        CHECK_EQ(verdict.bad_record, 0);
    }
}

/* Mounts a small file system, or skips the test. */
static void mount_tiny(const char *path)
{
    char map[64];
    uid_t uid = geteuid();
    gid_t gid = getegid();

    if (uid != 0) {
        if (unshare(CLONE_NEWUSER) < 0)
            SKIP("no user namespace: %s", strerror(errno));
        (void)snprintf(map, sizeof(map), "0 %u 1", uid);
        CHECK_EQ(fd_write_file(AT_FDCWD, "/proc/self/uid_map", map), 0);
        CHECK_EQ(fd_write_file(AT_FDCWD, "/proc/self/setgroups", "deny"), 0);
        (void)snprintf(map, sizeof(map), "0 %u 1", gid);
        CHECK_EQ(fd_write_file(AT_FDCWD, "/proc/self/gid_map", map), 0);
    }
    if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
            mount("tmpfs", path, "tmpfs", 0, "size=128k,mode=0700") < 0)
        SKIP("no file system of our own: %s", strerror(errno));
}

TEST(a_full_disk_stops_the_journal_closed)
{
    AUTO(bench_finish) struct bench bench = bench_make();
    struct carrel_error err = { 0 };
    struct journal_verdict verdict;
    const struct journal_known known = { .run = "R-1" };
    char hash[JOURNAL_HASH];
    char path[200];
    uint64_t n = 0;
    int r;

    mount_tiny(bench.dir);
    struct journal *journal = bench_open(&bench, "R-1", NULL);
    do {
        json_str(journal_begin(journal, "process_started"), "text", "fill it");
        r = journal_add(journal, &err);
    } while (r == 0 && ++n < 10000);
    CHECK_EQ(r, -ENOSPC);
    CHECK(strstr(err.message, "journal of run 'R-1': write to 'journal.jsonl': No space"));

    /* Also when there is space again: a gap must not be hidden. */
    bench_write(&bench, "filler", "", 0);
    (void)journal_begin(journal, "process_ended");
    CHECK_EQ(journal_add(journal, &err), -ENOSPC);
    CHECK_EQ(journal_seal(journal, "exited", hash, &err), -ENOSPC);
    journal_close(journal);

    AUTO(fd_close)
    int fd = open(bench_path(&bench, "R-1/journal.jsonl", path), O_RDONLY | O_CLOEXEC);
    CHECK(fd >= 0);
    CHECK_EQ(journal_verify(fd, &known, &verdict, NULL), 0);
    CHECK_EQ(verdict.state, CARREL_RECORD_UNSEALED);
    CHECK_EQ(verdict.records, n);
    CHECK_EQ(verdict.torn_bytes, 0);

    /* And no new run begins if the index cannot record it. */
    for (n = 0, r = 0; r == 0 && n < 1000; n++) {
        const struct journal_options options = { .runs = bench.runs, .run = "R-2" };
        r = journal_open(&options, &journal, &err);
        if (r == 0)
            journal_close(journal);
    }
    CHECK_EQ(r, -ENOSPC);
    (void)umount2(bench.dir, MNT_DETACH);
}

TEST(a_flood_of_records_stays_ordered_and_verifies)
{
    AUTO(bench_finish) struct bench bench = bench_make();
    const char *wanted = getenv("CARREL_JOURNAL_RECORDS"); /* a million takes some seconds */
    size_t n = wanted ? strtoul(wanted, NULL, 10) : TEST_IS_SLOW ? 5000 : 50000;
    const struct journal_known known = { .run = "R-1" };
    struct journal_verdict verdict;
    char path[200];

    bench_run(&bench, "R-1", n, NULL);
    AUTO(fd_close)
    int fd = open(bench_path(&bench, "R-1/journal.jsonl", path), O_RDONLY | O_CLOEXEC);
    CHECK(fd >= 0);
    CHECK_EQ(journal_verify(fd, &known, &verdict, NULL), 0);
    CHECK_EQ(verdict.state, CARREL_RECORD_SEALED);
    CHECK_EQ(verdict.records, n + 1);
}
