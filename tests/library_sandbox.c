/*
 * library_sandbox.c - every verb of <carrel/sandbox.h>, <carrel/process.h> and <carrel/task.h>,
 * used as a program does that has nothing but the public headers. Prints what failed.
 */
#include <carrel/carrel.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define FORKS 100

static int failures;
static struct carrel_error err;

static void check(int line, const char *what, bool holds)
{
    if (holds)
        return;
    (void)printf("line %d: %s (%s)\n", line, what, err.message);
    failures++;
}
#define CHECK(what) check(__LINE__, #what, what)

static struct carrel_sandbox *create(const char *name, const char *from)
{
    static const char *const labels[] = { "team=a", NULL };
    struct carrel_sandbox_options options = CARREL_SANDBOX_OPTIONS_INIT;
    struct carrel_sandbox *sandbox = NULL;

    options.name = name;
    options.labels = labels;
    options.from = from;
    CHECK(carrel_sandbox_create(&options, &sandbox, &err) == 0);
    if (!sandbox)
        exit(1);
    return sandbox;
}

/* Runs a shell line in it; returns whether its output was that. */
static bool says(struct carrel_sandbox *sandbox, const char *line, const char *text)
{
    const char *const argv[] = { "sh", "-c", line, NULL };
    struct carrel_run_options options = CARREL_RUN_OPTIONS_INIT;
    struct carrel_run_result *result = NULL;
    size_t len;

    options.argv = argv;
    int r = carrel_sandbox_exec(sandbox, &options, &result, &err);
    bool is_it = r == 0 && strcmp(carrel_run_result_stdout(result, &len), text) == 0;
    carrel_run_result_free(result);
    return is_it;
}

static int count(const struct carrel_sandbox_info *info, void *context)
{
    const char **wanted = context;

    if (strcmp(info->id, wanted[0]) == 0 && strcmp(info->labels[0], "team=a") == 0)
        wanted[1] = "found";
    return 0;
}

static void test_finding(struct carrel_sandbox *sandbox)
{
    static const char *const other[] = { "team=b", NULL };
    struct carrel_sandbox_query query = CARREL_SANDBOX_QUERY_INIT;
    const char *wanted[] = { carrel_sandbox_id(sandbox), NULL };
    struct carrel_sandbox *again = NULL;
    char *json = NULL;

    CHECK(carrel_sandbox_each(&query, count, wanted, &err) == 0 && wanted[1]);
    wanted[1] = NULL;
    query.labels = other;
    CHECK(carrel_sandbox_each(&query, count, wanted, &err) == 0 && !wanted[1]);
    query.labels = NULL;
    CHECK(carrel_sandbox_list(&query, &json, &err) == 0 && strstr(json, wanted[0]));
    carrel_free(json);
    query.size = offsetof(struct carrel_sandbox_query, has_dead); /* as of an older version */
    CHECK(carrel_sandbox_list(&query, &json, &err) == 0 && strstr(json, wanted[0]));
    carrel_free(json);
    CHECK(carrel_sandbox_list(NULL, &json, &err) == 0 && strstr(json, wanted[0]));
    carrel_free(json);
    query.size = 0;
    CHECK(carrel_sandbox_list(&query, &json, &err) == -EINVAL);
    CHECK(err.origin == CARREL_FROM_CALLER && strcmp(err.reason, "invalid") == 0);
    CHECK(carrel_sandbox_open("library-one", &again, &err) == 0);
    CHECK(strcmp(carrel_sandbox_id(again), wanted[0]) == 0);
    carrel_sandbox_free(again);
    CHECK(carrel_sandbox_open(NULL, &again, &err) == -EINVAL);
    CHECK(carrel_sandbox_open("library-none", &again, &err) == -ENOENT);
    CHECK(err.origin == CARREL_FROM_CALLER && strcmp(err.reason, "not_found") == 0);
    CHECK(carrel_sandbox_open("library-none", &again, NULL) == -ENOENT);
}

