/* objects.c - links and copies object files. */
#include "git/objects.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/tree.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define COPY_CHUNK 65536

static void dir_close(DIR *dir)
{
    if (dir)
        (void)closedir(dir);
}
DEFINE_AUTO(DIR *, dir_close)

static int open_dir(int at, const char *name)
{
    int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    return fd < 0 ? -errno : fd;
}

/* A DIR with its own position over the directory `fd`, which the caller keeps. */
static DIR *list(int fd)
{
    AUTO(fd_close) int again = open_dir(fd, ".");
    if (again < 0) {
        errno = -again;
        return NULL;
    }
    DIR *dir = fdopendir(again);
    if (dir)
        (void)fd_steal(&again);
    return dir;
}

static bool exists(int dir, const char *name)
{
    return faccessat(dir, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

static bool is_hex(const char *text, size_t len)
{
    return strlen(text) == len && strspn(text, "0123456789abcdef") == len;
}

static bool is_loose_name(const char *name)
{
    return is_hex(name, 38) || is_hex(name, 62);
}

/*
 * Mode and group as git sets them in a shared repository: readable for those who can read the
 * directory, and of its group.
 */
static int set_shared_mode(int fd, const struct stat *dir)
{
    struct stat st;

    if (fstat(fd, &st) < 0)
        return -errno;
    mode_t mode = 0400 | (dir->st_mode & 0044);
    if ((dir->st_mode & S_ISGID) && st.st_gid != dir->st_gid &&
            fchown(fd, (uid_t)-1, dir->st_gid) < 0)
        return -errno;
    if ((st.st_mode & 07777) != mode && fchmod(fd, mode) < 0)
        return -errno;
    return 0;
}

static int copy_bytes(int from, int to)
{
    char chunk[COPY_CHUNK];

    for (;;) {
        ssize_t n = copy_file_range(from, NULL, to, NULL, SSIZE_MAX >> 1, 0);
        if (n == 0)
            return 0;
        if (n < 0)
            break; /* not supported between these file systems: copy by hand, from here on */
    }
    for (;;) {
        ssize_t n = fd_read_all(from, chunk, sizeof(chunk));
        if (n <= 0)
            return (int)n;
        int r = fd_write_all(to, chunk, (size_t)n);
        if (r < 0)
            return r;
    }
}

/* git's own cleanup removes files that start with "tmp_", if we are killed. */
static int copy_file(int source, int to, const char *name, const struct stat *to_stat)
{
    char tmp[64];

    (void)snprintf(tmp, sizeof(tmp), "tmp_carrel_%d_%" PRIx64, (int)getpid(), clock_ns());
    AUTO(fd_close)
    int fd = openat(to, tmp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return -errno;

    int r = copy_bytes(source, fd);
    if (r == 0)
        r = set_shared_mode(fd, to_stat);
    if (r == 0 && fsync(fd) < 0)
        r = -errno;
    if (r == 0 && renameat(to, tmp, to, name) < 0)
        r = -errno;
    if (r < 0)
        (void)unlinkat(to, tmp, 0); /* the failure above is what matters */
    return r;
}

/*
 * Adds one file. It is complete before it gets its name in `to`, because others then rely on
 * it.
 */
static int put(int from, int to, const char *name, enum objects_care care)
{
    struct stat to_stat;

    if (exists(to, name))
        return 0;
    AUTO(fd_close) int source = openat(from, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (source < 0)
        return -errno;
    if (fstat(to, &to_stat) < 0)
        return -errno;
    if (care == OBJECTS_DURABLE) {
        int r = set_shared_mode(source, &to_stat);
        if (r < 0)
            return r;
        if (fsync(source) < 0)
            return -errno;
    }
    if (linkat(from, name, to, name, 0) == 0 || errno == EEXIST)
        return 0;
    /* Another file system, or links are not supported or forbidden. */
    return copy_file(source, to, name, &to_stat);
}

/* The name of a pack with another suffix; false if `name` is not an index. */
static bool pack_part(const char *idx, const char *ending, char out[static NAME_MAX + 1])
{
    size_t len = strlen(idx);

    if (len < 10 || strncmp(idx, "pack-", 5) != 0 || strcmp(idx + len - 4, ".idx") != 0)
        return false;
    return snprintf(out, NAME_MAX + 1, "%.*s%s", (int)(len - 4), idx, ending) <= NAME_MAX;
}

/* Used if O_TMPFILE is not supported: if we are killed now, the file has no note. */
static int keep_plainly(int to, const char *name, const char *note)
{
    AUTO(fd_close)
    int fd = openat(to, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return -errno;
    return fd_write_all(fd, note, strlen(note));
}

static int keep_at_once(int to, const char *name, const char *note)
{
    AUTO(fd_close) int fd = openat(to, ".", O_WRONLY | O_TMPFILE | O_CLOEXEC, 0600);
    char path[32];

    if (fd < 0)
        return keep_plainly(to, name, note);
    int r = fd_write_all(fd, note, strlen(note));
    if (r < 0)
        return r;
    (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    return linkat(AT_FDCWD, path, to, name, AT_SYMLINK_FOLLOW) < 0 ? -errno : 0;
}

static int keep(int to, const char *idx, const char *note)
{
    char name[NAME_MAX + 1];

    if (!pack_part(idx, ".keep", name))
        return -EINVAL;
    int r = keep_at_once(to, name, note);
    return r == -EEXIST ? 0 : r;
}

/* An empty stream creates a pack without objects, which is not worth keeping. */
static bool is_empty_pack(int dir, const char *name)
{
    static const char nothing[4];
    char header[12]; /* "PACK", version, number of objects */
    AUTO(fd_close) int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);

    return fd >= 0 && fd_read_all(fd, header, sizeof(header)) == sizeof(header) &&
           memcmp(header + 8, nothing, sizeof(nothing)) == 0;
}

static int add_pack(int from, int to, const char *idx, enum objects_care care, const char *note)
{
    static const char *const endings[] = { ".pack", ".rev", ".idx" };
    char name[NAME_MAX + 1];

    if (care == OBJECTS_DURABLE) {
        int r = keep(to, idx, note);
        if (r < 0)
            return r;
    }
    for (size_t i = 0; i < ARRAY_LEN(endings); i++) {
        if (!pack_part(idx, endings[i], name))
            return -EINVAL;
        int r = put(from, to, name, care);
        if (r == -ENOENT && strcmp(endings[i], ".rev") == 0)
            continue; /* git works without it */
        if (r < 0)
            return r;
    }
    return 0;
}

static int add_packs(
        int from, int to, enum objects_care care, const char *note, struct carrel_error *err)
{
    AUTO(fd_close) int source = open_dir(from, "pack");
    if (source == -ENOENT)
        return 0;
    if (source < 0)
        return err_set_errno(err, source, "open the packs of the quarantine");
    if (mkdirat(to, "pack", 0777) < 0 && errno != EEXIST)
        return err_set_errno(err, -errno, "make the directory 'pack' of the repository");
    AUTO(fd_close) int target = open_dir(to, "pack");
    if (target < 0)
        return err_set_errno(err, target, "open the packs of the repository");
    AUTO(dir_close) DIR *dir = list(source);
    if (!dir)
        return err_set_errno(err, -errno, "list the packs of the quarantine");

    const struct dirent *entry;
    char name[NAME_MAX + 1];
    while ((errno = 0, entry = readdir(dir))) {
        if (!pack_part(entry->d_name, ".pack", name) || is_empty_pack(source, name))
            continue;
        int r = add_pack(source, target, entry->d_name, care, note);
        if (r < 0)
            return err_set_errno(err, r, "put '%s' into the repository", name);
    }
    if (errno)
        return err_set_errno(err, -errno, "list the packs of the quarantine");
    if (care == OBJECTS_DURABLE && fsync(target) < 0)
        return err_set_errno(err, -errno, "sync the packs of the repository");
    return 0;
}

/* Opens the two-digit directory in `to`, created if necessary with the sharing of `to`. */
static int open_fan(int to, const char *name)
{
    struct stat st;

    if (fstat(to, &st) < 0)
        return -errno;
    bool is_new = mkdirat(to, name, 0777) == 0;
    if (!is_new && errno != EEXIST)
        return -errno;
    AUTO(fd_close) int fd = open_dir(to, name);
    if (fd < 0)
        return fd;
    if (is_new && (st.st_mode & (S_ISGID | S_IWGRP)) && fchmod(fd, st.st_mode & 07777) < 0)
        return -errno;
    return fd_steal(&fd);
}

static int add_fan(int from, int to, const char *fan, enum objects_care care)
{
    AUTO(fd_close) int source = open_dir(from, fan);
    if (source < 0)
        return source;
    AUTO(fd_close) int target = open_fan(to, fan);
    if (target < 0)
        return target;
    AUTO(dir_close) DIR *dir = list(source);
    if (!dir)
        return -errno;

    const struct dirent *entry;
    while ((errno = 0, entry = readdir(dir))) {
        if (!is_loose_name(entry->d_name))
            continue;
        int r = put(source, target, entry->d_name, care);
        if (r < 0)
            return r;
    }
    if (errno)
        return -errno;
    return care == OBJECTS_DURABLE && fsync(target) < 0 ? -errno : 0;
}

int objects_add(
        int from, int to, enum objects_care care, const char *note, struct carrel_error *err)
{
    int r = add_packs(from, to, care, note, err);
    if (r < 0)
        return r;

    AUTO(dir_close) DIR *dir = list(from);
    if (!dir)
        return err_set_errno(err, -errno, "list the quarantine");
    const struct dirent *entry;
    bool has_loose = false;
    while ((errno = 0, entry = readdir(dir))) {
        if (!is_hex(entry->d_name, 2))
            continue;
        r = add_fan(from, to, entry->d_name, care);
        if (r < 0)
            return err_set_errno(
                    err, r, "put the objects %s... into the repository", entry->d_name);
        has_loose = true;
    }
    if (errno)
        return err_set_errno(err, -errno, "list the quarantine");
    if (has_loose && care == OBJECTS_DURABLE && fsync(to) < 0)
        return err_set_errno(err, -errno, "sync the objects of the repository");
    return 0;
}

static bool holds(int dir, const char *name, const char *text)
{
    char found[512];
    AUTO(fd_close) int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

    if (fd < 0)
        return false;
    ssize_t n = fd_read_all(fd, found, sizeof(found));
    return n >= 0 && (size_t)n == strlen(text) && memcmp(found, text, (size_t)n) == 0;
}

static bool is_keep(const char *name)
{
    size_t len = strlen(name);

    return len > 10 && strncmp(name, "pack-", 5) == 0 && strcmp(name + len - 5, ".keep") == 0;
}

int objects_unkeep(int to, const char *note, struct carrel_error *err)
{
    AUTO(fd_close) int packs = open_dir(to, "pack");
    if (packs < 0)
        return 0; /* no packs: nothing is kept */
    AUTO(dir_close) DIR *dir = list(packs);
    if (!dir)
        return err_set_errno(err, -errno, "list the packs of the repository");

    const struct dirent *entry;
    int worst = 0;
    while ((entry = readdir(dir))) {
        if (!is_keep(entry->d_name) || !holds(packs, entry->d_name, note))
            continue;
        if (unlinkat(packs, entry->d_name, 0) < 0 && errno != ENOENT)
            worst = err_set_errno(
                    err, -errno, "remove '%s' from the repository", entry->d_name);
    }
    return worst;
}

/* Removes all entries for which `is_it` holds. */
static int clear(int from, bool (*is_it)(const char *name, const char *word), const char *word,
        struct carrel_error *err)
{
    AUTO(dir_close) DIR *dir = list(from);
    if (!dir)
        return err_set_errno(err, -errno, "list the quarantine");

    const struct dirent *entry;
    while ((errno = 0, entry = readdir(dir))) {
        if (entry->d_name[0] == '.' || !is_it(entry->d_name, word))
            continue;
        int r = tree_remove(from, entry->d_name, err);
        if (r < 0)
            return r;
    }
    return errno ? err_set_errno(err, -errno, "list the quarantine") : 0;
}

static bool is_of_another_pack(const char *name, const char *but)
{
    const size_t len = strlen(but);

    return strncmp(name, but, len) != 0 || name[len] != '.';
}

static bool is_fan(const char *name, const char *unused)
{
    (void)unused;
    return is_hex(name, 2);
}

int objects_clear(int from, const char *but, struct carrel_error *err)
{
    if (!but) {
        int r = tree_remove(from, "pack", err);
        return r < 0 ? r : clear(from, is_fan, NULL, err);
    }
    AUTO(fd_close) int packs = open_dir(from, "pack");
    if (packs < 0)
        return err_set_errno(err, packs, "open the packs of the quarantine");
    int r = clear(packs, is_of_another_pack, but, err);
    return r < 0 ? r : clear(from, is_fan, NULL, err);
}
