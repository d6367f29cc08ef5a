/*
 * Writes to the control groups: lifts its own limits, freezes others, or has the kernel run a
 * program of its choice as root on the host (v1 release_agent, CVE-2022-0492).
 */
#include "attack.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const int *const by_kernel = REASONS(EACCES, EPERM, EROFS);

struct place {
    char dirs[64][256];
    size_t n;
};

/* Every mounted hierarchy, and the usual mount points. */
static void find_hierarchies(struct place *place)
{
    char line[1024], target[256], type[64];
    FILE *file = fopen("/proc/self/mountinfo", "re");

    while (file && fgets(line, sizeof(line), file) && place->n < ARRAY_LEN(place->dirs)) {
        const char *rest = strstr(line, " - ");
        if (rest && sscanf(line, "%*s %*s %*s %*s %255s", target) == 1 &&
                sscanf(rest, " - %63s", type) == 1 && strncmp(type, "cgroup", 6) == 0)
            memcpy(place->dirs[place->n++], target, sizeof(target));
    }
    if (file)
        fclose(file);
    if (place->n == 0 && access("/sys/fs/cgroup", F_OK) == 0)
        snprintf(place->dirs[place->n++], sizeof(place->dirs[0]), "/sys/fs/cgroup");
}

/* Opened for writing and closed: nothing changes. */
static void open_in(
        const char *what, const struct place *place, const char *sub, const char *file)
{
    int why = ENOENT;
    for (size_t i = 0; i < place->n; i++) {
        char path[600];
        snprintf(path, sizeof(path), "%s/%s/%s", place->dirs[i], sub, file);
        int fd = open(path, O_WRONLY | O_CLOEXEC);
        if (fd >= 0) {
            succeeded(what, "%s", path);
            close(fd);
            return;
        }
        if (errno != ENOENT)
            why = errno;
    }
    if (why == ENOENT)
        invisible(what);
    else
        failed(what, why, by_kernel);
}

static void make_child(const struct place *place)
{
    int why = ENOENT;
    for (size_t i = 0; i < place->n; i++) {
        char path[600];
        snprintf(path, sizeof(path), "%s/carrel-escape-%d", place->dirs[i], getpid());
        if (mkdir(path, 0700) == 0) {
            succeeded("make-cgroup", "%s", path);
            rmdir(path);
            return;
        }
        why = errno;
    }
    if (why == ENOENT)
        invisible("make-cgroup");
    else
        failed("make-cgroup", why, by_kernel);
}

static void name_of_cgroup(void)
{
    char line[512];
    FILE *file = fopen("/proc/self/cgroup", "re");
    bool is_named = false;
    while (file && fgets(line, sizeof(line), file)) {
        const char *path = strrchr(line, ':');
        is_named = is_named || (path && strcmp(path, ":/\n") != 0);
    }
    if (file)
        fclose(file);
    if (is_named)
        succeeded("cgroup-path", "the host's path is shown");
    else
        refused("cgroup-path", "only /");
}

/* attack [GROUP]: the name of another sandbox's group, in every hierarchy that has it. */
static void attack(char **args)
{
    struct place place = { .n = 0 };
    const char *other = args[0] ? args[0] : ".";

    find_hierarchies(&place);
    open_in("join-cgroup", &place, other, "cgroup.procs");
    open_in("freeze-v1", &place, other, "freezer.state");
    open_in("freeze-v2", &place, other, "cgroup.freeze");
    open_in("kill-v2", &place, other, "cgroup.kill");
    open_in("memory-limit-v1", &place, other, "memory.limit_in_bytes");
    open_in("memory-limit-v2", &place, other, "memory.max");
    open_in("release_agent", &place, ".", "release_agent");
    open_in("notify_on_release", &place, other, "notify_on_release");
    make_child(&place);
    name_of_cgroup();
}

static void control(char **args)
{
    char byte;
    (void)args;
    int fd = open("/proc/self/cgroup", O_RDONLY | O_CLOEXEC);
    works("read-own-cgroup", fd >= 0 && read(fd, &byte, 1) >= 0);
}

int main(int argc, char **argv)
{
    return attack_main(argc, argv,
            (struct attack_mode[]){ { "attack", attack }, { "control", control }, { 0 } });
}
