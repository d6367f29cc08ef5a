#include "base/err.h"
#include "workspace/git_fixture.h"
#include "workspace/source/dirty.h"
#include <errno.h>

static struct carrel_error err;

static struct repo *set_up(void)
{
    struct repo *repo = NULL;

    SHELL("git init -q user; cd user; mkdir dir; echo a > a; echo b > dir/b; echo c > c;"
          "git add .; git commit -q -m base");
    CHECK_EQ(repo_open("user", &repo, &err), 0);
    return repo;
}

#define SET_UP()                                                                               \
    AUTO(fixture_close) struct fixture at = fixture_open();                                    \
    AUTO(repo_free) struct repo *repo = set_up();                                              \
    char oid[OID_MAX]

TEST(a_clean_tree_is_head)
{
    SET_UP();
    SHELL("touch user/a; echo u > user/untracked");
    CHECK_EQ(dirty_commit(repo, oid, &err), 0);
    CHECK_STR(oid, printed("git -C user rev-parse HEAD"));
}

TEST(staged_and_unstaged_work_is_one_commit_on_head_and_nothing_is_touched)
{
    SET_UP();
    SHELL("cd user; echo more >> a; echo new > new; git add new; rm c; chmod +x dir/b;"
          "echo u > untracked; git status --porcelain > ../before; sha1sum .git/index > "
          "../index;"
          "git for-each-ref > ../refs; git reflog > ../reflog");
    CHECK_EQ(dirty_commit(repo, oid, &err), 0);
    CHECK_STR(printed("git -C user log -1 --format='%%s %%an %%P' %s", oid),
            printed("echo Uncommitted work Tester $(git -C user rev-parse HEAD)"));
    CHECK_STR(printed("git -C user diff --name-status HEAD %s | tr '\\t\\n' ' ;'", oid),
            "M a;D c;M dir/b;A new;");
    SHELL("cd user; sha1sum -c --status ../index; git for-each-ref | cmp - ../refs;"
          "git reflog | cmp - ../reflog; test ! -e .git/refs/stash;"
          "git status --porcelain | cmp - ../before; ls .git | grep -v carrel >/dev/null");
}

TEST(a_user_without_a_name_can_start_too)
{
    SET_UP();
    SHELL("rm home/.gitconfig; git config --global user.useConfigOnly true; echo x >> user/a");
    CHECK_EQ(dirty_commit(repo, oid, &err), 0);
    CHECK_STR(printed("git -C user log -1 --format=%%an %s", oid), "carrel");
}

TEST(an_unfinished_merge_is_refused_with_the_reason)
{
    SET_UP();
    SHELL("cd user; git checkout -q -b side; echo s > a; git commit -qam s; git checkout -q "
          "main;"
          "echo m > a; git commit -qam m; git merge side >/dev/null 2>&1 || :");
    CHECK_EQ(dirty_commit(repo, oid, &err), -EIO);
    CHECK(strstr(err.message, "read the uncommitted work in '"));
}

TEST(a_bare_repository_has_no_uncommitted_work)
{
    SET_UP();
    SHELL("git clone -q --bare user bare");
    AUTO(repo_free) struct repo *bare = NULL;
    CHECK_EQ(repo_open("bare", &bare, &err), 0);
    CHECK_EQ(dirty_commit(bare, oid, &err), -EINVAL);
}
