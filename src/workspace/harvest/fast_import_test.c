/* Commits of changes have the same trees that git itself would write. */
#include "git/git.h"
#include "workspace/harvest_fixture.h"

static const struct harvest_author author = {
    .name = "carrel",
    .email = "carrel@localhost",
    .when_s = 1700000001,
};

static struct fixture fx;
static int upper = -1; /* where the run's files are */
static char oid[OID_MAX];
static char text[1024];

/* A change list like that of a walk. */
static struct change items[64];
static struct changes list;

static void open_upper(void)
{
    char path[128];

    (void)snprintf(path, sizeof(path), "%s/upper", fx.top);
    fd_close(upper);
    upper = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    CHECK(upper >= 0);
}

static void begin(const char *init_options)
{
    fixture_init(&fx, init_options);
    open_upper();
}

static void forget_changes(void)
{
    for (size_t i = 0; i < list.n; i++)
        free(items[i].path);
    list.n = 0;
}

static void end(void)
{
    forget_changes();
    fd_close(upper);
    fixture_finish(fx);
}

/* Sizes are read from the files. */
static void add(enum change_kind kind, const char *path)
{
    struct change *change = &items[list.n++];
    struct stat st = { 0 };

    CHECK(list.n <= ARRAY_LEN(items));
    if (kind != CHANGE_REMOVE)
        CHECK_EQ(fstatat(upper, path, &st, AT_SYMLINK_NOFOLLOW), 0);
    *change =
            (struct change){ .path = strdup(path), .kind = kind, .size = (uint64_t)st.st_size };
    CHECK(change->path);
    list.items = items;
}

static void put(const char *name, const char *content, mode_t mode)
{
    AUTO(fd_close)
    int fd = openat(upper, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);

    CHECK(fd >= 0);
    CHECK_EQ(fd_write_all(fd, content, strlen(content)), 0);
}

static const struct harvest_limits limits = HARVEST_LIMITS_INIT;

static int commit(const char *message)
{
    return harvest_commit_changes(&fx.repo, fx.quarantine, upper, &list, fx.tree, fx.base,
            message, &author, &limits, oid, &fx.err);
}

TEST(changes_become_a_commit_over_the_parent)
{
    begin("");
    put("a", "changed\n", 0644);
    put("new", "#!/bin/sh\n", 0755);
    put("empty", "", 0644);
    CHECK_EQ(symlinkat("../else where", upper, "link"), 0);
    add(CHANGE_REMOVE, "dir/deep");
    add(CHANGE_FILE, "a");
    add(CHANGE_FILE, "empty");
    add(CHANGE_LINK, "link");
    add(CHANGE_EXECUTABLE, "new");
    CHECK_EQ(commit("snapshot"), 0);

    ask(&fx, text, sizeof(text), "cat-file commit %s | sed 1d", oid);
    char expected[512];
    (void)snprintf(expected, sizeof(expected),
            "parent %s\nauthor carrel <carrel@localhost> 1700000001 +0000\n"
            "committer carrel <carrel@localhost> 1700000001 +0000\n\nsnapshot",
            fx.base);
    CHECK_STR(text, expected);
    ask(&fx, text, sizeof(text), "ls-tree -r --format='%%(objectmode) %%(path)' %s", oid);
    CHECK_STR(text, "100644 a\n100644 dir/b\n100644 empty\n120000 link\n100755 new");
    ask(&fx, text, sizeof(text), "cat-file blob %s:link", oid);
    CHECK_STR(text, "../else where");
    ask(&fx, text, sizeof(text), "fsck --strict --no-dangling %s", oid);
    sh(text, sizeof(text), "cd %s/repo && git for-each-ref && ls .git && git status -s",
            fx.top);
    CHECK(!strstr(text, "made") && !strstr(text, "crash"));
    end();
}

TEST(a_sha256_repository_works_the_same)
{
    begin("--object-format=sha256");
    put("a", "changed\n", 0644);
    add(CHANGE_FILE, "a");
    CHECK_EQ(commit(""), 0);
    CHECK_EQ(strlen(oid), 64);
    ask(&fx, text, sizeof(text), "cat-file blob %s:a", oid);
    CHECK_STR(text, "changed");
    end();
}

TEST(without_a_difference_the_parent_is_the_answer)
{
    begin("");
    CHECK_EQ(commit("x"), 0);
    CHECK_STR(oid, fx.base);
    put("a", "a\n", 0644); /* only copied up */
    add(CHANGE_REMOVE, "never there");
    add(CHANGE_FILE, "a");
    CHECK_EQ(commit("x"), 0);
    CHECK_STR(oid, fx.base);
    CHECK_EQ(quarantined(&fx), 0);
    end();
}

TEST(everything_may_be_removed)
{
    begin("");
    add(CHANGE_REMOVE, "a");
    add(CHANGE_REMOVE, "dir");
    CHECK_EQ(commit("x"), 0);
    ask(&fx, text, sizeof(text), "rev-parse %s:", oid);
    CHECK_STR(text, "4b825dc642cb6eb9a060e54bf8d69288fbee4904");
    end();
}

