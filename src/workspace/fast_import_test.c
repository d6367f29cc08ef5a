/* Changes become commits: the same trees that git itself would write. */
#include "workspace/git.h"
#include "workspace/harvest_fixture.h"

static const struct harvest_author author = {
    .name = "carrel",
    .email = "carrel@localhost",
    .when_s = 1700000001,
};

static int open_upper(const struct fixture *fx)
{
    char path[128];

    (void)snprintf(path, sizeof(path), "%s/upper", fx->top);
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    CHECK(fd >= 0);
    return fd;
}

/* A change list as a walk would give it; sizes are read from the files. */
struct list {
    struct change items[64];
    struct changes changes;
};

static void add(struct list *list, int upper, enum change_kind kind, const char *path)
{
    struct change *change = &list->items[list->changes.n++];
    struct stat st = { 0 };

    CHECK(list->changes.n <= ARRAY_LEN(list->items));
    if (kind != CHANGE_REMOVE)
        CHECK_EQ(fstatat(upper, path, &st, AT_SYMLINK_NOFOLLOW), 0);
    *change =
            (struct change){ .path = strdup(path), .kind = kind, .size = (uint64_t)st.st_size };
    CHECK(change->path);
    list->changes.items = list->items;
}

static void list_finish(struct list list)
{
    for (size_t i = 0; i < list.changes.n; i++)
        free(list.items[i].path);
}
DEFINE_AUTO(struct list, list_finish)

static void put(int dir, const char *name, const char *text, mode_t mode)
{
    AUTO(fd_close) int fd = openat(dir, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);

    CHECK(fd >= 0);
    CHECK_EQ(fd_write_all(fd, text, strlen(text)), 0);
}

static int commit(struct fixture *fx, int upper, const struct list *list, const char *message,
        char oid[static OID_MAX])
{
    return harvest_commit_changes(&fx->repo, fx->quarantine, upper, &list->changes, fx->tree,
            fx->base, message, &author, oid, &fx->err);
}

TEST(changes_become_a_commit_over_the_parent)
{
    AUTO(fixture_finish) struct fixture fx;
    AUTO(list_finish) struct list list = { 0 };
    char oid[OID_MAX];
    char text[1024];

    fixture_init(&fx, "");
    AUTO(fd_close) int upper = open_upper(&fx);
    put(upper, "a", "changed\n", 0644);
    put(upper, "new", "#!/bin/sh\n", 0755);
    put(upper, "empty", "", 0644);
    CHECK_EQ(symlinkat("../else where", upper, "link"), 0);
    add(&list, upper, CHANGE_REMOVE, "dir/deep");
    add(&list, upper, CHANGE_FILE, "a");
    add(&list, upper, CHANGE_FILE, "empty");
    add(&list, upper, CHANGE_LINK, "link");
    add(&list, upper, CHANGE_EXECUTABLE, "new");
    CHECK_EQ(commit(&fx, upper, &list, "snapshot", oid), 0);

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
}

TEST(a_sha256_repository_works_the_same)
{
    AUTO(fixture_finish) struct fixture fx;
    AUTO(list_finish) struct list list = { 0 };
    char oid[OID_MAX];
    char text[64];

    fixture_init(&fx, "--object-format=sha256");
    AUTO(fd_close) int upper = open_upper(&fx);
    put(upper, "a", "changed\n", 0644);
    add(&list, upper, CHANGE_FILE, "a");
    CHECK_EQ(commit(&fx, upper, &list, "", oid), 0);
    CHECK_EQ(strlen(oid), 64);
    ask(&fx, text, sizeof(text), "cat-file blob %s:a", oid);
    CHECK_STR(text, "changed");
}

TEST(without_a_difference_the_parent_is_the_answer)
{
    AUTO(fixture_finish) struct fixture fx;
    AUTO(list_finish) struct list none = { 0 };
    AUTO(list_finish) struct list same = { 0 };
    char oid[OID_MAX];

    fixture_init(&fx, "");
    AUTO(fd_close) int upper = open_upper(&fx);
    CHECK_EQ(commit(&fx, upper, &none, "x", oid), 0);
    CHECK_STR(oid, fx.base);
    put(upper, "a", "a\n", 0644); /* merely copied up */
    add(&same, upper, CHANGE_REMOVE, "never there");
    add(&same, upper, CHANGE_FILE, "a");
    CHECK_EQ(commit(&fx, upper, &same, "x", oid), 0);
    CHECK_STR(oid, fx.base);
    CHECK_EQ(quarantined(&fx), 0);
}

