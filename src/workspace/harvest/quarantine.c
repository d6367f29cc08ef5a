/* quarantine.c - the scratch repository of a harvest. */
#include "workspace/harvest/quarantine.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/tree.h"
#include "git/format/treepath.h"
#include "git/name.h"
#include "git/objects.h"
#include "workspace/harvest/harvest.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define SCRATCH "scratch"

static int open_dir(int at, const char *path)
{
    int fd = openat(at, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    return fd < 0 ? -errno : fd;
}

int harvest_open(const char *dir, struct carrel_error *err)
{
    if (mkdir(dir, 0700) < 0 && errno != EEXIST)
        return err_set_errno(err, -errno, "make '%s'", dir);
    AUTO(fd_close) int fd = open_dir(AT_FDCWD, dir);
    if (fd < 0)
        return err_set_errno(err, fd, "open '%s'", dir);

    int r = tree_remove(fd, SCRATCH, err);
    if (r == 0)
        r = objects_clear(fd, NULL, err);
    return r < 0 ? err_wrap(err, r, "empty '%s'", dir) : 0;
}

struct git harvest_git(const struct repo *repo, const char *dir)
{
    return (struct git){
        .git_dir = repo->common_dir,
        .object_dir = dir,
        .alternate = repo->objects[0],
        .trust = GIT_SCRUBBED,
    };
}

static int write_file(int dir, const char *name, const char *text, size_t len)
{
    AUTO(fd_close) int fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

    return fd < 0 ? -errno : fd_write_all(fd, text, len);
}

/* The minimum that git accepts as a repository. */
static int fill(int scratch, const struct repo *repo, const char *dir)
{
    static const char *const dirs[] = { "refs", "objects", "objects/info", "objects/pack" };
    static const char head[] = "ref: refs/heads/none\n";
    static const char sha1[] = "[core]\n\trepositoryformatversion = 0\n\tbare = true\n";
    static const char sha256[] = "[core]\n\trepositoryformatversion = 1\n\tbare = true\n"
                                 "[extensions]\n\tobjectformat = sha256\n";
    const char *config = repo->is_sha256 ? sha256 : sha1;
    AUTO(buf_finish) struct buf alternates = BUF_INIT(8 * PATH_MAX);

    for (size_t i = 0; i < ARRAY_LEN(dirs); i++)
        if (mkdirat(scratch, dirs[i], 0700) < 0)
            return -errno;
    treepath_quote(&alternates, dir);
    buf_add_str(&alternates, "\n");
    treepath_quote(&alternates, repo->objects[0]);
    buf_add_str(&alternates, "\n");
    if (alternates.is_short)
        return -ENOMEM;

    int r = write_file(scratch, "objects/info/alternates", alternates.data, alternates.len);
    if (r == 0)
        r = write_file(scratch, "config", config, strlen(config));
    if (r == 0)
        r = write_file(scratch, "HEAD", head, strlen(head));
    return r;
}

static char *join(const char *dir, const char *rest)
{
    char *path = NULL;

    return asprintf(&path, "%s%s", dir, rest) < 0 ? NULL : path;
}

int quarantine_begin(const struct repo *repo, const char *dir, struct quarantine *out,
        struct carrel_error *err)
{
    AUTO(quarantine_finish) struct quarantine made = QUARANTINE_INIT;

    AUTO(fd_close) int fd = open_dir(AT_FDCWD, dir);
    if (fd < 0)
        return err_set_errno(err, fd, "open the quarantine '%s'", dir);
    int r = tree_remove(fd, SCRATCH, err);
    if (r < 0)
        return r;
    made.dir = fd_steal(&fd); /* from here on the destructor cleans up */
    made.git_dir = join(dir, "/" SCRATCH);
    made.objects = join(dir, "/" SCRATCH "/objects");
    if (!made.git_dir || !made.objects)
        return err_set_errno(err, -ENOMEM, "make the quarantine");

    if (mkdirat(made.dir, SCRATCH, 0700) < 0)
        return err_set_errno(err, -errno, "make '%s'", made.git_dir);
    AUTO(fd_close) int scratch = open_dir(made.dir, SCRATCH);
    r = scratch < 0 ? scratch : fill(scratch, repo, dir);
    if (r < 0)
        return err_set_errno(err, r, "fill '%s'", made.git_dir);
    *out = made;
    made = QUARANTINE_INIT;
    return 0;
}

int quarantine_keep(const struct quarantine *quarantine, struct carrel_error *err)
{
    AUTO(fd_close) int from = open_dir(quarantine->dir, SCRATCH "/objects");
    if (from < 0)
        return err_set_errno(err, from, "open '%s'", quarantine->objects);
    return objects_add(from, quarantine->dir, OBJECTS_QUICK, NULL, err);
}

#define PACK_GIT                                                                               \
    QUARANTINE_GIT, "-c", "pack.useBitmaps=false", "-c", "pack.packSizeLimit=0",               \
            "pack-objects", "--revs", "--sparse", "--quiet", "--window=0", "--threads=1"

static int as_not_whole(int r, struct carrel_error *err)
{
    if (r > 0 || r == -EINTR)
        r = -EBADMSG;
    if (err)
        err->code = r;
    return r;
}

/*
 * pack-objects with its output dropped reads each object once. `git rev-list --objects` would
 * do, but it first walks the whole tree of base: six times as long at 50,000 files.
 */
int quarantine_check_whole(const struct git *git, const char *tip, const char *base,
        const struct git_io *limits, struct carrel_error *err)
{
    struct git_io io = GIT_IO_INIT;
    char revisions[2 * OID_MAX + 4];

    (void)snprintf(revisions, sizeof(revisions), "%s\n^%s\n", tip, base);
    io.input = revisions;
    io.input_len = strlen(revisions);
    io.timeout_ms = limits->timeout_ms;
    io.max_memory_bytes = limits->max_memory_bytes;
    int r = git_run(git, GIT_ARGS(PACK_GIT, "--thin", "--stdout"), &io, err);
    return r == 0 ? 0 : as_not_whole(r, err);
}

int quarantine_pack(const struct repo *repo, const struct quarantine *quarantine,
        const char *base, const char *tip, char name[static QUARANTINE_PACK_MAX],
        struct carrel_error *err)
{
    const struct git git = harvest_git(repo, quarantine->objects);
    AUTO(buf_finish) struct buf hash = BUF_INIT(OID_MAX + 1);
    AUTO(free) char *prefix = join(quarantine->objects, "/pack/pack");
    char revisions[2 * OID_MAX + 4];
    struct git_io io = GIT_IO_INIT;

    if (!prefix)
        return err_set_errno(err, -ENOMEM, "pack the harvest");
    (void)snprintf(revisions, sizeof(revisions), "%s\n^%s\n", tip, base);
    io.input = revisions;
    io.input_len = strlen(revisions);
    io.output = &hash;
    int r = git_run(&git, GIT_ARGS(PACK_GIT, "--non-empty", prefix), &io, err);
    if (r != 0)
        return as_not_whole(r, err);
    name[0] = '\0';
    if (hash.len > 0 && hash.data[hash.len - 1] == '\n')
        hash.data[--hash.len] = '\0';
    if (hash.len > 0 && !name_is_oid(hash.data))
        return err_set(err, -EPROTO, "git pack-objects gave no pack");
    if (hash.len > 0)
        (void)snprintf(name, QUARANTINE_PACK_MAX, "pack-%s", hash.data);
    return 0;
}

int harvest_join(const struct repo *repo, const char *dir, const char *base, const char *tip,
        struct carrel_error *err)
{
    AUTO(quarantine_finish) struct quarantine quarantine = QUARANTINE_INIT;
    char name[QUARANTINE_PACK_MAX];

    int r = quarantine_begin(repo, dir, &quarantine, err);
    if (r < 0)
        return r;
    r = quarantine_pack(repo, &quarantine, base, tip, name, err);
    if (r < 0)
        return err_wrap(err, r, "the harvest is no longer complete, repeat it");
    if (!name[0])
        return 0;
    r = quarantine_keep(&quarantine, err);
    return r < 0 ? r : objects_clear(quarantine.dir, name, err);
}

void quarantine_finish(struct quarantine quarantine)
{
    if (quarantine.dir >= 0)
        (void)tree_remove(quarantine.dir, SCRATCH, NULL); /* the next harvest tries again */
    fd_close(quarantine.dir);
    free(quarantine.git_dir);
    free(quarantine.objects);
}
