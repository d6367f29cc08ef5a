/* traced.c - see traced.h. One function per operation, in the order of struct runtime_ops. */
#include "runtime/traced.h"
#include "base/auto.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/str.h"
#include "runtime/runtime.h"
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct traced {
    struct runtime base;
    struct runtime_ops ops;
    struct runtime *inner;
    int fd;
};

struct traced_box {
    struct sandbox base; /* what the front sees: a copy of the inner one's */
    struct sandbox *inner;
    struct traced *traced;
};

static struct traced *traced_of(struct runtime *rt)
{
    return container_of(rt, struct traced, base);
}

static struct traced_box *box_of(struct sandbox *box)
{
    return container_of(box, struct traced_box, base);
}

/* A call that is being traced. */
struct call {
    struct traced *traced;
    struct traced_box *box; /* NULL: of the runtime itself */
    uint64_t began_ns;
    char text[400]; /* the operation and its arguments */
    size_t len;
};

__attribute__((format(printf, 2, 3))) static void add(
        struct call *call, const char *format, ...)
{
    size_t room = sizeof(call->text) - call->len;
    va_list args;

    va_start(args, format);
    int n = vsnprintf(call->text + call->len, room, format, args);
    va_end(args);
    call->len += n < 0 ? 0 : (size_t)n < room ? (size_t)n : room - 1;
}

/* Text of any origin, so that it stays one line. */
static void add_quoted(struct call *call, const char *text)
{
    char shown[64];

    if (text)
        add(call, " '%s'", str_escape(text, strlen(text), shown, sizeof(shown)));
}

static struct call begin(struct traced *traced, struct traced_box *box, const char *operation)
{
    struct call call = { .traced = traced, .box = box, .began_ns = clock_ns() };

    add(&call, "%s", operation);
    return call;
}

static struct call begin_on(struct sandbox *base, const char *operation)
{
    struct traced_box *box = box_of(base);

    return begin(box->traced, box, operation);
}

/* What the adapter changes in its sandbox while it works; the front changes the rest. */
static void follow_inner(struct traced_box *box)
{
    box->base.event_fd = box->inner->event_fd;
    box->base.touched_ns = box->inner->touched_ns;
}

static int end(struct call *call, int r)
{
    char line[sizeof(call->text) + 100];
    const uint64_t took_us = (clock_ns() - call->began_ns) / 1000;

    int n = r < 0 ? snprintf(line, sizeof(line), "%s = %s %" PRIu64 "us\n", call->text,
                            strerrorname_np(-r), took_us)
                  : snprintf(line, sizeof(line), "%s = %d %" PRIu64 "us\n", call->text, r,
                            took_us);
    if (n > 0)
        (void)write(call->traced->fd, line, (size_t)n); /* else it is lost */
    if (call->box)
        follow_inner(call->box);
    return r;
}

static int create(struct runtime *rt, const struct sandbox_spec *spec, struct sandbox **out,
        struct carrel_error *err)
{
    struct traced *traced = traced_of(rt);
    AUTO(free) struct traced_box *box = calloc(1, sizeof(*box));
    struct call call = begin(traced, NULL, "create");

    if (!box)
        return err_set_errno(err, -ENOMEM, "sandbox");
    add_quoted(&call, spec->id);
    add_quoted(&call, spec->image);
    add(&call, " mounts %zu", spec->n_mounts);
    int r = end(&call, traced->inner->ops->create(traced->inner, spec, &box->inner, err));
    if (r < 0)
        return r;
    assert(box->inner);
    box->traced = traced;
    box->base = *box->inner;
    box->base.ops = &traced->ops;
    *out = &ptr_steal(&box)->base;
    return 0;
}

static int start(struct sandbox *base, const struct process_spec *spec, struct process *out,
        struct carrel_error *err)
{
    struct sandbox *inner = box_of(base)->inner;
    struct call call = begin_on(base, "start");

    for (size_t i = 0; i < 3 && spec->argv[i]; i++)
        add_quoted(&call, spec->argv[i]);
    int r = inner->ops->start(inner, spec, out, err);
    if (r == 0)
        add(&call, " -> process %u", out->id);
    return end(&call, r);
}

