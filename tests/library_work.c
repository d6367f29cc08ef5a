/*
 * library_work.c - the work of runs and their records, through libcarrel; only its public
 * headers.
 *
 *     library_work DIR    an empty directory; XDG_STATE_HOME and XDG_CONFIG_HOME are private
 *
 * tests/cli/library.bats runs it, as root and as an ordinary user.
 */
#define _GNU_SOURCE
#include <carrel/carrel.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static int failures;
static char dir[PATH_MAX / 4], repo[PATH_MAX / 2];

static void look(int is_right, const char *what, int line)
{
    if (is_right)
        return;
    (void)fprintf(stderr, "library_work.c:%d: %s\n", line, what);
    failures++;
}
#define CHECK(what) look((what) ? 1 : 0, #what, __LINE__)

/* A call that must have this result; what it said is printed otherwise. */
static void look_at_result(
        long got, long wanted, const struct carrel_error *err, const char *what, int line)
{
    if (got == wanted)
        return;
    (void)fprintf(stderr, "library_work.c:%d: %s: %ld instead of %ld: %s\n", line, what, got,
            wanted, err->message);
    failures++;
}
#define RETURNS(wanted, call) look_at_result((call), (wanted), &err, #call, __LINE__)

/* A call that the caller must not have made. */
#define REFUSES(wanted, call)                                                                  \
    do {                                                                                       \
        memset(&err, 0, sizeof(err));                                                          \
        RETURNS(wanted, call);                                                                 \
        CHECK(err.origin == CARREL_FROM_CALLER && err.message[0] && err.code == (wanted));     \
    } while (0)

static int git(const char *const *words)
{
    const char *argv[16] = { "git", "-C", repo };
    size_t n = 3;
    pid_t pid;
    int status = -1;

    while (*words)
        argv[n++] = *words++;
    if (posix_spawnp(&pid, "git", NULL, NULL, (char *const *)(uintptr_t)argv, environ) == 0)
        (void)waitpid(pid, &status, 0);
    return status;
}
#define GIT(...) CHECK(git((const char *const[]){ __VA_ARGS__, NULL }) == 0)

static const char *below(const char *top, const char *name)
{
    static char path[PATH_MAX];

    (void)snprintf(path, sizeof(path), "%s/%s", top, name);
    return path;
}

static void write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "we");

    CHECK(file && fputs(text, file) >= 0);
    if (file)
        (void)fclose(file);
}

/* Its text in memory, until the next call; empty: there is none. */
static const char *read_file(const char *path)
{
    static char text[1 << 16];
    FILE *file = fopen(path, "re");
    size_t n = file ? fread(text, 1, sizeof(text) - 1, file) : 0;

    text[n] = '\0';
    if (file)
        (void)fclose(file);
    return text;
}

static void make_repo(void)
{
    (void)snprintf(repo, sizeof(repo), "%s/repo", dir);
    CHECK(mkdir(repo, 0700) == 0);
    GIT("init", "-q", "-b", "main");
    GIT("config", "user.name", "A User");
    GIT("config", "user.email", "user@example.org");
    write_file(below(repo, "a.txt"), "one\n");
    GIT("add", "-A");
    GIT("commit", "-qm", "first");
}

/* A run with a workspace of the repository, which ends with status 0. */
static void run(const char *name, const char *line, int stdin_fd)
{
    const char *const argv[] = { "sh", "-c", line, NULL };
    struct carrel_run_options options = CARREL_RUN_OPTIONS_INIT;
    struct carrel_workspace_options workspace = CARREL_WORKSPACE_OPTIONS_INIT;
    struct carrel_run_result *result = NULL;
    struct carrel_error err = { 0 };

    workspace.repo = repo;
    workspace.task = "t";
    workspace.run = name;
    options.argv = argv;
    options.workspace = &workspace;
    options.store_code = CARREL_STORE_ALWAYS;
    options.stdin_fd = stdin_fd;
    RETURNS(0, carrel_run(&options, &result, &err));
    CHECK(result && carrel_run_result_status(result) == 0);
    carrel_run_result_free(result);
}

static struct carrel_workspace *find(const char *word)
{
    struct carrel_workspace *workspace = NULL;
    struct carrel_error err = { 0 };

    RETURNS(0, carrel_workspace_find(word, repo, &workspace, &err));
    if (!workspace)
        exit(1);
    return workspace;
}

