/* Keeps the disk busy: small synced writes, from several processes. */
#include "attack.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { WORKERS = 4 };

static void storm(int id)
{
    char name[32], block[4096] = "";
    snprintf(name, sizeof(name), "storm-%d", id);
    int fd = open(name, O_CREAT | O_RDWR | O_CLOEXEC, 0600);
    if (fd < 0)
        cannot("%s: %s", name, strerror(errno));
    for (off_t at = 0;; at = (at + 4096) % (1 << 20))
        if (pwrite(fd, block, sizeof(block), at) < 0 || fsync(fd) < 0)
            cannot("%s: %s", name, strerror(errno));
}

/* In the working directory, until it is killed. */
static void attack(char **args)
{
    (void)args;
    ready("%d", getpid());
    for (int i = 1; i < WORKERS; i++)
        if (fork() == 0)
            storm(i);
    storm(0);
}

static void control(char **args)
{
    (void)args;
    int fd = open("one", O_CREAT | O_RDWR | O_CLOEXEC, 0600);
    works("write", fd >= 0 && write(fd, "x", 1) == 1);
    works("fsync", fsync(fd) == 0);
}

int main(int argc, char **argv)
{
    return attack_main(argc, argv,
            (struct attack_mode[]){ { "attack", attack }, { "control", control }, { 0 } });
}
