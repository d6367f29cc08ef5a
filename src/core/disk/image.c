/* image.c - makes, mounts and ends images. */
#include "core/disk/image.h"
#include "base/buf.h"
#include "base/dir.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/store.h"
#include "base/str.h"
#include "git/program.h"
#include "layer/layer.h"
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/loop.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <unistd.h>

#define IMAGE "disk.img"
#define MKFS_MS 60000U
#define LOOP_TRIES 64
#define FULL_PART                                                                              \
    32 /* a write that does not fit leaves some room: the last part counts as full */

#define LEAST_BYTES (UINT64_C(2) << 20) /* of which mkfs.ext4 makes a file system of use */

static const char needs[] = "an exact disk limit (--require disk) needs";

/* --- the file system --- */

static const char *find_mkfs(void)
{
    static const char *const paths[] = { "/usr/sbin/mkfs.ext4", "/sbin/mkfs.ext4" };

    for (size_t i = 0; i < ARRAY_LEN(paths); i++)
        if (faccessat(AT_FDCWD, paths[i], X_OK, AT_EACCESS) == 0)
            return paths[i];
    return NULL;
}

int disk_image_check(uint64_t bytes, struct carrel_error *err)
{
    char size[32];
    char least[32];

    if (geteuid() != 0)
        return err_set(err, -ENOTSUP,
                "%s root, for files on the host's file systems; an ordinary user has one that "
                "is enforced by polling, without --require disk, or runs in memory, without a "
                "workspace",
                needs);
    if (bytes < LEAST_BYTES)
        return err_set(err, -EINVAL,
                "--disk %s is too small for a file system, which --require disk makes; "
                "expected at least %s",
                str_size(bytes, size), str_size(LEAST_BYTES, least));
    if (!find_mkfs())
        return err_set(
                err, -ENOTSUP, "%s mkfs.ext4: apt install e2fsprogs, or the like", needs);
    AUTO(fd_close) int control = open("/dev/loop-control", O_RDWR | O_CLOEXEC);
    return control < 0 ? err_set(err, -ENOTSUP, "%s loop devices; open '/dev/loop-control': %s",
                                 needs, strerrordesc_np(errno))
                       : 0;
}

/* The first line of what mkfs.ext4 says, without the name of the file, which is ours. */
static int refuse(uint64_t bytes, const char *text, struct carrel_error *err)
{
    char size[32];
    const char *after = strstr(text, ": ");
    const char *said = after && text[0] == '/' ? after + 2 : text;

    return err_set(err, -ENOTSUP, "make a file system for --disk %s: mkfs.ext4 says '%.*s'",
            str_size(bytes, size), (int)strcspn(said, "\n"), said);
}

/*
 * Its tables are part of the size: a program can write about 96 % of it. Nothing may give back
 * blocks of the file, which are reserved: nodiscard.
 */
static int format(int file, uint64_t bytes, struct carrel_error *err)
{
    AUTO(buf_finish) struct buf complaints = BUF_INIT(400);
    char path[64];
    const char *mkfs = find_mkfs();

    assert(mkfs); /* disk_image_check() */
    (void)snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)getpid(), file);
    const char *const argv[] = { "mkfs.ext4", "-q", "-F", "-b", "4096", "-i", "8192", "-m", "0",
        "-O", "^has_journal,^resize_inode", "-E", "nodiscard,lazy_itable_init=1", path, NULL };
    static const char *const env[] = { "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C", NULL };
    const struct program program = {
        .path = mkfs,
        .name = "mkfs.ext4",
        .argv = argv,
        .env = env,
        .cwd = "/",
        .input_fd = -1,
        .output_fd = -1,
        .complaints = &complaints,
        .timeout_ms = MKFS_MS,
    };
    int r = program_run_to_end(&program, err);
    return r > 0 ? refuse(bytes, complaints.data ? complaints.data : "", err) : r;
}

/*
 * Writes into a file with holes fail when the host's disk is full, and the program that wrote
 * does not learn of it: the image has said yes already. So all blocks are reserved. The free
 * space is compared first, since fallocate() would fill the host's disk before it fails.
 */