static enum carrel_workspace_state state_of(const char *word)
{
    struct carrel_workspace *workspace = find(word);
    enum carrel_workspace_state state = carrel_workspace_info(workspace)->state;

    carrel_workspace_free(workspace);
    return state;
}

/* Options that do not begin with their size. */
static void test_options(void)
{
    const char *const argv[] = { "true", NULL };
    struct carrel_run_options options = CARREL_RUN_OPTIONS_INIT;
    struct carrel_sandbox_options kept = CARREL_SANDBOX_OPTIONS_INIT;
    const struct carrel_workspace_options workspace = { .repo = repo };
    struct carrel_run_result *result = NULL;
    struct carrel_sandbox *sandbox = NULL;
    struct carrel_error err = { 0 };

    options.argv = argv;
    options.workspace = &workspace;
    REFUSES(-EINVAL, carrel_run(&options, &result, &err));
    kept.run = &options;
    REFUSES(-EINVAL, carrel_sandbox_create(&kept, &sandbox, &err));
    CHECK(!result && !sandbox);
}

/* ---- workspaces ---- */

struct names {
    char text[512];
    int answer;
};

static int take_workspace(const struct carrel_workspace_info *info, void *context)
{
    struct names *names = context;

    CHECK(info->size == sizeof(*info));
    (void)strncat(names->text, info->name, sizeof(names->text) - strlen(names->text) - 2);
    (void)strcat(names->text, " ");
    return names->answer;
}

static void test_list(void)
{
    struct carrel_error err = { 0 };
    struct carrel_workspace *workspace = NULL;
    struct names here = { "", 0 };
    struct names all = { "", 0 };
    struct names first = { "", 7 };

    RETURNS(0, carrel_workspace_each(repo, take_workspace, &here, &err));
    RETURNS(0, carrel_workspace_each(NULL, take_workspace, &all, &err));
    RETURNS(7, carrel_workspace_each(repo, take_workspace, &first, &err));
    CHECK(strcmp(here.text, "t/r1 t/r2 ") == 0 && strcmp(all.text, here.text) == 0);
    CHECK(strcmp(first.text, "t/r1 ") == 0);
    REFUSES(-ENOENT, carrel_workspace_each("/", take_workspace, &here, &err));
    REFUSES(-ENOENT, carrel_workspace_find("nothing", repo, &workspace, &err));
    CHECK(strcmp(err.reason, "not_found") == 0);
    REFUSES(-EINVAL, carrel_workspace_find("", repo, &workspace, &err));
    REFUSES(-EINVAL, carrel_workspace_find(NULL, repo, &workspace, &err)); /* there are two */
    REFUSES(-ENOENT, carrel_workspace_find(NULL, "/", &workspace, &err));
    CHECK(carrel_workspace_find("nothing", NULL, &workspace, NULL) == -ENOENT);
    CHECK(!workspace);
    workspace = find("r1");
    const struct carrel_workspace_info *info = carrel_workspace_info(workspace);
    CHECK(strcmp(info->name, "t/r1") == 0 && strcmp(info->branch, "task-t-run-r1") == 0);
    CHECK(info->state == CARREL_WORKSPACE_KEPT && strcmp(info->top, repo) == 0);
    CHECK(strcmp(carrel_workspace_state_name(info->state), "kept") == 0);
    CHECK(strlen(info->base) == 40 && !info->is_locked && !info->is_folder && !info->note);
    carrel_workspace_free(workspace);
    carrel_workspace_free(NULL);
}

static void test_report(const struct carrel_workspace *workspace)
{
    struct carrel_error err = { 0 };
    struct carrel_workspace_report *report = NULL;

    RETURNS(0, carrel_workspace_report(workspace, &report, &err));
    if (!report)
        return;
    CHECK(report->committed->n_files == 1 && report->committed->n_commits == 1);
    CHECK(strcmp(report->committed->files[0]->path, "a.txt") == 0);
    CHECK(report->committed->files[0]->status == 'M' && report->committed->added == 1);
    CHECK(report->uncommitted->n_files == 2 && report->uncommitted->n_commits == 0);
    CHECK(report->uncommitted->files[0]->status == 'A');
    CHECK(report->total->n_files == 3 && report->total->n_sensitive == 1);
    CHECK(report->n_oddities == 1 && strcmp(report->oddities[0]->path, "pipe") == 0);
    CHECK(report->disk_bytes > 0 && strcmp(report->info->name, "t/r1") == 0);
    /* A report that is kept does not lock the workspace. */
    RETURNS(0, carrel_workspace_lock(workspace, "mine", &err));
    RETURNS(0, carrel_workspace_unlock(workspace, &err));
    carrel_workspace_report_free(report);
    carrel_workspace_report_free(NULL);
}

