/*
 * program.c - start, pump, reap.
 *
 * One loop serves all three streams and the process, so there can be no deadlock. stdin is a
 * socket, not a pipe: a write to a program that has exited returns an error, and raises no
 * signal in the process that carrel is part of.
 */
#include "git/program.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/process.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHUNK_BYTES ((size_t)64 << 10)
#define STACK_BYTES ((size_t)64 << 10)
#define GRACE_MS 2000 /* between SIGTERM, on which git removes its lock files, and SIGKILL */

/* Arguments of the new process. It shares our memory until exec and must not allocate. */
struct child {
    const struct program *program;
    int streams[3];
    pid_t parent;
    int error; /* why exec did not happen */
};

static int set_limit(__rlimit_resource_t resource, uint64_t bytes)
{
    struct rlimit limit;

    if (bytes == 0)
        return 0;
    if (getrlimit(resource, &limit) < 0)
        return -errno;
    /* Never raise the limit: that would need a privilege. */
    if (limit.rlim_max > bytes)
        limit.rlim_max = bytes;
    limit.rlim_cur = limit.rlim_max;
    return setrlimit(resource, &limit) < 0 ? -errno : 0;
}

static int prepare(struct child *child)
{
    const struct program *program = child->program;
    sigset_t none;
    int r;

    signals_reset();
    /*
     * A killed carrel must not leave a process that writes where the next one sweeps. SIGTERM,
     * because git removes its lock files then; but it can miss one that it is just creating, so
     * a command that changes a ref is allowed to finish.
     */
    if (!program->finishes && prctl(PR_SET_PDEATHSIG, SIGTERM) < 0)
        return -errno;
    if (!program->finishes && getppid() != child->parent)
        return -ECHILD;
    for (int fd = 0; fd < 3; fd++) /* all of ours are above 2: none is overwritten */
        if (dup2(child->streams[fd], fd) < 0)
            return -errno;
    if (close_range(3, ~0U, CLOSE_RANGE_CLOEXEC) < 0) /* also those that our caller inherited */
        return -errno;
    if (chdir(program->cwd) < 0)
        return -errno;
    r = set_limit(RLIMIT_CORE, 1); /* it reads untrusted data; not 0: see core(5) */
    if (r == 0)
        r = set_limit(RLIMIT_DATA, program->max_memory_bytes);
    if (r == 0)
        r = set_limit(RLIMIT_FSIZE, program->max_file_bytes);
    if (r < 0)
        return r;
    (void)sigemptyset(&none);
    return sigprocmask(SIG_SETMASK, &none, NULL) < 0 ? -errno : 0;
}

static int run_child(void *context)
{
    struct child *child = context;
    const struct program *program = child->program;

    child->error = prepare(child);
    if (child->error == 0) {
        union {
            const char *const *given;
            char *const *taken;
        } argv = { .given = program->argv }, env = { .given = program->env };
        (void)execve(program->path, argv.taken, env.taken);
        child->error = -errno;
    }
    _exit(127);
}

/* Starts the process and returns its pidfd. The parent waits until exec or failure. */
static int start(struct child *child, pid_t *pid, struct carrel_error *err)
{
    AUTO(free) char *stack = malloc(STACK_BYTES);
    sigset_t before;
    int pidfd = -1;

    if (!stack)
        return err_set_errno(err, -ENOMEM, "start %s", child->program->name);

    signals_block(&before);
    *pid = clone(run_child, stack + STACK_BYTES, CLONE_VM | CLONE_VFORK | CLONE_PIDFD | SIGCHLD,
            child, &pidfd);
    int r = *pid < 0 ? -errno : 0;
    signals_unblock(&before);

    if (r < 0)
        return err_set_errno(err, r, "start %s", child->program->name);
    if (child->error < 0) {
        fd_close(pidfd);
        (void)waitpid(*pid, NULL, 0);
        return err_set_errno(
                err, child->error, "start %s (%s)", child->program->name, child->program->path);
    }
    return pidfd;
}

/* Our ends of the streams; -1: closed or unused. */
struct pump {
    const struct program *program;
    struct carrel_error *err;
    int in, out, complaints, process;
    char *chunk;        /* bytes from the source that were not yet sent */
    const char *unsent; /* points into chunk or into input */
    size_t n_unsent;
    char *received;
    bool is_stopping;
};

static void close_end(int *fd)
{
    fd_close(*fd);
    *fd = -1;
}

