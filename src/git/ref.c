/*
 * ref.c - one reference: read here, changed by git.
 *
 * A reference is the file <name> or, if that is not there, a line of packed-refs.
 * `git pack-refs` first puts a value into packed-refs and then removes the file. So the file is
 * always looked at before packed-refs: in the other order a reference could be missed while it
 * moves from one to the other.
 */
#include "git/ref.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "git/format/packed.h"
#include "git/gitdir.h"
#include "git/name.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#define CONTAINS_MAX 65536
#define CONTAINS_TIMEOUT_MS 120000
#define SYMREF_DEPTH 5       /* as git */
#define GIT_TIMEOUT_MS 60000 /* for git itself, which waits for locks too */

/*
 * git-check-ref-format(1). The name becomes a path, so this is also what keeps it below the
 * git dir.
 */
bool ref_is_name(const char *name)
{
    size_t len = strlen(name);

    if (strcmp(name, "HEAD") == 0)
        return true;
    if (strncmp(name, "refs/", 5) != 0 || len > REF_NAME_MAX || name[len - 1] == '.' ||
            strstr(name, "..") || strstr(name, "@{"))
        return false;
    for (const char *part = name; part; part = strchr(part, '/')) {
        part += *part == '/';
        size_t part_len = strcspn(part, "/");
        if (part_len == 0 || part_len > NAME_MAX - 5 || part[0] == '.')
            return false;
        if (part_len >= 5 && memcmp(part + part_len - 5, ".lock", 5) == 0)
            return false;
        for (size_t i = 0; i < part_len; i++)
            if ((unsigned char)part[i] <= ' ' || strchr("\x7f~^:?*[\\", part[i]))
                return false;
    }
    return true;
}

static int check_name(const char *name, struct carrel_error *err)
{
    return ref_is_name(name) ? 0 : err_set(err, -EINVAL, "this is not the name of a reference");
}

static size_t oid_len(const struct repo *repo)
{
    return repo->is_sha256 ? 64 : 40;
}

static bool is_oid(const struct repo *repo, const char *text)
{
    return name_is_oid(text) && strlen(text) == oid_len(repo);
}

/* A few references belong to each work tree, the others to all of them. */
static const char *home_of(const struct repo *repo, const char *name)
{
    static const char *const own[] = { "refs/bisect/", "refs/worktree/", "refs/rewritten/" };

    if (strncmp(name, "refs/", 5) != 0)
        return repo->git_dir;
    for (size_t i = 0; i < ARRAY_LEN(own); i++)
        if (strncmp(name, own[i], strlen(own[i])) == 0)
            return repo->git_dir;
    return repo->common_dir;
}

/*
 * Reads the file of a reference. Returns 0 with `oid`, 1 with the name that a symbolic one
 * points to in `target`, -ENOENT: there is no such file (it may be packed).
 */
static int read_loose(const struct repo *repo, const char *name, char oid[static OID_MAX],
        char target[static REF_NAME_MAX + 1], struct carrel_error *err)
{
    char path[PATH_MAX + REF_NAME_MAX + 2], text[REF_NAME_MAX + 64];

    (void)snprintf(path, sizeof(path), "%s/%s", home_of(repo, name), name);
    AUTO(fd_close) int fd = gitdir_open_file_in(home_of(repo, name), name);
    ssize_t n = fd < 0 ? fd : fd_read_all(fd, text, sizeof(text) - 1);
    if (n == -ENOENT || n == -ENOTDIR || n == -EISDIR)
        return -ENOENT;
    if (n < 0)
        return err_set_errno(err, (int)n, "read '%s'", path);

    text[n] = '\0';
    while (n > 0 && (text[n - 1] == '\n' || text[n - 1] == ' '))
        text[--n] = '\0';
    if (strncmp(text, "ref:", 4) == 0) {
        const char *to = text + 4 + strspn(text + 4, " \t");
        if (ref_is_name(to)) {
            (void)snprintf(target, REF_NAME_MAX + 1, "%.*s", REF_NAME_MAX, to);
            return 1;
        }
    } else if (strlen(text) > oid_len(repo) && text[oid_len(repo)] == '\t') {
        text[oid_len(repo)] = '\0'; /* FETCH_HEAD and the like say more */
    }
    if (!is_oid(repo, text))
        return err_set(err, -EBADMSG, "'%s' is damaged; try: git fsck", path);
    memcpy(oid, text, oid_len(repo) + 1);
    return 0;
}

static int read_packed(const struct repo *repo, const struct packed *packed, const char *name,
        char oid[static OID_MAX], struct carrel_error *err)
{
    size_t len = strlen(name);
    struct packed_ref ref;

    if (!packed_read(packed, packed_find(packed, name, len), &ref) || ref.name_len != len ||
            memcmp(ref.name, name, len) != 0)
        return -ENOENT;
    if (ref.oid_len == oid_len(repo))
        (void)snprintf(oid, OID_MAX, "%.*s", (int)ref.oid_len, ref.oid);
    if (ref.oid_len != oid_len(repo) || !is_oid(repo, oid))
        return err_set(
                err, -EBADMSG, "'%s/packed-refs' is damaged; try: git fsck", repo->common_dir);
    return 0;
}

