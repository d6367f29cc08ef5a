/*
 * folder.c - git add of a whole folder into a hidden index.
 *
 * One snapshot of a folder at a time: its maker has a claim in the store. An index.lock that it
 * finds is of a git that was killed.
 */
#include "workspace/source/folder.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/named.h"
#include "base/path.h"
#include "base/sha256.h"
#include "base/store.h"
#include "base/str.h"
#include "git/combine.h"
#include "git/name.h"
#include "workspace/source/folder_walk.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define KEY_MAX 80
/* Not bare: a bare repository below some work tree (a home directory may be one) is refused. */
#define GIT_DIR ".git"
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

/* The configuration names the folder, so that a git of the user's finds it. */
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

/* "<name>-<32 hex digits>": the hash tells folders apart, the name is for people. */
static void make_key(const char *dir, char key[static KEY_MAX])
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
    (void)snprintf(key, KEY_MAX, "%s-%.32s", name, hex);
}

/* The entry, held; made if there is none. */
static int hold_entry(const struct store *store, const char *key, struct carrel_error *err)
{
    struct store_draft draft = STORE_DRAFT_INIT;
    int dir = store_hold(store, key);

    if (dir != -ENOENT)
        return dir < 0 ? err_set_errno(err, dir, "open '%s/%s'", store->path, key) : dir;
    int r = store_draft(store, &draft, err);
    if (r == 0 && mkdirat(draft.dir, GIT_DIR, 0700) < 0)
        r = err_set_errno(err, -errno, "create '%s/" GIT_DIR "'", draft.path);
    if (r == 0)
        r = store_publish(store, &draft, key, err);
    if (r == 0)
        r = fd_steal(&draft.dir);
    store_drop(store, &draft);
    return r;
}

/* Makes the hidden git dir ready. The caller has the claim. Returns the entry, held. */
static int prepare(const struct store *store, const char *key, const char *folder,
        struct carrel_error *err)
{
    AUTO(fd_close) int dir = hold_entry(store, key, err);
    if (dir < 0)
        return dir;
    (void)futimens(dir, NULL); /* its last use, for expiry; it is ours: this does not fail */
    AUTO(fd_close)
    int git = openat(dir, GIT_DIR, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    int r = git < 0 ? -errno : make_git_dir(git, folder);
    if (r < 0)
        return err_set_errno(err, r, "fill '%s/%s'", store->path, key);
    (void)unlinkat(git, "index.lock", 0); /* of a git that was killed */
    return fd_steal(&dir);
}

/* Whether the last snapshot already has this tree. */
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

static int take(const char *path, int dir, const char *folder, char commit[static OID_MAX],
        struct carrel_error *err)
{
    const struct git git = { .git_dir = path, .work_tree = folder, .trust = GIT_SCRUBBED };
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
    /* It names the folder, which does not lead back to it. */
    free(repo->top);
    repo->top = strdup(dir);
    if (!repo->top)
        return err_set_errno(err, -ENOMEM, "open '%s'", path);
    *out = ptr_steal(&repo);
    return 0;
}

/*
 * The folder's path, by which git reads it, and by which it has its key: both must not depend
 * on how it was named.
 */
static int find_path(int dir, char path[static PATH_MAX], struct carrel_error *err)
{
    struct stat st;
    struct stat there;
    int r = named_path(dir, path, PATH_MAX);

    if (r < 0)
        return err_set_errno(err, r, "find the path of the folder");
    if (!path_is_clean(path) || !path[1])
        return err_set(err, -EINVAL, "'%s' cannot be used as a folder", path);
    AUTO(fd_close) int found = named_open(path, NAMED_DIRECTORY, err);
    if (found < 0)
        return found;
    if (fstat(dir, &st) < 0 || fstat(found, &there) < 0)
        return err_set_errno(err, -errno, "stat '%s'", path);
    const struct named_id id = named_id_of(&st);
    return named_id_is(&id, &there) ? 0 : err_set(err, -ESTALE, "'%s' was exchanged", path);
}

int folder_snapshot(const char *state, int dir, struct repo **hidden,
        char commit[static OID_MAX], struct carrel_error *err)
{
    char folder[PATH_MAX];
    char top[PATH_MAX];
    char path[PATH_MAX];
    char key[KEY_MAX];
    char made[OID_MAX];
    AUTO(store_finish) struct store store = STORE_INIT;

    int r = find_path(dir, folder, err);
    if (r < 0)
        return r;
    make_key(folder, key);
    if (snprintf(top, sizeof(top), "%s/folders", state) >= (int)sizeof(top) ||
            snprintf(path, sizeof(path), "%s/%s/" GIT_DIR, top, key) >= (int)sizeof(path))
        return err_set_errno(err, -ENAMETOOLONG, "take a snapshot of '%s'", folder);
    if (path_is_below(path, folder))
        return err_set(err, -EINVAL, "'%s' holds carrel's own state: choose a folder inside it",
                folder);
    r = store_make(top, &store, err);
    if (r < 0)
        return r;
    AUTO(fd_close) int claim = store_claim(&store, key, err);
    AUTO(fd_close) int held = claim < 0 ? claim : prepare(&store, key, folder, err);
    if (held < 0)
        return held;
    AUTO(repo_free) struct repo *repo = NULL;
    r = take(path, dir, folder, made, err);
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
