/* tree_kind.c - the kernel's overlay where it works, else a copy. */
#include "core/worktree/tree_kind.h"
#include "base/auto.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/kernel.h"
#include "base/tree.h"
#include "core/worktree/helper.h"
#include "core/worktree/helper_space.h"
#include "core/worktree/overlay_probe_sh.h"
#include "core/worktree/worktree.h"
#include "workspace/private.h"
#include <carrel/run.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <unistd.h>

#define PROBE_TIMEOUT_MS 20000U

/* Tries an overlay in a sandbox, on the file system where workspaces will be. */
static int probe_overlay(const struct worktree_request *q, const char *state, int dir,
        const char *name, struct carrel_error *err)
{
    char space[PATH_MAX];
    char lower[PATH_MAX];
    AUTO(helper_finish) struct helper helper = INNER_INIT;

    int r = helper_space_make(dir, name, err);
    if (r < 0)
        return r;
    if (snprintf(space, sizeof(space), "%s/%s", state, name) >= (int)sizeof(space) ||
            snprintf(lower, sizeof(lower), "%s/%s/lower", state, name) >= (int)sizeof(lower))
        return err_set_errno(err, -ENAMETOOLONG, "'%s'", state);
    const struct sandbox_overlay overlay =
            helper_space_overlay((const char *const[]){ lower, NULL }, space);
    const struct sandbox_mount mount = helper_space_mount(&overlay, PRIVATE_WORK_TREE);
    const struct helper_spec spec = {
        .runtime = q->runtime, .mounts = &mount, .n_mounts = 1, .script = overlay_probe_sh
    };
    r = helper_start(&spec, PROBE_TIMEOUT_MS, &helper, err);
    if (r == 0)
        r = helper_wait(&helper, err);
    return r > 0 ? err_set(err, -ENOTSUP, "a file could not be written in an overlay") : r;
}

/* Remembered: trying costs a sandbox. */
bool tree_kind_has_overlay(
        const struct worktree_request *q, const char *state, struct carrel_error *err)
{
    char boot[KERNEL_BOOT_ID_MAX];
    char known[KERNEL_BOOT_ID_MAX];
    char name[32];

    AUTO(fd_close) int dir = open(state, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0) {
        (void)err_set_errno(err, -errno, "'%s'", state);
        return false;
    }
    if (kernel_boot_id(boot, err) < 0)
        return false;
    if (fd_read_file(dir, "overlay", known, sizeof(known)) >= 0 && strcmp(known, boot) == 0)
        return true;
    (void)snprintf(name, sizeof(name), ".probe-%d", (int)getpid());
    (void)tree_remove(dir, name, NULL); /* of a killed process that had our number */
    int r = probe_overlay(q, state, dir, name, err);
    (void)tree_remove(dir, name, NULL); /* stays behind, empty, at worst */
    if (r < 0)
        return false;
    char path[PATH_MAX];
    (void)snprintf(path, sizeof(path), "%s/overlay", state);
    (void)fd_replace_file(path, boot, strlen(boot), 0644, NULL); /* else we try again */
    return true;
}

int tree_kind_choose(const struct worktree_request *q, const char *state,
        enum workspace_mode *mode, struct carrel_error *err)
{
    struct carrel_error why = { 0 };

    switch (q->options->tree) {
    case CARREL_TREE_COPY:
        *mode = WORKSPACE_COPY;
        return 0;
    case CARREL_TREE_OVERLAY:
    case CARREL_TREE_AUTO:
        break;
    }
    if (tree_kind_has_overlay(q, state, &why)) {
        *mode = WORKSPACE_OVERLAY;
        return 0;
    }
    if (q->options->tree == CARREL_TREE_OVERLAY)
        return err_set(err, -ENOTSUP,
                "overlayfs does not work here (%s); leave --tree away for a fallback, or keep "
                "the state directory (XDG_STATE_HOME) on ext4, xfs or btrfs",
                why.message);
    *mode = WORKSPACE_COPY;
    return 0;
}
