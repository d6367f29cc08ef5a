/* Reaches disks and memory as devices: by creating a node, or by finding one. */
#include "attack.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

static const char *const harmless[] = { ".", "..", "null", "zero", "full", "random", "urandom",
    "tty", "pts", "ptmx", "shm", "fd", "stdin", "stdout", "stderr", "console" };

static void make(const char *what, mode_t mode, dev_t device)
{
    const char *name = "/tmp/carrel-escape-node";
    (void)unlink(name);
    attempt(what, mknod(name, mode | 0600, device), REASONS(EPERM, EACCES, ENOSYS));
    (void)unlink(name);
}

static bool is_harmless(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(harmless); i++)
        if (strcmp(name, harmless[i]) == 0)
            return true;
    return false;
}

/* attack [PASSED]: a device node in a directory that was mounted from the host. */
static void attack(char **args)
{
    struct stat st;
    char extra[256] = "";
    int block = -1, why = ENOENT;

    make("mknod-mem", S_IFCHR, makedev(1, 1));
    make("mknod-kmsg", S_IFCHR, makedev(1, 11));
    make("mknod-loop", S_IFBLK, makedev(7, 0));
    make("mknod-root-disk", S_IFBLK, stat("/usr", &st) == 0 ? st.st_dev : makedev(8, 0));

    DIR *dir = opendir("/dev");
    for (struct dirent *e; dir && (e = readdir(dir));) {
        if (!is_harmless(e->d_name))
            snprintf(extra, sizeof(extra), "%s", e->d_name);
        if (block < 0 && fstatat(dirfd(dir), e->d_name, &st, 0) == 0 && S_ISBLK(st.st_mode)) {
            block = openat(dirfd(dir), e->d_name, O_RDONLY | O_CLOEXEC);
            why = errno;
        }
    }
    if (dir)
        closedir(dir);
    if (block >= 0)
        succeeded("open-block-device", "for reading");
    else if (why == ENOENT)
        invisible("open-block-device");
    else
        failed("open-block-device", why, REASONS(EACCES, EPERM));
    if (extra[0])
        succeeded("more-in-dev", "%s", extra);
    else
        refused("more-in-dev", "harmless devices only");
    if (args[0])
        attempt("open-passed-device", open(args[0], O_RDONLY | O_CLOEXEC),
                REASONS(EACCES, EPERM));
}

static void control(char **args)
{
    char byte = 1;
    (void)args;
    works("null", write(open("/dev/null", O_WRONLY | O_CLOEXEC), "x", 1) == 1);
    works("zero", read(open("/dev/zero", O_RDONLY | O_CLOEXEC), &byte, 1) == 1 && byte == 0);
    works("urandom", read(open("/dev/urandom", O_RDONLY | O_CLOEXEC), &byte, 1) == 1);
    works("full",
            write(open("/dev/full", O_WRONLY | O_CLOEXEC), "x", 1) == -1 && errno == ENOSPC);
    works("ptmx", open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC) >= 0);
    works("fifo", mkfifo("/tmp/fifo", 0600) == 0);
}

int main(int argc, char **argv)
{
    return attack_main(argc, argv,
            (struct attack_mode[]){ { "attack", attack }, { "control", control }, { 0 } });
}
