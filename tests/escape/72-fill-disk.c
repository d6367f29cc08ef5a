/* Fills the writable space: by bytes, and by empty files. */
#include "attack.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static size_t write_mib(int dir, const char *name, size_t cap, int *why)
{
    static char chunk[1 << 20];
    int fd = openat(dir, name, O_CREAT | O_WRONLY | O_TRUNC | O_CLOEXEC, 0600);
    size_t n = 0;
    *why = errno;
    for (; fd >= 0 && n < cap; n++)
        if (write(fd, chunk, sizeof(chunk)) != (ssize_t)sizeof(chunk)) {
            *why = write(fd, chunk, sizeof(chunk)) < 0 ? errno : ENOSPC;
            break;
        }
    if (fd >= 0)
        close(fd);
    return n;
}

static size_t make_files(int dir, size_t cap, int *why)
{
    char name[32];
    size_t n = 0;
    for (; n < cap; n++) {
        snprintf(name, sizeof(name), "f%zu", n);
        int fd = openat(dir, name, O_CREAT | O_WRONLY | O_EXCL | O_CLOEXEC, 0600);
        *why = errno;
        if (fd < 0)
            break;
        close(fd);
    }
    return n;
}

static void remove_files(int dir, size_t n)
{
    char name[32];
    for (size_t i = 0; i < n; i++) {
        snprintf(name, sizeof(name), "f%zu", i);
        (void)unlinkat(dir, name, 0);
    }
}

static void judge(const char *what, size_t n, size_t cap, int why)
{
    if (n >= cap)
        succeeded(what, "%zu", n);
    else if (why == ENOSPC || why == EDQUOT)
        refused(what, "%s after %zu", errno_name(why), n);
    else
        failed(what, why, NULL);
}

/* attack DIR MIB FILES [OTHER...]: OTHER are directories that must not add to the budget. */
static void attack(char **args)
{
    size_t mib = number(args[1]), files = number(args[2]);
    int why = 0;
    int dir = open(args[0], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0)
        cannot("%s: %s", args[0], strerror(errno));

    size_t n = make_files(dir, files, &why);
    judge("inodes", n, files, why);
    remove_files(dir, n);
    n = write_mib(dir, "big", mib, &why);
    judge("bytes", n, mib, why);
    for (char **other = args + 3; *other; other++) {
        int fd = open(*other, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (fd < 0)
            cannot("%s: %s", *other, strerror(errno));
        n = write_mib(fd, "more", 2, &why);
        judge(*other, n, 2, why);
        (void)unlinkat(fd, "more", 0);
    }
    (void)unlinkat(dir, "big", 0);
}

/* After the limit was reached, removing something makes space again. */
static void control(char **args)
{
    static const char *const places[] = { "/tmp", "/run", "/var/tmp", "/workspace",
        "/dev/shm" };
    int why = 0;
    (void)args;
    for (size_t i = 0; i < ARRAY_LEN(places); i++) {
        int dir = open(places[i], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        works(places[i],
                write_mib(dir, "big", 2, &why) == 2 && make_files(dir, 20, &why) == 20);
        remove_files(dir, 20);
        (void)unlinkat(dir, "big", 0);
    }
}

/* Fills up, reports it, and stays: the driver then checks everything else. */
static void hold(char **args)
{
    int why = 0;
    int dir = open(args[0], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    size_t n = write_mib(dir, "big", number(args[1]), &why);
    ready("%zu", n);
    for (;;)
        pause();
}

int main(int argc, char **argv)
{
    return attack_main(argc, argv,
            (struct attack_mode[]){
                    { "attack", attack }, { "control", control }, { "hold", hold }, { 0 } });
}
