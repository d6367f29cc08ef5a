/* harvest.c - harvesting a workspace, from outside where possible and from inside where not. */
#include "core/harvest/harvest.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/str.h"
#include "base/tree.h"
#include "core/harvest/aside.h"
#include "core/harvest/quarantine.h"
#include "core/worktree/helper.h"
#include "core/worktree/include.h"
#include "core/worktree/worktree.h"
#include "git/git.h"
#include "layer/layer.h"
#include "workspace/harvest/changes.h"
#include "workspace/private.h"
#include "workspace/renew.h"
#include "workspace/stack.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define INSIDE_TIMEOUT_MS 300000U /* as long as the run at most, but not less than ... */
#define INSIDE_LEAST_MS 30000U
#define MAX_EXCLUDE (1U << 20)
#define FLAT "flat"                        /* beside upper/, while we look */
#define ODDITIES "oddities"                /* and what was found that is not in the picture */
#define ODDITIES_MAX (2 * PATHS_MAX_BYTES) /* with their kinds */

struct taking {
    struct worktree *worktree;
    struct runtime *runtime;
    char quarantine[PATH_MAX];
    struct harvest_limits limits;
    char tip[OID_MAX];
    char snapshot[OID_MAX];
    struct changes changes;
    uint64_t n_other_commits;
    const struct harvest_bounds *bounds;
    int upper; /* what was changed, of all layers */
};

void harvest_finish(struct harvest *harvest)
{
    oddities_free(harvest->oddities, harvest->n_oddities);
    *harvest = (struct harvest){ 0 };
}

/* Where the run left its work: HEAD, detached or on a branch of its making, where that goes on
 * from the run's own branch. */
#define FIND_TIP                                                                               \
    "tip=$(git rev-parse -q --verify \"refs/heads/$branch^{commit}\") || tip=$base; "          \
    "head=$(git rev-parse -q --verify 'HEAD^{commit}') && "                                    \
    "git merge-base --is-ancestor \"$tip\" \"$head\" && tip=$head; "

/*
 * The programs of the sandboxes that look from inside. The first one commits what is not
 * committed, and so must write to the workspace; it answers with a line for each repository in
 * the tree and a line "tip snapshot", or with "said" and git's complaint. The second one only
 * reads, and may not do otherwise; it answers with what lies aside, with such a line, and with
 * a pack of both over the base. A branch that the run removed is as if it had never committed.
 *
 * git takes a directory that has a repository for a submodule, or fails where that has no
 * commit, unless the index has something below it. So it is given an entry of a file that is
 * not there, under a name that nobody could foresee; a submodule that only the run's index has
 * is dropped from it. What is in the directory then counts as elsewhere: files, without the
 * .git.
 *
 * Filters of the run's choice are part of what git would commit, and run. What else git might
 * start is not: it gets no say.
 */
#define QUIET_GIT                                                                              \
    "GIT_CONFIG_COUNT=3", "GIT_CONFIG_KEY_0=core.hooksPath", "GIT_CONFIG_VALUE_0=/dev/null",   \
            "GIT_CONFIG_KEY_1=core.fsmonitor", "GIT_CONFIG_VALUE_1=false",                     \
            "GIT_CONFIG_KEY_2=core.untrackedCache", "GIT_CONFIG_VALUE_2=false"

