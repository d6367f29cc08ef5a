/* repo.c - finds a repository as git does, without git. */
#include "git/repo.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/str.h"
#include "git/gitdir.h"
#include "git/name.h"
#include "git/redirect.h"
#include "git/ref.h"
#include "git/repo_format.h"
#include "git/scope.h"
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define CONFIG_MAX ((size_t)8 << 20)
#define KEY_NAME_MAX 40

void repo_free(struct repo *repo)
{
    if (!repo)
        return;
    free(repo->top);
    free(repo->git_dir);
    free(repo->common_dir);
    free(repo->key);
    free(repo->filters);
    scope_free_settings(repo->settings);
    alternates_free(repo->objects, repo->object_fds);
    free(repo);
}

struct git repo_git(const struct repo *repo)
{
    return (struct git){ .git_dir = repo->common_dir, .trust = GIT_SCRUBBED };
}

struct git repo_user_git(const struct repo *repo)
{
    return (struct git){ .git_dir = repo->common_dir,
        .trust = GIT_AS_USER,
        .may_fetch = repo->may_fetch,
        .settings = (const char *const *)repo->settings };
}

static int out_of_memory(struct carrel_error *err)
{
    return err_set_errno(err, -ENOMEM, "open a repository");
}

static int use_git_dir(struct repo *repo, int git_dir, int common, struct carrel_error *err)
{
    int r = gitdir_check(git_dir, err);

    if (r == 0)
        r = gitdir_check(common, err);
    if (r == 0)
        r = redirect_check_common(git_dir, common, err);
    if (r == 0)
        r = gitdir_path(git_dir, &repo->git_dir, err);
    return r < 0 ? r : gitdir_path(common, &repo->common_dir, err);
}

/* `.git` is a file: "gitdir: <path>", relative to its directory. */
static int follow_git_file(struct repo *repo, int dir, struct carrel_error *err)
{
    AUTO(fd_close) int common = -1;
    char line[PATH_MAX], shown[256];
    int r = gitdir_load_path(dir, ".git", line);

    if (r < 0 || strncmp(line, "gitdir: ", 8) != 0)
        return err_set(err, -EBADMSG,
                "the file '.git' in '%s' does not say where the git dir is", repo->top);
    (void)str_escape(line + 8, strlen(line + 8), shown, sizeof(shown));
    AUTO(fd_close) int git_dir = gitdir_open(dir, line + 8);
    if (git_dir < 0)
        return err_set_errno(
                err, git_dir, "open '%s', which '.git' in '%s' names", shown, repo->top);
    if (!gitdir_is_one(git_dir, &common))
        return err_set(err, -ENOENT, "'%s', which '.git' in '%s' names, is not a git dir",
                shown, repo->top);
    return use_git_dir(repo, git_dir, common, err);
}

/*
 * What `.git` is: S_IFDIR, S_IFREG, or 0 if there is none. One that may have been tampered with
 * is not passed over: the search would go on to another repository.
 */
static int kind_of_dot_git(int dir, mode_t *kind, struct carrel_error *err)
{
    AUTO(free) char *place = NULL;
    struct stat st;

    *kind = 0;
    if (fstatat(dir, ".git", &st, AT_SYMLINK_NOFOLLOW) < 0)
        return 0;
    *kind = st.st_mode & S_IFMT;
    if (S_ISREG(st.st_mode))
        return 0;
    if (S_ISDIR(st.st_mode)) {
        AUTO(fd_close) int git_dir = gitdir_open(dir, ".git");
        bool has_head = git_dir >= 0 && fstatat(git_dir, "HEAD", &st, AT_SYMLINK_NOFOLLOW) == 0;
        return has_head ? gitdir_check(git_dir, err) : 0;
    }
    int r = gitdir_path(dir, &place, err);
    if (r < 0)
        return r;
    return err_set(err, S_ISLNK(st.st_mode) ? -ELOOP : -EINVAL,
            "'%s/.git' is %s; carrel does not follow it, since an earlier program may have "
            "made it%s",
            place, S_ISLNK(st.st_mode) ? "a link" : "neither a directory nor a file",
            S_ISLNK(st.st_mode) ? ": name the repository it leads to" : "");
}

