/* apart.c - the caller's end: starts the process and reads its answers. */
#include "core/host/apart.h"
#include "base/auto.h"
#include "base/err.h"
#include "base/fd.h"
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

struct part {
    int process; /* a pidfd; -1: none */
    int answers;
};

/* It may have ended, and a caller that reaps all children may have been faster. */
static void part_finish(struct part part)
{
    siginfo_t unused;

    fd_close(part.answers);
    if (part.process < 0)
        return;
    (void)pidfd_send_signal(part.process, SIGKILL, NULL, 0);
    while (waitid(P_PIDFD, (id_t)part.process, &unused, WEXITED) < 0 && errno == EINTR)
        ;
    fd_close(part.process);
}
DEFINE_AUTO(struct part, part_finish)

static int send_request(int fd, const struct apart_question *question, struct carrel_error *err)
{
    struct apart_request request;
    const char *runtime = question->runtime ? question->runtime : "";

    memset(&request, 0, sizeof(request)); /* the padding, too */
    request.kind = (uint32_t)question->kind;
    request.parent = getpid();
    (void)snprintf(request.version, sizeof(request.version), "%s", CARREL_VERSION);
    (void)snprintf(request.runtime, sizeof(request.runtime), "%s", runtime);
    ssize_t n = send(fd, &request, sizeof(request), MSG_NOSIGNAL); /* the socket is empty */
    return n == sizeof(request) ? 0
                                : err_set_errno(err, n < 0 ? -errno : -EIO, "send a request");
}

static int start(
        const struct apart_question *question, struct part *out, struct carrel_error *err)
{
    int pair[2];

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
        return err_set_errno(err, -errno, "make a socket");
    AUTO(fd_close) int theirs = pair[1];
    out->answers = pair[0];
    int r = send_request(out->answers, question, err);
    if (r < 0)
        return r;
    const struct executable_part part = {
        .command = "host",
        .fds = &theirs,
        .n_fds = 1,
        .env = environ,
    };
    out->process = executable_hold(&part, err);
    return out->process < 0 ? out->process : 0;
}

static int ended_early(struct carrel_error *err)
{
    return err_set(err, -EIO,
            "'carrel host' ended without an answer; libcarrel and the program carrel may be of "
            "different versions");
}

/* The failure that the process reports becomes that of the call. */
static int read_failure(int fd, size_t len, struct carrel_error *err)
{
    struct carrel_error told;

    if (len != sizeof(told) || fd_read_all(fd, &told, len) != (ssize_t)len || told.code >= 0)
        return ended_early(err);
    return err_take(err, &told);
}

/* 0: there is more; 1: that was all; or what `take` answered, in *answer. */
static int read_answer(
        int fd, const struct apart_question *question, int *answer, struct carrel_error *err)
{
    struct apart_head head;

    if (fd_read_all(fd, &head, sizeof(head)) != sizeof(head))
        return ended_early(err);
    if (head.what == APART_FAILED)
        return read_failure(fd, head.len, err);
    if (head.what == APART_END && head.len == 0)
        return 1;
    if (head.what != APART_DATA || head.len != question->len ||
            fd_read_all(fd, question->data, head.len) != (ssize_t)head.len)
        return ended_early(err);
    *answer = question->take(question->context);
    return *answer != 0;
}

int apart_ask(const struct apart_question *question, struct carrel_error *err)
{
    AUTO(part_finish) struct part part = { .process = -1, .answers = -1 };
    int answer = 0;

    int r = start(question, &part, err);
    while (r == 0)
        r = read_answer(part.answers, question, &answer, err);
    return r < 0 ? r : answer;
}
