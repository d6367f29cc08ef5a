/*
 * A keeper whose runtime fails, once in each call that it makes while a client uses all of it.
 * The keeper is a fork of the test, so that it has the runtime `fake`, over `local`: a living
 * sandbox needs layers.
 *
 * Whatever fails, the client gets an answer, the keeper ends when it is told to or has lost its
 * sandbox, the journal is sealed, and no process and no entry of the registry is left.
 */
#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/payload.h"
#include "core/keeper/keeper.h"
#include "core/keeper/launch.h"
#include "core/keeper/start.h"
#include "core/keeper/wire.h"
#include "core/request/request.h"
#include "harness.h"
#include "only_journal.h"
#include "registry/registry.h"
#include "runtime/fake/fake.h"
#include <carrel/sandbox.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define PATIENCE_NS (UINT64_C(20) * 1000000000)

/* A sandbox, and what the client was told. */
struct life {
    char state[64];
    char what[200]; /* for messages */
    char id[NAME_ID_MAX + 1];
    int receipt;
    int sock;
    int events;
    bool was_lost;             /* a program's end was not known */
    struct carrel_error first; /* failure; code 0: none */
};

/* What this machine cannot do, such as changing a limit, is not a fault's. */
static void note(struct life *life, const struct carrel_error *err)
{
    if (life->first.code == 0 && err->code != -ENOTSUP)
        life->first = *err;
}

/* The keeper, a child of this process when its own parent has exited. */
static void launch(const struct buf *request, int report)
{
    int file = memfd_create("request", MFD_CLOEXEC);

    CHECK(file >= 0);
    CHECK_EQ(fd_write_all(file, request->data, request->len), 0);
    CHECK_EQ(lseek(file, 0, SEEK_SET), 0);
    CHECK_EQ(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        int spare[2] = { fcntl(file, F_DUPFD_CLOEXEC, 10), fcntl(report, F_DUPFD_CLOEXEC, 10) };
        (void)dup2(spare[0], KEEPER_REQUEST_FD);
        (void)dup2(spare[1], KEEPER_REPORT_FD);
        const int keep[] = { 0, 1, 2, KEEPER_REQUEST_FD, KEEPER_REPORT_FD };
        fd_close_all_but(keep, ARRAY_LEN(keep));
        (void)setsid();
        _exit(keeper_execute());
    }
    CHECK_EQ(waitpid(pid, NULL, 0), pid);
    fd_close(file);
}

static int create(struct life *life)
{
    struct carrel_run_options run = CARREL_RUN_OPTIONS_INIT;
    struct carrel_sandbox_options options = CARREL_SANDBOX_OPTIONS_INIT;
    AUTO(buf_finish) struct buf request = BUF_INIT(REQUEST_MAX);
    struct keeper_ready ready = { 0 };
    int ends[2];

    run.runtime = "fake";
    run.policy = "none";
    options.run = &run;
    CHECK_EQ(request_write(&run, &options, NULL, &request, &life->first), 0);
    CHECK_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
    launch(&request, ends[1]);
    fd_close(ends[1]);
    int r = keeper_receive_ready(ends[0], &ready, &life->receipt);
    fd_close(ends[0]);
    if (r < 0)
        test_fail(__FILE__, __LINE__, "%s: the keeper reported nothing", life->what);
    memcpy(life->id, ready.id, sizeof(life->id));
    if (ready.error.code < 0)
        note(life, &ready.error);
    return ready.error.code;
}

/* Sends a request and takes its answer, whatever it is. */
static void ask(struct life *life, struct keeper_message *message, const int *given, size_t n)
{
    int fds[KEEPER_MAX_FDS];
    const uint32_t kind = message->kind;
    struct carrel_error err = { 0 };

    if (life->sock < 0)
        return;
    int r = keeper_send(life->sock, message, given, n, 0);
    if (r == 0)
        r = keeper_receive(life->sock, message, fds, 0);
    for (int i = 0; i < r; i++)
        fd_close(fds[i]);
    if (r < 0) {
        if (r != -EPIPE && r != -ECONNRESET)
            test_fail(__FILE__, __LINE__, "%s: request %u: %s", life->what, kind, strerror(-r));
        fd_close(fd_steal(&life->sock)); /* the keeper has ended */
        life->was_lost = true;
    } else if (message->kind == KEEPER_FAILED) {
        if (message->error.code >= 0 || !message->error.message[0])
            test_fail(__FILE__, __LINE__, "%s: request %u: no reason", life->what, kind);
        err = message->error;
        note(life, &err);
    }
}

