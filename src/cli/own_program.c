/* own_program.c - /proc/self/exe, if its name still means us. */
#include "cli/own_program.h"
#include <sys/stat.h>
#include <unistd.h>

const char *own_program(char *path, size_t size)
{
    struct stat running;
    struct stat named;
    ssize_t n = readlink("/proc/self/exe", path, size - 1);

    if (n < 0)
        return NULL;
    path[n] = '\0';
    return stat("/proc/self/exe", &running) == 0 && stat(path, &named) == 0 &&
                           running.st_dev == named.st_dev && running.st_ino == named.st_ino
                   ? path
                   : NULL;
}