/* What an exec cannot decide is refused; nothing is ignored. */
static void test_exec_refuses(struct carrel_sandbox *sandbox)
{
    static const char *const argv[] = { "true", NULL };
    struct carrel_run_options o[5];
    struct carrel_run_result *result = NULL;

    for (size_t i = 0; i < sizeof(o) / sizeof(o[0]); i++) {
        o[i] = (struct carrel_run_options)CARREL_RUN_OPTIONS_INIT;
        o[i].argv = argv;
    }
    o[0].image = "none";
    o[1].journal = CARREL_JOURNAL_OFF;
    o[2].store_code = CARREL_STORE_ALWAYS;
    o[3].is_git_writable = true;
    o[4].memory_bytes = 64U << 20;
    for (size_t i = 0; i < sizeof(o) / sizeof(o[0]); i++)
        CHECK(carrel_sandbox_exec(sandbox, &o[i], &result, &err) == -EINVAL);
}

static void test_itself(struct carrel_sandbox *sandbox)
{
    struct carrel_limits limits = CARREL_LIMITS_INIT;
    char *json = NULL;

    CHECK(carrel_sandbox_inspect(sandbox, &json, &err) == 0 && strstr(json, "library-one"));
    carrel_free(json);
    CHECK(carrel_sandbox_renew(sandbox, 60000, CARREL_NEVER, &err) == 0);
    CHECK(carrel_sandbox_pause(sandbox, &err) == 0);
    CHECK(!says(sandbox, "echo x", "x\n") && strcmp(err.reason, "busy") == 0);
    CHECK(carrel_sandbox_resume(sandbox, &err) == 0);
    CHECK(says(sandbox, "echo x", "x\n"));
    limits.pids = 60;
    int r = carrel_sandbox_update(sandbox, &limits, &err);
    CHECK(r == 0 || r == -ENOTSUP); /* without a cgroup it cannot be changed */
}

static void test_detached(struct carrel_sandbox *sandbox)
{
    static const char *const argv[] = { "sh", "-c", "echo begun; sleep 60", NULL };
    struct carrel_run_options options = CARREL_RUN_OPTIONS_INIT;
    struct carrel_run_result *result = NULL;
    uint32_t process = 0;
    char *json = NULL;
    size_t len;

    options.argv = argv;
    CHECK(carrel_sandbox_detach(sandbox, &options, &process, &err) == 0 && process > 0);
    for (int i = 0; i < 400 && (!json || !strstr(json, "\"command\":\"sleep 60\"")); i++) {
        carrel_free(json);
        json = NULL;
        (void)usleep(50000);
        CHECK(carrel_sandbox_processes(sandbox, &json, &err) == 0);
    }
    CHECK(json && strstr(json, "\"command\":\"sleep 60\""));
    carrel_free(json);
    CHECK(carrel_sandbox_signal(sandbox, process, SIGKILL, &err) == 0);
    options.argv = NULL;
    CHECK(carrel_sandbox_attach(sandbox, process, &options, &result, &err) == 0);
    CHECK(carrel_run_result_reason(result) == CARREL_SIGNALED);
    CHECK(strcmp(carrel_run_result_stdout(result, &len), "begun\n") == 0);
    carrel_run_result_free(result);
    CHECK(carrel_sandbox_signal(sandbox, 99999, SIGTERM, &err) == -ENOENT);
    CHECK(err.origin == CARREL_FROM_CALLER);
}

static int await(struct carrel_process *process, struct carrel_run_result **result)
{
    struct pollfd end = { .fd = carrel_process_fd(process), .events = POLLIN };
    int r;

    while ((r = carrel_process_result(process, result, &err)) == 0)
        if (poll(&end, 1, 30000) <= 0)
            return -ETIMEDOUT;
    return r;
}

