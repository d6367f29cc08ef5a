/*
 * runtime.c - the front: what is the same for every adapter.
 *
 * Arguments are checked here, so adapters see only valid ones. Errors get the adapter's name
 * here, and an empty slot is answered here, so every adapter fails with the same messages.
 */
#include "runtime/runtime.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/kernel.h"
#include "base/path.h"
#include "base/str.h"
#include "runtime/adapters.h"
#include "runtime/front.h"
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <unistd.h>

/* The last one is NULL except in tests. */
static struct runtime *const runtimes[] = {
    &local_runtime,
    &process_runtime,
    &fake_runtime,
};

const char *isolation_name(enum isolation isolation)
{
    static const char names[][16] = {
        [ISOLATION_NONE] = "none",
        [ISOLATION_KERNEL] = "kernel",
        [ISOLATION_VM] = "vm",
    };

    assert(isolation < ARRAY_LEN(names));
    return names[isolation];
}

static const char limit_names[LIMIT_COUNT][12] = {
    [LIMIT_MEMORY] = "memory",
    [LIMIT_PIDS] = "pids",
    [LIMIT_CPU] = "cpu",
    [LIMIT_DISK] = "disk",
    [LIMIT_FILES] = "files",
    [LIMIT_IO_READ] = "io_read",
    [LIMIT_IO_WRITE] = "io_write",
};

const char *limit_name(enum limit limit)
{
    assert(limit < LIMIT_COUNT);
    return limit_names[limit];
}

const char *limit_holder_name(enum limit_holder holder)
{
    static const char names[][16] = {
        [HELD_BY_NOTHING] = "nothing",
        [HELD_BY_RLIMIT] = "rlimit",
        [HELD_BY_FILESYSTEM] = "filesystem",
        [HELD_BY_CGROUP] = "cgroup",
        [HELD_BY_POLLING] = "polling",
    };

    assert(holder < ARRAY_LEN(names));
    return names[holder];
}

/* Names for a message, separated by spaces; those that do not fit are left out. */
struct names {
    char text[300];
    size_t len;
};

static void add_name(struct names *names, const char *name)
{
    size_t room = sizeof(names->text) - names->len;
    int n = snprintf(names->text + names->len, room, "%s%s", names->len ? " " : "", name);

    if (n > 0 && (size_t)n < room)
        names->len += (size_t)n;
    else
        names->text[names->len] = '\0';
}

static int unknown_limit(const char *name, size_t len, struct carrel_error *err)
{
    struct names known = { 0 };
    char shown[64];

    for (size_t i = 0; i < LIMIT_COUNT; i++)
        add_name(&known, limit_names[i]);
    return err_set(err, -EINVAL, "unknown limit '%s'; expected one of: %s",
            str_escape(name, len, shown, sizeof(shown)), known.text);
}

int limit_parse_set(const char *text, unsigned *set, struct carrel_error *err)
{
    unsigned found = 0;

    for (;;) {
        size_t len = strcspn(text, ",");
        size_t i;
        for (i = 0; i < LIMIT_COUNT; i++)
            if (strlen(limit_names[i]) == len && strncmp(limit_names[i], text, len) == 0)
                break;
        if (i == LIMIT_COUNT)
            return unknown_limit(text, len, err);
        found |= LIMIT_BIT(i);
        if (!text[len])
            break;
        text += len + 1;
    }
    *set |= found;
    return 0;
}

int runtime_find(const char *name, struct runtime **out, struct carrel_error *err)
{
    struct names known = { 0 };
    char shown[64];

    for (size_t i = 0; i < ARRAY_LEN(runtimes) && runtimes[i]; i++) {
        if (strcmp(runtimes[i]->ops->name, name) == 0) {
            *out = runtimes[i];
            return 0;
        }
        add_name(&known, runtimes[i]->ops->name);
    }
    return err_set(err, -EINVAL, "unknown runtime '%s'; expected one of: %s",
            str_escape(name, strlen(name), shown, sizeof(shown)), known.text);
}

struct runtime *runtime_at(size_t index)
{
    return index < ARRAY_LEN(runtimes) ? runtimes[index] : NULL;
}

const char *runtime_name(const struct runtime *rt)
{
    return rt->ops->name;
}