/* Looks for a repository in this one directory. 1: found, 0: not here. */
static int look_here(struct repo *repo, int dir, struct carrel_error *err)
{
    AUTO(fd_close) int common = -1;
    mode_t kind;
    int r = kind_of_dot_git(dir, &kind, err);

    if (r < 0)
        return r;
    if (S_ISREG(kind)) {
        r = gitdir_path(dir, &repo->top, err);
        if (r == 0)
            r = follow_git_file(repo, dir, err);
        return r < 0 ? r : 1;
    }

    AUTO(fd_close) int git_dir = S_ISDIR(kind) ? gitdir_open(dir, ".git") : -ENOENT;
    if (git_dir >= 0 && gitdir_is_one(git_dir, &common)) {
        r = gitdir_path(dir, &repo->top, err);
        if (r == 0)
            r = use_git_dir(repo, git_dir, common, err);
        return r < 0 ? r : 1;
    }
    if (gitdir_is_one(dir, &common)) {
        r = use_git_dir(repo, dir, common, err);
        return r < 0 ? r : 1;
    }
    return 0;
}

/* Searches upward from `dir`, within one file system, as git does. 1: found, 0: none. */
static int look_upward(struct repo *repo, int dir, struct carrel_error *err)
{
    AUTO(fd_close) int at = gitdir_open(dir, ".");
    struct stat here, above;

    if (at < 0 || fstat(at, &here) < 0)
        return err_set_errno(err, at < 0 ? at : -errno, "look for a repository");
    for (;;) {
        int r = look_here(repo, at, err);
        if (r != 0)
            return r;
        int up = gitdir_open(at, "..");
        if (up < 0)
            return 0;
        fd_close(at);
        at = up;
        if (fstat(at, &above) < 0 || above.st_dev != here.st_dev || above.st_ino == here.st_ino)
            return 0;
        here = above;
    }
}

static bool is_named_dot_git(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash && strcmp(slash, "/.git") == 0;
}

/* git's list of repositories that the user trusts regardless of their owner. */
static bool is_declared_safe(const char *path)
{
    AUTO(buf_finish) struct buf list = BUF_INIT((size_t)1 << 20);
    struct git_io io = GIT_IO_INIT;
    /* Without this repository's configuration: it must not declare itself safe. */
    const struct git git = { .git_dir = "/dev/null/none", .trust = GIT_AS_USER };
    bool is_safe = false;

    io.output = &list;
    io.timeout_ms = 10000;
    if (git_run(&git, GIT_ARGS("config", "--type=path", "-z", "--get-all", "safe.directory"),
                &io, NULL) != 0)
        return false;
    for (size_t at = 0; at < list.len; at += strlen(list.data + at) + 1) {
        const char *entry = list.data + at;
        size_t len = strlen(entry);
        if (len == 0)
            is_safe = false; /* resets the list so far */
        else if (strcmp(entry, "*") == 0 || strcmp(entry, path) == 0 ||
                 (len > 2 && strcmp(entry + len - 2, "/*") == 0 &&
                         strncmp(entry, path, len - 1) == 0))
            is_safe = true;
    }
    return is_safe;
}

static bool is_ours(const char *path)
{
    const char *sudo = geteuid() == 0 ? getenv("SUDO_UID") : NULL;
    uint64_t caller;
    struct stat st;

    if (lstat(path, &st) < 0)
        return false;
    if (st.st_uid == geteuid())
        return true;
    return sudo && str_parse_u64(sudo, &caller) == 0 && st.st_uid == caller;
}

static int check_owner(const struct repo *repo, struct carrel_error *err)
{
    const char *place = repo->top ? repo->top : repo->git_dir;
    char dot_git[PATH_MAX + 8];

    (void)snprintf(dot_git, sizeof(dot_git), "%s/.git", place);
    if (is_ours(place) && is_ours(repo->git_dir) && is_ours(repo->common_dir) &&
            (!repo->top || faccessat(AT_FDCWD, dot_git, F_OK, 0) < 0 || is_ours(dot_git)))
        return 0;
    if (is_declared_safe(place))
        return 0;
    return err_set(err, -EPERM,
            "the repository '%s' belongs to another user. If you trust it: "
            "git config --global --add safe.directory '%s'",
            place, place);
}