static void test_process(struct carrel_sandbox *sandbox)
{
    static const char *const argv[] = { "sh", "-c", "read x; echo got $x; echo bad >&2; exit 3",
        NULL };
    struct carrel_run_options options = CARREL_RUN_OPTIONS_INIT;
    struct carrel_process *process = NULL;
    struct carrel_run_result *result = NULL;
    char text[32] = "";

    options.argv = argv;
    options.stdin_fd = 0;
    CHECK(carrel_process_start(sandbox, &options, &process, &err) == 0);
    CHECK(carrel_process_number(process) > 0);
    CHECK(carrel_process_result(process, &result, &err) == 0);
    CHECK(carrel_process_resize(process, 10, 20, &err) == -EINVAL);
    CHECK(write(carrel_process_stream(process, CARREL_STDIN), "it\n", 3) == 3);
    CHECK(await(process, &result) == 1);
    CHECK(carrel_run_result_status(result) == 3);
    carrel_run_result_free(result);
    CHECK(read(carrel_process_stream(process, CARREL_STDOUT), text, sizeof(text)) == 7);
    CHECK(strncmp(text, "got it\n", 7) == 0);
    CHECK(read(carrel_process_stream(process, CARREL_STDERR), text, sizeof(text)) == 4);
    CHECK(carrel_process_result(process, &result, &err) == -EINVAL);
    carrel_process_free(process);
}

/* Nothing runs in it. */
static bool is_idle(struct carrel_sandbox *sandbox)
{
    char *json = NULL;

    bool is_it = carrel_sandbox_processes(sandbox, &json, &err) == 0 &&
                 strstr(json, "\"processes\":[]");
    carrel_free(json);
    return is_it;
}

static void test_process_time(struct carrel_sandbox *sandbox)
{
    static const char *const argv[] = { "sleep", "60", NULL };
    struct carrel_run_options options = CARREL_RUN_OPTIONS_INIT;
    struct carrel_process *process = NULL;
    struct carrel_run_result *result = NULL;

    options.argv = argv;
    options.timeout_ms = 100;
    CHECK(carrel_process_start(sandbox, &options, &process, &err) == 0);
    CHECK(await(process, &result) == 1);
    CHECK(carrel_run_result_reason(result) == CARREL_TIMEOUT);
    carrel_run_result_free(result);
    carrel_process_free(process);

    options.timeout_ms = 0;
    CHECK(carrel_process_start(sandbox, &options, &process, &err) == 0);
    CHECK(carrel_process_signal(process, SIGUSR1, &err) == 0);
    CHECK(await(process, &result) == 1);
    CHECK(carrel_run_result_status(result) == 128 + SIGUSR1);
    carrel_run_result_free(result);
    carrel_process_free(process);

    CHECK(carrel_process_start(sandbox, &options, &process, &err) == 0);
    carrel_process_free(process); /* ends it */
    for (int i = 0; i < 100 && !is_idle(sandbox); i++)
        (void)usleep(50000);
    CHECK(is_idle(sandbox));
    options.timeout_ms = 200; /* the keeper ends it, although the caller does not look */
    CHECK(carrel_process_start(sandbox, &options, &process, &err) == 0);
    for (int i = 0; i < 200 && !is_idle(sandbox); i++)
        (void)usleep(50000);
    CHECK(is_idle(sandbox));
    CHECK(carrel_process_result(process, &result, &err) == 1);
    CHECK(carrel_run_result_reason(result) == CARREL_TIMEOUT);
    carrel_run_result_free(result);
    carrel_process_free(process);
    options.timeout_ms = 0;
    static const char *const missing[] = { "/no/such/program", NULL };
    options.argv = missing;
    CHECK(carrel_process_start(sandbox, &options, &process, &err) == -ENOENT);
    CHECK(err.origin == CARREL_FROM_PROGRAM && strcmp(err.reason, "not_found") == 0);
}

struct forks {
    char ids[2][64];
    int n, failed;
};

