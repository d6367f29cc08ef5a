/*
 * fake.c - each operation is a call of the runtime inside, between two places where it may
 * fail.
 *
 * Calls go through the front of the port, so the runtime inside is used as core would use it,
 * and a message has both names.
 */
#include "runtime/fake/fake.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "runtime/adapters.h"
#include "runtime/fake/ferry.h"
#include "runtime/fake/servers.h"
#include "runtime/file_stream.h"
#include "runtime/runtime.h"
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/stat.h>

#define READY_NS UINT64_C(2000000)

struct fake_sandbox {
    struct sandbox base;
    struct sandbox *inner;
    struct ferry ferry;
    struct servers servers;
    int bell; /* makes event_fd readable when the connection is lost */
    bool is_lost;
    uint64_t ready_ns;
};

/* What a test asked for, in memory that it shares with the processes that it forks. */
static struct fake {
    struct fake_fault fault; /* code 0: none */
    unsigned calls[FAKE_OP_COUNT];
} * shared;

static const char *inner_name = "process";
static struct runtime_ops fake_ops;

static struct fake *state(void)
{
    if (!shared)
        shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
                -1, 0);
    assert(shared != MAP_FAILED);
    return shared;
}

static struct fake_sandbox *fake_of(struct sandbox *box)
{
    assert(box->ops == &fake_ops);
    return container_of(box, struct fake_sandbox, base);
}

const char *fake_op_name(enum fake_op op)
{
    static const char names[][16] = {
        [FAKE_CREATE] = "create",
        [FAKE_READY] = "ready",
        [FAKE_START] = "start",
        [FAKE_NEXT_EVENT] = "next_event",
        [FAKE_SIGNAL] = "signal",
        [FAKE_TERMINATE] = "terminate",
        [FAKE_RESIZE] = "resize",
        [FAKE_STOP] = "stop",
        [FAKE_END] = "end",
        [FAKE_USAGE] = "usage",
        [FAKE_FILE] = "file",
        [FAKE_PS] = "ps",
        [FAKE_PAUSE] = "pause",
        [FAKE_RESUME] = "resume",
        [FAKE_SET_LEASE] = "set_lease",
        [FAKE_UPDATE] = "update",
        [FAKE_HEALTH] = "health",
        [FAKE_SWEEP] = "sweep",
    };

    assert(op < FAKE_OP_COUNT);
    return names[op];
}

void fake_inject(const struct fake_fault *fault)
{
    *state() = (struct fake){ 0 };
    if (fault)
        state()->fault = *fault;
}

unsigned fake_calls(enum fake_op op)
{
    return state()->calls[op];
}

void fake_wrap(const char *runtime)
{
    struct runtime *inner = NULL;

    int r = runtime_find(runtime, &inner, NULL);
    assert(r == 0);
    (void)r;
    inner_name = runtime;
    fake_ops.isolation = inner->ops->isolation;
    fake_ops.can = inner->ops->can & ~(unsigned)(CAN_HOST_PIDS | CAN_START_EARLY);
}

static bool is_due(enum fake_op op, enum fault_kind kind)
{
    const struct fake_fault *fault = &state()->fault;

    return fault->code < 0 && fault->op == op && fault->kind == kind &&
           (fault->nth == FAULT_EACH || fault->nth == state()->calls[op]);
}

static int fail(enum fake_op op, const char *how, struct carrel_error *err)
{
    return err_set_errno(err, state()->fault.code, "%s %s", fake_op_name(op), how);
}

/* The programs run on, as they do far away, until the sandbox is freed. */
static int lose(struct fake_sandbox *box, enum fake_op op, struct carrel_error *err)
{
    if (box && !box->is_lost) {
        ferry_kill(&box->ferry);
        servers_kill(&box->servers);
        (void)eventfd_write(box->bell, 1);
        box->is_lost = true;
    }
    return err_set(err, state()->fault.code < 0 ? state()->fault.code : -ENOTCONN,
            "%s: the connection is lost", fake_op_name(op));
}