enum isolation runtime_isolation(const struct runtime *rt)
{
    return rt->ops->isolation;
}

unsigned runtime_can(const struct runtime *rt)
{
    return rt->ops->can;
}

void sandbox_init(struct sandbox *box, const struct runtime_ops *ops)
{
    *box = (struct sandbox){
        .ops = ops,
        .isolation = ops->isolation,
        .can = ops->can,
        .event_fd = -1,
    };
}

/* An old message must not be mistaken for the adapter's. */
static void forget(struct carrel_error *err)
{
    if (err)
        *err = (struct carrel_error){ 0 };
}

int front_fail(const struct runtime_ops *ops, int r, struct carrel_error *err)
{
    if (ops->is_proxy)
        return r;
    if (err && !err->message[0])
        return err_set_errno(err, r, "runtime %s", ops->name);
    return err_wrap(err, r, "runtime %s", ops->name);
}

int front_lacks(const struct runtime_ops *ops, const char *what, struct carrel_error *err)
{
    return err_set(err, -ENOTSUP, "runtime %s: cannot %s", ops->name, what);
}

int runtime_health(struct runtime *rt, uint64_t missing, struct runtime_health *health,
        struct carrel_error *err)
{
    struct runtime_health got = { 0 };

    forget(err);
    if (!rt->ops->health)
        return front_lacks(rt->ops, "say how it fares on this machine", err);
    int r = rt->ops->health(rt, missing, &got, err);
    if (r < 0)
        return front_fail(rt->ops, r, err);
    *health = got;
    return 0;
}

void runtime_identity(
        struct runtime *rt, const struct sandbox_spec *spec, uid_t *uid, gid_t *gid)
{
    *uid = geteuid();
    *gid = getegid();
    if (rt->ops->identity)
        rt->ops->identity(rt, spec, uid, gid);
}

int runtime_sweep(struct runtime *rt, struct carrel_error *err)
{
    forget(err);
    if (!rt->ops->sweep)
        return front_lacks(rt->ops, "sweep what a crash left", err);
    int r = rt->ops->sweep(rt, err);
    return r < 0 ? front_fail(rt->ops, r, err) : r;
}

int front_check_running(const struct sandbox *box, struct carrel_error *err)
{
    forget(err);
    if (box->is_ended)
        return err_set(err, -ESHUTDOWN, "runtime %s: the sandbox is stopped", box->ops->name);
    return 0;
}

static int check_limits(const struct sandbox_limits *limits, struct carrel_error *err)
{
    const unsigned all = LIMIT_BIT(LIMIT_COUNT) - 1;

    if ((limits->demanded | limits->best_effort) & ~all)
        return err_set(err, -EINVAL, "a set of limits has an unknown member");
    for (size_t i = 0; i < LIMIT_COUNT; i++)
        if ((limits->demanded & LIMIT_BIT(i)) && limits->value[i] == 0)
            return err_set(err, -EINVAL, "the %s limit is demanded but zero", limit_names[i]);
    return 0;
}

static int check_absolute(const char *path, struct carrel_error *err)
{
    char shown[128];

    if (path && path[0] == '/')
        return 0;
    return err_set(err, -EINVAL, "mount: '%s' is not an absolute path",
            str_escape(path ? path : "", path ? strlen(path) : 0, shown, sizeof(shown)));
}

static int check_overlay(const struct sandbox_overlay *overlay, struct carrel_error *err)
{
    int r = check_absolute(overlay->space, err);

    for (size_t i = 0; r == 0 && overlay->lower && overlay->lower[i]; i++)
        r = check_absolute(overlay->lower[i], err);
    if (r == 0 && (!path_is_name(overlay->upper) || !path_is_name(overlay->work)))
        return err_set(err, -EINVAL, "upper and work must be names in the overlay's space");
    return r;
}

static int check_tree(const struct sandbox_overlay *overlay, struct carrel_error *err)
{
    if (!overlay->lower || !overlay->lower[0])
        return err_set(err, -EINVAL, "a copy-on-write tree needs something below it");
    return check_overlay(overlay, err);
}

bool sandbox_has_memory_root(void)
{
    return kernel_is(6, 6);
}