static void take_fork(
        const char *id, int receipt, const struct carrel_error *failure, void *context)
{
    struct forks *forks = context;

    if (failure) {
        forks->failed++;
        return;
    }
    if (forks->n == 0)
        carrel_sandbox_received(receipt);
    else
        (void)close(receipt); /* not delivered: it is destroyed */
    (void)snprintf(forks->ids[forks->n++], sizeof(forks->ids[0]), "%s", id);
}

static int find_snapshot(const struct carrel_snapshot_info *info, void *context)
{
    if (strcmp(info->name, "library-snapshot") == 0)
        *(bool *)context = true;
    return 0;
}

static bool is_gone(const char *word)
{
    for (int i = 0; i < 200; i++) {
        struct carrel_sandbox *sandbox = NULL;
        if (carrel_sandbox_open(word, &sandbox, &err) < 0)
            return true;
        carrel_sandbox_free(sandbox);
        (void)usleep(50000);
    }
    return false;
}

static void test_forks(struct carrel_sandbox *sandbox)
{
    struct carrel_fork_options options = CARREL_FORK_OPTIONS_INIT;
    struct carrel_sandbox *other = NULL;
    struct forks forks = { .n = 0 };
    bool is_copied;
    bool is_found = false;

    CHECK(says(sandbox, "echo first > ~/f", ""));
    CHECK(carrel_sandbox_snapshot(sandbox, "library-snapshot", &is_copied, &err) == 0);
    CHECK(carrel_sandbox_snapshot(sandbox, "library-snapshot", NULL, &err) == -EEXIST);
    CHECK(strcmp(err.reason, "exists") == 0);
    CHECK(carrel_snapshot_each(find_snapshot, &is_found, &err) == 0 && is_found);
    other = create(NULL, "library-snapshot");
    CHECK(says(other, "cat ~/f", "first\n"));
    CHECK(carrel_sandbox_destroy(other, NULL, &err) == 0);
    CHECK(!says(other, "true", "") && strcmp(err.reason, "ended") == 0);
    carrel_sandbox_free(other);
    CHECK(carrel_snapshot_remove("library-snapshot", &err) == 0);
    CHECK(carrel_snapshot_remove("library-snapshot", &err) == -ENOENT);

    options.n = 2;
    options.ready = take_fork;
    options.context = &forks;
    CHECK(carrel_sandbox_fork(sandbox, &options, &err) == 0);
    CHECK(forks.n == 2 && forks.failed == 0);
    CHECK(carrel_sandbox_open(forks.ids[0], &other, &err) == 0);
    CHECK(says(other, "cat ~/f", "first\n"));
    carrel_sandbox_free(other);
    CHECK(is_gone(forks.ids[1]));
    const char *const words[] = { forks.ids[0], "library-none", NULL };
    struct carrel_destroy_options end = CARREL_DESTROY_OPTIONS_INIT;
    CHECK(carrel_sandbox_destroy_all(NULL, NULL, &err) == -EINVAL); /* which ones? */
    CHECK(carrel_sandbox_destroy_all(&end, NULL, &err) == -EINVAL);
    end.words = words;
    CHECK(carrel_sandbox_destroy_all(&end, NULL, &err) == -ENOENT);
    CHECK(is_gone(forks.ids[0]));
}

static void test_receipt(void)
{
    struct carrel_sandbox_options options = CARREL_SANDBOX_OPTIONS_INIT;
    struct carrel_sandbox *sandbox = NULL;
    char id[64];
    int receipt = -1;

    options.receipt = &receipt;
    CHECK(carrel_sandbox_create(&options, &sandbox, &err) == 0 && receipt >= 0);
    (void)snprintf(id, sizeof(id), "%s", carrel_sandbox_id(sandbox));
    carrel_sandbox_free(sandbox);
    (void)close(receipt);
    CHECK(is_gone(id));
}

static bool is_done(struct carrel_task *task)
{
    struct pollfd end = { .fd = carrel_task_fd(task), .events = POLLIN };

    return poll(&end, 1, 60000) == 1;
}

