#include "base/err.h"
#include "base/kill_fixture.h"
#include "workspace/exported.h"
#include "workspace/git_fixture.h"
#include "workspace/record.h"
#include <errno.h>

static struct carrel_error err;
static char path[PATH_MAX];

/* A workspace whose run has committed; the branch has its work. */
static struct workspace *set_up(struct repo **repo)
{
    struct workspace *ws = NULL;
    char state[128];
    char base[OID_MAX];

    SHELL("git init -q user; cd user; mkdir dir; echo a > a; echo b > dir/b; ln -s a link;"
          "echo '*.o' > .gitignore; git add .; git commit -q -m base");
    (void)snprintf(base, sizeof(base), "%s", printed("git -C user rev-parse HEAD"));
    (void)snprintf(state, sizeof(state), "%s", printed("mkdir -p state; echo $PWD/state"));
    CHECK_EQ(repo_open("user", repo, &err), 0);
    const struct workspace_request request = {
        .state = state, .repo = *repo, .task = "T-1", .run = "R-1", .base = base
    };
    CHECK_EQ(workspace_create(&request, &ws, &err), 0);
    SHELL("git clone -q user run; cd run; echo r >> a; mkdir new; echo n > new/n; chmod +x "
          "dir/b;"
          "echo '* filter=evil' > .gitattributes; git add -A; git commit -q -m run;"
          "git -C ../user fetch -q ../run; git -C ../user update-ref "
          "refs/heads/task-T-1-run-R-1 FETCH_HEAD;"
          "git -C ../user config filter.evil.smudge 'touch %s/RAN; cat'",
            printed("pwd"));
    (void)snprintf(ws->branch_at, sizeof(ws->branch_at), "%s",
            printed("git -C user rev-parse task-T-1-run-R-1"));
    CHECK_EQ(workspace_save(ws, &err), 0);
    return ws;
}

#define SET_UP()                                                                               \
    AUTO(fixture_close) struct fixture at = fixture_open();                                    \
    AUTO(repo_free) struct repo *repo = NULL;                                                  \
    AUTO(workspace_free) struct workspace *ws = set_up(&repo)

static int opened(struct workspace *ws, struct repo *repo, const char *where)
{
    return opened_open(ws, repo, where, path, sizeof(path), &err);
}

TEST(unmodified_git_works_in_an_opened_workspace)
{
    SET_UP();
    CHECK_EQ(opened(ws, repo, NULL), 0);
    CHECK_STR(path, printed("echo $PWD/state/workspaces/T-1/runs/R-1"));
    CHECK(ws->is_opened);
    SHELL("test ! -e RAN; cd %s; test -z \"$(git status --porcelain)\"; git diff --exit-code;"
          "test $(git symbolic-ref HEAD) = refs/heads/task-T-1-run-R-1; git log -1 | grep -q "
          "run;"
          "test -x dir/b; test $(readlink link) = a; echo more >> a; git commit -qam more;"
          "git fsck --strict 2>/dev/null",
            path);
    CHECK_EQ(opened(ws, repo, NULL), -EEXIST);
    CHECK(strstr(err.message, "is opened already, at '"));
    CHECK_EQ(opened_close(ws, repo, &err), 0);
    CHECK(!ws->is_opened);
    CHECK_STR(ws->snapshot, printed("git -C user rev-parse task-T-1-run-R-1"));
    CHECK_STR(printed("git -C user log -1 --format=%%s task-T-1-run-R-1"), "more");
    SHELL("test ! -e %s; test -z \"$(ls -A state/workspaces/T-1/runs)\"", path);
    CHECK_EQ(opened_close(ws, repo, &err), 0);
    CHECK_EQ(opened(ws, repo, NULL), 0); /* and again, with what was committed there */
    SHELL("cd %s; tail -1 a | grep -qx more; test -z \"$(git status --porcelain)\"", path);
}

