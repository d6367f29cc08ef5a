/*
 * upper.c - walks an upper directory and lists what git would see as changed.
 *
 * The attacker is the run: it chose the names, the depth, the types, the modes and the ignore
 * rules. So directories wait in a list and are opened one at a time by their path below the
 * root, with RESOLVE_BENEATH and RESOLVE_NO_SYMLINKS enforced by the kernel; depth costs
 * neither stack nor descriptors. Only regular files and directories are ever opened, and every
 * mark of the overlay that is not known to be harmless stops the walk.
 *
 * The lower layers are asked about a name only if the upper has it.
 */
#include "workspace/harvest/upper.h"
#include "base/dir.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/str.h"
#include "git/format/ignore.h"
#include "git/format/treepath.h"
#include "workspace/harvest/changes.h"
#include "workspace/harvest/lower.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Ignored files are not changes, but a directory full of them must not take unbounded time. */
#define MAX_IGNORED UINT64_C(20000000)
#define BLOCK_BYTES 65536

/* A directory that was not visited yet. */
struct place {
    char *path; /* "" for the root */
    unsigned depth;
    struct lower_entry base;
    bool is_base_gone; /* the removal of an ancestor is listed already and covers this */
    bool is_ignored;   /* it or an ancestor: only tracked files count in it */
};

struct walk {
    int upper;
    const struct upper_base *base;
    const struct upper_limits *limits;
    struct lower lower;
    struct ignore *ignore;
    size_t n_rules; /* files of rules in `ignore`: info/exclude and one for each ancestor */
    struct place *places;
    size_t n_places;
    size_t places_room;
    uint64_t n_seen;
    bool *has_tracked; /* for each of base->tracked: it still exists */
    char *block;
    struct change_list list;
    struct carrel_error *err;
};

/* An entry of the upper and what is known about it. */
struct entry {
    const struct place *in;
    int dir;
    const char *name;
    const char *path;
    struct stat st;
    struct lower_entry base;
    bool is_gitlink;
    bool is_tracked; /* as a file */
};

static void walk_finish(struct walk walk)
{
    for (size_t i = 0; i < walk.n_places; i++)
        free(walk.places[i].path);
    free(walk.places);
    free(walk.has_tracked);
    free(walk.block);
    changes_finish(&walk.list.all);
    lower_close(&walk.lower);
    ignore_free(walk.ignore);
}
DEFINE_AUTO(struct walk, walk_finish)

static int fail(const struct walk *walk, int r, const char *what, const char *path)
{
    char shown[200];

    str_escape(path, strlen(path), shown, sizeof(shown));
    if (r == -EUCLEAN)
        return err_set(walk->err, r,
                "'%s' has an overlay attribute that we never write: the workspace was changed "
                "from outside, so its content cannot be trusted",
                shown);
    if (r == -ESTALE)
        return err_set(walk->err, r,
                "'%s' changed while it was looked at, or something is mounted there: try "
                "again when nothing uses the workspace",
                shown);
    return err_set_errno(walk->err, r, "%s '%s' of the workspace", what, shown);
}

static int no_memory(const struct walk *walk)
{
    return err_set_errno(walk->err, -ENOMEM, "list the changes of a workspace");
}

static int add_change(struct walk *walk, const char *path, enum change_kind kind, uint64_t size)
{
    return changes_add(&walk->list, path, kind, size, walk->err);
}

static int add_oddity(struct walk *walk, const char *path, enum oddity_kind kind)
{
    return changes_add_oddity(&walk->list, path, kind, walk->err);
}

/* 1: git ignores this path unless it is tracked. */
static int is_ignored(struct walk *walk, const struct entry *entry)
{
    if (entry->in->is_ignored ||
            (!S_ISDIR(entry->st.st_mode) &&
                    paths_have(walk->base->included, walk->base->n_included, entry->path)))
        return 1;
    if (walk->base->has_no_rules)
        return 0;
    bool matches = ignore_matches(walk->ignore, entry->path, S_ISDIR(entry->st.st_mode));
    if (ignore_is_spent(walk->ignore))
        return err_set(walk->err, -E2BIG,
                "the ignore rules of the workspace take too long: simplify its .gitignore");
    return matches;
}

