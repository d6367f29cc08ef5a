/*
 * process.c - the processes that clients started.
 *
 * A process belongs to the client that started it, and ends with it, unless it was detached
 * (detached.c).
 */
#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/payload.h"
#include "base/str.h"
#include "core/keeper/keeper.h"
#include "core/keeper/wire.h"
#include "core/request/hint.h"
#include "core/request/image_root.h"
#include "core/request/spec.h"
#include "core/run/run.h"
#include "registry/registry.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define NS_PER_MS UINT64_C(1000000)
#define GRACE_MS 500
#define LATE_MS 2000 /* that a client may be late to end its program */

void keeper_process_free(struct keeper_process *process)
{
    keeper_source_free(process->sources[0]);
    keeper_source_free(process->sources[1]);
    process_close(process->streams);
    capture_finish(&process->kept[0]);
    capture_finish(&process->kept[1]);
    free(process->program);
    *process = (struct keeper_process){ .client = -1 };
}

struct keeper_process *keeper_find_process(struct keeper *keeper, uint32_t number)
{
    for (size_t i = 0; number && i < keeper->n_processes; i++)
        if (keeper->processes[i].number == number)
            return &keeper->processes[i];
    return NULL;
}

static struct keeper_process *find_running(struct keeper *keeper, uint32_t id)
{
    for (size_t i = 0; i < keeper->n_processes; i++)
        if (keeper->processes[i].id == id && !keeper->processes[i].has_ended)
            return &keeper->processes[i];
    return NULL;
}

int keeper_signal(struct keeper *keeper, uint32_t number, int signal, struct carrel_error *err)
{
    const struct keeper_process *p = keeper_find_process(keeper, number);

    if (!p || p->has_ended) {
        (void)err_set(err, -ENOENT, "no process %u is running; 'carrel ps' shows them", number);
        return err_from(err, -ENOENT, CARREL_FROM_CALLER);
    }
    return sandbox_signal(keeper->session.box, p->id, signal, err);
}

static void terminate(struct keeper *keeper, struct keeper_process *p)
{
    const uint64_t now = clock_ns();

    p->deadline_ns = CLOCK_NEVER;
    if (p->is_ending)
        return;
    p->is_ending = true;
    p->is_over_time = now >= p->begun_ns + p->timeout_ms * NS_PER_MS;
    if (sandbox_terminate(keeper->session.box, p->id, GRACE_MS, NULL) < 0)
        (void)sandbox_signal(keeper->session.box, p->id, SIGKILL, NULL);
}

/* Requested by the client that started it: for its timeout, or for a signal to the client. */
void keeper_terminate(struct keeper *keeper, uint32_t number)
{
    struct keeper_process *p = keeper_find_process(keeper, number);

    if (p && !p->has_ended)
        terminate(keeper, p);
}

static struct keeper_process *add_process(struct keeper *keeper)
{
    if (keeper->n_processes == keeper->process_room) {
        size_t n = keeper->process_room ? 2 * keeper->process_room : 4;
        struct keeper_process *more = reallocarray(keeper->processes, n, sizeof(*more));
        if (!more)
            return NULL;
        keeper->processes = more;
        keeper->process_room = n;
    }
    return &keeper->processes[keeper->n_processes++];
}

/* A slot for one more. If all are used, that of the oldest ended process is taken. */
static struct keeper_process *find_free(struct keeper *keeper)
{
    struct keeper_process *oldest = NULL;
    struct keeper_process *unused = NULL;
    size_t n_ended = 0;

    for (size_t i = 0; i < keeper->n_processes; i++) {
        struct keeper_process *p = &keeper->processes[i];
        if (!p->number) {
            unused = p;
        } else if (p->has_ended && p->client < 0) {
            n_ended++;
            if (!oldest || p->ended_ns < oldest->ended_ns)
                oldest = p;
        }
    }
    if (n_ended < KEEPER_MAX_ENDED && unused)
        return unused;
    if (n_ended < KEEPER_MAX_ENDED && keeper->n_processes < KEEPER_MAX_PROCESSES)
        return add_process(keeper);
    if (oldest)
        keeper_process_free(oldest);
    return oldest;
}

unsigned keeper_count_running(const struct keeper *keeper)
{
    unsigned n = 0;

    for (size_t i = 0; i < keeper->n_processes; i++)
        n += keeper->processes[i].number && !keeper->processes[i].has_ended;
    return n;
}

