/* scratch.c - writes the files of a minimal git dir. */
#include "git/scratch.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "git/gitdir.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

/* "!" unsets an attribute, whatever .gitattributes files say. */
static const char attributes[] = "* !text !eol !crlf !filter !ident !working-tree-encoding "
                                 "!merge !diff !export-subst\n";

void scratch_free(struct scratch *scratch)
{
    if (!scratch)
        return;
    free(scratch->path);
    free(scratch->objects);
    free(scratch);
}

static int write_new(int dir, const char *name, const char *text, size_t len)
{
    AUTO(fd_close) int fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

    return fd < 0 ? -errno : fd_write_all(fd, text, len);
}

static int add_alternate(struct buf *text, const char *path, struct carrel_error *err)
{
    if (strchr(path, '\n'))
        return err_set(err, -EINVAL,
                "the repository's path has a line break in it, which git cannot take here: "
                "rename the directory");
    buf_addf(text, "%s\n", path);
    return 0;
}

static int list_alternates(const struct repo *repo, const char *quarantine, struct buf *text,
        struct carrel_error *err)
{
    int r = quarantine ? add_alternate(text, quarantine, err) : 0;

    for (char **dir = repo->objects; r == 0 && *dir; dir++)
        r = add_alternate(text, *dir, err);
    if (r == 0 && text->is_short)
        r = err_set_errno(err, -ENOMEM, "list the object directories");
    return r;
}

/* A shallow clone has a file `shallow`. */
static int copy_shallow(const struct repo *repo, int dir)
{
    AUTO(buf_finish) struct buf text = BUF_INIT(64 << 20);
    int r = gitdir_load_from(repo->common_dir, "shallow", &text);

    if (r < 0)
        return r == -ENOENT ? 0 : r;
    return text.len ? write_new(dir, "shallow", text.data, text.len) : 0;
}

static int fill(int dir, const struct repo *repo, const struct buf *alternates)
{
    static const char *const dirs[] = { "objects", "objects/info", "objects/pack", "refs",
        "refs/heads", "info" };
    const char *config = repo->is_sha256
                                 ? "[core]\n\trepositoryformatversion = 1\n\tbare = true\n"
                                   "[extensions]\n\tobjectformat = sha256\n"
                                 : "[core]\n\trepositoryformatversion = 0\n\tbare = true\n";

    for (size_t i = 0; i < ARRAY_LEN(dirs); i++)
        if (mkdirat(dir, dirs[i], 0700) < 0)
            return -errno;
    int r = write_new(dir, "objects/info/alternates", alternates->data, alternates->len);
    if (r == 0)
        r = write_new(dir, "info/attributes", attributes, strlen(attributes));
    if (r == 0)
        r = write_new(dir, "config", config, strlen(config));
    if (r == 0)
        r = copy_shallow(repo, dir);
    if (r == 0)
        r = write_new(dir, "HEAD", "ref: refs/heads/none\n", 21);
    return r;
}

int scratch_make(const struct repo *repo, const char *dir, const char *quarantine,
        struct scratch **out, struct carrel_error *err)
{
    AUTO(buf_finish) struct buf alternates = BUF_INIT(1 << 20);
    AUTO(scratch_free) struct scratch *scratch = calloc(1, sizeof(*scratch));
    if (!scratch || asprintf(&scratch->path, "%s/git", dir) < 0 ||
            asprintf(&scratch->objects, "%s/git/objects", dir) < 0)
        return err_set_errno(err, -ENOMEM, "make a scratch git dir");

    int r = list_alternates(repo, quarantine, &alternates, err);
    if (r < 0)
        return r;
    if (mkdir(scratch->path, 0700) < 0)
        return err_set_errno(err, -errno, "make the scratch git dir '%s'", scratch->path);
    AUTO(fd_close) int fd = open(scratch->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return err_set_errno(err, -errno, "open the scratch git dir '%s'", scratch->path);
    r = fill(fd, repo, &alternates);
    if (r < 0)
        return err_set_errno(err, r, "fill the scratch git dir '%s'", scratch->path);
    *out = ptr_steal(&scratch);
    return 0;
}

struct git scratch_git(const struct scratch *scratch)
{
    return (struct git){ .git_dir = scratch->path, .trust = GIT_SCRUBBED };
}
