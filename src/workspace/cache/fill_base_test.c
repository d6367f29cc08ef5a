#include "workspace/view_fixture.h"
#include <errno.h>

TEST(attributes_and_settings_are_noticed)
{
    begin();
    sh("cd repo; echo '*.psd filter=lfs diff=lfs -text' >a/.gitattributes; git add -A; "
       "git commit -qm filter");
    AUTO(checkout_free) struct checkout *filter = make(commit_of("HEAD"));
    CHECK(filter->has_filters && !filter->has_line_ends);

    sh("cd repo; echo '* text=auto' >a/.gitattributes; git commit -qam text");
    AUTO(checkout_free) struct checkout *text = make(commit_of("HEAD"));
    CHECK(!text->has_filters && text->has_line_ends);

    sh("cd repo; git rm -q a/.gitattributes; git commit -qm none; git config core.fileMode "
       "false");
    AUTO(checkout_free) struct checkout *modes = make(commit_of("HEAD"));
    CHECK(modes->has_filters && !modes->has_line_ends);

    sh("cd repo; git config --unset core.fileMode; echo '*.c ident' >.git/info/attributes; "
       "git commit -q --allow-empty -m info");
    AUTO(checkout_free) struct checkout *info = make(commit_of("HEAD"));
    CHECK(info->has_filters && !info->has_line_ends);
    end();
}

TEST(filters_of_the_user_write_the_files)
{
    begin();
    sh("cd repo; git config filter.up.smudge 'tr a-z A-Z'; git config filter.up.clean 'tr A-Z "
       "a-z'; "
       "echo '*.up filter=up' >.gitattributes; echo hello >x.up; git add -A; git commit -qm "
       "up");
    const char *commit = commit_of("HEAD");
    AUTO(checkout_free) struct checkout *checkout = make(commit);
    sh("test \"$(cat %s/x.up)\" = HELLO", checkout->lower[0]);
    VIEW(checkout, commit,
            "test -z \"$(git diff-files)\"; test -z \"$(git status --porcelain)\"");

    sh("cd repo; echo world >x.up; git commit -qam more; rm -rf ../up-* ../work-*");
    commit = commit_of("HEAD");
    AUTO(checkout_free) struct checkout *layer = make(commit);
    CHECK_EQ(layer->n_below, 1);
    CHECK(layer->has_filters);
    sh("test \"$(cat %s/x.up)\" = WORLD", layer->lower[0]);
    VIEW(layer, commit, "test -z \"$(git diff-files)\"; test -z \"$(git status --porcelain)\"");
    end();
}

static uint64_t reported;
static unsigned ends;
static void report(uint64_t done, uint64_t total, void *context)
{
    CHECK(context == &reported);
    CHECK(done <= total && total > 40);
    reported = done + 1;
    ends += done == total;
}

TEST(a_long_fill_tells_how_far_it_is)
{
    begin();
    /* The last file takes longer than a second: all before it are there by then. */
    sh("cd repo; git config filter.slow.smudge 'sleep 1.4; cat'; "
       "echo 'zz filter=slow' >.gitattributes; echo z >zz; git add -A; git commit -qm slow");
    AUTO(checkout_draft_free) struct checkout_draft *draft = NULL;
    CHECK_EQ(checkout_fill(
                     state, repo, commit_of("HEAD"), self(), report, &reported, &draft, &err),
            0);
    CHECK(reported > 40);
    CHECK_EQ(ends, 1); /* who prints a line ends it then */
    end();
}

TEST(a_fill_that_fails_while_it_is_watched_says_why)
{
    begin();
    sh("cd repo; git config filter.bad.smudge false; git config filter.bad.required true; "
       "echo 'zz filter=bad' >.gitattributes; git add .gitattributes; echo z >zz; "
       "git config filter.bad.clean cat; git add zz; git commit -qm bad");
    AUTO(checkout_draft_free) struct checkout_draft *draft = NULL;
    CHECK_EQ(checkout_fill(
                     state, repo, commit_of("HEAD"), self(), report, &reported, &draft, &err),
            -EIO);
    CHECK(strstr(err.message, "zz"));
    end();
}