static const char commit_line[] =
        "exec 2>/tmp/said; cd /workspace || exit 1; "
        "s() { LC_ALL=C sed \"$@\"; }; "
        "fail() { "
        "  why=$(s -n -e '/^fatal: /{p;q}' -e '/^error: /{p;q}' /tmp/said); "
        "  printf 'said %.300s\\n' \"${why:-$(head -n 1 /tmp/said)}\"; exit 1; "
        "}; "
        "forget() { git update-index --force-remove -z --stdin; }; "
        "links() { s -nz 's/^160000 [a-f0-9 cmoit]*\\t//p' | LC_ALL=C sort -z; }; " FIND_TIP
        "snapshot=$tip; "
        "cp \"$(git rev-parse --git-dir)/index\" /tmp/index; "
        "export GIT_INDEX_FILE=/tmp/index; "
        "git ls-tree -r -z --full-tree \"$tip\" >/tmp/tree || fail; "
        "git ls-files -s -z >/tmp/staged || fail; "
        "links </tmp/tree >/tmp/had; links </tmp/staged >/tmp/has; "
        "if [ -s /tmp/has ]; then "
        "  LC_ALL=C comm -z -23 /tmp/has /tmp/had | forget || fail; "
        "fi; "
        "none=$(git hash-object --stdin </dev/null) || fail; "
        "name=.none-$(date +%s%N); : >/tmp/names; "
        "while git ls-files -o -z --exclude-standard >/tmp/other || fail; "
        "  s -nz 's|/$||p' /tmp/other >/tmp/inside; [ -s /tmp/inside ]; do "
        "  tr '\\n\\0' '?\\n' </tmp/inside | LC_ALL=C cut -b -4000 | "
        "    s 's|.*|repository &/.git|'; "
        "  s -z \"s|$|/$name|\" /tmp/inside >>/tmp/names; "
        "  s -z \"s|.*|100644 $none\\t&/$name|\" /tmp/inside | "
        "    git update-index -z --index-info || fail; "
        "done; "
        "git add -A . || fail; forget </tmp/names || fail; "
        "tree=$(git write-tree) || fail; "
        "if [ \"$tree\" != \"$(git rev-parse \"$tip^{tree}\")\" ]; then "
        "  snapshot=$(echo \"$message\" | git commit-tree -p \"$tip\" \"$tree\") || fail; "
        "fi; "
        "echo \"$tip $snapshot\"";

static const char pack_line[] =
        "exec 2>/dev/null; cd /workspace || exit 1; "
        "if [ -z \"$snapshot\" ]; then " FIND_TIP "  snapshot=$tip; "
        "fi; " ASIDE_COUNT "echo \"$tip $snapshot\"; "
        "printf '%s\\n^%s\\n' \"$snapshot\" \"$base\" | "
        "git pack-objects --revs --thin --stdout --delta-base-offset -q";

#define REPOSITORY "repository "
#define SAID "said "

/* Where there was no walk it is the only one who tells. */
static int note_repository(struct taking *t, const char *path, struct carrel_error *err)
{
    const struct upper_limits limits = UPPER_LIMITS_INIT;
    struct change_list list = {
        .all = t->changes, .limits = &limits, .oddities_room = t->changes.n_oddities
    };

    if (t->worktree->ws->mode == WORKSPACE_OVERLAY)
        return 0;
    int r = changes_add_oddity(&list, path, ODDITY_REPOSITORY, err);
    t->changes = list.all;
    return r;
}

/* Lines of the run's making: what they are good for is checked by whoever uses them. */
static int read_answer(struct taking *t, struct helper *helper, char *line, size_t size,
        struct carrel_error *err)
{
    char shown[256];
    int r;

    while ((r = helper_read_line(helper, line, size, err)) == 0) {
        if (strncmp(line, REPOSITORY, strlen(REPOSITORY)) == 0)
            r = note_repository(t, line + strlen(REPOSITORY), err);
        else if (strncmp(line, ASIDE, strlen(ASIDE)) == 0)
            r = str_parse_u64(line + strlen(ASIDE), &t->n_other_commits) < 0
                        ? err_set(err, -EPROTO, "git in the sandbox gave a wrong answer")
                        : 0;
        else if (strncmp(line, SAID, strlen(SAID)) == 0)
            r = err_set(err, -EIO, "git in the sandbox said '%s'",
                    str_escape(line + strlen(SAID), strlen(line + strlen(SAID)), shown,
                            sizeof(shown)));
        else
            break;
        if (r < 0)
            return r;
    }
    changes_sort(&t->changes);
    return r;
}

/* Reads an answer to its end, the line "tip snapshot". */
static int read_ids(struct taking *t, struct helper *helper, struct carrel_error *err)
{
    char line[PATH_MAX + sizeof(REPOSITORY)];

    int r = read_answer(t, helper, line, sizeof(line), err);
    if (r < 0)
        return r;
    char *space = strchr(line, ' ');
    if (space)
        *space = '\0';
    if (!space || !name_is_oid(line) || !name_is_oid(space + 1))
        return err_set(err, -EPROTO, "git in the sandbox gave a wrong answer");
    memcpy(t->tip, line, strlen(line) + 1); /* name_is_oid(): they fit */
    memcpy(t->snapshot, space + 1, strlen(space + 1) + 1);
    return 0;
}

