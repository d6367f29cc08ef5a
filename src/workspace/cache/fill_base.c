/* fill_base.c - a whole commit as files, by git itself, with the user's filters. */
#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "workspace/cache/fill.h"
#include "workspace/private.h"
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#define LISTING_MAX ((size_t)2 << 30)
#define ATTRIBUTES_MAX ((size_t)1 << 20)
#define PROGRESS_AFTER_MS 1000
#define PROGRESS_EVERY_MS 200

/* The paths of a commit, in the order in which git writes them. */
struct listing {
    struct buf text;
    const char **paths;
    size_t n;
    struct buf gitlinks; /* "<oid> <path>", each ended by NUL */
};

static void listing_finish(struct listing listing)
{
    buf_finish(listing.text);
    buf_finish(listing.gitlinks);
    free(listing.paths);
}
DEFINE_AUTO(struct listing, listing_finish)

/* "100644 blob <oid>\tpath" */
static int take_item(struct listing *listing, const char *item)
{
    const char *tab = strchr(item, '\t');

    if (!tab || !tab[1])
        return -EBADMSG;
    fill_note_gitlink(item, &listing->gitlinks);
    listing->paths[listing->n++] = tab + 1;
    return 0;
}

static int list(struct fill *fill, struct listing *out, struct carrel_error *err)
{
    /* As the user: of a partial clone it may have to fetch. */
    const struct git git = repo_user_git(fill->repo);
    struct git_io io = GIT_IO_INIT;
    size_t n = 0;

    io.output = &out->text;
    int r = fill_git(
            &git, GIT_ARGS("ls-tree", "-r", "-z", "--full-tree", fill->commit), &io, err);
    if (r < 0)
        return r;
    for (size_t at = 0; at < out->text.len; at += strlen(out->text.data + at) + 1)
        n++;
    out->paths = calloc(n ? n : 1, sizeof(out->paths[0]));
    if (!out->paths)
        return err_set_errno(err, -ENOMEM, "list the files");
    for (size_t at = 0; at < out->text.len; at += strlen(out->text.data + at) + 1)
        if (take_item(out, out->text.data + at) < 0)
            return err_set(err, -EBADMSG, "git listed the files in an unknown form");
    return out->gitlinks.is_short ? err_set_errno(err, -ENOMEM, "list the files") : 0;
}

static int write_files(struct fill *fill, struct carrel_error *err)
{
    AUTO(free) char *tree = checkout_format("%s/tree", fill->path);
    AUTO(free) char *index = checkout_format("%s/git/index", fill->path);

    if (!tree || !index)
        return err_set_errno(err, -ENOMEM, "check out");
    return fill_check_out(fill, fill->repo, fill->commit, tree, index, err);
}

/*
 * How many of the files are there. git writes them in order, so the first one that is missing
 * tells; a few questions find it.
 */
