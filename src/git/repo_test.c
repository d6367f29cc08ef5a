#include "base/err.h"
#include "git/name.h"
#include "git/ref.h"
#include "git/repo.h"
#include "workspace/git_fixture.h"
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

static struct carrel_error err;

static struct fixture open_repository(void)
{
    struct fixture at = fixture_open();

    SHELL("git init -q repo; cd repo; mkdir -p sub/deep; echo one > sub/deep/file; git add .;"
          "git commit -q -m first; echo two > sub/deep/file; git commit -q -a -m second");
    return at;
}

static struct repo *open_at(const char *dir)
{
    struct repo *repo = NULL;

    err.message[0] = '\0';
    (void)repo_open(dir, &repo, &err);
    CHECK_STR(err.message, "");
    return repo;
}

static const char *in(const struct fixture *at, const char *path)
{
    static char text[PATH_MAX];

    (void)snprintf(text, sizeof(text), "%s/%s", at->path, path);
    return text;
}

/* Resolves to the same commit as git does. */
static void check_resolves(const struct repo *repo, const char *dir, const char *rev)
{
    char oid[OID_MAX];

    err.message[0] = '\0';
    (void)repo_resolve(repo, rev, oid, &err);
    CHECK_STR(err.message, "");
    CHECK_STR(oid, printed("git -C %s rev-list -1 '%s'", dir, rev));
}

TEST(a_repository_is_found_from_any_directory_in_it)
{
    AUTO(fixture_close) struct fixture at = open_repository();
    static const char *const dirs[] = { "repo", "repo/sub", "repo/sub/deep", "repo/.git",
        "repo/sub/../../repo", "link/deep" };

    SHELL("ln -s repo/sub link");
    for (size_t i = 0; i < ARRAY_LEN(dirs); i++) {
        AUTO(repo_free) struct repo *repo = open_at(dirs[i]);
        CHECK_STR(repo->top, in(&at, "repo"));
        CHECK_STR(repo->git_dir, in(&at, "repo/.git"));
        CHECK_STR(repo->common_dir, in(&at, "repo/.git"));
        CHECK_STR(repo->objects[0], in(&at, "repo/.git/objects"));
        CHECK_STR(repo->objects[1], NULL);
        CHECK(repo->has_file_refs && !repo->is_sha256 && !repo->is_partial);
    }
}

TEST(a_folder_without_git_is_told_what_to_do)
{
    AUTO(fixture_close) struct fixture at = fixture_open();
    struct repo *repo = NULL;

    CHECK_EQ(repo_open(".", &repo, &err), -ENOENT);
    CHECK_STR(err.message,
            "'.' is not in a git repository. For a folder without git use --workdir DIR --cow");
    CHECK_EQ(repo_open("nowhere", &repo, &err), -ENOENT);
    CHECK_STR(err.message, "open 'nowhere': No such file or directory");
}

TEST(a_git_directory_that_is_none_is_passed_over_as_git_does)
{
    AUTO(fixture_close) struct fixture at = open_repository();

    SHELL("mkdir -p repo/sub/.git");
    AUTO(repo_free) struct repo *repo = open_at("repo/sub");
    CHECK_STR(repo->top, in(&at, "repo"));
}

TEST(a_linked_work_tree_has_its_own_head_and_shares_the_rest)
{
    AUTO(fixture_close) struct fixture at = open_repository();

    SHELL("cd repo; git worktree add -q -b other ../linked HEAD^; mkdir ../linked/x");
    AUTO(repo_free) struct repo *repo = open_at("linked/x");
    AUTO(repo_free) struct repo *from = open_at("repo");
    CHECK_STR(repo->top, in(&at, "linked"));
    CHECK_STR(repo->git_dir, in(&at, "repo/.git/worktrees/linked"));
    CHECK_STR(repo->common_dir, in(&at, "repo/.git"));
    CHECK_STR(repo->key, from->key);
    CHECK_STR(repo->objects[0], in(&at, "repo/.git/objects"));
    check_resolves(repo, "linked", "HEAD");
    check_resolves(from, "repo", "HEAD");
    check_resolves(repo, "linked", "main");
}