static int check_root(const struct sandbox_overlay *overlay, struct carrel_error *err)
{
    if (overlay->space)
        return check_tree(overlay, err);
    if (!overlay->lower || !overlay->lower[0])
        return err_set(err, -EINVAL, "a root without a layer");
    for (size_t i = 0; overlay->lower[i]; i++) {
        int r = check_absolute(overlay->lower[i], err);
        if (r < 0)
            return r;
    }
    return sandbox_has_memory_root()
                   ? 0
                   : err_set(err, -ENOTSUP,
                             "a root that is written to in memory needs Linux 6.6 or later");
}

/* Checks what of the root and of the private directories is not in memory. */
static int check_disk(const struct sandbox_spec *spec, struct carrel_error *err)
{
    if (spec->root_overlay && (spec->root || spec->space))
        return err_set(err, -EINVAL,
                "a root that can be written to is the only one, and has the private places in "
                "it");
    int r = spec->space ? check_overlay(spec->space, err) : 0;
    if (r == 0 && spec->root_overlay)
        r = check_root(spec->root_overlay, err);
    return r;
}

static int check_mounts(const struct sandbox_spec *spec, struct carrel_error *err)
{
    for (size_t i = 0; i < spec->n_mounts; i++) {
        const struct sandbox_mount *mount = &spec->mounts[i];
        int r = check_absolute(mount->target, err);
        if (r == 0)
            r = mount->overlay ? check_tree(mount->overlay, err)
                               : check_absolute(mount->source, err);
        if (r < 0)
            return r;
    }
    return 0;
}

static bool has_overlay(const struct sandbox_spec *spec)
{
    bool has = spec->space || spec->root_overlay;

    for (size_t i = 0; i < spec->n_mounts; i++)
        has = has || spec->mounts[i].overlay;
    return has;
}

/* Whether the runtime has what the spec needs, before it is asked for it. */
static int check_can(const struct runtime_ops *ops, const struct sandbox_spec *spec,
        struct carrel_error *err)
{
    const struct {
        bool is_needed;
        enum can bit;
        const char *refusal;
    } needs[] = {
        { spec->image, CAN_IMAGE,
                "it has no images of its own; an imported image (carrel image) or a directory "
                "can be the root in runtime local" },
        { has_overlay(spec), CAN_OVERLAY,
                "it has no copy-on-write trees and no private space that is kept (runtime "
                "local has them)" },
        { spec->n_mounts > 0 || spec->root, CAN_MOUNT,
                "it cannot mount directories of this host (runtime local can)" },
        { spec->network == NETWORK_BRIDGE, CAN_BRIDGE,
                "it has no bridge network; use none or host" },
    };

    for (size_t i = 0; i < ARRAY_LEN(needs); i++)
        if (needs[i].is_needed && !(ops->can & needs[i].bit))
            return err_set(err, -ENOTSUP, "%s", needs[i].refusal);
    return 0;
}

static bool is_key(const char *const *keys, const char *name, size_t len)
{
    for (size_t i = 0; keys && keys[i]; i++)
        if (strlen(keys[i]) == len && strncmp(keys[i], name, len) == 0)
            return true;
    return false;
}

/* A setting that has no effect must not look as if it had one. */
static int check_settings(const struct runtime_ops *ops, const struct sandbox_spec *spec,
        struct carrel_error *err)
{
    struct names known = { 0 };
    char shown[64];

    for (size_t i = 0; ops->settings && ops->settings[i]; i++)
        add_name(&known, ops->settings[i]);
    for (size_t i = 0; spec->settings && spec->settings[i]; i++) {
        const char *setting = spec->settings[i];
        size_t len = strcspn(setting, "=");
        (void)str_escape(setting, len, shown, sizeof(shown));
        if (len == 0 || !setting[len])
            return err_set(err, -EINVAL, "setting '%s' is not of the form KEY=VALUE", shown);
        if (!is_key(ops->settings, setting, len))
            return err_set(err, -EINVAL, "unknown setting '%s'; %s%s", shown,
                    known.len ? "expected one of: " : "it has none", known.text);
    }
    return 0;
}

