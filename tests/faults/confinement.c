/* confinement.c - from /proc and the cgroup file system. */
#include "confinement.h"
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LEN(array) (sizeof(array) / sizeof((array)[0]))

static char *read_proc(pid_t pid, const char *file, char *text, size_t size)
{
    char path[64];

    (void)snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, file);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = 0;
    size_t got = 0;
    while (fd >= 0 && got < size - 1 && (n = read(fd, text + got, size - 1 - got)) > 0)
        got += (size_t)n;
    if (fd < 0)
        got = (size_t)snprintf(text, size, "unreadable: %s\n", strerror(errno));
    else
        (void)close(fd);
    text[got] = '\0';
    return text;
}

static void put_status(FILE *to, pid_t pid)
{
    static const char *const wanted[] = { "Umask", "Uid", "Gid", "Groups", "SigBlk", "SigIgn",
        "CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb", "NoNewPrivs", "Seccomp",
        "Seccomp_filters" };
    char text[8192];
    char *rest = NULL;

    (void)read_proc(pid, "status", text, sizeof(text));
    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        size_t len = strcspn(line, ":");
        bool is_id = strncmp(line, "Uid:", 4) == 0 || strncmp(line, "Gid:", 4) == 0;
        for (size_t i = 0; i < LEN(wanted); i++) {
            if (strlen(wanted[i]) != len || strncmp(line, wanted[i], len) != 0)
                continue;
            /* As root each sandbox has its own ids: only check that all four are equal. */
            unsigned id[4] = { 0 };
            if (is_id &&
                    sscanf(line + len + 1, "%u %u %u %u", &id[0], &id[1], &id[2], &id[3]) == 4)
                (void)fprintf(to, "%.3s: %s, %s\n", line, id[0] ? "not root" : "ROOT",
                        id[0] == id[1] && id[1] == id[2] && id[2] == id[3] ? "one" : "MIXED");
            else
                (void)fprintf(to, "%s\n", line);
        }
        if (strncmp(line, "NSpid:", 6) == 0) {
            unsigned depth = 0;
            for (const char *c = line; *c; c++)
                depth += isdigit((unsigned char)*c) && !isdigit((unsigned char)c[-1]);
            (void)fprintf(to, "pid namespaces: %u\n", depth);
        }
    }
}

static void put_map(FILE *to, pid_t pid, const char *file)
{
    char text[1024];
    char *rest = NULL;

    (void)read_proc(pid, file, text, sizeof(text));
    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        unsigned inside = 0;
        unsigned outside = 0;
        unsigned count = 0;
        if (sscanf(line, "%u %u %u", &inside, &outside, &count) == 3)
            (void)fprintf(to, "%s: %u %s %u\n", file, inside,
                    outside == 0       ? "ROOT"
                    : outside < 100000 ? "a user's"
                                       : "own range",
                    count);
        else
            (void)fprintf(to, "%s: %s\n", file, line);
    }
}

static void put_namespaces(FILE *to, pid_t pid)
{
    static const char *const kinds[] = { "user", "mnt", "pid", "net", "ipc", "uts", "cgroup" };

    for (size_t i = 0; i < LEN(kinds); i++) {
        char theirs[64];
        char ours[64];
        struct stat a;
        struct stat b;
        (void)snprintf(theirs, sizeof(theirs), "/proc/%d/ns/%s", (int)pid, kinds[i]);
        (void)snprintf(ours, sizeof(ours), "/proc/self/ns/%s", kinds[i]);
        if (stat(theirs, &a) < 0 || stat(ours, &b) < 0)
            (void)fprintf(to, "%s namespace: unknown (%s)\n", kinds[i], strerror(errno));
        else
            (void)fprintf(
                    to, "%s namespace: %s\n", kinds[i], a.st_ino == b.st_ino ? "HOST" : "own");
    }
}

/* Mount point, options, type: without the numbers that differ from run to run. */
static void put_mounts(FILE *to, pid_t pid)
{
    static char text[65536];
    char *rest = NULL;

    (void)read_proc(pid, "mountinfo", text, sizeof(text));
    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        char at[512];
        char how[256];
        char *type = strstr(line, " - ");
        char *owner =
                type ? strstr(type, ",uid=") : NULL; /* of the tmpfs: ids of this sandbox */
        if (owner)
            *owner = '\0';
        if (sscanf(line, "%*s %*s %*s %*s %511s %255s", at, how) == 2 && type)
            (void)fprintf(to, "mount: %s %s%s\n", at, how, type + 2);
        else
            (void)fprintf(to, "mount: %s\n", line);
    }
}

