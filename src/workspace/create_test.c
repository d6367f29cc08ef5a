#include "git/ref.h"
#include "workspace/place_fixture.h"
#include "workspace/private.h"
#include <dirent.h>
#include <sys/file.h>

/* Entries of a directory below the fixture's, without dots. */
static int count(const struct fixture *fx, const char *name)
{
    char path[512];
    int n = 0;

    (void)snprintf(path, sizeof(path), "%s/%s", fx->top, name);
    DIR *dir = opendir(path);
    if (!dir)
        return 0;
    for (struct dirent *entry; (entry = readdir(dir));)
        n += entry->d_name[0] != '.';
    CHECK_EQ(closedir(dir), 0);
    return n;
}

static bool is_locked(const char *path)
{
    AUTO(fd_close) int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    CHECK(fd >= 0);
    return flock(fd, LOCK_EX | LOCK_NB) < 0;
}

TEST(a_workspace_has_its_directory_and_the_repository_nothing_of_it)
{
    struct fixture fx;
    char expected[512];

    fixture_init(&fx);
    AUTO(workspace_free) struct workspace *ws = fixture_create(&fx, "T-1", "R-1");
    (void)snprintf(expected, sizeof(expected), "%s/workspaces/T-1/R-1", fx.state);
    CHECK_STR(ws->path, expected);
    CHECK_STR(ws->branch, "task-T-1-run-R-1");
    CHECK_STR(ws->repo, fx.repo->common_dir);
    CHECK_STR(ws->top, fx.where);
    CHECK_EQ(ws->phase, WORKSPACE_READY);
    CHECK(is_locked(ws->path));
    static const char *const made[] = { "upper", "work", "gitupper", "gitwork", "meta" };
    for (size_t i = 0; i < ARRAY_LEN(made); i++)
        CHECK_EQ(faccessat(ws->dir, made[i], F_OK, 0), 0);
    CHECK(faccessat(ws->dir, "creating", F_OK, 0) < 0);
    CHECK_EQ(fixture_count_refs(&fx, "refs/"), 1); /* main */
    CHECK(!fixture_has(&fx, "repo/.git/worktrees"));
    CHECK_EQ(count(&fx, "state/workspaces/.tmp"), 0);

    AUTO(fd_close) int upper = openat(ws->dir, "gitupper", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    CHECK(private_is_untouched(upper, ws->branch, fx.base));

    AUTO(workspace_free) struct workspace *found = NULL;
    CHECK_EQ(workspace_find(fx.state, "R-1", &found, &fx.err), 0);
    CHECK_STR(found->base, fx.base);
    CHECK_EQ(found->created_s, ws->created_s);
    CHECK_EQ(found->phase, WORKSPACE_READY);
    fixture_git(&fx, GIT_WORDS("fsck", "--strict", "--no-progress"), NULL);
    fixture_finish(&fx);
}

/* Creating must fail with `code` and change nothing. */
static void check_refused(struct fixture *fx, const char *task, const char *run, int code)
{
    const struct workspace_request request = fixture_request(fx, task, run);
    AUTO(buf_finish) struct buf before = BUF_INIT(65536);
    AUTO(buf_finish) struct buf after = BUF_INIT(65536);
    struct workspace *ws = NULL;
    int n = count(fx, "state/workspaces");

    fixture_git(fx, GIT_WORDS("for-each-ref"), &before);
    fixture_git(fx, GIT_WORDS("worktree", "list", "--porcelain"), &before);
    CHECK_EQ(workspace_create(&request, &ws, &fx->err), code);
    CHECK(!ws);
    fixture_git(fx, GIT_WORDS("for-each-ref"), &after);
    fixture_git(fx, GIT_WORDS("worktree", "list", "--porcelain"), &after);
    CHECK_STR(after.data, before.data);
    CHECK_EQ(count(fx, "state/workspaces/.tmp"), 0);
    CHECK_EQ(count(fx, "state/workspaces"), n);
}

TEST(a_taken_id_is_refused_and_nothing_changes)
{
    static const char taken[] = "workspace 'T/R' exists already: go on in it (carrel workspace "
                                "resume T/R), discard it, or choose another run id";
    struct fixture fx;

    fixture_init(&fx);
    AUTO(workspace_free) struct workspace *ws = fixture_create(&fx, "T", "R");
    check_refused(&fx, "T", "R", -EEXIST);
    CHECK_STR(fx.err.message, taken);
    fx.err.message[0] = '\0';
    fixture_publish(&fx, ws, fx.base); /* also when its branch is there */
    check_refused(&fx, "T", "R", -EEXIST);
    CHECK_STR(fx.err.message, taken);
    fixture_finish(&fx);
}

TEST(a_branch_of_that_name_is_refused_and_stays)
{
    struct fixture fx;

    fixture_init(&fx);
    fixture_git(&fx, GIT_WORDS("branch", "task-T-run-R"), NULL);
    check_refused(&fx, "T", "R", -EEXIST);
    CHECK_STR(fx.err.message,
            "branch 'task-T-run-R' exists already: choose another run id, or delete it with "
            "git branch -D");
    fixture_finish(&fx);
}

TEST(names_that_could_leave_the_place_are_refused)
{
    static const char *const bad[] = { "", "..", "a/b", ".tmp", "-x", "runs", "a b", "a+b" };
    struct fixture fx;

    fixture_init(&fx);
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        check_refused(&fx, "T", bad[i], -EINVAL);
        check_refused(&fx, bad[i], "R", -EINVAL);
    }
    fixture_finish(&fx);
}

