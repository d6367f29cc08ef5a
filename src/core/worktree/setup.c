/*
 * setup.c - what a setup command makes (dependencies, builds), made once and laid under every
 * later run.
 *
 *   <state>/setups/<key>/upper     see workspace/cache/expiry.h
 *
 * The key is over the command, the files that decide its result, as they are in the commit, and
 * what else of the run's options reaches it: root or image, network, user. For a commit that
 * came from a run the whole tree is part of the key as well: what a run committed (a Makefile,
 * a script of a package) decides what the command makes, and must not reach runs of other
 * commits. It runs in a sandbox like any run, but without the agent: a layer is never made from
 * what an agent could have written. Nor from what only this run is given: other runs will lie
 * on it. So it has limits of its own, and sees no --env and no --mount.
 */
#include "base/err.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/sha256.h"
#include "base/store.h"
#include "base/str.h"
#include "base/tree.h"
#include "core/worktree/helper.h"
#include "core/worktree/helper_space.h"
#include "core/worktree/prepare.h"
#include "core/worktree/setup_sh.h"
#include "core/worktree/worktree.h"
#include "policy/policy.h"
#include "workspace/cache/expiry.h"
#include "workspace/harvest/lower.h"
#include "workspace/harvest/upper.h"
#include "workspace/private.h"
#include <carrel/run.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define SETUP_TIMEOUT_MS (30U * 60 * 1000)
#define SETUP_DISK (UINT64_C(8) << 30)

/* When the caller names none: lock files, of which a commit usually has one. */
static const char *const usual_keys[] = { "package-lock.json", "npm-shrinkwrap.json",
    "yarn.lock", "pnpm-lock.yaml", "bun.lock", "requirements.txt", "poetry.lock", "uv.lock",
    "Pipfile.lock", "Cargo.lock", "go.sum", "Gemfile.lock", "composer.lock", NULL };

/* Whether the lines "MODE TYPE ID\tPATH", each with a NUL at its end, have that path. */
static bool has_path(const struct buf *lines, const char *path)
{
    for (size_t at = 0; at < lines->len; at += strlen(lines->data + at) + 1) {
        const char *tab = strchr(lines->data + at, '\t');
        if (tab && strcmp(tab + 1, path) == 0)
            return true;
    }
    return false;
}

static int explain_missing(const char *const *keys, const struct buf *found, const char *commit,
        struct carrel_error *err)
{
    char shown[128];

    while (keys[1] && has_path(found, keys[0]))
        keys++;
    return err_set(err, -ENOENT,
            "the file '%s' of --setup-key is not in commit %.12s; git ls-tree shows what is",
            str_escape(keys[0], strlen(keys[0]), shown, sizeof(shown)), commit);
}

/* Ids of the key files in the commit; without any, the whole tree is the key. */
static int read_keys(const struct worktree_request *q, const struct worktree *worktree,
        const char *commit, struct buf *text, struct carrel_error *err)
{
    const char *const *keys = q->options->setup_keys ? q->options->setup_keys : usual_keys;
    const char *args[64] = { "ls-tree", "-z", "--full-tree", commit, "--" };
    size_t n = 5;
    struct git git = repo_git(worktree->repo);
    struct git_io io = GIT_IO_INIT;

    for (size_t i = 0; keys[i]; i++) {
        if (n == ARRAY_LEN(args) - 1)
            return err_set(err, -E2BIG, "more than %zu files as keys of a setup", n - 5);
        args[n++] = keys[i];
    }
    io.output = text;
    int r = git_expect(&git, args, &io, err);
    if (r < 0)
        return r;
    size_t found = 0;
    for (size_t i = 0; i < text->len; i++)
        found += text->data[i] == '\0';
    if (q->options->setup_keys && found < n - 5)
        return explain_missing(keys, text, commit, err);
    if (found == 0)
        buf_add_str(text, worktree->checkout->tree);
    return 0;
}

/* The root whose programs it runs; layers of images are named by their content. */
static void add_root(struct buf *text, const struct sandbox_spec *spec)
{
    const struct sandbox_overlay *image = spec->root_overlay;

    for (size_t i = 0; image && image->lower && image->lower[i]; i++)
        buf_addf(text, "\nimage %s", image->lower[i]);
    buf_addf(text, "\n%s\n", spec->root ? spec->root : image ? "image" : "host");
}

