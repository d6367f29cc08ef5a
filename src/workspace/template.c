/* template.c - what the private git dirs of all runs of a commit have in common. */
#include "base/err.h"
#include "base/fd.h"
#include "git/format/config.h"
#include "git/gitdir.h"
#include "git/scope.h"
#include "workspace/private.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_LIST (UINT64_C(4) << 20)
#define MAX_TEXT (UINT64_C(16) << 20)
#define USER_ATTRIBUTES "info/user-attributes"

static const char *const dirs[] = {
    "hooks",
    "info",
    "logs",
    "logs/refs",
    "logs/refs/heads",
    "objects",
    "objects/info",
    "objects/pack",
    "refs",
    "refs/heads",
    "refs/tags",
    NULL,
};

static int add_content(struct buf *out, int fd, const char *path, struct carrel_error *err)
{
    char block[16384];

    for (;;) {
        ssize_t n = fd_read_all(fd, block, sizeof(block));
        if (n < 0)
            return err_set_errno(err, (int)n, "read '%s'", path);
        if (n == 0)
            break;
        buf_add(out, block, (size_t)n);
    }
    if (out->len > 0 && out->data[out->len - 1] != '\n')
        buf_add_str(out, "\n"); /* the next file begins on a line of its own */
    if (out->is_short)
        return err_set(err, -EFBIG, "'%s' is larger than can be carried into a run", path);
    return 0;
}

/* Adds a file of the user's; one that is not there or may not be read adds nothing, as in git.
 */
static int add_file(struct buf *out, const char *path, struct carrel_error *err)
{
    struct stat st;
    AUTO(fd_close) int fd = open(path, O_RDONLY | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);

    return fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode)
                   ? 0
                   : add_content(out, fd, path, err);
}

/* The same for a file of the repository, which a run may have put there: no link is followed.
 */
static int add_own_file(
        struct buf *out, const struct repo *repo, const char *name, struct carrel_error *err)
{
    char path[2 * PATH_MAX];
    AUTO(fd_close) int fd = gitdir_open_file_in(repo->common_dir, name);

    (void)snprintf(path, sizeof(path), "%s/%s", repo->common_dir, name);
    if (fd == -ELOOP || fd == -EINVAL)
        return err_set(err, fd,
                "'%s' is not a regular file; an earlier program may have made it", path);
    return fd < 0 ? 0 : add_content(out, fd, path, err);
}

static int add_file_in(
        struct buf *out, const char *dir, const char *name, struct carrel_error *err)
{
    char path[PATH_MAX];
    int n = snprintf(path, sizeof(path), "%s/%s", dir, name);

    if (n < 0 || (size_t)n >= sizeof(path))
        return err_set_errno(err, -ENAMETOOLONG, "'%s/%s'", dir, name);
    return add_file(out, path, err);
}

/*
 * Adds the file that the user's configuration names under `key` (git itself expands "~/" and
 * the like), or the usual one, `name` in ~/.config/git. What the repository's names is not
 * shown: a run may have written it, and any file of the host could be there.
 */
static int add_users_file(const struct repo *repo, const struct buf *list, const char *key,
        const char *name, struct buf *out, struct carrel_error *err)
{
    const char *config = getenv("XDG_CONFIG_HOME");
    const char *home = getenv("HOME");
    char dir[PATH_MAX];

    if (config_find(list->data, list->len, key)) {
        const struct git git = repo_user_git(repo);
        char path[PATH_MAX];
        int r = scope_users_path(&git, key, path, err);
        if (r != 0)
            return r < 0 ? r : path[0] ? add_file(out, path, err) : 0;
    }
    if (config && config[0])
        (void)snprintf(dir, sizeof(dir), "%s/git", config);
    else if (home && home[0])
        (void)snprintf(dir, sizeof(dir), "%s/.config/git", home);
    else
        return 0;
    return add_file_in(out, dir, name, err);
}

static int write_buf(
        int dir, const char *name, const struct buf *text, struct carrel_error *err)
{
    if (text->is_short)
        return err_set(err, -EFBIG, "'%s' of the private git dir becomes too large", name);
    int r = fd_write_new(dir, name, text->data ? text->data : "", text->len);
    if (r < 0)
        return err_set_errno(err, r, "write '%s' of the private git dir", name);
    return 0;
}

