/*
 * prepare.c - the parts of making a workspace that may take time, each done once and kept.
 */
#include "core/prepare.h"
#include "base/boot.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/tree.h"
#include "core/cut.h"
#include "core/fuse.h"
#include "core/inner.h"
#include "core/workplace.h"
#include "workspace/folder.h"
#include "workspace/include.h"
#include "workspace/private.h"
#include <carrel/run.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define PROBE_TIMEOUT_MS 20000U
#define SETTLE_TIMEOUT_MS 120000U

/* A directory of ours below `dir` with the four that two overlays need. */
static int make_space(int dir, const char *name, struct carrel_error *err)
{
    static const char *const parts[] = { "upper", "work", "gitupper", "gitwork", "lower" };

    if (mkdirat(dir, name, 0755) < 0)
        return err_set_errno(err, -errno, "create '%s'", name);
    AUTO(fd_close) int space = openat(dir, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (size_t i = 0; i < ARRAY_LEN(parts); i++)
        if (space < 0 || mkdirat(space, parts[i], 0755) < 0)
            return err_set_errno(err, -errno, "create '%s/%s'", name, parts[i]);
    return 0;
}

/* Tries an overlay in a sandbox, on the file system where workspaces will be. */
static int probe_overlay(const struct workplace_request *q, const char *state, int dir,
        const char *name, struct carrel_error *err)
{
    char space[PATH_MAX];
    char lower[PATH_MAX];
    AUTO(inner_finish) struct inner inner = INNER_INIT;

    int r = make_space(dir, name, err);
    if (r < 0)
        return r;
    if (snprintf(space, sizeof(space), "%s/%s", state, name) >= (int)sizeof(space) ||
            snprintf(lower, sizeof(lower), "%s/%s/lower", state, name) >= (int)sizeof(lower))
        return err_set_errno(err, -ENAMETOOLONG, "'%s'", state);
    const struct sandbox_overlay overlay = {
        .lower = (const char *const[]){ lower, NULL },
        .space = space,
        .upper = "upper",
        .work = "work",
    };
    const struct sandbox_mount mount = {
        .target = PRIVATE_WORK_TREE, .access = ACCESS_READ_WRITE, .overlay = &overlay
    };
    const struct inner_spec spec = {
        .runtime = q->runtime, .mounts = &mount, .n_mounts = 1, .line = "echo >made && rm made"
    };
    r = inner_start(&spec, PROBE_TIMEOUT_MS, &inner, err);
    if (r == 0)
        r = inner_wait(&inner, err);
    return r > 0 ? err_set(err, -ENOTSUP, "a file could not be written in an overlay") : r;
}

/* True when an overlay worked here since the machine started. Remembered: trying costs a
 * sandbox. */
static bool has_overlay(
        const struct workplace_request *q, const char *state, struct carrel_error *err)
{
    char boot[BOOT_ID_MAX];
    char known[BOOT_ID_MAX];
    char name[32];

    AUTO(fd_close) int dir = open(state, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0) {
        (void)err_set_errno(err, -errno, "'%s'", state);
        return false;
    }
    if (boot_id_read(boot, err) < 0)
        return false;
    if (fd_read_file(dir, "overlay", known, sizeof(known)) >= 0 && strcmp(known, boot) == 0)
        return true;
    (void)snprintf(name, sizeof(name), ".probe-%d", (int)getpid());
    (void)tree_remove(dir, name, NULL); /* of a killed process that had our number */
    int r = probe_overlay(q, state, dir, name, err);
    (void)tree_remove(dir, name, NULL); /* stays behind, empty, at worst */
    if (r < 0)
        return false;
    char path[PATH_MAX];
    (void)snprintf(path, sizeof(path), "%s/overlay", state);
    (void)fd_replace_file(path, boot, strlen(boot), 0644, NULL); /* else we try again */
    return true;
}

int prepare_mode(const struct workplace_request *q, const char *state,
        enum workspace_mode *mode, struct carrel_error *err)
{
    struct carrel_error why = { 0 };

    switch (q->options->tree) {
    case CARREL_TREE_COPY:
        *mode = WORKSPACE_COPY;
        return 0;
    case CARREL_TREE_FUSE:
        *mode = WORKSPACE_FUSE;
        return 0;
    case CARREL_TREE_OVERLAY:
    case CARREL_TREE_AUTO:
        break;
    }
    if (has_overlay(q, state, &why)) {
        *mode = WORKSPACE_OVERLAY;
        return 0;
    }
    if (q->options->tree == CARREL_TREE_OVERLAY)
        return err_set(err, -ENOTSUP,
                "overlayfs does not work here (%s); leave --tree away for a fallback, or keep "
                "the state directory (XDG_STATE_HOME) on ext4, xfs or btrfs",
                why.message);
    *mode = fuse_is_usable() ? WORKSPACE_FUSE : WORKSPACE_COPY;
    return 0;
}

/* The directories of a draft's tree, topmost first. */
static const char **draft_lower(const struct checkout_draft *draft, char *top, size_t size)
{
    size_t n = 0;

    while (draft->below && draft->below->lower[n])
        n++;
    const char **lower = calloc(n + 2, sizeof(*lower));
    if (!lower)
        return NULL;
    (void)snprintf(top, size, "%s/%s", draft->path, draft->below ? "layer" : "tree");
    lower[0] = top;
    for (size_t i = 0; i < n; i++)
        lower[i + 1] = draft->below->lower[i];
    return lower;
}

/*
 * Lets git look at the tree once where every run will see it, so that the index holds an
 * untracked cache that is valid there: git then need not read directories that did not change.
 * Twice, a second apart: a directory that changed in this second is not trusted. What comes out
 * was written by git alone, on committed content, with nobody else in the sandbox.
 */
static int settle(const struct workplace_request *q, const struct repo *repo,
        struct checkout_draft *draft, int dir, struct carrel_error *err)
{
    char top[PATH_MAX];
    char git[PATH_MAX];
    char space[PATH_MAX];
    AUTO(free) const char **lower = draft_lower(draft, top, sizeof(top));
    AUTO(inner_finish) struct inner inner = INNER_INIT;

    if (!lower)
        return err_set_errno(err, -ENOMEM, "settle");
    (void)snprintf(git, sizeof(git), "%s/git", draft->path);
    (void)snprintf(space, sizeof(space), "%s/space", draft->path);
    int r = make_space(dir, "space", err);
    if (r < 0)
        return r;
    AUTO(fd_close)
    int upper = openat(dir, "space/gitupper", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    r = private_make_upper(repo, upper, "settle", draft->commit, err);
    if (r < 0)
        return r;
    const struct sandbox_overlay tree = {
        .lower = lower, .space = space, .upper = "upper", .work = "work"
    };
    const struct sandbox_overlay private = {
        .lower = (const char *const[]){ git, NULL },
        .space = space,
        .upper = "gitupper",
        .work = "gitwork",
    };
    const struct sandbox_mount mounts[] = {
        { .target = PRIVATE_WORK_TREE, .access = ACCESS_READ_WRITE, .overlay = &tree },
        { .target = PRIVATE_GIT_DIR, .access = ACCESS_READ_WRITE, .overlay = &private },
        { .target = PRIVATE_OBJECTS, .source = repo->objects[0] },
    };
    const struct inner_spec spec = {
        .runtime = q->runtime,
        .mounts = mounts,
        .n_mounts = ARRAY_LEN(mounts),
        .has_user = q->spec->has_user,
        .uid = q->spec->uid,
        .gid = q->spec->gid,
        .line = "look() { git -c core.untrackedCache=true status --porcelain >/dev/null 2>&1; "
                "}; "
                "look && sleep 1.1 && look",
    };
    r = inner_start(&spec, SETTLE_TIMEOUT_MS, &inner, err);
    if (r == 0)
        r = inner_wait(&inner, err);
    return r > 0 ? err_set(err, -EIO, "git status in the pristine tree failed") : r;
}

/* Below this the untracked cache saves less than the second that recording it takes. */
#define SETTLE_FROM_FILES 2000U

static int publish(const struct workplace_request *q, const char *state,
        const struct repo *repo, struct checkout_draft *draft, struct checkout **out,
        struct carrel_error *err)
{
    struct carrel_error ignored = { 0 };
    AUTO(fd_close) int index = -1;

    AUTO(fd_close) int dir = open(draft->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0)
        return err_set_errno(err, -errno, "open '%s'", draft->path);
    if (draft->n_files >= SETTLE_FROM_FILES && !repo->objects[1] &&
            has_overlay(q, state, &ignored)) {
        int r = settle(q, repo, draft, dir, &ignored);
        if (r == 0) /* without it the first status is slower, nothing else */
            index = openat(dir, "space/gitupper/index", O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
        r = tree_remove(dir, "space", err);
        if (r < 0)
            return r;
    }
    int r = checkout_publish(state, repo, draft, index, out, err);
    return r == -EBADMSG && index >= 0 ? checkout_publish(state, repo, draft, -1, out, err) : r;
}

int prepare_checkout(const struct workplace_request *q, const char *state,
        const struct repo *repo, const char *commit, struct checkout **out,
        struct carrel_error *err)
{
    AUTO(checkout_draft_free) struct checkout_draft *draft = NULL;
    struct checkout_owner owner;

    int r = checkout_find(state, repo, commit, out, err);
    if (r != -ENOENT)
        return r;
    runtime_identity(q->runtime, q->spec, &owner.uid, &owner.gid);
    r = checkout_fill(state, repo, commit, owner, q->options->progress,
            q->options->progress_context, &draft, err);
    if (r == 0)
        r = publish(q, state, repo, draft, out, err);
    if (r == -EEXIST) /* another process was faster */
        r = checkout_find(state, repo, commit, out, err);
    return r;
}

int prepare_again(const struct workplace_request *q, const char *state,
        const struct workspace *ws, struct carrel_error *err)
{
    AUTO(repo_free) struct repo *repo = NULL;
    AUTO(checkout_free) struct checkout *checkout = NULL;

    int r = workspace_repo(ws, &repo, err);
    return r < 0 ? r : prepare_checkout(q, state, repo, ws->base, &checkout, err);
}

/* The private git dir as one directory, where it cannot be an overlay. */
static int fill_private(const struct workplace *place, struct carrel_error *err)
{
    AUTO(fd_close)
    int private = openat(place->ws->dir, "gitupper", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    return private < 0 ? err_set_errno(err, -errno, "open '%s/gitupper'", place->ws->path)
                       : private_make_template(place->repo, private, err);
}

static int copy_index(const struct workplace *place, struct carrel_error *err)
{
    char from[PATH_MAX];
    AUTO(buf_finish) struct buf index = BUF_INIT(SIZE_MAX / 4);

    (void)snprintf(from, sizeof(from), "%s/index", place->checkout->git);
    int r = fd_add_file(AT_FDCWD, from, &index, err);
    if (r < 0)
        return r;
    AUTO(fd_close)
    int fd = openat(
            place->ws->dir, "gitupper/index", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    r = fd < 0 ? -errno : fd_write_all(fd, index.data, index.len);
    return r < 0 ? err_set_errno(err, r, "write '%s/gitupper/index'", place->ws->path) : 0;
}

/* A whole checkout by the user's own git: what there is without copy-on-write. */
static int check_out_whole(const struct workplace *place, struct carrel_error *err)
{
    static const char link[] = "gitdir: " PRIVATE_GIT_DIR "\n";
    const struct workspace *ws = place->ws;
    char tree[PATH_MAX];
    char index[PATH_MAX];
    struct git git = repo_git(place->repo);
    struct git_io io = GIT_IO_INIT;

    if (snprintf(tree, sizeof(tree), "%s/tree", ws->path) >= (int)sizeof(tree) ||
            snprintf(index, sizeof(index), "%s/gitupper/index", ws->path) >= (int)sizeof(index))
        return err_set_errno(err, -ENAMETOOLONG, "'%s'", ws->path);
    if (mkdirat(ws->dir, "tree", 0755) < 0)
        return err_set_errno(err, -errno, "create '%s'", tree);
    git.trust = GIT_AS_USER;
    git.work_tree = tree;
    git.index_file = index;
    int r = git_expect(&git, GIT_ARGS("read-tree", ws->base), &io, err);
    if (r == 0)
        r = git_expect(&git, GIT_ARGS("checkout-index", "-a", "-u", "-q"), &io, err);
    if (r < 0)
        return r;
    AUTO(fd_close)
    int fd = openat(ws->dir, "tree/.git", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    r = fd < 0 ? -errno : fd_write_all(fd, link, sizeof(link) - 1);
    return r < 0 ? err_set_errno(err, r, "create '%s/.git'", tree) : 0;
}

/* What the modes other than the kernel's overlay need before the first program. */
static int fill_fallback(const struct workplace *place, struct carrel_error *err)
{
    int r = fill_private(place, err);

    if (r == 0)
        r = place->ws->mode == WORKSPACE_FUSE ? copy_index(place, err)
                                              : check_out_whole(place, err);
    return r;
}

static bool has_include_file(const struct repo *repo)
{
    struct stat st;
    char path[PATH_MAX];

    return repo->top &&
           snprintf(path, sizeof(path), "%s/.worktreeinclude", repo->top) < (int)sizeof(path) &&
           lstat(path, &st) == 0;
}

/*
 * What was carried along is the user's, often a secret, and must not come back as a result: it
 * is excluded, in the run's git dir and in our own list beside it.
 */
static int exclude_carried(const struct workplace *place, const struct include_list *list,
        struct carrel_error *err)
{
    char path[PATH_MAX];
    AUTO(buf_finish) struct buf text = BUF_INIT(64U << 20);

    (void)snprintf(path, sizeof(path), "%s/info/exclude", place->checkout->git);
    int r = fd_add_file(AT_FDCWD, path, &text, err);
    if (r < 0)
        return r;
    for (size_t i = 0; i < list->n; i++) {
        buf_add_str(&text, "/");
        for (const char *c = list->paths[i]; *c; c++) {
            if (strchr("\\*?[ \t", *c)) /* else a pattern, or lost at the end of the line */
                buf_add_str(&text, "\\");
            buf_add(&text, c, 1);
        }
        buf_add_str(&text, "\n");
    }
    if (text.is_short)
        return err_set_errno(err, -ENOMEM, "excludes");
    if (mkdirat(place->ws->dir, "gitupper/info", 0755) < 0 && errno != EEXIST)
        return err_set_errno(err, -errno, "create '%s/gitupper/info'", place->ws->path);
    static const char *const names[] = { "exclude", "gitupper/info/exclude" };
    for (size_t i = 0; r == 0 && i < ARRAY_LEN(names); i++) {
        AUTO(fd_close)
        int fd = openat(
                place->ws->dir, names[i], O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
        r = fd < 0 ? -errno : fd_write_all(fd, text.data, text.len);
        if (r < 0)
            r = err_set_errno(err, r, "write '%s/%s'", place->ws->path, names[i]);
    }
    return r;
}

/* Files of the user's that git does not track, by name or not at all. */
static int carry_files(const struct workplace_request *q, struct workplace *place, int tree,
        struct carrel_error *err)
{
    struct include_list list = { 0 };

    if (!place->repo->top)
        return 0;
    int r = include_find(place->repo, q->options->include, &list, err);
    for (size_t i = 0; r == 0 && i < list.n; i++)
        if (strchr(list.paths[i], '\n'))
            r = err_set(
                    err, -EINVAL, "a file with a newline in its name cannot be carried along");
    if (r == 0 && list.n > 0)
        r = exclude_carried(place, &list, err);
    if (r == 0)
        r = include_copy(place->repo, &list, tree, q->spec->limits.value[LIMIT_DISK], err);
    include_list_finish(&list);
    return r;
}

int prepare_tree(
        const struct workplace_request *q, struct workplace *place, struct carrel_error *err)
{
    const struct workspace *ws = place->ws;
    const char *top = ws->mode == WORKSPACE_COPY ? "tree" : "upper";

    if (ws->is_folder && ws->mode != WORKSPACE_OVERLAY)
        return err_set(err, -ENOTSUP,
                "a copy-on-write folder needs overlayfs, which does not work here");
    int r = ws->mode == WORKSPACE_OVERLAY ? 0 : fill_fallback(place, err);
    if (r == 0 && ws->is_cut && !ws->is_folder)
        r = cut_make(place, err);
    if (r < 0)
        return r;
    AUTO(fd_close) int tree = openat(ws->dir, top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (tree < 0)
        return err_set_errno(err, -errno, "open '%s/%s'", ws->path, top);
    if (ws->is_folder) {
        /* The pristine tree has a .git for runs with git; here it must not be seen. */
        if (mknodat(tree, ".git", S_IFCHR, makedev(0, 0)) < 0)
            return err_set_errno(err, -errno, "hide .git in '%s/%s'", ws->path, top);
        return folder_make_empty(place->repo, ws->base, tree, err);
    }
    return q->options->include || has_include_file(place->repo)
                   ? carry_files(q, place, tree, err)
                   : 0;
}
