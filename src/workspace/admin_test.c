#include "workspace/admin.h"
#include "workspace/place_fixture.h"
#include <signal.h>

static void create(struct fixture *fx, const char *task, const char *run)
{
    char branch[NAME_BRANCH_MAX];
    char git_file[256];

    name_branch(task, run, branch);
    (void)snprintf(git_file, sizeof(git_file), "%s/%s/runs/%s/.git", fx->state, task, run);
    fixture_git(fx, GIT_WORDS("branch", branch), NULL);
    CHECK_EQ(admin_create(fx->repo, task, run, git_file, branch, &fx->err), 0);
}

TEST(git_lists_it_as_locked_and_leaves_it_alone)
{
    AUTO(buf_finish) struct buf before = BUF_INIT(65536);
    AUTO(buf_finish) struct buf after = BUF_INIT(65536);
    struct fixture fx;
    char expected[512];

    fixture_init(&fx);
    create(&fx, "T", "R");
    fixture_git(&fx, GIT_WORDS("worktree", "list", "--porcelain"), &before);
    (void)snprintf(expected, sizeof(expected),
            "worktree %s/T/runs/R\nHEAD %s\nbranch refs/heads/task-T-run-R\nlocked carrel run "
            "R\n",
            fx.state, fx.base);
    CHECK(strstr(before.data, expected));

    fixture_git(&fx, GIT_WORDS("worktree", "prune", "--expire=now"), NULL);
    fixture_git(&fx, GIT_WORDS("worktree", "repair"), NULL);
    fixture_git(&fx, GIT_WORDS("gc", "-q", "--prune=now"), NULL);
    fixture_git(&fx, GIT_WORDS("fsck", "--strict", "--no-progress"), NULL);
    fixture_git(&fx, GIT_WORDS("worktree", "list", "--porcelain"), &after);
    CHECK_STR(after.data, before.data);
    fixture_finish(&fx);
}

TEST(a_taken_id_is_refused_and_the_first_one_stays)
{
    struct fixture fx;
    char path[512];

    fixture_init(&fx);
    create(&fx, "T", "R");
    CHECK_EQ(admin_create(fx.repo, "T", "R", "/elsewhere/.git", "x", &fx.err), -EEXIST);
    CHECK(strstr(fx.err.message, "carrel-T+R"));
    CHECK_EQ(admin_gitdir(fx.repo, "T", "R", path, sizeof(path), &fx.err), 0);
    CHECK(strncmp(path, fx.state, strlen(fx.state)) == 0);
    fixture_finish(&fx);
}

TEST(removal_takes_the_last_one_s_directory_too_and_gone_is_fine)
{
    struct fixture fx;

    fixture_init(&fx);
    create(&fx, "T", "R");
    create(&fx, "T2", "R");
    CHECK_EQ(admin_remove(fx.repo, "T", "R", &fx.err), 0);
    CHECK(!fixture_has(&fx, "repo/.git/worktrees/carrel-T+R"));
    CHECK(fixture_has(&fx, "repo/.git/worktrees/carrel-T2+R"));
    CHECK_EQ(admin_remove(fx.repo, "T", "R", &fx.err), 0);
    CHECK_EQ(admin_remove(fx.repo, "T2", "R", &fx.err), 0);
    CHECK(!fixture_has(&fx, "repo/.git/worktrees"));
    CHECK_EQ(admin_remove(fx.repo, "T2", "R", &fx.err), 0);
    CHECK_EQ(admin_gitdir(fx.repo, "T2", "R", (char[8]){ 0 }, 8, &fx.err), -ENOENT);
    fixture_finish(&fx);
}

struct found {
    int n;
    char text[256];
};

static int note(const char *task, const char *run, void *context)
{
    struct found *found = context;
    size_t len = strlen(found->text);

    found->n++;
    (void)snprintf(found->text + len, sizeof(found->text) - len, "[%s|%s]", task, run);
    return 0;
}

TEST(only_ours_are_listed)
{
    struct fixture fx;
    struct found found = { 0 };

    fixture_init(&fx);
    CHECK_EQ(admin_list(fx.repo, note, &found, &fx.err), 0);
    CHECK_EQ(found.n, 0);
    create(&fx, "a-b", "c.d");
    fixture_git(&fx, GIT_WORDS("worktree", "add", "-q", "../other"), NULL);
    fixture_git(&fx, GIT_WORDS("worktree", "add", "-q", "../carrel-x"), NULL);
    CHECK_EQ(admin_list(fx.repo, note, &found, &fx.err), 0);
    CHECK_STR(found.text, "[a-b|c.d]");
    fixture_finish(&fx);
}

TEST(a_branch_in_use_by_any_worktree_is_known)
{
    struct fixture fx;

    fixture_init(&fx);
    fixture_git(&fx, GIT_WORDS("branch", "free"), NULL);
    fixture_git(&fx, GIT_WORDS("worktree", "add", "-q", "-b", "linked", "../other"), NULL);
    CHECK(admin_is_checked_out(fx.repo, "main"));
    CHECK(admin_is_checked_out(fx.repo, "linked"));
    CHECK(!admin_is_checked_out(fx.repo, "free"));
    fixture_finish(&fx);
}

TEST(a_state_directory_with_a_newline_is_refused_and_nothing_is_left)
{
    struct fixture fx;

    fixture_init(&fx);
    CHECK_EQ(admin_create(fx.repo, "T", "R", "/a\nb/.git", "x", &fx.err), -EINVAL);
    CHECK(!fixture_has(&fx, "repo/.git/worktrees"));
    fixture_finish(&fx);
}

static void prune_for_ever(struct fixture *fx)
{
    for (;;)
        (void)git_program_run(
                &fx->git, GIT_WORDS("worktree", "prune", "--expire=now"), "", 0, NULL);
}

TEST(a_prune_at_the_same_time_does_no_harm)
{
    struct fixture fx;
    char run[32];

    fixture_init(&fx);
    pid_t pid = fork();
    if (pid == 0)
        prune_for_ever(&fx);
    for (int i = 0; i < 300; i++) {
        (void)snprintf(run, sizeof(run), "R%d", i);
        CHECK_EQ(admin_create(fx.repo, "T", run, "/nowhere/.git", "main", &fx.err), 0);
        if (i % 3 == 0)
            CHECK_EQ(admin_remove(fx.repo, "T", run, &fx.err), 0);
    }
    CHECK_EQ(kill(pid, SIGKILL), 0);
    CHECK_EQ(waitpid(pid, NULL, 0), pid);
    struct found found = { 0 };
    CHECK_EQ(admin_list(fx.repo, note, &found, &fx.err), 0);
    CHECK_EQ(found.n, 200);
    fixture_finish(&fx);
}