struct listing {
    struct carrel_sandbox *sandbox;
    char *json;
};

static int list_processes(void *context, struct carrel_error *why)
{
    struct listing *listing = context;

    return carrel_sandbox_processes(listing->sandbox, &listing->json, why);
}

static int say_busy(void *context, struct carrel_error *why)
{
    (void)context;
    (void)snprintf(why->message, sizeof(why->message), "it is busy");
    return -EBUSY;
}

/* Calls that have no form of their own. */
static void test_task_call(struct carrel_sandbox *sandbox)
{
    struct listing listing = { .sandbox = sandbox };
    struct carrel_task *task = NULL;

    CHECK(carrel_task_call(list_processes, &listing, &task, &err) == 0);
    CHECK(is_done(task));
    CHECK(carrel_task_finish(task, NULL, NULL, &err) == 0);
    CHECK(listing.json && strstr(listing.json, "\"processes\":["));
    carrel_free(listing.json);
    CHECK(carrel_task_call(say_busy, NULL, &task, &err) == 0);
    CHECK(carrel_task_finish(task, NULL, NULL, &err) == -EBUSY);
    CHECK(strcmp(err.message, "it is busy") == 0);
    CHECK(carrel_task_call(NULL, NULL, &task, &err) == -EINVAL);
}

static void test_tasks(void)
{
    static const char *const argv[] = { "echo", "hello", NULL };
    static const char *const sleeper[] = { "sleep", "60", NULL };
    struct carrel_run_options options = CARREL_RUN_OPTIONS_INIT;
    struct carrel_sandbox_options made = CARREL_SANDBOX_OPTIONS_INIT;
    struct carrel_task *tasks[3] = { NULL };
    struct carrel_run_result *result = NULL;
    struct carrel_sandbox *sandbox = NULL;
    size_t len;

    options.argv = argv;
    CHECK(carrel_run_start(&options, &tasks[0], &err) == 0);
    CHECK(carrel_sandbox_create_start(&made, &tasks[1], &err) == 0);
    CHECK(is_done(tasks[0]) && is_done(tasks[1]));
    CHECK(carrel_task_finish(tasks[0], &result, NULL, &err) == 0);
    CHECK(strcmp(carrel_run_result_stdout(result, &len), "hello\n") == 0);
    carrel_run_result_free(result);
    CHECK(carrel_task_finish(tasks[1], NULL, &sandbox, &err) == 0);
    CHECK(carrel_sandbox_exec_start(sandbox, &options, &tasks[0], &err) == 0);
    CHECK(carrel_task_finish(tasks[0], &result, NULL, &err) == 0);
    CHECK(strcmp(carrel_run_result_stdout(result, &len), "hello\n") == 0);
    carrel_run_result_free(result);

    struct carrel_run_options slow = CARREL_RUN_OPTIONS_INIT;
    slow.argv = sleeper;
    CHECK(carrel_run_start(&slow, &tasks[0], &err) == 0);
    carrel_task_cancel(tasks[0]);
    CHECK(is_done(tasks[0]));
    CHECK(carrel_task_finish(tasks[0], &result, NULL, &err) == 0);
    CHECK(carrel_run_result_reason(result) == CARREL_CANCELLED);
    carrel_run_result_free(result);
    CHECK(carrel_sandbox_exec_start(sandbox, &slow, &tasks[0], &err) == 0);
    CHECK(carrel_sandbox_exec_start(sandbox, &slow, &tasks[1], &err) == -EBUSY);
    carrel_task_free(tasks[0]);
    options.timeout_ms = 1;
    options.memory_bytes = 1;
    CHECK(carrel_run_start(&options, &tasks[0], &err) == 0);
    CHECK(carrel_task_finish(tasks[0], &result, NULL, &err) < 0);
    CHECK(err.message[0]);
    CHECK(carrel_sandbox_destroy_start(sandbox, &tasks[0], &err) == 0);
    CHECK(carrel_task_finish(tasks[0], NULL, NULL, &err) == 0);
    carrel_sandbox_free(sandbox);
}