/* Before the effect of a call. `box` is NULL for a call of the runtime itself. */
static int begin(struct fake_sandbox *box, enum fake_op op, struct carrel_error *err)
{
    state()->calls[op]++;
    if ((box && box->is_lost) || is_due(op, FAULT_LOST))
        return lose(box, op, err);
    return is_due(op, FAULT_BEFORE) ? fail(op, "fails on request", err) : 0;
}

/* After it; `r` is what came of it. */
static int end(struct fake_sandbox *box, enum fake_op op, int r, struct carrel_error *err)
{
    if (box)
        box->base.touched_ns = box->inner->touched_ns;
    return r >= 0 && is_due(op, FAULT_AFTER) ? fail(op, "was done, its answer is lost", err)
                                             : r;
}

static void box_free(struct fake_sandbox *box)
{
    if (!box)
        return;
    sandbox_free(box->inner);
    ferry_finish(&box->ferry);
    servers_kill(&box->servers);
    fd_close(box->base.event_fd);
    fd_close(box->bell);
    free(box);
}
DEFINE_AUTO(struct fake_sandbox *, box_free)

static void fake_free(struct sandbox *base)
{
    box_free(fake_of(base));
}

/* The event descriptor of the runtime inside is not the caller's: the bell rings as well. */
static int join_events(struct fake_sandbox *box, struct carrel_error *err)
{
    struct epoll_event event = { .events = EPOLLIN };

    box->bell = eventfd(0, EFD_CLOEXEC);
    box->base.event_fd = epoll_create1(EPOLL_CLOEXEC);
    if (box->bell < 0 || box->base.event_fd < 0 ||
            epoll_ctl(box->base.event_fd, EPOLL_CTL_ADD, box->bell, &event) < 0 ||
            epoll_ctl(box->base.event_fd, EPOLL_CTL_ADD, box->inner->event_fd, &event) < 0)
        return err_set_errno(err, -errno, "join events");
    return 0;
}

static int fake_create(struct runtime *rt, const struct sandbox_spec *spec,
        struct sandbox **out, struct carrel_error *err)
{
    struct runtime *inner = NULL;
    AUTO(box_free) struct fake_sandbox *box = calloc(1, sizeof(*box));

    if (!box)
        return err_set_errno(err, -ENOMEM, "create a sandbox");
    sandbox_init(&box->base, rt->ops);
    box->bell = -1;
    box->ferry = FERRY_INIT;
    int r = begin(NULL, FAKE_CREATE, err);
    if (r == 0)
        r = runtime_find(inner_name, &inner, err);
    if (r == 0)
        r = sandbox_begin(inner, spec, &box->inner, err);
    if (r == 0)
        r = join_events(box, err);
    if (r == 0)
        r = ferry_start(&box->ferry, err);
    if (r == 0)
        r = end(NULL, FAKE_CREATE, 0, err);
    if (r < 0)
        return r;
    box->base.protections = box->inner->protections;
    memcpy(box->base.held_by, box->inner->held_by, sizeof(box->base.held_by));
    box->base.workspace = box->inner->workspace;
    box->base.home = box->inner->home;
    box->base.user_name = box->inner->user_name;
    box->base.touched_ns = box->inner->touched_ns;
    box->ready_ns = clock_ns() + READY_NS;
    *out = &ptr_steal(&box)->base;
    return 0;
}

/* A far sandbox is not ready at once. */
static int await_ready(
        struct fake_sandbox *box, uint64_t deadline_ns, int cancel_fd, struct carrel_error *err)
{
    struct pollfd cancel = { .fd = cancel_fd, .events = POLLIN };

    while (clock_ns() < box->ready_ns) {
        if (clock_ns() >= deadline_ns)
            return err_set(err, -ETIMEDOUT, "the sandbox is not ready yet");
        if (clock_poll(&cancel, 1, deadline_ns < box->ready_ns ? deadline_ns : box->ready_ns) >
                0)
            return err_set(err, -ECANCELED, "the sandbox is not ready yet");
    }
    return sandbox_ready(box->inner, deadline_ns, cancel_fd, err);
}

