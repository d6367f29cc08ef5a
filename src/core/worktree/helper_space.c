/* helper_space.c - upper and work directories. */
#include "core/worktree/helper_space.h"
#include "base/auto.h"
#include "base/err.h"
#include "base/fd.h"
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

int helper_space_make(int dir, const char *name, struct carrel_error *err)
{
    static const char *const parts[] = { "upper", "work", "gitupper", "gitwork", "lower" };

    if (mkdirat(dir, name, 0755) < 0)
        return err_set_errno(err, -errno, "create '%s'", name);
    AUTO(fd_close) int space = openat(dir, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (size_t i = 0; i < ARRAY_LEN(parts); i++)
        if (space < 0 || mkdirat(space, parts[i], 0755) < 0)
            return err_set_errno(err, -errno, "create '%s/%s'", name, parts[i]);
    return 0;
}

struct sandbox_overlay helper_space_overlay(const char *const *lower, const char *space)
{
    return (struct sandbox_overlay){
        .lower = lower, .space = space, .upper = "upper", .work = "work"
    };
}

struct sandbox_mount helper_space_mount(
        const struct sandbox_overlay *overlay, const char *target)
{
    return (struct sandbox_mount){
        .target = target, .access = ACCESS_READ_WRITE, .overlay = overlay
    };
}
