/* The index, and what it detects that a journal alone cannot. */
#include "journal/bench_fixture.h"
#include "journal/index.h"
#include "journal/runs.h"
#include <errno.h>
#include <sys/stat.h>
#include <sys/wait.h>

static int open_dir(const struct bench *bench)
{
    int dir = open(bench->runs, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    CHECK(dir >= 0);
    return dir;
}

static struct journal_runs *read_runs(const struct bench *bench)
{
    struct carrel_error err = { 0 };
    struct journal_runs *runs = NULL;

    AUTO(fd_close) int dir = open_dir(bench);
    if (journal_runs_read(dir, &runs, &err) < 0)
        test_fail(__FILE__, __LINE__, "%s", err.message);
    return runs;
}

static struct journal_verdict verify(const struct bench *bench, const char *run)
{
    AUTO(journal_runs_free) struct journal_runs *runs = read_runs(bench);
    struct carrel_error err = { 0 };
    struct journal_verdict verdict;

    AUTO(fd_close) int dir = open_dir(bench);
    AUTO(fd_close) int fd = journal_open_run(dir, run, NULL);
    const struct journal_run *entry = journal_runs_get(runs, run);
    if (journal_verify_run(fd, run, entry, NULL, &verdict, &err) < 0)
        test_fail(__FILE__, __LINE__, "%s", err.message);
    return verdict;
}

TEST(no_index_is_no_runs)
{
    AUTO(bench_finish) struct bench bench = bench_make();

    CHECK_EQ(mkdir(bench.runs, 0700), 0);
    AUTO(journal_runs_free) struct journal_runs *runs = read_runs(&bench);
    CHECK_EQ(runs->n, 0);
    CHECK(!journal_runs_get(runs, "R-1"));
    CHECK_EQ(runs->index.bad_record, 0);
}

TEST(runs_are_listed_as_they_began_with_their_last_seal)
{
    AUTO(bench_finish) struct bench bench = bench_make();
    struct journal *first = bench_open(&bench, "R-b", NULL);

    bench_run(&bench, "R-a", 2, NULL);
    bench_seal(first);
    bench_seal(first);
    journal_close(first);
    journal_close(bench_open(&bench, "R-c", NULL));
    AUTO(journal_close) struct journal *last = bench_open(&bench, "R-d", NULL);

    AUTO(journal_runs_free) struct journal_runs *runs = read_runs(&bench);
    AUTO(fd_close) int dir = open_dir(&bench);
    CHECK_EQ(runs->n, 4);
    CHECK_STR(runs->items[0].run, "R-b");
    CHECK_STR(runs->items[0].task, "T-1");
    CHECK_STR(runs->items[0].reason, "exited");
    CHECK_EQ(runs->items[0].records, 2);
    CHECK_EQ(strlen(runs->items[0].began), 27);
    CHECK_EQ(strlen(runs->items[0].sealed), 27);
    CHECK_EQ(journal_run_state(dir, &runs->items[0]), CARREL_RECORD_SEALED);
    CHECK_STR(runs->items[1].run, "R-a");
    CHECK_EQ(runs->items[1].records, 3);
    CHECK_STR(runs->items[2].reason, "");
    CHECK_EQ(journal_run_state(dir, &runs->items[2]), CARREL_RECORD_UNSEALED);
    CHECK_EQ(journal_run_state(dir, &runs->items[3]), CARREL_RECORD_IN_PROGRESS);
    (void)last;
    CHECK(journal_runs_get(runs, "R-c") == &runs->items[2]);
    CHECK(!journal_runs_get(runs, "R-"));
}

TEST(a_sealed_run_verifies_against_the_index)
{
    AUTO(bench_finish) struct bench bench = bench_make();

    bench_run(&bench, "R-1", 3, NULL);
    struct journal_verdict verdict = verify(&bench, "R-1");
    CHECK_EQ(verdict.state, CARREL_RECORD_SEALED);
    CHECK(verdict.has_known_seal);
    bench_run(&bench, "R-1", 2, NULL); /* continued */
    verdict = verify(&bench, "R-1");
    CHECK_EQ(verdict.state, CARREL_RECORD_SEALED);
    CHECK_EQ(verdict.records, 7);
}

TEST(a_cut_back_to_an_earlier_seal_is_found)
{
    AUTO(bench_finish) struct bench bench = bench_make();
    char path[200];
    struct stat st;

    bench_run(&bench, "R-1", 3, NULL);
    CHECK_EQ(stat(bench_path(&bench, "R-1/journal.jsonl", path), &st), 0);
    bench_run(&bench, "R-1", 2, NULL);
    CHECK_EQ(truncate(path, st.st_size), 0);
    struct journal_verdict verdict = verify(&bench, "R-1");
    CHECK_EQ(verdict.state, CARREL_RECORD_BAD);
    CHECK_EQ(verdict.bad_record, 5);
    CHECK(strstr(verdict.why, "the index has a seal of 7 records"));
}

TEST(what_was_cut_is_still_found_when_the_run_goes_on)
{
    AUTO(bench_finish) struct bench bench = bench_make();
    AUTO(buf_finish) struct buf text = BUF_INIT(1 << 20);
    char path[200];

    bench_run(&bench, "R-1", 3, NULL);
    bench_read(&bench, "R-1/journal.jsonl", &text);
    text.data[text.len - 1] = '\0';
    size_t without_seal = (size_t)(strrchr(text.data, '\n') + 1 - text.data);
    CHECK_EQ(truncate(bench_path(&bench, "R-1/journal.jsonl", path), (off_t)without_seal), 0);
    bench_run(&bench, "R-1", 2, NULL);
    struct journal_verdict verdict = verify(&bench, "R-1");
    CHECK_EQ(verdict.state, CARREL_RECORD_BAD);
    CHECK_EQ(verdict.bad_record, 4);
    CHECK(strstr(verdict.why, "the index has a seal of 4 records"));

    bench_run(&bench, "R-2", 3, NULL);
    CHECK_EQ(unlink(bench_path(&bench, "R-2/journal.jsonl", path)), 0);
    bench_run(&bench, "R-2", 5, NULL);
    verdict = verify(&bench, "R-2");
    CHECK_EQ(verdict.state, CARREL_RECORD_BAD);
    CHECK_EQ(verdict.bad_record, 4);
}

TEST(a_seal_that_did_not_reach_the_index_is_no_fault)
{
    AUTO(bench_finish) struct bench bench = bench_make();
    AUTO(buf_finish) struct buf text = BUF_INIT(1 << 20);
    char path[200];

    bench_run(&bench, "R-1", 3, NULL);
    bench_read(&bench, "index.jsonl", &text);
    text.data[text.len - 1] = '\0';
    size_t without_seal = (size_t)(strrchr(text.data, '\n') + 1 - text.data);
    CHECK_EQ(truncate(bench_path(&bench, "index.jsonl", path), (off_t)without_seal), 0);
    bench_run(&bench, "R-1", 2, NULL);
    struct journal_verdict verdict = verify(&bench, "R-1");
    CHECK_EQ(verdict.state, CARREL_RECORD_SEALED);
    CHECK_EQ(verdict.records, 7);
}

TEST(a_journal_written_anew_is_found)
{
    AUTO(bench_finish) struct bench bench = bench_make();
    AUTO(bench_finish) struct bench elsewhere = bench_make();
    AUTO(buf_finish) struct buf text = BUF_INIT(1 << 20);

    bench_run(&bench, "R-1", 3, NULL);
    bench_run(&elsewhere, "R-1", 3, NULL);
    bench_read(&elsewhere, "R-1/journal.jsonl", &text);
    bench_write(&bench, "R-1/journal.jsonl", text.data, text.len);
    struct journal_verdict verdict = verify(&bench, "R-1");
    CHECK_EQ(verdict.state, CARREL_RECORD_BAD);
    CHECK_EQ(verdict.bad_record, 4);
}

TEST(a_journal_that_was_removed_is_missed_unless_on_purpose)
{
    AUTO(bench_finish) struct bench bench = bench_make();
    char path[200];

    bench_run(&bench, "R-1", 3, NULL);
    bench_run(&bench, "R-2", 3, NULL);
    CHECK_EQ(unlink(bench_path(&bench, "R-1/journal.jsonl", path)), 0);
    CHECK_EQ(verify(&bench, "R-1").state, CARREL_RECORD_MISSING);
    CHECK_EQ(journal_note_pruned(bench.runs, "R-1", NULL), 0);
    CHECK_EQ(verify(&bench, "R-1").state, CARREL_RECORD_PRUNED);
    /* The same id again is a new run. */
    bench_run(&bench, "R-1", 1, NULL);
    CHECK_EQ(verify(&bench, "R-1").state, CARREL_RECORD_SEALED);
    CHECK_EQ(verify(&bench, "R-2").state, CARREL_RECORD_SEALED);
}

TEST(a_run_that_the_index_does_not_know_is_bad)
{
    AUTO(bench_finish) struct bench bench = bench_make();
    AUTO(bench_finish) struct bench elsewhere = bench_make();
    AUTO(buf_finish) struct buf text = BUF_INIT(1 << 20);
    char path[200];

    bench_run(&bench, "R-1", 3, NULL);
    bench_run(&elsewhere, "R-2", 3, NULL);
    CHECK_EQ(mkdir(bench_path(&bench, "R-2", path), 0700), 0);
    bench_write(&bench, "R-2/journal.jsonl", "", 0);
    CHECK_EQ(verify(&bench, "R-2").state, CARREL_RECORD_UNSEALED);
    bench_read(&elsewhere, "R-2/journal.jsonl", &text);
    bench_write(&bench, "R-2/journal.jsonl", text.data, text.len);
    struct journal_verdict verdict = verify(&bench, "R-2");
    CHECK_EQ(verdict.state, CARREL_RECORD_BAD);
    CHECK_STR(verdict.why, "the index does not know this run");
}

TEST(a_seal_that_the_index_has_lost_is_told)
{
    AUTO(bench_finish) struct bench bench = bench_make();
    AUTO(buf_finish) struct buf text = BUF_INIT(1 << 20);

    bench_run(&bench, "R-1", 3, NULL);
    bench_read(&bench, "index.jsonl", &text);
    bench_write(&bench, "index.jsonl", text.data,
            (size_t)(strchr(text.data, '\n') + 1 - text.data));
    struct journal_verdict verdict = verify(&bench, "R-1");
    CHECK_EQ(verdict.state, CARREL_RECORD_UNSEALED);
    CHECK(strstr(verdict.why, "it is sealed and the index has no record of that"));
}

TEST(a_changed_index_names_its_first_bad_record)
{
    AUTO(bench_finish) struct bench bench = bench_make();
    AUTO(buf_finish) struct buf text = BUF_INIT(1 << 20);

    for (int i = 0; i < 5; i++)
        bench_run(&bench, (char[]){ 'R', '-', (char)('0' + i), '\0' }, 1, NULL);
    bench_read(&bench, "index.jsonl", &text);
    char *third = strchr(strchr(text.data, '\n') + 1, '\n') + 1;
    *strstr(third, "run_begun") = 'x';
    bench_write(&bench, "index.jsonl", text.data, text.len);
    AUTO(journal_runs_free) struct journal_runs *runs = read_runs(&bench);
    CHECK_EQ(runs->index.state, CARREL_RECORD_BAD);
    CHECK_EQ(runs->index.bad_record, 3);
    CHECK_EQ(runs->n, 1); /* what is good before it */
}

TEST(fifty_processes_write_one_index)
{
    enum { N = 50, EACH = 4 };
    AUTO(bench_finish) struct bench bench = bench_make();
    pid_t pids[N];

    CHECK_EQ(mkdir(bench.runs, 0700), 0);
    for (int i = 0; i < N; i++) {
        pids[i] = fork();
        CHECK(pids[i] >= 0);
        if (pids[i] == 0) {
            for (int k = 0; k < EACH; k++) {
                char run[32];
                (void)snprintf(run, sizeof(run), "R-%d-%d", i, k);
                bench_run(&bench, run, 3, NULL);
            }
            _exit(0);
        }
    }
    for (int i = 0; i < N; i++) {
        int status;
        CHECK_EQ(waitpid(pids[i], &status, 0), pids[i]);
        CHECK_EQ(status, 0);
    }
    AUTO(journal_runs_free) struct journal_runs *runs = read_runs(&bench);
    CHECK_EQ(runs->index.bad_record, 0);
    CHECK_EQ(runs->index.torn_bytes, 0);
    CHECK_EQ(runs->index.records, 2 * N * EACH);
    CHECK_EQ(runs->n, N * EACH);
    for (size_t i = 0; i < runs->n; i++) {
        CHECK(!runs->items[i].is_open);
        CHECK_EQ(runs->items[i].records, 4);
    }
}

TEST(an_index_that_is_put_away_is_begun_anew)
{
    AUTO(bench_finish) struct bench bench = bench_make();
    char from[200];
    char to[200];

    bench_run(&bench, "R-1", 1, NULL);
    CHECK_EQ(rename(bench_path(&bench, "index.jsonl", from), bench_path(&bench, "old", to)), 0);
    bench_run(&bench, "R-2", 1, NULL);
    AUTO(journal_runs_free) struct journal_runs *runs = read_runs(&bench);
    CHECK_EQ(runs->n, 1);
    CHECK_STR(runs->items[0].run, "R-2");
}