/* What git itself converts must be converted: it takes UTF-16 without a mark for an error. */
TEST(files_are_written_as_a_checkout_writes_them)
{
    SET_UP();
    SHELL("cd run; git config core.safecrlf false; printf '* text=auto eol=crlf\n"
          "*.u16 text working-tree-encoding=UTF-16 eol=lf\n*.id ident\n' >.gitattributes;"
          "printf 'one\n' >t.txt; printf 'hi\n' | iconv -t UTF-16 >w.u16; echo '$Id$' >v.id;"
          "printf 'x\n' >d.dat; git add -A; git commit -q -m forms;"
          "git clone -q . ../plain; cd ../user; git fetch -q ../run;"
          "git update-ref refs/heads/task-T-1-run-R-1 FETCH_HEAD;"
          "echo '*.dat -text' >.git/info/attributes; cp .git/info/attributes "
          "../plain/.git/info;"
          "cd ../plain; rm d.dat; git checkout -q d.dat");
    CHECK_EQ(opened(ws, repo, NULL), 0);
    SHELL("cd %s; for f in t.txt w.u16 v.id d.dat a; do cmp $f %s/plain/$f; done;"
          "touch *; test -z \"$(git status --porcelain 2>&1)\";"
          "printf 'two\r\n' >>t.txt; git commit -qam more; touch *",
            path, at.path);
    CHECK_EQ(opened_close(ws, repo, &err), 0);
    CHECK_STR(printed("git -C user show task-T-1-run-R-1:t.txt | tr '\n' ,"), "one,two,");
}

TEST(the_repository_shows_it_locked_while_it_is_open_and_not_after)
{
    SET_UP();
    for (int turn = 0; turn < 2; turn++) {
        SHELL("test ! -e user/.git/worktrees");
        CHECK_EQ(opened(ws, repo, NULL), 0);
        SHELL("cd user; git worktree list --porcelain > ../list;"
              "grep -qx \"worktree $(cd ..; pwd)/state/workspaces/T-1/runs/R-1\" ../list;"
              "grep -q '^locked carrel run R-1' ../list;"
              "git worktree prune; git worktree repair 2>/dev/null;"
              "git gc -q --prune=now; git fsck --strict 2>/dev/null");
        CHECK(shell("git -C user worktree remove %s/state/workspaces/T-1/runs/R-1 2>/dev/null",
                      at.path) != 0);
        SHELL("cd %s; test -z \"$(git status --porcelain)\"", path);
        CHECK_EQ(opened_close(ws, repo, &err), 0);
    }
    SHELL("test ! -e user/.git/worktrees");
}

TEST(one_without_work_has_a_branch_only_while_it_is_open)
{
    SET_UP();
    SHELL("git -C user branch -D task-T-1-run-R-1");
    ws->branch_at[0] = '\0';
    (void)snprintf(ws->snapshot, sizeof(ws->snapshot), "%s", ws->base);
    CHECK_EQ(opened(ws, repo, NULL), 0);
    CHECK_STR(printed("git -C user rev-parse task-T-1-run-R-1"), ws->base);
    CHECK_EQ(opened_close(ws, repo, &err), 0);
    CHECK(!ws->is_published && !ws->branch_at[0]);
    CHECK(shell("git -C user rev-parse -q --verify task-T-1-run-R-1") != 0);
    SHELL("git -C user branch task-T-1-run-R-1"); /* the user's own */
    CHECK_EQ(opened(ws, repo, NULL), -EEXIST);
    CHECK(strstr(err.message, "is not this run's"));
    CHECK_STR(printed("git -C user rev-parse task-T-1-run-R-1"), ws->base);
}

TEST(a_worktree_that_the_repository_lost_is_made_anew)
{
    SET_UP();
    CHECK_EQ(opened(ws, repo, NULL), 0);
    CHECK_EQ(opened_repair(ws, repo, &err), 0);
    SHELL("rm -r user/.git/worktrees; echo mine >%s/a", path);
    CHECK_EQ(opened_close(ws, repo, &err), -ENOENT);
    CHECK(strstr(err.message, "carrel workspace repair T-1/R-1"));
    CHECK_EQ(opened_repair(ws, repo, &err), 1);
    CHECK_STR(printed("git -C %s status --porcelain", path), " M a");
    SHELL("git -C %s checkout -q a", path);
    CHECK_EQ(opened_close(ws, repo, &err), 0);
}

TEST(it_can_be_opened_somewhere_else)
{
    SET_UP();
    char where[128];

    (void)snprintf(where, sizeof(where), "%s/elsewhere", at.path);
    CHECK_EQ(opened(ws, repo, where), 0);
    CHECK_STR(path, where);
    SHELL("cd elsewhere; test -z \"$(git status --porcelain)\"; cd ../user;"
          "git worktree list | grep -q ^%s",
            where);
    CHECK_EQ(opened_close(ws, repo, &err), 0);
    SHELL("test ! -e elsewhere; mkdir elsewhere; echo precious > elsewhere/file");
    CHECK_EQ(opened(ws, repo, where), -EEXIST);
    CHECK(strstr(err.message, "choose a new directory"));
    CHECK_EQ(opened(ws, repo, "relative"), -EINVAL);
    SHELL("test -f elsewhere/file");
    CHECK(!ws->is_opened);
}