static int check_spec(const struct runtime_ops *ops, const struct sandbox_spec *spec,
        struct carrel_error *err)
{
    if (!spec->id || !path_is_name(spec->id))
        return err_set(err, -EINVAL, "a sandbox's id must be one path component");
    if (spec->root && spec->root[0] != '/')
        return err_set(err, -EINVAL, "the root must be an absolute path");
    int r = check_disk(spec, err);
    if (r == 0)
        r = check_mounts(spec, err);
    if (r == 0)
        r = check_can(ops, spec, err);
    if (r == 0)
        r = check_settings(ops, spec, err);
    return r < 0 ? r : check_limits(&spec->limits, err);
}

/*
 * The last check before a sandbox is returned: even if an adapter has a bug, the caller gets
 * what was promised.
 */
static int check_promises(
        const struct sandbox *box, const struct sandbox_spec *spec, struct carrel_error *err)
{
    const uint64_t missing = spec->require & ~box->protections;
    const unsigned demanded = spec->limits.demanded & ~spec->limits.best_effort;
    struct names names = { 0 };

    for (unsigned i = 0; i < PROTECT_COUNT; i++)
        if (missing & PROTECT_BIT(i))
            add_name(&names, protection_name(i));
    if (missing & ~(PROTECT_BIT(PROTECT_COUNT) - 1))
        add_name(&names, "(unknown)");
    if (missing)
        return err_set(err, -ENOTSUP, "required protections are missing: %s", names.text);

    for (unsigned i = 0; i < LIMIT_COUNT; i++)
        if ((demanded & LIMIT_BIT(i)) && box->held_by[i] == HELD_BY_NOTHING)
            add_name(&names, limit_names[i]);
    if (names.len > 0)
        return err_set(err, -ENOTSUP, "demanded limits cannot be enforced: %s", names.text);
    if (box->isolation < spec->isolation)
        return err_set(err, -ENOTSUP, "the sandbox has isolation %s, less than the minimum %s",
                isolation_name(box->isolation), isolation_name(spec->isolation));
    return 0;
}

int sandbox_begin(struct runtime *rt, const struct sandbox_spec *spec, struct sandbox **out,
        struct carrel_error *err)
{
    AUTO(sandbox_free) struct sandbox *box = NULL;

    forget(err);
    int r = check_spec(rt->ops, spec, err);
    if (r == 0)
        r = rt->ops->create(rt, spec, &box, err);
    if (r == 0)
        r = check_promises(box, spec, err);
    if (r < 0)
        return front_fail(rt->ops, r, err);
    *out = ptr_steal(&box);
    return 0;
}

int sandbox_create(struct runtime *rt, const struct sandbox_spec *spec, struct sandbox **out,
        struct carrel_error *err)
{
    AUTO(sandbox_free) struct sandbox *box = NULL;

    int r = sandbox_begin(rt, spec, &box, err);
    if (r < 0)
        return r;
    r = sandbox_ready(box, CLOCK_NEVER, -1, err);
    if (r < 0)
        return r;
    *out = ptr_steal(&box);
    return 0;
}

int sandbox_ready(
        struct sandbox *box, uint64_t deadline_ns, int cancel_fd, struct carrel_error *err)
{
    int r = front_check_running(box, err);
    if (r < 0 || !box->ops->ready)
        return r;
    r = box->ops->ready(box, deadline_ns, cancel_fd, err);
    return r < 0 ? front_fail(box->ops, r, err) : 0;
}

static int check_process(const struct process_spec *spec, struct carrel_error *err)
{
    char shown[128];

    if (!spec->argv || !spec->argv[0])
        return err_set(err, -EINVAL, "there is no program to start");
    if (!spec->argv[0][0])
        return err_set(err, -ENOENT, "the program's name is empty");
    if (!spec->env)
        return err_set(err, -EINVAL, "there is no environment");
    for (size_t i = 0; spec->env[i]; i++) {
        const char *equals = strchr(spec->env[i], '=');
        if (!equals || equals == spec->env[i])
            return err_set(err, -EINVAL, "environment: '%s' is not of the form NAME=VALUE",
                    str_escape(spec->env[i], strlen(spec->env[i]), shown, sizeof(shown)));
    }
    if (spec->n_extra > PROCESS_EXTRA)
        return err_set(err, -EINVAL, "a process has at most %d more streams", PROCESS_EXTRA);
    if (spec->cwd && spec->cwd[0] != '/')
        return err_set(err, -EINVAL, "working directory '%s' is not an absolute path",
                str_escape(spec->cwd, strlen(spec->cwd), shown, sizeof(shown)));
    return 0;
}

