/* launch.c - the request in memory, and the program that reads it. */
#include "core/keeper/launch.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "executable/executable.h"
#include <errno.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define MAX_LOCKS 128

static int put_in_memory(const struct buf *request, struct carrel_error *err)
{
    AUTO(fd_close) int fd = memfd_create("carrel-request", MFD_CLOEXEC);
    int r = fd < 0 ? -errno : fd_write_all(fd, request->data, request->len);

    if (r == 0 && lseek(fd, 0, SEEK_SET) < 0)
        r = -errno;
    return r < 0 ? err_set_errno(err, r, "keep a request in memory") : fd_steal(&fd);
}

int keeper_launch(const struct keeper_launch *launch, struct carrel_error *err)
{
    int fds[2 + MAX_LOCKS];
    pid_t pid;
    size_t n = 0;

    if (launch->n_locks > MAX_LOCKS)
        return err_set(err, -E2BIG, "more than %d layers", MAX_LOCKS);
    AUTO(fd_close) int request = put_in_memory(launch->request, err);
    if (request < 0)
        return request;
    fds[n++] = request;
    fds[n++] = launch->report;
    for (size_t i = 0; i < launch->n_locks; i++)
        if (launch->locks[i] >= 0)
            fds[n++] = launch->locks[i];
    const struct executable_part part = {
        .command = "keeper",
        .cwd = launch->cwd,
        .fds = fds,
        .n_fds = n,
        .env = environ,
        .has_session = true,
    };
    int r = executable_start(&part, &pid, err);
    if (r < 0)
        return r;
    /* It leaves a child, the keeper, and exits at once: no process has to reap a keeper. */
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        ;
    return 0;
}
