/*
 * merge.c - one walk through several trees at once.
 *
 * A program chose the depth of the trees. So there is one descriptor for each, however deep it
 * is: on the way down it is replaced by the one of the directory below, on the way up by "..",
 * which is believed only if it leads to where we came from: no process may change the trees
 * meanwhile, and a program that did would otherwise lead us out of them. A tree that has no
 * part in a directory, or is hidden there, stays where it is until the walk is back.
 *
 * What is on top counts, and a directory goes on in the next tree unless something there ends
 * it: a mark that it is opaque, or anything that is not a directory. Where that was so, the
 * directory made of them must hide what is below the last of them, and is marked opaque.
 *
 * An overlay looks for whiteouts only in directories that several layers have a part in; in
 * another one it would show them. So one is taken over only if it hides something: the trees
 * below are walked, too, to know that.
 */
#include "layer/merge.h"
#include "base/auto.h"
#include "base/dir.h"
#include "base/err.h"
#include "base/str.h"
#include "layer/file.h"
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/xattr.h>
#include <unistd.h>

#define OPAQUE "user.overlay.opaque"

typedef unsigned __int128 tree_set;
#define BIT(i) ((tree_set)1 << (i))

/* A directory of the result that is being filled. */
struct frame {
    tree_set trees;  /* which have a part in it */
    bool is_opaque;  /* what is below the last of them is hidden */
    bool is_shut;    /* a view of what we may not read: it stays empty */
    struct stat top; /* of the topmost */
    char **dirs;     /* in it */
    size_t n_dirs, next;
    struct frame *above;
    struct stat of[]; /* each tree's part */
};

struct walk {
    int *from;
    size_t n;   /* trees that are merged */
    size_t all; /* and those below them */
    int to;
    int aside;
    enum merge_how how;
    struct frame *at;
    struct carrel_error *err;
};

static int fail(struct walk *walk, int r, const char *name)
{
    char shown[128];

    return err_set_errno(walk->err, r, "copy '%s' of a layer",
            str_escape(name, strlen(name), shown, sizeof(shown)));
}

static struct frame *frame_new(const struct walk *walk)
{
    struct frame *frame = calloc(1, sizeof(*frame) + walk->all * sizeof(frame->of[0]));

    return frame;
}

static void frame_free(struct frame *frame)
{
    for (size_t i = 0; i < frame->n_dirs; i++)
        free(frame->dirs[i]);
    free(frame->dirs);
    free(frame);
}

static bool is_whiteout(const struct stat *st)
{
    return S_ISCHR(st->st_mode) && st->st_rdev == 0;
}

/* 1: it is; 0: not. Another mark than ours would mean something that we do not know. */
static int is_opaque(int fd)
{
    char value[2];
    ssize_t n = fgetxattr(fd, OPAQUE, value, sizeof(value));

    if (n < 0)
        return errno == ENODATA || errno == ENOTSUP ? 0 : -errno;
    return n == 1 && value[0] == 'y' ? 1 : -EUCLEAN;
}

/* A file with several names is copied once; the others are links here, too. */
static int copy_linked(struct walk *walk, int from, const char *name, const struct stat *st)
{
    char inode[24];

    (void)snprintf(inode, sizeof(inode), "%ju", (uintmax_t)st->st_ino);
    if (linkat(walk->aside, inode, walk->to, name, 0) == 0)
        return 0;
    if (errno != ENOENT && errno != EMLINK)
        return -errno;
    bool is_first = errno == ENOENT;
    int r = file_copy(from, name, st, walk->to);
    if (r == 0 && is_first && linkat(walk->to, name, walk->aside, inode, 0) < 0)
        r = -errno;
    return r;
}

/* Whether there is something below the merged trees that a whiteout has to hide. */
static bool is_below(const struct walk *walk, const char *name)
{
    struct stat st;

    for (size_t i = walk->n; i < walk->all; i++)
        if ((walk->at->trees & BIT(i)) &&
                fstatat(walk->from[i], name, &st, AT_SYMLINK_NOFOLLOW) == 0)
            return !is_whiteout(&st);
    return false;
}

