/*
 * clients.c - the connections of a keeper.
 *
 * Only the keeper's user can reach the socket. Still a process that connects and sends nothing
 * must not keep other clients out.
 */
#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "core/keeper/keeper.h"
#include "core/keeper/wire.h"
#include "registry/registry.h"
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define NS_PER_MS UINT64_C(1000000)

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

/* The process that connected. -ESRCH: it has ended. */
static int open_peer(int sock)
{
    struct ucred peer;
    socklen_t len = sizeof(peer);
    int pidfd = -1;
    socklen_t pidfd_len = sizeof(pidfd);

    if (getsockopt(sock, SOL_SOCKET, SO_PEERPIDFD, &pidfd, &pidfd_len) == 0)
        return pidfd;
    if (errno != ENOPROTOOPT)
        return -errno;
    /* Before Linux 6.5 the pid may have been reused: then that process is waited for. */
    if (getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0)
        return -errno;
    pidfd = (int)syscall(SYS_pidfd_open, peer.pid, 0);
    return pidfd < 0 ? -errno : pidfd;
}

static bool has_ended(int pidfd)
{
    struct pollfd process = { .fd = pidfd, .events = POLLIN };

    return poll(&process, 1, 0) == 1;
}

/*
 * A sandbox that is shown the directory, also read-only, can connect, and an ordinary user's
 * programs have that user's id there. They are in a user namespace of their own.
 */
static bool is_in_our_namespace(int sock, pid_t pid)
{
    char path[64];
    struct stat own;
    struct stat theirs;
    AUTO(fd_close) int pidfd = open_peer(sock);

    (void)snprintf(path, sizeof(path), "/proc/%d/ns/user", (int)pid);
    return pidfd >= 0 && stat(path, &theirs) == 0 && stat("/proc/self/ns/user", &own) == 0 &&
           own.st_dev == theirs.st_dev && own.st_ino == theirs.st_ino &&
           !has_ended(pidfd); /* so the number was its own */
}

/* The directory keeps other users out. This does so again. */
static bool is_of_our_user(int sock)
{
    struct ucred peer;
    socklen_t len = sizeof(peer);

    return getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &peer, &len) == 0 &&
           peer.uid == geteuid() && is_in_our_namespace(sock, peer.pid);
}

static void refuse(int sock)
{
    struct keeper_message full = { .kind = KEEPER_FAILED };

    (void)err_set(&full.error, -EAGAIN, "%d clients are connected already", KEEPER_MAX_CLIENTS);
    (void)keeper_send(sock, &full, NULL, 0, MSG_DONTWAIT); /* it is disconnected anyway */
}

/* The oldest client that has not said hello: the others may be about to. */
static size_t find_silent(const struct keeper *keeper)
{
    size_t found = KEEPER_MAX_CLIENTS;

    for (size_t i = 0; i < keeper->n_clients; i++)
        if (keeper->clients[i].events < 0 &&
                (found == KEEPER_MAX_CLIENTS ||
                        keeper->clients[i].number < keeper->clients[found].number))
            found = i;
    return found;
}

/* Most sandboxes have no client, and few have many: the list grows with its use. */
static bool make_room(struct keeper *keeper, size_t i)
{
    if (i < keeper->client_room)
        return true;
    size_t n = i ? 2 * i : 4;
    struct keeper_client *more = reallocarray(keeper->clients, n, sizeof(*more));
    if (!more)
        return false;
    keeper->clients = more;
    keeper->client_room = n;
    return true;
}

/* A slot for one more; KEEPER_MAX_CLIENTS: there is none. */
static size_t find_slot(struct keeper *keeper)
{
    size_t i = 0;

    while (i < keeper->n_clients && keeper->clients[i].sock >= 0)
        i++;
    if (i < KEEPER_MAX_CLIENTS)
        return make_room(keeper, i) ? i : KEEPER_MAX_CLIENTS;
    i = find_silent(keeper);
    if (i < KEEPER_MAX_CLIENTS) {
        refuse(keeper->clients[i].sock);
        keeper_drop_client(keeper, i);
    }
    return i;
}