/* The user's own first: of two patterns that match, git obeys the later one. */
static int write_exclude(
        const struct repo *repo, int dir, const struct buf *list, struct carrel_error *err)
{
    AUTO(buf_finish) struct buf text = BUF_INIT(MAX_TEXT);
    int r = add_users_file(repo, list, "core.excludesfile", "ignore", &text, err);

    if (r == 0)
        r = add_own_file(&text, repo, "info/exclude", err);
    return r < 0 ? r : write_buf(dir, "info/exclude", &text, err);
}

/*
 * Attributes decide what content looks like, so the run needs the ones that the checkout was
 * made with. The user's own must not go into info/attributes with the repository's: those there
 * win over the .gitattributes of the tree, and the user's do not.
 */
static int write_attributes(const struct repo *repo, int dir, const struct buf *list,
        bool *has_users, struct carrel_error *err)
{
    AUTO(buf_finish) struct buf users = BUF_INIT(MAX_TEXT);
    AUTO(buf_finish) struct buf own = BUF_INIT(MAX_TEXT);
    int r = add_file(&users, "/etc/gitattributes", err);

    if (r == 0)
        r = add_users_file(repo, list, "core.attributesfile", "attributes", &users, err);
    if (r == 0)
        r = add_own_file(&own, repo, "info/attributes", err);
    if (r == 0 && own.len > 0)
        r = write_buf(dir, "info/attributes", &own, err);
    if (r == 0 && users.len > 0)
        r = write_buf(dir, USER_ATTRIBUTES, &users, err);
    *has_users = users.len > 0;
    return r;
}

static int write_alternates(const struct repo *repo, int dir, struct carrel_error *err)
{
    AUTO(buf_finish) struct buf text = BUF_INIT(MAX_TEXT);

    buf_add_str(&text, PRIVATE_OBJECTS "\n");
    for (size_t i = 1; repo->objects[0] && repo->objects[i]; i++)
        buf_addf(&text, PRIVATE_OBJECTS "-%zu\n", i);
    return write_buf(dir, "objects/info/alternates", &text, err);
}

static int write_shallow(const struct repo *repo, int dir, struct carrel_error *err)
{
    AUTO(buf_finish) struct buf text = BUF_INIT(MAX_TEXT);
    int r = add_own_file(&text, repo, "shallow", err);

    return r < 0 || text.len == 0 ? r : write_buf(dir, "shallow", &text, err);
}

static int write_config(const struct repo *repo, int dir, const struct buf *list,
        bool has_attributes, struct carrel_error *err)
{
    const struct config_terms terms = {
        .is_sha256 = repo->is_sha256,
        .attributes_file = has_attributes ? PRIVATE_GIT_DIR "/" USER_ATTRIBUTES : NULL,
    };
    AUTO(buf_finish) struct buf text = BUF_INIT(MAX_LIST);

    config_write(&terms, list->data, list->len, &text);
    return write_buf(dir, "config", &text, err);
}

int private_make_template(const struct repo *repo, int dir, struct carrel_error *err)
{
    AUTO(buf_finish) struct buf list = BUF_INIT(MAX_LIST);
    const struct git git = repo_user_git(repo);
    struct git_io io = GIT_IO_INIT;
    bool has_attributes = false;
    int r = fd_make_dirs(dir, dirs);
    if (r < 0)
        return err_set_errno(err, r, "make the private git dir");

    io.output = &list;
    r = git_run(&git, GIT_ARGS("config", "--list", "-z"), &io, err);
    if (r != 0)
        return err_wrap(err, r < 0 ? r : -EIO, "read your git configuration");
    r = fd_write_new_text(dir, "description", "A run's own git dir, made by carrel.\n");
    if (r < 0)
        return err_set_errno(err, r, "write 'description' of the private git dir");
    r = write_exclude(repo, dir, &list, err);
    if (r == 0)
        r = write_attributes(repo, dir, &list, &has_attributes, err);
    if (r == 0)
        r = write_alternates(repo, dir, err);
    if (r == 0)
        r = write_shallow(repo, dir, err);
    if (r == 0)
        r = write_config(repo, dir, &list, has_attributes, err);
    return r;
}