/* A bare repository inside a work tree may have been checked out with its content. */
static int check_not_embedded(const struct repo *repo, int dir, struct carrel_error *err)
{
    AUTO(repo_free) struct repo *outer = NULL;

    if (is_named_dot_git(repo->git_dir))
        return 0;
    outer = calloc(1, sizeof(*outer));
    AUTO(fd_close) int up = gitdir_open(dir, "..");
    if (!outer || up < 0)
        return out_of_memory(err);
    int r = look_upward(outer, up, err);
    if (r >= 0 && (r == 0 || !outer->top || !outer->common_dir ||
                          strcmp(outer->common_dir, repo->common_dir) == 0 ||
                          path_is_below(repo->git_dir, outer->common_dir)))
        return 0;
    if (is_declared_safe(repo->git_dir))
        return 0;
    if (r < 0) /* one that is not right must not hide that there is one */
        return err_wrap(err, r, "look around '%s'", repo->git_dir);
    return err_set(err, -EPERM,
            "'%s' is a bare repository inside the work tree '%s' and may have come with its "
            "content. If you trust it: git config --global --add safe.directory '%s'",
            repo->git_dir, outer->top, repo->git_dir);
}

/* What a work tree has of its own. */
static int read_own_format(
        int dir, const char *path, struct repo_format *format, struct carrel_error *err)
{
    AUTO(buf_finish) struct buf text = { 0 };
    char name[PATH_MAX + 32];

    (void)snprintf(name, sizeof(name), "%s/config.worktree", path);
    int r = gitdir_load(dir, "config.worktree", CONFIG_MAX, &text);
    if (r == -ENOENT)
        return 0;
    if (r < 0)
        return err_set_errno(err, r, "read '%s'", name);
    return repo_format_parse(format, text.data ? text.data : "", text.len, name, err);
}

/* Of the main work tree only what it may name: carrel calls git with that git dir, too. */
static int note_main_format(
        struct repo *repo, int common, struct repo_format *format, struct carrel_error *err)
{
    AUTO(repo_format_finish) struct repo_format main = REPO_FORMAT_INIT;

    int r = read_own_format(common, repo->common_dir, &main, err);
    format->may_name_commands |= main.may_name_commands;
    format->may_name_transport |= main.may_name_transport;
    return r;
}

static int read_format(struct repo *repo, int git_dir, int common, struct repo_format *format,
        struct carrel_error *err)
{
    AUTO(buf_finish) struct buf text = { 0 };
    char name[PATH_MAX + 32];
    int r;

    (void)snprintf(name, sizeof(name), "%s/config", repo->common_dir);
    r = gitdir_load(common, "config", CONFIG_MAX, &text);
    if (r == -ENOENT)
        return 0;
    if (r < 0)
        return err_set_errno(err, r, "read '%s'", name);
    r = repo_format_parse(format, text.data ? text.data : "", text.len, name, err);
    if (r < 0 || !format->has_worktree_config)
        return r;

    r = read_own_format(git_dir, repo->git_dir, format, err);
    if (r == 0 && strcmp(repo->git_dir, repo->common_dir) != 0)
        r = note_main_format(repo, common, format, err);
    return r;
}

/* Not cryptographic: every path is the user's own, so only accidental collisions matter. */
static uint64_t hash_of(const char *text)
{
    uint64_t hash = UINT64_C(14695981039346656037); /* FNV-1a */

    for (; *text; text++)
        hash = (hash ^ (unsigned char)*text) * UINT64_C(1099511628211);
    hash ^= hash >> 32; /* else its last bytes affect only the upper half */
    hash *= UINT64_C(0xd6e8feb86659fd93);
    return hash ^ hash >> 32;
}

/* "<name>-<hash>": the name is for people who look into the state directory. */
static int make_key(struct repo *repo, struct carrel_error *err)
{
    char path[PATH_MAX], name[KEY_NAME_MAX + 1];
    size_t len = 0;

    (void)snprintf(path, sizeof(path), "%s", repo->common_dir);
    if (is_named_dot_git(path))
        *strrchr(path, '/') = '\0';
    const char *slash = strrchr(path, '/');
    const char *from = slash ? slash + 1 : "root";
    size_t from_len = strlen(from);
    if (from_len > 4 && strcmp(from + from_len - 4, ".git") == 0)
        from_len -= 4;
    for (size_t i = 0; i < from_len && len < KEY_NAME_MAX; i++) {
        char c = from[i];
        bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                        (c >= '0' && c <= '9') || c == '_' || c == '-' || (c == '.' && i > 0);
        name[len++] = is_plain ? c : '_';
    }
    name[len] = '\0';
    if (asprintf(&repo->key, "%s-%016" PRIx64, name, hash_of(repo->common_dir)) < 0) {
        repo->key = NULL;
        return out_of_memory(err);
    }
    return 0;
}

