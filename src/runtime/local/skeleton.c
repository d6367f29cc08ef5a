/*
 * skeleton.c - created under another name, renamed when complete, never changed.
 *
 * Names in the directory: "root-HASH" is complete, "new-RANDOM" is under construction,
 * "old-RANDOM" is to be removed. A sweep renames first and then checks whether a sandbox is
 * alive: a later start does not find the old name, and an incomplete one never gets the name of
 * a complete one.
 */
#include "runtime/local/skeleton.h"
#include "base/dir.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/sha256.h"
#include "base/tree.h"
#include "runtime/local/inside/sys.h"
#include "runtime/local/plan.h"
#include "runtime/local/slot.h"
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#define COMPLETE "root-"
#define NEW "new-"
#define OLD "old-"
#define MOST 16 /* a caller with another host name for each run must not fill the disk */
#define NAME_SIZE 80

static void hash_text(struct sha256 *sha, const char *text)
{
    sha256_add(sha, text ? text : "", text ? strlen(text) + 1 : 1); /* the NUL ends it */
}

/* The name is a hash of the content. */
static void name_of(const struct plan *plan, char name[static NAME_SIZE])
{
    char hex[SHA256_HEX];
    struct sha256 sha;

    sha256_init(&sha);
    for (size_t i = 0; i < plan->n_steps; i++) {
        const struct step *step = &plan->steps[i];
        if (!step_is_skeleton(step->kind))
            continue;
        const uint32_t facts[] = { (uint32_t)step->kind, step->mode };
        sha256_add(&sha, facts, sizeof(facts));
        hash_text(&sha, step->path);
        hash_text(&sha, step->source);
    }
    sha256_finish_hex(&sha, hex);
    (void)snprintf(name, NAME_SIZE, COMPLETE "%s", hex);
}

static int random_name(const char *prefix, char name[static NAME_SIZE])
{
    uint64_t number;

    if (getrandom(&number, sizeof(number), 0) != (ssize_t)sizeof(number))
        return -errno;
    (void)snprintf(name, NAME_SIZE, "%s%016jx", prefix, (uintmax_t)number);
    return 0;
}

/* fchmod everywhere below: the caller's umask must not apply. */
static int make_dir(int root, const char *path, mode_t mode)
{
    if (mkdirat(root, path, 0700) < 0 || fchmodat(root, path, mode, 0) < 0)
        return -errno;
    return 0;
}