static int on_client(struct loop_io *io, uint32_t events, struct carrel_error *err)
{
    const struct keeper_source *source = container_of(io, struct keeper_source, io);

    (void)events;
    (void)err;
    if (source->keeper->end == KEEPER_GOES_ON) /* else the sandbox may be gone */
        keeper_serve(source->keeper, source->slot);
    return 0;
}

void keeper_accept(struct keeper *keeper)
{
    AUTO(fd_close)
    int sock = accept4(keeper->entry->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

    if (sock < 0) { /* it disconnected, or there are no descriptors: a retry at once would not
                       help */
        if (errno != EAGAIN && errno != ECONNABORTED)
            keeper->next_accept_ns = clock_ns() + 100 * NS_PER_MS;
        return;
    }
    if (!is_of_our_user(sock))
        return;
    size_t i = find_slot(keeper);
    if (i == KEEPER_MAX_CLIENTS) {
        refuse(sock);
        return;
    }
    struct keeper_source *source = keeper_source_new(keeper, i, 0, on_client);
    if (!source || loop_io_watch(&source->io, sock, EPOLLIN, NULL) < 0) {
        keeper_source_free(source);
        return;
    }
    keeper->n_clients = i == keeper->n_clients ? i + 1 : keeper->n_clients;
    keeper->clients[i] = (struct keeper_client){
        .number = ++keeper->n_came,
        .sock = fd_steal(&sock),
        .source = source,
        .events = -1,
    };
    keeper->is_changed = true;
}

/* A client that closes its socket closes its files, too: clients are carrel's own code. */
static bool has_hung_up(int sock)
{
    struct pollfd client = { .fd = sock };

    return poll(&client, 1, 0) == 1 && client.revents & POLLHUP;
}

static void forget_holders(struct keeper *keeper)
{
    size_t n = 0;

    for (size_t i = 0; i < keeper->n_holders; i++) {
        if (has_ended(keeper->holders[i]))
            fd_close(keeper->holders[i]);
        else
            keeper->holders[n++] = keeper->holders[i];
    }
    keeper->n_holders = n;
}

/* A client that was disconnected by the keeper may use its files as long as it lives. */
static void remember_holder(struct keeper *keeper, const struct keeper_client *client)
{
    if (!client->has_file || has_hung_up(client->sock))
        return;
    AUTO(fd_close) int pidfd = open_peer(client->sock);
    if (pidfd == -ESRCH)
        return;
    forget_holders(keeper);
    if (pidfd < 0 || keeper->n_holders == KEEPER_MAX_HOLDERS)
        keeper->is_held = true; /* its end will not be seen */
    else
        keeper->holders[keeper->n_holders++] = fd_steal(&pidfd);
}

bool keeper_is_open_outside(struct keeper *keeper)
{
    forget_holders(keeper);
    for (size_t i = 0; i < keeper->n_clients; i++) {
        const struct keeper_client *client = &keeper->clients[i];
        /* A client that has disconnected does not count, even before the loop has seen it. */
        if (client->sock >= 0 && client->has_file && !has_hung_up(client->sock))
            return true;
    }
    return keeper->is_held || keeper->n_holders > 0;
}

void keeper_drop_client(struct keeper *keeper, size_t client)
{
    struct keeper_client *c = &keeper->clients[client];

    if (c->sock < 0)
        return;
    keeper_leave(keeper, client);
    if (c->has_file) /* a copy is over: the loop sees if the record could not be written */
        (void)recorder_below(&keeper->session.recorder, &keeper->below, NULL);
    remember_holder(keeper, c);
    if (keeper->destroyer == (int)client)
        keeper->destroyer = -1;
    keeper_source_free(c->source);
    fd_close(c->sock);
    fd_close(c->events);
    *c = (struct keeper_client){ .sock = -1, .events = -1 };
    keeper->is_changed = true;
}