static int no_such(const char *name, struct carrel_error *err)
{
    return err_set(err, -ENOENT, "there is no reference '%s'", name);
}

/* References that are not files: only git knows. */
static int read_by_git(const struct repo *repo, const char *name, char oid[static OID_MAX],
        struct carrel_error *err)
{
    AUTO(buf_finish) struct buf output = BUF_INIT(256);
    struct git git = repo_git(repo);
    struct git_io io = GIT_IO_INIT;

    git.git_dir = repo->git_dir; /* HEAD is each work tree's own */
    io.output = &output;
    io.timeout_ms = GIT_TIMEOUT_MS;
    int r = git_run(
            &git, GIT_ARGS("rev-parse", "-q", "--verify", "--end-of-options", name), &io, err);
    if (r < 0)
        return r;
    if (r == 1)
        return no_such(name, err);
    if (r > 0 || output.len < oid_len(repo))
        return -EIO;
    (void)snprintf(oid, OID_MAX, "%.*s", (int)oid_len(repo), output.data);
    return is_oid(repo, oid) ? 0 : err_set(err, -EIO, "git rev-parse gave no object id");
}

/* One step: the value, or where a symbolic reference points to. */
static int read_once(const struct repo *repo, const char *name, char oid[static OID_MAX],
        char target[static REF_NAME_MAX + 1], struct carrel_error *err)
{
    int r = read_loose(repo, name, oid, target, err);

    if (r != -ENOENT || strncmp(name, "refs/", 5) != 0)
        return r;
    AUTO(packed_close) struct packed packed = { 0 };
    r = packed_open(repo->common_dir, &packed, err);
    return r < 0 ? r : read_packed(repo, &packed, name, oid, err);
}

int ref_read(const struct repo *repo, const char *name, char oid[static OID_MAX],
        struct carrel_error *err)
{
    char found[OID_MAX], target[REF_NAME_MAX + 1];
    char at[REF_NAME_MAX + 1];
    int r = check_name(name, err);

    if (r < 0)
        return r;
    if (!repo->has_file_refs)
        return read_by_git(repo, name, oid, err);
    (void)snprintf(at, sizeof(at), "%s", name);
    for (int depth = 0; depth <= SYMREF_DEPTH; depth++) {
        r = read_once(repo, at, found, target, err);
        if (r == -ENOENT)
            return no_such(at, err);
        if (r < 0)
            return r;
        if (r == 0) {
            memcpy(oid, found, OID_MAX);
            return 0;
        }
        memcpy(at, target, sizeof(at));
    }
    return err_set(err, -ELOOP, "the reference '%s' points to itself", name);
}

static int check_oid(const struct repo *repo, const char *oid, struct carrel_error *err)
{
    return is_oid(repo, oid)
                   ? 0
                   : err_set(err, -EINVAL, "this is not an object id of the repository");
}

/* Git would follow a link here; what is no link and no file is git's own error. */
static int check_file(const char *home, const char *name, struct carrel_error *err)
{
    AUTO(fd_close) int fd = gitdir_open_file_in(home, name);

    if (fd == -ELOOP)
        return err_set(err, fd,
                "'%s/%s' is or passes a link, which an earlier program may have made, and git "
                "would write where it leads: remove the link",
                home, name);
    return fd >= 0 || fd == -ENOENT || fd == -ENOTDIR || fd == -EISDIR
                   ? 0
                   : err_set_errno(err, fd, "open '%s/%s'", home, name);
}

/* The files that git writes for a change of `name`: its own and its log. */
static int check_files(const struct repo *repo, const char *name, struct carrel_error *err)
{
    char log[REF_NAME_MAX + sizeof("logs/")];
    int r = repo->has_file_refs ? check_file(home_of(repo, name), name, err) : 0;

    (void)snprintf(log, sizeof(log), "logs/%s", name);
    return r < 0 ? r : check_file(home_of(repo, name), log, err);
}

/* The same for all that a change of `name` writes: what it points to, and the log of HEAD. */
static int check_all_files(const struct repo *repo, const char *name, struct carrel_error *err)
{
    char oid[OID_MAX], target[REF_NAME_MAX + 1];
    char at[REF_NAME_MAX + 1];
    int r = check_files(repo, "HEAD", err);

    (void)snprintf(at, sizeof(at), "%s", name);
    for (int depth = 0; r == 0 && depth <= SYMREF_DEPTH; depth++) {
        r = check_files(repo, at, err);
        if (r < 0 || !repo->has_file_refs || read_loose(repo, at, oid, target, NULL) != 1)
            break;
        memcpy(at, target, sizeof(at));
    }
    return r;
}

/* Runs `git update-ref` with `args` on `name`; 1: git refused. */
static int update(const struct repo *repo, const char *name, const char *const *args,
        struct carrel_error *err)
{
    struct git git = repo_git(repo);
    struct git_io io = GIT_IO_INIT;

