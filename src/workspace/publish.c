/*
 * publish.c - a harvest becomes part of the user's repository: objects first, then one ref.
 *
 * In this order a kill at any point leaves at most objects that nothing refers to, which git
 * collects some day, and a second attempt finishes: files that are there already are left, a
 * branch that already is where it should be is done. The quarantine loses its objects only when
 * the branch holds them.
 */
#include "base/err.h"
#include "base/fd.h"
#include "workspace/harvest.h"
#include "workspace/name.h"
#include "workspace/objects.h"
#include "workspace/quarantine.h"
#include "workspace/ref.h"
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int open_dir(const char *path, struct carrel_error *err)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    return fd < 0 ? err_set_errno(err, -errno, "open '%s'", path) : fd;
}

/*
 * Asks once more whether everything is there: weeks may lie between harvest and this, and the
 * harvest may lean on objects that no branch of the user held and that were collected since.
 */
static int check_whole(
        const struct repo *repo, const char *tip, const char *old, struct carrel_error *err)
{
    const struct git git = repo_git(repo);
    const struct git_io limits = GIT_IO_INIT;
    int r = quarantine_check_whole(&git, tip, old, &limits, err);

    return r < 0 ? err_wrap(err, r, "the harvest is not whole any more, take it again") : 0;
}

static bool is_at(const struct repo *repo, const char *branch, const char *tip)
{
    char now[OID_MAX];

    return ref_read(repo, branch, now, NULL) == 0 && strcmp(now, tip) == 0;
}

static int move_branch(const struct repo *repo, const char *branch, const char *tip,
        const char *old, const char *message, struct carrel_error *err)
{
    if (is_at(repo, branch, tip))
        return 0; /* an earlier attempt came this far */
    int r = check_whole(repo, tip, old, err);
    if (r == 0)
        r = ref_move(repo, branch, tip, old, message, err);
    /* The git of an attempt that was killed may have gone on to its end, this very moment. */
    return r < 0 && is_at(repo, branch, tip) ? 0 : r;
}

int harvest_publish(const struct repo *repo, const char *dir, const char *branch,
        const char *tip, const char *old, const char *message, struct carrel_error *err)
{
    char note[512];

    if (!name_is_oid(tip) || !name_is_oid(old))
        return err_set(err, -EINVAL, "the name of a commit is 40 or 64 hex digits");
    AUTO(fd_close) int from = open_dir(dir, err);
    if (from < 0)
        return from;
    AUTO(fd_close) int to = open_dir(repo->objects[0], err);
    if (to < 0)
        return to;

    (void)snprintf(note, sizeof(note), "carrel publishes %s\n", branch);
    int r = objects_add(from, to, OBJECTS_DURABLE, note, err);
    if (r == 0)
        r = move_branch(repo, branch, tip, old, message, err);
    if (r < 0) {
        (void)objects_unkeep(from, to, note, NULL); /* the failure above is what matters */
        return err_wrap(err, r, "publish %s", branch);
    }
    r = objects_unkeep(from, to, note, err);
    return r < 0 ? r : objects_clear(from, err);
}
