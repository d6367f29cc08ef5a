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
#include <sys/ioctl.h>
#include <sys/pidfd.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define STOP_NS                                                                                \
    (UINT64_C(10) * 1000000000) /* what SIGKILL does not end by then hangs in the kernel */

struct process_sandbox {
    struct sandbox base;
    int control;
    int pidfd;  /* of the supervisor; -1: there is none to wait for */
    pid_t pid;  /* the same one's, until it is reaped */
    int parent; /* directory that holds `name` */
    int workspace;
    char name[128]; /* of the own directory */
    char home_path[PATH_MAX];
    char workspace_path[PATH_MAX];
    char user_name[64];
    struct started started;
};

static const struct runtime_ops process_ops;

static struct process_sandbox *process_of(struct sandbox *box)
{
    assert(box->ops == &process_ops);
    return container_of(box, struct process_sandbox, base);
}

/* What holds each limit here; only `files` means the same for one process as for all. */
struct substitute {
    enum limit limit;
    enum limit_holder holder;
    __rlimit_resource_t resource; /* with HELD_BY_RLIMIT */
    bool is_whole;                /* as good as demanded */
};

static const struct substitute substitutes[LIMIT_COUNT] = {
    { LIMIT_MEMORY, HELD_BY_RLIMIT, RLIMIT_DATA, false }, /* of each process */
    { LIMIT_PIDS, HELD_BY_NOTHING, 0,
            false },                          /* RLIMIT_NPROC counts all the user's processes */
    { LIMIT_CPU, HELD_BY_NOTHING, 0, false }, /* RLIMIT_CPU is an amount, not a rate */
    { LIMIT_DISK, HELD_BY_RLIMIT, RLIMIT_FSIZE, false }, /* of each file */
    { LIMIT_FILES, HELD_BY_RLIMIT, RLIMIT_NOFILE, true },
};

static int refuse(const char *what, struct carrel_error *err)
{
    return err_set(err, -ENOTSUP,
            "programs run on the host: there is no %s (runtime local has it)", what);
}

/* Refuses everything in a spec that a plain process cannot have. */
static int check_spec(const struct sandbox_spec *spec, struct carrel_error *err)
{
    const unsigned demanded = spec->limits.demanded & ~spec->limits.best_effort;

    if (spec->root || spec->root_overlay)
        return refuse("other root filesystem", err);
    if (spec->space)
        return refuse("private space that is kept", err);
    if (spec->network != NETWORK_HOST)
        return refuse("network of its own", err);
    if (spec->ids == IDS_SUB)
        return refuse("range of user ids", err);
    if (spec->hostname)
        return refuse("host name of its own", err);
    if (spec->has_user && (spec->uid != geteuid() || spec->gid != getegid()))
        return refuse("user other than the caller", err);
    for (size_t i = 0; i < spec->n_mounts; i++) {
        if (strcmp(spec->mounts[i].target, "/workspace") != 0 || i > 0)
            return refuse("mount, only one directory as /workspace", err);
        if (spec->mounts[i].overlay)
            return refuse("copy-on-write tree", err);
        if (spec->mounts[i].access != ACCESS_READ_WRITE)
            return refuse("read-only mount", err);
    }
    for (size_t i = 0; i < LIMIT_COUNT; i++)
        if ((demanded & LIMIT_BIT(substitutes[i].limit)) && !substitutes[i].is_whole)
            return err_set(err, -ENOTSUP,
                    "the %s limit cannot be held for the whole sandbox (runtime local can; or "
                    "make it best-effort)",
                    limit_name(substitutes[i].limit));
    return 0;
}

static void add_rlimit(struct supervisor *s, __rlimit_resource_t resource, uint64_t value)
{
    assert(s->n_rlimits < SUPERVISOR_RLIMITS);
    s->rlimits[s->n_rlimits++] = (struct launch_rlimit){ resource, value };
}