static int make_file(int root, const struct step *step)
{
    AUTO(fd_close)
    int fd = openat(
            root, step->path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return -errno;
    size_t len = strlen(step->source);
    int r = fd_write_all(fd, step->source, len);
    if (r < 0)
        return r;
    return fchmod(fd, step->mode) < 0 || (len > 0 && fsync(fd) < 0) ? -errno : 0;
}

/* The same device as the host's, instead of the file on which it would be mounted. */
static int make_device(int root, const struct step *step)
{
    struct stat st;

    if (stat(step->source, &st) < 0)
        return -errno;
    if (!S_ISCHR(st.st_mode))
        return -ENODEV;
    if (unlinkat(root, step->path, 0) < 0 ||
            mknodat(root, step->path, S_IFCHR | 0600, st.st_rdev) < 0 ||
            fchmodat(root, step->path, st.st_mode & 0777, 0) < 0)
        return -errno;
    return 0;
}

static int make_step(int root, const struct step *step)
{
    if (step->kind == STEP_DIR)
        return make_dir(root, step->path, step->mode);
    if (step->kind == STEP_LINK)
        return symlinkat(step->source, root, step->path) < 0 ? -errno : 0;
    if (step->kind == STEP_FILE)
        return make_file(root, step);
    if (step->kind == STEP_DEVICE)
        return make_device(root, step);
    return 0;
}

static int sync_dir(int root, const char *path)
{
    AUTO(fd_close) int dir = openat(root, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    return dir < 0 || fsync(dir) < 0 ? -errno : 0;
}

/* If /run is on a disk, a skeleton must be complete even after a crash of the machine. */
static int fill(int root, const struct plan *plan)
{
    int r = 0;

    for (size_t i = 0; r == 0 && i < plan->n_steps; i++)
        r = make_step(root, &plan->steps[i]);
    for (size_t i = 0; r == 0 && i < plan->n_steps; i++)
        if (plan->steps[i].kind == STEP_DIR)
            r = sync_dir(root, plan->steps[i].path);
    if (r == 0 && fchmod(root, 0755) < 0)
        r = -errno;
    return r < 0 ? r : sync_dir(root, ".");
}

/* Calls `visit` for each skeleton in any state. Returns how many calls returned true. */
static int count(int dir, bool (*visit)(int dir, const char *name))
{
    static const char *const prefixes[] = { COMPLETE, NEW, OLD };
    AUTO(dir_close) DIR *list = dir_open(dir, ".");
    int n = 0;

    if (!list)
        return -errno;
    for (const char *name; (name = dir_next(list));)
        for (size_t i = 0; i < ARRAY_LEN(prefixes); i++)
            if (strncmp(name, prefixes[i], strlen(prefixes[i])) == 0)
                n += visit(dir, name);
    return n;
}

static bool is_there(int dir, const char *name)
{
    (void)dir;
    (void)name;
    return true;
}

static bool retire(int dir, const char *name)
{
    char old[NAME_SIZE];

    if (strncmp(name, OLD, strlen(OLD)) == 0 || random_name(OLD, old) < 0)
        return false;
    return renameat(dir, name, dir, old) == 0;
}

static bool remove_retired(int dir, const char *name)
{
    return strncmp(name, OLD, strlen(OLD)) == 0 && tree_remove(dir, name, NULL) == 0;
}

static int make(int dir, const char *name, const struct plan *plan)
{
    char made[NAME_SIZE];

    int n = count(dir, is_there);
    if (n < 0 || n >= MOST)
        return n < 0 ? n : -ENOSPC;
    int r = random_name(NEW, made);
    if (r < 0)
        return r;
    if (mkdirat(dir, made, 0700) < 0)
        return -errno;
    AUTO(fd_close) int root = openat(dir, made, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    r = root < 0 ? -errno : fill(root, plan);
    if (r == 0 && renameat(dir, made, dir, name) < 0)
        r = -errno; /* -ENOTEMPTY: another process was faster */
    if (r < 0)
        (void)tree_remove(dir, made, NULL); /* a sweep removes what is left */
    return r;
}

static int clone_part(int dir, const char *path, uint64_t set, uint64_t clear)
{
    struct mount_attr attr = {
        .attr_set = set,
        .attr_clr = clear,
        .propagation = MS_PRIVATE,
    };
    AUTO(fd_close)
    int mount = open_tree(dir, path,
            OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH);

    if (mount < 0 || mount_setattr(mount, "", AT_EMPTY_PATH, &attr, sizeof(attr)) < 0)
        return -errno;
    return fd_steal(&mount);
}

/* Under either name: a sweep may retire it meanwhile, and removes it later. */
static int find(int dir, const char *name)
{
    int fd = openat(dir, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    return fd < 0 ? -errno : fd;
}

int skeleton_open(
        struct skeleton *skeleton, int dir, const struct plan *plan, struct carrel_error *err)
{
    const uint64_t fixed = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID;
    char name[NAME_SIZE];

    if (!plan->shares_skeleton)
        return 0;
    name_of(plan, name);
    AUTO(fd_close) int found = find(dir, name);
    if (found == -ENOENT) {
        (void)make(dir, name, plan); /* the lookup below tells whether it worked */
        found = find(dir, name);
        if (found == -ENOENT)
            return 0;
    }
    AUTO(fd_close)
    int root = found < 0 ? found : clone_part(found, "", fixed | MOUNT_ATTR_NODEV, 0);
    /* /run itself may be nodev, which the clone inherits. */
    int dev = root < 0 ? root
                       : clone_part(found, "dev", fixed | MOUNT_ATTR_NOEXEC, MOUNT_ATTR_NODEV);
    if (dev < 0)
        return err_set_errno(err, dev, "mount the skeleton of the root");
    *skeleton = (struct skeleton){ .root = fd_steal(&root), .dev = dev };
    return 0;
}

void skeleton_close(struct skeleton *skeleton)
{
    fd_close(fd_steal(&skeleton->root));
    fd_close(fd_steal(&skeleton->dev));
}

int skeleton_sweep(int dir, struct carrel_error *err)
{
    int r = count(dir, retire);

    if (r < 0)
        return err_set_errno(err, r, "look for skeletons of roots");
    r = slot_any_taken(dir, err);
    if (r != 0)
        return r < 0 ? r : 0;
    (void)count(dir, remove_retired); /* the next sweep tries again */
    return 0;
}