static int fake_ready(
        struct sandbox *base, uint64_t deadline_ns, int cancel_fd, struct carrel_error *err)
{
    struct fake_sandbox *box = fake_of(base);

    int r = begin(box, FAKE_READY, err);
    if (r == 0)
        r = await_ready(box, deadline_ns, cancel_fd, err);
    return end(box, FAKE_READY, r, err);
}

/* A program whose start was not answered runs on without its streams. */
static int fake_start(struct sandbox *base, const struct process_spec *spec,
        struct process *out, struct carrel_error *err)
{
    struct fake_sandbox *box = fake_of(base);
    AUTO(process_close) struct process process = PROCESS_INIT;

    int r = begin(box, FAKE_START, err);
    if (r == 0)
        r = await_ready(box, CLOCK_NEVER, -1, err);
    if (r == 0)
        r = sandbox_start(box->inner, spec, &process, err);
    if (r == 0)
        r = ferry_take(&box->ferry, &process, err);
    r = end(box, FAKE_START, r, err);
    if (r < 0)
        return r;
    *out = process;
    process = PROCESS_INIT;
    return 0;
}

static int fake_next_event(
        struct sandbox *base, struct sandbox_event *event, struct carrel_error *err)
{
    struct fake_sandbox *box = fake_of(base);

    int r = begin(box, FAKE_NEXT_EVENT, err);
    if (box->is_lost) {
        *event = (struct sandbox_event){ .kind = EVENT_GONE, .why = GONE_LOST };
        return 0;
    }
    if (r == 0)
        r = sandbox_next_event(box->inner, event, err);
    return end(box, FAKE_NEXT_EVENT, r, err);
}

static int fake_signal(
        struct sandbox *base, uint32_t process, int signal, struct carrel_error *err)
{
    struct fake_sandbox *box = fake_of(base);

    int r = begin(box, FAKE_SIGNAL, err);
    if (r == 0)
        r = sandbox_signal(box->inner, process, signal, err);
    return end(box, FAKE_SIGNAL, r, err);
}

static int fake_terminate(
        struct sandbox *base, uint32_t process, uint32_t grace_ms, struct carrel_error *err)
{
    struct fake_sandbox *box = fake_of(base);

    int r = begin(box, FAKE_TERMINATE, err);
    if (r == 0)
        r = sandbox_terminate(box->inner, process, grace_ms, err);
    return end(box, FAKE_TERMINATE, r, err);
}

static int fake_resize(struct sandbox *base, const struct process *process, uint16_t rows,
        uint16_t cols, struct carrel_error *err)
{
    struct fake_sandbox *box = fake_of(base);

    int r = begin(box, FAKE_RESIZE, err);
    if (r == 0)
        r = ferry_resize(&box->ferry, process->id, rows, cols, err);
    return end(box, FAKE_RESIZE, r, err);
}

static int finish(struct fake_sandbox *box, enum fake_op op,
        int (*call)(struct sandbox *, struct sandbox_usage *, struct carrel_error *),
        struct sandbox_usage *usage, struct carrel_error *err)
{
    int r = begin(box, op, err);
    if (r == 0)
        r = call(box->inner, usage, err);
    if (r == 0)
        r = ferry_flush(&box->ferry, err);
    return end(box, op, r, err);
}

static int fake_stop(
        struct sandbox *base, struct sandbox_usage *usage, struct carrel_error *err)
{
    return finish(fake_of(base), FAKE_STOP, sandbox_stop, usage, err);
}

static int fake_end(struct sandbox *base, struct sandbox_usage *usage, struct carrel_error *err)
{
    return finish(fake_of(base), FAKE_END, sandbox_end, usage, err);
}

static int fake_usage(struct sandbox *base, enum usage_part part, struct sandbox_usage *usage,
        struct carrel_error *err)
{
    struct fake_sandbox *box = fake_of(base);