static uint64_t count_done(int tree, const struct listing *listing)
{
    size_t low = 0;
    size_t high = listing->n;

    while (low < high) {
        size_t mid = low + (high - low) / 2;
        assert(listing->paths[mid]);
        if (faccessat(tree, listing->paths[mid], F_OK, AT_SYMLINK_NOFOLLOW) == 0)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

/* The files are written by another thread. */
struct writing {
    struct fill *fill;
    int end; /* an eventfd: it is done */
    int result;
    struct carrel_error err;
};

static void *write_aside(void *context)
{
    struct writing *writing = context;

    writing->result = write_files(writing->fill, &writing->err);
    (void)eventfd_write(writing->end, 1); /* it cannot fail: nothing was added before */
    return NULL;
}

/* Reports until the other thread is done. Returns whether the last report was not of all. */
static bool watch(struct fill *fill, const struct listing *listing, int end)
{
    AUTO(fd_close) int tree = openat(fill->dir, "tree", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct pollfd wait = { .fd = end, .events = POLLIN };
    uint64_t start = clock_ns();
    size_t shown = 0; /* what was told last */
    bool is_told = false;

    while (poll(&wait, 1, PROGRESS_EVERY_MS) <= 0) { /* no error lasts; the join would wait */
        if (clock_ns() - start < PROGRESS_AFTER_MS * UINT64_C(1000000) || shown == listing->n)
            continue;
        shown = count_done(tree, listing);
        fill->progress(shown, listing->n, fill->context);
        is_told = true;
    }
    return is_told && shown < listing->n;
}

/* git tells its progress to terminals only, so another thread waits for it and this one looks
 * at how far it came. */
static int write_files_watched(
        struct fill *fill, const struct listing *listing, struct carrel_error *err)
{
    AUTO(fd_close) int end = eventfd(0, EFD_CLOEXEC);
    struct writing writing = { .fill = fill, .end = end };
    pthread_t thread;

    if (end < 0)
        return err_set_errno(err, -errno, "check out: eventfd");
    int code = pthread_create(&thread, NULL, write_aside, &writing);
    if (code != 0)
        return err_set_errno(err, -code, "check out: start a thread");
    bool is_waiting = watch(fill, listing, end);
    (void)pthread_join(thread, NULL);      /* it cannot fail: the thread is ours alone */
    if (is_waiting && writing.result == 0) /* a process that was told waits for the end */
        fill->progress(listing->n, listing->n, fill->context);
    if (writing.result < 0 && err)
        *err = writing.err;
    return writing.result;
}

/* The attributes that the commit itself holds, as they lie in the tree. */
static void take_attributes(int tree, const struct listing *listing, struct conversion *out)
{
    static const char name[] = ".gitattributes";
    AUTO(free) char *text = malloc(ATTRIBUTES_MAX);

    for (size_t i = 0; i < listing->n; i++) {
        const char *path = listing->paths[i];
        assert(path);
        const char *slash = strrchr(path, '/');
        if (strcmp(slash ? slash + 1 : path, name) != 0)
            continue;
        AUTO(fd_close) int fd = openat(tree, path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
        ssize_t len = fd < 0 || !text ? -1 : fd_read_all(fd, text, ATTRIBUTES_MAX);
        if (len < 0 || (size_t)len == ATTRIBUTES_MAX)
            out->has_filters = out->has_line_ends = true; /* in doubt */
        else
            conversion_of_attributes(text, (size_t)len, out);
    }
}

/* The paths of submodules, for the walk over what a run changed. */
static int record_gitlinks(struct fill *fill, const struct listing *listing)
{
    AUTO(buf_finish) struct buf paths = BUF_INIT(LISTING_MAX);
    const struct buf *links = &listing->gitlinks;

    for (size_t at = 0; at < links->len; at += strlen(links->data + at) + 1) {
        const char *path = strchr(links->data + at, ' ') + 1;
        buf_add(&paths, path, strlen(path) + 1);
    }
    if (paths.is_short)
        return -ENOMEM;
    return paths.len > 0 ? fd_write_new(fill->dir, "gitlinks", paths.data, paths.len) : 0;
}

static int write_all(struct fill *fill, const struct listing *listing, struct carrel_error *err)
{
    int r = fill_template(fill, fill->repo, "git", err);
    if (r < 0)
        return r;
    if (mkdirat(fill->dir, "tree", 0755) < 0)
        return err_set_errno(err, -errno, "make a directory for the files");
    return fill->progress ? write_files_watched(fill, listing, err) : write_files(fill, err);
}

int fill_base(struct fill *fill, struct carrel_error *err)
{
    static const char gitfile[] = "gitdir: " PRIVATE_GIT_DIR "\n";
    AUTO(listing_finish)
    struct listing listing = { .text = BUF_INIT(LISTING_MAX),
        .gitlinks = BUF_INIT(LISTING_MAX) };
    struct conversion conversion = fill->settings;

    int r = list(fill, &listing, err);
    if (r == 0)
        r = write_all(fill, &listing, err);
    if (r < 0)
        return r;

    AUTO(fd_close) int tree = openat(fill->dir, "tree", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (tree < 0)
        return err_set_errno(err, -errno, "open the checked out tree");
    take_attributes(tree, &listing, &conversion);
    fill->facts.has_filters = conversion.has_filters;
    fill->facts.has_line_ends = conversion.has_line_ends;
    fill->facts.has_gitlinks = listing.gitlinks.len > 0;
    /* After the checkout: git would take the tree for a user's work tree otherwise. */
    r = fd_write_new_text(tree, ".git", gitfile);
    if (r == 0)
        r = record_gitlinks(fill, &listing);
    if (r < 0)
        return err_set_errno(err, r, "write beside the checked out tree");
    if (listing.gitlinks.len > 0)
        r = fill_modules(fill, &listing.gitlinks, err);
    if (r == 0)
        r = fill_own_index(fill, "git/index", 0, err);
    return r;
}