static int reserve(int file, uint64_t bytes, struct carrel_error *err)
{
    char size[32];
    char room[32];
    struct statfs now;

    if (fstatfs(file, &now) < 0)
        return err_set_errno(err, -errno, "look at the free space for --disk");
    const uint64_t free_bytes = (uint64_t)now.f_bavail * (uint64_t)now.f_bsize;
    int r = free_bytes < bytes ? -ENOSPC : fallocate(file, 0, 0, (off_t)bytes) < 0 ? -errno : 0;
    if (r == -ENOSPC)
        return err_set(err, r,
                "--disk %s does not fit: --require disk reserves it, and the file system of "
                "the state directory has %s free",
                str_size(bytes, size), str_size(free_bytes >> 20 << 20, room));
    if (r == -EOPNOTSUPP)
        return err_set(err, -ENOTSUP,
                "%s a file system that can reserve space (fallocate), such as ext4, xfs or "
                "btrfs; that of the state directory (type 0x%lx) cannot",
                needs, (unsigned long)now.f_type);
    return r < 0 ? err_set_errno(err, r, "reserve %s for --disk", str_size(bytes, size)) : 0;
}

static int make_file(int dir, uint64_t bytes, struct carrel_error *err)
{
    AUTO(fd_close)
    int file = openat(
            dir, STORE_DISK_DRAFT, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);

    if (file < 0)
        return err_set_errno(err, -errno, "create '" STORE_DISK_DRAFT "'");
    int r = reserve(file, bytes, err);
    return r < 0 ? r : format(file, bytes, err);
}

/* --- mounting --- */

/*
 * The loop device that has the file already, while a sandbox of a killed process still ends: a
 * second file system on the same file would not see what the first one has not written yet. -1:
 * there is none.
 */
static int find_loop(int file, char device[static 32])
{
    AUTO(dir_close) DIR *dir = dir_open(AT_FDCWD, "/sys/block");
    struct stat st;

    if (fstat(file, &st) < 0)
        return -1;
    for (const char *name; dir && (name = dir_next(dir));) {
        struct loop_info64 info;
        char entry[NAME_MAX + 8];
        if (strncmp(name, "loop", 4) != 0 || strlen(name) > 16)
            continue;
        (void)snprintf(entry, sizeof(entry), "%s/loop", name);
        if (faccessat(dirfd(dir), entry, F_OK, 0) < 0) /* it has no file */
            continue;
        (void)snprintf(device, 32, "/dev/%.16s", name);
        AUTO(fd_close) int loop = open(device, O_RDONLY | O_CLOEXEC); /* it stays while open */
        if (loop >= 0 && ioctl(loop, LOOP_GET_STATUS64, &info) == 0 &&
                info.lo_device == st.st_dev && info.lo_inode == st.st_ino)
            return fd_steal(&loop);
    }
    return -1;
}

/* A loop device that has the file, and is free again when nothing uses it any more. */
static int attach(int file, char device[static 32], struct carrel_error *err)
{
    const struct loop_config config = {
        .fd = (uint32_t)file,
        .info.lo_flags = LO_FLAGS_AUTOCLEAR,
    };
    AUTO(fd_close) int control = open("/dev/loop-control", O_RDWR | O_CLOEXEC);

    if (control < 0)
        return err_set(err, -ENOTSUP, "%s loop devices; open '/dev/loop-control': %s", needs,
                strerrordesc_np(errno));
    for (unsigned i = 0; i < LOOP_TRIES; i++) {
        int number = ioctl(control, LOOP_CTL_GET_FREE);
        if (number < 0)
            return err_set_errno(err, -errno, "find a free loop device");
        (void)snprintf(device, 32, "/dev/loop%d", number);
        AUTO(fd_close) int loop = open(device, O_RDWR | O_CLOEXEC);
        if (loop < 0)
            return err_set(err, -ENOTSUP, "%s loop devices; open '%s': %s", needs, device,
                    strerrordesc_np(errno));
        if (ioctl(loop, LOOP_CONFIGURE, &config) == 0)
            return fd_steal(&loop);
        if (errno != EBUSY) /* another process was faster */
            return err_set_errno(err, -errno, "set up '%s'", device);
    }
    return err_set(err, -EBUSY, "no loop device is free");
}