    int r = begin(box, FAKE_USAGE, err);
    if (r == 0 && part == USAGE_REFUSALS)
        sandbox_refusals(box->inner, usage);
    else if (r == 0)
        r = sandbox_usage(box->inner, usage, err);
    return end(box, FAKE_USAGE, r, err);
}

static int stream_link(int fd, struct carrel_error *err)
{
    AUTO(fd_close) int serving = -1;
    AUTO(fd_close) int theirs = -1;
    char text[PATH_MAX];

    int r = file_read_link(fd, text, sizeof(text), err);
    if (r < 0)
        return r;
    r = file_stream_open(&serving, &theirs);
    if (r == 0)
        r = file_stream_text(text, serving);
    return r < 0 ? err_set_errno(err, r, "read link") : fd_steal(&theirs);
}

/* The last component of a path, and the path before it. */
static const char *split(const char *path, char parent[static PATH_MAX])
{
    const char *slash = strrchr(path, '/');
    const int len = slash ? (int)(slash - path) : 0;

    (void)snprintf(parent, PATH_MAX, "%.*s", slash ? len ? len : 1 : 1, slash ? path : ".");
    return slash ? slash + 1 : path;
}

/* As the runtime inside has descriptors, every stream begins with one. */
static void ask_near(struct file_request *near, char parent[static PATH_MAX])
{
    const bool is_dir = near->op == FILE_LIST || near->op == FILE_UNPACK;

    if (near->op == FILE_REMOVE_TREE) {
        (void)split(near->path, parent);
        near->path = parent;
    }
    if (is_dir || near->op == FILE_REMOVE_TREE || near->op == FILE_PACK) {
        near->flags = O_RDONLY | (near->op == FILE_PACK ? 0 : O_DIRECTORY);
        near->op = FILE_OPEN;
    }
}

static int serve(struct fake_sandbox *box, const struct file_request *request, int fd,
        struct carrel_error *err)
{
    static const enum server_kind kinds[FILE_OP_COUNT] = {
        [FILE_LIST] = SERVER_LISTS,
        [FILE_PACK] = SERVER_PACKS,
        [FILE_UNPACK] = SERVER_UNPACKS,
        [FILE_REMOVE_TREE] = SERVER_REMOVES,
    };
    char parent[PATH_MAX];
    struct service service = {
        .kind = kinds[request->op],
        .fd = fd,
        .name = split(request->path, parent),
        .flags = request->flags,
    };
    struct stat st;

    if (request->op == FILE_OPEN) {
        if (fstat(fd, &st) < 0)
            return err_set_errno(err, -errno, "stat");
        if (S_ISDIR(st.st_mode))
            return err_set_errno(err, -EISDIR, "open (FILE_LIST lists it)");
        service.kind = (request->flags & O_ACCMODE) == O_WRONLY ? SERVER_TAKES : SERVER_SENDS;
    }
    return servers_add(&box->servers, &service, err);
}

static int ask_far(struct fake_sandbox *box, const struct file_request *request,
        struct file_answer *answer, struct carrel_error *err)
{
    struct file_request near = *request;
    char parent[PATH_MAX];

    ask_near(&near, parent);
    int r = sandbox_file(box->inner, &near, answer, err);
    if (r < 0 || answer->fd < 0)
        return r;
    AUTO(fd_close) int fd = fd_steal(&answer->fd);
    r = request->op == FILE_READ_LINK ? stream_link(fd, err) : serve(box, request, fd, err);
    answer->fd = r < 0 ? -1 : r;
    return r < 0 ? r : 0;
}

static int fake_file(struct sandbox *base, const struct file_request *request,
        struct file_answer *answer, struct carrel_error *err)
{
    struct fake_sandbox *box = fake_of(base);
    struct file_answer got = FILE_ANSWER_INIT;

    int r = begin(box, FAKE_FILE, err);
    if (r == 0)
        r = base->can & CAN_DESCRIPTORS ? sandbox_file(box->inner, request, &got, err)
                                        : ask_far(box, request, &got, err);
    r = end(box, FAKE_FILE, r, err);
    if (r < 0)
        fd_close(got.fd);
    else
        *answer = got;
    return r;
}

