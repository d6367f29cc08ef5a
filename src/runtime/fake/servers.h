/* servers.h - the processes that serve streams of files of a fake sandbox, one for each. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

struct carrel_error;

#define SERVERS_MOST 64

struct servers {
    int pidfds[SERVERS_MOST];
    size_t n;
};

enum server_kind {
    SERVER_SENDS,
    SERVER_TAKES,
    SERVER_LISTS,
    SERVER_PACKS,
    SERVER_UNPACKS,
    SERVER_REMOVES,
};
struct service {
    enum server_kind kind;
    int fd;           /* of the file or directory; SERVER_REMOVES: that it is in */
    const char *name; /* SERVER_PACKS, SERVER_REMOVES */
    int flags;        /* SERVER_UNPACKS */
};

/* Returns the stream for the caller. */
int servers_add(
        struct servers *servers, const struct service *service, struct carrel_error *err);

/* Every stream that is not at its end is reset. */
void servers_kill(struct servers *servers);