TEST(files_and_directories_change_places)
{
    begin("");
    CHECK_EQ(mkdirat(upper, "a", 0700), 0);
    put("a/inside", "1", 0600);
    put("dir", "2", 0600);
    add(CHANGE_REMOVE, "a");
    add(CHANGE_REMOVE, "dir");
    add(CHANGE_FILE, "a/inside");
    add(CHANGE_FILE, "dir");
    CHECK_EQ(commit("x"), 0);
    ask(&fx, text, sizeof(text), "ls-tree -r --name-only %s", oid);
    CHECK_STR(text, "a/inside\ndir");
    end();
}

TEST(names_may_have_any_bytes)
{
    static const char *const names[] = { " lead", "\"", "\"quoted\"", "-x", "D a", "M 100644",
        "\\", "\\n", "a\nb", "new\n", "tab\there", "trail ", "\x01\x02", "\x7f", "\xc3\xa4",
        "\xff\xfe" };
    char tree[OID_MAX];
    char expected[OID_MAX];

    begin("");
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        put(names[i], names[i], 0644);
        add(CHANGE_FILE, names[i]);
    }
    CHECK_EQ(commit("x"), 0);
    ask(&fx, tree, sizeof(tree), "rev-parse %s:", oid);
    sh(expected, sizeof(expected),
            "cp -a %s/upper/. %s/run/ && cd %s/run && git add -A && git"
            " write-tree",
            fx.top, fx.top, fx.top);
    CHECK_STR(tree, expected);
    end();
}

TEST(large_files_pass_through)
{
    char blob[OID_MAX];
    char expected[OID_MAX];

    begin("");
    sh(NULL, 0, "cd %s/upper && head -c 3000000 /dev/urandom >some && truncate -s 40M much",
            fx.top);
    add(CHANGE_FILE, "much");
    add(CHANGE_FILE, "some");
    CHECK_EQ(commit("x"), 0);
    ask(&fx, blob, sizeof(blob), "rev-parse %s:some", oid);
    sh(expected, sizeof(expected), "git hash-object %s/upper/some", fx.top);
    CHECK_STR(blob, expected);
    ask(&fx, blob, sizeof(blob), "rev-parse %s:much", oid);
    sh(expected, sizeof(expected), "git hash-object %s/upper/much", fx.top);
    CHECK_STR(blob, expected);
    end();
}

TEST(names_that_mean_dot_git_are_refused_before_git_sees_them)
{
    static const char *const names[] = { "git~1", ".git ", ".g\xe2\x80\x8cit", "x\\.git" };

    begin("");
    (void)snprintf(oid, sizeof(oid), "untouched");
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        forget_changes();
        put(names[i], "", 0644);
        add(CHANGE_FILE, names[i]);
        CHECK_EQ(commit("x"), -EBADMSG);
        CHECK(strstr(fx.err.message, "is equivalent to '.git'"));
    }
    forget_changes();
    add(CHANGE_REMOVE, "");
    CHECK_EQ(commit("x"), -EBADMSG);
    CHECK_STR(oid, "untouched");
    CHECK_EQ(quarantined(&fx), 0);
    end();
}

TEST(a_gitmodules_file_that_attacks_is_refused)
{
    begin("");
    put(".gitmodules", "[submodule \"../x\"]\n\tpath = x\n\turl = -u./x\n", 0644);
    add(CHANGE_FILE, ".gitmodules");
    CHECK_EQ(commit("x"), -EBADMSG);
    CHECK_EQ(quarantined(&fx), 0);
    put(".gitmodules", "[submodule \"x\"]\n\tpath = x\n\turl = https://h/x\n", 0644);
    forget_changes();
    add(CHANGE_FILE, ".gitmodules");
    CHECK_EQ(commit("x"), 0);
    end();
}

TEST(what_changed_since_the_walk_is_an_error)
{
    begin("");
    put("a", "12345", 0644);
    add(CHANGE_FILE, "a");
    items[0].size = 4;
    CHECK_EQ(commit("x"), -ESTALE);
    items[0].size = 6;
    CHECK_EQ(commit("x"), -ESTALE);
    CHECK_STR(fx.err.message,
            "commit the changes: 'a' changed while it was read: is the run still active?");

    CHECK_EQ(unlinkat(upper, "a", 0), 0);
    CHECK_EQ(symlinkat("/etc/passwd", upper, "a"), 0);
    CHECK_EQ(commit("x"), -ELOOP);
    CHECK_EQ(unlinkat(upper, "a", 0), 0);
    CHECK_EQ(mkfifoat(upper, "a", 0600), 0);
    items[0].size = 0;
    CHECK_EQ(commit("x"), -ESTALE);
    CHECK_EQ(unlinkat(upper, "a", 0), 0);
    CHECK_EQ(commit("x"), -ENOENT);
    CHECK_EQ(quarantined(&fx), 0);
    end();
}

