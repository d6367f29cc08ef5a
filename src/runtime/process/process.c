/*
 * process.c - the `process` runtime: programs of the host, for trusted code.
 *
 * There is no isolation. It does provide: a private temporary directory, resource limits, no
 * inherited environment, descriptors, session or signals, no new privileges, and an end that
 * kills every descendant (see supervisor.h). Whatever else a spec asks for is refused: a caller
 * must never believe that a protection is in force which is not.
 *
 * A program of the same user can kill the supervisor. Then its programs are killed too, but not
 * processes that have detached themselves; every call reports that from then on (-EOWNERDEAD).
 */
#include "base/process.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/packet.h"
#include "base/path.h"
#include "base/payload.h"
#include "base/proc_tree.h"
#include "base/tree.h"
#include "runtime/adapters.h"
#include "runtime/file_act.h"
#include "runtime/process/supervisor.h"
#include "runtime/ps.h"
#include "runtime/runtime.h"
#include "runtime/streams.h"
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <linux/sched.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/pidfd.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define STOP_NS                                                                                \
    (10 * UINT64_C(1000000000)) /* a process that survives SIGKILL for longer hangs */

struct process_sandbox {
    struct sandbox base;
    int control;
    int pidfd; /* of the supervisor; -1: there is none to wait for */
    pid_t pid; /* the same one's, until it is reaped */
    int home;  /* paths of requests begin here or in own.workspace */
    char home_path[PATH_MAX];
    char workspace_path[PATH_MAX];
    char user_name[64];
    struct started started;
    struct supervisor own; /* the supervisor has a copy of it */
};

static const struct runtime_ops process_ops;

static struct process_sandbox *process_of(struct sandbox *box)
{
    assert(box->ops == &process_ops);
    return container_of(box, struct process_sandbox, base);
}

/* What replaces each limit: nothing, or a limit of one process. */
static const struct substitute {
    enum limit_holder holder;
    int resource;  /* with HELD_BY_RLIMIT */
    bool is_whole; /* it means the same for one process as for all */
} substitutes[LIMIT_COUNT] = {
    [LIMIT_MEMORY] = { HELD_BY_RLIMIT, RLIMIT_DATA, false },
    [LIMIT_PIDS] = { HELD_BY_NOTHING, 0, false }, /* RLIMIT_NPROC counts all of the user's */
    [LIMIT_CPU] = { HELD_BY_NOTHING, 0, false },  /* RLIMIT_CPU is an amount, not a rate */
    [LIMIT_DISK] = { HELD_BY_RLIMIT, RLIMIT_FSIZE, false }, /* of each file */
    [LIMIT_FILES] = { HELD_BY_RLIMIT, RLIMIT_NOFILE, true },
    [LIMIT_IO_READ] = { HELD_BY_NOTHING, 0, false },
    [LIMIT_IO_WRITE] = { HELD_BY_NOTHING, 0, false },
};

#define OTHER_USER "user other than the caller"
static int refuse(const char *what, struct carrel_error *err)
{
    return err_set(err, -ENOTSUP,
            "programs run on the host: there is no %s (runtime local has it)", what);
}

/* Refuses everything in a spec that a plain process cannot have. */
static int check_spec(const struct sandbox_spec *spec, struct carrel_error *err)
{
    const unsigned demanded = spec->limits.demanded & ~spec->limits.best_effort;
    const struct sandbox_mount *mount = spec->n_mounts > 0 ? spec->mounts : NULL;
    const struct {
        bool is_wanted;
        const char *what;
    } lacking[] = {
        { spec->root, "other root filesystem" },
        { spec->network != NETWORK_HOST, "network of its own" },
        { spec->ids == IDS_SUB, "range of user ids" },
        { spec->hostname, "host name of its own" },
        { spec->has_user && (spec->uid != geteuid() || spec->gid != getegid()), OTHER_USER },
        { spec->n_mounts > 1 || (mount && strcmp(mount->target, "/workspace") != 0),
                "mount, only one directory as /workspace" },
        { mount && mount->access != ACCESS_READ_WRITE, "read-only mount" },
    };

    for (size_t i = 0; i < ARRAY_LEN(lacking); i++)
        if (lacking[i].is_wanted)
            return refuse(lacking[i].what, err);
    for (size_t i = 0; i < LIMIT_COUNT; i++)
        if ((demanded & LIMIT_BIT(i)) && !substitutes[i].is_whole)
            return err_set(err, -ENOTSUP,
                    "the %s limit cannot be enforced for the whole sandbox (runtime local can; "
                    "or make it best-effort)",
                    limit_name((enum limit)i));
    return 0;
}

