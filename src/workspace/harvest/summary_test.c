#include "workspace/harvest_fixture.h"

static struct fixture fx;
static struct harvest_summary summary;
static char tip[OID_MAX]; /* of what the run made */

static void begin(void)
{
    fixture_init(&fx, "");
}

static void end(void)
{
    harvest_summary_finish(&summary);
    fixture_finish(fx);
}

/* Copies the run's branch into the quarantine. */
static void bring(void)
{
    sh(tip, sizeof(tip), "git --git-dir=%s rev-parse main", fx.run_git);
    sh(NULL, 0,
            "printf '%%s\\n^%%s\\n' %s %s | git --git-dir=%s pack-objects -q --revs --stdout |"
            " GIT_OBJECT_DIRECTORY=%s GIT_ALTERNATE_OBJECT_DIRECTORIES=%s git --git-dir=%s"
            " index-pack --stdin --fix-thin",
            tip, fx.base, fx.run_git, fx.quarantine, fx.objects, fx.git_dir);
}

static int summarize(const char *commit)
{
    const struct harvest_limits limits = HARVEST_LIMITS_INIT;

    return harvest_summarize(
            &fx.repo, fx.quarantine, fx.base, commit, &limits, &summary, &fx.err);
}

TEST(files_lines_and_commits_are_counted)
{
    begin();
    sh(NULL, 0,
            "cd %s/run && printf 'x\\ny\\n' >a && git commit -qam 1 && rm dir/b && ln -s a"
            " dir/b && rm dir/deep/c && printf '\\0bin' >data && mkdir -p .github/workflows &&"
            " echo on: >.github/workflows/ci.yml && git add -A && git commit -qm 2",
            fx.top);
    bring();
    CHECK_EQ(summarize(tip), 0);
    CHECK_EQ(summary.n_commits, 2);
    CHECK(!summary.is_rewritten);
    CHECK_EQ(summary.n_files, 5);
    CHECK_EQ(summary.n_sensitive, 1);
    CHECK_EQ(summary.added, 4);
    CHECK_EQ(summary.removed, 3);

    const struct harvest_file *file = summary.files;
    CHECK_STR(file[0].path, ".github/workflows/ci.yml");
    CHECK_EQ(file[0].status, 'A');
    CHECK_STR(file[0].sensitive, "CI workflow");
    CHECK_STR(file[1].path, "a");
    CHECK_EQ(file[1].status, 'M');
    CHECK_EQ(file[1].added, 2);
    CHECK_EQ(file[1].removed, 1);
    CHECK_STR(file[1].sensitive, NULL);
    CHECK_STR(file[2].path, "data");
    CHECK(file[2].is_binary);
    CHECK_STR(file[3].path, "dir/b");
    CHECK_EQ(file[3].status, 'T');
    CHECK_STR(file[4].path, "dir/deep/c");
    CHECK_EQ(file[4].status, 'D');
    CHECK_EQ(file[4].removed, 1);
    end();
}

TEST(a_mode_or_a_submodule_is_a_change_too)
{
    begin();
    sh(NULL, 0,
            "cd %s/run && chmod +x a && git update-index --add --cacheinfo 160000,%s,sub &&"
            " echo more >>dir/b && git add a dir/b && git commit -qm 1",
            fx.top, fx.base);
    bring();
    CHECK_EQ(summarize(tip), 0);
    CHECK_EQ(summary.n_files, 3);
    CHECK_STR(summary.files[0].path, "a");
    CHECK_EQ(summary.files[0].added, 0);
    CHECK_STR(summary.files[1].path, "dir/b");
    CHECK_EQ(summary.files[1].added, 1);
    CHECK_STR(summary.files[2].path, "sub");
    end();
}

TEST(names_come_as_they_are)
{
    begin();
    sh(NULL, 0,
            "cd %s/run && echo x >\"$(printf '1\\t2\\tx\\ny')\" && echo x >':colon' && git add "
            "-A"
            " && git commit -qm 1",
            fx.top);
    bring();
    CHECK_EQ(summarize(tip), 0);
    CHECK_EQ(summary.n_files, 2);
    CHECK_STR(summary.files[0].path, "1\t2\tx\ny");
    CHECK_EQ(summary.files[0].added, 1);
    CHECK_STR(summary.files[1].path, ":colon");
    CHECK_EQ(summary.files[1].added, 1);
    end();
}

TEST(history_that_was_rewritten_is_said)
{
    begin();
    sh(NULL, 0, "cd %s/run && git commit -q --amend -m other", fx.top);
    bring();
    CHECK_EQ(summarize(tip), 0);
    CHECK(summary.is_rewritten);
    CHECK_EQ(summary.n_commits, 1);
    CHECK_EQ(summary.n_files, 0);
    end();
}

TEST(base_compared_with_itself_is_nothing)
{
    begin();
    CHECK_EQ(summarize(fx.base), 0);
    CHECK_EQ(summary.n_files + summary.n_commits, 0);
    CHECK(!summary.is_rewritten);
    end();
}

TEST(more_paths_than_allowed_and_unknown_commits_are_errors)
{
    struct harvest_limits limits = HARVEST_LIMITS_INIT;

    begin();
    sh(NULL, 0, "cd %s/run && touch 1 2 3 && git add -A && git commit -qm 1", fx.top);
    bring();
    limits.max_paths = 2;
    CHECK_EQ(harvest_summarize(
                     &fx.repo, fx.quarantine, fx.base, tip, &limits, &summary, &fx.err),
            -EFBIG);
    limits = (struct harvest_limits)HARVEST_LIMITS_INIT;
    limits.max_path_bytes = 2;
    CHECK_EQ(harvest_summarize(
                     &fx.repo, fx.quarantine, fx.base, tip, &limits, &summary, &fx.err),
            -EFBIG);
    memset(tip, 'a', strlen(tip));
    CHECK_EQ(summarize(tip), -EIO);
    CHECK_EQ(summarize("HEAD"), -EINVAL);
    CHECK(!summary.files);
    end();
}

/* The repository's own configuration may name a program for a kind of file. */
TEST(no_program_of_the_users_sees_the_content)
{
    begin();
    sh(NULL, 0,
            "cd %s/repo && git config diff.x.textconv 'touch %s/ran;cat' && git config"
            " diff.x.command 'touch %s/ran' && echo '* diff=x' >.git/info/attributes",
            fx.top, fx.top, fx.top);
    sh(NULL, 0, "cd %s/run && echo x >a && git commit -qam 1", fx.top);
    bring();
    CHECK_EQ(summarize(tip), 0);
    sh(NULL, 0, "test ! -e %s/ran", fx.top);
    end();
}
