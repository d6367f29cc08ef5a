#include "git/format/config.h"
#include "workspace/place_fixture.h"
#include "workspace/private.h"
#include <limits.h>

#define BRANCH "task-T-run-R"

static int make_dir(struct fixture *fx, const char *name)
{
    char path[256];

    (void)snprintf(path, sizeof(path), "%s/%s", fx->top, name);
    CHECK_EQ(mkdir(path, 0755), 0);
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    CHECK(fd >= 0);
    return fd;
}

static void put(int dir, const char *name, const char *text)
{
    AUTO(fd_close) int fd = openat(dir, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

    CHECK(fd >= 0);
    CHECK_EQ(fd_write_all(fd, text, strlen(text)), 0);
}

static void check_text(int dir, const char *name, const char *expected)
{
    char text[4096];

    CHECK(fd_read_file(dir, name, text, sizeof(text)) >= 0);
    CHECK_STR(text, expected);
}

/* The user's own configuration directory, with a global configuration of this text. */
static int make_home(struct fixture *fx, const char *config)
{
    char path[256];
    int home = make_dir(fx, "home");

    (void)snprintf(path, sizeof(path), "%s/home", fx->top);
    CHECK_EQ(setenv("HOME", path, 1), 0);
    put(home, ".gitconfig", config);
    return home;
}

/* What git makes of the template's configuration. */
static void read_config(struct fixture *fx, struct buf *out)
{
    fixture_git(fx,
            GIT_WORDS("config", "-f", "../template/config", "--includes", "--list", "-z"), out);
}

TEST(the_template_has_the_users_name_and_filters_and_nothing_else)
{
    AUTO(buf_finish) struct buf config = BUF_INIT(65536);
    struct fixture fx;

    fixture_init(&fx);
    AUTO(fd_close)
    int home =
            make_home(&fx, "[user]\n\tname = \"Ada \\\"L\\\"\"\n\temail = ada@example.org\n"
                           "[filter \"lfs\"]\n\tclean = \"git-lfs clean -- %f\"\n\trequired\n"
                           "[credential]\n\thelper = store\n[include]\n\tpath = more\n"
                           "[url \"ssh://x/\"]\n\tinsteadOf = https://x/\n");
    put(home, "more", "[core]\n\tautocrlf = input\n[alias]\n\tx = !touch /tmp/x\n");
    fixture_git(
            &fx, GIT_WORDS("remote", "add", "origin", "https://u:secret@example.org/"), NULL);
    AUTO(fd_close) int dir = make_dir(&fx, "template");
    CHECK_EQ(private_make_template(fx.repo, dir, &fx.err), 0);

    read_config(&fx, &config);
    CHECK_STR(config_find(config.data, config.len, "user.name"), "Ada \"L\"");
    CHECK_STR(config_find(config.data, config.len, "user.email"), "ada@example.org");
    CHECK_STR(config_find(config.data, config.len, "filter.lfs.clean"), "git-lfs clean -- %f");
    CHECK(memmem(config.data, config.len, "filter.lfs.required", 20));
    CHECK_STR(config_find(config.data, config.len, "core.autocrlf"), "input");
    CHECK_STR(config_find(config.data, config.len, "core.bare"), "false");
    static const char *const words[] = { "secret", "remote", "credential", "include", "url",
        "alias", "hookspath" };
    for (size_t i = 0; i < ARRAY_LEN(words); i++)
        CHECK(!memmem(config.data, config.len, words[i], strlen(words[i])));

    check_text(dir, "objects/info/alternates", "/run/carrel/objects\n");
    CHECK_EQ(faccessat(dir, "hooks", F_OK, 0), 0);
    CHECK_EQ(faccessat(dir, "objects/pack", F_OK, 0), 0);
    CHECK_EQ(faccessat(dir, "refs/heads", F_OK, 0), 0);
    CHECK(faccessat(dir, "shallow", F_OK, 0) < 0);
    CHECK(faccessat(dir, "HEAD", F_OK, 0) < 0); /* so that nobody takes it for a repository */
    fixture_finish(&fx);
}

TEST(the_users_excludes_come_before_the_repositorys)
{
    struct fixture fx;

    fixture_init(&fx);
    AUTO(fd_close) int home = make_home(&fx, "[core]\n\texcludesFile = ~/my ignore\n");
    put(home, "my ignore", "*.o"); /* without a newline at its end */
    fixture_write(&fx, "repo/.git/info/exclude", "!a.o\n");
    AUTO(fd_close) int dir = make_dir(&fx, "template");
    CHECK_EQ(private_make_template(fx.repo, dir, &fx.err), 0);
    check_text(dir, "info/exclude", "*.o\n!a.o\n");
    fixture_finish(&fx);
}

TEST(excludes_and_attributes_are_found_in_their_usual_places)
{
    AUTO(buf_finish) struct buf config = BUF_INIT(65536);
    struct fixture fx;

    fixture_init(&fx);
    AUTO(fd_close) int home = make_home(&fx, "");
    CHECK_EQ(mkdirat(home, ".config", 0755), 0);
    CHECK_EQ(mkdirat(home, ".config/git", 0755), 0);
    put(home, ".config/git/ignore", "global\n");
    put(home, ".config/git/attributes", "*.txt text\n");
    fixture_write(&fx, "repo/.git/info/exclude", "");
    fixture_write(&fx, "repo/.git/info/attributes", "*.bin -text\n");
    AUTO(fd_close) int dir = make_dir(&fx, "template");
    CHECK_EQ(private_make_template(fx.repo, dir, &fx.err), 0);
    check_text(dir, "info/exclude", "global\n");
    check_text(dir, "info/attributes", "*.bin -text\n");
    read_config(&fx, &config);
    CHECK_STR(config_find(config.data, config.len, "core.attributesfile"),
            PRIVATE_GIT_DIR "/info/user-attributes");
    char text[256];
    CHECK(fd_read_file(dir, "info/user-attributes", text, sizeof(text)) > 0);
    CHECK(strstr(text, "*.txt text\n"));
    fixture_finish(&fx);
}

TEST(alternates_and_shallow_are_carried_over)
{
    struct fixture fx;
    char *three[] = { "/a", "/b", "/c", NULL };

    fixture_init(&fx);
    fixture_write(&fx, "repo/.git/shallow", "0123456789012345678901234567890123456789\n");
    struct repo repo = *fx.repo;
    repo.objects = three;
    AUTO(fd_close) int dir = make_dir(&fx, "template");
    CHECK_EQ(private_make_template(&repo, dir, &fx.err), 0);
    check_text(dir, "objects/info/alternates",
            "/run/carrel/objects\n/run/carrel/objects-1\n/run/carrel/objects-2\n");
    check_text(dir, "shallow", "0123456789012345678901234567890123456789\n");
    fixture_finish(&fx);
}

TEST(git_works_with_template_and_upper_together)
{
    AUTO(buf_finish) struct buf out = BUF_INIT(65536);
    struct fixture fx;
    char objects[PATH_MAX + 16];
    char git_dir[256];

    fixture_init(&fx);
    fixture_git(&fx, GIT_WORDS("tag", "-m", "x", "v1"), NULL);
    fixture_git(&fx, GIT_WORDS("branch", "task-other-run-1"), NULL); /* not shown to others */
    fixture_git(&fx, GIT_WORDS("branch", "a"), NULL);
    fixture_git(&fx, GIT_WORDS("branch", "task-T-run"), NULL);
    fixture_git(&fx, GIT_WORDS("branch", "task-T-run-R.x.lock.y"), NULL);
    fixture_git(&fx, GIT_WORDS("branch", "zebra"), NULL);
    /* One directory for both: what the overlay would show. */
    AUTO(fd_close) int dir = make_dir(&fx, "template");
    CHECK_EQ(private_make_template(fx.repo, dir, &fx.err), 0);
    CHECK_EQ(private_make_upper(fx.repo, dir, BRANCH, fx.base, &fx.err), 0);
    (void)snprintf(objects, sizeof(objects), "%s/objects\n", fx.repo->common_dir);
    put(dir, "objects/info/alternates", objects);

    (void)snprintf(git_dir, sizeof(git_dir), "%s/template", fx.top);
    fx.git.git_dir = git_dir;
    fx.git.work_tree = fx.where;
    fixture_git(&fx, GIT_WORDS("for-each-ref", "--format=%(refname) %(objecttype)"), &out);
    CHECK_STR(out.data,
            "refs/heads/a commit\nrefs/heads/main commit\nrefs/heads/task-T-run commit\n"
            "refs/heads/" BRANCH " commit\nrefs/heads/zebra commit\nrefs/tags/v1 tag\n");
    char oid[OID_MAX];
    fixture_ask(&fx, GIT_WORDS("rev-parse", "refs/heads/" BRANCH), oid, sizeof(oid));
    CHECK_STR(oid, fx.base); /* found by git's search, which trusts the order */
    fixture_git(&fx, GIT_WORDS("fsck", "--strict", "--no-progress"), NULL);
    buf_clear(&out);
    fixture_git(&fx, GIT_WORDS("reflog", "--format=%gs"), &out);
    CHECK_STR(out.data, "carrel: start of the run\n");
    fixture_git(&fx, GIT_WORDS("reset", "-q"), NULL);
    buf_clear(&out);
    fixture_git(&fx, GIT_WORDS("status", "--porcelain", "-b"), &out);
    CHECK_STR(out.data, "## " BRANCH "\n");
    fixture_write(&fx, "repo/file", "more");
    fixture_git(&fx, GIT_WORDS("commit", "-q", "-a", "-m", "more"), NULL);
    fx.git.git_dir = NULL;
    fx.git.work_tree = NULL;
    CHECK(fixture_has_branch(&fx, "main", fx.base)); /* the repository knows nothing of it */
    fixture_finish(&fx);
}

/* An upper as a run finds it. */
static int make_upper(struct fixture *fx)
{
    fixture_init(fx);
    int dir = make_dir(fx, "upper");
    CHECK_EQ(private_make_upper(fx->repo, dir, BRANCH, fx->base, &fx->err), 0);
    CHECK(private_is_untouched(dir, BRANCH, fx->base));
    return dir;
}

/* As a run does that makes a loose ref. */
static void make_heads(int dir)
{
    CHECK_EQ(mkdirat(dir, "refs", 0755), 0);
    CHECK_EQ(mkdirat(dir, "refs/heads", 0755), 0);
}

TEST(an_upper_that_only_looking_changed_is_untouched)
{
    static const char index_2[] = "DIRC\0\0\0\2\0\0\0\0 and so on";
    struct fixture fx;
    AUTO(fd_close) int dir = make_upper(&fx);
    AUTO(fd_close) int fd = openat(dir, "index", O_WRONLY | O_CREAT | O_CLOEXEC, 0644);

    CHECK_EQ(fd_write_all(fd, index_2, sizeof(index_2)), 0);
    put(dir, "logs/HEAD", "x");
    put(dir, "COMMIT_EDITMSG", "x");
    CHECK(private_is_untouched(dir, BRANCH, fx.base));
    fixture_finish(&fx);
}

TEST(every_change_that_could_matter_is_noticed)
{
    static const char *const files[] = { "HEAD", ("refs/heads/" BRANCH), "index", "config",
        "config.worktree", "objects", "info", "commondir" };

    for (size_t i = 0; i < ARRAY_LEN(files); i++) {
        struct fixture fx;
        AUTO(fd_close) int dir = make_upper(&fx);
        make_heads(dir);
        CHECK(private_is_untouched(dir, BRANCH, fx.base));
        put(dir, files[i], "DIRC\0\0\0\3");
        CHECK(!private_is_untouched(dir, BRANCH, fx.base));
        fixture_finish(&fx);
    }
}

TEST(a_branch_that_moved_or_grew_or_went_is_noticed)
{
    struct fixture fx;
    AUTO(fd_close) int dir = make_upper(&fx);
    char text[2 * OID_MAX];

    CHECK(!private_is_untouched(dir, BRANCH, "0123456789012345678901234567890123456789"));
    CHECK(!private_is_untouched(dir, "other", fx.base));
    make_heads(dir);
    (void)snprintf(text, sizeof(text), "%s\nx", fx.base);
    put(dir, "refs/heads/" BRANCH, text);
    CHECK(!private_is_untouched(dir, BRANCH, fx.base));
    text[strlen(fx.base) + 1] = '\0';
    put(dir, "refs/heads/" BRANCH, text);
    CHECK(private_is_untouched(dir, BRANCH, fx.base)); /* loose, but where it was */
    CHECK_EQ(unlinkat(dir, "refs/heads/" BRANCH, 0), 0);
    CHECK_EQ(mkdirat(dir, "refs/heads/" BRANCH, 0755), 0);
    CHECK(!private_is_untouched(dir, BRANCH, fx.base));
    CHECK_EQ(unlinkat(dir, "refs/heads/" BRANCH, AT_REMOVEDIR), 0);
    CHECK(private_is_untouched(dir, BRANCH, fx.base));
    (void)snprintf(text, sizeof(text), "x%s refs/heads/" BRANCH "\n", fx.base);
    put(dir, "packed-refs", text);
    CHECK(!private_is_untouched(dir, BRANCH, fx.base));
    CHECK_EQ(unlinkat(dir, "packed-refs", 0), 0);
    CHECK(!private_is_untouched(dir, BRANCH, fx.base));
    fixture_finish(&fx);
}

TEST(links_and_pipes_of_a_run_are_not_followed)
{
    struct fixture fx;
    AUTO(fd_close) int dir = make_upper(&fx);

    CHECK_EQ(symlinkat("moved", dir, "refs"), 0);
    CHECK(!private_is_untouched(dir, BRANCH, fx.base));
    CHECK_EQ(unlinkat(dir, "refs", 0), 0);
    CHECK_EQ(renameat(dir, "packed-refs", dir, "moved"), 0);
    CHECK_EQ(symlinkat("moved", dir, "packed-refs"), 0);
    CHECK(!private_is_untouched(dir, BRANCH, fx.base));
    CHECK_EQ(unlinkat(dir, "packed-refs", 0), 0);
    CHECK_EQ(renameat(dir, "moved", dir, "packed-refs"), 0);
    CHECK(private_is_untouched(dir, BRANCH, fx.base));
    CHECK_EQ(renameat(dir, "HEAD", dir, "head"), 0);
    CHECK_EQ(symlinkat("head", dir, "HEAD"), 0);
    CHECK(!private_is_untouched(dir, BRANCH, fx.base));
    CHECK_EQ(unlinkat(dir, "HEAD", 0), 0);
    CHECK_EQ(mkfifoat(dir, "HEAD", 0644), 0);
    CHECK(!private_is_untouched(dir, BRANCH, fx.base)); /* and does not wait for a writer */
    fixture_finish(&fx);
}