static unsigned inside_ms(const struct harvest_bounds *bounds)
{
    if (bounds->timeout_ms == 0 || bounds->timeout_ms > INSIDE_TIMEOUT_MS)
        return INSIDE_TIMEOUT_MS;
    return bounds->timeout_ms < INSIDE_LEAST_MS ? INSIDE_LEAST_MS
                                                : (unsigned)bounds->timeout_ms;
}

/* What the first program gets of the run, and the second one, too. */
struct inside {
    char branch[NAME_BRANCH_MAX + 16];
    char base[OID_MAX + 16];
};

static struct inside inside_of(const struct workspace *ws)
{
    struct inside inside;

    (void)snprintf(inside.branch, sizeof(inside.branch), "branch=%s", ws->branch);
    (void)snprintf(inside.base, sizeof(inside.base), "base=%s", ws->base);
    return inside;
}

/* When it has answered it is over, and with it whatever the run's filters started. */
static int commit_inside(struct taking *t, struct carrel_error *err)
{
    const struct inside inside = inside_of(t->worktree->ws);
    AUTO(helper_finish) struct helper helper = INNER_INIT;
    static const char message[] = "message=" HARVEST_MESSAGE;
    const char *const env[] = { QUIET_GIT, inside.branch, inside.base, message,
        "GIT_AUTHOR_NAME=carrel", "GIT_AUTHOR_EMAIL=carrel@localhost",
        "GIT_COMMITTER_NAME=carrel", "GIT_COMMITTER_EMAIL=carrel@localhost", NULL };
    const struct helper_spec spec = {
        .runtime = t->runtime,
        .mounts = t->worktree->mounts,
        .n_mounts = t->worktree->n_mounts,
        .script = commit_line,
        .env = env,
        .limits = t->bounds->limits,
        .limited = t->worktree->ws->dir,
        .has_limit = true,
        .max_bytes = t->bounds->disk_bytes,
    };

    int r = helper_start(&spec, inside_ms(t->bounds), &helper, err);
    if (r == 0)
        r = read_ids(t, &helper, err);
    if (r == 0)
        r = helper_wait(&helper, err);
    return r > 0 ? err_set(err, -EIO, "git in the sandbox ended with status %d", r) : r;
}

/* Nothing of the host can be written to by it, so nobody has to watch while the pack is read.
 */
static int take_pack(struct taking *t, bool has_ids, struct carrel_error *err)
{
    const struct workspace *ws = t->worktree->ws;
    const struct inside inside = inside_of(ws);
    AUTO(helper_finish) struct helper helper = INNER_INIT;
    AUTO(free)
    struct sandbox_mount *mounts = calloc(t->worktree->n_mounts, sizeof(*mounts));
    char tip[OID_MAX + 8];
    char snapshot[OID_MAX + 16];

    if (!mounts)
        return err_set_errno(err, -ENOMEM, "mounts");
    for (size_t i = 0; i < t->worktree->n_mounts; i++) {
        mounts[i] = t->worktree->mounts[i];
        mounts[i].access = ACCESS_READ_ONLY;
    }
    (void)snprintf(tip, sizeof(tip), "tip=%s", has_ids ? t->tip : "");
    (void)snprintf(snapshot, sizeof(snapshot), "snapshot=%s", has_ids ? t->snapshot : "");
    const char *const env[] = { QUIET_GIT, inside.branch, inside.base, tip, snapshot, NULL };
    const struct helper_spec spec = {
        .runtime = t->runtime,
        .mounts = mounts,
        .n_mounts = t->worktree->n_mounts,
        .script = pack_line,
        .env = env,
        .limits = t->bounds->limits,
    };
    int r = helper_start(&spec, inside_ms(t->bounds), &helper, err);
    if (r == 0)
        r = read_ids(t, &helper, err);
    if (r == 0)
        r = harvest_take_pack(t->worktree->repo, t->quarantine, helper.process.stdout_fd,
                t->snapshot, ws->base, &t->limits, err);
    return r;
}