static void choose_limits(
        const struct sandbox_limits *limits, struct sandbox *box, struct supervisor *s)
{
    for (size_t i = 0; i < LIMIT_COUNT; i++) {
        const struct substitute *row = &substitutes[i];
        bool is_held = row->holder != HELD_BY_NOTHING && limits->value[row->limit] > 0;
        box->held_by[row->limit] = is_held ? row->holder : HELD_BY_NOTHING;
        if (is_held)
            add_rlimit(s, row->resource, limits->value[row->limit]);
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
    const char *tmp = secure_getenv("TMPDIR");
    uint64_t random;

    if (!tmp || tmp[0] != '/')
        tmp = "/tmp";
    if (getrandom(&random, sizeof(random), 0) != (ssize_t)sizeof(random))
        return err_set_errno(err, -errno, "random bytes");
    (void)snprintf(
            box->name, sizeof(box->name), "carrel-%.64s-%016jx", spec->id, (uintmax_t)random);

    const char *workspace = spec->n_mounts > 0 ? spec->mounts[0].source : NULL;
    if (!path_absolute(tmp, box->name, box->home_path, sizeof(box->home_path)) ||
            !path_absolute("/", workspace ? workspace : box->home_path, box->workspace_path,
                    sizeof(box->workspace_path)))
        return err_set_errno(err, -ENAMETOOLONG, "the workspace");
    box->parent = open(tmp, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (box->parent < 0)
        return err_set_errno(err, -errno, "temporary directory '%s'", tmp);
    if (!workspace)
        return 0;
    box->workspace = open(workspace, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (box->workspace < 0)
        return err_set_errno(err, -errno, "workspace '%s'", workspace);
    return 0;
}

/* For $USER only, so what the caller calls itself will do: no name service, no plug-ins. */
static void choose_user(struct process_sandbox *box)
{
    const char *name = getenv("USER");

    if (name && name[0])
        (void)snprintf(box->user_name, sizeof(box->user_name), "%s", name);
    else
        (void)snprintf(box->user_name, sizeof(box->user_name), "%u", (unsigned)geteuid());
}

/*
 * Starts the supervisor. Its exit signal is none, so the caller gets no SIGCHLD for it and a
 * wait(2) of the caller's for any child does not take it away.
 */
static int spawn(struct process_sandbox *box, struct supervisor *s, struct carrel_error *err)
{
    sigset_t before;
    int pidfd = -1;

    signals_block(&before);
    long pid = syscall(SYS_clone, (long)CLONE_PIDFD, NULL, &pidfd, NULL, 0L);
    if (pid == 0)
        supervisor_run(s);
    int r = pid < 0 ? -errno : 0;
    signals_unblock(&before);
    if (r < 0)
        return err_set_errno(err, r, "start the supervisor");
    box->pidfd = pidfd;
    box->pid = (pid_t)pid;
    return 0;
}

static int supervisor_is_gone(struct carrel_error *err)
{
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
    if (r == -EPIPE)
        return supervisor_is_gone(err);
    if (r < 0)
        return err_set_errno(err, r, "hear from the supervisor");
    if (answer->error.code < 0 && err)
        *err = answer->error;
    return answer->error.code;
}

static int ask(struct process_sandbox *box, const struct order *order, const int *fds,
        size_t n_fds, struct answer *answer, struct carrel_error *err)
{
    int r = packet_send(box->control, order, sizeof(*order), fds, n_fds, 0);
    if (r == -EPIPE)
        return supervisor_is_gone(err);
    if (r < 0)
        return err_set_errno(err, r, "speak to the supervisor");
    return receive(box, CLOCK_NEVER, answer, err);
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

static void process_free(struct sandbox *base)
{
    struct process_sandbox *box = process_of(base);

    fd_close(fd_steal(&box->control)); /* it takes this as: end everything, clean up, go */
    if (box->pidfd >= 0 && reap_supervisor(box))
        (void)tree_remove(box->parent, box->name, NULL); /* in its place; best effort */
    fd_close(box->pidfd);
    fd_close(box->parent);
    fd_close(box->workspace);
    fd_close(base->event_fd);
    started_finish(&box->started);
    free(box);
}

static void box_free(struct process_sandbox *box)
{
    if (box)
        process_free(&box->base);
}
DEFINE_AUTO(struct process_sandbox *, box_free)

static int pair(int *ours, int *theirs, struct carrel_error *err)
{
    int fds[2];

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) < 0)
        return err_set_errno(err, -errno, "make a socket");
    *ours = fds[0];
    *theirs = fds[1];
    return 0;
}

/* The supervisor and our connection to it. When this returns it is ready. */
static int connect_supervisor(
        struct process_sandbox *box, struct supervisor *s, struct carrel_error *err)
{
    AUTO(fd_close) int control = -1;
    AUTO(fd_close) int events = -1;
    AUTO(fd_close) int owner = pidfd_open(getpid(), 0);
    struct answer ready;

    if (owner < 0)
        return err_set_errno(err, -errno, "pidfd_open");
    int r = pair(&box->control, &control, err);
    if (r == 0)
        r = pair(&box->base.event_fd, &events, err);
    if (r < 0)
        return r;
    s->control = control;
    s->events = events;
    s->owner = owner;
    s->parent = box->parent;
    s->workspace = box->workspace;
    memcpy(s->name, box->name, sizeof(s->name));
    r = spawn(box, s, err);
    if (r < 0)
        return r;
    fd_close(fd_steal(&control)); /* else its death would not close the connection */
    fd_close(fd_steal(&events));
    return receive(box, CLOCK_NEVER, &ready, err);
}

static int process_create(struct runtime *rt, const struct sandbox_spec *spec,
        struct sandbox **out, struct carrel_error *err)
{
    int r = check_spec(spec, err);
    if (r < 0)
        return r;
    AUTO(box_free) struct process_sandbox *box = calloc(1, sizeof(*box));
    AUTO(free) struct supervisor *supervisor = calloc(1, sizeof(*supervisor));
    if (!box || !supervisor) {
        free(ptr_steal(&box)); /* not yet what box_free takes */
        return err_set_errno(err, -ENOMEM, "create a sandbox");
    }
    box->base.ops = rt->ops;
    box->base.event_fd = box->control = box->pidfd = box->parent = box->workspace = -1;
    box->base.workspace = box->workspace_path;
    box->base.home = box->home_path;
    box->base.user_name = box->user_name;

    choose_user(box);
    choose_limits(&spec->limits, &box->base, supervisor);
    r = choose_paths(box, spec, err);
    if (r == 0)
        r = connect_supervisor(box, supervisor, err);
    if (r < 0)
        return r;
    if (box->workspace < 0)
        box->workspace =
                openat(box->parent, box->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (box->workspace < 0)
        return err_set_errno(err, -errno, "open '%s'", box->workspace_path);
    *out = &ptr_steal(&box)->base;
    return 0;
}

static int open_terminal(
        const struct process_spec *spec, struct streams *streams, struct carrel_error *err)
{
    const struct winsize size = { .ws_row = spec->rows, .ws_col = spec->cols };
    int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);

    streams->ours.stdin_fd = master;
    if (master < 0 || unlockpt(master) < 0 || ioctl(master, TIOCSWINSZ, &size) < 0)
        return err_set_errno(err, -errno, "open a terminal");
    for (size_t i = 0; i < ARRAY_LEN(streams->theirs); i++) {
        streams->theirs[i] = ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
        if (streams->theirs[i] < 0)
            return err_set_errno(err, -errno, "open the terminal's other side");
    }
    streams->ours.stdout_fd = fcntl(master, F_DUPFD_CLOEXEC, 3);
    return streams->ours.stdout_fd < 0 ? err_set_errno(err, -errno, "open a terminal") : 0;
}

static int process_start(struct sandbox *base, const struct process_spec *spec,
        struct process *out, struct carrel_error *err)
{
    struct process_sandbox *box = process_of(base);
    const struct order order = { .kind = ORDER_START, .has_tty = spec->has_tty };
    struct answer answer = { 0 };
    AUTO(streams_close) struct streams streams = STREAMS_INIT;

    if (spec->has_user && (spec->uid != geteuid() || spec->gid != getegid()))
        return refuse("user other than the caller", err);
    int r = spec->has_tty ? open_terminal(spec, &streams, err)
                          : streams_open_pipes(&streams, spec, err);
    if (r < 0)
        return r;
    AUTO(fd_close)
    int payload = payload_make(spec->cwd ? spec->cwd : "", spec->argv, spec->env, err);
    if (payload < 0)
        return payload;
    const int fds[ORDER_FDS] = { payload, streams.theirs[0], streams.theirs[1],
        streams.theirs[2] };
    r = started_reserve(&box->started, err);
    if (r == 0)
        r = ask(box, &order, fds, ORDER_FDS, &answer, err);
    if (r < 0)
        return r;
    started_add(&box->started, answer.process, answer.pid);
    *out = streams_steal(&streams, answer.process);
    return 0;
}

static int process_next_event(
        struct sandbox *base, struct sandbox_event *event, struct carrel_error *err)
{
    struct notice notice;

    int r = packet_receive(base->event_fd, &notice, sizeof(notice), NULL, 0, MSG_DONTWAIT);
    if (r == -EAGAIN)
        return 0;
    if (r == -EPIPE)
        return supervisor_is_gone(err);
    if (r < 0)
        return err_set_errno(err, r, "hear from the supervisor");
    started_remove(&process_of(base)->started, notice.process);
    *event = (struct sandbox_event){
        .kind = EVENT_EXITED,
        .process = notice.process,
        .wait_status = notice.wait_status,
    };
    return 0;
}

static int process_signal(
        struct sandbox *base, uint32_t process, int signal, struct carrel_error *err)
{
    const struct order order = { .kind = ORDER_SIGNAL, .process = process, .signal = signal };

    if (process == SANDBOX_ALL)
        return err_set(err, -ENOTSUP, "cannot tell its processes from others");
    struct answer answer = { 0 };

    return ask(process_of(base), &order, NULL, 0, &answer, err);
}

static int process_stop(
        struct sandbox *base, struct sandbox_usage *usage, struct carrel_error *err)
{
    struct process_sandbox *box = process_of(base);
    const struct order order = { .kind = ORDER_STOP };
    struct answer answer = { 0 };
    struct notice notice;

    (void)pidfd_send_signal(box->pidfd, SIGCONT, NULL, 0); /* a program may have stopped it */
    int r = packet_send(box->control, &order, sizeof(order), NULL, 0, 0);
    if (r == -EPIPE)
        return supervisor_is_gone(err);
    if (r < 0)
        return err_set_errno(err, r, "speak to the supervisor");
    r = receive(box, clock_ns() + STOP_NS, &answer, err);
    if (r == -ETIME) {
        /* The supervisor continues to try, and cleans up, but this does not wait for it. */
        fd_close(fd_steal(&box->pidfd));
        return err_set(err, -ETIMEDOUT, "some processes hang in the kernel and do not end");
    }
    if (r < 0)
        return r;
    while (packet_receive(base->event_fd, &notice, sizeof(notice), NULL, 0, MSG_DONTWAIT) >= 0)
        ; /* after a stop there are no events */
    *usage = answer.usage;
    return 0;
}

/* The directory that an absolute path is below, workspace or home, and the rest of the path. */
static int open_top(struct process_sandbox *box, const char **path, struct carrel_error *err)
{
    bool is_home = path_is_below(*path, box->home_path);
    const char *top = is_home ? box->home_path : box->workspace_path;

    if (!path_is_below(*path, top))
        return err_set(err, -ENOTSUP, "only files below '%s' can be opened, not '%s'",
                box->workspace_path, *path);
    *path += strlen(top);
    *path += strspn(*path, "/");
    int fd = is_home ? openat(box->parent, box->name,
                               O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
                     : fcntl(box->workspace, F_DUPFD_CLOEXEC, 3);
    return fd < 0 ? err_set_errno(err, -errno, "open '%s'", top) : fd;
}

/* Where a path of a request begins; relative ones in the workspace. */
static int begin_at(struct process_sandbox *box, const char *path, struct file_where *where,
        int *top, struct carrel_error *err)
{
    const char *below = path;

    if (path[0] == '/') {
        *top = open_top(box, &below, err);
        if (*top < 0)
            return *top;
    }
    where->base = *top < 0 ? box->workspace : *top;
    where->path = below[0] ? below : ".";
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
    AUTO(fd_close) int top = -1;
    AUTO(fd_close) int other_top = -1;
    int r = 0;

    if (request->has_user && (request->uid != geteuid() || request->gid != getegid()))
        return err_set(err, -EPERM, "there is no user here but the caller's");
    if (request->dir >= 0)
        return file_act(request, where, file_resolve_beneath(), answer, err);
    r = begin_at(box, request->path, &where[0], &top, err);
    if (r == 0 && (request->op == FILE_RENAME || request->op == FILE_LINK))
        r = begin_at(box, request->other, &where[1], &other_top, err);
    return r < 0 ? r : file_act(request, where, RESOLVE_BENEATH, answer, err);
}

static int process_pids(struct sandbox *base, pid_t *pids, size_t max, struct carrel_error *err)
{
    struct process_sandbox *box = process_of(base);

    int r = box->pidfd < 0 ? -ESRCH : proc_tree_list(box->pid, pids, max);
    return r < 0 ? err_set_errno(err, r, "list the processes below the supervisor") : r;
}

/* The host's view is used. Namespaces that a program created are ignored. */
static void process_describe(struct sandbox *base, struct sandbox_process *process)
{
    process->inner_pid = process->pid;
    if (process->inner_parent == 0)
        process->process = started_find(&process_of(base)->started, process->pid);
}

static const struct runtime_ops process_ops = {
    .name = "process",
    .isolation = ISOLATION_NONE,
    .create = process_create,
    .start = process_start,
    .next_event = process_next_event,
    .signal = process_signal,
    .stop = process_stop,
    .free = process_free,
    .file = process_file,
    .pids = process_pids,
    .describe = process_describe,
};

struct runtime process_runtime = { .ops = &process_ops };