/* What is not a directory. */
static int take(struct walk *walk, int from, const char *name, const struct stat *st)
{
    if (walk->how != MERGE_COPY && is_whiteout(st) && !is_below(walk, name))
        return 0;
    if (walk->how != MERGE_COPY) {
        if (linkat(from, name, walk->to, name, 0) == 0)
            return 0;
        if (errno != EMLINK)
            return fail(walk, -errno, name);
    }
    int r = !S_ISREG(st->st_mode) ? file_copy_special(from, name, st, walk->to)
            : st->st_nlink > 1 && walk->how == MERGE_COPY ? copy_linked(walk, from, name, st)
                                                          : file_copy(from, name, st, walk->to);
    return r < 0 ? fail(walk, r, name) : 0;
}

static int add_dir(struct frame *frame, const char *name)
{
    char **dirs = reallocarray(frame->dirs, frame->n_dirs + 1, sizeof(*dirs));

    if (!dirs)
        return -ENOMEM;
    frame->dirs = dirs;
    dirs[frame->n_dirs] = strdup(name);
    return dirs[frame->n_dirs++] ? 0 : -ENOMEM;
}

/* Whether a tree above number `i` has something of this name. */
static bool is_hidden(const struct walk *walk, size_t i, const char *name)
{
    struct stat st;

    for (size_t j = 0; j < i; j++)
        if ((walk->at->trees & BIT(j)) &&
                fstatat(walk->from[j], name, &st, AT_SYMLINK_NOFOLLOW) == 0)
            return true;
    return false;
}

