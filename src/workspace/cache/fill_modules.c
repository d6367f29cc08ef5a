/*
 * fill_modules.c - the content of submodules, from what `git submodule` keeps of them in the
 * repository's modules/<name>.
 *
 * A submodule is a work tree with a git dir of its own: tree/<path>/.git names
 * git/modules/<name>, whose objects are those of the user's modules/<name>, bound read-only at
 * CHECKOUT_MODULE_OBJECTS/<n>. One that was never fetched, or whose commit is not there, stays
 * the empty directory that git made of it.
 */
#include "base/err.h"
#include "base/fd.h"
#include "base/path.h"
#include "git/format/config.h"
#include "git/ref.h"
#include "workspace/cache/fill.h"
#include "workspace/private.h"
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define TEXT_MAX ((size_t)16 << 20)
#define MAX_NESTING 8

/* A repository with submodules: the user's, or a submodule itself. */
struct parent {
    const struct repo *repo;
    const char *commit;
    const char *path; /* of its work tree, with a slash at the end, or empty */
    const char *git;  /* of its template in the draft: "git", "git/modules/<name>" */
    unsigned nesting;
};

struct module {
    const char *name;
    const char *path; /* in its parent */
    const char *commit;
    char *tree; /* its work tree, below tree/ */
    char *git;  /* its template in the draft */
    struct repo *repo;
};

static void module_finish(struct module module)
{
    free(module.tree);
    free(module.git);
    repo_free(module.repo);
}
DEFINE_AUTO(struct module, module_finish)

/* The name becomes a path and a line of a file. git refuses ".." in it too. */
static bool is_module_name(const char *name)
{
    char part[NAME_MAX + 1];

    for (const char *at = name;; at++) {
        size_t len = strcspn(at, "/");
        if (len >= sizeof(part))
            return false;
        memcpy(part, at, len);
        part[len] = '\0';
        if (!path_is_name(part))
            return false;
        at += len;
        if (!*at)
            break;
    }
    for (const char *at = name; *at; at++)
        if ((unsigned char)*at < ' ')
            return false;
    return true;
}

/* "submodule.<name>.path\n<path>", each ended by NUL. */
static int list_names(const struct parent *parent, struct buf *out, struct carrel_error *err)
{
    struct git git = repo_git(parent->repo);
    AUTO(free) char *blob = checkout_format("%s:.gitmodules", parent->commit);
    struct git_io io = GIT_IO_INIT;

    if (!blob)
        return err_set_errno(err, -ENOMEM, "list the submodules");
    io.output = out;
    int r = git_run(&git,
            GIT_ARGS("config", "-z", "--blob", blob, "--get-regexp", "^submodule\\..*\\.path$"),
            &io, err);
    if (r > 0) /* none, or no such file, or one that git cannot read either */
        buf_clear(out);
    return r < 0 ? r : 0;
}

/* The name for `path`, in `list`, which is cut up for it. */
static const char *name_of(struct buf *list, const char *path)
{
    static const char first[] = "submodule.";

    for (size_t at = 0; at < list->len;) {
        char *item = list->data + at;
        at += strlen(item) + 1;
        char *value = strchr(item, '\n');
        if (!value || strcmp(value + 1, path) != 0 || value - item < (int)sizeof(first) + 5)
            continue;
        value[-(int)strlen(".path")] = '\0';
        return item + strlen(first);
    }
    return NULL;
}

/* Opens what the user has of it. 1: there; 0: not, or not this commit. */
static int open_module(
        const struct parent *parent, struct module *module, struct carrel_error *err)
{
    AUTO(free)
    char *dir = checkout_format("%s/modules/%s", parent->repo->common_dir, module->name);

    if (!dir)
        return err_set_errno(err, -ENOMEM, "open a submodule");
    /* What is found further up is not the submodule. */
    if (repo_open(dir, &module->repo, NULL) < 0 || strcmp(module->repo->common_dir, dir) != 0)
        return 0;
    return repo_has_commit(module->repo, module->commit, err);
}