/* Lists the removal of what base had at this path, unless that is listed already. */
static int remove_base(struct walk *walk, const struct entry *entry)
{
    if (entry->in->is_base_gone)
        return 0;
    return add_change(walk, entry->path, CHANGE_REMOVE, 0);
}

static int open_beneath(int dir, const char *path, uint64_t flags)
{
    const struct open_how how = {
        .flags = flags | O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC,
        .resolve =
                RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV,
    };
    int fd = (int)syscall(SYS_openat2, dir, path, &how, sizeof(how));

    return fd < 0 ? -errno : fd;
}

/* Errors that can only mean that the entry changed since we looked. */
static int stale(int r)
{
    switch (r) {
    case -ENOENT:
    case -ELOOP:
    case -ENOTDIR:
    case -ENXIO:
    case -EXDEV: /* moved out of the root meanwhile; or a mount, which is never ours */
    case -EAGAIN:
        return -ESTALE;
    default:
        return r;
    }
}

/* The run chose the sizes, and a hole costs it nothing: so all files together are bounded. */
static int scan_for_cr(struct walk *walk, int fd, const char *path)
{
    while (!walk->list.all.has_cr && walk->list.all.bytes <= walk->limits->max_cr_bytes) {
        ssize_t n = fd_read_all(fd, walk->block, BLOCK_BYTES);
        if (n < 0)
            return fail(walk, (int)n, "read", path);
        if (n == 0)
            break;
        walk->list.all.has_cr = memchr(walk->block, '\r', (size_t)n) != NULL;
    }
    return 0;
}

static int add_regular(struct walk *walk, const struct entry *entry)
{
    struct stat st;
    enum overlay_mark mark;
    AUTO(fd_close) int fd = open_beneath(entry->dir, entry->name, 0);
    if (fd == -EACCES || fd == -EPERM)
        return add_oddity(walk, entry->path, ODDITY_UNREADABLE);
    if (fd < 0)
        return fail(walk, stale(fd), "open", entry->path);
    if (fstat(fd, &st) < 0)
        return fail(walk, -errno, "stat", entry->path);
    if (!S_ISREG(st.st_mode))
        return fail(walk, -ESTALE, "open", entry->path);
    int r = overlay_marks(fd, &mark);
    if (r == 0 && mark != OVERLAY_PLAIN)
        r = -EUCLEAN; /* a file cannot be opaque */
    if (r < 0)
        return fail(walk, r, "read the attributes of", entry->path);
    r = add_change(walk, entry->path, st.st_mode & S_IXUSR ? CHANGE_EXECUTABLE : CHANGE_FILE,
            (uint64_t)st.st_size);
    return r < 0 ? r : scan_for_cr(walk, fd, entry->path);
}

static void note_attributes(struct walk *walk, const struct entry *entry, bool is_change)
{
    if (strcmp(entry->name, ".gitattributes") == 0 ||
            (is_change && strcmp(entry->name, ".gitmodules") == 0))
        walk->list.all.has_attributes = true;
}

/* A file or a link. If it replaces a directory, it is new to git, which may ignore it. */
static int take_file(struct walk *walk, const struct entry *entry)
{
    int r = 0;

    if (entry->base.kind == LOWER_DIR)
        r = remove_base(walk, entry);
    if (r == 0 && !entry->is_tracked)
        r = is_ignored(walk, entry);
    if (r < 0)
        return r;
    note_attributes(walk, entry, r == 0);
    if (r > 0)
        return 0;
    if (S_ISREG(entry->st.st_mode))
        return add_regular(walk, entry);
    return add_change(walk, entry->path, CHANGE_LINK, (uint64_t)entry->st.st_size);
}