static int visit(struct walk *walk, size_t i, const char *name)
{
    struct stat st;

    if (is_hidden(walk, i, name))
        return 0;
    if (fstatat(walk->from[i], name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return fail(walk, -errno, name);
    if (!S_ISDIR(st.st_mode))
        return take(walk, walk->from[i], name, &st);
    int r = add_dir(walk->at, name);
    return r < 0 ? fail(walk, r, name) : 0;
}

/* Takes all files of the directory, and remembers the directories in it. */
static int fill(struct walk *walk)
{
    int r = 0;

    for (size_t i = 0; r == 0 && i < walk->n; i++) {
        if (!(walk->at->trees & BIT(i)))
            continue;
        AUTO(dir_close) DIR *list = dir_open(walk->from[i], ".");
        if (!list)
            return fail(walk, -errno, ".");
        for (const char *name; r == 0 && (name = dir_next(list));)
            r = visit(walk, i, name);
    }
    return r;
}

/* Opens `name` in each tree that has a part in it: their descriptors go down. */
static int go_down(struct walk *walk, const char *name, struct frame *frame)
{
    for (size_t i = 0; i < walk->all; i++) {
        struct stat st;
        if (!(walk->at->trees & BIT(i)))
            continue;
        if (fstatat(walk->from[i], name, &st, AT_SYMLINK_NOFOLLOW) < 0) {
            if (errno == ENOENT)
                continue;
            return -errno;
        }
        if (!S_ISDIR(st.st_mode)) {
            frame->is_opaque = i < walk->n;
            break;
        }
        if (frame->trees == 0)
            frame->top = st;
        if (walk->how == MERGE_VIEW && file_is_shut(&st)) {
            frame->is_shut = true;
            frame->top.st_mode = S_IFDIR; /* a stat of it shows that much */
            break;
        }
        int fd = file_open(walk->from[i], name, &st);
        if (fd < 0)
            return fd;
        fd_close(walk->from[i]);
        walk->from[i] = fd;
        frame->trees |= BIT(i);
        frame->of[i] = st;
        if (fstat(fd, &st) < 0)
            return -errno;
        if (st.st_dev != frame->of[i].st_dev || st.st_ino != frame->of[i].st_ino)
            return -ESTALE;
        int r = is_opaque(fd);
        if (r < 0)
            return r;
        if (r > 0) {
            frame->is_opaque = i < walk->n;
            break;
        }
    }
    return 0;
}

static int topmost(const struct walk *walk, const struct frame *frame)
{
    for (size_t i = 0; i < walk->n; i++)
        if (frame->trees & BIT(i))
            return walk->from[i];
    return -1;
}

static int enter(struct walk *walk, const char *name)
{
    struct frame *frame = frame_new(walk);

    if (!frame)
        return fail(walk, -ENOMEM, name);
    frame->above = walk->at;
    int r = go_down(walk, name, frame);
    walk->at = frame; /* from here on the walk owns it */
    if (r == 0 && mkdirat(walk->to, name, 0700) < 0)
        r = -errno;
    int made = r < 0 ? -1 : openat(walk->to, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (r == 0 && made < 0)
        r = -errno;
    if (r < 0)
        return fail(walk, r, name);
    fd_close(walk->to);
    walk->to = made;
    /* The mark first: attributes that a program chose may take all the room there is. */
    if (frame->is_opaque && fsetxattr(made, OPAQUE, "y", 1, 0) < 0)
        return fail(walk, -errno, name);
    if (frame->is_shut)
        return 0;
    r = file_copy_attributes(topmost(walk, frame), made);
    return r < 0 ? fail(walk, r, name) : fill(walk);
}

/* `came_from` is what must be above; NULL: the tree is ours. */
static int go_up(int *fd, int (*finish)(int fd, const struct stat *st), const struct stat *st,
        const struct stat *came_from)
{
    struct stat now = { 0 };
    AUTO(fd_close)
    int above = openat(*fd, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC); /* while it can */

    int r = above < 0 || fstat(above, &now) < 0 ? -errno : finish(*fd, st);
    if (r < 0)
        return r;
    if (came_from && (now.st_dev != came_from->st_dev || now.st_ino != came_from->st_ino))
        return -ESTALE;
    fd_close(*fd);
    *fd = fd_steal(&above);
    return 0;
}

/* Every tree that has a part in the frame goes up, and gets its mode back. */
static int leave_trees(struct walk *walk, const struct frame *frame)
{
    int r = 0;

    for (size_t i = 0; i < walk->all; i++) {
        if (!(frame->trees & BIT(i)))
            continue;
        int up = go_up(&walk->from[i], file_restore, &frame->of[i], &frame->above->of[i]);
        if (r == 0)
            r = up;
    }
    return r;
}

/* Mode, owner and times are set last: nothing is created in the directory any more. */
static int leave(struct walk *walk)
{
    struct frame *frame = walk->at;
    int r = leave_trees(walk, frame);

    if (r == 0)
        r = go_up(&walk->to, file_finish, &frame->top, NULL);
    walk->at = frame->above;
    frame_free(frame);
    return r < 0 ? fail(walk, r, "a directory") : 0;
}

static int begin(struct walk *walk)
{
    struct frame *frame = frame_new(walk);

    if (!frame)
        return fail(walk, -ENOMEM, ".");
    walk->at = frame;
    frame->trees = walk->all == MERGE_MAX ? ~(tree_set)0 : BIT(walk->all) - 1;
    for (size_t i = 0; i < walk->all; i++)
        if (fstat(walk->from[i], &frame->of[i]) < 0)
            return fail(walk, -errno, ".");
    frame->top = frame->of[0];
    int r = file_copy_attributes(walk->from[0], walk->to);
    return r < 0 ? fail(walk, r, ".") : fill(walk);
}

static int go_through(struct walk *walk)
{
    int r = begin(walk);

    while (r == 0) {
        struct frame *frame = walk->at;
        if (frame->next < frame->n_dirs)
            r = enter(walk, frame->dirs[frame->next++]);
        else if (frame->above)
            r = leave(walk);
        else
            break;
    }
    if (r == 0)
        r = file_finish(walk->to, &walk->at->top);
    return r;
}

/* A walk that failed leaves directories open to us; their modes are put back all the same. */
static void give_up(struct walk *walk)
{
    while (walk->at) {
        struct frame *frame = walk->at;
        if (frame->above)
            (void)leave_trees(walk, frame); /* as far as possible */
        walk->at = frame->above;
        frame_free(frame);
    }
}

int merge_trees(int *from, size_t n, size_t below, int to, int aside, enum merge_how how,
        struct carrel_error *err)
{
    struct walk walk = {
        .from = from,
        .n = n,
        .all = n + below,
        .to = fcntl(to, F_DUPFD_CLOEXEC, 3),
        .aside = aside,
        .how = how,
        .err = err,
    };

    assert(n > 0 && walk.all <= MERGE_MAX && (how != MERGE_COPY || n == 1));
    int r = walk.to < 0 ? err_set_errno(err, -errno, "copy a layer") : go_through(&walk);
    give_up(&walk);
    for (size_t i = 0; i < walk.all; i++)
        fd_close(fd_steal(&from[i]));
    fd_close(walk.to);
    return r;
}
