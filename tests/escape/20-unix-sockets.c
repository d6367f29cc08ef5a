/* Connects to servers of the host: access to Docker's socket means root. */
#include "attack.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

static const char *const well_known[] = {
    "/run/docker.sock",
    "/var/run/docker.sock",
    "/run/podman/podman.sock",
    "/run/containerd/containerd.sock",
    "/run/dbus/system_bus_socket",
    "/run/systemd/private",
    "/run/systemd/notify",
    "/run/systemd/journal/socket",
    "/run/user/0/bus",
    "/tmp/.X11-unix/X0",
    "@/tmp/.X11-unix/X0",
    "/run/carrel/control",
};

/* '@' stands for the NUL that begins an abstract name. */
static int connect_to(const char *name, int type)
{
    struct sockaddr_un addr = { .sun_family = AF_UNIX };
    size_t len = strlen(name);
    if (len >= sizeof(addr.sun_path)) {
        errno = ENAMETOOLONG;
        return -1;
    }
    memcpy(addr.sun_path, name, len);
    if (name[0] == '@')
        addr.sun_path[0] = 0;
    int fd = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);
    socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len);
    return connect(fd, (struct sockaddr *)&addr, size) < 0 ? -1 : fd;
}

/* A descriptor from outside bypasses every namespace. */
static int receive_fd(int sock)
{
    char byte;
    union {
        char bytes[CMSG_SPACE(sizeof(int))];
        struct cmsghdr align;
    } control = { 0 };
    struct iovec iov = { &byte, 1 };
    struct msghdr msg = { .msg_iov = &iov,
        .msg_iovlen = 1,
        .msg_control = &control,
        .msg_controllen = sizeof(control) };
    int fd = -1;
    if (recvmsg(sock, &msg, MSG_CMSG_CLOEXEC) == 1 && CMSG_FIRSTHDR(&msg))
        memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&msg)), sizeof(fd));
    return fd;
}

static void send_fd(int sock, int fd)
{
    char byte = 'x';
    union {
        char bytes[CMSG_SPACE(sizeof(int))];
        struct cmsghdr align;
    } control = { 0 };
    struct iovec iov = { &byte, 1 };
    struct msghdr msg = { .msg_iov = &iov,
        .msg_iovlen = 1,
        .msg_control = &control,
        .msg_controllen = sizeof(control) };
    struct cmsghdr *head = CMSG_FIRSTHDR(&msg);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(head), &fd, sizeof(fd));
    (void)sendmsg(sock, &msg, MSG_NOSIGNAL);
}

/* attack NAME...: sockets of the host, by their path there, or @abstract. */
static void attack(char **args)
{
    for (; *args; args++) {
        const char *what = (*args)[0] == '@' ? "abstract" : strrchr(*args, '/') + 1;
        int fd = connect_to(*args, SOCK_STREAM);
        if (fd < 0 && errno == ENOENT)
            invisible(what);
        else if (fd < 0)
            failed(what, errno, REASONS(ECONNREFUSED, EACCES, EPERM));
        else
            succeeded(what, "%s",
                    receive_fd(fd) >= 0 ? "connected, got a descriptor" : "connected");
    }
    const char *reached = NULL;
    for (size_t i = 0; i < ARRAY_LEN(well_known); i++)
        if (connect_to(well_known[i], SOCK_STREAM) >= 0 ||
                connect_to(well_known[i], SOCK_DGRAM) >= 0)
            reached = well_known[i];
    if (reached)
        succeeded("well-known", "%s", reached);
    else
        invisible("well-known");
}

static int listen_on(const char *name)
{
    struct sockaddr_un addr = { .sun_family = AF_UNIX };
    size_t len = strlen(name);
    if (len >= sizeof(addr.sun_path))
        cannot("'%s' is too long for a socket", name);
    memcpy(addr.sun_path, name, len);
    if (name[0] == '@')
        addr.sun_path[0] = 0;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len);
    if (bind(fd, (struct sockaddr *)&addr, size) < 0 || listen(fd, 8) < 0)
        return -1;
    return fd;
}

/* Server and client in one sandbox: sockets and descriptor passing are not forbidden. */
static void control(char **args)
{
    static const char *const names[] = { "/tmp/own.sock", "@carrel-own" };
    (void)args;
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        int server = listen_on(names[i]);
        works("listen", server >= 0);
        int client = connect_to(names[i], SOCK_STREAM);
        works("connect", client >= 0);
        int peer = accept4(server, NULL, NULL, SOCK_CLOEXEC);
        send_fd(peer, 1);
        works("pass-descriptor", receive_fd(client) >= 0);
    }
}

/* On the host: sends its root directory to every client. */
static void serve(char **args)
{
    int root = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    size_t n = 0;
    for (; args[n]; n++) {
        int server = listen_on(args[n]);
        if (server < 0)
            cannot("%s: %s", args[n], strerror(errno));
        if (fork() > 0)
            continue;
        for (;;) {
            int client = accept4(server, NULL, NULL, SOCK_CLOEXEC);
            if (client < 0)
                _exit(1);
            send_fd(client, root);
            close(client);
        }
    }
    ready("%d", getpid());
    for (;;)
        pause();
}

/* Prints the version of Landlock that this kernel has; 6 and later fence abstract sockets. */
static void landlock(char **args)
{
    (void)args;
    long abi = syscall(444 /* landlock_create_ruleset */, NULL, 0, 1);
    printf("%ld\n", abi < 0 ? 0 : abi);
}

int main(int argc, char **argv)
{
    return attack_main(argc, argv,
            (struct attack_mode[]){ { "attack", attack }, { "control", control },
                    { "serve", serve }, { "landlock", landlock }, { 0 } });
}