static int next_event(
        struct sandbox *base, struct sandbox_event *event, struct carrel_error *err)
{
    struct sandbox *inner = box_of(base)->inner;
    struct call call = begin_on(base, "next_event");

    int r = inner->ops->next_event(inner, event, err);
    if (r == 0 && event->kind == EVENT_EXITED)
        add(&call, " -> process %u exited %#x", event->process, (unsigned)event->wait_status);
    else if (r == 0 && event->kind == EVENT_GONE)
        add(&call, " -> gone %d", (int)event->why);
    return end(&call, r);
}

static int send_signal(
        struct sandbox *base, uint32_t process, int signal, struct carrel_error *err)
{
    struct sandbox *inner = box_of(base)->inner;
    struct call call = begin_on(base, "signal");

    add(&call, " process %u signal %d", process, signal);
    return end(&call, inner->ops->signal(inner, process, signal, err));
}

static int terminate(
        struct sandbox *base, uint32_t process, uint32_t grace_ms, struct carrel_error *err)
{
    struct sandbox *inner = box_of(base)->inner;
    struct call call = begin_on(base, "terminate");

    add(&call, " process %u grace %ums", process, grace_ms);
    return end(&call, inner->ops->terminate(inner, process, grace_ms, err));
}

static int resize(struct sandbox *base, const struct process *process, uint16_t rows,
        uint16_t cols, struct carrel_error *err)
{
    struct sandbox *inner = box_of(base)->inner;
    struct call call = begin_on(base, "resize");

    add(&call, " process %u %ux%u", process->id, rows, cols);
    return end(&call, inner->ops->resize(inner, process, rows, cols, err));
}

static int stop(struct sandbox *base, struct sandbox_usage *usage, struct carrel_error *err)
{
    struct sandbox *inner = box_of(base)->inner;
    struct call call = begin_on(base, "stop");

    return end(&call, inner->ops->stop(inner, usage, err));
}

static void free_box(struct sandbox *base)
{
    struct traced_box *box = box_of(base);
    struct call call = begin(box->traced, NULL, "free");

    box->inner->ops->free(box->inner);
    (void)end(&call, 0);
    free(box);
}

static int end_box(struct sandbox *base, struct sandbox_usage *usage, struct carrel_error *err)
{
    struct sandbox *inner = box_of(base)->inner;
    struct call call = begin_on(base, "end");

    return end(&call, inner->ops->end(inner, usage, err));
}

static int ready(
        struct sandbox *base, uint64_t deadline_ns, int cancel_fd, struct carrel_error *err)
{
    struct sandbox *inner = box_of(base)->inner;
    struct call call = begin_on(base, "ready");

    return end(&call, inner->ops->ready(inner, deadline_ns, cancel_fd, err));
}

static int usage(struct sandbox *base, enum usage_part part, struct sandbox_usage *out,
        struct carrel_error *err)
{
    struct sandbox *inner = box_of(base)->inner;
    struct call call = begin_on(base, part == USAGE_REFUSALS ? "usage refusals" : "usage");

    return end(&call, inner->ops->usage(inner, part, out, err));
}

static int file(struct sandbox *base, const struct file_request *request,
        struct file_answer *answer, struct carrel_error *err)
{
    struct sandbox *inner = box_of(base)->inner;
    struct call call = begin_on(base, "file");

    add(&call, " op %d", (int)request->op);
    add_quoted(&call, request->path);
    add_quoted(&call, request->other);
    return end(&call, inner->ops->file(inner, request, answer, err));
}

static int ps(
        struct sandbox *base, struct sandbox_process *out, size_t max, struct carrel_error *err)
{
    struct sandbox *inner = box_of(base)->inner;
    struct call call = begin_on(base, "ps");

    add(&call, " max %zu", max);
    return end(&call, inner->ops->ps(inner, out, max, err));
}

static int pids(struct sandbox *base, pid_t *out, size_t max, struct carrel_error *err)
{
    struct sandbox *inner = box_of(base)->inner;
    struct call call = begin_on(base, "pids");

    add(&call, " max %zu", max);
    return end(&call, inner->ops->pids(inner, out, max, err));
}

