/* streams.c - pipes, and a short unordered array of processes. */
#include "runtime/streams.h"
#include "base/err.h"
#include "base/fd.h"
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
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

static int open_standard(
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

int streams_open(
        struct streams *streams, const struct process_spec *spec, struct carrel_error *err)
{
    int r = spec->has_tty ? 0 : open_standard(streams, spec, err);

    if (r == 0 && spec->n_extra > 0)
        r = open_pipe(&streams->theirs[3], &streams->ours.extra_fds[0], err);
    if (r == 0 && spec->n_extra > 1)
        r = open_pipe(&streams->ours.extra_fds[1], &streams->theirs[4], err);
    return r;
}

size_t streams_add_theirs(const struct streams *streams, int *fds, size_t n)
{
    for (size_t i = 0; i < ARRAY_LEN(streams->theirs); i++)
        if (streams->theirs[i] >= 0)
            fds[n++] = streams->theirs[i];
    return n;
}

struct process streams_steal(struct streams *streams, uint32_t id)
{
    struct process process = streams->ours;

    streams->ours = PROCESS_INIT;
    process.id = id;
    return process;
}

int started_reserve(struct started *started, struct carrel_error *err)
{
    if (started->n < started->size)
        return 0;
    size_t size = started->size ? started->size * 2 : 8;
    struct started_one *all = reallocarray(started->all, size, sizeof(*all));
    if (!all)
        return err_set_errno(err, -ENOMEM, "remember a process");
    started->all = all;
    started->size = size;
    return 0;
}

void started_add(struct started *started, uint32_t id, pid_t pid)
{
    assert(started->n < started->size);
    started->all[started->n++] = (struct started_one){ .id = id, .pid = pid };
}

void started_remove(struct started *started, uint32_t id)
{
    for (size_t i = 0; i < started->n; i++)
        if (started->all[i].id == id)
            started->all[i--] = started->all[--started->n];
}

uint32_t started_find(const struct started *started, pid_t pid)
{
    for (size_t i = started->n; i-- > 0;)
        if (started->all[i].pid == pid)
            return started->all[i].id;
    return 0;
}

void started_finish(struct started *started)
{
    free(started->all);
    *started = (struct started){ 0 };
}
