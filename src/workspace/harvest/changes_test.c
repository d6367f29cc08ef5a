/*
 * changes_test.c - the changes of a real overlay equal those that git sees.
 *
 * Random edits are made through a mounted overlay. Then the change list, applied to the base,
 * must give the tree that `git add -A && git write-tree` gives in the merged view.
 */
#include "base/err.h"
#include "base/str.h"
#include "git/format/treepath.h"
#include "harness.h"
#include "workspace/git_program.h"
#include "workspace/harvest/changes.h"
#include "workspace/random_edits.h"
#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <sys/mount.h>

static struct carrel_error err;

static const char excludes[] = "*.log\n/a-\n";

enum way {
    AS_ROOT,     /* marks are trusted. attributes */
    IN_A_USERNS, /* marks are user. attributes */
};

struct bench {
    enum way way;
    char dir[40]; /* everything is in here */
    int fd;
    char base[65]; /* commit */
    const char *lower[3];
    char paths[2][80];
};

static const char gitlink_id[] = "1111111111111111111111111111111111111111";

static void run_git(const struct bench *bench, const char *index, const char *const *args,
        const void *input, size_t len, struct buf *out)
{
    char git_dir[80], work_tree[80], index_file[80];
    (void)snprintf(git_dir, sizeof(git_dir), "%s/repo", bench->dir);
    (void)snprintf(work_tree, sizeof(work_tree), "%s/merged", bench->dir);
    (void)snprintf(index_file, sizeof(index_file), "%s/%s", bench->dir, index);
    const struct git_program git = { work_tree, git_dir, work_tree, index_file };

    if (git_program_run(&git, args, input, len, out) != 0)
        test_fail(__FILE__, __LINE__, "git %s failed", args[0]);
    while (out && out->len > 0 && out->data[out->len - 1] == '\n')
        out->data[--out->len] = '\0';
}

static void mount_overlay(const struct bench *bench, const char *upper, const char *work)
{
    char options[600];
    const char *marks = bench->way == IN_A_USERNS
                                ? "userxattr,volatile"
                                : "redirect_dir=off,metacopy=off,index=off,volatile";

    CHECK_EQ(mkdirat(bench->fd, upper, 0755), 0);
    CHECK_EQ(mkdirat(bench->fd, work, 0755), 0);
    (void)snprintf(options, sizeof(options), "lowerdir=%s%s%s,upperdir=%s/%s,workdir=%s/%s,%s",
            bench->lower[0], bench->lower[1] ? ":" : "", bench->lower[1] ? bench->lower[1] : "",
            bench->dir, upper, bench->dir, work, marks);
    char merged[80];
    (void)snprintf(merged, sizeof(merged), "%s/merged", bench->dir);
    if (mount("overlay", merged, "overlay", MS_NOSUID | MS_NODEV, options) < 0)
        test_fail(__FILE__, __LINE__, "mount overlay: %s", strerror(errno));
}

static void unmount_overlay(const struct bench *bench)
{
    char merged[80];

    (void)snprintf(merged, sizeof(merged), "%s/merged", bench->dir);
    CHECK_EQ(umount2(merged, 0), 0);
}

