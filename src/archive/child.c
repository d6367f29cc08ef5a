/* child.c - the program executed afresh, and one struct in each direction. */
#include "archive/child.h"
#include "base/err.h"
#include "base/fd.h"
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static int reap(int process, siginfo_t *how)
{
    int r;

    do
        r = waitid(P_PIDFD, (id_t)process, how, WEXITED);
    while (r < 0 && errno == EINTR);
    return r < 0 ? -errno : 0;
}

void child_finish(struct child child)
{
    siginfo_t unused;

    fd_close(child.verdict);
    fd_close(child.stream);
    if (child.process >= 0) {
        (void)pidfd_send_signal(child.process, SIGKILL, NULL, 0); /* it may have ended */
        (void)reap(child.process, &unused); /* ... and its caller may reap all children */
        fd_close(child.process);
    }
}

static int send_job(
        int fd, enum job_kind kind, const struct tar_limits *limits, struct carrel_error *err)
{
    struct job job;

    memset(&job, 0, sizeof(job)); /* the padding, too */
    job.version = JOB_VERSION;
    job.kind = (uint32_t)kind;
    job.parent = getpid();
    if (limits)
        job.limits = *limits;
    ssize_t n = send(fd, &job, sizeof(job), MSG_NOSIGNAL); /* fits into an empty socket */
    return n == sizeof(job) ? 0 : err_set_errno(err, n < 0 ? -errno : -EIO, "send a request");
}

int child_start(enum job_kind kind, int source, const struct tar_limits *limits,
        struct child *out, struct carrel_error *err)
{
    int stream[2];
    int answer[2];

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, answer) < 0)
        return err_set_errno(err, -errno, "make a socket");
    AUTO(fd_close) int answers = answer[1];
    out->verdict = answer[0];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, stream) < 0)
        return err_set_errno(err, -errno, "make a socket");
    AUTO(fd_close) int theirs = stream[1];
    out->stream = stream[0];
    int r = send_job(out->verdict, kind, limits, err);
    if (r < 0)
        return r;

    const int fds[JOB_FDS] = { theirs, answers, source };
    const struct executable_part part = {
        .command = "archive",
        .fds = fds,
        .n_fds = JOB_FDS,
    };
    out->process = executable_hold(&part, err);
    return out->process < 0 ? err_wrap(err, out->process, "read an archive") : 0;
}

static int explain_end(const siginfo_t *how, struct carrel_error *err)
{
    if (how->si_code == CLD_EXITED)
        return err_set(err, -EIO,
                "the process that read it ended without an answer (status %d); libcarrel and "
                "the program carrel may be of different versions",
                how->si_status);
    return err_set(
            err, -EIO, "the process that read it was ended by signal %d", how->si_status);
}

int child_ask(struct child *child, struct unpacked *out, struct carrel_error *err)
{
    struct verdict verdict;
    siginfo_t how = { 0 };

    /* The child must not wait for us, nor for a process that has a copy of our end. */
    (void)shutdown(child->stream, SHUT_RDWR);
    fd_close(fd_steal(&child->stream));
    ssize_t n = fd_read_all(child->verdict, &verdict, sizeof(verdict));
    (void)reap(child->process, &how); /* a caller that reaps all children may be faster */
    fd_close(fd_steal(&child->process));
    if (n != sizeof(verdict))
        return explain_end(&how, err);
    if (verdict.version != JOB_VERSION)
        return err_set(
                err, -EPROTO, "libcarrel and the program carrel are of different versions");
    if (verdict.result < 0) {
        /* The message comes from a process that the archive may have taken over. */
        verdict.err.message[sizeof(verdict.err.message) - 1] = '\0';
        return err_set(err, verdict.result, "%s", verdict.err.message);
    }
    if (out)
        *out = verdict.unpacked;
    return 0;
}