static void add_rlimit(struct supervisor *s, int resource, uint64_t value)
{
    assert(s->n_rlimits < SUPERVISOR_RLIMITS);
    s->rlimits[s->n_rlimits++] = (struct spawn_rlimit){ resource, value };
}

static void choose_limits(
        const struct sandbox_limits *limits, struct sandbox *box, struct supervisor *s)
{
    for (size_t i = 0; i < LIMIT_COUNT; i++) {
        if (substitutes[i].holder == HELD_BY_NOTHING || limits->value[i] == 0)
            continue;
        box->held_by[i] = substitutes[i].holder;
        add_rlimit(s, substitutes[i].resource, limits->value[i]);
    }
    /* Smaller than any core file, and exactly 1 also disables core_pattern's pipes; core(5). */
    add_rlimit(s, RLIMIT_CORE, 1);
    add_rlimit(s, RLIMIT_MEMLOCK, 64U << 10);
    add_rlimit(s, RLIMIT_MSGQUEUE, 800U << 10);

    box->protections = PROTECT_BIT(PROTECT_NO_NEW_PRIVS) | PROTECT_BIT(PROTECT_ENVIRONMENT) |
                       PROTECT_BIT(PROTECT_DESCRIPTORS);
    if (box->held_by[LIMIT_FILES] == HELD_BY_RLIMIT)
        box->protections |= PROTECT_BIT(PROTECT_RLIMITS);
}

/* The name of the directory is random: no other process can create it first. */
static int choose_paths(
        struct process_sandbox *box, const struct sandbox_spec *spec, struct carrel_error *err)
{
    const char *workspace = spec->n_mounts > 0 ? spec->mounts[0].source : box->home_path;
    const char *tmp = secure_getenv("TMPDIR");
    struct supervisor *s = &box->own;
    uint64_t random;

    if (!tmp || tmp[0] != '/')
        tmp = "/tmp";
    if (getrandom(&random, sizeof(random), 0) != (ssize_t)sizeof(random))
        return err_set_errno(err, -errno, "random bytes");
    (void)snprintf(
            s->name, sizeof(s->name), "carrel-%.64s-%016jx", spec->id, (uintmax_t)random);
    if (!path_absolute(tmp, s->name, box->home_path, sizeof(box->home_path)) ||
            !path_absolute("/", workspace, box->workspace_path, sizeof(box->workspace_path)))
        return err_set_errno(err, -ENAMETOOLONG, "the workspace");
    s->parent = open(tmp, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (s->parent < 0)
        return err_set_errno(err, -errno, "temporary directory '%s'", tmp);
    if (spec->n_mounts == 0)
        return 0;
    s->workspace = open(workspace, O_PATH | O_DIRECTORY | O_CLOEXEC);
    return s->workspace < 0 ? err_set_errno(err, -errno, "workspace '%s'", workspace) : 0;
}

static int lose_supervisor(int r, struct carrel_error *err)
{
    if (r != -EPIPE)
        return err_set_errno(err, r, "talk to the supervisor");
    return err_set(err, -EOWNERDEAD,
            "the supervisor was killed; programs that detached themselves may still run");
}

/* Waits for the answer. -ETIME: it did not come before the deadline. */
static int receive(struct process_sandbox *box, uint64_t deadline_ns, struct answer *answer,
        struct carrel_error *err)
{
    struct pollfd fd = { .fd = box->control, .events = POLLIN };
    int n;