/* What was written to a memfd, until the next call. */
static const char *text_of(int memory)
{
    static char text[1 << 16];
    ssize_t n = pread(memory, text, sizeof(text) - 1, 0);

    text[n > 0 ? n : 0] = '\0';
    (void)!ftruncate(memory, 0);
    (void)lseek(memory, 0, SEEK_SET);
    return text;
}

static void test_text(const struct carrel_workspace *workspace)
{
    struct carrel_error err = { 0 };
    struct carrel_diff_options options = CARREL_DIFF_OPTIONS_INIT;
    int memory = memfd_create("text", MFD_CLOEXEC);
    const char *text;

    RETURNS(0, carrel_workspace_diff(workspace, NULL, memory, &err));
    text = text_of(memory);
    CHECK(strstr(text, "\n+two\n") && strstr(text, "\n+new\n"));
    options.is_uncommitted = true;
    RETURNS(0, carrel_workspace_diff(workspace, &options, memory, &err));
    text = text_of(memory);
    CHECK(!strstr(text, "+two") && strstr(text, "\n+new\n"));
    options.form = CARREL_DIFF_NAMES;
    RETURNS(0, carrel_workspace_diff(workspace, &options, memory, &err));
    CHECK(strcmp(text_of(memory), "A\t.envrc\nA\tnew.txt\n") == 0);
    options.form = CARREL_DIFF_STAT;
    RETURNS(0, carrel_workspace_diff(workspace, &options, memory, &err));
    CHECK(strstr(text_of(memory), "2 files changed, 2 insertions(+)"));
    RETURNS(0, carrel_workspace_log(workspace, memory, &err));
    CHECK(strstr(text_of(memory), "    agent: two\n"));
    RETURNS(0, carrel_workspace_patch(workspace, memory, &err));
    CHECK(strstr(text_of(memory), "\nSubject: [PATCH 1/2] agent: two\n"));
    options.form = (enum carrel_diff)99;
    REFUSES(-EINVAL, carrel_workspace_diff(workspace, &options, memory, &err));
    options.form = CARREL_DIFF_PATCH;
    options.size = 1;
    REFUSES(-EINVAL, carrel_workspace_diff(workspace, &options, memory, &err));
    RETURNS(0, (long)strlen(text_of(memory)));
    (void)close(memory);
}

static void test_apply(const struct carrel_workspace *workspace)
{
    struct carrel_error err = { 0 };
    struct carrel_apply_options options = CARREL_APPLY_OPTIONS_INIT;
    struct carrel_apply_outcome *outcome = NULL;
    struct carrel_workspace *other = find("t/r2");

    options.here = "/";
    options.repo = dir; /* in no repository */
    CHECK(carrel_workspace_apply(workspace, &options, &outcome, &err) < 0 && !outcome);
    options.repo = NULL;
    RETURNS(0, carrel_workspace_apply(workspace, &options, &outcome, &err));
    CHECK(outcome && outcome->n_files == 3 && outcome->n_conflicts == 0 && !outcome->commit);
    CHECK(outcome && strcmp(outcome->top, repo) == 0 && strcmp(outcome->branch, "main") == 0);
    CHECK(strcmp(read_file(below(repo, "new.txt")), "new\n") == 0);
    CHECK(state_of("t/r1") == CARREL_WORKSPACE_APPLIED);
    carrel_apply_outcome_free(outcome);

    RETURNS(0, carrel_workspace_apply(workspace, NULL, &outcome, &err)); /* nothing to do */
    CHECK(outcome && outcome->n_files == 0 && outcome->n_conflicts == 0);
    carrel_apply_outcome_free(outcome);

    RETURNS(0, carrel_workspace_apply(other, NULL, &outcome, &err));
    CHECK(outcome && outcome->n_conflicts == 1 && outcome->n_files == 0);
    CHECK(outcome && strcmp(outcome->conflicts[0]->path, "a.txt") == 0 &&
            outcome->conflicts[0]->why[0]);
    CHECK(strcmp(read_file(below(repo, "a.txt")), "one\ntwo\n") == 0);
    carrel_apply_outcome_free(outcome);
    carrel_apply_outcome_free(NULL);

    options.how = (enum carrel_apply)99;
    REFUSES(-EINVAL, carrel_workspace_apply(other, &options, &outcome, &err));
    options.how = CARREL_APPLY_FILES;
    options.size = 0;
    REFUSES(-EINVAL, carrel_workspace_apply(other, &options, &outcome, &err));
    carrel_workspace_free(other);
}