TEST(a_base_that_is_not_a_full_id_is_refused)
{
    static const char *const bad[] = { "", "HEAD", "main", "0123456789abcdef" };
    struct fixture fx;
    struct workspace *ws = NULL;

    fixture_init(&fx);
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct workspace_request request = fixture_request(&fx, "T", "R");
        request.base = bad[i];
        CHECK_EQ(workspace_create(&request, &ws, &fx.err), -EINVAL);
        CHECK_STR(fx.err.message, "a workspace starts from the full id of a commit");
    }
    CHECK(!fixture_has(&fx, "state/workspaces"));
    fixture_finish(&fx);
}

TEST(a_base_that_no_branch_has_is_kept_from_git_gc)
{
    struct fixture fx;
    char work[OID_MAX];

    fixture_init(&fx);
    fixture_make_work(&fx, work);
    struct workspace_request request = fixture_request(&fx, "T", "R");
    AUTO(workspace_free) struct workspace *one = NULL;
    AUTO(workspace_free) struct workspace *two = NULL;
    char second[128];
    request.base = work;
    request.is_base_loose = true;
    CHECK_EQ(workspace_create(&request, &one, &fx.err), 0);
    /* the same ids in another state directory */
    (void)snprintf(second, sizeof(second), "%s/second", fx.top);
    request.state = second;
    CHECK_EQ(workspace_create(&request, &two, &fx.err), 0);
    CHECK_EQ(fixture_count_refs(&fx, "refs/carrel/"), 2);
    CHECK_EQ(workspace_discard(fx.state, one, &fx.err), 0);
    fixture_git(&fx, GIT_WORDS("gc", "-q", "--prune=now"), NULL);
    CHECK_EQ(repo_has_commit(fx.repo, work, &fx.err), 1);
    CHECK_EQ(workspace_discard(second, two, &fx.err), 0);
    CHECK_EQ(fixture_count_refs(&fx, "refs/carrel/"), 0);
    fixture_finish(&fx);
}

TEST(two_tasks_may_have_runs_of_the_same_name)
{
    struct fixture fx;

    fixture_init(&fx);
    AUTO(workspace_free) struct workspace *one = fixture_create(&fx, "T1", "R");
    AUTO(workspace_free) struct workspace *two = fixture_create(&fx, "T2", "R");
    CHECK(strcmp(one->branch, two->branch) != 0);
    fixture_finish(&fx);
}

TEST(a_folder_gets_no_git)
{
    struct fixture fx;

    fixture_init(&fx);
    struct workspace_request request = fixture_request(&fx, "T", "R");
    AUTO(workspace_free) struct workspace *ws = NULL;
    AUTO(workspace_free) struct workspace *found = NULL;
    request.is_folder = true;
    CHECK_EQ(workspace_create(&request, &ws, &fx.err), 0);
    CHECK(faccessat(ws->dir, "gitupper", F_OK, 0) < 0);
    CHECK(!fixture_has(&fx, "repo/.git/worktrees"));
    CHECK_EQ(workspace_find(fx.state, "T/R", &found, &fx.err), 0);
    CHECK(found->is_folder);
    CHECK_STR(found->top, request.repo->top);
    CHECK_STR(found->branch, "");
    CHECK_EQ(workspace_discard(fx.state, ws, &fx.err), 0);
    CHECK(!fixture_has(&fx, "state/workspaces/T"));
    fixture_finish(&fx);
}

TEST(many_at_once_on_one_repository_all_succeed)
{
    enum { MANY = 50 };
    struct fixture fx;
    pid_t pids[MANY];
    char run[32];

    fixture_init(&fx);
    for (int i = 0; i < MANY; i++) {
        pids[i] = fork();
        CHECK(pids[i] >= 0);
        if (pids[i] == 0) {
            (void)snprintf(run, sizeof(run), "R-%d", i);
            workspace_free(fixture_create(&fx, i % 2 ? "odd" : "even", run));
            _exit(0);
        }
    }
    for (int i = 0; i < MANY; i++) {
        int status;
        CHECK_EQ(waitpid(pids[i], &status, 0), pids[i]);
        CHECK_EQ(status, 0);
    }
    CHECK_EQ(count(&fx, "state/workspaces/odd"), MANY / 2);
    CHECK_EQ(fixture_count_refs(&fx, "refs/"), 1);   /* main */
    CHECK_EQ(workspace_sweep(fx.state, &fx.err), 0); /* nothing to do */
    fixture_git(&fx, GIT_WORDS("fsck", "--strict", "--no-progress"), NULL);
    fixture_finish(&fx);
}

TEST(of_many_that_want_one_id_one_gets_it)
{
    enum { MANY = 20 };
    struct fixture fx;
    int n = 0;

    fixture_init(&fx);
    const struct workspace_request request = fixture_request(&fx, "T", "R");
    for (int i = 0; i < MANY; i++) {
        if (fork() == 0) {
            struct workspace *ws = NULL;
            int r = workspace_create(&request, &ws, &fx.err);
            _exit(r == 0 ? 42 : r == -EEXIST ? 0 : 1);
        }
    }
    for (int i = 0; i < MANY; i++) {
        int status;
        CHECK(waitpid(-1, &status, 0) > 0);
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) != 1);
        n += WEXITSTATUS(status) == 42;
    }
    CHECK_EQ(n, 1);
    CHECK_EQ(count(&fx, "state/workspaces/T"), 1);
    CHECK_EQ(count(&fx, "state/workspaces/.tmp"), 0);
    fixture_finish(&fx);
}