static void ask_plain(struct life *life, enum keeper_kind kind)
{
    struct keeper_message message = { .kind = kind };

    ask(life, &message, NULL, 0);
}

static int connect_to(struct life *life)
{
    AUTO(registry_close) struct registry reg = REGISTRY_NONE;
    struct registry_entry *entry = NULL;
    struct keeper_message hello = { .kind = KEEPER_HELLO, .value = KEEPER_VERSION };
    struct carrel_error err = { 0 };
    int ends[2];

    CHECK_EQ(registry_open(&reg, &err), 0);
    int r = registry_find(&reg, life->id, &entry, &err);
    if (r == 0)
        life->sock = registry_connect(entry, 10000, &err);
    registry_entry_free(entry);
    if (r < 0 || life->sock < 0)
        return -ESRCH;
    CHECK_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
    life->events = ends[0];
    ask(life, &hello, &ends[1], 1);
    fd_close(ends[1]);
    return 0;
}

/* A program that exits, or one that is ended for its time; or the keeper ends meanwhile. */
static void exec(struct life *life, const char *line, uint64_t timeout_ms)
{
    const enum carrel_reason expected = timeout_ms ? CARREL_TIMEOUT : CARREL_EXITED;

    struct carrel_sandbox *sandbox = NULL;
    const char *const argv[] = { "sh", "-c", line, NULL };
    struct carrel_run_options options = CARREL_RUN_OPTIONS_INIT;
    struct carrel_run_result *result = NULL;
    struct carrel_error err = { 0 };

    options.argv = argv;
    options.timeout_ms = timeout_ms;
    int r = carrel_sandbox_open(life->id, &sandbox, &err);
    if (r == 0)
        r = carrel_sandbox_exec(sandbox, &options, &result, &err);
    if (r < 0)
        note(life, &err);
    else if (carrel_run_result_reason(result) == CARREL_INFRASTRUCTURE)
        life->was_lost = true;
    else if (carrel_run_result_reason(result) != expected)
        test_fail(__FILE__, __LINE__, "%s: %s", life->what, carrel_run_result_json(result));
    carrel_run_result_free(result);
    carrel_sandbox_free(sandbox);
}

static void use(struct life *life)
{
    struct keeper_message renew = { .kind = KEEPER_RENEW, .lease_ms = 3600000 };
    struct keeper_message update = { .kind = KEEPER_UPDATE };
    struct keeper_message file = { .kind = KEEPER_FILE, .file = FILE_REQUEST_INIT };
    const char *const other[] = { NULL };
    int payload = -1;

    exec(life, "echo out", 0);
    ask_plain(life, KEEPER_PROCESSES);
    ask_plain(life, KEEPER_INSPECT);
    ask_plain(life, KEEPER_PAUSE);
    ask_plain(life, KEEPER_RESUME);
    ask(life, &renew, NULL, 0);
    update.limit[LIMIT_PIDS] = 200;
    ask(life, &update, NULL, 0);
    file.file.op = FILE_STAT;
    CHECK_EQ(payload_make_near(".", other, NULL, &file.payload, &payload, NULL), 0);
    ask(life, &file, NULL, 0);
    exec(life, "trap '' TERM; while :; do sleep 1; done", 50);
    exec(life, "echo again", 0);
    ask_plain(life, KEEPER_DESTROY);
}

/* Every process that the keeper left becomes a child of this one. */
static void check_nothing_left(const struct life *life)
{
    AUTO(registry_close) struct registry reg = REGISTRY_NONE;
    const uint64_t deadline = clock_ns() + PATIENCE_NS;
    struct registry_entry *entry = NULL;
    struct carrel_error err = { 0 };
    pid_t pid;

    while ((pid = waitpid(-1, NULL, __WALL | WNOHANG)) >= 0) {
        if (pid == 0 && clock_ns() > deadline)
            test_fail(__FILE__, __LINE__, "%s: a process is left", life->what);
        if (pid == 0)
            (void)usleep(1000); /* two kinds of children, and no event for both */
    }
    CHECK_EQ(errno, ECHILD);
    CHECK_EQ(registry_open(&reg, &err), 0);
    if (registry_find(&reg, life->id, &entry, &err) == 0)
        test_fail(__FILE__, __LINE__, "%s: its entry is left", life->what);
}