    do {
        n = poll(&fd, 1, clock_poll_ms(deadline_ns));
    } while (n < 0 && errno == EINTR);
    if (n == 0)
        return -ETIME;
    int r = packet_receive(box->control, answer, sizeof(*answer), NULL, 0, 0);
    if (r < 0)
        return lose_supervisor(r, err);
    if (answer->error.code < 0 && err)
        *err = answer->error;
    return answer->error.code;
}

static int ask(struct process_sandbox *box, const struct order *order, const int *fds,
        size_t n_fds, uint64_t deadline_ns, struct answer *answer, struct carrel_error *err)
{
    int r = packet_send(box->control, order, sizeof(*order), fds, n_fds, 0);

    return r < 0 ? lose_supervisor(r, err) : receive(box, deadline_ns, answer, err);
}

/*
 * Waits for the supervisor, which has seen our end of the socket close. Returns whether it was
 * killed.
 */
static bool reap_supervisor(struct process_sandbox *box)
{
    siginfo_t info = { 0 };
    int r;

    do {
        r = waitid(P_PIDFD, (id_t)box->pidfd, &info, WEXITED | __WALL);
    } while (r < 0 && errno == EINTR);
    return r < 0 || info.si_code != CLD_EXITED;
}

static void box_free(struct process_sandbox *box)
{
    if (!box)
        return;
    fd_close(box->control); /* the supervisor kills everything and cleans up */
    if (box->pidfd >= 0 && reap_supervisor(box))
        (void)tree_remove(
                box->own.parent, box->own.name, NULL); /* on its behalf; best effort */
    const int fds[] = { box->pidfd, box->home, box->base.event_fd, box->own.control,
        box->own.events, box->own.owner, box->own.parent, box->own.workspace };
    for (size_t i = 0; i < ARRAY_LEN(fds); i++)
        fd_close(fds[i]);
    started_finish(&box->started);
    free(box);
}
DEFINE_AUTO(struct process_sandbox *, box_free)

static void process_free(struct sandbox *base)
{
    box_free(process_of(base));
}

static int make_pair(int *ours, int *theirs)
{
    int fds[2] = { -1, -1 };
    int r = socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds);

    *ours = fds[0];
    *theirs = fds[1];
    return r;
}

/*
 * Starts the supervisor and waits until it is ready. Without an exit signal, so the caller gets
 * no SIGCHLD for it and its wait(2) for any child does not reap it.
 */
static int start_supervisor(struct process_sandbox *box, struct carrel_error *err)
{
    struct supervisor *s = &box->own;
    struct answer ready;
    sigset_t before;

    s->owner = pidfd_open(getpid(), 0);
    if (s->owner < 0 || make_pair(&box->control, &s->control) < 0 ||
            make_pair(&box->base.event_fd, &s->events) < 0)
        return err_set_errno(err, -errno, "connect the supervisor");
    signals_block(&before);
    long pid = syscall(SYS_clone, (long)CLONE_PIDFD, NULL, &box->pidfd, NULL, 0L);
    if (pid == 0)
        supervisor_run(s);
    signals_unblock(&before);
    if (pid < 0)
        return err_set_errno(err, -errno, "start the supervisor");
    box->pid = (pid_t)pid;
    fd_close(fd_steal(&s->control)); /* else its death would not close the connection */
    fd_close(fd_steal(&s->events));
    return receive(box, CLOCK_NEVER, &ready, err);
}

static int process_create(struct runtime *rt, const struct sandbox_spec *spec,
        struct sandbox **out, struct carrel_error *err)
{
    const char *user = getenv("USER"); /* for $USER only: no name service, no plug-ins */