TEST(everything_may_be_removed)
{
    AUTO(fixture_finish) struct fixture fx;
    AUTO(list_finish) struct list list = { 0 };
    char oid[OID_MAX];
    char text[64];

    fixture_init(&fx, "");
    AUTO(fd_close) int upper = open_upper(&fx);
    add(&list, upper, CHANGE_REMOVE, "a");
    add(&list, upper, CHANGE_REMOVE, "dir");
    CHECK_EQ(commit(&fx, upper, &list, "x", oid), 0);
    ask(&fx, text, sizeof(text), "rev-parse %s:", oid);
    CHECK_STR(text, "4b825dc642cb6eb9a060e54bf8d69288fbee4904");
}

TEST(files_and_directories_change_places)
{
    AUTO(fixture_finish) struct fixture fx;
    AUTO(list_finish) struct list list = { 0 };
    char oid[OID_MAX];
    char text[128];

    fixture_init(&fx, "");
    AUTO(fd_close) int upper = open_upper(&fx);
    CHECK_EQ(mkdirat(upper, "a", 0700), 0);
    put(upper, "a/inside", "1", 0600);
    put(upper, "dir", "2", 0600);
    add(&list, upper, CHANGE_REMOVE, "a");
    add(&list, upper, CHANGE_REMOVE, "dir");
    add(&list, upper, CHANGE_FILE, "a/inside");
    add(&list, upper, CHANGE_FILE, "dir");
    CHECK_EQ(commit(&fx, upper, &list, "x", oid), 0);
    ask(&fx, text, sizeof(text), "ls-tree -r --name-only %s", oid);
    CHECK_STR(text, "a/inside\ndir");
}

TEST(names_may_have_any_bytes)
{
    static const char *const names[] = { " lead", "\"", "\"quoted\"", "-x", "D a", "M 100644",
        "\\", "\\n", "a\nb", "new\n", "tab\there", "trail ", "\x01\x02", "\x7f", "\xc3\xa4",
        "\xff\xfe" };
    AUTO(fixture_finish) struct fixture fx;
    AUTO(list_finish) struct list list = { 0 };
    char oid[OID_MAX];
    char tree[OID_MAX];
    char expected[OID_MAX];

    fixture_init(&fx, "");
    AUTO(fd_close) int upper = open_upper(&fx);
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        put(upper, names[i], names[i], 0644);
        add(&list, upper, CHANGE_FILE, names[i]);
    }
    CHECK_EQ(commit(&fx, upper, &list, "x", oid), 0);
    ask(&fx, tree, sizeof(tree), "rev-parse %s:", oid);
    sh(expected, sizeof(expected),
            "cp -a %s/upper/. %s/run/ && cd %s/run && git add -A && git"
            " write-tree",
            fx.top, fx.top, fx.top);
    CHECK_STR(tree, expected);
}

TEST(large_files_pass_through)
{
    AUTO(fixture_finish) struct fixture fx;
    AUTO(list_finish) struct list list = { 0 };
    char oid[OID_MAX];
    char blob[OID_MAX];
    char expected[OID_MAX];

    fixture_init(&fx, "");
    sh(NULL, 0, "cd %s/upper && head -c 3000000 /dev/urandom >some && truncate -s 40M much",
            fx.top);
    AUTO(fd_close) int upper = open_upper(&fx);
    add(&list, upper, CHANGE_FILE, "much");
    add(&list, upper, CHANGE_FILE, "some");
    CHECK_EQ(commit(&fx, upper, &list, "x", oid), 0);
    ask(&fx, blob, sizeof(blob), "rev-parse %s:some", oid);
    sh(expected, sizeof(expected), "git hash-object %s/upper/some", fx.top);
    CHECK_STR(blob, expected);
    ask(&fx, blob, sizeof(blob), "rev-parse %s:much", oid);
    sh(expected, sizeof(expected), "git hash-object %s/upper/much", fx.top);
    CHECK_STR(blob, expected);
}

