/* child.c - fork, and one struct with the result. */
#include "archive/child.h"
#include "archive/unpack.h"
#include "base/err.h"
#include "base/fd.h"
#include <errno.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

struct verdict {
    int result;
    struct carrel_error err;
    struct unpacked unpacked;
};

void child_finish(struct child child)
{
    fd_close(child.verdict);
    fd_close(child.stream);
    if (child.pid > 0) {
        (void)kill(child.pid, SIGKILL);
        while (waitpid(child.pid, NULL, 0) < 0 && errno == EINTR)
            ;
    }
}

int child_start(int (*work)(int stream, int answer, const void *arg, struct unpacked *out,
                        struct carrel_error *err),
        const void *arg, struct child *out, struct carrel_error *err)
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

    pid_t parent = getpid();
    pid_t pid = fork();
    if (pid < 0)
        return err_set_errno(err, -errno, "start a process");
    if (pid > 0) {
        out->pid = pid;
        return 0;
    }
    struct verdict verdict = { 0 };
    (void)umask(022);
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    (void)signal(SIGPIPE, SIG_IGN); /* a write to a closed stream becomes an error */
    if (getppid() != parent)
        _exit(1);
    fd_close(out->stream); /* else it would never see the end of its own stream */
    fd_close(out->verdict);
    verdict.result = work(theirs, answers, arg, &verdict.unpacked, &verdict.err);
    _exit(fd_write_all(answers, &verdict, sizeof(verdict)) < 0);
}

int child_ask(struct child *child, struct unpacked *out, struct carrel_error *err)
{
    struct verdict verdict;
    int status = 0;

    fd_close(fd_steal(&child->stream)); /* the child must not wait for us */
    ssize_t n = fd_read_all(child->verdict, &verdict, sizeof(verdict));
    while (waitpid(child->pid, &status, 0) < 0 && errno == EINTR)
        ;
    child->pid = 0;
    if (n != sizeof(verdict))
        return err_set(err, -EIO, "the process that read it was ended by signal %d",
                WIFSIGNALED(status) ? WTERMSIG(status) : 0);
    if (verdict.result < 0) {
        /* The message comes from a process that the archive may have taken over. */
        verdict.err.message[sizeof(verdict.err.message) - 1] = '\0';
        return err_set(err, verdict.result, "%s", verdict.err.message);
    }
    if (out)
        *out = verdict.unpacked;
    return 0;
}
