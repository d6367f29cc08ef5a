#include "workspace/view_fixture.h"
#include <errno.h>

TEST(an_edit_of_the_same_size_right_after_a_small_layer_is_seen)
{
    begin();
    AUTO(checkout_free) struct checkout *base = make(commit_of("HEAD"));
    sh("cd repo; echo 111 >a/one; git commit -qam second");
    const char *commit = commit_of("HEAD");
    AUTO(checkout_free) struct checkout *checkout = make(commit);

    CHECK(facts_of(checkout).depth == 1);
    VIEW(checkout, commit, "echo 222 >a/one; test \"$(git status --porcelain)\" = ' M a/one'");
    end();
}

/* Each step is a commit and becomes a layer over one before. */
static const char *const steps[] = {
    "echo changed >a/one",
    "rm a/b/two",
    "rm -r a/b",
    "mkdir -p a/b/c; echo again >a/b/c/other",
    "rm d/1; mkdir d/1; echo inside >d/1/file",
    "rm -r d/1; echo file >d/1",
    "rm -r a/b; ln -s /etc a/b",
    "rm a/b; mkdir a/b; echo not in etc >a/b/passwd",
    "rm -r a; echo now a file >a",
    "rm a; mkdir a; echo back >a/one; chmod +x d/2; ln -sf 3 d/4",
};

TEST(layers_stack_to_the_tree_of_their_commit)
{
    begin();
    checkout_free(make(commit_of("HEAD")));
    for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
        sh("cd repo; %s; git add -A; git commit -qm step", steps[i]);
        const char *commit = commit_of("HEAD");
        AUTO(checkout_free) struct checkout *checkout = make(commit);
        CHECK(checkout->n_below > 0);
        CHECK_EQ(facts_of(checkout).depth, checkout->n_below);
        sh("rm -rf up-git up-tree work-git work-tree");
        CHECK_CLEAN(checkout, commit);
    }
    end();
}

TEST(stacks_do_not_grow_without_end)
{
    begin();
    checkout_free(make(commit_of("HEAD")));
    for (size_t i = 0; i < 2 * CHECKOUT_MAX_DEPTH; i++) {
        sh("cd repo; echo %zu >d/more-%zu; git add -A; git commit -qm more", i, i);
        const char *commit = commit_of("HEAD");
        AUTO(checkout_free) struct checkout *checkout = make(commit);
        CHECK(checkout->n_below <= CHECKOUT_MAX_DEPTH);
        CHECK_EQ(find(commit), 0);
    }
    end();
}

TEST(a_layer_records_the_whole_index)
{
    begin();
    AUTO(checkout_free) struct checkout *base = make(commit_of("HEAD"));
    sh("cd repo; rm -r a/b; echo new >d/new; git add -A; git commit -qm second");
    AUTO(checkout_free) struct checkout *layer = make(commit_of("HEAD"));
    AUTO(index_free) struct index *index = index_of(layer);

    CHECK_STR(facts_of(layer).below, commit_of("HEAD~"));
    CHECK(index_find(index, "d/new"));
    CHECK(index_find(index, "d/40"));
    CHECK(!index_find(index, "a/b/two"));
    CHECK_EQ(facts_of(layer).files, index->n);
    /* One whiteout for the directory, one file, and nothing else. */
    sh("cd %s; test \"$(find . | sort | tr '\\n' ' ')\" = '. ./a ./a/b ./d ./d/new '; test -c "
       "a/b",
            layer->lower[0]);
    end();
}

TEST(what_would_convert_other_files_makes_no_layer)
{
    begin();
    AUTO(checkout_free) struct checkout *base = make(commit_of("HEAD"));
    sh("cd repo; echo '*.bin -text' >.gitattributes; git add -A; git commit -qm second");
    AUTO(checkout_free) struct checkout *attributes = make(commit_of("HEAD"));
    CHECK_EQ(facts_of(attributes).depth, 0);

    sh("cd repo; git config core.autocrlf input; echo 1 >d/5; git commit -qam third");
    AUTO(checkout_free) struct checkout *settings = make(commit_of("HEAD"));
    CHECK_EQ(facts_of(settings).depth, 0);
    CHECK(settings->has_line_ends && !settings->has_filters);
    end();
}

TEST(a_layer_whose_base_is_gone_is_made_anew)
{
    begin();
    const char *first = commit_of("HEAD");
    checkout_free(make(first));
    sh("cd repo; echo 1 >a/one; git commit -qam second");
    const char *second = commit_of("HEAD");
    checkout_free(make(second));
    sh("rm -r state/checkouts/*/%s", first);
    CHECK_EQ(find(second), -ENOENT);
    AUTO(checkout_free) struct checkout *fresh = make(second);
    CHECK_EQ(fresh->n_below, 0);
    CHECK_EQ(find(second), 0);
    end();
}