/* Asks git only if there may be something to find: that would cost each start a process. */
static int guard(struct repo *repo, const struct repo_format *format, struct carrel_error *err)
{
    AUTO(scope_guard_finish) struct scope_guard found = { 0 };
    const struct git git = { .git_dir = repo->git_dir, .trust = GIT_AS_USER };

    repo->may_fetch = repo->is_partial;
    if (!format->may_name_commands && !(repo->is_partial && format->may_name_transport))
        return 0;
    int r = scope_guard(&git, repo->common_dir, &found, err);
    if (r < 0)
        return r;
    repo->may_fetch = repo->is_partial && !found.has_transport;
    repo->settings = ptr_steal(&found.settings);
    repo->filters = ptr_steal(&found.filters);
    return 0;
}

/* Everything that follows from git_dir and common_dir. */
static int examine(struct repo *repo, struct carrel_error *err)
{
    AUTO(repo_format_finish) struct repo_format format = REPO_FORMAT_INIT;
    AUTO(fd_close) int git_dir = gitdir_open(AT_FDCWD, repo->git_dir);
    AUTO(fd_close) int common = gitdir_open(AT_FDCWD, repo->common_dir);
    int r;

    assert(repo->git_dir && repo->common_dir);
    if (git_dir < 0 || common < 0)
        return err_set_errno(err, git_dir < 0 ? git_dir : common, "open '%s'", repo->git_dir);
    if (!repo->top) {
        r = check_not_embedded(repo, git_dir, err);
        if (r < 0)
            return r;
    }
    r = read_format(repo, git_dir, common, &format, err);
    if (r == 0)
        r = redirect_settle_top(repo, git_dir, &format, err);
    if (r == 0)
        r = check_owner(repo, err);
    if (r == 0)
        r = make_key(repo, err);
    if (r < 0)
        return r;

    repo->has_file_refs = format.has_file_refs;
    repo->is_sha256 = format.is_sha256;
    repo->is_partial = format.is_partial;
    r = guard(repo, &format, err);
    return r < 0 ? r : alternates_list(common, &repo->objects, &repo->object_fds, err);
}

int repo_open_at(int dir, const char *name, struct repo **out, struct carrel_error *err)
{
    AUTO(repo_free) struct repo *repo = calloc(1, sizeof(*repo));
    int r;

    if (!repo)
        return out_of_memory(err);
    r = look_upward(repo, dir, err);
    if (r < 0)
        return r;
    if (r == 0)
        return err_set(err, -ENOENT,
                "'%s' is not in a git repository. For a folder without git use "
                "--workdir DIR --cow",
                name);
    r = examine(repo, err);
    if (r < 0)
        return r;
    *out = ptr_steal(&repo);
    return 0;
}

int repo_open(const char *dir, struct repo **out, struct carrel_error *err)
{
    AUTO(fd_close) int at = gitdir_open(AT_FDCWD, dir);

    return at < 0 ? err_set_errno(err, at, "open '%s'", dir) : repo_open_at(at, dir, out, err);
}

#define REV_MAX 512
#define GIT_TIMEOUT_MS 60000
#define LOOK_TIMEOUT_MS 10000 /* for one object */

static int check_rev(const char *rev, struct carrel_error *err)
{
    size_t len = strlen(rev);
    char shown[128];

    (void)str_escape(rev, len, shown, sizeof(shown));
    if (len == 0 || len > REV_MAX || rev[0] == '-')
        return err_set(err, -EINVAL, "'%s' is not the name of a commit", shown);
    for (size_t i = 0; i < len; i++)
        if ((unsigned char)rev[i] < ' ' || rev[i] == 0x7f)
            return err_set(err, -EINVAL, "'%s' has control characters and cannot name a commit",
                    shown);
    return 0;
}