/* Sends what fits. Returns a negative errno only if the source failed. */
static int feed(struct pump *pump)
{
    const struct program *program = pump->program;

    if (pump->n_unsent == 0 && program->source) {
        ssize_t n = program->source(program->context, pump->chunk, CHUNK_BYTES, pump->err);
        if (n < 0)
            return (int)n;
        pump->unsent = pump->chunk;
        pump->n_unsent = (size_t)n;
    }
    if (pump->n_unsent == 0) {
        close_end(&pump->in);
        return 0;
    }

    ssize_t n = send(pump->in, pump->unsent, pump->n_unsent, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n >= 0) {
        pump->unsent += n;
        pump->n_unsent -= (size_t)n;
    } else if (errno != EAGAIN && errno != EINTR && errno != ENOBUFS) {
        close_end(&pump->in); /* it reads no more; its status tells why */
    }
    return 0;
}

/* Keeps the last bytes: the reason is at the end of a long output. */
static void keep_tail(struct buf *tail, const char *data, size_t len)
{
    if (len > tail->max) {
        data += len - tail->max;
        len = tail->max;
    }
    if (tail->len + len > tail->max) {
        size_t surplus = tail->len + len - tail->max;
        memmove(tail->data, tail->data + surplus, tail->len - surplus);
        tail->len -= surplus;
    }
    buf_add(tail, data, len);
}

static int take(struct pump *pump, bool is_output, size_t len)
{
    const struct program *program = pump->program;

    if (!is_output) {
        keep_tail(program->complaints, pump->received, len);
        return 0;
    }
    if (pump->is_stopping)
        return 0;
    if (program->sink)
        return program->sink(program->context, pump->received, len, pump->err);
    buf_add(program->output, pump->received, len);
    if (program->output->is_short)
        return err_set(pump->err, -EFBIG, "%s printed more than %zu bytes", program->name,
                program->output->max);
    return 0;
}

/* Reads once. Returns 1 if there was data, 0 if there is none now or at the end. */
static int listen_once(struct pump *pump, int *fd)
{
    ssize_t n = read(*fd, pump->received, CHUNK_BYTES);

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    if (n <= 0) {
        close_end(fd);
        return 0;
    }
    int r = take(pump, fd == &pump->out, (size_t)n);
    return r < 0 ? r : 1;
}

/*
 * The program has exited; its last output is still in the pipes. A background process of it may
 * hold them open, so read only until they are empty, not to the end.
 */
static int drain(struct pump *pump)
{
    int *ends[] = { &pump->out, &pump->complaints };

    for (size_t i = 0; i < ARRAY_LEN(ends); i++)
        while (*ends[i] >= 0) {
            int r = listen_once(pump, ends[i]);
            if (r < 0)
                return r;
            if (r == 0)
                break;
        }
    return 0;
}

/* Serves the streams until the process exits: 0, or -ETIMEDOUT without a message. */
static int serve(struct pump *pump, uint64_t deadline_ns)
{
    for (;;) {
        struct pollfd fds[] = {
            { .fd = pump->process, .events = POLLIN },
            { .fd = pump->in, .events = POLLOUT },
            { .fd = pump->out, .events = POLLIN },
            { .fd = pump->complaints, .events = POLLIN },
        };
        int r = 0;

        int n = poll(fds, ARRAY_LEN(fds), clock_poll_ms(deadline_ns));
        if (n < 0 && errno != EINTR)
            return err_set_errno(pump->err, -errno, "wait for %s", pump->program->name);
        if (n < 0)
            continue;
        if (fds[1].revents)
            r = feed(pump);
        if (r >= 0 && fds[2].revents)
            r = listen_once(pump, &pump->out);
        if (r >= 0 && fds[3].revents)
            r = listen_once(pump, &pump->complaints);
        if (r < 0)
            return r;
        if (fds[0].revents)
            return drain(pump);
        if (deadline_ns != CLOCK_NEVER && clock_ns() >= deadline_ns)
            return -ETIMEDOUT;
    }
}

static void stop(struct pump *pump)
{
    struct carrel_error *err = pump->err;

    pump->is_stopping = true;
    pump->err = NULL; /* the reason was reported already */
    close_end(&pump->in);
    (void)syscall(SYS_pidfd_send_signal, pump->process, SIGTERM, NULL, 0);
    if (serve(pump, clock_ns() + (uint64_t)GRACE_MS * 1000000) < 0)
        (void)syscall(SYS_pidfd_send_signal, pump->process, SIGKILL, NULL, 0);
    pump->err = err;
}

/*
 * Where SIGCHLD is ignored the kernel discards the status of the program. The disposition is
 * that of the whole process, so it is not ours to change.
 */
static int check_sigchld(const char *name, struct carrel_error *err)
{
    struct sigaction now;

    if (sigaction(SIGCHLD, NULL, &now) < 0 ||
            (now.sa_handler != SIG_IGN && !(now.sa_flags & SA_NOCLDWAIT)))
        return 0;
    return err_set(err, -EINVAL,
            "this process ignores SIGCHLD, so the exit status of %s would be lost; set the "
            "signal to SIG_DFL, or handle it",
            name);
}