static void count_fork(
        const char *id, int receipt, const struct carrel_error *failure, void *context)
{
    (void)id;
    CHECK(!failure);
    if (receipt >= 0)
        (void)close(receipt); /* it is not wanted: it is destroyed */
    ++*(int *)context;
}

static void test_more_tasks(struct carrel_sandbox *sandbox)
{
    struct carrel_python_options python = CARREL_PYTHON_OPTIONS_INIT;
    struct carrel_fork_options forks = CARREL_FORK_OPTIONS_INIT;
    struct carrel_run_result *result = NULL;
    struct carrel_task *tasks[3] = { NULL };
    int n = 0;

    python.code = "result = 6 * 7";
    python.code_len = strlen(python.code);
    forks.n = 2;
    forks.ready = count_fork;
    forks.context = &n;
    CHECK(carrel_python_start(&python, &tasks[0], &err) == 0);
    CHECK(carrel_sandbox_snapshot_start(sandbox, "library-task", &tasks[1], &err) == 0);
    CHECK(carrel_sandbox_fork_start(sandbox, &forks, &tasks[2], &err) == -EBUSY);
    CHECK(is_done(tasks[0]) && is_done(tasks[1]));
    CHECK(carrel_task_finish(tasks[0], &result, NULL, &err) == 0);
    CHECK(strstr(carrel_run_result_json(result), "42"));
    carrel_run_result_free(result);
    CHECK(carrel_task_finish(tasks[1], NULL, NULL, &err) == 0);
    CHECK(carrel_snapshot_remove("library-task", &err) == 0);
    CHECK(carrel_sandbox_fork_start(sandbox, &forks, &tasks[2], &err) == 0);
    CHECK(is_done(tasks[2]));
    CHECK(carrel_task_finish(tasks[2], NULL, NULL, &err) == 0 && n == 2);
}

static atomic_bool may_fork = true;

/* Processes that have copies of all descriptors, and do not exec. */
static void *fork_many(void *arg)
{
    pid_t *pids = arg;

    for (int i = 0; i < FORKS && may_fork; i++) {
        pids[i] = fork();
        if (pids[i] == 0) {
            (void)pause();
            _exit(0);
        }
        (void)usleep(500);
    }
    return NULL;
}

/* Nothing waits for what those processes hold: the calls return while they live. */
static void test_forks_of_the_caller(struct carrel_sandbox *sandbox)
{
    static const char *const argv[] = { "sleep", "60", NULL };
    static pid_t pids[FORKS];
    struct carrel_run_options options = CARREL_RUN_OPTIONS_INIT;
    struct carrel_process *process = NULL;
    pthread_t thread;

    options.argv = argv;
    CHECK(carrel_process_start(sandbox, &options, &process, &err) == 0);
    CHECK(pthread_create(&thread, NULL, fork_many, pids) == 0);
    for (int i = 0; i < 10; i++) {
        const char *const line[] = { "sh", "-c", "exit 4", NULL };
        struct carrel_run_options quick = CARREL_RUN_OPTIONS_INIT;
        struct carrel_run_result *result = NULL;
        quick.argv = line;
        CHECK(carrel_run(&quick, &result, &err) == 0);
        CHECK(carrel_run_result_status(result) == 4);
        carrel_run_result_free(result);
    }
    may_fork = false;
    (void)pthread_join(thread, NULL);
    carrel_process_free(process);
    for (int i = 0; i < 200 && !is_idle(sandbox); i++)
        (void)usleep(50000);
    CHECK(is_idle(sandbox));
    for (int i = 0; i < FORKS && pids[i] > 0; i++) {
        (void)kill(pids[i], SIGKILL);
        (void)waitpid(pids[i], NULL, 0);
    }
}