int sandbox_start(struct sandbox *box, const struct process_spec *spec, struct process *out,
        struct carrel_error *err)
{
    struct process process = PROCESS_INIT;

    int r = front_check_running(box, err);
    if (r < 0)
        return r;
    r = check_process(spec, err);
    if (r == 0 && box->paused_by)
        r = err_set(err, -EAGAIN, "the sandbox is paused; resume it first (carrel resume)");
    if (r == 0)
        r = box->ops->start(box, spec, &process, err);
    if (!box->ops->is_proxy &&
            (r == -ENOENT || r == -EACCES || r == -ENOEXEC || r == -ENOTDIR) && err &&
            err->message[0]) /* not the runtime's failure, so without its name */
        return err_from(err, r, r == -ENOTDIR ? CARREL_FROM_CALLER : CARREL_FROM_PROGRAM);
    if (r < 0)
        return front_fail(box->ops, r, err);
    *out = process;
    return 0;
}

void process_close(struct process process)
{
    const int fds[] = { process.stdin_fd, process.stdout_fd, process.stderr_fd,
        process.extra_fds[0], process.extra_fds[1] };

    for (size_t i = 0; i < ARRAY_LEN(fds); i++)
        fd_close(fds[i]);
}

int sandbox_signal(struct sandbox *box, uint32_t process, int signal, struct carrel_error *err)
{
    int r = front_check_running(box, err);
    if (r < 0)
        return r;
    if (signal < 1 || signal > SIGRTMAX)
        r = err_set(err, -EINVAL, "%d is not a signal", signal);
    else
        r = box->ops->signal(box, process, signal, err);
    return r < 0 ? front_fail(box->ops, r, err) : 0;
}

int sandbox_terminate(
        struct sandbox *box, uint32_t process, uint32_t grace_ms, struct carrel_error *err)
{
    int r = front_check_running(box, err);
    if (r < 0)
        return r;
    if (!box->ops->terminate)
        r = err_set(err, -ENOTSUP, "it cannot end a process and its group");
    else
        r = box->ops->terminate(box, process, grace_ms, err);
    return r < 0 ? front_fail(box->ops, r, err) : 0;
}

static int resize_descriptor(int fd, uint16_t rows, uint16_t cols, struct carrel_error *err)
{
    const struct winsize size = { .ws_row = rows, .ws_col = cols };

    if (fd >= 0 && ioctl(fd, TIOCSWINSZ, &size) == 0)
        return 0;
    return err_set(err, -ENOTTY, "the process has no terminal");
}

int sandbox_resize(struct sandbox *box, const struct process *process, uint16_t rows,
        uint16_t cols, struct carrel_error *err)
{
    int r = front_check_running(box, err);
    if (r < 0)
        return r;
    r = box->ops->resize ? box->ops->resize(box, process, rows, cols, err)
                         : resize_descriptor(process->stdin_fd, rows, cols, err);
    return r < 0 ? front_fail(box->ops, r, err) : 0;
}

int sandbox_next_event(
        struct sandbox *box, struct sandbox_event *event, struct carrel_error *err)
{
    struct sandbox_event got = { .kind = EVENT_NONE };

    forget(err);
    int r = box->is_ended ? 0 : box->ops->next_event(box, &got, err);
    if (r < 0)
        return front_fail(box->ops, r, err);
    box->is_lost = box->is_lost || (got.kind == EVENT_GONE && got.why == GONE_LOST);
    *event = got;
    return 0;
}

/* A lost sandbox may still be in reach of its adapter in another way, or not: both are fine. */
static int finish(struct sandbox *box,
        int (*call)(struct sandbox *, struct sandbox_usage *, struct carrel_error *),
        struct sandbox_usage *usage, struct carrel_error *err)
{
    if (!box->is_lost)
        return call(box, usage, err);
    if (call(box, usage, NULL) < 0)
        *usage = USAGE_INIT;
    return 0;
}

int sandbox_stop(struct sandbox *box, struct sandbox_usage *usage, struct carrel_error *err)
{
    struct sandbox_usage got = USAGE_INIT;

    forget(err);
    int r = box->is_stopped ? 0 : finish(box, box->ops->stop, &got, err);
    if (r < 0)
        return front_fail(box->ops, r, err);
    box->is_ended = box->is_stopped = true;
    box->paused_by = NULL;
    if (usage)
        *usage = got;
    return 0;
}