static int reap(pid_t pid, const char *name, struct carrel_error *err)
{
    int status;

    for (;;) {
        if (waitpid(pid, &status, 0) == pid)
            break;
        /* Another thread of the caller waits for every child. */
        if (errno != EINTR)
            return err_set_errno(err, -errno, "learn how %s ended", name);
    }
    if (WIFSIGNALED(status))
        return err_set(err, -EINTR, "%s was killed by signal %d (%s)", name, WTERMSIG(status),
                strsignal(WTERMSIG(status)));
    return WEXITSTATUS(status);
}

static int pump_run(struct pump *pump, pid_t pid)
{
    const struct program *program = pump->program;
    uint64_t deadline_ns = CLOCK_NEVER;
    int r;

    if (program->timeout_ms > 0)
        deadline_ns = clock_ns() + (uint64_t)program->timeout_ms * 1000000;
    r = serve(pump, deadline_ns);
    if (r == -ETIMEDOUT)
        (void)err_set(pump->err, r, "%s took longer than %u ms and was killed", program->name,
                program->timeout_ms);
    if (r < 0) {
        stop(pump);
        (void)reap(pid, program->name, NULL);
        return r;
    }
    return reap(pid, program->name, pump->err);
}

/*
 * Moves *fd above the three standard streams: a process that was started without them may have
 * it there.
 */
static int move_above_streams(int *fd)
{
    if (*fd > 2)
        return 0;
    int high = fcntl(*fd, F_DUPFD_CLOEXEC, 3);
    if (high < 0)
        return -errno;
    fd_close(*fd);
    *fd = high;
    return 0;
}

static int make_socket(int *ours, int *theirs)
{
    int ends[2];

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
        return -errno;
    *ours = ends[0];
    *theirs = ends[1];
    (void)shutdown(*ours, SHUT_RD);
    int r = move_above_streams(ours);
    return r < 0 ? r : move_above_streams(theirs);
}

static int make_pipe(int *ours, int *theirs)
{
    int ends[2];

    if (pipe2(ends, O_CLOEXEC) < 0)
        return -errno;
    *ours = ends[0];
    *theirs = ends[1];
    int r = move_above_streams(ours);
    if (r == 0)
        r = move_above_streams(theirs);
    return r < 0 ? r : fd_set_nonblocking(*ours);
}

static int share(int fd, int *theirs)
{
    *theirs = fcntl(fd, F_DUPFD_CLOEXEC, 3);
    return *theirs < 0 ? -errno : 0;
}

static int open_null(int *theirs)
{
    *theirs = open("/dev/null", O_RDWR | O_CLOEXEC);
    return *theirs < 0 ? -errno : move_above_streams(theirs);
}

static int connect_streams(struct pump *pump, int *in, int *out, int *complaints)
{
    const struct program *program = pump->program;
    int r;

    if (program->source || program->input_len > 0)
        r = make_socket(&pump->in, in);
    else if (!program->input && program->input_fd >= 0)
        r = share(program->input_fd, in);
    else
        r = open_null(in);
    if (r < 0)
        return r;

    if (program->output_fd >= 0)
        r = share(program->output_fd, out);
    else if (program->sink || program->output)
        r = make_pipe(&pump->out, out);
    else
        r = open_null(out);
    if (r < 0)
        return r;

    return make_pipe(&pump->complaints, complaints);
}

int program_run_to_end(const struct program *program, struct carrel_error *err)
{
    AUTO(free) char *chunk = malloc(2 * CHUNK_BYTES);
    struct pump pump = {
        .program = program,
        .err = err,
        .in = -1,
        .out = -1,
        .complaints = -1,
        .process = -1,
        .chunk = chunk,
        .unsent = program->input,
        .n_unsent = program->source ? 0 : program->input_len,
        .received = chunk ? chunk + CHUNK_BYTES : NULL,
    };
    AUTO(fd_close) int in = -1;
    AUTO(fd_close) int out = -1;
    AUTO(fd_close) int complaints = -1;
    pid_t pid = -1;

    int r = check_sigchld(program->name, err);
    if (r < 0)
        return r;
    r = chunk ? connect_streams(&pump, &in, &out, &complaints) : -ENOMEM;
    if (r < 0) {
        (void)err_set_errno(err, r, "start %s", program->name);
    } else {
        struct child child = {
            .program = program,
            .streams = { in, out, complaints },
            .parent = getpid(),
        };
        r = start(&child, &pid, err);
    }
    if (r >= 0) {
        pump.process = r;
        /* Only the program may hold its ends, or we would never see that it closed them. */
        close_end(&in);
        close_end(&out);
        close_end(&complaints);
        r = pump_run(&pump, pid);
    }
    fd_close(pump.in);
    fd_close(pump.out);
    fd_close(pump.complaints);
    fd_close(pump.process);
    return r;
}
