/*
 * publish.c - adds a harvest to the user's repository: objects first, then one ref.
 *
 * In this order a kill at any point leaves at most unreferenced objects, which git collects
 * eventually, and a second attempt finishes: existing files are kept, and a branch that is
 * already at the tip is done.
 *
 * A `git gc` of the user may run at any time. It removes what no branch reached when it began,
 * loose objects above all. So everything is added as one pack, which has a .keep file until the
 * branch reaches it, including objects of the repository that no ref may reach. Nothing
 * else is added: another harvest would find it there, not store it again, and lose it to the
 * next gc. And the quarantine keeps its copy: the run's work is never lost.
 */
#include "base/err.h"
#include "base/fd.h"
#include "git/gitdir.h"
#include "git/name.h"
#include "git/objects.h"
#include "git/ref.h"
#include "workspace/harvest/harvest.h"
#include "workspace/harvest/quarantine.h"
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* carrel's own directory. The way to it may pass links: XDG_STATE_HOME is as the user gave it.
 */
static int open_quarantine(const char *path, struct carrel_error *err)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    return fd < 0 ? err_set_errno(err, -errno, "open '%s'", path) : fd;
}

/* The path was canonical when the repository was opened: a link in it is a run's work. */
static int open_dir(const char *path, struct carrel_error *err)
{
    int fd = gitdir_reopen(path);

    return fd < 0 ? err_set_errno(err, fd, "open '%s'", path) : fd;
}

static bool is_at(const struct repo *repo, const char *branch, const char *tip)
{
    char now[OID_MAX];

    return ref_read(repo, branch, now, NULL) == 0 && strcmp(now, tip) == 0;
}

static int put_branch(const struct repo *repo, const char *branch, const char *tip,
        const char *old, const char *message, struct carrel_error *err)
{
    if (is_at(repo, branch, tip))
        return 0; /* an earlier attempt came this far */
    int r = old[0] ? ref_move(repo, branch, tip, old, message, err)
                   : ref_create(repo, branch, tip, message, err);
    /* The git of a killed attempt may have finished meanwhile. */
    return r < 0 && is_at(repo, branch, tip) ? 0 : r;
}

#define NOTE_MAX 512

/* One line that distinguishes our .keep files from those of others. */
static void make_note(const char *branch, char note[static NOTE_MAX])
{
    (void)snprintf(note, NOTE_MAX, "carrel publishes %s\n", branch);
}

void harvest_unkeep(const struct repo *repo, const char *branch)
{
    AUTO(fd_close) int to = open_dir(repo->objects[0], NULL);
    char note[NOTE_MAX];

    make_note(branch, note);
    if (to >= 0)
        (void)objects_unkeep(to, note, NULL); /* at worst a pack is kept longer than needed */
}

int harvest_publish(const struct repo *repo, const char *dir, const char *branch,
        const char *base, const char *tip, const char *snapshot, const char *old,
        const char *message, struct carrel_error *err)
{
    char note[NOTE_MAX];
    char name[QUARANTINE_PACK_MAX];

    if (!name_is_oid(base) || !name_is_oid(tip) || !name_is_oid(snapshot) ||
            (old[0] && !name_is_oid(old)))
        return err_set(err, -EINVAL, "the name of a commit is 40 or 64 hex digits");
    AUTO(quarantine_finish) struct quarantine quarantine = QUARANTINE_INIT;
    int r = harvest_join(repo, dir, base, snapshot, err);
    if (r == 0)
        r = quarantine_begin(repo, dir, &quarantine, err);
    if (r == 0 && strcmp(tip, snapshot) != 0)
        r = quarantine_pack(repo, &quarantine, base, tip, name, err);
    if (r < 0)
        return err_wrap(err, r, "publish %s", branch);
    const char *objects = strcmp(tip, snapshot) == 0 ? dir : quarantine.objects;
    assert(objects);
    AUTO(fd_close) int from = open_quarantine(objects, err);
    if (from < 0)
        return from;
    AUTO(fd_close) int to = open_dir(repo->objects[0], err);
    if (to < 0)
        return to;

    make_note(branch, note);
    r = objects_add(from, to, OBJECTS_DURABLE, note, err);
    if (r == 0)
        r = put_branch(repo, branch, tip, old, message, err);
    if (r < 0) {
        (void)objects_unkeep(to, note, NULL); /* the failure above is what matters */
        return err_wrap(err, r, "publish %s", branch);
    }
    return objects_unkeep(to, note, err);
}