int sandbox_end(struct sandbox *box, struct sandbox_usage *usage, struct carrel_error *err)
{
    struct sandbox_usage got = USAGE_INIT;

    if (!box->ops->end || box->is_ended)
        return sandbox_stop(box, usage, err);
    forget(err);
    int r = finish(box, box->ops->end, &got, err);
    if (r < 0)
        return front_fail(box->ops, r, err);
    box->is_ended = true;
    box->paused_by = NULL;
    if (usage)
        *usage = got;
    return 0;
}

void sandbox_free(struct sandbox *box)
{
    if (!box)
        return;
    if (!box->is_stopped)
        (void)sandbox_stop(box, NULL, NULL); /* the adapter's free handles a failed stop */
    box->ops->free(box);
}

int sandbox_usage(struct sandbox *box, struct sandbox_usage *usage, struct carrel_error *err)
{
    struct sandbox_usage got = USAGE_INIT;

    int r = front_check_running(box, err);
    if (r < 0)
        return r;
    if (!box->ops->usage)
        return front_lacks(box->ops, "measure a sandbox while it runs", err);
    r = box->ops->usage(box, USAGE_ALL, &got, err);
    if (r < 0)
        return front_fail(box->ops, r, err);
    *usage = got;
    return 0;
}

void sandbox_refusals(struct sandbox *box, struct sandbox_usage *usage)
{
    struct sandbox_usage got = USAGE_INIT;

    *usage = got;
    if (front_check_running(box, NULL) == 0 && box->ops->usage &&
            box->ops->usage(box, USAGE_REFUSALS, &got, NULL) == 0)
        *usage = got;
}

/* What needs a descriptor, and what is done without. */
static int check_descriptors(
        const struct sandbox *box, const struct file_request *request, struct carrel_error *err)
{
    const bool has = box->can & CAN_DESCRIPTORS;

    if (has && (request->op == FILE_LIST || request->op == FILE_PACK ||
                       request->op == FILE_UNPACK || request->op == FILE_REMOVE_TREE))
        return err_set(err, -ENOTSUP, "a directory is reached by its descriptor (FILE_OPEN)");
    if (!has && (request->dir >= 0 || request->op == FILE_WATCH))
        return err_set(err, -ENOTSUP, "it has no descriptors of files to watch or to begin at");
    if (!has && request->op == FILE_OPEN && (request->flags & O_ACCMODE) == O_RDWR)
        return err_set(err, -ENOTSUP, "a file is opened to read or to write, not both");
    return 0;
}

int sandbox_file(struct sandbox *box, const struct file_request *request,
        struct file_answer *answer, struct carrel_error *err)
{
    struct file_answer got = FILE_ANSWER_INIT;

    int r = front_check_running(box, err);
    if (r < 0)
        return r;
    if (!box->ops->file)
        return front_lacks(box->ops, "reach the files of a sandbox", err);
    r = file_check(request, err);
    if (r == 0)
        r = check_descriptors(box, request, err);
    if (r == 0)
        r = box->ops->file(box, request, &got, err);
    if (r < 0)
        return front_fail(box->ops, r, err);
    *answer = got;
    return 0;
}

int sandbox_open_file(
        struct sandbox *box, const char *path, int flags, mode_t mode, struct carrel_error *err)
{
    struct file_request request = FILE_REQUEST_INIT;
    struct file_answer answer = FILE_ANSWER_INIT;

    request.op = FILE_OPEN;
    request.path = path;
    request.flags = flags;
    request.mode = mode;
    int r = sandbox_file(box, &request, &answer, err);
    return r < 0 ? r : answer.fd;
}

int sandbox_pids(struct sandbox *box, pid_t *pids, size_t max, struct carrel_error *err)
{
    int r = front_check_running(box, err);
    if (r < 0)
        return r;
    if (!box->ops->pids || !(box->can & CAN_HOST_PIDS))
        return front_lacks(box->ops, "number the processes of a sandbox on this host", err);
    r = box->ops->pids(box, pids, max, err);
    return r < 0 ? front_fail(box->ops, r, err) : r;
}
