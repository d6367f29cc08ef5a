/* renew.c - making work directories anew, and the boot under which they were used. */
#include "workspace/renew.h"
#include "base/auto.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/kernel.h"
#include "base/tree.h"
#include "workspace/record.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static int make_anew(struct workspace *ws, const char *name, struct carrel_error *err)
{
    int r = tree_remove(ws->dir, name, err);

    if (r == 0 && mkdirat(ws->dir, name, 0755) < 0 && errno != EEXIST)
        r = err_set_errno(err, -errno, "create '%s/%s'", ws->path, name);
    return r < 0 ? err_wrap(err, r, "workspace '%s'", ws->run) : 0;
}

static int make_both_anew(struct workspace *ws, struct carrel_error *err)
{
    int r = ws->mode == WORKSPACE_OVERLAY ? make_anew(ws, "work", err) : 0;

    return r == 0 && ws->mode == WORKSPACE_OVERLAY && !ws->is_folder
                   ? make_anew(ws, "gitwork", err)
                   : r;
}

/* Present from the first use on, until the orderly end. */
int workspace_begin_use(struct workspace *ws, struct carrel_error *err)
{
    char boot[KERNEL_BOOT_ID_MAX];

    int r = kernel_boot_id(boot, err);
    if (r < 0)
        return r;
    AUTO(fd_close)
    int fd = openat(
            ws->dir, "used", O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0644);
    if (fd < 0)
        return err_set_errno(err, -errno, "create '%s/used'", ws->path);
    r = fd_write_all(fd, boot, strlen(boot));
    if (r < 0)
        return err_set_errno(err, r, "write '%s/used'", ws->path);
    if (ws->phase == WORKSPACE_READY)
        return 0;
    /* What was harvested is not all there is from now on, however the next run ends. */
    ws->phase = WORKSPACE_READY;
    return workspace_save(ws, err);
}

int workspace_end_use(struct workspace *ws, bool is_changed, struct carrel_error *err)
{
    if (is_changed && syncfs(ws->dir) < 0)
        return err_set_errno(err, -errno, "write workspace '%s' to the disk", ws->run);
    int r = make_both_anew(ws, err);
    if (r == 0 && unlinkat(ws->dir, "used", 0) < 0 && errno != ENOENT)
        r = err_set_errno(err, -errno, "remove '%s/used'", ws->path);
    return r;
}

bool workspace_is_in_use(const struct workspace *ws)
{
    AUTO(fd_close) int lock = ws->lock >= 0 ? -EWOULDBLOCK : record_try_lock(ws->dir);

    return lock == -EWOULDBLOCK;
}

/* Of a git that was killed with its sandbox: the next one would not begin. */
static void remove_index_lock(const struct workspace *ws)
{
    AUTO(fd_close)
    int dir = openat(ws->dir, "gitupper", O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    if (dir >= 0)
        (void)unlinkat(dir, "index.lock", 0); /* mostly there is none */
}

int workspace_renew(struct workspace *ws, struct carrel_error *err)
{
    char now[KERNEL_BOOT_ID_MAX];
    char then[KERNEL_BOOT_ID_MAX];

    if (fd_read_file(ws->dir, "used", then, sizeof(then)) >= 0 &&
            kernel_boot_id(now, NULL) == 0 && strcmp(now, then) != 0)
        (void)snprintf(ws->note, sizeof(ws->note),
                "the machine stopped under this run; files it wrote last may be short");
    remove_index_lock(ws);
    return make_both_anew(ws, err);
}