TEST(names_that_mean_dot_git_are_refused_before_git_sees_them)
{
    static const char *const names[] = { "git~1", ".git ", ".g\xe2\x80\x8cit", "x\\.git" };
    AUTO(fixture_finish) struct fixture fx;
    char oid[OID_MAX] = "untouched";

    fixture_init(&fx, "");
    AUTO(fd_close) int upper = open_upper(&fx);
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        AUTO(list_finish) struct list list = { 0 };
        put(upper, names[i], "", 0644);
        add(&list, upper, CHANGE_FILE, names[i]);
        CHECK_EQ(commit(&fx, upper, &list, "x", oid), -EBADMSG);
        CHECK(strstr(fx.err.message, "stands for '.git'"));
    }
    AUTO(list_finish) struct list all = { 0 };
    add(&all, upper, CHANGE_REMOVE, "");
    CHECK_EQ(commit(&fx, upper, &all, "x", oid), -EBADMSG);
    CHECK_STR(oid, "untouched");
    CHECK_EQ(quarantined(&fx), 0);
}

TEST(a_gitmodules_file_that_attacks_is_refused)
{
    AUTO(fixture_finish) struct fixture fx;
    AUTO(list_finish) struct list list = { 0 };
    char oid[OID_MAX];

    fixture_init(&fx, "");
    AUTO(fd_close) int upper = open_upper(&fx);
    put(upper, ".gitmodules", "[submodule \"../x\"]\n\tpath = x\n\turl = -u./x\n", 0644);
    add(&list, upper, CHANGE_FILE, ".gitmodules");
    CHECK_EQ(commit(&fx, upper, &list, "x", oid), -EBADMSG);
    CHECK_EQ(quarantined(&fx), 0);
    put(upper, ".gitmodules", "[submodule \"x\"]\n\tpath = x\n\turl = https://h/x\n", 0644);
    AUTO(list_finish) struct list good = { 0 };
    add(&good, upper, CHANGE_FILE, ".gitmodules");
    CHECK_EQ(commit(&fx, upper, &good, "x", oid), 0);
}

TEST(what_changed_since_the_walk_is_an_error)
{
    AUTO(fixture_finish) struct fixture fx;
    AUTO(list_finish) struct list list = { 0 };
    char oid[OID_MAX];

    fixture_init(&fx, "");
    AUTO(fd_close) int upper = open_upper(&fx);
    put(upper, "a", "12345", 0644);
    add(&list, upper, CHANGE_FILE, "a");
    list.items[0].size = 4;
    CHECK_EQ(commit(&fx, upper, &list, "x", oid), -ESTALE);
    list.items[0].size = 6;
    CHECK_EQ(commit(&fx, upper, &list, "x", oid), -ESTALE);
    CHECK_STR(fx.err.message,
            "commit the changes: 'a' changed while it was read: is the run still going?");

    CHECK_EQ(unlinkat(upper, "a", 0), 0);
    CHECK_EQ(symlinkat("/etc/passwd", upper, "a"), 0);
    CHECK_EQ(commit(&fx, upper, &list, "x", oid), -ELOOP);
    CHECK_EQ(unlinkat(upper, "a", 0), 0);
    CHECK_EQ(mkfifoat(upper, "a", 0600), 0);
    list.items[0].size = 0;
    CHECK_EQ(commit(&fx, upper, &list, "x", oid), -ESTALE);
    CHECK_EQ(unlinkat(upper, "a", 0), 0);
    CHECK_EQ(commit(&fx, upper, &list, "x", oid), -ENOENT);
    CHECK_EQ(quarantined(&fx), 0);
}

TEST(a_link_on_the_way_is_not_followed)
{
    AUTO(fixture_finish) struct fixture fx;
    AUTO(list_finish) struct list list = { 0 };
    char oid[OID_MAX];

    fixture_init(&fx, "");
    AUTO(fd_close) int upper = open_upper(&fx);
    CHECK_EQ(mkdirat(upper, "d", 0700), 0);
    put(upper, "d/passwd", "x", 0600);
    add(&list, upper, CHANGE_FILE, "d/passwd");
    CHECK_EQ(unlinkat(upper, "d/passwd", 0), 0);
    CHECK_EQ(unlinkat(upper, "d", AT_REMOVEDIR), 0);
    CHECK_EQ(symlinkat("/etc", upper, "d"), 0);
    CHECK_EQ(commit(&fx, upper, &list, "x", oid), -ELOOP);
}

