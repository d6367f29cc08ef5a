/* fuse.c - fuse-overlayfs and fusermount3, started by argv. */
#include "core/worktree/fuse.h"
#include "base/err.h"
#include "base/fd.h"
#include "core/worktree/worktree.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* Runs a program with nothing but its arguments. Returns its exit status. */
static int run(const char *const *argv, struct carrel_error *err)
{
    static char path[] = "PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin";
    static char *const env[] = { path, NULL };
    posix_spawn_file_actions_t actions;
    pid_t pid;
    int status;

    if (posix_spawn_file_actions_init(&actions) != 0)
        return err_set_errno(err, -ENOMEM, "start %s", argv[0]);
    int r = posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDWR, 0);
    for (int fd = 1; r == 0 && fd <= 2; fd++)
        r = posix_spawn_file_actions_adddup2(&actions, 0, fd);
    if (r == 0)
        r = posix_spawn_file_actions_addclosefrom_np(
                &actions, 3); /* locks must not stay held */
    if (r == 0)
        r = posix_spawnp(&pid, argv[0], &actions, NULL, (char *const *)(uintptr_t)argv, env);
    (void)posix_spawn_file_actions_destroy(&actions);
    if (r != 0)
        return err_set(err, -ENOTSUP,
                "%s cannot be started (%s); apt-get install fuse-overlayfs "
                "fuse3, or use --tree copy",
                argv[0], strerrordesc_np(r));
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return err_set_errno(err, -errno, "wait for %s", argv[0]);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

bool fuse_is_usable(void)
{
    return geteuid() != 0 && access("/dev/fuse", R_OK | W_OK) == 0 &&
           run((const char *const[]){ "fuse-overlayfs", "--version", NULL }, NULL) == 0 &&
           run((const char *const[]){ "fusermount3", "--version", NULL }, NULL) == 0;
}

/* A path in a list of options, where ',' and ':' would mean something. */
static bool is_plain(const char *path)
{
    return strpbrk(path, ",:\\") == NULL;
}

static int check(const struct worktree *place, struct carrel_error *err)
{
    if (geteuid() == 0)
        return err_set(err, -ENOTSUP,
                "fuse-overlayfs is for ordinary users; as root use --tree overlay or copy");
    if (access("/dev/fuse", R_OK | W_OK) < 0)
        return err_set(err, -ENOTSUP,
                "/dev/fuse cannot be used (%s); ask for mode 0666, or use --tree copy",
                strerrordesc_np(errno));
    bool is_good = is_plain(place->ws->path);
    for (size_t i = 0; place->lower[i]; i++)
        is_good = is_good && is_plain(place->lower[i]);
    return is_good ? 0
                   : err_set(err, -ENOTSUP,
                             "fuse-overlayfs cannot take a state directory whose path has ',', "
                             "':' "
                             "or '\\'");
}

int fuse_mount(const struct worktree *place, struct carrel_error *err)
{
    const struct workspace *ws = place->ws;
    AUTO(buf_finish) struct buf options = BUF_INIT(64U << 10);
    char tree[PATH_MAX];

    int r = check(place, err);
    if (r < 0)
        return r;
    if (snprintf(tree, sizeof(tree), "%s/tree", ws->path) >= (int)sizeof(tree))
        return err_set_errno(err, -ENAMETOOLONG, "'%s'", ws->path);
    if (mkdirat(ws->dir, "tree", 0755) < 0 && errno != EEXIST)
        return err_set_errno(err, -errno, "create '%s'", tree);
    buf_add_str(&options, "lowerdir=");
    for (size_t i = 0; place->lower[i]; i++)
        buf_addf(&options, "%s%s", i ? ":" : "", place->lower[i]);
    buf_addf(&options, ",upperdir=%s/upper,workdir=%s/work", ws->path, ws->path);
    if (options.is_short)
        return err_set_errno(err, -ENOMEM, "mount options");
    r = run((const char *const[]){ "fuse-overlayfs", "-o", options.data, tree, NULL }, err);
    return r > 0 ? err_set(err, -ENOTSUP, "fuse-overlayfs failed with status %d", r) : r;
}

int fuse_unmount(const struct workspace *ws, struct carrel_error *err)
{
    struct stat tree;
    struct stat above;
    char path[PATH_MAX];

    int r = fstatat(ws->dir, "tree", &tree, AT_SYMLINK_NOFOLLOW) < 0 ? -errno : 0;
    if (r == -ENOENT || fstat(ws->dir, &above) < 0)
        return 0;
    if (r == 0 && tree.st_dev == above.st_dev)
        return 0; /* -ENOTCONN: a mount whose server is gone */
    (void)snprintf(path, sizeof(path), "%s/tree", ws->path);
    r = run((const char *const[]){ "fusermount3", "-u", "-q", path, NULL }, err);
    return r > 0 ? err_set(err, -EBUSY, "'%s' is in use and cannot be unmounted", path) : r;
}