static int make_key(const struct worktree_request *q, const struct worktree *worktree,
        const char *commit, char key[static OID_MAX], struct carrel_error *err)
{
    AUTO(buf_finish) struct buf text = BUF_INIT(1U << 20);
    uid_t uid;
    gid_t gid;

    runtime_identity(q->runtime, q->spec, &uid, &gid);
    int r = read_keys(q, worktree, commit, &text, err);
    if (r == 0)
        r = prepare_is_of_run(q, worktree->repo, commit, err);
    if (r < 0)
        return r;
    /* Only for this very tree, and of files as they are with these filters. */
    if (r == 1 || q->options->is_dirty || worktree->repo->settings)
        buf_addf(&text, "\ntree %s", worktree->checkout->tree);
    add_root(&text, q->spec);
    buf_addf(&text, "%u:%u\nnetwork %d\n%s\n", (unsigned)uid, (unsigned)gid,
            (int)q->spec->network, worktree->repo->key);
    buf_add_str(&text, q->options->setup);
    if (text.is_short)
        return err_set_errno(err, -ENOMEM, "setup key");
    sha256_hex(text.data, text.len, key);
    return 0;
}

/* What the setup may take: ours, and never more than the policy's maxima. */
struct setup_bounds {
    uint64_t maxima[LIMIT_COUNT]; /* 0: none */
    uint64_t disk_bytes;
    unsigned timeout_ms;
};

static uint64_t maximum(const struct policy *policy, enum policy_key key)
{
    const struct policy_value *value = policy ? policy_maximum(policy, key) : NULL;

    return value && value->is_set ? value->number : 0;
}

static uint64_t lesser(uint64_t own, uint64_t maximum)
{
    return maximum > 0 && maximum < own ? maximum : own;
}

static struct setup_bounds bounds_of(const struct policy *policy)
{
    return (struct setup_bounds){
        .maxima = {
            [LIMIT_MEMORY] = maximum(policy, POLICY_MEMORY),
            [LIMIT_PIDS] = maximum(policy, POLICY_PIDS),
            [LIMIT_CPU] = maximum(policy, POLICY_CPU),
            [LIMIT_DISK] = maximum(policy, POLICY_DISK),
            [LIMIT_FILES] = maximum(policy, POLICY_FILES),
            [LIMIT_IO_READ] = maximum(policy, POLICY_IO_READ),
            [LIMIT_IO_WRITE] = maximum(policy, POLICY_IO_WRITE),
        },
        .disk_bytes = lesser(SETUP_DISK, maximum(policy, POLICY_DISK)),
        .timeout_ms = (unsigned)lesser(SETUP_TIMEOUT_MS, maximum(policy, POLICY_TIMEOUT)),
    };
}

/* The messages of helper.h are about git; these are about the setup command. */
static int explain_end(int code, const struct setup_bounds *bounds, struct carrel_error *err)
{
    if (code == -ETIMEDOUT)
        return err_set(err, code, "the setup command took longer than %u seconds",
                bounds->timeout_ms / 1000);
    if (code == -EDQUOT)
        return err_set(err, code, "the setup command wrote more than %" PRIu64 " MB",
                bounds->disk_bytes >> 20);
    if (code == -EIO)
        return err_set(err, code, "the setup command was killed");
    return code;
}

/* Runs the command over the pristine tree; what it writes is in <dir>/upper. */
static int run_setup(const struct worktree_request *q, const struct worktree *worktree,
        const char *space, int dir, struct carrel_error *err)
{
    AUTO(helper_finish) struct helper helper = HELPER_INIT;
    const struct setup_bounds bounds = bounds_of(q->policy);
    char words[400] = "";

    /* What is changed in an image lies in memory, and is gone with the sandbox. */
    const struct sandbox_overlay image = {
        .lower = q->spec->root_overlay ? q->spec->root_overlay->lower : NULL,
    };
    if (image.lower && !sandbox_has_memory_root())
        return err_set(err, -ENOTSUP,
                "a setup in an image needs an overlay in memory, which this kernel does not "
                "have");
    const struct sandbox_overlay overlay =
            helper_space_overlay((const char *const *)worktree->checkout->lower, space);
    const struct sandbox_mount mount = helper_space_mount(&overlay, PRIVATE_WORK_TREE);
    const struct helper_spec spec = {
        .runtime = q->runtime,
        .root = q->spec->root,
        .root_overlay = image.lower ? &image : NULL,
        .mounts = &mount,
        .n_mounts = 1,
        .network = q->spec->network,
        .has_user = q->spec->has_user,
        .uid = q->spec->uid,
        .gid = q->spec->gid,
        .disk_bytes = bounds.disk_bytes,
        .maxima = bounds.maxima,
        .script = setup_sh,
        .args = (const char *const[]){ q->options->setup, NULL },
        .limited = dir,
        .has_limit = true,
        .max_bytes = bounds.disk_bytes,
    };
    int r = helper_start(&spec, bounds.timeout_ms, &helper, err);
    if (r < 0)
        return r;
    r = helper_wait(&helper, err);
    if (r <= 0)
        return explain_end(r, &bounds, err);
    (void)helper_read_line(&helper, words, sizeof(words), NULL);
    return err_set(err, -EIO, "the setup command failed with status %d%s%s", r,
            words[0] ? ": " : " and printed nothing", words);
}