    int checked = check_all_files(repo, name, err);
    if (checked < 0)
        return checked;
    git.git_dir = repo->git_dir; /* its HEAD has a reflog too, and may be on this branch */
    io.timeout_ms = GIT_TIMEOUT_MS;
    io.finishes = true;
    int r = git_run(&git, args, &io, err);
    return r > 0 ? 1 : r;
}

int ref_create(const struct repo *repo, const char *name, const char *oid, const char *message,
        struct carrel_error *err)
{
    char none[OID_MAX], found[OID_MAX];
    int r = check_name(name, err);

    if (r == 0)
        r = check_oid(repo, oid, err);
    if (r < 0)
        return r;
    memset(none, '0', oid_len(repo));
    none[oid_len(repo)] = '\0';
    r = update(repo, name, GIT_ARGS("update-ref", "--no-deref", "-m", message, name, oid, none),
            err);
    if (r <= 0)
        return r;
    if (ref_read(repo, name, found, NULL) == 0)
        return err_set(err, -EEXIST, "the reference '%s' exists already", name);
    return -EIO; /* in git's words: a reference above or below it, a lock, no such object */
}

/* After git refused a change: whether that was because the reference is not at `old`. 1: it is
 * gone. The message is git's unless there is more to say. */
static int why_refused(
        const struct repo *repo, const char *name, const char *old, struct carrel_error *err)
{
    char now[OID_MAX];
    int r = ref_read(repo, name, now, NULL);

    if (r == -ENOENT)
        return 1;
    if (r == 0 && strcmp(now, old) != 0)
        return err_set(
                err, -ESTALE, "'%s' has moved: it is at %.12s, not at %.12s", name, now, old);
    return -EBUSY;
}

int ref_move(const struct repo *repo, const char *name, const char *oid, const char *old,
        const char *message, struct carrel_error *err)
{
    int r = check_name(name, err);

    if (r == 0)
        r = check_oid(repo, oid, err);
    if (r == 0)
        r = check_oid(repo, old, err);
    if (r < 0)
        return r;
    r = update(repo, name, GIT_ARGS("update-ref", "-m", message, name, oid, old), err);
    if (r <= 0)
        return r;
    r = why_refused(repo, name, old, err);
    return r == 1 ? err_set(err, -ESTALE, "the reference '%s' is gone", name) : r;
}

int ref_delete(
        const struct repo *repo, const char *name, const char *old, struct carrel_error *err)
{
    char now[OID_MAX];
    int r = check_name(name, err);

    if (r == 0)
        r = check_oid(repo, old, err);
    if (r < 0)
        return r;
    r = ref_read(repo, name, now, err);
    if (r < 0)
        return r == -ENOENT ? 0 : r;
    r = update(repo, name, GIT_ARGS("update-ref", "--no-deref", "-d", name, old), err);
    if (r <= 0)
        return r;
    r = why_refused(repo, name, old, err);
    return r == 1 ? 0 : r;
}

bool ref_others_have(const struct repo *repo, const char *name, const char *oid)
{
    AUTO(buf_finish) struct buf answer = BUF_INIT(CONTAINS_MAX);
    char contains[sizeof("--contains=") + OID_MAX];
    struct git git = repo_git(repo);
    struct git_io io = GIT_IO_INIT;

    (void)snprintf(contains, sizeof(contains), "--contains=%s", oid);
    io.output = &answer;
    io.timeout_ms = CONTAINS_TIMEOUT_MS;
    int r = git_run(&git,
            GIT_ARGS("for-each-ref", "--count=2", "--format=%(refname)", contains), &io, NULL);
    if (r != 0 || answer.len == 0)
        return false;
    char *rest = answer.data;
    for (const char *line; (line = strsep(&rest, "\n")) != NULL;) {
        if (line[0] && strcmp(line, name) != 0)
            return true;
    }
    return false;
}

int ref_users_have(const struct repo *repo, const char *oid, struct carrel_error *err)
{
    AUTO(buf_finish) struct buf answer = BUF_INIT(CONTAINS_MAX);
    struct git git = repo_git(repo);
    struct git_io io = GIT_IO_INIT;
    char head[OID_MAX];

    if (ref_read(repo, "HEAD", head, NULL) == 0 && strcmp(head, oid) == 0)
        return 1;
    io.output = &answer;
    io.timeout_ms = CONTAINS_TIMEOUT_MS;
    int r = git_expect(&git,
            GIT_ARGS("rev-list", "--max-count=1", oid, "--not",
                    "--exclude=refs/heads/task-*-run-*", "--all"),
            &io, err);
    return r < 0 ? r : answer.len == 0;
}

bool ref_is_checked_out(const struct repo *repo, const char *name)
{
    AUTO(buf_finish) struct buf answer = BUF_INIT(CONTAINS_MAX);
    struct git git = repo_git(repo);
    struct git_io io = GIT_IO_INIT;

    io.output = &answer;
    io.timeout_ms = GIT_TIMEOUT_MS;
    int r = git_expect(
            &git, GIT_ARGS("for-each-ref", "--format=%(worktreepath)", name), &io, NULL);
    return r < 0 || answer.len > 0;
}