/* The numbers of this host are not those of a far one. */
static int fake_ps(
        struct sandbox *base, struct sandbox_process *out, size_t max, struct carrel_error *err)
{
    struct fake_sandbox *box = fake_of(base);

    int r = begin(box, FAKE_PS, err);
    if (r == 0)
        r = sandbox_ps(box->inner, out, max, err);
    for (int i = 0; i < r; i++)
        out[i].pid = 0;
    return end(box, FAKE_PS, r, err);
}

static int fake_pause(struct sandbox *base, const char **by, struct carrel_error *err)
{
    struct fake_sandbox *box = fake_of(base);

    int r = begin(box, FAKE_PAUSE, err);
    if (r == 0)
        r = sandbox_pause(box->inner, err);
    *by = box->inner->paused_by;
    return end(box, FAKE_PAUSE, r, err);
}

static int fake_resume(struct sandbox *base, struct carrel_error *err)
{
    struct fake_sandbox *box = fake_of(base);

    int r = begin(box, FAKE_RESUME, err);
    if (r == 0)
        r = sandbox_resume(box->inner, err);
    return end(box, FAKE_RESUME, r, err);
}

static int fake_set_lease(
        struct sandbox *base, uint64_t end_ns, uint64_t idle_ms, struct carrel_error *err)
{
    struct fake_sandbox *box = fake_of(base);

    int r = begin(box, FAKE_SET_LEASE, err);
    if (r == 0)
        r = sandbox_set_lease(box->inner, end_ns, idle_ms, err);
    return end(box, FAKE_SET_LEASE, r, err);
}

static int fake_update(struct sandbox *base, const struct sandbox_limits *limits,
        unsigned which, struct carrel_error *err)
{
    struct fake_sandbox *box = fake_of(base);

    int r = begin(box, FAKE_UPDATE, err);
    if (r == 0)
        r = sandbox_update(box->inner, limits, which, err);
    return end(box, FAKE_UPDATE, r, err);
}

static int fake_health(struct runtime *rt, uint64_t missing, struct runtime_health *health,
        struct carrel_error *err)
{
    struct runtime *inner = NULL;

    (void)rt;
    int r = begin(NULL, FAKE_HEALTH, err);
    if (r == 0)
        r = runtime_find(inner_name, &inner, err);
    if (r == 0)
        r = runtime_health(inner, missing, health, err);
    return end(NULL, FAKE_HEALTH, r, err);
}

static int fake_sweep(struct runtime *rt, struct carrel_error *err)
{
    struct runtime *inner = NULL;

    (void)rt;
    int r = begin(NULL, FAKE_SWEEP, err);
    if (r == 0)
        r = runtime_find(inner_name, &inner, err);
    if (r == 0)
        r = runtime_sweep(inner, err);
    return end(NULL, FAKE_SWEEP, r, err);
}

static void fake_identity(
        struct runtime *rt, const struct sandbox_spec *spec, uid_t *uid, gid_t *gid)
{
    struct runtime *inner = NULL;

    (void)rt;
    if (runtime_find(inner_name, &inner, NULL) == 0)
        runtime_identity(inner, spec, uid, gid);
}

/* fake_wrap() changes what it has. */
static struct runtime_ops fake_ops = {
    .name = "fake",
    .isolation = ISOLATION_NONE,
    .create = fake_create,
    .start = fake_start,
    .next_event = fake_next_event,
    .signal = fake_signal,
    .terminate = fake_terminate,
    .resize = fake_resize,
    .stop = fake_stop,
    .free = fake_free,
    .end = fake_end,
    .ready = fake_ready,
    .usage = fake_usage,
    .file = fake_file,
    .ps = fake_ps,
    .pause = fake_pause,
    .resume = fake_resume,
    .set_lease = fake_set_lease,
    .update = fake_update,
    .health = fake_health,
    .sweep = fake_sweep,
    .identity = fake_identity,
};

struct runtime fake_runtime = { .ops = &fake_ops };