TEST(a_message_and_a_name_are_only_text)
{
    AUTO(fixture_finish) struct fixture fx;
    AUTO(list_finish) struct list list = { 0 };
    const struct harvest_author odd = { .name = "A <x>\nB", .email = "a@b>\n", .when_s = 5 };
    char oid[OID_MAX];
    char text[256];

    fixture_init(&fx, "");
    AUTO(fd_close) int upper = open_upper(&fx);
    add(&list, upper, CHANGE_REMOVE, "a");
    CHECK_EQ(harvest_commit_changes(&fx.repo, fx.quarantine, upper, &list.changes, fx.tree,
                     fx.base, "one\n\ndone\nreset refs/heads/main\n", &odd, oid, &fx.err),
            0);
    ask(&fx, text, sizeof(text), "log -1 --format='%%cn|%%ce|%%ct|%%B' %s", oid);
    CHECK_STR(text, "A xB|a@b|5|one\n\ndone\nreset refs/heads/main\n");
}

TEST(what_is_not_an_object_name_never_reaches_git)
{
    AUTO(fixture_finish) struct fixture fx;
    AUTO(list_finish) struct list list = { 0 };
    char oid[OID_MAX];

    fixture_init(&fx, "");
    CHECK_EQ(harvest_commit_changes(&fx.repo, fx.quarantine, -1, &list.changes, "HEAD", fx.base,
                     "x", &author, oid, &fx.err),
            -EINVAL);
    CHECK_EQ(harvest_commit_changes(&fx.repo, fx.quarantine, -1, &list.changes, fx.tree,
                     "refs/heads/main\n", "x", &author, oid, &fx.err),
            -EINVAL);
}

TEST(what_a_killed_harvest_left_is_in_nobodys_way)
{
    AUTO(fixture_finish) struct fixture fx;
    AUTO(list_finish) struct list list = { 0 };
    char oid[OID_MAX];
    char text[256];

    fixture_init(&fx, "");
    sh(NULL, 0,
            "cd %s && mkdir -p scratch/objects/pack scratch/objects/info && echo junk"
            " >scratch/objects/pack/tmp_pack_x && echo /nowhere "
            ">scratch/objects/info/alternates",
            fx.quarantine);
    AUTO(fd_close) int upper = open_upper(&fx);
    add(&list, upper, CHANGE_REMOVE, "a");
    CHECK_EQ(commit(&fx, upper, &list, "x", oid), 0);
    sh(text, sizeof(text), "ls %s", fx.quarantine);
    CHECK_STR(text, "pack");
    CHECK_EQ(quarantined(&fx), 2); /* .pack and .idx */
}

/* Random edits, the same in a plain work tree and in a change list: the same tree. */
TEST(random_edits_give_the_tree_that_git_writes)
{
    AUTO(fixture_finish) struct fixture fx;
    static const char *const dirs[] = { "", "dir/", "dir/deep/", "x/", "x/y/", "a/" };
    unsigned seed = 4711;

    fixture_init(&fx, "");
    for (int round = 0; round < 12; round++) {
        AUTO(list_finish) struct list list = { 0 };
        char path[32];
        char oid[OID_MAX];
        char tree[OID_MAX];
        char expected[OID_MAX];

        sh(NULL, 0,
                "cd %s/run && git reset -q --hard %s && git clean -qdff && rm -rf ../upper &&"
                " mkdir ../upper",
                fx.top, fx.base);
        AUTO(fd_close) int upper = open_upper(&fx);
        for (int i = 0; i < 8; i++) { /* removals first, as a walk gives them */
            (void)snprintf(path, sizeof(path), "%s%c", dirs[rand_r(&seed) % 4],
                    "abcd"[rand_r(&seed) % 4]);
            if (rand_r(&seed) % 3 == 0)
                continue;
            add(&list, upper, CHANGE_REMOVE, path);
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
            add(&list, upper, CHANGE_FILE, path);
        }
        CHECK_EQ(commit(&fx, upper, &list, "x", oid), 0);
        ask(&fx, tree, sizeof(tree), "rev-parse %s:", oid);
        sh(expected, sizeof(expected), "cd %s/run && git add -A && git write-tree", fx.top);
        CHECK_STR(tree, expected);
    }
}