TEST(a_link_on_the_way_is_not_followed)
{
    begin("");
    CHECK_EQ(mkdirat(upper, "d", 0700), 0);
    put("d/passwd", "x", 0600);
    add(CHANGE_FILE, "d/passwd");
    CHECK_EQ(unlinkat(upper, "d/passwd", 0), 0);
    CHECK_EQ(unlinkat(upper, "d", AT_REMOVEDIR), 0);
    CHECK_EQ(symlinkat("/etc", upper, "d"), 0);
    CHECK_EQ(commit("x"), -ELOOP);
    end();
}

TEST(a_message_and_a_name_are_only_text)
{
    const struct harvest_author odd = { .name = "A <x>\nB", .email = "a@b>\n", .when_s = 5 };

    begin("");
    add(CHANGE_REMOVE, "a");
    CHECK_EQ(harvest_commit_changes(&fx.repo, fx.quarantine, upper, &list, fx.tree, fx.base,
                     "one\n\ndone\nreset refs/heads/main\n", &odd, &limits, oid, &fx.err),
            0);
    ask(&fx, text, sizeof(text), "log -1 --format='%%cn|%%ce|%%ct|%%B' %s", oid);
    CHECK_STR(text, "A xB|a@b|5|one\n\ndone\nreset refs/heads/main\n");
    end();
}

TEST(what_is_not_an_object_name_never_reaches_git)
{
    begin("");
    CHECK_EQ(harvest_commit_changes(&fx.repo, fx.quarantine, -1, &list, "HEAD", fx.base, "x",
                     &author, &limits, oid, &fx.err),
            -EINVAL);
    CHECK_EQ(harvest_commit_changes(&fx.repo, fx.quarantine, -1, &list, fx.tree,
                     "refs/heads/main\n", "x", &author, &limits, oid, &fx.err),
            -EINVAL);
    end();
}

TEST(what_a_killed_harvest_left_is_in_nobodys_way)
{
    begin("");
    sh(NULL, 0,
            "cd %s && mkdir -p scratch/objects/pack scratch/objects/info && echo junk"
            " >scratch/objects/pack/tmp_pack_x && echo /nowhere "
            ">scratch/objects/info/alternates",
            fx.quarantine);
    add(CHANGE_REMOVE, "a");
    CHECK_EQ(commit("x"), 0);
    sh(text, sizeof(text), "ls %s", fx.quarantine);
    CHECK_STR(text, "pack");
    CHECK_EQ(quarantined(&fx), 2); /* .pack and .idx */
    end();
}

/* Random edits, in a plain work tree and in a change list, give the same tree. */
TEST(random_edits_give_the_tree_that_git_writes)
{
    static const char *const dirs[] = { "", "dir/", "dir/deep/", "x/", "x/y/", "a/" };
    unsigned seed = 4711;

    begin("");
    for (int round = 0; round < 12; round++) {
        char path[32];
        char tree[OID_MAX];
        char expected[OID_MAX];

        sh(NULL, 0,
                "cd %s/run && git reset -q --hard %s && git clean -qdff && rm -rf ../upper &&"
                " mkdir ../upper",
                fx.top, fx.base);
        open_upper();
        forget_changes();
        for (int i = 0; i < 8; i++) { /* removals first, like a walk */
            (void)snprintf(path, sizeof(path), "%s%c", dirs[rand_r(&seed) % 4],
                    "abcd"[rand_r(&seed) % 4]);
            if (rand_r(&seed) % 3 == 0)
                continue;
            add(CHANGE_REMOVE, path);
            sh(NULL, 0, "rm -rf %s/run/%s", fx.top, path);
        }
        for (int i = 0; i < 10; i++) {
            (void)snprintf(path, sizeof(path), "%s%c%d", dirs[rand_r(&seed) % 5],
                    "abcd"[rand_r(&seed) % 4], i);
            sh(NULL, 0,
                    "for t in upper run; do cd %s/$t && p=%s && mkdir -p ./$(dirname $p) && "
                    "echo"
                    " %d >$p; done",
                    fx.top, path, (int)(rand_r(&seed) % 3));
            add(CHANGE_FILE, path);
        }
        CHECK_EQ(commit("x"), 0);
        ask(&fx, tree, sizeof(tree), "rev-parse %s:", oid);
        sh(expected, sizeof(expected), "cd %s/run && git add -A && git write-tree", fx.top);
        CHECK_STR(tree, expected);
    }
    end();
}

TEST(git_has_no_more_memory_than_it_is_given)
{
    struct harvest_limits few = HARVEST_LIMITS_INIT;

    begin("");
    put("a", "new", 0644);
    add(CHANGE_FILE, "a");
    few.max_memory_bytes = UINT64_C(1) << 20;
    CHECK(harvest_commit_changes(&fx.repo, fx.quarantine, upper, &list, fx.tree, fx.base, "x",
                  &author, &few, oid, &fx.err) < 0);
    CHECK_EQ(commit("x"), 0);
    end();
}