    int r = check_spec(spec, err);
    if (r < 0)
        return r;
    AUTO(box_free) struct process_sandbox *box = calloc(1, sizeof(*box));
    if (!box)
        return err_set_errno(err, -ENOMEM, "create a sandbox");
    struct supervisor *s = &box->own;
    sandbox_init(&box->base, rt->ops);
    box->control = box->pidfd = box->home = -1;
    s->control = s->events = s->owner = s->parent = s->workspace = -1;
    box->base.workspace = box->workspace_path;
    box->base.home = box->home_path;
    box->base.user_name = box->user_name;
    (void)snprintf(box->user_name, sizeof(box->user_name), "%s", user ? user : "");
    if (!box->user_name[0])
        (void)snprintf(box->user_name, sizeof(box->user_name), "%u", (unsigned)geteuid());

    choose_limits(&spec->limits, &box->base, s);
    r = choose_paths(box, spec, err);
    if (r == 0)
        r = start_supervisor(box, err);
    if (r < 0)
        return r;
    box->home = openat(s->parent, s->name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (s->workspace < 0)
        s->workspace = fcntl(box->home, F_DUPFD_CLOEXEC, 3);
    if (box->home < 0 || s->workspace < 0)
        return err_set_errno(err, -errno, "open '%s'", box->home_path);
    *out = &ptr_steal(&box)->base;
    return 0;
}

static int open_terminal(
        const struct process_spec *spec, struct streams *streams, struct carrel_error *err)
{
    int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);

    streams->ours.stdin_fd = master;
    streams->ours.stdout_fd = fcntl(master, F_DUPFD_CLOEXEC, 3);
    if (streams->ours.stdout_fd < 0)
        return err_set_errno(err, -errno, "open a terminal");
    streams->theirs[0] = spawn_terminal(master, spec->rows, spec->cols, err);
    return streams->theirs[0] < 0 ? streams->theirs[0] : 0;
}

static int process_start(struct sandbox *base, const struct process_spec *spec,
        struct process *out, struct carrel_error *err)
{
    struct process_sandbox *box = process_of(base);
    const struct order order = {
        .kind = ORDER_START, .has_tty = spec->has_tty, .n_extra = spec->n_extra
    };
    struct answer answer = { 0 };
    AUTO(streams_close) struct streams streams = STREAMS_INIT;

    if (spec->has_user && (spec->uid != geteuid() || spec->gid != getegid()))
        return refuse(OTHER_USER, err);
    int r = spec->has_tty ? open_terminal(spec, &streams, err) : 0;
    if (r == 0)
        r = streams_open(&streams, spec, err);
    if (r < 0)
        return r;
    AUTO(fd_close)
    int payload = payload_make(spec->cwd ? spec->cwd : "", spec->argv, spec->env, err);
    if (payload < 0)
        return payload;
    int fds[ORDER_FDS] = { payload };
    const size_t n_fds = streams_add_theirs(&streams, fds, 1);
    r = started_reserve(&box->started, err);
    if (r == 0)
        r = ask(box, &order, fds, n_fds, CLOCK_NEVER, &answer, err);
    if (r < 0)
        return r;
    started_add(&box->started, answer.process, answer.pid);
    *out = streams_steal(&streams, answer.process);
    return 0;
}

static int process_next_event(
        struct sandbox *base, struct sandbox_event *event, struct carrel_error *err)
{
    int r = packet_receive(base->event_fd, event, sizeof(*event), NULL, 0, MSG_DONTWAIT);

    if (r < 0)
        return r == -EAGAIN ? 0 : lose_supervisor(r, err);
    started_remove(&process_of(base)->started, event->process);
    return 0;
}

static int process_signal(
        struct sandbox *base, uint32_t process, int signal, struct carrel_error *err)
{
    const struct order order = { .kind = ORDER_SIGNAL, .process = process, .signal = signal };
    struct answer answer = { 0 };

    if (process == SANDBOX_ALL)
        return err_set(err, -ENOTSUP, "cannot tell its processes from others");
    return ask(process_of(base), &order, NULL, 0, CLOCK_NEVER, &answer, err);
}