static bool exists(const struct repo *repo, const char *before, const char *rev)
{
    char name[REF_NAME_MAX + 1], oid[OID_MAX];

    (void)snprintf(name, sizeof(name), "%s%s", before, rev);
    return ref_is_name(name) && ref_read(repo, name, oid, NULL) != -ENOENT;
}

/*
 * A branch by its short name. git looks in other places first (gitrevisions(7)); if anything
 * else has that name, or the name could be a special file in the git dir, git decides.
 */
static int read_branch(const struct repo *repo, const char *rev, char oid[static OID_MAX])
{
    char name[REF_NAME_MAX + 1];

    if (!repo->has_file_refs) /* three calls of git would be slower than one */
        return -ENOENT;
    if (strspn(rev, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_") == strlen(rev) || strcmp(rev, "@") == 0 ||
            strcmp(rev, "config") == 0 || exists(repo, "refs/", rev) ||
            exists(repo, "refs/tags/", rev))
        return -ENOENT;
    (void)snprintf(name, sizeof(name), "refs/heads/%s", rev);
    return ref_is_name(name) ? ref_read(repo, name, oid, NULL) : -ENOENT;
}

static int ask_git(const struct repo *repo, const char *rev, char oid[static OID_MAX],
        struct carrel_error *err)
{
    AUTO(buf_finish) struct buf output = BUF_INIT(256);
    struct git git = repo_git(repo);
    struct git_io io = GIT_IO_INIT;
    char commit[REV_MAX + 16], shown[128];

    git.git_dir = repo->git_dir; /* HEAD and its reflog are per work tree */
    io.output = &output;
    io.timeout_ms = GIT_TIMEOUT_MS;
    /* ":/text" is a commit already, and treats all that follows as text. */
    (void)snprintf(
            commit, sizeof(commit), "%s%s", rev, strncmp(rev, ":/", 2) == 0 ? "" : "^{commit}");
    int r = git_run(
            &git, GIT_ARGS("rev-parse", "--verify", "--end-of-options", commit), &io, err);
    if (r < 0)
        return r;
    if (r > 0)
        return err_set(err, -ENOENT, "'%s' is not a commit of the repository '%s'",
                str_escape(rev, strlen(rev), shown, sizeof(shown)),
                repo->top ? repo->top : repo->git_dir);
    if (output.len > 0 && output.data[output.len - 1] == '\n')
        output.data[--output.len] = '\0';
    if (!output.data || !name_is_oid(output.data))
        return err_set(err, -EIO, "git rev-parse gave no object id");
    (void)snprintf(oid, OID_MAX, "%s", output.data);
    return 0;
}

int repo_resolve(const struct repo *repo, const char *rev, char oid[static OID_MAX],
        struct carrel_error *err)
{
    int r;

    if (!rev || strcmp(rev, "HEAD") == 0) {
        r = ref_read(repo, "HEAD", oid, err);
        if (r == -ENOENT)
            return err_set(err, r, "the repository '%s' has no commit yet: make a first one",
                    repo->top ? repo->top : repo->git_dir);
        return r;
    }
    r = check_rev(rev, err);
    if (r < 0)
        return r;
    if (name_is_oid(rev) && strlen(rev) == (repo->is_sha256 ? 64 : 40)) {
        (void)snprintf(oid, OID_MAX, "%s", rev);
        return 0;
    }
    if (strncmp(rev, "refs/heads/", 11) == 0 && ref_is_name(rev) && repo->has_file_refs &&
            ref_read(repo, rev, oid, NULL) == 0)
        return 0;
    if (read_branch(repo, rev, oid) == 0)
        return 0;
    return ask_git(repo, rev, oid, err);
}

int repo_has_commit(const struct repo *repo, const char *oid, struct carrel_error *err)
{
    const struct git git = repo_git(repo);
    struct git_io io = GIT_IO_INIT;
    char commit[OID_MAX + 16];

    io.timeout_ms = LOOK_TIMEOUT_MS;
    (void)snprintf(commit, sizeof(commit), "%s^{commit}", oid);
    int r = git_run(&git, GIT_ARGS("cat-file", "-e", commit), &io, err);
    return r < 0 ? r : r == 0;
}