/* The lists joined; NULL: out of memory. */
static const char **join_lists(const char *const *const *parts, size_t n_parts)
{
    size_t n = 0;

    for (size_t i = 0; i < n_parts; i++)
        for (size_t j = 0; parts[i] && parts[i][j]; j++)
            n++;
    const char **all = calloc(n + 1, sizeof(*all));
    for (size_t i = 0, at = 0; all && i < n_parts; i++)
        for (size_t j = 0; parts[i] && parts[i][j]; j++)
            all[at++] = parts[i][j];
    return all;
}

/* The image's variables are not part of a request: the policy does not restrict them. */
static int precede(
        struct permit *permit, const struct image_root *root, struct carrel_error *err)
{
    const char *const *const parts[] = { root->own, permit->options.env };
    const char **all = join_lists(parts, ARRAY_LEN(parts));

    if (!all)
        return err_set_errno(err, -ENOMEM, "environment");
    free(permit->env);
    permit->env = all;
    permit->options.env = all;
    return 0;
}

/* The options of the sandbox with those of this program. */
static int permit_start(struct keeper *keeper, const struct keeper_message *request,
        const struct payload *payload, struct permit *permit, const char ***env,
        struct carrel_error *err)
{
    const struct run_request *made = keeper->session.request;
    const struct image_root *root = keeper->session.root;
    struct carrel_run_options options = *made->options;
    const char *const *const parts[] = {
        options.env, /* a later one replaces an earlier one */
        (const char *const *)payload->env,
    };

    options.env = *env = join_lists(parts, ARRAY_LEN(parts));
    if (!options.env)
        return err_set_errno(err, -ENOMEM, "environment");
    options.cwd = keeper->session.options->cwd;
    options.image = NULL; /* it is the root already */
    options.argv = (const char *const *)payload->argv;
    if (payload->text[0])
        options.cwd = payload->text;
    if (request->timeout_ms)
        options.timeout_ms = request->timeout_ms;
    int r = permit_make(&options, made->policy, (const char *const *)environ, permit, err);
    return r == 0 && root ? precede(permit, root, err) : r;
}

static int answer_started(struct keeper *keeper, size_t client,
        const struct keeper_process *process, const struct process *streams,
        uint64_t timeout_ms)
{
    struct keeper_message answer = {
        .kind = KEEPER_DONE,
        .process = process->number,
        .flags = streams->stdin_fd >= 0 ? KEEPER_STDIN : 0,
        .timeout_ms = timeout_ms,
    };
    int fds[3 + PROCESS_EXTRA];
    size_t n = 0;

    if (process->is_detached) {
        answer.flags |= KEEPER_DETACH;
    } else {
        if (streams->stdin_fd >= 0)
            fds[n++] = streams->stdin_fd;
        fds[n++] = streams->stdout_fd;
        if (streams->stderr_fd >= 0)
            fds[n++] = streams->stderr_fd;
        for (size_t i = 0; i < PROCESS_EXTRA && streams->extra_fds[i] >= 0; i++)
            fds[n++] = streams->extra_fds[i];
    }
    return keeper_send(keeper->clients[client].sock, &answer, fds, n, MSG_DONTWAIT);
}

/* Reading must never block, in the keeper or in a client. */
static int keep_streams(struct keeper_process *process, struct carrel_error *err)
{
    const int fds[] = { process->streams.stdin_fd, process->streams.stdout_fd,
        process->streams.stderr_fd };

    for (size_t i = 0; i < ARRAY_LEN(fds); i++) {
        int r = fds[i] < 0 ? 0 : fd_set_nonblocking(fds[i]);
        if (r < 0)
            return err_set_errno(err, r, "streams");
    }
    for (int i = 0; process->is_detached && i < 2; i++)
        if (capture_init(&process->kept[i], KEEPER_KEPT_BYTES, NULL, 0) < 0)
            return err_set_errno(err, -ENOMEM, "output of a detached process");
    return 0;
}

static int launch(struct keeper *keeper, struct keeper_process *process,
        const struct keeper_message *request, const struct carrel_run_options *options,
        struct carrel_error *err)
{
    AUTO(environment_free) char **env = NULL;
    bool has_tty = request->flags & KEEPER_TTY;

