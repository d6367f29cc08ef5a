#include "workspace/view_fixture.h"
#include <errno.h>

TEST(a_commit_becomes_files_and_a_git_dir)
{
    begin();
    const char *commit = commit_of("HEAD");
    CHECK_EQ(find(commit), -ENOENT);
    AUTO(checkout_free) struct checkout *checkout = make(commit);

    CHECK_EQ(find(commit), 0);
    CHECK_STR(checkout->tree, commit_of("HEAD^{tree}"));
    CHECK(!checkout->lower[1]);
    CHECK(!checkout->has_filters && !checkout->has_line_ends && !checkout->has_gitlinks);
    sh("test \"$(cat %s/.git)\" = 'gitdir: /run/carrel/git'", checkout->lower[0]);
    sh("diff -r --no-dereference --exclude=.git %s repo", checkout->lower[0]);
    sh("test -z \"$(ls -A state/checkouts/.tmp)\"");
    end();
}

TEST(git_finds_a_fresh_tree_clean)
{
    begin();
    const char *commit = commit_of("HEAD");
    AUTO(checkout_free) struct checkout *checkout = make(commit);

    CHECK_CLEAN(checkout, commit);
    VIEW(checkout, commit,
            "git log --oneline | grep -q first; echo more >>a/one; "
            "git commit -qam second; git fsck --no-dangling");
    end();
}

/* Content and size, not time alone: as early as anybody can make the edit. */
TEST(an_edit_of_the_same_size_in_the_first_second_is_seen)
{
    begin();
    const char *commit = commit_of("HEAD");
    AUTO(checkout_free) struct checkout *checkout = make(commit);

    VIEW(checkout, commit,
            "printf 'uno\n' >a/one; test \"$(git status --porcelain)\" = ' M a/one'");
    end();
}

TEST(at_most_a_few_files_are_as_new_as_the_index)
{
    struct stat st;
    char path[PATH_MAX];
    size_t fresh = 0;

    begin();
    sh("cd repo; for i in $(seq 100); do echo $i >a/$i; done; git add -A; git commit -qm more");
    AUTO(checkout_free) struct checkout *checkout = make(commit_of("HEAD"));
    AUTO(index_free) struct index *index = index_of(checkout);
    (void)snprintf(path, sizeof(path), "%s/index", checkout->git);
    CHECK_EQ(stat(path, &st), 0);
    CHECK_EQ(index->n, 147);
    for (size_t i = 0; i < index->n; i++) {
        CHECK(index->entries[i].mtime_s <= st.st_mtim.tv_sec);
        fresh += index->entries[i].mtime_s == st.st_mtim.tv_sec;
    }
    CHECK(fresh <= 64);
    end();
}

TEST(the_owner_in_the_index_is_the_one_asked_for)
{
    begin();
    AUTO(checkout_draft_free) struct checkout_draft *draft = NULL;
    AUTO(checkout_free) struct checkout *checkout = NULL;
    const struct checkout_owner owner = { .uid = 1234, .gid = 4321 };

    CHECK_EQ(checkout_fill(state, repo, commit_of("HEAD"), owner, NULL, NULL, &draft, &err), 0);
    CHECK_EQ(checkout_publish(state, repo, draft, -1, &checkout, &err), 0);
    sh("GIT_DIR=repo/.git GIT_INDEX_FILE=%s/index git ls-files --debug >debug; "
       "test $(grep -c 'uid: 1234.gid: 4321' debug) -eq $(grep -c uid: debug); test -s debug",
            checkout->git);
    end();
}

TEST(the_mask_of_the_caller_does_not_matter)
{
    begin();
    (void)umask(077);
    AUTO(checkout_free) struct checkout *checkout = make(commit_of("HEAD"));
    CHECK_EQ(umask(022), 077);
    sh("cd %s; test \"$(stat -c %%a . a a/one d/run .git | tr '\\n' ' ')\" = '755 755 644 755 "
       "644 '",
            checkout->lower[0]);
    end();
}

TEST(settings_of_the_user_change_neither_tree_nor_index)
{
    begin();
    sh("cd repo; git config index.version 4; git config core.splitIndex true; "
       "git config core.untrackedCache true; git config feature.manyFiles true; "
       "git config core.fsmonitor /bin/false; git config core.ignoreStat true; "
       "git config core.checkStat minimal; git sparse-checkout set d; test ! -e a/one; "
       "mkdir -p .git/hooks; printf '#!/bin/sh\ntouch %s/hooked\n' "
       ">.git/hooks/post-index-change; "
       "cp .git/hooks/post-index-change .git/hooks/post-checkout; chmod +x .git/hooks/post-*; "
       "rm -f %s/hooked",
            top, top);
    const char *commit = commit_of("HEAD");
    AUTO(checkout_free) struct checkout *checkout = make(commit);

    sh("test ! -e hooked; test -e %s/a/one", checkout->lower[0]);
    AUTO(index_free) struct index *index = index_of(checkout);
    CHECK(index_find(index, "a/b/c/three"));
    CHECK_CLEAN(checkout, commit);
    end();
}

