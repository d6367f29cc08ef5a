/* Reads and writes what /proc and /sys reveal about, and do to, the whole machine. */
#include "attack.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

static const int *const by_mask = REASONS(EACCES, EPERM, EROFS, ENOENT, ENOTDIR);

static void read_one(const char *what, const char *path)
{
    char bytes[8192]; /* a whole record of /dev/kmsg */
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT) {
        invisible(what);
        return;
    }
    if (fd < 0) {
        failed(what, errno, by_mask);
        return;
    }
    ssize_t n = read(fd, bytes, sizeof(bytes));
    if (n == 0)
        refused(what, "masked: empty");
    else if (n < 0 && errno == EISDIR)
        succeeded(what, "a directory");
    else
        attempt(what, n, by_mask);
    close(fd);
}

/* Only opened: nothing is written, but write access is what the attack needs. */
static void open_for_writing(const char *what, const char *path)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT)
        invisible(what);
    else
        attempt(what, fd, by_mask);
    if (fd >= 0)
        close(fd);
}

/* Opened only: what is read from the log of the kernel is gone for others. */
static void open_for_reading(const char *what, const char *path)
{
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    attempt(what, fd, by_mask);
    if (fd >= 0)
        close(fd);
}

/* Somebody's lock: our own is listed among those of all others. */
static void read_locks(void)
{
    char path[] = "/tmp/carrel-escape-XXXXXX";
    int fd = mkstemp(path);
    if (fd < 0 || flock(fd, LOCK_EX) < 0)
        cannot("lock: %s", errno_name(errno));
    (void)unlink(path);
    read_one("locks", "/proc/locks");
    close(fd);
}

/* Any count of interrupts or of a processor's time. */
static void read_counts(void)
{
    FILE *file = fopen("/proc/stat", "re");
    char word[64];
    if (!file) {
        failed("stat", errno, by_mask);
        return;
    }
    int n = fscanf(file, "%63s", word);
    for (int i = 0; n == 1 && i < 11; i++) {
        n = fscanf(file, "%63s", word);
        if (n == 1 && word[0] >= '1' && word[0] <= '9') {
            succeeded("stat", "%s", word);
            fclose(file);
            return;
        }
    }
    refused("stat", "counts are zero");
    fclose(file);
}

/* A list of names whose addresses are all zero is no help. */
static void kernel_addresses(void)
{
    FILE *file = fopen("/proc/kallsyms", "re");
    char text[256];
    if (!file) {
        failed("kallsyms", errno, by_mask);
        return;
    }
    if (!fgets(text, sizeof(text), file))
        refused("kallsyms", "masked: empty");
    else if (strtoull(text, NULL, 16) == 0)
        refused("kallsyms", "addresses are zero");
    else
        succeeded("kallsyms", "addresses");
    fclose(file);
}

static void read_process(const char *what, const char *pid, const char *name)
{
    char path[64];
    snprintf(path, sizeof(path), "/proc/%s/%s", pid, name);
    read_one(what, path);
}

/* attack [PID]: instead of 1, which we must not read outside of a sandbox. */
static void attack(char **args)
{
    const char *pid = args[0] ? args[0] : "1";
    read_process("init-environ", pid, "environ");
    read_process("init-maps", pid, "maps");
    read_process("init-auxv", pid, "auxv");
    read_process("init-stack", pid, "stack");
    read_one("kcore", "/proc/kcore");
    kernel_addresses();
    read_one("keys", "/proc/keys");
    read_one("timer_list", "/proc/timer_list");
    read_one("sched_debug", "/sys/kernel/debug/sched/debug");
    read_one("kmsg", "/dev/kmsg");
    open_for_reading("proc-kmsg", "/proc/kmsg");
    read_locks();
    read_counts();
    read_one("partitions", "/proc/partitions");
    read_one("diskstats", "/proc/diskstats");
    read_one("softirqs", "/proc/softirqs");
    read_one("sys-firmware", "/sys/firmware");
    read_one("sys-kernel", "/sys/kernel/vmcoreinfo");
    open_for_writing("sysrq-trigger", "/proc/sysrq-trigger");
    open_for_writing("core_pattern", "/proc/sys/kernel/core_pattern");
    open_for_writing("modprobe", "/proc/sys/kernel/modprobe");
    open_for_writing("sysrq", "/proc/sys/kernel/sysrq");
    open_for_writing("drop_caches", "/proc/sys/vm/drop_caches");
    open_for_writing("binfmt_misc", "/proc/sys/fs/binfmt_misc/register");
    open_for_writing("uevent_helper", "/sys/kernel/uevent_helper");
    open_for_writing("irq", "/proc/irq/default_smp_affinity");
    open_for_writing("mtrr", "/proc/mtrr");
    int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    attempt("oom_score_adj", fd < 0 ? -1 : write(fd, "-1000", 5), by_mask);
}

static void control(char **args)
{
    static const char *const readable[] = { "/proc/self/environ", "/proc/self/maps",
        "/proc/self/status", "/proc/meminfo", "/proc/cpuinfo", "/proc/stat", "/proc/loadavg",
        "/proc/uptime", "/proc/mounts", "/proc/sys/kernel/osrelease" };
    char byte;
    (void)args;
    for (size_t i = 0; i < ARRAY_LEN(readable); i++) {
        int fd = open(readable[i], O_RDONLY | O_CLOEXEC);
        works(readable[i], fd >= 0 && read(fd, &byte, 1) == 1);
    }
    int fd = open("/proc/self/comm", O_WRONLY | O_CLOEXEC);
    works("rename-self", fd >= 0 && write(fd, "other", 5) == 5);
}

int main(int argc, char **argv)
{
    return attack_main(argc, argv,
            (struct attack_mode[]){ { "attack", attack }, { "control", control }, { 0 } });
}
