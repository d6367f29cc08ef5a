/*
 * folder.c - git add of a whole folder into a hidden index.
 *
 * One snapshot of a folder at a time: its maker has a claim in the store. An index.lock that it
 * finds is of a git that was killed.
 */
#include "workspace/source/folder.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/sha256.h"
#include "base/str.h"
#include "git/combine.h"
#include "git/name.h"
#include "workspace/source/folder_walk.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define FOLDER_REF "refs/heads/folder"
#define FOLDER_TREE "refs/heads/folder^{tree}"

/* Unset, not unspecified: a user's git without our other settings must not convert either. */
static const char attributes[] =
        "* -text !eol -crlf -filter -ident !working-tree-encoding !merge !diff\n";
static const char config[] =
        "[core]\n\trepositoryformatversion = 0\n\tbare = false\n"
        "\tfilemode = true\n\tsymlinks = true\n\tignorecase = false\n"
        "\tautocrlf = false\n\tsafecrlf = false\n\tlogallrefupdates = false\n"
        "[gc]\n\tauto = 0\n";

static int write_file(int dir, const char *name, const char *text)
{
    AUTO(fd_close) int fd = openat(dir, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    return fd < 0 ? -errno : fd_write_all(fd, text, strlen(text));
}

/* The configuration names the folder, so that every git that opens the repository finds it. */
static int write_config(int dir, const char *folder)
{
    AUTO(buf_finish) struct buf text = BUF_INIT((size_t)4 * PATH_MAX);

    buf_add_str(&text, config);
    buf_add_str(&text, "[core]\n\tworktree = \"");
    for (const char *at = folder; *at; at++) {
        if (*at == '"' || *at == '\\')
            buf_add_str(&text, "\\");
        if (*at == '\n')
            buf_add_str(&text, "\\n");
        else
            buf_add(&text, at, 1);
    }
    buf_add_str(&text, "\"\n");
    return text.is_short ? -ENOMEM : write_file(dir, "config", text.data);
}

/* Can be repeated; HEAD is written last and makes it a git dir. */
static int make_git_dir(int dir, const char *folder)
{
    static const char *const dirs[] = { "objects", "objects/info", "objects/pack", "refs",
        "refs/heads", "info", "empty" };

    if (faccessat(dir, "HEAD", F_OK, 0) == 0)
        return 0;
    for (size_t i = 0; i < ARRAY_LEN(dirs); i++)
        if (mkdirat(dir, dirs[i], 0700) < 0 && errno != EEXIST)
            return -errno;
    int r = write_file(dir, "info/attributes", attributes);
    if (r == 0)
        r = write_config(dir, folder);
    if (r == 0)
        r = write_file(dir, "HEAD", "ref: " FOLDER_REF "\n");
    return r;
}

/*
 * "<name>-<32 hex digits>/.git": the hash tells folders apart, the name is for people. It ends
 * in ".git" because a bare repository below some work tree (a home directory may be one) looks
 * like a trap, and is refused.
 */
static int hidden_path(const char *state, const char *dir, char path[static PATH_MAX])
{
    char hex[SHA256_HEX];
    char name[41];
    const char *last = strrchr(dir, '/') + 1;
    size_t n = 0;

    sha256_hex(dir, strlen(dir), hex);
    for (; last[n] && n < sizeof(name) - 1; n++) {
        char c = last[n];
        bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                        (c >= '0' && c <= '9') || c == '-';
        name[n] = c;
        if (!is_plain)
            name[n] = '_';
    }
    name[n] = '\0';
    return (size_t)snprintf(path, PATH_MAX, "%s/folders/%s-%.32s/.git", state, name, hex) <
                           PATH_MAX
                   ? 0
                   : -ENAMETOOLONG;
}

static int make_dirs(const char *state, const char *path)
{
    char above[PATH_MAX];

    (void)snprintf(above, sizeof(above), "%s", path);
    for (char *slash = above + strlen(state); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        if (mkdir(above, 0700) < 0 && errno != EEXIST)
            return -errno;
        *slash = '/';
    }
    return mkdir(path, 0700) < 0 && errno != EEXIST ? -errno : 0;
}

/* -ESTALE: a sweep took it away while we waited, as nobody had used it for long. */
static int open_locked(const char *path, struct carrel_error *err)
{
    struct stat by_name;
    struct stat by_fd;

    AUTO(fd_close) int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT)
        return -ESTALE;
    if (fd < 0)
        return err_set_errno(err, -errno, "open '%s'", path);
    while (flock(fd, LOCK_EX) < 0)
        if (errno != EINTR)
            return err_set_errno(err, -errno, "lock '%s'", path);
    if (lstat(path, &by_name) < 0 || fstat(fd, &by_fd) < 0 || by_name.st_ino != by_fd.st_ino)
        return -ESTALE;
    (void)futimens(fd, NULL); /* its last use, see cached.h; it is ours: this does not fail */
    return fd_steal(&fd);
}

/* Opens and locks the hidden git dir. Another snapshot of the same folder is waited for. */
static int hold(
        const char *state, const char *path, const char *folder, struct carrel_error *err)
{
    AUTO(fd_close) int fd = -ESTALE;
    int r;

    for (int tries = 0; fd == -ESTALE; tries++) {
        r = make_dirs(state, path);
        if (r < 0 && r != -ENOENT)
            return err_set_errno(err, r, "make '%s'", path);
        if (tries == 10)
            return err_set(err, -EAGAIN, "'%s' is removed again and again", path);
        fd = open_locked(path, err);
    }
    if (fd < 0)
        return fd;
    r = make_git_dir(fd, folder);
    if (r < 0)
        return err_set_errno(err, r, "fill '%s'", path);
    (void)unlinkat(fd, "index.lock", 0); /* of a git that was killed: we hold the lock */
    return fd_steal(&fd);
}