TEST(of_two_who_fill_the_same_commit_one_does_it)
{
    int status[2];
    pid_t pids[2];

    begin();
    const char *commit = commit_of("HEAD");
    for (int i = 0; i < 2; i++) {
        pids[i] = fork();
        CHECK(pids[i] >= 0);
        if (pids[i] > 0)
            continue;
        AUTO(checkout_draft_free) struct checkout_draft *draft = NULL;
        AUTO(checkout_free) struct checkout *checkout = NULL;
        int r = checkout_fill(state, repo, commit, self(), NULL, NULL, &draft, &err);
        if (r == -EEXIST)
            _exit(find(commit) == 0 ? 17 : 1);
        CHECK_EQ(r, 0);
        CHECK_EQ(checkout_publish(state, repo, draft, -1, &checkout, &err), 0);
        checkout_draft_free(ptr_steal(&draft));
        _exit(0);
    }
    for (int i = 0; i < 2; i++) {
        CHECK_EQ(waitpid(pids[i], &status[i], 0), pids[i]);
        CHECK(WIFEXITED(status[i]));
    }
    CHECK_EQ(WEXITSTATUS(status[0]) + WEXITSTATUS(status[1]), 17);
    CHECK_EQ(find(commit), 0);
    sh("test \"$(ls -A state/checkouts/*)\" = %s", commit);
    end();
}

TEST(a_draft_that_is_not_published_leaves_nothing)
{
    begin();
    AUTO(checkout_draft_free) struct checkout_draft *draft = NULL;
    CHECK_EQ(
            checkout_fill(state, repo, commit_of("HEAD"), self(), NULL, NULL, &draft, &err), 0);
    sh("ls state/checkouts/.tmp/*/tree");
    checkout_draft_free(ptr_steal(&draft));
    sh("test -z \"$(ls state/checkouts; ls -A state/checkouts/.tmp)\"");
    end();
}

TEST(a_commit_that_is_not_there_is_an_error_with_its_name)
{
    static const char nowhere[] = "0123456789012345678901234567890123456789";
    AUTO(checkout_draft_free) struct checkout_draft *draft = NULL;

    begin();
    CHECK_EQ(checkout_fill(state, repo, nowhere, self(), NULL, NULL, &draft, &err), -ENOENT);
    CHECK(strstr(err.message, nowhere));
    sh("test -z \"$(ls state/checkouts; ls -A state/checkouts/.tmp)\"");
    CHECK_EQ(checkout_fill(state, repo, "HEAD", self(), NULL, NULL, &draft, &err), -EINVAL);
    CHECK_EQ(find("../../etc"), -EINVAL);
    end();
}

TEST(an_offered_index_is_taken_when_it_fits)
{
    begin();
    const char *commit = commit_of("HEAD");
    AUTO(checkout_draft_free) struct checkout_draft *draft = NULL;
    AUTO(checkout_free) struct checkout *checkout = NULL;
    char path[PATH_MAX];
    struct stat before;
    struct stat after;

    CHECK_EQ(checkout_fill(state, repo, commit, self(), NULL, NULL, &draft, &err), 0);
    sh("cp %s/git/index good; cp good wrong; "
       "GIT_DIR=repo/.git GIT_INDEX_FILE=wrong git update-index --force-remove a/one; "
       "cp good cut; truncate -s -1 cut",
            draft->entry.path);
    for (size_t i = 0; i < 2; i++) {
        (void)snprintf(path, sizeof(path), "%s/%s", top, i ? "wrong" : "cut");
        AUTO(fd_close) int bad = open(path, O_RDONLY | O_CLOEXEC);
        CHECK_EQ(checkout_publish(state, repo, draft, bad, &checkout, &err), -EBADMSG);
        CHECK_EQ(find(commit), -ENOENT);
    }
    (void)snprintf(path, sizeof(path), "%s/good", top);
    AUTO(fd_close) int good = open(path, O_RDONLY | O_CLOEXEC);
    CHECK_EQ(fstat(good, &before), 0);
    CHECK_EQ(checkout_publish(state, repo, draft, good, &checkout, &err), 0);
    (void)snprintf(path, sizeof(path), "%s/index", checkout->git);
    CHECK_EQ(stat(path, &after), 0);
    CHECK_EQ(after.st_mtim.tv_sec, before.st_mtim.tv_sec);
    sh("test -z \"$(ls %s | grep offered)\"", checkout->git);
    end();
}

TEST(a_repository_with_sha256_works)
{
    begin_with("git init -q --object-format=sha256 repo; cd repo; echo 1 >one; mkdir d; "
               "for i in $(seq 20); do echo $i >d/$i; done; git add -A; git commit -qm first");
    AUTO(checkout_free) struct checkout *base = make(commit_of("HEAD"));
    CHECK_CLEAN(base, commit_of("HEAD"));
    sh("cd repo; echo 2 >one; git commit -qam second");
    AUTO(checkout_free) struct checkout *layer = make(commit_of("HEAD"));
    CHECK_EQ(facts_of(layer).depth, 1);
    sh("rm -rf up-git up-tree work-git work-tree");
    CHECK_CLEAN(layer, commit_of("HEAD"));
    end();
}

TEST(a_bare_repository_works)
{
    begin_with("git init -q src; cd src; echo 1 >one; git add -A; git commit -qm first; cd ..; "
               "git clone -q --bare src repo 2>&1");
    AUTO(checkout_free) struct checkout *checkout = make(commit_of("HEAD"));
    CHECK_CLEAN(checkout, commit_of("HEAD"));
    end();
}

TEST(an_empty_commit_becomes_an_empty_tree)
{
    begin_with("git init -q repo; cd repo; git commit -q --allow-empty -m nothing");
    AUTO(checkout_free) struct checkout *checkout = make(commit_of("HEAD"));
    sh("test \"$(ls -A %s)\" = .git", checkout->lower[0]);
    VIEW(checkout, commit_of("HEAD"), "test -z \"$(git status --porcelain)\"");
    end();
}