static int look_from_inside(struct taking *t, bool has_all, struct carrel_error *err)
{
    int r = workspace_renew(t->worktree->ws, err); /* we may have looked before */

    if (r == 0 && has_all)
        r = commit_inside(t, err);
    if (r == 0 && has_all)
        r = workspace_renew(t->worktree->ws, err);
    if (r == 0)
        r = take_pack(t, has_all, err);
    return r < 0 ? r : included_leave_out(t->worktree, t->quarantine, t->tip, t->snapshot, err);
}

/* What the run's own commits added is tracked, also where an ignore rule matches it. */
static int list_added(struct taking *t, struct names *names, struct carrel_error *err)
{
    const struct workspace *ws = t->worktree->ws;
    struct git git = harvest_git(t->worktree->repo, t->quarantine);
    struct git_io io = GIT_IO_INIT;

    if (strcmp(t->tip, ws->base) == 0)
        return 0;
    io.output = &names->text;
    int r = git_expect(&git,
            GIT_ARGS("diff-tree", "-r", "-z", "--name-only", "--no-renames", "--diff-filter=A",
                    ws->base, t->tip),
            &io, err);
    return r < 0 ? r : names_split(names, err);
}

/* Where it lies on layers, all of them count: a directory of links shows them as one. */
static int open_changes(struct taking *t, struct carrel_error *err)
{
    const struct worktree *worktree = t->worktree;
    const struct workspace *ws = worktree->ws;
    const char *name = ws->layers ? FLAT : "upper";
    char ids[STACK_MAX][STACK_ID_MAX];
    const char *trees[STACK_MAX + 2];
    char own[PATH_MAX];

    if (ws->layers) {
        int n = stack_list(ws, ids);
        int r = n < 0 ? err_set(err, n, "its record has a damaged list of layers")
                      : tree_remove(ws->dir, FLAT, err); /* of one that was killed */
        if (r < 0)
            return r;
        if (snprintf(own, sizeof(own), "%s/upper", ws->path) >= (int)sizeof(own))
            return err_set_errno(err, -ENAMETOOLONG, "'%s'", ws->path);
        trees[0] = own;
        memcpy(trees + 1, worktree->lower, (size_t)n * sizeof(trees[0]));
        r = layer_flatten(trees, (size_t)n + 1, worktree->lower + n, ws->dir, FLAT, err);
        if (r < 0)
            return r;
    }
    t->upper = openat(ws->dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return t->upper < 0 ? err_set_errno(err, -errno, "open '%s/%s'", ws->path, name) : 0;
}

static void close_changes(struct taking *t)
{
    fd_close(fd_steal(&t->upper));
    if (t->worktree->ws->layers)
        (void)tree_remove(t->worktree->ws->dir, FLAT, NULL); /* else the next one does */
}

static int walk(struct taking *t, struct carrel_error *err)
{
    const struct upper_limits limits = UPPER_LIMITS_INIT;
    const struct checkout *checkout = t->worktree->checkout;
    AUTO(names_finish) struct names added = NAMES_INIT;
    AUTO(names_finish) struct names carried = NAMES_INIT;
    AUTO(buf_finish) struct buf exclude = BUF_INIT(MAX_EXCLUDE);
    char path[PATH_MAX];
    size_t n_gitlinks = 0;

    while (checkout->gitlinks && checkout->gitlinks[n_gitlinks])
        n_gitlinks++;
    (void)snprintf(path, sizeof(path), "%s/info/exclude", checkout->git);
    int r = t->worktree->ws->is_folder ? 0 : fd_add_file(AT_FDCWD, path, &exclude, err);
    if (r == 0)
        r = included_read(t->worktree, &carried, err);
    if (r == 0)
        r = list_added(t, &added, err);
    if (r < 0)
        return r;
    const struct upper_base base = {
        .lower = (const char *const *)checkout->lower,
        .exclude = exclude.data ? exclude.data : "",
        .tracked = added.list,
        .n_tracked = added.n,
        .carried = carried.list,
        .n_carried = carried.n,
        .gitlinks = (const char *const *)checkout->gitlinks,
        .n_gitlinks = n_gitlinks,
        .has_no_rules = t->worktree->ws->is_folder,
    };
    return upper_walk(t->upper, &base, &limits, &t->changes, err);
}

/*
 * Is our own code enough to say what git would commit? Not where content is converted on its
 * way into a commit, and not where a submodule may have moved: its entry is no file of the
 * tree.
 */
static bool needs_git(const struct taking *t)
{
    const struct checkout *checkout = t->worktree->checkout;
    bool has_moved = checkout->has_gitlinks && strcmp(t->tip, t->worktree->ws->base) != 0;
    bool is_converted = checkout->has_filters ||
                        (checkout->has_line_ends && t->changes.has_cr) ||
                        t->changes.has_attributes;

    for (size_t i = 0; i < t->changes.n_oddities; i++)
        has_moved = has_moved || t->changes.oddities[i].kind == ODDITY_GITLINK;
    return has_moved || (is_converted && t->changes.n > 0);
}

static int commit_outside(struct taking *t, struct carrel_error *err)
{
    const struct harvest_author author = {
        .name = "carrel", .email = "carrel@localhost", .when_s = (int64_t)time(NULL)
    };

    if (t->changes.bytes > t->bounds->max_bytes)
        return err_set(err, -EDQUOT,
                "its changes have %" PRIu64 " bytes, and with as many of git objects it would "
                "pass --disk",
                t->changes.bytes);
    if (t->changes.n == 0 && strcmp(t->tip, t->worktree->ws->base) == 0) {
        (void)snprintf(t->snapshot, sizeof(t->snapshot), "%s", t->tip);
        return 0;
    }
    return harvest_commit_changes(t->worktree->repo, t->quarantine, t->upper, &t->changes,
            t->worktree->checkout->tree, t->tip, HARVEST_MESSAGE, &author, t->snapshot, err);
}

static int take_overlay(struct taking *t, struct carrel_error *err)
{
    const struct workspace *ws = t->worktree->ws;
    int r = 0;

    (void)snprintf(t->tip, sizeof(t->tip), "%s", ws->base);
    if (!ws->is_folder) {
        AUTO(fd_close)
        int git = openat(ws->dir, "gitupper", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (git < 0)
            return err_set_errno(err, -errno, "open '%s/gitupper'", ws->path);
        if (ws->layers || !private_is_untouched(git, ws->branch, ws->base))
            r = look_from_inside(t, false, err);
    }
    if (r == 0)
        r = open_changes(t, err);
    if (r == 0)
        r = walk(t, err);
    if (r == 0)
        r = !ws->is_folder && needs_git(t) ? look_from_inside(t, true, err)
                                           : commit_outside(t, err);
    close_changes(t);
    return r;
}

/*
 * The snapshot gets a new id from the clock each time. If what is on the branch says the same,
 * it stays the snapshot: a look must not make something uncommitted of it. Its objects are
 * taken back from there: the branch is the user's, who may delete it.
 */
static bool is_on_branch(const struct taking *t)
{
    const struct workspace *ws = t->worktree->ws;
    struct git git = harvest_git(t->worktree->repo, t->quarantine);

    if (!ws->is_published || strcmp(t->tip, ws->tip) != 0)
        return false;
    if (strcmp(t->snapshot, ws->snapshot) != 0 &&
            git_run(&git, GIT_ARGS("diff-tree", "--quiet", ws->snapshot, t->snapshot), NULL,
                    NULL) != 0)
        return false;
    return harvest_join(t->worktree->repo, t->quarantine, ws->base, ws->snapshot, NULL) == 0;
}

/* Each its kind and its path, with a NUL behind. */
static int write_oddities(const struct taking *t, struct carrel_error *err)
{
    AUTO(buf_finish) struct buf text = BUF_INIT(ODDITIES_MAX);
    char path[PATH_MAX];

    for (size_t i = 0; i < t->changes.n_oddities; i++) {
        const struct oddity *oddity = &t->changes.oddities[i];
        buf_addf(&text, "%u ", (unsigned)oddity->kind);
        buf_add(&text, oddity->path, strlen(oddity->path) + 1);
    }
    if (text.is_short)
        return err_set_errno(err, -ENOMEM, "what was left out");
    if (snprintf(path, sizeof(path), "%s/" ODDITIES, t->worktree->ws->path) >=
            (int)sizeof(path))
        return err_set_errno(err, -ENAMETOOLONG, "'%s'", t->worktree->ws->path);
    return fd_replace_file(path, text.data ? text.data : "", text.len, 0600, err);
}

int harvest_oddities(
        const struct worktree *worktree, struct harvest *out, struct carrel_error *err)
{
    const struct upper_limits limits = UPPER_LIMITS_INIT;
    struct change_list list = { .limits = &limits };
    AUTO(buf_finish) struct buf text = BUF_INIT(ODDITIES_MAX);
    struct stat st;

    *out = (struct harvest){ .is_changed =
                                     strcmp(worktree->ws->snapshot, worktree->ws->base) != 0 };
    if (fstatat(worktree->ws->dir, ODDITIES, &st, AT_SYMLINK_NOFOLLOW) < 0 && errno == ENOENT)
        return 0; /* of an older carrel */
    int r = fd_add_file(worktree->ws->dir, ODDITIES, &text, err);
    for (size_t at = 0; r == 0 && at < text.len;) {
        char *path;
        unsigned long kind = strtoul(text.data + at, &path, 10);
        if (kind > ODDITY_UNREADABLE || *path != ' ') {
            r = err_set(err, -EBADMSG, "'%s/" ODDITIES "' is damaged", worktree->ws->path);
            break;
        }
        r = changes_add_oddity(&list, path + 1, (enum oddity_kind)kind, err);
        at = (size_t)(path + 1 - text.data) + strlen(path + 1) + 1;
    }
    out->oddities = ptr_steal(&list.all.oddities);
    out->n_oddities = list.all.n_oddities;
    return r;
}

int harvest_take(struct worktree *worktree, struct runtime *runtime,
        const struct harvest_bounds *bounds, struct harvest *out, struct carrel_error *err)
{
    struct workspace *ws = worktree->ws;
    struct taking t = {
        .worktree = worktree, .runtime = runtime, .limits = HARVEST_LIMITS_INIT, .upper = -1
    };

    if (t.limits.max_pack_bytes > bounds->max_bytes)
        t.limits.max_pack_bytes = bounds->max_bytes;
    t.bounds = bounds;
    int r = quarantine_path(worktree, t.quarantine, err);
    if (r < 0)
        return r;
    r = harvest_open(t.quarantine, err);
    if (r == 0)
        r = ws->mode == WORKSPACE_OVERLAY ? take_overlay(&t, err)
                                          : look_from_inside(&t, true, err);
    if (r == 0)
        r = write_oddities(&t, err);
    if (r == 0 && !is_on_branch(&t)) {
        memcpy(ws->tip, t.tip, sizeof(ws->tip));
        memcpy(ws->snapshot, t.snapshot, sizeof(ws->snapshot));
        ws->is_published = false;
    }
    if (r == 0) {
        ws->n_other_commits = t.n_other_commits;
        ws->phase = WORKSPACE_FINISHED;
        r = workspace_save(ws, err);
    }
    if (r == 0) {
        *out = (struct harvest){
            .oddities = ptr_steal(&t.changes.oddities),
            .n_oddities = t.changes.n_oddities,
            .is_changed = strcmp(ws->snapshot, ws->base) != 0 || ws->n_other_commits > 0,
        };
        t.changes.n_oddities = 0;
    }
    changes_finish(&t.changes);
    if (r == 0)
        return 0;
    ws->phase = WORKSPACE_READY; /* an older picture does not have what was refused */
    if (!ws->is_published)       /* and what it named is gone from the quarantine */
        ws->tip[0] = ws->snapshot[0] = '\0';
    (void)workspace_save(ws, NULL); /* the first failure is the one to report */
    return r;
}

int harvest_wrap(const struct workspace *ws, int code, struct carrel_error *err)
{
    return err_wrap(err, code, "the result of run '%s' was refused (its files are in %s)",
            ws->run, ws->path);
}