/* A life from creation to end, with a fault or without. */
static void live(struct life *life, const char *what, const struct fake_fault *fault)
{
    *life = (struct life){ .receipt = -1, .sock = -1, .events = -1 };
    (void)snprintf(life->what, sizeof(life->what), "%s", what);
    (void)snprintf(life->state, sizeof(life->state), "/tmp/keeper-test-XXXXXX");
    CHECK(test_mkdtemp(life->state));
    CHECK_EQ(setenv("XDG_STATE_HOME", life->state, 1), 0);
    fake_inject(fault);
    if (create(life) == 0 && connect_to(life) == 0) {
        (void)send(life->receipt, "", 1, MSG_NOSIGNAL);
        use(life);
    }
    fd_close(life->sock);
    fd_close(life->events);
    fd_close(life->receipt);
    check_nothing_left(life);
}

static void begin(void)
{
    struct runtime *local = NULL;
    AUTO(sandbox_free) struct sandbox *box = NULL;
    const struct sandbox_spec spec = {
        .id = "probe",
        .limits.value = { 256U << 20, 64, 1000, 64U << 20, 200 },
    };
    struct carrel_error err = { 0 };

    CHECK_EQ(runtime_find("local", &local, &err), 0);
    int r = sandbox_create(local, &spec, &box, &err);
    if (r == -ENOTSUP)
        SKIP("%s", err.message);
    CHECK_STR(r < 0 ? err.message : "", "");
    fake_wrap("local");
}

/* What a client must see of a fault. */
static void check_seen(const struct life *life, const struct fake_fault *fault)
{
    static const enum fake_op answered[] = { FAKE_CREATE, FAKE_READY, FAKE_START, FAKE_STOP,
        FAKE_FILE, FAKE_PS, FAKE_PAUSE, FAKE_RESUME, FAKE_SET_LEASE, FAKE_UPDATE };
    static const enum fake_op ending[] = { FAKE_CREATE, FAKE_READY, FAKE_NEXT_EVENT,
        FAKE_STOP };
    char expected[64];
    bool is_end = fault->kind == FAULT_LOST || (fault->op == FAKE_SET_LEASE && fault->nth == 1);

    for (size_t i = 0; i < ARRAY_LEN(ending); i++)
        is_end = is_end || fault->op == ending[i];
    only_journal_check(life->state, life->what, is_end ? "infrastructure" : "exited");
    (void)snprintf(expected, sizeof(expected), "runtime fake: %s", fake_op_name(fault->op));
    for (size_t i = 0; i < ARRAY_LEN(answered); i++)
        if (fault->op == answered[i] &&
                (life->first.code != -EIO || !strstr(life->first.message, expected)))
            test_fail(__FILE__, __LINE__, "%s: the answer is %d: %s", life->what,
                    life->first.code, life->first.message);
    if (is_end && life->first.code == 0 && !life->was_lost)
        test_fail(__FILE__, __LINE__, "%s: the client saw nothing of it", life->what);
    if (!is_end && life->was_lost)
        test_fail(__FILE__, __LINE__, "%s: the keeper has ended", life->what);
}

static void fail_each(enum fault_kind kind)
{
    static const char *const kinds[] = { "before its effect", "after its effect",
        "with the connection" };
    unsigned calls[FAKE_OP_COUNT];
    struct life life;
    char what[160];

    begin();
    live(&life, "without a fault", NULL);
    only_journal_check(life.state, life.what, "exited");
    CHECK_STR(life.first.message, "");
    for (enum fake_op op = 0; op < FAKE_OP_COUNT; op++)
        calls[op] = fake_calls(op);
    for (enum fake_op op = 0; op < FAKE_OP_COUNT; op++)
        for (unsigned nth = 1; nth <= calls[op]; nth++) {
            const struct fake_fault fault = { op, nth, kind, -EIO };
            (void)snprintf(what, sizeof(what), "call %u of %s fails %s", nth, fake_op_name(op),
                    kinds[kind]);
            live(&life, what, &fault);
            if (fake_calls(op) >= nth)
                check_seen(&life, &fault);
        }
}

TEST(a_call_that_fails_without_effect_is_answered_and_leaves_nothing)
{
    fail_each(FAULT_BEFORE);
}

TEST(a_call_whose_answer_is_lost_is_answered_and_leaves_nothing)
{
    fail_each(FAULT_AFTER);
}

TEST(a_connection_that_is_lost_ends_the_keeper_and_leaves_nothing)
{
    fail_each(FAULT_LOST);
}