static void test_requests(void)
{
    static const char text[] = "{\"version\":1,\"run\":{\"argv\":[\"echo\",\"bytes\"],"
                               "\"workspace\":{\"repo\":\"/src\"}},"
                               "\"sandbox\":{\"name\":\"desk\"}}";
    static const char typo[] = "{\"version\":1,\"run\":{\"memroy_bytes\":1}}";
    static const char other[] = "{\"version\":2}";
    static const char forged[] = "{\"version\":1,\"layers\":{\"locks\":[\"3\"]}}";
    struct carrel_request *request = NULL;
    struct carrel_run_result *result = NULL;
    char *json = NULL;
    size_t len;

    CHECK(carrel_request_parse(text, strlen(text), &request, &err) == 0);
    const struct carrel_sandbox_options *sandbox = carrel_request_sandbox(request);
    struct carrel_run_options run = *carrel_request_run(request);
    CHECK(strcmp(sandbox->name, "desk") == 0 && sandbox->run == carrel_request_run(request));
    CHECK(strcmp(run.workspace->repo, "/src") == 0 && run.stdin_fd == -1);
    CHECK(carrel_request_json(&run, sandbox, &json, &err) == 0 && strcmp(json, text) == 0);
    carrel_free(json);
    run.workspace = NULL;
    CHECK(carrel_run(&run, &result, &err) == 0);
    CHECK(strcmp(carrel_run_result_stdout(result, &len), "bytes\n") == 0);
    carrel_run_result_free(result);
    carrel_request_free(request);
    CHECK(carrel_request_parse(typo, strlen(typo), &request, &err) == -EINVAL);
    CHECK(strstr(err.message, "memroy"));
    CHECK(carrel_request_parse(other, strlen(other), &request, &err) == -EPROTO);
    CHECK(carrel_request_parse(forged, strlen(forged), &request, &err) == -EINVAL);
}

static void test_results(void)
{
    static const char *const argv[] = { "/no/such/program", NULL };
    struct carrel_run_options options = CARREL_RUN_OPTIONS_INIT;
    struct carrel_run_result *result = NULL;
    char *text = NULL;

    options.argv = argv;
    CHECK(carrel_run(&options, &result, &err) == -ENOENT);
    CHECK(err.origin == CARREL_FROM_PROGRAM);
    CHECK(carrel_run_result_from_error(&err, 0, &result, NULL) == 0);
    CHECK(strstr(carrel_run_result_json(result),
            "\"failure\":{\"reason\":\"not_found\",\"origin\":\"program\"}"));
    CHECK(carrel_run_result_text(result, &text, &err) == 0 && strstr(text, "not found"));
    CHECK(carrel_run_result_output_error(result) == 0);
    carrel_free(text);
    carrel_run_result_free(result);
    CHECK(strcmp(carrel_reason_name(CARREL_TIMEOUT), "timeout") == 0);
    CHECK(carrel_version()[0]);
    CHECK(strcmp(carrel_origin_name(CARREL_FROM_PROGRAM), "program") == 0);
    CHECK(carrel_python_check_inputs("[1]", 3, "x.json", &err) == -EINVAL);
}

int main(void)
{
    char *summary = NULL;
    struct carrel_sandbox *sandbox = create("library-one", NULL);

    CHECK(says(sandbox, "echo hello", "hello\n"));
    CHECK(carrel_sandbox_note(sandbox)[0] == '\0' || geteuid() != 0);
    test_finding(sandbox);
    test_exec_refuses(sandbox);
    test_itself(sandbox);
    test_detached(sandbox);
    test_process(sandbox);
    test_process_time(sandbox);
    test_forks(sandbox);
    test_receipt();
    test_tasks();
    test_more_tasks(sandbox);
    test_task_call(sandbox);
    test_forks_of_the_caller(sandbox);
    test_requests();
    test_results();
    CHECK(carrel_sandbox_destroy(sandbox, &summary, &err) == 0 && summary);
    carrel_free(summary);
    carrel_sandbox_free(sandbox);
    (void)printf("%d failures\n", failures);
    return failures > 0;
}