TEST(a_git_file_that_leads_nowhere_is_an_error_and_not_passed_over)
{
    AUTO(fixture_close) struct fixture at = open_repository();
    struct repo *repo = NULL;

    SHELL("echo 'gitdir: /run/nowhere/git' > repo/sub/.git");
    CHECK_EQ(repo_open("repo/sub", &repo, &err), -ENOENT);
    CHECK(strstr(err.message, "/run/nowhere/git"));
    SHELL("echo nonsense > repo/sub/.git");
    CHECK_EQ(repo_open("repo/sub", &repo, &err), -EBADMSG);
    SHELL("mkdir empty; echo 'gitdir: ../../empty' > repo/sub/.git");
    CHECK_EQ(repo_open("repo/sub", &repo, &err), -ENOENT);
    CHECK(strstr(err.message, "is not a git dir"));
}

TEST(a_bare_repository_has_no_work_tree)
{
    AUTO(fixture_close) struct fixture at = open_repository();

    SHELL("git clone -q --bare repo bare.git; git -C bare.git worktree add -q ../out main");
    AUTO(repo_free) struct repo *repo = open_at("bare.git");
    CHECK_STR(repo->top, NULL);
    CHECK_STR(repo->git_dir, in(&at, "bare.git"));
    CHECK_EQ(strncmp(repo->key, "bare-", 5), 0);
    check_resolves(repo, "bare.git", "main");
    AUTO(repo_free) struct repo *linked = open_at("out");
    CHECK_STR(linked->top, in(&at, "out"));
    CHECK_STR(linked->common_dir, in(&at, "bare.git"));
}

TEST(a_bare_repository_among_the_files_of_another_is_refused)
{
    AUTO(fixture_close) struct fixture at = open_repository();
    struct repo *refused = NULL;

    SHELL("git clone -q --bare repo repo/sub/planted");
    CHECK_EQ(repo_open("repo/sub/planted", &refused, &err), -EPERM);
    CHECK(strstr(err.message, "may have come with its content"));
    CHECK_EQ(repo_open("repo/sub/planted/refs", &refused, &err), -EPERM);
    SHELL("git config --global --add safe.directory %s/repo/sub/planted", at.path);
    AUTO(repo_free) struct repo *repo = open_at("repo/sub/planted");
    CHECK_STR(repo->top, NULL);
}

TEST(a_bare_repository_that_its_own_work_trees_surround_is_fine)
{
    AUTO(fixture_close) struct fixture at = open_repository();

    SHELL("mkdir project; git clone -q --bare repo project/.bare;"
          "echo 'gitdir: ./.bare' > project/.git; git -C project worktree add -q main main");
    AUTO(repo_free) struct repo *bare = open_at("project/.bare");
    AUTO(repo_free) struct repo *around = open_at("project");
    AUTO(repo_free) struct repo *tree = open_at("project/main");
    CHECK_STR(bare->top, NULL);
    CHECK_STR(around->top, NULL);
    CHECK_STR(tree->top, in(&at, "project/main"));
    CHECK_STR(bare->key, tree->key);
    CHECK_STR(around->key, tree->key);
}

TEST(a_submodule_is_a_repository_of_its_own)
{
    AUTO(fixture_close) struct fixture at = open_repository();

    SHELL("git init -q outer; cd outer;"
          "git -c protocol.file.allow=always submodule --quiet add ../repo lib");
    AUTO(repo_free) struct repo *repo = open_at("outer/lib/sub");
    CHECK_STR(repo->top, in(&at, "outer/lib"));
    CHECK_STR(repo->git_dir, in(&at, "outer/.git/modules/lib"));
    AUTO(repo_free) struct repo *inner = open_at("outer/.git/modules/lib");
    CHECK_STR(inner->top, in(&at, "outer/lib"));
    check_resolves(repo, "outer/lib", "HEAD");
}