static int process_stop(
        struct sandbox *base, struct sandbox_usage *usage, struct carrel_error *err)
{
    struct process_sandbox *box = process_of(base);
    const struct order order = { .kind = ORDER_STOP };
    struct answer answer = { 0 };
    struct sandbox_event event;

    (void)pidfd_send_signal(box->pidfd, SIGCONT, NULL, 0); /* a program may have stopped it */
    int r = ask(box, &order, NULL, 0, clock_ns() + STOP_NS, &answer, err);
    if (r == -ETIME) {
        /* The supervisor continues to try, and cleans up, but this does not wait for it. */
        fd_close(fd_steal(&box->pidfd));
        return err_set(err, -ETIMEDOUT, "some processes hang in the kernel and do not end");
    }
    if (r < 0)
        return r;
    while (packet_receive(base->event_fd, &event, sizeof(event), NULL, 0, MSG_DONTWAIT) >= 0)
        ; /* after a stop there are no events */
    *usage = answer.usage;
    return 0;
}

/* Where a path of a request begins; relative ones in the workspace. */
static int begin_at(const struct process_sandbox *box, const char *path,
        struct file_where *where, struct carrel_error *err)
{
    bool is_home = path_is_below(path, box->home_path);
    const char *top = is_home ? box->home_path : box->workspace_path;

    *where = (struct file_where){ is_home ? box->home : box->own.workspace, path };
    if (path[0] != '/')
        return 0;
    if (!path_is_below(path, top))
        return err_set(err, -ENOTSUP, "only files below '%s' can be opened, not '%s'",
                box->workspace_path, path);
    where->path += strlen(top);
    where->path += strspn(where->path, "/");
    if (!where->path[0])
        where->path = ".";
    return 0;
}

/*
 * Accesses a file below the workspace or the home. Programs may change any name there at any
 * time, so the kernel enforces the containment: a link or ".." that leads out is -EXDEV.
 */
static int process_file(struct sandbox *base, const struct file_request *request,
        struct file_answer *answer, struct carrel_error *err)
{
    struct process_sandbox *box = process_of(base);
    struct file_where where[2] = { { request->dir, request->path },
        { request->dir, request->other } };

    if (request->has_user && (request->uid != geteuid() || request->gid != getegid()))
        return err_set(err, -EPERM, "there is no user here but the caller's");
    if (request->dir >= 0)
        return file_act(request, where, file_resolve_beneath(), answer, err);
    int r = begin_at(box, request->path, &where[0], err);
    if (r == 0 && (request->op == FILE_RENAME || request->op == FILE_LINK))
        r = begin_at(box, request->other, &where[1], err);
    return r < 0 ? r : file_act(request, where, RESOLVE_BENEATH, answer, err);
}

static int process_pids(struct sandbox *base, pid_t *pids, size_t max, struct carrel_error *err)
{
    struct process_sandbox *box = process_of(base);

    int r = box->pidfd < 0 ? -ESRCH : proc_tree_list(box->pid, pids, max);
    return r < 0 ? err_set_errno(err, r, "list the processes below the supervisor") : r;
}

/* The host's view is used. Namespaces that a program created are ignored. */
static int process_ps(
        struct sandbox *base, struct sandbox_process *out, size_t max, struct carrel_error *err)
{
    int n = ps_list(base, out, max, err);

    for (int i = 0; i < n; i++) {
        out[i].inner_pid = out[i].pid;
        if (out[i].inner_parent == 0)
            out[i].process = started_find(&process_of(base)->started, out[i].pid);
    }
    return n;
}

static const struct runtime_ops process_ops = {
    .name = "process",
    .isolation = ISOLATION_NONE,
    .can = CAN_MOUNT | CAN_DESCRIPTORS | CAN_HOST_PIDS | CAN_START_EARLY,
    .create = process_create,
    .start = process_start,
    .next_event = process_next_event,
    .signal = process_signal,
    .stop = process_stop,
    .free = process_free,
    .file = process_file,
    .ps = process_ps,
    .pids = process_pids,
};

struct runtime process_runtime = { .ops = &process_ops };