static void put_setting(FILE *to, const char *dir, const char *file)
{
    char path[PATH_MAX + 64];
    char value[64] = "unreadable";

    (void)snprintf(path, sizeof(path), "%s/%s", dir, file);
    FILE *from = fopen(path, "re");
    if (!from)
        return; /* a controller without such a file */
    if (fgets(value, sizeof(value), from))
        value[strcspn(value, "\n")] = '\0';
    (void)fclose(from);
    (void)fprintf(to, "cgroup %s: %s\n", file, value);
}

static void put_cgroups(FILE *to, pid_t pid)
{
    static const char *const files[] = { "memory.limit_in_bytes", "memory.max", "pids.max",
        "cpu.cfs_quota_us", "cpu.max", "memory.memsw.limit_in_bytes", "memory.swap.max" };
    char text[4096];
    char *rest = NULL;

    (void)read_proc(pid, "cgroup", text, sizeof(text));
    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        char *controllers = strchr(line, ':');
        char *path = controllers ? strchr(controllers + 1, ':') : NULL;
        char *ours = path ? strstr(path, "/carrel/") : NULL;
        if (!ours)
            continue;
        *path++ = '\0';
        controllers++;
        char dir[PATH_MAX];
        size_t len = strcspn(controllers, ",");
        (void)snprintf(dir, sizeof(dir), "/sys/fs/cgroup/%.*s%s", (int)len, controllers, path);
        (void)fprintf(to, "cgroup %s: member\n", controllers);
        for (size_t i = 0; i < LEN(files); i++)
            put_setting(to, dir, files[i]);
    }
}

static void put_descriptors(FILE *to, pid_t pid)
{
    char path[64];
    bool is_open[1024] = { false };

    (void)snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
    DIR *dir = opendir(path);
    const struct dirent *entry;
    while (dir && (entry = readdir(dir)))
        if (isdigit((unsigned char)entry->d_name[0]) && atoi(entry->d_name) < 1024)
            is_open[atoi(entry->d_name)] = true;
    if (dir)
        (void)closedir(dir);
    (void)fprintf(to, "descriptors:");
    for (int i = 0; i < 1024; i++)
        if (is_open[i])
            (void)fprintf(to, " %d", i);
    (void)fprintf(to, "\n");
}

static void put_rest(FILE *to, pid_t pid)
{
    char text[16384];
    char path[64];
    int session = 0;

    (void)fprintf(to, "%s", read_proc(pid, "limits", text, sizeof(text)));
    (void)read_proc(pid, "environ", text, sizeof(text));
    (void)fprintf(to, "environment:");
    for (const char *entry = text; *entry; entry += strlen(entry) + 1)
        (void)fprintf(to, " %s", entry);
    (void)fprintf(to, "\n");
    (void)snprintf(path, sizeof(path), "/proc/%d/cwd", (int)pid);
    ssize_t n = readlink(path, text, sizeof(text) - 1);
    text[n < 0 ? 0 : n] = '\0';
    (void)fprintf(to, "directory: %s\n", text);
    (void)read_proc(pid, "stat", text, sizeof(text));
    const char *after = strrchr(text, ')');
    if (after && sscanf(after + 1, " %*c %*d %*d %d", &session) == 1)
        (void)fprintf(to, "session: %s\n", session == (int)pid ? "own" : "NOT ITS OWN");
}

char *confinement_describe(pid_t pid)
{
    char *text = NULL;
    size_t size = 0;
    FILE *to = open_memstream(&text, &size);

    if (!to)
        return NULL;
    put_status(to, pid);
    put_map(to, pid, "uid_map");
    put_map(to, pid, "gid_map");
    put_namespaces(to, pid);
    put_cgroups(to, pid);
    put_mounts(to, pid);
    put_descriptors(to, pid);
    put_rest(to, pid);
    (void)fclose(to);
    return text;
}
