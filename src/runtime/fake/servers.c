/* servers.c - see servers.h. */
#include "runtime/fake/servers.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/process.h"
#include "runtime/fake/ferry.h"
#include "runtime/file_stream.h"
#include <errno.h>
#include <signal.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <unistd.h>

_Noreturn static void serve(const struct service *service, int stream)
{
    const int fd = service->fd;
    const int keep[] = { fd, stream };
    int r = 0;

    signals_reset();
    fd_close_all_but(keep, ARRAY_LEN(keep));
    switch (service->kind) {
    case SERVER_SENDS:
        r = file_stream_send(fd, stream);
        break;
    case SERVER_TAKES:
        r = file_stream_take(stream, fd);
        break;
    case SERVER_LISTS:
        r = file_stream_list(fd, stream);
        break;
    case SERVER_PACKS:
        r = file_stream_pack(fd, service->name, stream);
        break;
    case SERVER_UNPACKS:
        r = file_stream_unpack(stream, fd, service->flags);
        break;
    case SERVER_REMOVES:
        r = file_stream_remove(fd, service->name, stream);
        break;
    }
    _exit(r < 0);
}

static bool reap(int pidfd, int flags)
{
    siginfo_t info = { 0 };
    int r;

    do {
        r = waitid(P_PIDFD, (id_t)pidfd, &info, WEXITED | __WALL | flags);
    } while (r < 0 && errno == EINTR);
    return r < 0 || info.si_pid != 0;
}

static void reap_ended(struct servers *servers)
{
    for (size_t i = 0; i < servers->n; i++)
        if (reap(servers->pidfds[i], WNOHANG)) {
            fd_close(servers->pidfds[i]);
            servers->pidfds[i--] = servers->pidfds[--servers->n];
        }
}

int servers_add(
        struct servers *servers, const struct service *service, struct carrel_error *err)
{
    AUTO(fd_close) int serving = -1;
    AUTO(fd_close) int theirs = -1;

    reap_ended(servers);
    if (servers->n == SERVERS_MOST)
        return err_set(err, -EAGAIN, "at most %d files can be open", SERVERS_MOST);
    int r = file_stream_open(&serving, &theirs);
    if (r < 0)
        return err_set_errno(err, r, "open a stream");
    long pid = ferry_clone(&servers->pidfds[servers->n]);
    if (pid == 0)
        serve(service, serving);
    if (pid < 0)
        return err_set_errno(err, (int)pid, "serve a stream");
    servers->n++;
    return fd_steal(&theirs);
}

void servers_kill(struct servers *servers)
{
    for (size_t i = 0; i < servers->n; i++) {
        (void)pidfd_send_signal(servers->pidfds[i], SIGKILL, NULL, 0);
        (void)reap(servers->pidfds[i], 0);
        fd_close(servers->pidfds[i]);
    }
    servers->n = 0;
}