static int make_parents(int dir, const char *path)
{
    AUTO(free) char *text = strdup(path);

    if (!text)
        return -ENOMEM;
    for (char *slash = strchr(text, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        if (mkdirat(dir, text, 0755) < 0 && errno != EEXIST)
            return -errno;
        *slash = '/';
    }
    return 0;
}

/* Which object directories core has to bind where, and the way to them from inside. */
static int write_alternates(struct fill *fill, const struct module *module, int git_dir)
{
    AUTO(buf_finish) struct buf lines = BUF_INIT(TEXT_MAX);

    for (char **dir = module->repo->objects; *dir; dir++) {
        if (strchr(*dir, '\n'))
            return -EINVAL;
        buf_addf(&lines, CHECKOUT_MODULE_OBJECTS "/%zu\n", fill->n_module_objects++);
        buf_addf(&fill->module_objects, "%s\t%s\n", module->name, *dir);
    }
    if (lines.is_short || fill->module_objects.is_short)
        return -ENOMEM;
    if (unlinkat(git_dir, "objects/info/alternates", 0) < 0)
        return -errno;
    return fd_write_new(git_dir, "objects/info/alternates", lines.data, lines.len);
}

/* What a template has no need of, because it is the run's own elsewhere. */
static int write_refs(const struct module *module, int git_dir)
{
    AUTO(buf_finish) struct buf refs = BUF_INIT(TEXT_MAX);
    AUTO(buf_finish) struct buf head = BUF_INIT(OID_MAX + 1);

    buf_addf(&head, "%s\n", module->commit);
    int r = fd_write_new(git_dir, "HEAD", head.data, head.len);
    if (r == 0 && ref_snapshot(module->repo, &refs, NULL) == 0 && refs.len > 0)
        r = fd_write_new(git_dir, "packed-refs", refs.data, refs.len);
    return r;
}

/* As `git submodule init` would, but for the address, which may hold a password. */
static int activate(int git_dir, const char *name)
{
    AUTO(buf_finish) struct buf text = BUF_INIT(TEXT_MAX);
    AUTO(fd_close) int fd = openat(git_dir, "config", O_WRONLY | O_APPEND | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    if (!config_add(&text, "submodule", name, "active", "true") || text.is_short)
        return -EINVAL;
    return fd_write_all(fd, text.data, text.len);
}

static int make_git_dir(struct fill *fill, const struct parent *parent,
        const struct module *module, struct carrel_error *err)
{
    AUTO(fd_close)
    int above = openat(fill->dir, parent->git, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (above < 0)
        return err_set_errno(err, -errno, "open '%s'", parent->git);
    int r = make_parents(fill->dir, module->git);
    if (r < 0)
        return err_set_errno(err, r, "make '%s'", module->git);
    r = fill_template(fill, module->repo, module->git, err);
    if (r < 0)
        return r;
    AUTO(fd_close)
    int git_dir = openat(fill->dir, module->git, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    r = git_dir < 0 ? -errno : write_alternates(fill, module, git_dir);
    if (r == 0)
        r = write_refs(module, git_dir);
    if (r == 0)
        r = activate(above, module->name);
    return r < 0 ? err_set_errno(err, r, "write a git dir") : 0;
}

static int write_files(struct fill *fill, const struct module *module, struct carrel_error *err)
{
    AUTO(free) char *tree = checkout_format("%s/tree/%s", fill->path, module->tree);
    AUTO(free) char *index = checkout_format("%s/%s/index", fill->path, module->git);
    AUTO(free) char *index_name = checkout_format("%s/index", module->git);
    AUTO(free) char *gitfile = checkout_format("tree/%s/.git", module->tree);
    /* From "git" on, names in the draft are names inside. */
    AUTO(free)
    char *text =
            checkout_format("gitdir: " PRIVATE_GIT_DIR "%s\n", module->git + strlen("git"));

    if (!tree || !index || !index_name || !gitfile || !text)
        return err_set_errno(err, -ENOMEM, "check out");
    int r = fill_check_out(fill, module->repo, module->commit, tree, index, err);
    if (r < 0)
        return r;
    r = fd_write_new_text(fill->dir, gitfile, text);
    if (r < 0)
        return err_set_errno(err, r, "write '%s'", gitfile);
    return fill_own_index(fill, index_name, 0, err);
}

static int fill_parent(struct fill *fill, const struct parent *parent, struct buf *gitlinks,
        struct carrel_error *err);

/* Its own submodules. */
static int go_deeper(struct fill *fill, const struct parent *parent,
        const struct module *module, struct carrel_error *err)
{
    AUTO(buf_finish) struct buf listing = BUF_INIT((size_t)1 << 30);
    AUTO(buf_finish) struct buf gitlinks = BUF_INIT(TEXT_MAX);
    AUTO(free) char *path = checkout_format("%s/", module->tree);
    const struct parent next = { module->repo, module->commit, path, module->git,
        parent->nesting + 1 };
    struct git git = repo_git(module->repo);
    struct git_io io = GIT_IO_INIT;

    if (!path)
        return err_set_errno(err, -ENOMEM, "list the submodules");
    if (next.nesting == MAX_NESTING)
        return 0;
    io.output = &listing;
    int r = git_expect(
            &git, GIT_ARGS("ls-tree", "-r", "-z", "--full-tree", module->commit), &io, err);
    if (r < 0)
        return r;
    for (size_t at = 0; at < listing.len; at += strlen(listing.data + at) + 1)
        fill_note_gitlink(listing.data + at, &gitlinks);
    return fill_parent(fill, &next, &gitlinks, err);
}

static int fill_module(struct fill *fill, const struct parent *parent, struct module *module,
        struct carrel_error *err)
{
    struct stat st;

    module->tree = checkout_format("%s%s", parent->path, module->path);
    module->git = checkout_format("%s/modules/%s", parent->git, module->name);
    if (!module->tree || !module->git)
        return err_set_errno(err, -ENOMEM, "check out");
    int r = open_module(parent, module, err);
    /* A name inside another's ("a" and "a/b") would have two git dirs in one. */
    if (r <= 0 || fstatat(fill->dir, module->git, &st, AT_SYMLINK_NOFOLLOW) == 0)
        return r < 0 ? r : 0;
    assert(module->repo);
    r = make_git_dir(fill, parent, module, err);
    if (r == 0)
        r = write_files(fill, module, err);
    if (r == 0)
        r = go_deeper(fill, parent, module, err);
    return r;
}

static int fill_parent(struct fill *fill, const struct parent *parent, struct buf *gitlinks,
        struct carrel_error *err)
{
    AUTO(buf_finish) struct buf names = BUF_INIT(TEXT_MAX);

    if (gitlinks->len == 0)
        return 0;
    int r = list_names(parent, &names, err);
    if (r < 0)
        return err_wrap(err, r, "list the submodules");
    for (size_t at = 0; at < gitlinks->len;) {
        char *item = gitlinks->data + at; /* "<oid> <path>" */
        at += strlen(item) + 1;
        char *space = strchr(item, ' ');
        *space = '\0';
        AUTO(module_finish) struct module module = { .commit = item, .path = space + 1 };
        module.name = name_of(&names, module.path);
        if (!module.name || !is_module_name(module.name))
            continue;
        r = fill_module(fill, parent, &module, err);
        if (r < 0)
            return err_wrap(err, r, "submodule '%s'", module.name);
    }
    return 0;
}

void fill_note_gitlink(const char *item, struct buf *gitlinks)
{
    const char *tab = strchr(item, '\t');
    const char *oid = tab;

    if (!tab || strncmp(item, "160000 ", 7) != 0)
        return;
    while (oid > item && oid[-1] != ' ')
        oid--;
    buf_add(gitlinks, oid, (size_t)(tab - oid));
    buf_add(gitlinks, " ", 1);
    buf_add(gitlinks, tab + 1, strlen(tab + 1) + 1);
}

int fill_modules(struct fill *fill, struct buf *gitlinks, struct carrel_error *err)
{
    const struct parent top = { fill->repo, fill->commit, "", "git", 0 };

    int r = fill_parent(fill, &top, gitlinks, err);
    if (r < 0 || fill->module_objects.len == 0)
        return r;
    r = fd_write_new(fill->dir, "modules", fill->module_objects.data, fill->module_objects.len);
    return r < 0 ? err_set_errno(err, r, "record the submodules") : 0;
}