    int r = environment_make(keeper->session.box, options->env, has_tty, &env, err);
    if (r < 0)
        return r;
    const struct process_spec spec = {
        .argv = options->argv,
        .env = (const char *const *)env,
        .cwd = options->cwd,
        .has_stdin = request->flags & KEEPER_STDIN,
        .has_tty = has_tty,
        .rows = request->rows,
        .cols = request->cols,
        .n_extra = (unsigned)request->value,
        .has_user = request->flags & KEEPER_USER,
        .uid = request->uid,
        .gid = request->gid,
    };
    process->streams = PROCESS_INIT;
    r = sandbox_start(keeper->session.box, &spec, &process->streams, err);
    if (r == -ENOENT && !options->root && !keeper->session.root)
        return hint_missing_program(options->argv[0], err);
    if (r < 0)
        return r;
    process->id = process->streams.id;
    r = keep_streams(process, err);
    if (r < 0)
        (void)sandbox_signal(keeper->session.box, process->id, SIGKILL, NULL);
    return r;
}

static int start(struct keeper *keeper, size_t client, const struct keeper_message *request,
        const struct carrel_run_options *options, struct carrel_error *err)
{
    struct keeper_process *process = find_free(keeper);
    struct recorder *recorder = &keeper->session.recorder;
    uint64_t timeout_ms =
            options->timeout_ms ? options->timeout_ms : keeper->session.result->timeout_ms;
    struct sandbox_usage usage;

    if (!process)
        return err_set(err, -EAGAIN, "%d processes are running already", KEEPER_MAX_PROCESSES);
    *process = (struct keeper_process){
        .number = ++keeper->n_starts,
        .client = (int)client,
        .is_detached = request->flags & KEEPER_DETACH,
        .begun_ns = clock_ns(),
        .timeout_ms = timeout_ms,
        .deadline_ns = CLOCK_NEVER,
        .oom_kills = USAGE_UNKNOWN,
        .pids_refused = USAGE_UNKNOWN,
        .streams = PROCESS_INIT,
        .kept[0].file = -1,
        .kept[1].file = -1,
        .program = strdup(options->argv[0]),
    };
    /* Read before the start: on a busy machine the program can meet a limit before the keeper
     * runs again. */
    sandbox_refusals(keeper->session.box, &usage);
    process->oom_before = usage.oom_kills;
    process->pids_before = usage.pids_refused;
    int r = recorder_exec(recorder, process->number, options, process->is_detached, err);
    if (r == 0)
        r = launch(keeper, process, request, options, err);
    if (r < 0) {
        if (!recorder->is_failed)
            (void)recorder_exec_failed(recorder, process->number, err);
        keeper_process_free(process);
        return r;
    }
    int sent = answer_started(keeper, client, process, &process->streams, timeout_ms);
    /* The client ends it in time, unless the client is stopped or has exited. */
    const bool is_ours = process->is_detached || request->flags & KEEPER_ALONE;
    process->deadline_ns = clock_ns() + (timeout_ms + (is_ours ? 0 : LATE_MS)) * NS_PER_MS;
    if (process->is_detached) {
        process->client = -1;
    } else {
        process_close(process->streams);
        process->streams = PROCESS_INIT;
    }
    if (sent < 0)
        keeper_drop_client(keeper, client); /* else it would wait for ever */
    keeper->is_changed = true;
    disk_wake(&keeper->session.disk);
    return 0;
}

void keeper_kill_programs(struct keeper *keeper)
{
    (void)sandbox_signal(keeper->session.box, SANDBOX_ALL, SIGKILL, NULL);
    for (size_t i = 0; i < keeper->n_processes; i++)
        if (keeper->processes[i].number && !keeper->processes[i].has_ended)
            keeper->processes[i].is_over_disk = true;
}

int keeper_check_disk(struct keeper *keeper, struct carrel_error *err)
{
    char size[32];

    if (!disk_is_over(&keeper->session.disk))
        return 0;
    return err_set(err, -ENOSPC,
            "the disk limit of %s is reached; remove files with 'carrel rm %s:PATH' first",
            str_size(keeper->session.disk.max_bytes, size), keeper->entry->id);
}

int keeper_start(struct keeper *keeper, size_t client, struct keeper_message *request,
        const int *fds, int n_fds, struct carrel_error *err)
{
    struct payload payload = { 0 };
    AUTO(permit_finish) struct permit permit = { 0 };
    const char **env = NULL;

    int r = keeper_payload_read(request, &fds, &n_fds, 0, &payload, err);
    if (r < 0)
        return r;
    r = keeper_check_disk(keeper, err);
    if (r == 0 && (!payload.argv[0] || !payload.argv[0][0]))
        r = err_set(err, -EINVAL, "no program to run");
    if (r == 0 && request->flags & KEEPER_DETACH && request->value)
        r = err_set(err, -EINVAL, "a detached process has no streams beside the three");
    if (r == 0 && request->timeout_ms > KEEPER_MAX_MS)
        r = err_set(err, -EINVAL, "no such timeout");
    if (r == 0)
        r = permit_start(keeper, request, &payload, &permit, &env, err);
    if (r == 0)
        r = start(keeper, client, request, &permit.options, err);
    free(env);
    payload_unmap(&payload);
    return r;
}