static int mount_file(int dir, const char *name, struct carrel_error *err)
{
    char device[32];
    char path[64];

    AUTO(fd_close) int file = openat(dir, name, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
    if (file < 0)
        return err_set_errno(err, -errno, "open '%s'", name);
    int found = find_loop(file, device);
    AUTO(fd_close) int loop = found >= 0 ? found : attach(file, device, err);
    if (loop < 0)
        return loop;
    if (mkdirat(dir, STORE_DISK, 0700) < 0 && errno != EEXIST)
        return err_set_errno(err, -errno, "create '" STORE_DISK "'");
    (void)snprintf(path, sizeof(path), "/proc/self/fd/%d/" STORE_DISK, dir);
    /* noinit_itable: tables that are zeroed later would be given back to the host's disk. */
    if (mount(device, path, "ext4", MS_NOSUID | MS_NODEV | MS_NOATIME, "noinit_itable") < 0)
        return err_set(err, -ENOTSUP, "%s the right to mount ext4, which root has: %s", needs,
                strerrordesc_np(errno));
    /* What is mounted below it stays in this namespace. The image itself is also in those that
     * share mounts with this one, until it is unmounted here. */
    (void)mount(NULL, path, NULL, MS_PRIVATE, NULL);
    int image = openat(dir, STORE_DISK, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return image < 0 ? err_set_errno(err, -errno, "open '" STORE_DISK "'") : image;
}

static int open_tree_dir(int image, struct carrel_error *err)
{
    int tree = openat(image, DISK_IMAGE_TREE, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    return tree < 0 ? err_set_errno(err, -errno, "open '" DISK_IMAGE_TREE "' of a disk image")
                    : tree;
}

/* The parts of a workspace; a layer's are empty, and stay outside. */
static int fill(int image, int dir, struct carrel_error *err)
{
    static const char *const dirs[] = { DISK_IMAGE_TREE, DISK_IMAGE_TREE "/work",
        DISK_IMAGE_TREE "/gitwork", DISK_IMAGE_FILES, DISK_IMAGE_FILES "/upper",
        DISK_IMAGE_FILES "/work" };

    for (size_t i = 0; i < ARRAY_LEN(dirs); i++)
        if (mkdirat(image, dirs[i], 0755) < 0)
            return err_set_errno(err, -errno, "create '%s' in a disk image", dirs[i]);
    AUTO(fd_close) int tree = open_tree_dir(image, err);
    return tree < 0 ? tree : layer_copy_parts(dir, tree, err);
}

static int begin(int dir, uint64_t bytes, struct carrel_error *err)
{
    char size[32];
    int r = disk_image_check(bytes, err);

    if (r == 0)
        r = make_file(dir, bytes, err);
    if (r < 0)
        return r;
    AUTO(fd_close) int image = mount_file(dir, STORE_DISK_DRAFT, err);
    if (image < 0)
        return image;
    r = fill(image, dir, err);
    if (r < 0)
        return err_wrap(
                err, r, "put the files of the workspace into --disk %s", str_size(bytes, size));
    if (renameat(dir, STORE_DISK_DRAFT, dir, IMAGE) < 0)
        return err_set_errno(err, -errno, "name a disk image");
    return fd_steal(&image);
}

int disk_image_begin(int dir, uint64_t bytes, struct carrel_error *err)
{
    store_unmount(dir); /* of a killed process */
    int r = begin(dir, bytes, err);
    if (r < 0)
        store_unmount(dir);
    return r;
}

/* --- ending --- */

static int bring_back(int image, int dir, struct carrel_error *err)
{
    AUTO(fd_close) int tree = open_tree_dir(image, err);
    if (tree < 0)
        return tree;
    int r = layer_remove_parts(dir, err);
    if (r == 0)
        r = layer_copy_parts(tree, dir, err);
    if (r == 0 && syncfs(dir) < 0) /* before the only other copy is removed */
        r = err_set_errno(err, -errno, "write to the disk");
    if (r < 0)
        (void)layer_remove_parts(dir, NULL); /* half a copy only takes room; else replaced */
    return r;
}

int disk_image_end(int dir, struct carrel_error *err)
{
    AUTO(fd_close)
    int image = openat(dir, STORE_DISK, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    int r = image < 0 ? err_set_errno(err, -errno, "open '" STORE_DISK "'")
                      : bring_back(image, dir, err);

    if (r < 0)
        return err_wrap(err, r, "take files out of a disk image");
    store_unmount(dir);
    if (unlinkat(dir, IMAGE, 0) < 0)
        return err_set_errno(err, -errno, "remove '" IMAGE "'");
    return 0;
}

int disk_image_recover(int dir, struct carrel_error *err)
{
    store_unmount(dir);
    if (faccessat(dir, IMAGE, F_OK, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT ? 0 : err_set_errno(err, -errno, "look for '" IMAGE "'");
    AUTO(fd_close) int image = mount_file(dir, IMAGE, err);
    if (image < 0)
        return err_wrap(err, image, "mount the disk image of a run that was killed");
    int r = disk_image_end(dir, err);
    if (r < 0)
        store_unmount(dir);
    return r;
}

bool disk_image_is_full(int image)
{
    struct statvfs now;

    return fstatvfs(image, &now) == 0 &&
           (now.f_bavail <= now.f_blocks / FULL_PART || now.f_ffree == 0);
}
