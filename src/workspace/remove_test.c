#include "workspace/place_fixture.h"
#include <sys/sysmacros.h>

static struct fixture fx;
static struct workspace *ws; /* run R of task T */

static void begin(void)
{
    fixture_init(&fx);
    ws = fixture_create(&fx, "T", "R");
}

static void end(void)
{
    workspace_free(ws);
    fixture_finish(&fx);
}

static void check_gone(void)
{
    CHECK(!fixture_has(&fx, "state/workspaces/T"));
    CHECK_EQ(fixture_count_refs(&fx, "refs/carrel/"), 0);
    char path[256];
    (void)snprintf(path, sizeof(path), "%s/workspaces/.tmp", fx.state);
    CHECK_EQ(rmdir(path), 0); /* empty */
}

/* It goes, and nothing of it is left but perhaps the branch. */
static void check_discarded(void)
{
    CHECK_EQ(workspace_discard(fx.state, ws, &fx.err), 0);
    check_gone();
}

TEST(a_discarded_workspace_leaves_nothing)
{
    begin();
    check_discarded();
    CHECK(!fixture_has_branch(&fx, "task-T-run-R", NULL));
    end();
}

TEST(a_branch_with_work_stays)
{
    char work[OID_MAX];

    begin();
    fixture_make_work(&fx, work);
    fixture_publish(&fx, ws, work);
    ws->is_published = true;
    check_discarded();
    CHECK(fixture_has_branch(&fx, "task-T-run-R", work));
    end();
}

TEST(a_branch_that_carrel_did_not_make_stays)
{
    begin();
    fixture_git(&fx, GIT_WORDS("branch", "task-T-run-R"), NULL);
    check_discarded();
    CHECK(fixture_has_branch(&fx, "task-T-run-R", fx.base));
    end();
}

TEST(the_ref_of_a_base_is_removed_with_its_workspace)
{
    fixture_init(&fx);
    ws = fixture_create_loose(&fx, "T", "R");
    CHECK_EQ(fixture_count_refs(&fx, "refs/carrel/"), 1);
    check_discarded();
    end();
}

TEST(a_branch_whose_work_was_merged_goes)
{
    char work[OID_MAX];

    begin();
    fixture_make_work(&fx, work);
    fixture_publish(&fx, ws, work);
    fixture_git(&fx, GIT_WORDS("merge", "-q", "--ff-only", work), NULL);
    check_discarded();
    CHECK(!fixture_has_branch(&fx, "task-T-run-R", NULL));
    end();
}

TEST(a_branch_that_the_user_has_checked_out_stays_even_so)
{
    begin();
    fixture_publish(&fx, ws, fx.base);
    fixture_git(&fx, GIT_WORDS("symbolic-ref", "HEAD", "refs/heads/task-T-run-R"), NULL);
    check_discarded();
    CHECK(fixture_has_branch(&fx, "task-T-run-R", fx.base));
    end();
}

TEST(a_packed_branch_goes_too_and_one_deleted_by_hand_is_no_trouble)
{
    fixture_init(&fx);
    AUTO(workspace_free) struct workspace *one = fixture_create(&fx, "T", "R1");
    AUTO(workspace_free) struct workspace *two = fixture_create(&fx, "T", "R2");
    fixture_publish(&fx, one, fx.base);
    fixture_publish(&fx, two, fx.base);
    fixture_git(&fx, GIT_WORDS("pack-refs", "--all"), NULL);
    CHECK_EQ(workspace_discard(fx.state, one, &fx.err), 0);
    CHECK(!fixture_has_branch(&fx, "task-T-run-R1", NULL));
    fixture_git(&fx, GIT_WORDS("update-ref", "-d", "refs/heads/task-T-run-R2"), NULL);
    CHECK_EQ(workspace_discard(fx.state, two, &fx.err), 0);
    check_gone();
    fixture_finish(&fx);
}

TEST(locked_opened_and_used_ones_are_refused_and_stay)
{
    AUTO(workspace_free) struct workspace *other = NULL;

    begin();
    CHECK_EQ(workspace_find(fx.state, "R", &other, &fx.err), 0);
    CHECK_EQ(workspace_discard(fx.state, other, &fx.err), -EBUSY);
    ws->is_user_locked = true;
    CHECK_EQ(workspace_discard(fx.state, ws, &fx.err), -EBUSY);
    CHECK(strstr(fx.err.message, "carrel workspace unlock R"));
    ws->is_user_locked = false;
    ws->is_opened = true;
    CHECK_EQ(workspace_discard(fx.state, ws, &fx.err), -EBUSY);
    CHECK(strstr(fx.err.message, "carrel workspace close R"));
    CHECK(fixture_has(&fx, "state/workspaces/T/R/meta"));
    end();
}

TEST(what_was_discarded_meanwhile_cannot_be_locked)
{
    AUTO(workspace_free) struct workspace *late = NULL;

    begin();
    CHECK_EQ(workspace_find(fx.state, "R", &late, &fx.err), 0);
    CHECK_EQ(workspace_discard(fx.state, ws, &fx.err), 0);
    workspace_free(ptr_steal(&ws));
    ws = fixture_create(&fx, "T", "R"); /* another one by that name */
    CHECK_EQ(workspace_discard(fx.state, late, &fx.err), -ENOENT);
    CHECK(fixture_has(&fx, "state/workspaces/T/R/meta"));
    end();
}

TEST(shut_directories_and_whiteouts_go)
{
    begin();
    CHECK_EQ(mkdirat(ws->dir, "upper/shut", 0700), 0);
    CHECK_EQ(mkdirat(ws->dir, "upper/shut/in", 0700), 0);
    CHECK_EQ(mknodat(ws->dir, "upper/shut/gone", S_IFCHR, makedev(0, 0)), 0);
    CHECK_EQ(symlinkat("/etc", ws->dir, "upper/shut/link"), 0);
    CHECK_EQ(fchmodat(ws->dir, "upper/shut/in", 0, 0), 0);
    CHECK_EQ(fchmodat(ws->dir, "upper/shut", 0, 0), 0);
    CHECK_EQ(mkdirat(ws->dir, "work/work", 0), 0);
    check_discarded();
    end();
}

TEST(without_its_repository_a_workspace_can_still_go)
{
    begin();
    fixture_remove(&fx, ".", "repo");
    CHECK_EQ(workspace_discard(fx.state, ws, &fx.err), 0);
    CHECK(!fixture_has(&fx, "state/workspaces/T"));
    end();
}

TEST(many_can_go_at_once)
{
    enum { MANY = 24 };
    struct workspace *all[MANY];
    char run[32];

    fixture_init(&fx);
    for (int i = 0; i < MANY; i++) {
        (void)snprintf(run, sizeof(run), "R%d", i);
        all[i] = fixture_create_loose(&fx, "T", run);
    }
    for (int i = 0; i < MANY; i++) {
        if (fork() == 0) {
            CHECK_EQ(workspace_discard(fx.state, all[i], &fx.err), 0);
            _exit(0);
        }
    }
    for (int i = 0; i < MANY; i++) {
        int status;
        CHECK(waitpid(-1, &status, 0) > 0);
        CHECK_EQ(status, 0);
        workspace_free(all[i]);
    }
    check_gone();
    fixture_git(&fx, GIT_WORDS("fsck", "--strict", "--no-progress"), NULL);
    fixture_finish(&fx);
}
