#include "workspace/checkout_fixture.h"
#include <errno.h>

static uint64_t entries(void)
{
    sh("ls -d state/checkouts/*/* state/checkouts/.tmp/* | wc -l >count");
    return strtoul(read_text("count"), NULL, 10);
}

TEST(a_sweep_takes_what_crashes_left)
{
    begin();
    const char *commit = commit_of("HEAD");
    AUTO(checkout_free) struct checkout *checkout = make(commit);
    AUTO(checkout_draft_free) struct checkout_draft *draft = NULL;

    sh("cd repo; git commit -q --allow-empty -m second");
    CHECK_EQ(
            checkout_fill(state, repo, commit_of("HEAD"), self(), NULL, NULL, &draft, &err), 0);
    sh("mkdir state/checkouts/.tmp/D-1; touch state/checkouts/.tmp/D-1/x");
    CHECK_EQ(entries(), 3);
    CHECK_EQ(checkout_sweep(state, 0, UINT64_MAX, &err), 1);
    CHECK_EQ(entries(), 2); /* the entry and the draft that is in use */
    CHECK_EQ(find(commit), 0);

    AUTO(checkout_free) struct checkout *second = NULL;
    CHECK_EQ(checkout_publish(state, repo, draft, -1, &second, &err), 0);
    checkout_draft_free(ptr_steal(&draft));
    sh("test $(ls -d state/checkouts/*/* | wc -l) -eq 2");
    end();
}

TEST(what_is_held_or_stood_on_is_not_evicted)
{
    begin();
    const char *first = commit_of("HEAD");
    struct checkout *base = make(first);
    sh("cd repo; echo 1 >a/one; git commit -qam second");
    const char *second = commit_of("HEAD");
    struct checkout *layer = make(second);
    CHECK_EQ(layer->n_below, 1);

    CHECK_EQ(checkout_sweep(state, 0, 0, &err), 0); /* both held */
    checkout_free(base);
    CHECK_EQ(checkout_sweep(state, 0, 0, &err), 0); /* the base by way of the layer */
    checkout_free(layer);
    CHECK_EQ(checkout_sweep(state, 3600, UINT64_MAX, &err), 0); /* too young */
    CHECK_EQ(find(first), 0);
    CHECK_EQ(find(second), 0);

    /* Old, but a layer that was used lately stands on it. */
    sh("touch -d '2 days ago' state/checkouts/*/%s", first);
    CHECK_EQ(checkout_sweep(state, 3600, UINT64_MAX, &err), 0);
    CHECK_EQ(find(second), 0);
    CHECK_EQ(checkout_sweep(state, 0, 0, &err), 2);
    CHECK_EQ(find(first), -ENOENT);
    CHECK_EQ(find(second), -ENOENT);
    sh("test -z \"$(ls state/checkouts)\"");
    end();
}

TEST(use_keeps_an_entry_young)
{
    begin();
    const char *commit = commit_of("HEAD");
    checkout_free(make(commit));
    sh("touch -d '2 days ago' state/checkouts/*/%s", commit);
    CHECK_EQ(find(commit), 0);
    CHECK_EQ(checkout_sweep(state, 3600, UINT64_MAX, &err), 0);
    sh("touch -d '2 days ago' state/checkouts/*/%s", commit);
    CHECK_EQ(checkout_sweep(state, 3600, UINT64_MAX, &err), 1);
    end();
}

/* A machine that stopped may have lost the content of files whose names it kept. */
TEST(an_entry_that_never_reached_the_disk_does_not_outlive_the_boot)
{
    begin();
    const char *commit = commit_of("HEAD");
    checkout_free(make(commit));
    sh("sed -i 's/^boot .*/boot another/' state/checkouts/*/%s/facts", commit);
    CHECK_EQ(find(commit), -ENOENT);
    checkout_free(make(commit)); /* removes the old one */
    CHECK_EQ(find(commit), 0);

    CHECK_EQ(checkout_sweep(state, 0, UINT64_MAX, &err), 0); /* syncs the new one */
    sh("sed -i 's/^boot .*/boot another/' state/checkouts/*/%s/facts", commit);
    CHECK_EQ(find(commit), 0);
    end();
}
