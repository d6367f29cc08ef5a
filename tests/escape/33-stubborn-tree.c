/* Leaves a tree that is hard to remove. */
#include "attack.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

static void touch(const char *name)
{
    int fd = open(name, O_CREAT | O_WRONLY | O_CLOEXEC, 0);
    if (fd < 0)
        cannot("%s: %s", name, strerror(errno));
    close(fd);
}

static void make(const char *name)
{
    if (mkdir(name, 0700) < 0)
        cannot("%s: %s", name, strerror(errno));
}

static bool make_immutable(const char *name)
{
    int flags = FS_IMMUTABLE_FL;
    int fd = open(name, O_RDONLY | O_CLOEXEC);
    return fd >= 0 && ioctl(fd, FS_IOC_SETFLAGS, &flags) == 0;
}

/* plant DEPTH: in the working directory. */
static void plant(char **args)
{
    size_t depth = number(args[0]);

    make("closed");
    touch("closed/file");
    make("closed/inner");
    touch("closed/inner/file");
    if (symlink("/", "closed/inner/link") < 0 || mkfifo("closed/inner/fifo", 0) < 0 ||
            chmod("closed/inner", 0) < 0 || chmod("closed", 0) < 0)
        cannot("chmod: %s", strerror(errno));
    make("-rf");
    make("new\nline");
    touch("\377\033[31m");
    /* The whole path is longer than any call accepts, so one step at a time. */
    size_t i = 0;
    while (i < depth && mkdir("d", 0700) == 0 && chdir("d") == 0)
        i++;
    touch("bottom");
    if (chmod(".", 0) < 0)
        cannot("chmod: %s", strerror(errno));
    printf("PLANTED %zu deep\n", i);
}

/* freeze: the same with attributes, if permitted. */
static void freeze(char **args)
{
    (void)args;
    make("frozen");
    touch("frozen/file");
    bool is_done = make_immutable("frozen/file");
    is_done = make_immutable("frozen") && is_done;
    printf(is_done ? "PLANTED immutable\n" : "not immutable\n");
}

static void control(char **args)
{
    (void)args;
    works("make", mkdir("plain", 0700) == 0);
    works("remove", rmdir("plain") == 0);
}

int main(int argc, char **argv)
{
    return attack_main(argc, argv,
            (struct attack_mode[]){
                    { "plant", plant }, { "freeze", freeze }, { "control", control }, { 0 } });
}