TEST(uncommitted_changes_keep_it_open)
{
    SET_UP();
    static const char *const changes[] = { "echo x >> a", "echo x > untracked", "rm dir/b",
        "echo x > staged; git add staged", "git rm -q a", "chmod -x dir/b" };

    CHECK_EQ(opened(ws, repo, NULL), 0);
    for (size_t i = 0; i < ARRAY_LEN(changes); i++) {
        SHELL("cd %s; %s", path, changes[i]);
        CHECK_EQ(opened_close(ws, repo, &err), -ENOTEMPTY);
        CHECK(strstr(err.message, "that are not committed"));
        SHELL("cd %s; git reset -q --hard; git clean -qfd", path);
    }
    SHELL("cd %s; git checkout -q --detach", path);
    CHECK_EQ(opened_close(ws, repo, &err), -ENOTEMPTY);
    CHECK(strstr(err.message, "git switch task-T-1-run-R-1 there first"));
    SHELL("cd %s; git switch -q task-T-1-run-R-1; echo ignored > x.o", path);
    CHECK_EQ(opened_close(ws, repo, &err), 0);
}

/* Its files are as in the commit, so nothing but these signs tells of it. */
TEST(what_is_not_finished_there_keeps_it_open)
{
    SET_UP();
    CHECK_EQ(opened(ws, repo, NULL), 0);
    SHELL("cd %s; git bisect start >/dev/null", path);
    CHECK_EQ(opened_close(ws, repo, &err), -ENOTEMPTY);
    CHECK(strstr(err.message, "is not finished in"));
    SHELL("cd %s; git bisect reset >/dev/null 2>&1; o=$(git commit-tree -p HEAD~1 -m o "
          "HEAD~1:);"
          "git merge -q --no-commit --no-ff -s ours $o; test -z \"$(git status --porcelain)\"",
            path);
    CHECK_EQ(opened_close(ws, repo, &err), -ENOTEMPTY);
    CHECK(strstr(err.message, "is not finished in"));
    SHELL("cd %s; git merge --abort", path);
    CHECK_EQ(opened_close(ws, repo, &err), 0);
}

TEST(what_a_crash_left_is_made_anew)
{
    SET_UP();
    SHELL("mkdir -p state/workspaces/T-1/runs/.carrel-T-1-R-1 state/workspaces/T-1/R-1/view;"
          "touch state/workspaces/T-1/runs/.carrel-T-1-R-1/half");
    ws->is_opened = true;
    CHECK_EQ(opened(ws, repo, NULL), 0);
    SHELL("rm -r %s", path); /* the user removed it by hand */
    CHECK_EQ(opened_close(ws, repo, &err), 0);
    CHECK(!ws->is_opened);
    CHECK_EQ(opened(ws, repo, NULL), 0);
    SHELL("cd %s; test -z \"$(git status --porcelain)\"", path);
}

struct pair {
    struct workspace *ws;
    struct repo *repo;
};

static int opening(void *context)
{
    struct pair *pair = context;

    return opened(pair->ws, pair->repo, NULL);
}

static int closing(void *context)
{
    struct pair *pair = context;

    return opened_close(pair->ws, pair->repo, &err);
}

/* Whatever was killed, closing leaves nothing and opening gives a clean tree. */
static void check_killed(int (*work)(void *context), bool is_open_before)
{
    SET_UP();
    struct pair pair = { ws, repo };

    for (int nth = 1;; nth += nth < 30 ? 1 : 8) {
        if (is_open_before)
            CHECK_EQ(opened(ws, repo, NULL), 0);
        bool is_killed = kill_before(work, &pair, nth);
        CHECK_EQ(record_reload(ws, &err), 0); /* as whoever takes the lock next does */
        SHELL("cd user; git worktree prune; git fsck --strict 2>/dev/null");
        CHECK_EQ(opened_close(ws, repo, &err), 0);
        SHELL("cd state/workspaces/T-1; test -z \"$(ls -A runs 2>/dev/null)\"; test ! -e "
              "R-1/view");
        CHECK_EQ(opened(ws, repo, NULL), 0);
        SHELL("cd %s; test -z \"$(git status --porcelain)\"", path);
        CHECK_EQ(opened_close(ws, repo, &err), 0);
        if (!is_killed)
            break;
    }
}

TEST(an_opening_killed_at_any_step_can_be_closed_and_opened)
{
    check_killed(opening, false);
}

TEST(a_closing_killed_at_any_step_can_be_closed_and_opened)
{
    check_killed(closing, true);
}
