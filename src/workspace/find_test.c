#include "workspace/place_fixture.h"

TEST(a_run_is_found_by_its_own_name_or_with_its_task)
{
    struct fixture fx;
    AUTO(workspace_free) struct workspace *found = NULL;
    AUTO(workspace_free) struct workspace *again = NULL;

    fixture_init(&fx);
    workspace_free(fixture_create(&fx, "T-1", "R-one"));
    CHECK_EQ(workspace_find(fx.state, "R-one", &found, &fx.err), 0);
    CHECK_STR(found->task, "T-1");
    CHECK_EQ(workspace_find(fx.state, "T-1/R-one", &again, &fx.err), 0);
    CHECK_STR(again->run, "R-one");
    CHECK_EQ(again->lock, -1);
    fixture_finish(&fx);
}

TEST(a_name_that_several_have_must_be_said_in_full)
{
    struct fixture fx;
    AUTO(workspace_free) struct workspace *found = NULL;

    fixture_init(&fx);
    workspace_free(fixture_create(&fx, "T-1", "R"));
    workspace_free(fixture_create(&fx, "T-2", "R"));
    CHECK_EQ(workspace_find(fx.state, "R", &found, &fx.err), -EEXIST);
    CHECK(strstr(fx.err.message, "T-1/R") && strstr(fx.err.message, "T-2/R"));
    CHECK_EQ(workspace_find(fx.state, "T-2/R", &found, &fx.err), 0);
    CHECK_STR(found->task, "T-2");
    fixture_finish(&fx);
}

TEST(a_name_that_is_nobody_s_is_answered_with_the_nearest)
{
    struct fixture fx;
    AUTO(workspace_free) struct workspace *found = NULL;

    fixture_init(&fx);
    CHECK_EQ(workspace_find(fx.state, "R-4", &found, &fx.err), -ENOENT);
    workspace_free(fixture_create(&fx, "T-1", "R-456"));
    workspace_free(fixture_create(&fx, "T-1", "R-9"));
    CHECK_EQ(workspace_find(fx.state, "R-45", &found, &fx.err), -ENOENT);
    CHECK_STR(fx.err.message, "there is no workspace 'R-45'; the nearest is 'T-1/R-456'");
    CHECK_EQ(workspace_find(fx.state, "T-3/R-456", &found, &fx.err), -ENOENT);
    CHECK(strstr(fx.err.message, "the nearest is 'T-1/R-456'"));
    CHECK_EQ(workspace_find(fx.state, "x", &found, &fx.err), -ENOENT);
    CHECK(strstr(fx.err.message, "carrel workspace list"));
    CHECK_EQ(workspace_find(fx.state, "../x", &found, &fx.err), -EINVAL);
    CHECK_EQ(workspace_find(fx.state, "T/", &found, &fx.err), -EINVAL);
    fixture_finish(&fx);
}

static int count(struct workspace **ws, void *context)
{
    CHECK(*ws);
    ++*(int *)context;
    return 0;
}

static int keep_first(struct workspace **ws, void *context)
{
    *(struct workspace **)context = ptr_steal(ws);
    return -ECANCELED;
}

TEST(all_are_walked_or_those_of_one_repository)
{
    struct fixture fx;
    AUTO(workspace_free) struct workspace *kept = NULL;
    int n = 0;

    fixture_init(&fx);
    CHECK_EQ(workspace_each(fx.state, NULL, count, &n, &fx.err), 0);
    CHECK_EQ(n, 0);
    workspace_free(fixture_create(&fx, "T-1", "R-1"));
    workspace_free(fixture_create(&fx, "T-2", "R-1"));
    fixture_git(&fx, GIT_WORDS("init", "-q", "../second"), NULL);
    AUTO(repo_free) struct repo *second = NULL;
    char path[128];
    (void)snprintf(path, sizeof(path), "%s/second", fx.top);
    CHECK_EQ(repo_open(path, &second, &fx.err), 0);

    CHECK_EQ(workspace_each(fx.state, NULL, count, &n, &fx.err), 0);
    CHECK_EQ(n, 2);
    CHECK_EQ(workspace_each(fx.state, second, count, &n, &fx.err), 0);
    CHECK_EQ(n, 2);
    CHECK_EQ(workspace_each(fx.state, fx.repo, count, &n, &fx.err), 0);
    CHECK_EQ(n, 4);
    CHECK_EQ(workspace_each(fx.state, NULL, keep_first, &kept, &fx.err), -ECANCELED);
    CHECK_STR(kept->run, "R-1");
    fixture_finish(&fx);
}