TEST(a_separate_git_dir_is_followed)
{
    AUTO(fixture_close) struct fixture at = open_repository();

    struct repo *refused = NULL;

    SHELL("git clone -q --separate-git-dir=apart repo tree");
    CHECK_EQ(repo_open("tree", &refused, &err), -EPERM);
    const char *remedy = strstr(err.message, "git --git-dir");
    CHECK(remedy);
    SHELL("%s", remedy);
    AUTO(repo_free) struct repo *repo = open_at("tree");
    CHECK_STR(repo->top, in(&at, "tree"));
    CHECK_STR(repo->common_dir, in(&at, "apart"));
    AUTO(repo_free) struct repo *again = open_at(repo->common_dir);
    CHECK_STR(again->key, repo->key);
}

TEST(a_git_file_that_nothing_answers_is_refused)
{
    AUTO(fixture_close) struct fixture at = open_repository();
    struct repo *refused = NULL;

    SHELL("git init -q other; git -C other worktree add -q --orphan ../wt 2>/dev/null ||"
          "{ git -C other commit -q --allow-empty -m x; git -C other worktree add -q ../wt; };"
          "git clone -q --bare repo bare.git; mkdir evil");
    static const char *const places[] = { "other/.git", "other/.git/worktrees/wt", "bare.git" };
    for (size_t i = 0; i < ARRAY_LEN(places); i++) {
        SHELL("echo 'gitdir: ../%s' > evil/.git", places[i]);
        CHECK_EQ(repo_open("evil", &refused, &err), -EPERM);
        CHECK(strstr(err.message, "evil/.git' leads to"));
    }
    /* Its own git dir for the line, and another's for the content. */
    SHELL("mkdir evil/fake; echo 'gitdir: fake' > evil/.git; cp other/.git/HEAD evil/fake;"
          "echo %s/other/.git > evil/fake/commondir; echo ../.git > evil/fake/gitdir",
            at.path);
    CHECK_EQ(repo_open("evil", &refused, &err), -EPERM);
    CHECK(strstr(err.message, "evil/fake/commondir' leads to"));
}

TEST(a_work_tree_that_was_moved_is_mended_as_it_is_said)
{
    AUTO(fixture_close) struct fixture at = open_repository();
    struct repo *refused = NULL;

    SHELL("git -C repo worktree add -q ../wt; mv wt moved");
    CHECK_EQ(repo_open("moved", &refused, &err), -EPERM);
    const char *remedy = strstr(err.message, "git --git-dir");
    CHECK(remedy);
    SHELL("%s >/dev/null", remedy);
    AUTO(repo_free) struct repo *repo = open_at("moved");
    CHECK_STR(repo->top, in(&at, "moved"));
}

TEST(a_git_dir_with_a_common_dir_is_a_worktree_of_it)
{
    AUTO(fixture_close) struct fixture at = open_repository();
    struct repo *refused = NULL;

    SHELL("git clone -q repo other; echo %s/repo/.git > other/.git/commondir", at.path);
    CHECK_EQ(repo_open("other", &refused, &err), -EPERM);
    CHECK(strstr(err.message, "other/.git/commondir' leads to"));
    CHECK_EQ(repo_open("other/.git", &refused, &err), -EPERM);
    SHELL("git -C repo worktree add -q ../linked");
    AUTO(repo_free) struct repo *inside = open_at("repo/.git/worktrees/linked");
    CHECK_STR(inside->common_dir, in(&at, "repo/.git"));
}

TEST(a_work_tree_of_the_configuration_is_inside_or_leads_back)
{
    AUTO(fixture_close) struct fixture at = open_repository();
    struct repo *refused = NULL;

    SHELL("mkdir secret; ln -s ../secret repo/way");
    static const char *const places[] = { "../../secret", "../way", "/", "../.." };
    for (size_t i = 0; i < ARRAY_LEN(places); i++) {
        SHELL("git -C repo config core.worktree '%s'", places[i]);
        CHECK_EQ(repo_open("repo", &refused, &err), -EPERM);
        CHECK(strstr(err.message, "core.worktree in the configuration of"));
        AUTO(repo_free) struct repo *named = open_at("repo/.git");
        CHECK_STR(named->top, NULL);
    }
    SHELL("git -C repo config extensions.worktreeConfig true; cd repo;"
          "git config --unset core.worktree; git config --worktree core.worktree ../../secret");
    CHECK_EQ(repo_open("repo", &refused, &err), -EPERM);
}

