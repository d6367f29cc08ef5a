/*
 * detached.c - programs that continue when their client exits: head and tail of their output
 * are kept here until a client attaches.
 */
#include "base/err.h"
#include "base/fd.h"
#include "core/keeper/keeper.h"
#include "core/keeper/wire.h"
#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

/* Keeps what is in the pipes of a process to which no client is attached. */
void keeper_drain(struct keeper_process *p, int stream)
{
    int *fd = stream == 0 ? &p->streams.stdout_fd : &p->streams.stderr_fd;
    char chunk[32U << 10];

    for (int i = 0; *fd >= 0 && i < 64; i++) { /* a flood must not delay the others */
        ssize_t n = read(*fd, chunk, sizeof(chunk));
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            return;
        if (n <= 0) { /* EIO: the last of a terminal's users is gone */
            keeper_source_free(ptr_steal(&p->sources[stream]));
            fd_close(fd_steal(fd));
            return;
        }
        capture_add(&p->kept[stream], chunk, (size_t)n);
    }
}

static int kept_text(struct keeper_process *p, int stream, struct carrel_error *err)
{
    AUTO(buf_finish) struct buf text = BUF_INIT(2 * KEEPER_KEPT_BYTES);

    (void)capture_text(&p->kept[stream], &text);
    if (text.is_short)
        return err_set_errno(err, -ENOMEM, "kept output");
    return keeper_text_make(text.data ? text.data : "", text.len, err);
}

/* From now on the client reads; the kept output was given to it. */
static void hand_over(struct keeper_process *p, size_t client)
{
    p->client = (int)client;
    for (int i = 0; i < 2; i++) {
        capture_finish(&p->kept[i]);
        if (capture_init(&p->kept[i], KEEPER_KEPT_BYTES, NULL, 0) < 0)
            p->kept[i] = (struct capture){ .file = -1 }; /* a budget of nothing */
    }
}

int keeper_attach(struct keeper *keeper, size_t client, const struct keeper_message *request,
        struct carrel_error *err)
{
    struct keeper_process *p = keeper_find_process(keeper, request->process);
    int fds[KEEPER_MAX_FDS];
    size_t n = 0;

    if (!p || !p->is_detached) {
        (void)err_set(err, -ENOENT,
                p ? "process %u is not a detached one"
                  : "no process %u; 'carrel ps' shows them",
                request->process);
        return err_from(err, -ENOENT, CARREL_FROM_CALLER);
    }
    if (p->client >= 0)
        return err_set(err, -EBUSY, "a client is attached to process %u", request->process);
    keeper_drain(p, 0);
    keeper_drain(p, 1);
    AUTO(fd_close) int out = kept_text(p, 0, err);
    AUTO(fd_close) int errors = out < 0 ? -1 : kept_text(p, 1, err);
    if (errors < 0)
        return err->code;
    struct keeper_message answer = {
        .kind = KEEPER_DONE,
        .process = p->number,
        .flags = (p->has_ended ? KEEPER_ENDED : 0U) | (p->is_over_disk ? KEEPER_FULL : 0U) |
                 (p->is_over_time ? KEEPER_TIMED_OUT : 0U) |
                 (p->streams.stdin_fd >= 0 ? KEEPER_STDIN : 0U) |
                 (p->streams.stdout_fd >= 0 ? KEEPER_STDOUT : 0U) |
                 (p->streams.stderr_fd >= 0 ? KEEPER_STDERR : 0U),
        .value = p->wait_status,
        .timeout_ms = p->timeout_ms,
        .oom_kills = p->oom_kills,
        .pids_refused = p->pids_refused,
        .written = { capture_bytes(&p->kept[0]), capture_bytes(&p->kept[1]) },
    };
    fds[n++] = out;
    fds[n++] = errors;
    if (p->streams.stdin_fd >= 0)
        fds[n++] = p->streams.stdin_fd;
    if (p->streams.stdout_fd >= 0)
        fds[n++] = p->streams.stdout_fd;
    if (p->streams.stderr_fd >= 0)
        fds[n++] = p->streams.stderr_fd;
    if (keeper_send(keeper->clients[client].sock, &answer, fds, n, MSG_DONTWAIT) < 0) {
        keeper_drop_client(keeper, client); /* it did not take the answer */
        return 0;
    }
    if (p->has_ended)
        keeper_process_free(p);
    else
        hand_over(p, client);
    return 0;
}

static bool is_kept(const struct keeper_process *p)
{
    return p->number && p->is_detached && p->client < 0;
}

/* A client may have attached to it in the same turn. */
static int on_output(struct loop_io *io, uint32_t events, struct carrel_error *err)
{
    const struct keeper_source *source = container_of(io, struct keeper_source, io);
    struct keeper_process *p = &source->keeper->processes[source->slot];

    (void)events;
    (void)err;
    if (is_kept(p))
        keeper_drain(p, source->stream);
    return 0;
}

int keeper_watch_streams(struct keeper *keeper, struct carrel_error *err)
{
    for (size_t i = 0; i < 2 * keeper->n_processes; i++) {
        const int stream = i % 2;
        struct keeper_process *p = &keeper->processes[i / 2];
        struct keeper_source **source = &p->sources[stream];
        int fd = stream == 0 ? p->streams.stdout_fd : p->streams.stderr_fd;
        if (!is_kept(p) || fd < 0) {
            keeper_source_free(ptr_steal(source));
            continue;
        }
        if (!*source)
            *source = keeper_source_new(keeper, i / 2, stream, on_output);
        if (!*source)
            return err_set_errno(err, -ENOMEM, "keeper");
        int r = loop_io_watch(&(*source)->io, fd, keeper->kept_rest_ns ? 0 : EPOLLIN, err);
        if (r < 0)
            return r;
    }
    return 0;
}