/* An unreadable directory may hide a change of tracked files. */
static int check_oddities(const struct changes *changes, struct carrel_error *err)
{
    char shown[200];

    for (size_t i = 0; i < changes->n_oddities; i++) {
        const char *path = changes->oddities[i].path;
        if (changes->oddities[i].kind == ODDITY_UNREADABLE)
            return err_set(err, -EINVAL,
                    "the setup command left '%s' unreadable; a setup may only add files that "
                    "can be read",
                    str_escape(path, strlen(path), shown, sizeof(shown)));
    }
    return 0;
}

static int check_change(
        const struct lower *lower, const struct change *change, struct carrel_error *err)
{
    char shown[200];
    int r = lower_has(lower, change->path, err);

    if (r <= 0)
        return r;
    return err_set(err, -EINVAL,
            "the setup command changed the tracked file '%s'; a setup may only add files",
            str_escape(change->path, strlen(change->path), shown, sizeof(shown)));
}

/* A layer lies over trees of other commits too: it may add, not change. */
static int check_layer(const struct worktree *worktree, int space, struct carrel_error *err)
{
    struct upper_limits limits = UPPER_LIMITS_INIT;
    const struct upper_base base = { .lower = (const char *const *)worktree->checkout->lower,
        .exclude = "",
        .has_no_rules = true };
    struct changes changes = { 0 };
    struct lower lower = { .n = 0 };

    limits.max_cr_bytes = 0; /* no content is asked for */
    AUTO(fd_close) int upper = openat(space, "upper", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int r = upper < 0 ? err_set_errno(err, -errno, "open the setup layer")
                      : upper_walk(upper, &base, &limits, &changes, err);
    if (r == 0)
        r = check_oddities(&changes, err);
    if (r == 0)
        r = lower_open(&lower, base.lower, err);
    for (size_t i = 0; r == 0 && i < changes.n; i++)
        r = check_change(&lower, &changes.items[i], err);
    lower_close(&lower);
    changes_finish(&changes);
    return r;
}

static int make_layer(const struct worktree_request *q, const struct worktree *worktree,
        const struct store *store, const char *key, struct carrel_error *err)
{
    static const char *const parts[] = { "upper", "work" };
    struct store_draft draft = STORE_DRAFT_INIT;

    int r = store_draft(store, &draft, err);
    for (size_t i = 0; r == 0 && i < ARRAY_LEN(parts); i++)
        if (mkdirat(draft.dir, parts[i], 0755) < 0)
            r = err_set_errno(err, -errno, "create '%s/%s'", draft.path, parts[i]);
    if (r == 0)
        r = run_setup(q, worktree, draft.path, draft.dir, err);
    if (r == 0)
        r = check_layer(worktree, draft.dir, err);
    if (r == 0)
        r = tree_remove(draft.dir, "work", err);
    if (r == 0)
        r = store_publish(store, &draft, key, err);
    store_drop(store, &draft);
    return r;
}

/* That there is a layer below the run's files, and of what. */
static int record(const struct worktree_request *q, const char *commit, const char *key,
        bool is_made, struct carrel_error *err)
{
    AUTO(buf_finish) struct buf detail = BUF_INIT((size_t)1 << 20);
    struct json json = { .out = &detail };

    if (!q->record)
        return 0;
    json_object(&json, NULL);
    json_str(&json, "line", q->options->setup);
    json_str(&json, "commit", commit);
    json_str(&json, "layer", key);
    json_end_object(&json);
    if (detail.is_short)
        return err_set_errno(err, -E2BIG, "record the setup");
    return q->record(
            is_made ? "setup_used" : "setup_started", detail.data, q->record_context, err);
}

int prepare_setup(const struct worktree_request *q, struct worktree *worktree,
        const char *commit, char key[static OID_MAX], struct carrel_error *err)
{
    AUTO(store_finish) struct store store = STORE_INIT;
    char path[PATH_MAX];

    int r = make_key(q, worktree, commit, key, err);
    if (r < 0)
        return r;
    if (snprintf(path, sizeof(path), "%s/setups", worktree->state) >= (int)sizeof(path))
        return err_set_errno(err, -ENAMETOOLONG, "'%s'", worktree->state);
    r = store_make(path, &store, err);
    if (r < 0)
        return r;
    if (expiry_use(&store, key) == 0)
        return record(q, commit, key, true, err);
    AUTO(fd_close) int claim = store_claim(&store, key, err);
    if (claim < 0)
        return claim;
    if (expiry_use(&store, key) == 0)
        return record(q, commit, key, true, err);
    r = record(q, commit, key, false, err);
    if (r == 0)
        r = make_layer(q, worktree, &store, key, err);
    return r < 0 ? err_wrap(err, r, "--setup") : 0;
}