TEST(a_configuration_without_filters_needs_no_git)
{
    AUTO(fixture_close) struct fixture at = open_repository();
    char path[200];

    SHELL("mkdir bin; printf '#!/bin/sh\\ntouch %s/RAN; exec /usr/bin/git \"$@\"\\n' > bin/git;"
          "chmod +x bin/git",
            at.path);
    (void)snprintf(path, sizeof(path), "%s/bin:/usr/bin:/bin", at.path);
    CHECK_EQ(setenv("PATH", path, 1), 0);
    AUTO(repo_free) struct repo *plain = open_at("repo");
    CHECK(access("RAN", F_OK) < 0);
    CHECK(!plain->settings && !plain->filters && !plain->may_fetch);
    SHELL("/usr/bin/git -C repo config filter.a.clean cat;"
          "/usr/bin/git -C repo config filter.b.required true;"
          "/usr/bin/git config --global filter.b.required false");
    AUTO(repo_free) struct repo *repo = open_at("repo");
    CHECK(access("RAN", F_OK) == 0);
    CHECK_STR(repo->filters, "a");
    CHECK_STR(repo->settings[0], "filter.a.clean=");
    CHECK_STR(repo->settings[1], "filter.b.required=false");
    CHECK_STR(repo->settings[2], NULL);
    SHELL("printf '[filter \"x=y\"]\\n\\tclean = cat\\n' >> repo/.git/config");
    struct repo *refused = NULL;
    CHECK_EQ(repo_open("repo", &refused, &err), -EINVAL);
    CHECK(strstr(err.message, "filter.x=y.clean"));
}

TEST(keys_are_one_component_and_differ_by_place)
{
    AUTO(fixture_close) struct fixture at = open_repository();

    SHELL("mkdir x; mv repo 'x/.a b$(c)'; git init -q '.a b$(c)'; git init -q %s",
            "llllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllll");
    AUTO(repo_free) struct repo *one = open_at("x/.a b$(c)");
    AUTO(repo_free) struct repo *two = open_at(".a b$(c)");
    AUTO(repo_free)
    struct repo *three = open_at(
            "llllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllll");
    CHECK_EQ(strncmp(one->key, "_a_b__c_-", 9), 0);
    CHECK_EQ(strlen(one->key), 8 + 1 + 16);
    CHECK(strcmp(one->key, two->key) != 0);
    CHECK_EQ(strlen(three->key), 40 + 1 + 16);
}

TEST(borrowed_objects_are_followed_through_every_repository)
{
    AUTO(fixture_close) struct fixture at = open_repository();

    SHELL("git clone -q -s repo second; git clone -q -s second 'thi\"rd';"
          "printf '# a comment\\n\\n/nonexistent\\n../../../second/.git/objects\\n\"%s/repo/"
          "\\\\056git/objects\"\\n' > 'thi\"rd/.git/objects/info/alternates'",
            at.path);
    AUTO(repo_free) struct repo *repo = open_at("thi\"rd");
    CHECK_STR(repo->objects[0], in(&at, "thi\"rd/.git/objects"));
    CHECK_STR(repo->objects[1], in(&at, "second/.git/objects"));
    CHECK_STR(repo->objects[2], in(&at, "repo/.git/objects"));
    CHECK_STR(repo->objects[3], NULL);
}

TEST(alternates_that_go_in_circles_or_too_deep_come_to_an_end)
{
    AUTO(fixture_close) struct fixture at = open_repository();
    size_t n = 0;

    SHELL("echo %s/repo/.git/objects > repo/.git/objects/info/alternates", at.path);
    AUTO(repo_free) struct repo *circle = open_at("repo");
    CHECK_STR(circle->objects[1], NULL);
    SHELL("rm repo/.git/objects/info/alternates; mkdir -p chain; cp -r repo chain/0;"
          "for i in 1 2 3 4 5 6 7 8 9; do cp -r repo chain/$i;"
          "echo ../../../$((i-1))/.git/objects > chain/$i/.git/objects/info/alternates; done");
    AUTO(repo_free) struct repo *deep = open_at("chain/9");
    while (deep->objects[n])
        n++;
    CHECK_EQ(n, 6);
}