static void test_commit(const struct carrel_workspace *workspace)
{
    struct carrel_error err = { 0 };
    char *commit = NULL;
    char range[128];

    RETURNS(1, carrel_workspace_commit(workspace, "the rest", &commit, &err));
    CHECK(commit && strlen(commit) == 40);
    (void)snprintf(range, sizeof(range), "%s", commit ? commit : "");
    GIT("diff", "--quiet", range, "task-t-run-r1");
    carrel_free(commit);
    RETURNS(1, carrel_workspace_commit(workspace, NULL, NULL, &err)); /* it is there already */
    CHECK(state_of("t/r1") == CARREL_WORKSPACE_COMMITTED);
    GIT("update-ref", "-d", "refs/heads/task-t-run-r1");
    RETURNS(1, carrel_workspace_repair(workspace, &err));
    GIT("diff", "--quiet", range, "task-t-run-r1");
    RETURNS(0, carrel_workspace_repair(workspace, &err));
}

static void test_open(const struct carrel_workspace *workspace)
{
    struct carrel_error err = { 0 };
    char at[PATH_MAX], to[PATH_MAX];
    char *path = NULL;

    (void)snprintf(at, sizeof(at), "%s/open", dir);
    (void)snprintf(to, sizeof(to), "%s/moved", dir);
    REFUSES(-EINVAL, carrel_workspace_close(workspace, &err)); /* it is not open */
    REFUSES(-EINVAL, carrel_workspace_open(workspace, "open", &path, &err));
    CHECK(!path);
    RETURNS(0, carrel_workspace_open(workspace, at, &path, &err));
    CHECK(path && strcmp(path, at) == 0);
    carrel_free(path);
    CHECK(strcmp(read_file(below(at, "new.txt")), "new\n") == 0);
    REFUSES(-EINVAL, carrel_workspace_move(workspace, "moved", &err));
    CHECK(access(at, F_OK) == 0); /* still there */
    RETURNS(0, carrel_workspace_move(workspace, to, &err));
    CHECK(access(at, F_OK) < 0 && strcmp(read_file(below(to, "new.txt")), "new\n") == 0);
    RETURNS(0, carrel_workspace_close(workspace, &err));
    CHECK(access(to, F_OK) < 0);
}

static void test_removal(const struct carrel_workspace *workspace)
{
    struct carrel_error err = { 0 };
    struct carrel_workspace *other = find("t/r2");
    struct carrel_workspace_prune_options options = CARREL_WORKSPACE_PRUNE_OPTIONS_INIT;
    struct names would = { "", 0 };
    struct names gone = { "", 0 };

    RETURNS(-ENOTEMPTY, carrel_workspace_discard(other, CARREL_DISCARD_SAVED, &err));
    RETURNS(0, carrel_workspace_lock(other, "not yet", &err));
    RETURNS(-EBUSY, carrel_workspace_discard(other, CARREL_DISCARD_FORCE, &err));
    CHECK(strstr(err.message, "not yet") || strstr(err.message, "locked"));
    RETURNS(0, carrel_workspace_unlock(other, &err));
    options.dir = repo;
    options.is_dry_run = true;
    RETURNS(0, carrel_workspace_prune(&options, take_workspace, &would, &err));
    CHECK(strcmp(would.text, "t/r1 ") == 0 && state_of("t/r1") == CARREL_WORKSPACE_COMMITTED);
    options.is_dry_run = false;
    options.older_than_s = 3600;
    RETURNS(0, carrel_workspace_prune(&options, take_workspace, &gone, &err));
    CHECK(!gone.text[0]);
    options.older_than_s = 0;
    RETURNS(0, carrel_workspace_prune(&options, take_workspace, &gone, &err));
    CHECK(strcmp(gone.text, "t/r1 ") == 0);
    RETURNS(-ENOENT, carrel_workspace_commit(workspace, NULL, NULL, &err));
    options.dir = "/";
    REFUSES(-ENOENT, carrel_workspace_prune(&options, NULL, NULL, &err));
    options.size = 3;
    REFUSES(-EINVAL, carrel_workspace_prune(&options, NULL, NULL, &err));
    RETURNS(0, carrel_workspace_discard(other, CARREL_DISCARD_FORCE, &err));
    RETURNS(-ENOENT, carrel_workspace_discard(other, CARREL_DISCARD_FORCE, &err));
    RETURNS(0, carrel_workspace_prune(NULL, NULL, NULL, &err));
    carrel_workspace_free(other);
}

