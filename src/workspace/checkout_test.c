#include "base/err.h"
#include "base/fd.h"
#include "base/tree.h"
#include "harness.h"
#include "workspace/checkout.h"
#include "workspace/checkout_facts.h"
#include "workspace/index.h"
#include "workspace/private.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Every test has a directory of its own, with a repository in it and a state directory. */
static struct carrel_error err;
static char top[64];
static char state[96];
static struct repo *repo;

/* Runs a line of shell in the test's directory; returns the exit status. */
static int try_sh(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static int try_sh(const char *fmt, ...)
{
    char line[8192];
    int status;
    va_list ap;

    va_start(ap, fmt);
    int len = vsnprintf(line, sizeof(line), fmt, ap);
    va_end(ap);
    CHECK(len > 0 && (size_t)len < sizeof(line));
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        (void)dup2(STDERR_FILENO, STDOUT_FILENO);
        if (chdir(top) == 0)
            (void)execl("/bin/sh", "sh", "-euc", line, (char *)NULL);
        _exit(126);
    }
    CHECK_EQ(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}
#define sh(...) CHECK_EQ(try_sh(__VA_ARGS__), 0)

static const char *read_text(const char *name)
{
    static char text[8192];
    char path[PATH_MAX];

    (void)snprintf(path, sizeof(path), "%s/%s", top, name);
    CHECK(fd_read_file(AT_FDCWD, path, text, sizeof(text)) >= 0);
    text[strcspn(text, "\n")] = '\0';
    return text;
}

static const char *commit_of(const char *rev)
{
    static char oids[8][OID_MAX];
    static size_t next;
    char *oid = oids[next++ % ARRAY_LEN(oids)];

    sh("git -C repo rev-parse %s >oid", rev);
    (void)snprintf(oid, OID_MAX, "%s", read_text("oid"));
    return oid;
}

static void begin_with(const char *init)
{
    static const char *const foreign[] = { "GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE",
        "GIT_OBJECT_DIRECTORY", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_COUNT", "XDG_CONFIG_HOME" };
    char path[96];

    (void)snprintf(top, sizeof(top), "/tmp/checkout-test-XXXXXX");
    CHECK(mkdtemp(top));
    (void)snprintf(state, sizeof(state), "%s/state", top);
    for (size_t i = 0; i < ARRAY_LEN(foreign); i++)
        CHECK_EQ(unsetenv(foreign[i]), 0);
    CHECK_EQ(setenv("HOME", top, 1), 0);
    CHECK_EQ(setenv("GIT_CONFIG_NOSYSTEM", "1", 1), 0);
    sh("git config --global user.name Tester; git config --global user.email t@example.org; "
       "git config --global init.defaultBranch main; %s",
            init);
    (void)snprintf(path, sizeof(path), "%s/repo", top);
    CHECK_EQ(repo_open(path, &repo, &err), 0);
}

/* Some files of all kinds, in one commit. */
static void begin(void)
{
    begin_with(
            "git init -q repo; cd repo; mkdir -p a/b/c d; echo one >a/one; echo two >a/b/two; "
            "echo three >a/b/c/three; echo x >d/run; chmod +x d/run; ln -s ../a/one d/link; "
            "for i in $(seq 40); do echo $i >d/$i; done; : >empty; "
            "echo odd >\"d/an 'odd' \\\"name\\\"$(printf '\\n\\t.')\"; "
            "git add -A; git commit -qm first");
}

static void end(void)
{
    AUTO(fd_close) int tmp = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    repo_free(repo);
    CHECK_EQ(tree_remove(tmp, top + strlen("/tmp/"), &err), 0);
}

static struct checkout_owner self(void)
{
    return (struct checkout_owner){ .uid = getuid(), .gid = getgid() };
}

static struct checkout *make(const char *commit)
{
    AUTO(checkout_draft_free) struct checkout_draft *draft = NULL;
    struct checkout *checkout = NULL;

    int r = checkout_fill(state, repo, commit, self(), NULL, NULL, &draft, &err);
    if (r < 0)
        test_fail(__FILE__, __LINE__, "fill: %s", err.message);
    r = checkout_publish(state, repo, draft, -1, &checkout, &err);
    if (r < 0)
        test_fail(__FILE__, __LINE__, "publish: %s", err.message);
    return checkout;
}

static int find(const char *commit)
{
    AUTO(checkout_free) struct checkout *checkout = NULL;

    return checkout_find(state, repo, commit, &checkout, &err);
}

static struct checkout_facts facts_of(const struct checkout *checkout)
{
    struct checkout_facts facts;
    AUTO(fd_close) int dir = open(checkout->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    CHECK_EQ(checkout_facts_read(dir, &facts), 0);
    return facts;
}

static struct index *index_of(const struct checkout *checkout)
{
    char path[PATH_MAX];
    struct index *index = NULL;

    (void)snprintf(path, sizeof(path), "%s/index", checkout->git);
    AUTO(fd_close) int fd = open(path, O_RDONLY | O_CLOEXEC);
    CHECK_EQ(index_read(fd, repo->is_sha256, &index, &err), 0);
    return index;
}

static void write_to(const char *path, const char *text)
{
    AUTO(fd_close) int fd = open(path, O_WRONLY | O_CLOEXEC);

    CHECK(fd >= 0);
    CHECK_EQ(fd_write_all(fd, text, strlen(text)), 0);
}

/* Only in a process that the test has forked: a mount namespace, as root or as anybody. */
static void enter_namespace(void)
{
    char map[64];
    uid_t uid = getuid();
    gid_t gid = getgid();

    if (unshare(uid == 0 ? CLONE_NEWNS : CLONE_NEWNS | CLONE_NEWUSER) < 0)
        _exit(77);
    if (uid != 0) {
        write_to("/proc/self/setgroups", "deny");
        (void)snprintf(map, sizeof(map), "%u %u 1", uid, uid);
        write_to("/proc/self/uid_map", map);
        (void)snprintf(map, sizeof(map), "%u %u 1", gid, gid);
        write_to("/proc/self/gid_map", map);
    }
    CHECK_EQ(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL), 0);
}

static void mount_overlay(const char *lower, const char *name, const char *at)
{
    char options[3 * PATH_MAX];

    sh("mkdir -p %s %s/up-%s %s/work-%s", at, top, name, top, name);
    (void)snprintf(options, sizeof(options),
            "lowerdir=%s,upperdir=%s/up-%s,workdir=%s/work-%s,userxattr", lower, top, name, top,
            name);
    if (mount("overlay", at, "overlay", 0, options) < 0)
        _exit(77);
}

/*
 * Runs a line of shell in the tree as a run sees it: overlays over the checkout, objects and
 * git dir at their places. Returns its exit status. The changes of one call are there in the
 * next.
 */
static int in_view(const struct checkout *checkout, const char *commit, const char *line)
{
    int status;
    char lower[8 * PATH_MAX / 4] = "";
    char upper[PATH_MAX];

    for (size_t i = 0; checkout->lower[i]; i++)
        (void)snprintf(lower + strlen(lower), sizeof(lower) - strlen(lower), "%s%s",
                i ? ":" : "", checkout->lower[i]);
    (void)snprintf(upper, sizeof(upper), "%s/up-git", top);
    if (mkdir(upper, 0755) == 0) {
        AUTO(fd_close) int dir = open(upper, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        CHECK_EQ(private_make_upper(repo, dir, "work", commit, &err), 0);
    }
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        enter_namespace();
        if (mount("tmpfs", "/run", "tmpfs", 0, NULL) < 0)
            _exit(77);
        mount_overlay(lower, "tree", "/run/tree");
        mount_overlay(checkout->git, "git", PRIVATE_GIT_DIR);
        sh("mkdir " PRIVATE_OBJECTS);
        CHECK_EQ(mount(repo->objects[0], PRIVATE_OBJECTS, NULL, MS_BIND, NULL), 0);
        for (size_t i = 0; checkout->module_objects[i]; i++) {
            char at[64];
            (void)snprintf(at, sizeof(at), CHECKOUT_MODULE_OBJECTS "/%zu", i);
            sh("mkdir -p %s", at);
            CHECK_EQ(mount(checkout->module_objects[i], at, NULL, MS_BIND, NULL), 0);
        }
        _exit(try_sh("cd /run/tree; %s", line));
    }
    CHECK_EQ(waitpid(pid, &status, 0), pid);
    CHECK(WIFEXITED(status));
    return WEXITSTATUS(status);
}

/* The same, where it has to succeed; skips where overlays cannot be had. */
#define VIEW(checkout, commit, line)                                                           \
    do {                                                                                       \
        int status_ = in_view(checkout, commit, line);                                         \
        if (status_ == 77) {                                                                   \
            end();                                                                             \
            SKIP("no overlay may be mounted here");                                            \
        }                                                                                      \
        CHECK_EQ(status_, 0);                                                                  \
    } while (0)

/* The tree is that of the commit, git finds nothing to report and has no reason to read files.
 */
#define CHECK_CLEAN(checkout, commit)                                                          \
    do {                                                                                       \
        char line_[1024];                                                                      \
        (void)snprintf(line_, sizeof(line_),                                                   \
                "test -z \"$(git diff-files)\"; test -z \"$(git status --porcelain)\"; "       \
                "git diff-index --cached --quiet %s; "                                         \
                "rm -rf %s/want; git clone -q --no-checkout %s %s/want 2>/dev/null; "          \
                "git -C %s/want checkout -q --detach %s; rm -rf %s/want/.git; "                \
                "diff -r --no-dereference --exclude=.git . %s/want",                           \
                commit, top, repo->common_dir, top, top, commit, top, top);                    \
        VIEW(checkout, commit, line_);                                                         \
    } while (0)

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
    sh("cd %s; test ! -e ../facts.lock; ! ls -A .. | grep -q draft", checkout->path);
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
    sh("ls -A state/checkouts/* | grep -q draft");
    checkout_draft_free(ptr_steal(&draft));
    sh("test -z \"$(ls -A state/checkouts/*)\"");
    end();
}

TEST(a_commit_that_is_not_there_is_an_error_with_its_name)
{
    static const char nowhere[] = "0123456789012345678901234567890123456789";
    AUTO(checkout_draft_free) struct checkout_draft *draft = NULL;

    begin();
    CHECK_EQ(checkout_fill(state, repo, nowhere, self(), NULL, NULL, &draft, &err), -ENOENT);
    CHECK(strstr(err.message, nowhere));
    sh("test -z \"$(ls -A state/checkouts/*)\"");
    CHECK_EQ(checkout_fill(state, repo, "HEAD", self(), NULL, NULL, &draft, &err), -EINVAL);
    CHECK_EQ(find("../../etc"), -EINVAL);
    end();
}

static uint64_t reported;
static void report(uint64_t done, uint64_t total, void *context)
{
    CHECK(context == &reported);
    CHECK(done <= total && total > 40);
    reported = done + 1;
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
            draft->path);
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

TEST(submodules_are_checked_out_as_far_as_they_are_there)
{
    begin_with("git config --global protocol.file.allow always; "
               "for r in inner middle absent; do git init -q $r; (cd $r; echo $r >file; "
               "git add -A; git commit -qm $r); done; "
               "(cd middle; git submodule -q add ../inner deep/inner; git commit -qm sub); "
               "git init -q repo; cd repo; echo 1 >one; git submodule -q add ../middle "
               "'lib/mid dle'; "
               "git submodule -q add ../absent absent; git add -A; git commit -qm first; "
               "git submodule -q update --init --recursive; "
               "git submodule -q deinit -f absent; rm -rf .git/modules/absent");
    const char *commit = commit_of("HEAD");
    AUTO(checkout_free) struct checkout *checkout = make(commit);

    CHECK(checkout->has_gitlinks);
    CHECK_STR(checkout->gitlinks[0], "absent");
    CHECK_STR(checkout->gitlinks[1], "lib/mid dle");
    CHECK(!checkout->gitlinks[2]);
    CHECK(checkout->module_objects[0] && checkout->module_objects[1]);
    CHECK(!checkout->module_objects[2]);
    VIEW(checkout, commit,
            "test -z \"$(git status --porcelain)\"; test -z \"$(git diff-files)\"; "
            "test -z \"$(ls -A absent)\"; ! git submodule status --recursive | grep -q "
            "'^[+U]'; "
            "cd 'lib/mid dle'; test -z \"$(git status --porcelain)\"; git log | grep -q "
            "middle; "
            "cd deep/inner; test \"$(cat file)\" = inner; test -z \"$(git diff-files)\"; "
            "echo more >>file; git commit -qam more; cd ../..; "
            "test \"$(git status --porcelain)\" = ' M deep/inner'");
    end();
}

static uint64_t entries(void)
{
    sh("ls -A state/checkouts/* | wc -l >count");
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
    sh("cd state/checkouts/*; mkdir .trash-1 .draft-%s-77-1; touch .draft-%s-77-1/x %s.lock",
            commit, commit, commit);
    CHECK_EQ(entries(), 6);
    CHECK_EQ(checkout_sweep(state, 0, UINT64_MAX, &err), 2);
    CHECK_EQ(entries(), 3); /* the entry, the living draft and its lock */
    CHECK_EQ(find(commit), 0);

    AUTO(checkout_free) struct checkout *second = NULL;
    CHECK_EQ(checkout_publish(state, repo, draft, -1, &second, &err), 0);
    checkout_draft_free(ptr_steal(&draft));
    CHECK_EQ(entries(), 2);
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
    sh("touch -d '2 days ago' state/checkouts/*/%s/lease", first);
    CHECK_EQ(checkout_sweep(state, 3600, UINT64_MAX, &err), 0);
    CHECK_EQ(find(second), 0);
    CHECK_EQ(checkout_sweep(state, 0, 0, &err), 2);
    CHECK_EQ(find(first), -ENOENT);
    CHECK_EQ(find(second), -ENOENT);
    sh("test -z \"$(ls -A state/checkouts)\"");
    end();
}

TEST(use_keeps_an_entry_young)
{
    begin();
    const char *commit = commit_of("HEAD");
    checkout_free(make(commit));
    sh("touch -d '2 days ago' state/checkouts/*/%s/lease", commit);
    CHECK_EQ(find(commit), 0);
    CHECK_EQ(checkout_sweep(state, 3600, UINT64_MAX, &err), 0);
    sh("touch -d '2 days ago' state/checkouts/*/%s/lease", commit);
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
    checkout_free(make(commit)); /* moves the old one away */
    CHECK_EQ(find(commit), 0);

    CHECK_EQ(checkout_sweep(state, 0, UINT64_MAX, &err), 1); /* the old one; syncs the new */
    sh("sed -i 's/^boot .*/boot another/' state/checkouts/*/%s/facts", commit);
    CHECK_EQ(find(commit), 0);
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
