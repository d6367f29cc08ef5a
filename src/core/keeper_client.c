/*
 * keeper_client.c - who is connected to a keeper: how clients come and go.
 *
 * Only their user can reach the socket. Of such a one a keeper still believes little: whoever
 * connects and says nothing must not keep others away.
 */
#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "core/keeper.h"
#include "core/keeper_wire.h"
#include "registry/registry.h"
#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#define NS_PER_MS UINT64_C(1000000)

/* The directory lets nobody else in. Should it ever, this does not. */
static bool is_of_our_user(int sock)
{
    struct ucred peer;
    socklen_t len = sizeof(peer);

    return getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &peer, &len) == 0 && peer.uid == geteuid();
}

static void refuse(int sock)
{
    struct keeper_message full = { .kind = KEEPER_FAILED };

    (void)err_set(&full.error, -EAGAIN, "%d clients are connected already", KEEPER_MAX_CLIENTS);
    (void)keeper_send(sock, &full, NULL, 0, MSG_DONTWAIT); /* it is let go anyway */
}

/* Of those who have not said hello, the one who came first: the others may be about to. */
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

/* A place for one more; KEEPER_MAX_CLIENTS: there is none. */
static size_t find_place(struct keeper *keeper)
{
    size_t i = 0;

    while (i < keeper->n_clients && keeper->clients[i].sock >= 0)
        i++;
    if (i < KEEPER_MAX_CLIENTS)
        return i;
    i = find_silent(keeper);
    if (i < KEEPER_MAX_CLIENTS) {
        refuse(keeper->clients[i].sock);
        keeper_drop_client(keeper, i);
    }
    return i;
}

void keeper_accept(struct keeper *keeper)
{
    AUTO(fd_close)
    int sock = accept4(keeper->entry->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

    if (sock < 0) { /* it went away again, or there is no room: trying at once would not help */
        if (errno != EAGAIN && errno != ECONNABORTED)
            keeper->next_accept_ns = clock_ns() + 100 * NS_PER_MS;
        return;
    }
    if (!is_of_our_user(sock))
        return;
    size_t i = find_place(keeper);
    if (i == KEEPER_MAX_CLIENTS) {
        refuse(sock);
        return;
    }
    keeper->n_clients = i == keeper->n_clients ? i + 1 : keeper->n_clients;
    keeper->clients[i] = (struct keeper_client){
        .number = ++keeper->n_came,
        .sock = fd_steal(&sock),
        .events = -1,
    };
    keeper->is_changed = true;
}

void keeper_drop_client(struct keeper *keeper, size_t client)
{
    struct keeper_client *c = &keeper->clients[client];

    if (c->sock < 0)
        return;
    keeper_leave(keeper, client);
    if (keeper->destroyer == (int)client)
        keeper->destroyer = -1;
    fd_close(c->sock);
    fd_close(c->events);
    *c = (struct keeper_client){ .sock = -1, .events = -1 };
    keeper->is_changed = true;
}