static int pause_box(struct sandbox *base, const char **by, struct carrel_error *err)
{
    struct sandbox *inner = box_of(base)->inner;
    struct call call = begin_on(base, "pause");

    return end(&call, inner->ops->pause(inner, by, err));
}

static int resume(struct sandbox *base, struct carrel_error *err)
{
    struct sandbox *inner = box_of(base)->inner;
    struct call call = begin_on(base, "resume");

    return end(&call, inner->ops->resume(inner, err));
}

static int set_lease(
        struct sandbox *base, uint64_t end_ns, uint64_t idle_ms, struct carrel_error *err)
{
    struct sandbox *inner = box_of(base)->inner;
    struct call call = begin_on(base, "set_lease");

    add(&call, " end %" PRIu64 "ns idle %" PRIu64 "ms", end_ns, idle_ms);
    return end(&call, inner->ops->set_lease(inner, end_ns, idle_ms, err));
}

static int update(struct sandbox *base, const struct sandbox_limits *limits, unsigned which,
        struct carrel_error *err)
{
    struct sandbox *inner = box_of(base)->inner;
    struct call call = begin_on(base, "update");

    add(&call, " which %#x", which);
    return end(&call, inner->ops->update(inner, limits, which, err));
}

static int health(struct runtime *rt, uint64_t missing, struct runtime_health *out,
        struct carrel_error *err)
{
    struct traced *traced = traced_of(rt);
    struct call call = begin(traced, NULL, "health");

    add(&call, " missing %#" PRIx64, missing);
    return end(&call, traced->inner->ops->health(traced->inner, missing, out, err));
}

static int sweep(struct runtime *rt, struct carrel_error *err)
{
    struct traced *traced = traced_of(rt);
    struct call call = begin(traced, NULL, "sweep");

    return end(&call, traced->inner->ops->sweep(traced->inner, err));
}

static void identity(
        struct runtime *rt, const struct sandbox_spec *spec, uid_t *uid, gid_t *gid)
{
    struct traced *traced = traced_of(rt);
    struct call call = begin(traced, NULL, "identity");

    traced->inner->ops->identity(traced->inner, spec, uid, gid);
    add(&call, " -> %u:%u", (unsigned)*uid, (unsigned)*gid);
    (void)end(&call, 0);
}

/* What the other one lacks, this one lacks too. */
#define IF_THERE(ops, name, function) .name = (ops)->name ? (function) : NULL

struct runtime *runtime_traced(struct runtime *inner, int fd)
{
    const struct runtime_ops *ops = inner->ops;
    struct traced *traced = calloc(1, sizeof(*traced));

    if (!traced)
        return NULL;
    traced->inner = inner;
    traced->fd = fd;
    traced->ops = (struct runtime_ops){
        .name = ops->name,
        .is_proxy = ops->is_proxy,
        .isolation = ops->isolation,
        .can = ops->can,
        .settings = ops->settings,
        IF_THERE(ops, create, create),
        IF_THERE(ops, start, start),
        IF_THERE(ops, next_event, next_event),
        IF_THERE(ops, signal, send_signal),
        IF_THERE(ops, terminate, terminate),
        IF_THERE(ops, resize, resize),
        IF_THERE(ops, stop, stop),
        IF_THERE(ops, free, free_box),
        IF_THERE(ops, end, end_box),
        IF_THERE(ops, ready, ready),
        IF_THERE(ops, usage, usage),
        IF_THERE(ops, file, file),
        IF_THERE(ops, ps, ps),
        IF_THERE(ops, pids, pids),
        IF_THERE(ops, pause, pause_box),
        IF_THERE(ops, resume, resume),
        IF_THERE(ops, set_lease, set_lease),
        IF_THERE(ops, update, update),
        IF_THERE(ops, health, health),
        IF_THERE(ops, sweep, sweep),
        IF_THERE(ops, identity, identity),
    };
    traced->base.ops = &traced->ops;
    return &traced->base;
}

void runtime_traced_free(struct runtime *rt)
{
    if (rt)
        free(traced_of(rt));
}
