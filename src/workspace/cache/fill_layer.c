/*
 * fill_layer.c - a commit as the difference to one that is in the cache.
 *
 * The layer is made by hand, as overlayfs reads it, so no mount is needed: changed files lie in
 * it, removed ones are whiteouts (character device 0/0, which any user may make). A directory
 * that the commit no longer has is one whiteout. A file in the place of a directory, and the
 * other way round, hides what is below by itself; so does a directory over a whiteout. Hence no
 * directory has to be marked opaque.
 */
#include "base/dir.h"
#include "base/err.h"
#include "base/fd.h"
#include "git/delta.h"
#include "git/format/index.h"
#include "git/name.h"
#include "workspace/cache/fill.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

#define MAX_CANDIDATES 4
#define MAX_CHANGES 2000
#define LIST_MAX ((size_t)64 << 20)

struct candidate {
    char commit[OID_MAX];
    struct timespec used;
};

static bool is_newer(const struct timespec *a, const struct timespec *b)
{
    return a->tv_sec != b->tv_sec ? a->tv_sec > b->tv_sec : a->tv_nsec > b->tv_nsec;
}

/* Keeps the list sorted, most recently used first. */
static void offer(struct candidate *list, size_t *n, const struct candidate *one)
{
    size_t at = *n;

    while (at > 0 && is_newer(&one->used, &list[at - 1].used))
        at--;
    if (at == MAX_CANDIDATES)
        return;
    if (*n < MAX_CANDIDATES)
        ++*n;
    memmove(list + at + 1, list + at, (*n - at - 1) * sizeof(*list));
    list[at] = *one;
}

static size_t find_candidates(const struct fill *fill, struct candidate *list)
{
    AUTO(free) char *group = checkout_group(fill->repo);
    AUTO(dir_close) DIR *dir = group ? dir_open(fill->store->top, group) : NULL;
    size_t n = 0;
    struct stat st;

    for (const char *name; dir && (name = dir_next(dir));) {
        struct candidate one = { 0 };
        if (!name_is_oid(name) || fstatat(dirfd(dir), name, &st, AT_SYMLINK_NOFOLLOW) < 0)
            continue;
        (void)snprintf(one.commit, sizeof(one.commit), "%.64s", name);
        one.used = st.st_mtim;
        offer(list, &n, &one);
    }
    return n;
}

/* Attributes decide how all other files are written, and submodules are not files. */
static bool is_plain(const struct delta *delta)
{
    const char *slash = strrchr(delta->path, '/');
    const char *name = slash ? slash + 1 : delta->path;

    return strcmp(name, ".gitattributes") != 0 && strcmp(name, ".gitmodules") != 0 &&
           delta->old.mode != DELTA_GITLINK && delta->new.mode != DELTA_GITLINK;
}

static bool would_do(const struct fill *fill, const struct candidate *candidate,
        struct checkout_facts *facts, struct delta_list *out)
{
    AUTO(free) char *name = checkout_name(fill->repo, candidate->commit);
    AUTO(fd_close) int held = name ? checkout_hold(fill->store, name, facts) : -ENOMEM;
    struct git git = repo_git(fill->repo);

    if (held < 0)
        return false;
    if (facts->has_gitlinks || facts->uid != fill->owner.uid || facts->gid != fill->owner.gid ||
            facts->depth >= CHECKOUT_MAX_DEPTH ||
            strcmp(facts->conversion, fill->settings.digest) != 0)
        return false;
    if (delta_trees(&git, candidate->commit, fill->commit, out, NULL) < 0)
        return false; /* its commit may be gone from the repository */
    bool is_fine = out->n <= MAX_CHANGES && out->n * 4 <= facts->files;
    for (size_t i = 0; is_fine && i < out->n; i++)
        is_fine = is_plain(&out->items[i]);
    if (!is_fine)
        delta_list_finish(out);
    return is_fine;
}

/* The candidate that differs least: its commit, facts and difference. False: none. */
static bool choose(struct fill *fill, char commit[static OID_MAX], struct checkout_facts *facts,
        struct delta_list *best)
{
    struct candidate list[MAX_CANDIDATES];
    size_t n = find_candidates(fill, list);
    bool is_found = false;

    for (size_t i = 0; i < n; i++) {
        struct delta_list delta = { 0 };
        struct checkout_facts its;
        if (!would_do(fill, &list[i], &its, &delta))
            continue;
        if (is_found && delta.n >= best->n) {
            delta_list_finish(&delta);
            continue;
        }
        delta_list_finish(best);
        *best = delta;
        *facts = its;
        memcpy(commit, list[i].commit, OID_MAX);
        is_found = true;
    }
    return is_found;
}