TEST(the_form_of_the_repository_is_read_from_its_configuration)
{
    AUTO(fixture_close) struct fixture at = fixture_open();

    SHELL("git init -q --object-format=sha256 big; cd big; git commit -q --allow-empty -m x");
    AUTO(repo_free) struct repo *big = open_at("big");
    CHECK(big->is_sha256 && big->has_file_refs);
    check_resolves(big, "big", "HEAD");
    check_resolves(big, "big", "main");
    SHELL("git init -q strange; cd strange; git config core.repositoryformatversion 1;"
          "git config extensions.partialClone o; git config extensions.refStorage reftable");
    AUTO(repo_free) struct repo *strange = open_at("strange");
    CHECK(!strange->has_file_refs && strange->is_partial);
    SHELL("git init -q unknown; cd unknown; git config core.repositoryformatversion 1;"
          "git config extensions.fromTheFuture yes");
    AUTO(repo_free) struct repo *unknown = open_at("unknown");
    CHECK(!unknown->has_file_refs);
}

TEST(configuration_is_read_as_git_reads_it)
{
    AUTO(fixture_close) struct fixture at = open_repository();

    SHELL("cd repo; cat > .git/config <<'END'\n"
          "# [core] bare = true\n"
          "; another\n"
          "[alias] x = \"!f() { echo [core]; }; f\" ; [core]\n"
          "\tlong = one \\\n"
          "bare = true\n"
          "[remote \"core\"] bare = true\n"
          "[remote \"a]\\\"[core\"]\n"
          "\tbare = true\n"
          "[CORE]\n"
          "\tRepositoryFormatVersion=0 # zero\n"
          "\tbare = \"false\"\r\n"
          "\tworkTree = ../else\\\"where\n"
          "END\n"
          "mkdir 'else\"where'; git config core.worktree >/dev/null");
    AUTO(repo_free) struct repo *repo = open_at("repo");
    CHECK_STR(repo->top, in(&at, "repo/else\"where"));
    SHELL("printf '[core]\\n\\tbare\\n' > repo/.git/config");
    AUTO(repo_free) struct repo *bare = open_at("repo");
    CHECK_STR(bare->top, NULL);
}

TEST(configuration_that_is_none_is_refused)
{
    AUTO(fixture_close) struct fixture at = open_repository();
    static const char *const bad[] = { "[core", "[core]\\nx = \"open\\n",
        "[core]\\nx = \\\\q\\n", "=\\n", "[core \"a\\n\"]\\n",
        "[core]\\nrepositoryformatversion = 7\\n", "[core]\\nrepositoryformatversion = x\\n",
        "[core]\\nbare false\\n" };

    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct repo *repo = NULL;
        SHELL("printf '%s' > repo/.git/config", bad[i]);
        CHECK(repo_open("repo", &repo, &err) < 0);
    }
}

TEST(a_work_tree_may_have_configuration_of_its_own)
{
    AUTO(fixture_close) struct fixture at = open_repository();

    SHELL("cd repo; git config extensions.worktreeConfig true; git worktree add -q ../linked;"
          "git config --worktree core.bare true");
    AUTO(repo_free) struct repo *repo = open_at("repo");
    AUTO(repo_free) struct repo *linked = open_at("linked");
    CHECK_STR(repo->top, NULL);
    CHECK_STR(linked->top, in(&at, "linked"));
}