TEST(a_held_workspace_says_who_holds_it)
{
    struct fixture fx;
    AUTO(workspace_free) struct workspace *found = NULL;
    char self[32];

    fixture_init(&fx);
    AUTO(workspace_free) struct workspace *ws = fixture_create(&fx, "T", "R");
    CHECK_EQ(workspace_find(fx.state, "R", &found, &fx.err), 0);
    CHECK_EQ(workspace_take_lock(found, &fx.err), -EBUSY);
    (void)snprintf(self, sizeof(self), "(process %d)", (int)getpid());
    CHECK(strstr(fx.err.message, self));
    workspace_free(ptr_steal(&ws));
    CHECK_EQ(workspace_take_lock(found, &fx.err), 0);
    CHECK_EQ(workspace_take_lock(found, &fx.err), 0);
    fixture_finish(&fx);
}

TEST(what_is_saved_is_found_and_the_lock_brings_the_latest)
{
    struct fixture fx;
    AUTO(workspace_free) struct workspace *old = NULL;

    fixture_init(&fx);
    AUTO(workspace_free) struct workspace *ws = fixture_create(&fx, "T", "R");
    CHECK_EQ(workspace_find(fx.state, "R", &old, &fx.err), 0);
    ws->phase = WORKSPACE_FINISHED;
    ws->is_published = true;
    (void)snprintf(ws->tip, sizeof(ws->tip), "%s", fx.base);
    CHECK_EQ(workspace_save(ws, &fx.err), 0);
    workspace_free(ptr_steal(&ws));
    CHECK_EQ(old->phase, WORKSPACE_READY);
    CHECK_EQ(workspace_take_lock(old, &fx.err), 0);
    CHECK_EQ(old->phase, WORKSPACE_FINISHED);
    CHECK(old->is_published);
    CHECK_STR(old->tip, fx.base);
    fixture_finish(&fx);
}

TEST(its_repository_is_opened_again_with_the_work_tree)
{
    struct fixture fx;
    AUTO(repo_free) struct repo *repo = NULL;
    AUTO(repo_free) struct repo *bare = NULL;

    fixture_init(&fx);
    AUTO(workspace_free) struct workspace *ws = fixture_create(&fx, "T", "R");
    CHECK_EQ(workspace_repo(ws, &repo, &fx.err), 0);
    CHECK_STR(repo->top, fx.where);
    CHECK_STR(repo->common_dir, fx.repo->common_dir);
    free(ws->top);
    ws->top = strdup("/nonexistent");
    CHECK_EQ(workspace_repo(ws, &bare, &fx.err), 0);
    CHECK_STR(bare->common_dir, fx.repo->common_dir);
    fixture_finish(&fx);
}

TEST(a_damaged_record_is_shown_as_such_and_can_be_discarded)
{
    struct fixture fx;
    AUTO(workspace_free) struct workspace *found = NULL;
    struct repo *repo = NULL;

    fixture_init(&fx);
    workspace_free(fixture_create(&fx, "T", "R"));
    fixture_write(&fx, "state/workspaces/T/R/meta", "");
    CHECK_EQ(workspace_find(fx.state, "R", &found, &fx.err), 0);
    CHECK_STR(found->task, "T");
    CHECK_STR(found->repo, "");
    CHECK(strstr(found->note, "damaged"));
    CHECK_EQ(workspace_repo(found, &repo, &fx.err), -EBADMSG);
    CHECK_EQ(workspace_sweep(fx.state, &fx.err), 0);
    CHECK(fixture_has(&fx, "state/workspaces/T/R"));
    CHECK_EQ(workspace_discard(fx.state, found, &fx.err), 0);
    CHECK(!fixture_has(&fx, "state/workspaces/T"));
    fixture_finish(&fx);
}