static int copy_index(struct fill *fill, const struct checkout *below)
{
    char block[65536];
    AUTO(free) char *path = checkout_format("%s/index", below->git);
    AUTO(fd_close) int from = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    AUTO(fd_close)
    int to = openat(fill->dir, "git/index", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (from < 0 || to < 0)
        return -errno;

    for (;;) {
        ssize_t n = fd_read_all(from, block, sizeof(block));
        if (n <= 0)
            return (int)n;
        int r = fd_write_all(to, block, (size_t)n);
        if (r < 0)
            return r;
    }
}

/* git brings the index to the new commit, keeping what it knows of unchanged files, and writes
 * the changed files into the layer. */
static int write_changed(struct fill *fill, const char *from, const struct delta_list *delta,
        struct carrel_error *err)
{
    AUTO(buf_finish) struct buf paths = BUF_INIT(LIST_MAX);
    AUTO(free) char *layer = checkout_format("%s/layer", fill->path);
    AUTO(free) char *index = checkout_format("%s/git/index", fill->path);
    struct git git = fill_user_git(fill);
    struct git_io io = GIT_IO_INIT;

    for (size_t i = 0; i < delta->n; i++)
        if (delta->items[i].new.mode != 0)
            buf_add(&paths, delta->items[i].path, strlen(delta->items[i].path) + 1);
    if (!layer || !index || paths.is_short)
        return err_set_errno(err, -ENOMEM, "make a layer");
    git.work_tree = layer;
    git.index_file = index;
    int r = fill_git(&git,
            GIT_ARGS("read-tree", "--no-sparse-checkout", "-i", "-m", from, fill->commit), &io,
            err);
    if (r < 0 || paths.len == 0)
        return r;
    io.input = paths.data;
    io.input_len = paths.len;
    return fill_git(&git, GIT_ARGS("checkout-index", "-q", "-u", "-z", "--stdin"), &io, err);
}

/* The directories that lead to `path`, below `layer`. */
static int make_parents(int layer, char *path)
{
    for (char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        int r = mkdirat(layer, path, 0755) < 0 && errno != EEXIST ? -errno : 0;
        *slash = '/';
        if (r < 0)
            return r;
    }
    return 0;
}

/* Hides what the entry below has at `path`, or the uppermost directory above it that is gone
 * altogether. */
static int hide(int layer, const struct index *index, const char *removed)
{
    char path[PATH_MAX];
    size_t len = strlen(removed);

    if (len >= sizeof(path))
        return -ENAMETOOLONG;
    memcpy(path, removed, len + 1);
    for (char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/')) {
        if (index_has_dir(index, path, (size_t)(slash - path)))
            continue;
        *slash = '\0';
        break;
    }
    /* A file where a directory was: it is in the layer and hides it. So does a directory. */
    if (index_find(index, path) || index_has_dir(index, path, strlen(path)))
        return 0;
    int r = make_parents(layer, path);
    if (r == 0 && mknodat(layer, path, S_IFCHR, makedev(0, 0)) < 0 && errno != EEXIST)
        r = -errno;
    return r;
}

static int hide_removed(
        struct fill *fill, const struct delta_list *delta, struct carrel_error *err)
{
    AUTO(index_free) struct index *index = NULL;
    AUTO(fd_close) int layer = openat(fill->dir, "layer", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    AUTO(fd_close) int fd = openat(fill->dir, "git/index", O_RDONLY | O_CLOEXEC);
    if (layer < 0 || fd < 0)
        return err_set_errno(err, -errno, "make a layer");
    int r = index_read(fd, fill->repo->is_sha256, &index, err);
    if (r < 0)
        return r;

    for (size_t i = 0; i < delta->n; i++) {
        if (delta->items[i].new.mode != 0)
            continue;
        r = hide(layer, index, delta->items[i].path);
        if (r < 0)
            return err_set_errno(err, r, "make a layer: hide a removed file");
    }
    return 0;
}

static int make_layer(struct fill *fill, const struct checkout *below, const char *from,
        const struct delta_list *delta, struct carrel_error *err)
{
    struct timespec now;

    int r = fill_template(fill, fill->repo, "git", err);
    if (r < 0)
        return r;
    if (mkdirat(fill->dir, "layer", 0755) < 0)
        return err_set_errno(err, -errno, "make a directory for the layer");
    r = copy_index(fill, below);
    if (r < 0)
        return err_set_errno(err, r, "copy an index");
    (void)clock_gettime(CLOCK_REALTIME_COARSE, &now);
    r = write_changed(fill, from, delta, err);
    if (r == 0)
        r = hide_removed(fill, delta, err);
    if (r == 0)
        r = fill_own_index(fill, "git/index", now.tv_sec, err);
    return r;
}

int fill_layer(
        struct fill *fill, const char *state, struct checkout **below, struct carrel_error *err)
{
    AUTO(checkout_free) struct checkout *held = NULL;
    struct delta_list delta = { 0 };
    struct checkout_facts facts = { 0 };
    char from[OID_MAX];

    if (!choose(fill, from, &facts, &delta))
        return 0;
    int r = checkout_find(state, fill->repo, from, &held, NULL);
    if (r < 0) { /* evicted meanwhile: a whole tree, then */
        delta_list_finish(&delta);
        return 0;
    }
    r = make_layer(fill, held, from, &delta, err);
    delta_list_finish(&delta);
    if (r < 0)
        return err_wrap(err, r, "make a layer over %s", from);
    memcpy(fill->facts.below, from, sizeof(from));
    fill->facts.depth = facts.depth + 1;
    fill->facts.has_filters = facts.has_filters;
    fill->facts.has_line_ends = facts.has_line_ends;
    *below = ptr_steal(&held);
    return 1;
}