/* ---- records ---- */

static struct carrel_run_record *find_run(const char *word)
{
    struct carrel_run_record *record = NULL;
    struct carrel_error err = { 0 };

    RETURNS(0, carrel_runs_find(word, &record, &err));
    if (!record)
        exit(1);
    return record;
}

static int count_run(const struct carrel_run_info *info, void *context)
{
    CHECK(info->size == sizeof(*info));
    ++*(int *)context;
    return 0;
}

static int find_journal(const char *name, uint64_t bytes, void *context)
{
    (void)context;
    return strcmp(name, "journal.jsonl") == 0 && bytes > 0 ? 9 : 0;
}

static void test_runs(void)
{
    struct carrel_error err = { 0 };
    struct carrel_run_record *record = NULL;
    char *json = NULL;
    int n = 0;

    RETURNS(0, carrel_runs_each(count_run, &n, &err));
    CHECK(n == 2);
    REFUSES(-ENOENT, carrel_runs_find("nothing", &record, &err));
    REFUSES(-EINVAL, carrel_runs_find("t/r", &record, &err)); /* both begin so */
    CHECK(!record);
    record = find_run("t/r1");
    const struct carrel_run_info *info = carrel_runs_info(record);
    CHECK(strcmp(info->key, "t+r1") == 0 && strcmp(info->task, "t") == 0);
    CHECK(info->state == CARREL_RECORD_SEALED && info->has_status && info->status == 0);
    CHECK(info->began && info->began_s > 0 && strcmp(info->reason, "exited") == 0);
    CHECK(info->has_duration && strncmp(info->argv, "[\"sh\",\"-c\",", 11) == 0);
    RETURNS(9, carrel_runs_each_file(record, find_journal, NULL, &err));
    CHECK(access(below(carrel_runs_directory(record), "journal.jsonl"), R_OK) == 0);
    RETURNS(1, carrel_runs_result(record, &json, &err));
    CHECK(json && json[0] == '{' && strstr(json, "\"reason\":\"exited\""));
    carrel_free(json);
    carrel_runs_free(record);
    carrel_runs_free(NULL);
}

/* The verdicts of one verification. */
struct verdicts {
    int n, n_index, by_state[CARREL_RECORD_NONE + 1];
    enum carrel_record_state state; /* of the last */
    uint64_t bad_record;
    int is_file, is_signed;
};

static int take_verdict(const struct carrel_journal_verdict *verdict, void *context)
{
    struct verdicts *verdicts = context;

    CHECK(verdict->size == sizeof(*verdict));
    CHECK(verdict->is_index || verdict->key);
    verdicts->n++;
    verdicts->n_index += verdict->is_index;
    verdicts->state = verdict->state;
    verdicts->bad_record = verdict->bad_record;
    verdicts->is_file = verdict->is_file;
    verdicts->is_signed = verdict->signer && verdict->key_id;
    if (!verdict->is_index)
        verdicts->by_state[verdict->state]++;
    return 0;
}

static struct verdicts verify(const char *word, const char *key)
{
    struct carrel_error err = { 0 };
    struct verdicts verdicts = { 0 };

    RETURNS(0, carrel_journal_verify(word, key, take_verdict, &verdicts, &err));
    return verdicts;
}

static struct carrel_journal_reader *open_journal(const char *word)
{
    struct carrel_error err = { 0 };
    struct carrel_journal_reader *reader = NULL;

    RETURNS(0, carrel_journal_open(word, NULL, &reader, &err));
    if (!reader)
        exit(1);
    return reader;
}