/* --- the end of a process --- */

static void send_report(struct keeper *keeper, struct keeper_process *p)
{
    const struct keeper_message message = {
        .kind = KEEPER_EXITED,
        .process = p->number,
        .value = p->wait_status,
        .oom_kills = p->oom_kills,
        .pids_refused = p->pids_refused,
        .flags = (p->is_over_disk ? KEEPER_FULL : 0U) |
                 (p->is_over_time ? KEEPER_TIMED_OUT : 0U),
    };

    if (p->client < 0)
        return;
    int r = keeper_send(keeper->clients[p->client].events, &message, NULL, 0, MSG_DONTWAIT);
    p->is_reported = r != -EAGAIN; /* a client that has disconnected needs no report */
}

static bool is_done(const struct keeper_process *p)
{
    return p->number && p->has_ended && p->is_reported;
}

bool keeper_report(struct keeper *keeper)
{
    bool has_backlog = false;

    for (size_t i = 0; i < keeper->n_processes; i++) {
        struct keeper_process *p = &keeper->processes[i];
        if (!p->number || !p->has_ended || p->is_reported || p->client < 0)
            continue;
        send_report(keeper, p);
        if (is_done(p))
            keeper_process_free(p);
        else
            has_backlog = true;
    }
    return has_backlog;
}

static uint64_t since(uint64_t before, uint64_t now)
{
    return before == USAGE_UNKNOWN || now == USAGE_UNKNOWN ? USAGE_UNKNOWN : now - before;
}

/* The kernel's kills and refusals while it ran. They are counted per sandbox: of two programs
 * that ran at the same time both get them. */
static void account(struct keeper *keeper, struct keeper_process *p)
{
    struct sandbox_usage usage;

    sandbox_refusals(keeper->session.box, &usage);
    p->oom_kills = since(p->oom_before, usage.oom_kills);
    p->pids_refused = since(p->pids_before, usage.pids_refused);
}

int keeper_on_exit(
        struct keeper *keeper, const struct sandbox_event *event, struct carrel_error *err)
{
    struct keeper_process *p = find_running(keeper, event->process);

    if (!p)
        return 0;
    p->has_ended = true;
    p->wait_status = event->wait_status;
    p->ended_ns = clock_ns();
    p->deadline_ns = CLOCK_NEVER;
    keeper->is_changed = true;
    account(keeper, p);
    int r = recorder_exec_ended(&keeper->session.recorder, p->number, p->wait_status,
            (p->ended_ns - p->begun_ns) / NS_PER_MS, p->is_over_time, err);
    if (event->is_with_all) {
        p->is_reported = true; /* its client sees that the sandbox has ended */
    } else if (p->client >= 0) {
        send_report(keeper, p);
        if (is_done(p))
            keeper_process_free(p);
    } else if (p->is_detached) {
        keeper_drain(p, 0);
        keeper_drain(p, 1);
    } else {
        keeper_process_free(p);
    }
    return r;
}

void keeper_leave(struct keeper *keeper, size_t client)
{
    for (size_t i = 0; i < keeper->n_processes; i++) {
        struct keeper_process *p = &keeper->processes[i];
        if (!p->number || p->client != (int)client)
            continue;
        p->client = -1;
        if (p->has_ended && !p->is_detached)
            keeper_process_free(p);
        else if (!p->has_ended && !p->is_detached)
            (void)sandbox_signal(keeper->session.box, p->id, SIGKILL, NULL);
    }
}

uint64_t keeper_next_deadline(const struct keeper *keeper)
{
    uint64_t next = CLOCK_NEVER;

    for (size_t i = 0; i < keeper->n_processes; i++)
        if (keeper->processes[i].number && keeper->processes[i].deadline_ns < next)
            next = keeper->processes[i].deadline_ns;
    return next;
}

void keeper_enforce(struct keeper *keeper)
{
    uint64_t now = clock_ns();

    for (size_t i = 0; i < keeper->n_processes; i++) {
        struct keeper_process *p = &keeper->processes[i];
        if (!p->number || p->deadline_ns > now)
            continue;
        terminate(keeper, p);
    }
}
