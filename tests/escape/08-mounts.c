/* Changes the mount tree: removes masks, makes read-only mounts writable, moves the root. */
#include "attack.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* <sys/mount.h> and <linux/mount.h> cannot be included together; these are the old names. */
int mount(const char *source, const char *target, const char *type, unsigned long flags,
        const void *data);
int umount2(const char *target, int flags);
enum { UMOUNT_DETACH = 2 };

static char place[256]; /* a directory to mount on */

static long mount_tmpfs(const void *arg)
{
    (void)arg;
    return mount("none", place, "tmpfs", 0, NULL);
}

static long mount_proc(const void *arg)
{
    (void)arg;
    return mount("proc", place, "proc", 0, NULL);
}

static long mount_bind(const void *arg)
{
    (void)arg;
    return mount("/usr", place, NULL, MS_BIND, NULL);
}

static long remount_writable(const void *arg)
{
    (void)arg;
    return mount(NULL, "/", NULL, MS_REMOUNT | MS_BIND, NULL);
}

static long make_shared(const void *arg)
{
    (void)arg;
    return mount(NULL, "/", NULL, MS_PRIVATE | MS_REC, NULL);
}

/* A mount on something below /proc is a mask. */
static long lift_mask(const void *arg)
{
    char line[1024], target[512];
    long result = -1;
    int why = ENOENT;
    FILE *file = fopen("/proc/self/mountinfo", "re");

    (void)arg;
    while (file && fgets(line, sizeof(line), file))
        if (sscanf(line, "%*s %*s %*s %*s %511s", target) == 1 &&
                (strncmp(target, "/proc/", 6) == 0 || strncmp(target, "/etc/", 5) == 0)) {
            if (umount2(target, UMOUNT_DETACH) == 0)
                result = 0;
            else
                why = errno;
        }
    if (file)
        fclose(file);
    errno = why;
    return result;
}

static long detach_proc(const void *arg)
{
    (void)arg;
    return umount2("/proc", UMOUNT_DETACH);
}

static long call_pivot_root(const void *arg)
{
    (void)arg;
    return syscall(SYS_pivot_root, place, place);
}

static long call_open_tree(const void *arg)
{
    (void)arg;
    return syscall(SYS_open_tree, AT_FDCWD, "/", OPEN_TREE_CLONE | AT_RECURSIVE);
}

static long call_move_mount(const void *arg)
{
    (void)arg;
    int tree = (int)call_open_tree(NULL);
    return syscall(SYS_move_mount, tree, "", AT_FDCWD, place, MOVE_MOUNT_F_EMPTY_PATH);
}

static long call_fsopen(const void *arg)
{
    (void)arg;
    return syscall(SYS_fsopen, "tmpfs", 0);
}

static long call_fsmount(const void *arg)
{
    (void)arg;
    int fs = (int)call_fsopen(NULL);
    (void)syscall(SYS_fsconfig, fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0);
    return syscall(SYS_fsmount, fs, 0, 0);
}

static long call_fspick(const void *arg)
{
    (void)arg;
    return syscall(SYS_fspick, AT_FDCWD, "/proc", 0);
}

static long call_mount_setattr(const void *arg)
{
    struct mount_attr attr = { .attr_clr = MOUNT_ATTR_NOSUID };
    (void)arg;
    return syscall(SYS_mount_setattr, AT_FDCWD, "/", 0, &attr, sizeof(attr));
}

static const struct {
    const char *what;
    attempt_fn *fn;
} tries[] = {
    { "mount-tmpfs", mount_tmpfs },
    { "mount-proc", mount_proc },
    { "mount-bind", mount_bind },
    { "remount-writable", remount_writable },
    { "change-propagation", make_shared },
    { "lift-mask", lift_mask },
    { "open_tree", call_open_tree },
    { "move_mount", call_move_mount },
    { "fsopen", call_fsopen },
    { "fsmount", call_fsmount },
    { "fspick", call_fspick },
    { "mount_setattr", call_mount_setattr },
    { "pivot_root", call_pivot_root },
    { "detach-proc", detach_proc },
};

/* attack [DIR]: a directory to mount on; bare, in a mount namespace that ends with us. */
static void attack(char **args)
{
    snprintf(place, sizeof(place), "%s", args[0] ? args[0] : "/tmp/place");
    if (!args[0] && mkdir(place, 0700) < 0)
        cannot("%s: %s", place, strerror(errno));
    for (size_t i = 0; i < ARRAY_LEN(tries); i++)
        /* EINVAL, EBUSY, EBADF: allowed, only the arguments were wrong. */
        attempt_in_child(
                tries[i].what, tries[i].fn, NULL, REASONS(EINVAL, EBUSY, EBADF), BY_FILTER);
}

static void control(char **args)
{
    struct stat st;
    (void)args;
    works("read-mounts", open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC) >= 0);
    works("stat-root", stat("/", &st) == 0);
    works("make-directory", mkdir("/tmp/mine", 0700) == 0);
    works("rename-directory", rename("/tmp/mine", "/workspace/mine") == 0 || errno == EXDEV);
}

int main(int argc, char **argv)
{
    return attack_main(argc, argv,
            (struct attack_mode[]){ { "attack", attack }, { "control", control }, { 0 } });
}