static int take_special(struct walk *walk, const struct entry *entry)
{
    int r = 0;

    if (entry->base.kind != LOWER_NONE)
        r = remove_base(walk, entry);
    if (r == 0 && !entry->is_tracked)
        r = is_ignored(walk, entry);
    return r == 0 ? add_oddity(walk, entry->path, ODDITY_SPECIAL) : r < 0 ? r : 0;
}

static int take_whiteout(struct walk *walk, const struct entry *entry)
{
    bool has_base = entry->base.kind != LOWER_NONE || entry->is_tracked ||
                    paths_have_below(walk->base->tracked, walk->base->n_tracked, entry->path);
    if (!has_base)
        return 0; /* of a setup layer, or the whiteout of a file that was created and removed */
    note_attributes(walk, entry, true);
    return remove_base(walk, entry);
}

static bool is_dots(const char *name)
{
    return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

/* The content of a submodule belongs to another repository; our tree keeps its one entry. */
static int take_submodule(struct walk *walk, const struct entry *entry)
{
    AUTO(fd_close) int fd = open_beneath(entry->dir, entry->name, O_DIRECTORY);
    AUTO(dir_close) DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    const struct dirent *item = NULL;

    if (fd < 0 && fd != -EACCES)
        return fail(walk, stale(fd), "open", entry->path);
    if (dir) {
        fd_steal(&fd);
        while ((item = readdir(dir)) && is_dots(item->d_name))
            ;
    }
    if (dir && !item)
        return 0; /* empty: only copied up */
    return add_oddity(walk, entry->path, ODDITY_GITLINK);
}

static size_t place_bytes(const char *path)
{
    return sizeof(struct place) + strlen(path) + 1;
}

static int add_place(struct walk *walk, struct place place, const char *path)
{
    int r = changes_take_room(&walk->list, place_bytes(path), walk->err);

    if (r < 0)
        return r;
    if (walk->n_places == walk->places_room) {
        size_t room = walk->places_room ? 2 * walk->places_room : 32;
        struct place *grown = reallocarray(walk->places, room, sizeof(*grown));
        if (!grown)
            return no_memory(walk);
        walk->places = grown;
        walk->places_room = room;
    }
    place.path = strdup(path);
    if (!place.path)
        return no_memory(walk);
    walk->places[walk->n_places++] = place;
    return 0;
}

static int take_dir(struct walk *walk, const struct entry *entry)
{
    if (entry->is_gitlink)
        return take_submodule(walk, entry);
    int r = entry->base.kind == LOWER_FILE ? remove_base(walk, entry) : 0;
    if (r == 0)
        r = is_ignored(walk, entry);
    if (r < 0)
        return r;
    if (r > 0 && entry->base.kind != LOWER_DIR &&
            !paths_have_below(walk->base->tracked, walk->base->n_tracked, entry->path))
        return 0;
    if (entry->in->depth >= walk->limits->max_depth)
        return err_set(walk->err, -ELOOP, "the workspace has directories more than %u deep",
                walk->limits->max_depth);
    return add_place(walk,
            (struct place){
                    .depth = entry->in->depth + 1,
                    .base = entry->base,
                    .is_base_gone = entry->in->is_base_gone,
                    .is_ignored = r > 0,
            },
            entry->path);
}

static int take_entry(struct walk *walk, const struct place *place, int dir, const char *name)
{
    const struct upper_base *base = walk->base;
    char path[PATH_MAX];
    struct entry entry = { .in = place, .dir = dir, .name = name, .path = path };
    int len =
            snprintf(path, sizeof(path), "%s%s%s", place->path, place->depth ? "/" : "", name);

    if (len < 0 || (size_t)len >= sizeof(path))
        return err_set(walk->err, -ELOOP,
                "the workspace has a path that is longer than %d bytes", PATH_MAX - 1);
    if (strcmp(path, ".git") == 0)
        return 0;
    if (++walk->n_seen > walk->limits->max_changes + MAX_IGNORED)
        return err_set(walk->err, -E2BIG, "the workspace has too many files");
    if (fstatat(dir, name, &entry.st, AT_SYMLINK_NOFOLLOW) < 0)
        return fail(walk, stale(-errno), "stat", path);
    bool is_whiteout = lower_is_whiteout(&entry.st);
    if (treepath_why_not(name))
        return is_whiteout ? 0 : add_oddity(walk, path, ODDITY_REPOSITORY);

    int r = lower_find(&walk->lower, &place->base, path, &entry.base, walk->err);
    if (r < 0)
        return r;
    entry.is_gitlink = paths_have(base->gitlinks, base->n_gitlinks, path);
    entry.is_tracked = entry.base.kind == LOWER_FILE || entry.is_gitlink;
    size_t i = paths_find(base->tracked, base->n_tracked, path);
    if (i < base->n_tracked && strcmp(base->tracked[i], path) == 0) {
        entry.is_tracked = true;
        walk->has_tracked[i] = S_ISREG(entry.st.st_mode) || S_ISLNK(entry.st.st_mode);
    }

    if (is_whiteout)
        return take_whiteout(walk, &entry);
    if (S_ISDIR(entry.st.st_mode))
        return take_dir(walk, &entry);
    if (S_ISREG(entry.st.st_mode) || S_ISLNK(entry.st.st_mode))
        return take_file(walk, &entry);
    return take_special(walk, &entry);
}

/* The ignore file that the run would see here. -ENOENT: none. git does not follow a link. */
static int open_rules(struct walk *walk, const struct place *place, int dir)
{
    char path[PATH_MAX + 16];
    struct stat st;

    if (fstatat(dir, ".gitignore", &st, AT_SYMLINK_NOFOLLOW) == 0) {
        int fd = S_ISREG(st.st_mode) ? open_beneath(dir, ".gitignore", 0) : -ENOENT;
        return fd == -EACCES ? -ENOENT : fd;
    }
    if (errno != ENOENT)
        return -errno;
    if (place->is_base_gone || place->base.layers == 0)
        return -ENOENT;
    (void)snprintf(path, sizeof(path), "%s%s.gitignore", place->path, place->depth ? "/" : "");
    return lower_open_file(&walk->lower, &place->base, path, walk->err);
}

static int push_rules(struct walk *walk, const char *dir, const char *text, size_t len)
{
    int r = ignore_push(walk->ignore, dir, text, len, walk->err);

    walk->n_rules += r == 0;
    return r;
}

static int read_rules(struct walk *walk, const struct place *place, int dir)
{
    struct stat st;
    AUTO(fd_close) int fd = open_rules(walk, place, dir);
    if (fd == -ENOENT)
        return push_rules(walk, place->path, "", 0);
    if (fd < 0)
        return fail(walk, stale(fd), "open .gitignore in", place->path);
    if (fstat(fd, &st) < 0)
        return fail(walk, -errno, "stat .gitignore in", place->path);
    size_t max = st.st_size > IGNORE_MAX_BYTES ? IGNORE_MAX_BYTES + 1 : (size_t)st.st_size;
    AUTO(free) char *text = malloc(max + 1);
    if (!text)
        return no_memory(walk);
    ssize_t n = S_ISREG(st.st_mode) ? fd_read_all(fd, text, max) : -ESTALE;
    if (n < 0)
        return fail(walk, (int)n, "read .gitignore in", place->path);
    return push_rules(walk, place->path, text, (size_t)n);
}

/* An opaque directory starts empty: everything that base has there is removed. */
static int read_marks(struct walk *walk, struct place *place, int dir)
{
    enum overlay_mark mark;
    int r = overlay_marks(dir, &mark);

    if (r == 0 && mark == OVERLAY_OPAQUE && place->depth == 0)
        r = -EUCLEAN; /* the root is never opaque */
    if (r < 0)
        return fail(walk, r, "read the attributes of", place->path);
    if (mark != OVERLAY_OPAQUE || place->is_base_gone)
        return 0;
    if (place->base.kind == LOWER_DIR) {
        r = add_change(walk, place->path, CHANGE_REMOVE, 0);
        place->is_base_gone = true;
    }
    return r;
}

static int visit(struct walk *walk, struct place *place)
{
    AUTO(fd_close)
    int fd = open_beneath(walk->upper, place->depth ? place->path : ".", O_DIRECTORY);
    if (fd == -EACCES && place->depth > 0)
        return add_oddity(walk, place->path, ODDITY_UNREADABLE);
    if (fd < 0)
        return fail(walk, stale(fd), "open", place->path);
    int r = read_marks(walk, place, fd);
    if (r < 0)
        return r;
    if (!place->is_ignored && !walk->base->has_no_rules) {
        for (; walk->n_rules > 1 + place->depth; walk->n_rules--)
            ignore_pop(walk->ignore);
        r = read_rules(walk, place, fd);
        if (r < 0)
            return r;
    }

    AUTO(dir_close) DIR *dir = fdopendir(fd);
    if (!dir)
        return fail(walk, -errno, "open", place->path);
    int at = fd_steal(&fd);
    for (;;) {
        errno = 0;
        const struct dirent *item = readdir(dir);
        if (!item)
            return errno ? fail(walk, -errno, "list", place->path) : 0;
        if (is_dots(item->d_name))
            continue;
        r = take_entry(walk, place, at, item->d_name);
        if (r < 0)
            return r;
    }
}

/*
 * A path that the run's commits made tracked and that was deleted leaves no trace in the upper.
 */
static int remove_tracked(struct walk *walk)
{
    for (size_t i = 0; i < walk->base->n_tracked; i++) {
        const char *path = walk->base->tracked[i];

        if (walk->has_tracked[i])
            continue;
        int r = lower_has(&walk->lower, path, walk->err);
        if (r == LOWER_FILE) /* the walk has handled it */
            continue;
        if (r >= 0)
            r = add_change(walk, path, CHANGE_REMOVE, 0);
        if (r < 0)
            return r;
    }
    return 0;
}

static int walk_all(struct walk *walk)
{
    int r = push_rules(walk, "", walk->base->exclude ? walk->base->exclude : "",
            walk->base->exclude ? strlen(walk->base->exclude) : 0);

    if (r == 0)
        r = add_place(walk, (struct place){ .base = lower_root(&walk->lower) }, "");
    while (r == 0 && walk->n_places > 0) {
        struct place place = walk->places[--walk->n_places];
        r = visit(walk, &place);
        walk->list.path_bytes -= place_bytes(place.path);
        free(place.path);
    }
    if (r == 0)
        r = remove_tracked(walk);
    return r;
}

int upper_walk(int upper, const struct upper_base *base, const struct upper_limits *limits,
        struct changes *out, struct carrel_error *err)
{
    AUTO(walk_finish)
    struct walk walk = {
        .upper = upper,
        .base = base,
        .limits = limits,
        .list = { .limits = limits },
        .err = err,
        .has_tracked = calloc(base->n_tracked + 1, sizeof(bool)),
        .block = malloc(BLOCK_BYTES),
    };

    if (!walk.has_tracked || !walk.block)
        return no_memory(&walk);
    int r = lower_open(&walk.lower, base->lower, err);
    if (r == 0)
        r = ignore_new(&walk.ignore, err);
    if (r == 0)
        r = walk_all(&walk);
    if (r < 0)
        return r;
    changes_sort(&walk.list.all);
    *out = walk.list.all;
    walk.list.all = (struct changes){ 0 };
    return 0;
}
