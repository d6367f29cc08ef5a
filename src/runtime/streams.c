/* streams.c - pipes, and a short unordered array of processes. */
#include "runtime/streams.h"
#include "base/err.h"
#include "base/fd.h"
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

void streams_close(struct streams streams)
{
    for (size_t i = 0; i < ARRAY_LEN(streams.theirs); i++)
        fd_close(streams.theirs[i]);
    process_close(streams.ours);
}

static int open_pipe(int *reading, int *writing, struct carrel_error *err)
{
    int fds[2];

    if (pipe2(fds, O_CLOEXEC) < 0)
        return err_set_errno(err, -errno, "make a pipe");
    *reading = fds[0];
    *writing = fds[1];
    return 0;
}

int streams_open_pipes(
        struct streams *streams, const struct process_spec *spec, struct carrel_error *err)
{
    int r = open_pipe(&streams->ours.stdout_fd, &streams->theirs[1], err);
    if (r == 0)
        r = open_pipe(&streams->ours.stderr_fd, &streams->theirs[2], err);
    if (r == 0 && spec->has_stdin)
        r = open_pipe(&streams->theirs[0], &streams->ours.stdin_fd, err);
    if (r < 0 || spec->has_stdin)
        return r;
    streams->theirs[0] = open("/dev/null", O_RDONLY | O_CLOEXEC);
    return streams->theirs[0] < 0 ? err_set_errno(err, -errno, "open '/dev/null'") : 0;
}

struct process streams_steal(struct streams *streams, uint32_t id)
{
    struct process process = streams->ours;

    streams->ours = PROCESS_INIT;
    process.id = id;
    return process;
}