static uint64_t read_all(struct carrel_journal_reader *reader)
{
    struct carrel_error err = { 0 };
    const struct carrel_journal_record *record;
    uint64_t n = 0;
    int r;

    while ((r = carrel_journal_next(reader, &record, &err)) > 0) {
        n++;
        CHECK(record->seq == n || n == 0 || record->seq > n);
        CHECK(record->json[0] == '{' && strlen(record->json) == record->json_len);
        CHECK(record->time[10] == 'T' && record->event[0]);
    }
    RETURNS(0, r);
    return n;
}

static void test_reader(void)
{
    struct carrel_error err = { 0 };
    struct carrel_journal_reader *reader = NULL;
    const struct carrel_journal_verdict *verdict = NULL;
    char archive[PATH_MAX];

    REFUSES(-ENOENT, carrel_journal_open("nothing", NULL, &reader, &err));
    REFUSES(-ENOENT, carrel_journal_verify("nothing", NULL, take_verdict, NULL, &err));
    CHECK(!reader);
    reader = open_journal("t/r1");
    CHECK(strcmp(carrel_journal_key(reader), "t+r1") == 0);
    const uint64_t n = read_all(reader);
    RETURNS(0, carrel_journal_wait(reader, &err)); /* the run is over */
    RETURNS(0, carrel_journal_judge(reader, &verdict, &err));
    CHECK(n > 3 && verdict->n_records == n && verdict->state == CARREL_RECORD_SEALED);
    CHECK(verdict->head && verdict->seal && !verdict->why && !verdict->signer);
    (void)snprintf(archive, sizeof(archive), "%s/archive", dir);
    int fd = open(archive, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    RETURNS(0, carrel_journal_export(reader, CARREL_EXPORT_VALID, fd, &err));
    (void)close(fd);
    carrel_journal_free(reader);
    carrel_journal_free(NULL);
    struct verdicts alone = verify(archive, NULL);
    CHECK(alone.n == 1 && alone.is_file && alone.state == CARREL_RECORD_SEALED);
    struct verdicts all = verify(NULL, NULL);
    CHECK(all.n == 3 && all.n_index == 1 && all.by_state[CARREL_RECORD_SEALED] == 2);
}

static int count_journal(const struct carrel_journal_info *info, void *context)
{
    CHECK(info->size == sizeof(*info) && info->key && info->began);
    ++*(int *)context;
    return 0;
}

static void *run_until_told(void *context)
{
    run("r3", "read line; echo late >late.txt", *(int *)context);
    return NULL;
}

static int is_in_progress(const struct carrel_journal_info *info, void *context)
{
    (void)context;
    return strcmp(info->key, "t+r3") == 0 && info->state == CARREL_RECORD_IN_PROGRESS;
}

static int is_running(const struct carrel_workspace_info *info, void *context)
{
    (void)context;
    return info->state == CARREL_WORKSPACE_RUNNING;
}

/* A run that is read, and left alone, while it lasts; a key signs its seal. */
static void test_progress(void)
{
    struct carrel_error err = { 0 };
    struct carrel_journal_keys *keys = NULL;
    struct carrel_runs_prune_options prune = CARREL_RUNS_PRUNE_OPTIONS_INIT;
    const struct carrel_journal_verdict *verdict = NULL;
    char key[PATH_MAX] = "";
    pthread_t thread;
    int ends[2], n = 0, r;

    RETURNS(0, carrel_journal_keygen(&keys, &err));
    CHECK(keys && strlen(keys->public_hex) == 64 && strlen(keys->id) == 16);
    if (keys) {
        const int len = (int)strlen(keys->path) - (int)strlen("/journal.key");
        (void)snprintf(key, sizeof(key), "%.*s", len, keys->path);
        write_file(below(key, "policy.yaml"), "journal: {sign: true}\n");
        (void)strcat(key, "/journal.pub");
    }
    carrel_journal_keys_free(keys);
    carrel_journal_keys_free(NULL);
    RETURNS(-EEXIST, carrel_journal_keygen(&keys, &err));

    CHECK(pipe2(ends, O_CLOEXEC) == 0);
    CHECK(pthread_create(&thread, NULL, run_until_told, &ends[0]) == 0);
    while (carrel_journal_each(is_in_progress, NULL, &err) != 1 ||
            carrel_workspace_each(repo, is_running, NULL, &err) != 1)
        (void)usleep(10000);
    struct carrel_workspace *workspace = find("t/r3");
    RETURNS(-EBUSY, carrel_workspace_commit(workspace, NULL, NULL, &err));
    RETURNS(-EBUSY, carrel_workspace_discard(workspace, CARREL_DISCARD_FORCE, &err));
    struct carrel_journal_reader *reader = open_journal("t/r3");
    uint64_t read = read_all(reader);
    RETURNS(0, carrel_journal_judge(reader, &verdict, &err));
    CHECK(verdict->state == CARREL_RECORD_IN_PROGRESS);
    prune.is_dry_run = true;
    RETURNS(0, carrel_runs_prune(&prune, count_run, &n, &err));
    CHECK(n == 2); /* the others */
    CHECK(write(ends[1], "\n", 1) == 1);
    while ((r = carrel_journal_wait(reader, &err)) > 0)
        read += read_all(reader);
    RETURNS(0, r);
    RETURNS(0, carrel_journal_judge(reader, &verdict, &err));
    CHECK(verdict->state == CARREL_RECORD_SEALED && verdict->n_records == read);
    CHECK(verdict->signer && strlen(verdict->key_id) == 16);
    carrel_journal_free(reader);
    CHECK(pthread_join(thread, NULL) == 0);
    (void)close(ends[0]);
    (void)close(ends[1]);
    RETURNS(1, carrel_workspace_commit(workspace, NULL, NULL, &err));
    carrel_workspace_free(workspace);

    CHECK(verify("t/r3", key).is_signed && verify("t/r3", key).state == CARREL_RECORD_SEALED);
    CHECK(verify("t/r1", NULL).state == CARREL_RECORD_SEALED); /* before there was a key */
    CHECK(verify("t/r1", key).state == CARREL_RECORD_BAD);
    RETURNS(-ENOENT, carrel_journal_verify("t/r1", "/no/key", take_verdict, NULL, &err));
}

/* Exchanges one byte in the middle of a file, and returns the one that was there. */
static char exchange(const char *path, char byte)
{
    struct stat st = { 0 };
    int fd = open(path, O_RDWR | O_CLOEXEC);
    char old = 0;

    CHECK(fd >= 0 && fstat(fd, &st) == 0 && pread(fd, &old, 1, st.st_size / 2) == 1);
    CHECK(old != byte && pwrite(fd, &byte, 1, st.st_size / 2) == 1);
    (void)close(fd);
    return old;
}

static void test_damage(void)
{
    struct carrel_error err = { 0 };
    struct carrel_run_record *record = find_run("t/r2");
    const struct carrel_journal_verdict *verdict = NULL;
    int memory = memfd_create("export", MFD_CLOEXEC);
    struct stat st = { 0 };
    char journal[PATH_MAX], away[PATH_MAX];

    (void)snprintf(journal, sizeof(journal), "%s/journal.jsonl", carrel_runs_directory(record));
    (void)snprintf(away, sizeof(away), "%s/away", dir);
    const char byte = exchange(journal, '\x01');
    struct verdicts bad = verify("t/r2", NULL);
    CHECK(bad.state == CARREL_RECORD_BAD && bad.bad_record > 1);
    struct carrel_journal_reader *reader = open_journal("t/r2");
    CHECK(read_all(reader) == bad.bad_record - 1);
    RETURNS(0, carrel_journal_judge(reader, &verdict, &err));
    CHECK(verdict->state == CARREL_RECORD_BAD && verdict->why);
    RETURNS(0, carrel_journal_wait(reader, &err));
    RETURNS(-EBADMSG, carrel_journal_export(reader, CARREL_EXPORT_VALID, memory, &err));
    CHECK(strcmp(err.reason, "damaged") == 0);
    CHECK(fstat(memory, &st) == 0 && st.st_size == 0);
    RETURNS(0, carrel_journal_export(reader, CARREL_EXPORT_FORCE, memory, &err));
    CHECK(fstat(memory, &st) == 0 && st.st_size > 0);
    carrel_journal_free(reader);
    (void)close(memory);

    (void)exchange(journal, byte);
    CHECK(verify("t/r2", NULL).state == CARREL_RECORD_SEALED);
    CHECK(rename(journal, away) == 0);
    CHECK(verify("t/r2", NULL).state == CARREL_RECORD_MISSING);
    REFUSES(-ENOENT, carrel_journal_open("t/r2", NULL, &reader, &err));
    CHECK(verify(NULL, NULL).by_state[CARREL_RECORD_MISSING] == 1);
    CHECK(rename(away, journal) == 0);
    carrel_runs_free(record);
}

static void test_prune(void)
{
    struct carrel_error err = { 0 };
    struct carrel_runs_prune_options options = CARREL_RUNS_PRUNE_OPTIONS_INIT;
    char index[PATH_MAX];
    int n = 0;

    struct carrel_run_record *record = find_run("t/r1");
    (void)snprintf(index, sizeof(index), "%s", carrel_runs_directory(record));
    (void)strcpy(strrchr(index, '/'), "/index.jsonl");
    REFUSES(-EINVAL, carrel_runs_prune(NULL, NULL, NULL, &err));
    options.older_than_s = 3600;
    RETURNS(0, carrel_runs_prune(&options, count_run, &n, &err));
    CHECK(n == 0);
    options.older_than_s = 0;
    RETURNS(0, carrel_runs_prune(&options, count_run, &n, &err));
    CHECK(n == 2); /* the workspace of r3 is still there */
    CHECK(access(carrel_runs_directory(record), F_OK) < 0);
    RETURNS(-ENOENT, carrel_runs_each_file(record, find_journal, NULL, &err));
    carrel_runs_free(record);
    REFUSES(-ENOENT, carrel_runs_find("t/r1", &record, &err));
    CHECK(verify("t/r1", NULL).state == CARREL_RECORD_PRUNED);
    struct verdicts all = verify(NULL, NULL);
    CHECK(all.n == 4 && all.by_state[CARREL_RECORD_PRUNED] == 2 &&
            all.by_state[CARREL_RECORD_SEALED] == 1);
    n = 0;
    RETURNS(0, carrel_journal_each(count_journal, &n, &err));
    CHECK(n == 3);
    n = 0;
    (void)exchange(index, '\x01');
    RETURNS(-EBADMSG, carrel_journal_each(count_journal, &n, &err));
    CHECK(n > 0 && n < 4); /* what is before the bad record */
}

/* One without a run, and a run that goes on in it. */
static void test_create(void)
{
    static const char *const argv[] = { "sh", "-c", "echo late >late.txt", NULL };
    struct carrel_run_options options = CARREL_RUN_OPTIONS_INIT;
    struct carrel_workspace_options workspace = CARREL_WORKSPACE_OPTIONS_INIT;
    struct carrel_run_result *result = NULL;
    struct carrel_workspace_report *report = NULL;
    struct carrel_error err = { 0 };
    char *name = NULL;

    workspace.repo = repo;
    workspace.task = "made";
    RETURNS(0, carrel_workspace_create(&workspace, &name, &err));
    CHECK(name && strncmp(name, "made/", 5) == 0);
    struct carrel_workspace_options again = CARREL_WORKSPACE_OPTIONS_INIT;
    again.resume = name;
    options.argv = argv;
    options.workspace = &again;
    RETURNS(0, carrel_run(&options, &result, &err));
    carrel_run_result_free(result);
    struct carrel_workspace *found = find(name);
    RETURNS(0, carrel_workspace_report(found, &report, &err));
    CHECK(report && report->total->n_files == 1);
    carrel_workspace_report_free(report);
    RETURNS(0, carrel_workspace_discard(found, CARREL_DISCARD_FORCE, &err));
    carrel_workspace_free(found);
    carrel_free(name);
    workspace.repo = "/no/such/repository";
    RETURNS(-ENOENT, carrel_workspace_create(&workspace, &name, &err));
    CHECK(err.origin == CARREL_FROM_CALLER);
}

int main(int argc, char **argv)
{
    if (argc != 2)
        return 2;
    (void)snprintf(dir, sizeof(dir), "%s", argv[1]);
    make_repo();
    test_options();
    run("r1",
            "echo two >>a.txt; git commit -qam 'agent: two'; echo new >new.txt;"
            " echo 'do it' >.envrc; mkfifo pipe",
            -1);
    run("r2", "echo other >a.txt", -1);
    test_list();
    struct carrel_workspace *workspace = find("t/r1");
    test_report(workspace);
    test_text(workspace);
    test_apply(workspace);
    test_commit(workspace);
    test_open(workspace);
    test_removal(workspace);
    carrel_workspace_free(workspace);
    test_runs();
    test_reader();
    test_progress();
    test_damage();
    test_prune();
    test_create();
    (void)printf("%d failures\n", failures);
    return failures > 0;
}