TEST(a_repository_of_another_user_is_refused_until_it_is_declared_safe)
{
    AUTO(fixture_close) struct fixture at = open_repository();
    struct repo *refused = NULL;
    char expected[400];

    if (getuid() != 0)
        SKIP("only root can give a repository away");
    SHELL("chown -R 12345 repo");
    CHECK_EQ(repo_open("repo/sub", &refused, &err), -EPERM);
    (void)snprintf(expected, sizeof(expected),
            "the repository '%s/repo' belongs to another user. If you trust it: "
            "git config --global --add safe.directory '%s/repo'",
            at.path, at.path);
    CHECK_STR(err.message, expected);

    CHECK_EQ(setenv("SUDO_UID", "12346", 1), 0);
    CHECK_EQ(repo_open("repo", &refused, &err), -EPERM);
    CHECK_EQ(setenv("SUDO_UID", "12345", 1), 0);
    AUTO(repo_free) struct repo *sudo = open_at("repo");
    CHECK_EQ(unsetenv("SUDO_UID"), 0);

    /* A repository cannot declare itself safe. */
    SHELL("printf '[safe]\\n\\tdirectory = *\\n' >> repo/.git/config");
    CHECK_EQ(repo_open("repo", &refused, &err), -EPERM);
    SHELL("git config --global --add safe.directory %s/repo", at.path);
    AUTO(repo_free) struct repo *declared = open_at("repo");
    SHELL("git config --global --add safe.directory ''");
    CHECK_EQ(repo_open("repo", &refused, &err), -EPERM);
    SHELL("git config --global --add safe.directory '*'");
    AUTO(repo_free) struct repo *all = open_at("repo");
}

TEST(revisions_mean_what_they_mean_to_git)
{
    AUTO(fixture_close) struct fixture at = open_repository();
    static const char *const revs[] = { "HEAD", "main", "HEAD^", "HEAD~1", "@", "topic/one",
        "refs/heads/main", "heads/main", "v1", "refs/tags/v1", "both", "origin", "origin/main",
        ":/first", "main@{0}", "ORIG_HEAD", "lower" };

    SHELL("cd repo; git branch topic/one HEAD^; git tag -a -m tag v1 HEAD^; git branch both;"
          "git tag both HEAD^; git update-ref refs/remotes/origin/main HEAD^;"
          "git symbolic-ref refs/remotes/origin/HEAD refs/remotes/origin/main;"
          "git update-ref ORIG_HEAD HEAD^; git update-ref refs/lower HEAD^; git branch lower");
    AUTO(repo_free) struct repo *repo = open_at("repo");
    for (int is_packed = 0; is_packed < 2; is_packed++) {
        for (size_t i = 0; i < ARRAY_LEN(revs); i++)
            check_resolves(repo, "repo", revs[i]);
        SHELL("git -C repo pack-refs --all");
    }
    check_resolves(repo, "repo", printed("git -C repo rev-parse HEAD"));
    check_resolves(repo, "repo", printed("git -C repo rev-parse --short HEAD"));
}

TEST(a_revision_that_is_none_is_refused_in_plain_words)
{
    AUTO(fixture_close) struct fixture at = open_repository();
    static const char *const bad[] = { "", "-x", "--all", "a\nb", "a\033b", "a\x7f" };
    AUTO(repo_free) struct repo *repo = open_at("repo");
    char oid[OID_MAX], expected[200];

    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        CHECK_EQ(repo_resolve(repo, bad[i], oid, &err), -EINVAL);
    CHECK_EQ(repo_resolve(repo, "nonsense", oid, &err), -ENOENT);
    (void)snprintf(expected, sizeof(expected),
            "'nonsense' is not a commit of the repository '%s/repo'", at.path);
    CHECK_STR(err.message, expected);
    CHECK_EQ(repo_resolve(repo, "HEAD:sub/deep/file", oid, &err), -ENOENT);
    CHECK_EQ(repo_resolve(repo, ":sub/deep/file", oid, &err), -ENOENT);
    CHECK_EQ(repo_resolve(repo, "../../etc/passwd", oid, &err), -ENOENT);
}

TEST(a_repository_without_a_commit_says_so)
{
    AUTO(fixture_close) struct fixture at = fixture_open();
    char oid[OID_MAX];

    SHELL("git init -q repo");
    AUTO(repo_free) struct repo *repo = open_at("repo");
    CHECK_EQ(repo_resolve(repo, NULL, oid, &err), -ENOENT);
    CHECK(strstr(err.message, "has no commit yet"));
}