/* Whether the last snapshot has this tree already. */
static bool has_tree(const struct git *git, const char *tree, char commit[static OID_MAX])
{
    char last[OID_MAX];
    char its_tree[OID_MAX];

    if (combine_ask_oid(git, GIT_ARGS("rev-parse", "-q", "--verify", FOLDER_REF), last, NULL) <
                    0 ||
            combine_ask_oid(git, GIT_ARGS("rev-parse", "-q", "--verify", FOLDER_TREE), its_tree,
                    NULL) < 0)
        return false;
    memcpy(commit, last, OID_MAX);
    return strcmp(its_tree, tree) == 0;
}

static int commit_tree(const struct git *git, const char *tree, char commit[static OID_MAX],
        struct carrel_error *err)
{
    static const char message[] = "Snapshot of a folder\n";
    struct git_io io = GIT_IO_INIT;
    char parent[OID_MAX] = "";
    char ident[64];

    if (has_tree(git, tree, parent)) {
        memcpy(commit, parent, OID_MAX);
        return 0;
    }
    (void)snprintf(ident, sizeof(ident), "carrel <carrel@localhost> %lld +0000",
            (long long)time(NULL));
    const struct combine_commit made = { .tree = tree,
        .parents = { parent[0] ? parent : NULL },
        .author = ident,
        .committer = ident,
        .message = message,
        .message_len = strlen(message) };
    int r = combine_write(git, &made, commit, err);
    if (r == 0)
        r = git_expect(git, GIT_ARGS("update-ref", FOLDER_REF, commit), &io, err);
    return r;
}

static int write_empty(
        const char *path, const char *commit, const struct buf *empty, struct carrel_error *err)
{
    char file[PATH_MAX];

    if ((size_t)snprintf(file, sizeof(file), "%s/empty/%s", path, commit) >= sizeof(file))
        return err_set_errno(err, -ENAMETOOLONG, "write in '%s'", path);
    return fd_replace_file(file, empty->data ? empty->data : "", empty->len, 0600, err);
}

static int take(const char *path, const char *dir, char commit[static OID_MAX],
        struct carrel_error *err)
{
    const struct git git = { .git_dir = path, .work_tree = dir, .trust = GIT_SCRUBBED };
    AUTO(buf_finish) struct buf empty = BUF_INIT(FOLDER_WALK_MAX_BYTES);
    struct git_io io = GIT_IO_INIT;
    char tree[OID_MAX];

    int r = folder_walk(dir, &empty, err);
    if (r == 0)
        r = git_expect(&git, GIT_ARGS("add", "--all", "--force", "--", "."), &io, err);
    if (r == 0)
        r = combine_ask_oid(&git, GIT_ARGS("write-tree"), tree, err);
    if (r == 0)
        r = commit_tree(&git, tree, commit, err);
    if (r == 0)
        r = write_empty(path, commit, &empty, err);
    return r;
}

static int open_hidden(
        const char *path, const char *dir, struct repo **out, struct carrel_error *err)
{
    AUTO(repo_free) struct repo *repo = NULL;
    int r = repo_open(path, &repo, err);
    if (r < 0)
        return r;
    if (!repo->top || strcmp(repo->top, dir) != 0)
        return err_set(err, -EBADMSG, "'%s' belongs to another folder: remove it", path);
    *out = ptr_steal(&repo);
    return 0;
}

/*
 * The folder's canonical path, from a descriptor: its key must not depend on how it was named.
 */
static int canonical(const char *dir, char path[static PATH_MAX], struct carrel_error *err)
{
    char link[64];
    AUTO(fd_close) int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return err_set_errno(err, -errno, "open the folder '%s'", dir);

    (void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    ssize_t len = readlink(link, path, PATH_MAX - 1);
    if (len < 0)
        return err_set_errno(err, -errno, "find the path of '%s'", dir);
    path[len] = '\0';
    if (!path_is_clean(path) || !path[1])
        return err_set(err, -EINVAL, "'%s' cannot be used as a folder", dir);
    return 0;
}

int folder_snapshot(const char *state, const char *dir, struct repo **hidden,
        char commit[static OID_MAX], struct carrel_error *err)
{
    char folder[PATH_MAX];
    char path[PATH_MAX];
    char made[OID_MAX];

    int r = canonical(dir, folder, err);
    if (r < 0)
        return r;
    if (hidden_path(state, folder, path) < 0)
        return err_set_errno(err, -ENAMETOOLONG, "make a place for a snapshot of '%s'", folder);
    if (path_is_below(path, folder))
        return err_set(err, -EINVAL, "'%s' holds carrel's own state: choose a folder inside it",
                folder);
    AUTO(fd_close) int lock = hold(state, path, folder, err);
    if (lock < 0)
        return lock;
    AUTO(repo_free) struct repo *repo = NULL;
    r = take(path, folder, made, err);
    if (r == 0)
        r = open_hidden(path, folder, &repo, err);
    if (r < 0)
        return err_wrap(err, r, "take a snapshot of the folder '%s'", folder);
    memcpy(commit, made, OID_MAX);
    *hidden = ptr_steal(&repo);
    return 0;
}

int folder_make_empty(
        const struct repo *hidden, const char *commit, int tree, struct carrel_error *err)
{
    char path[PATH_MAX];

    if (!name_is_oid(commit) || (size_t)snprintf(path, sizeof(path), "%s/empty/%s",
                                        hidden->git_dir, commit) >= sizeof(path))
        return err_set(err, -EINVAL, "'%s' is not a snapshot of a folder", commit);
    return folder_walk_make(path, tree, err);
}