static void edit_merged(const struct bench *bench, struct random *random, unsigned n)
{
    AUTO(fd_close) int top = openat(bench->fd, "merged", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    CHECK(top >= 0);
    while (n-- > 0)
        edit(random, top);
}

/* Edits alone remove about as much as they add, so the base is filled first. */
static void grow_merged(const struct bench *bench, struct random *random)
{
    AUTO(fd_close) int top = openat(bench->fd, "merged", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    CHECK(top >= 0);
    for (int i = 0; i < 30; i++) {
        AUTO(fd_close) int dir = pick_dir(random, top);
        put_dir(random, dir, pick_name(random));
        if (i % 5 == 0)
            edit_rules(random, dir);
    }
}

/* Commits the merged view with all its files, ignored or not, and a submodule at "mod". */
static void commit_base(struct bench *bench)
{
    AUTO(buf_finish) struct buf tree = BUF_INIT(100);
    AUTO(buf_finish) struct buf commit = BUF_INIT(100);
    AUTO(fd_close) int top = openat(bench->fd, "merged", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    char link[80];

    remove_tree(top, "mod");
    CHECK_EQ(mkdirat(top, "mod", 0755), 0);
    (void)unlinkat(bench->fd, "index", 0);
    run_git(bench, "index", GIT_WORDS("add", "-A", "-f", "."), "", 0, NULL);
    (void)snprintf(link, sizeof(link), "160000,%s,mod", gitlink_id);
    run_git(bench, "index", GIT_WORDS("update-index", "--add", "--cacheinfo", link), "", 0,
            NULL);
    run_git(bench, "index", GIT_WORDS("write-tree"), "", 0, &tree);
    run_git(bench, "index", GIT_WORDS("commit-tree", "-m", "base", tree.data), "", 0, &commit);
    (void)snprintf(bench->base, sizeof(bench->base), "%s", commit.data);
}

/* A pristine tree; for odd seeds with a second layer on it, like a cached delta. */
static void make_base(struct bench *bench, uint64_t seed)
{
    struct random random = { seed * 0x9e3779b97f4a7c15U + 1 };

    for (size_t i = 0; i < 2; i++)
        (void)snprintf(bench->paths[i], sizeof(bench->paths[i]), "%s/lower%zu", bench->dir, i);
    CHECK_EQ(mkdirat(bench->fd, "empty", 0755), 0);
    char empty[80];
    (void)snprintf(empty, sizeof(empty), "%s/empty", bench->dir);
    bench->lower[0] = empty;
    bench->lower[1] = NULL;
    mount_overlay(bench, "lower0", "work0");
    grow_merged(bench, &random);
    edit_merged(bench, &random, 20);
    put_text(bench->fd, "merged/.git", "gitdir: /nonexistent\n", O_TRUNC);
    commit_base(bench);
    unmount_overlay(bench);
    bench->lower[0] = bench->paths[0];
    if (seed % 2 == 0)
        return;
    mount_overlay(bench, "lower1", "work1");
    edit_merged(bench, &random, 15);
    commit_base(bench);
    unmount_overlay(bench);
    bench->lower[0] = bench->paths[1];
    bench->lower[1] = bench->paths[0];
}

/* The tree that git writes from the merged view. */
static void expected_tree(const struct bench *bench, struct buf *tree)
{
    (void)unlinkat(bench->fd, "index", 0);
    run_git(bench, "index", GIT_WORDS("read-tree", bench->base), "", 0, NULL);
    run_git(bench, "index", GIT_WORDS("add", "-A"), "", 0, NULL);
    run_git(bench, "index", GIT_WORDS("write-tree"), "", 0, tree);
}

static void add_content(struct buf *stream, int upper, const struct change *change)
{
    static char text[65536];
    ssize_t n;

    if (change->kind == CHANGE_LINK) {
        n = readlinkat(upper, change->path, text, sizeof(text));
    } else {
        AUTO(fd_close) int fd = openat(upper, change->path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
        CHECK(fd >= 0);
        n = read(fd, text, sizeof(text));
    }
    CHECK_EQ(n, change->size);
    buf_addf(stream, "data %zd\n", n);
    buf_add(stream, text, (size_t)n);
    buf_add_str(stream, "\n");
}

/* The tree that results from the list applied to the base. */
static void actual_tree(
        const struct bench *bench, int upper, const struct changes *changes, struct buf *tree)
{
    static const char *const modes[] = {
        [CHANGE_FILE] = "100644", [CHANGE_EXECUTABLE] = "100755", [CHANGE_LINK] = "120000"
    };
    AUTO(buf_finish) struct buf stream = BUF_INIT(16U << 20);

    buf_addf(&stream, "commit refs/heads/result\ncommitter a <a@b> 0 +0000\ndata 0\nfrom %s\n",
            bench->base);
    for (size_t i = 0; i < changes->n; i++) {
        const struct change *change = &changes->items[i];
        CHECK(i == 0 || (change[-1].kind == CHANGE_REMOVE && change->kind != CHANGE_REMOVE) ||
                strcmp(change[-1].path, change->path) < 0);
        if (change->kind == CHANGE_REMOVE)
            buf_add_str(&stream, "D ");
        else
            buf_addf(&stream, "M %s inline ", modes[change->kind]);
        treepath_quote(&stream, change->path);
        buf_add_str(&stream, "\n");
        if (change->kind != CHANGE_REMOVE)
            add_content(&stream, upper, change);
    }
    run_git(bench, "index", GIT_WORDS("fast-import", "--quiet", "--force"), stream.data,
            stream.len, NULL);
    run_git(bench, "index", GIT_WORDS("rev-parse", "refs/heads/result^{tree}"), "", 0, tree);
}

static void show_difference(const struct bench *bench, const char *ours, const char *theirs)
{
    AUTO(buf_finish) struct buf out = BUF_INIT(1 << 20);

    run_git(bench, "index", GIT_WORDS("diff-tree", "-r", ours, theirs), "", 0, &out);
    fprintf(stderr, "from ours to git's:\n%s\n", out.data ? out.data : "");
}

static void try_sequence(const struct bench *bench, uint64_t seed)
{
    static const char *const gitlinks[] = { "mod" };
    const struct upper_base base = {
        .lower = bench->lower, .exclude = excludes, .gitlinks = gitlinks, .n_gitlinks = 1
    };
    const struct upper_limits limits = UPPER_LIMITS_INIT;
    AUTO(buf_finish) struct buf theirs = BUF_INIT(100);
    AUTO(buf_finish) struct buf ours = BUF_INIT(100);
    struct changes changes = { 0 };
    struct random random = { seed * 0xd1342543de82ef95U + 7 };

    mount_overlay(bench, "upper", "work");
    edit_merged(bench, &random, 1 + below(&random, 25));
    AUTO(fd_close) int upper = openat(bench->fd, "upper", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (upper_walk(upper, &base, &limits, &changes, &err) < 0)
        test_fail(__FILE__, __LINE__, "seed %" PRIu64 ": %s", seed, err.message);
    expected_tree(bench, &theirs);
    actual_tree(bench, upper, &changes, &ours);
    if (strcmp(ours.data, theirs.data) != 0) {
        show_difference(bench, ours.data, theirs.data);
        test_fail(__FILE__, __LINE__, "seed %" PRIu64 ", %s, %s: the trees differ", seed,
                bench->way == AS_ROOT ? "as root" : "in a user namespace", bench->dir);
    }
    changes_finish(&changes);
    unmount_overlay(bench);
    remove_tree(bench->fd, "upper");
    remove_tree(bench->fd, "work");
}

static int enter_namespaces(enum way way)
{
    char map[40];
    unsigned uid = getuid(), gid = getgid();

    if (unshare(way == AS_ROOT ? CLONE_NEWNS : CLONE_NEWNS | CLONE_NEWUSER) < 0)
        return -errno;
    if (way == IN_A_USERNS) {
        (void)fd_write_file(AT_FDCWD, "/proc/self/setgroups", "deny");
        (void)snprintf(map, sizeof(map), "%u %u 1", uid, uid);
        int r = fd_write_file(AT_FDCWD, "/proc/self/uid_map", map);
        (void)snprintf(map, sizeof(map), "%u %u 1", gid, gid);
        if (r < 0 || (r = fd_write_file(AT_FDCWD, "/proc/self/gid_map", map)) < 0)
            return r;
    }
    return mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ? -errno : 0;
}

static bool can_overlay(const struct bench *bench)
{
    char options[400], path[80];

    (void)snprintf(options, sizeof(options), "lowerdir=%s/t,upperdir=%s/u,workdir=%s/w%s",
            bench->dir, bench->dir, bench->dir, bench->way == IN_A_USERNS ? ",userxattr" : "");
    (void)snprintf(path, sizeof(path), "%s/t", bench->dir);
    for (const char *name = "tuw"; *name; name++)
        CHECK_EQ(mkdirat(bench->fd, (char[]){ *name, 0 }, 0755), 0);
    bool can = mount("overlay", path, "overlay", 0, options) == 0 && umount2(path, 0) == 0;
    for (const char *name = "tuw"; *name; name++)
        remove_tree(bench->fd, (char[]){ *name, 0 });
    return can;
}

static void reopen_bench(struct bench *bench)
{
    fd_close(bench->fd);
    bench->fd = open(bench->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    CHECK(bench->fd >= 0);
}

/* On a tmpfs, which is fast, if the kernel supports the attributes there (since 6.6). */
static void open_bench(struct bench *bench)
{
    bool has_tmpfs = mount("tmpfs", bench->dir, "tmpfs", 0, NULL) == 0;

    reopen_bench(bench);
    if (can_overlay(bench))
        return;
    if (has_tmpfs)
        CHECK_EQ(umount2(bench->dir, MNT_DETACH), 0);
    reopen_bench(bench);
    if (!can_overlay(bench)) {
        (void)rmdir(bench->dir);
        SKIP("no overlay can be mounted here: %s", strerror(errno));
    }
}

static void make_repository(const struct bench *bench)
{
    CHECK_EQ(mkdirat(bench->fd, "repo", 0755), 0);
    CHECK_EQ(mkdirat(bench->fd, "merged", 0755), 0);
    run_git(bench, "index", GIT_WORDS("init", "-q"), "", 0, NULL);
    run_git(bench, "index", GIT_WORDS("config", "core.fsync", "none"), "", 0, NULL);
    put_text(bench->fd, "repo/info/exclude", excludes, O_TRUNC);
}

static void clear(const struct bench *bench)
{
    static const char *const parts[] = { "repo", "merged", "index", "empty", "lower0", "work0",
        "lower1", "work1", "upper", "work" };

    for (size_t i = 0; i < ARRAY_LEN(parts); i++)
        remove_tree(bench->fd, parts[i]);
}

static uint64_t number(const char *variable, uint64_t usual)
{
    const char *text = getenv(variable);

    CHECK(!text || str_parse_u64(text, &usual) == 0);
    return usual;
}

static void try_all(struct bench *bench, uint64_t first, uint64_t n)
{
    for (uint64_t seed = first; seed < first + n;) {
        make_repository(bench);
        make_base(bench, seed / 10);
        do {
            try_sequence(bench, seed++);
        } while (seed < first + n && seed % 10 != 0);
        clear(bench);
    }
}

#define SEQUENCES (TEST_IS_SLOW ? 50 : 200)

/* UPPER_TEST_SEQUENCES: how many instead of these; UPPER_TEST_SEED: the first. */
static void test_way(enum way way)
{
    struct bench bench = { .way = way, .dir = "/tmp/changes-test-XXXXXX", .fd = -1 };
    AUTO(fd_close) int tmp = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    (void)umask(022);
    CHECK(test_mkdtemp(bench.dir));
    int r = enter_namespaces(way);
    if (r < 0) {
        (void)rmdir(bench.dir);
        SKIP("no namespace for mounting: %s", strerror(-r));
    }
    open_bench(&bench);
    if (getenv("UPPER_TEST_SEQUENCES"))
        (void)alarm(0); /* no timeout for a longer run that was requested */
    try_all(&bench, number("UPPER_TEST_SEED", 1), number("UPPER_TEST_SEQUENCES", SEQUENCES));
    fd_close(bench.fd);
    (void)umount2(bench.dir, 0);
    remove_tree(tmp, bench.dir + strlen("/tmp/"));
}

TEST(random_edits_give_the_tree_of_git_in_a_user_namespace)
{
    test_way(IN_A_USERNS);
}

TEST(random_edits_give_the_tree_of_git_as_root)
{
    if (geteuid() != 0)
        SKIP("only root mounts an overlay with trusted attributes");
    test_way(AS_ROOT);
}

TEST(lists_of_paths_are_searched_by_bytes)
{
    static const char *const paths[] = { "a", "a-b", "a/b", "a0", "b/c/d" };

    CHECK(paths_have(paths, 5, "a/b"));
    CHECK(!paths_have(paths, 5, "a/"));
    CHECK(!paths_have(paths, 0, "a"));
    CHECK(paths_have_below(paths, 5, "a"));
    CHECK(!paths_have_below(paths, 5, "a0"));
    CHECK(!paths_have_below(paths, 5, "a-"));
    CHECK(paths_have_below(paths, 5, "b"));
    CHECK(paths_have_below(paths, 5, "b/c"));
    CHECK(!paths_have_below(paths, 5, "b/c/d"));
    CHECK(!paths_have_below(paths, 5, "c"));
    CHECK_EQ(paths_find(paths, 5, "a."), 2);
}
