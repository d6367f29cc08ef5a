/* swap_test.c - an exchange that is killed, raced or refused. */
#include "base/err.h"
#include "base/kill_fixture.h"
#include "workspace/apply/apply.h"
#include "workspace/apply/swap.h"
#include "workspace/git_fixture.h"
#include <errno.h>
#include <limits.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

/* A state directory in the current one. */
static const char *state_here(void)
{
    static char path[PATH_MAX];

    CHECK(getcwd(path, sizeof(path) - sizeof("/state")));
    strcat(path, "/state"); /* fits: see above */
    return path;
}

static struct carrel_error err;

static struct repo *set_up(void)
{
    struct repo *repo = NULL;

    /* Without the template: .git is copied many times. */
    SHELL("git init -q --template= user; cd user; mkdir -p dir/sub gone; seq 1 20 > a; echo b "
          "> dir/b;"
          "echo c > dir/sub/c; echo f > file; echo g > gone/g; git add .; git commit -q -m "
          "base;"
          "git tag base; git checkout -q -b task-T-run-R; echo more >> a; rm -r gone file;"
          "mkdir file; echo in > file/in; rm -r dir; echo d > dir; mkdir -p new/deep;"
          "echo n > new/deep/n; git add -A; git commit -q -m run; git checkout -q main");
    CHECK_EQ(repo_open("user", &repo, &err), 0);
    return repo;
}

#define SET_UP()                                                                               \
    AUTO(fixture_close) struct fixture at = fixture_open();                                    \
    AUTO(repo_free) struct repo *repo = set_up()

static void oid_of(const char *rev, char oid[static OID_MAX])
{
    (void)snprintf(oid, OID_MAX, "%s", printed("git -C user rev-parse %s^{commit}", rev));
}

static int apply(const struct repo *repo, enum apply_how how)
{
    struct apply_outcome outcome = { 0 };
    char base[OID_MAX];
    char tip[OID_MAX];

    oid_of("base", base);
    oid_of("task-T-run-R", tip);
    int r = apply_result(repo, state_here(), NULL, base, tip, how, &outcome, &err);
    CHECK_EQ(outcome.n_conflicts, 0);
    apply_outcome_finish(&outcome);
    return r;
}

/* What the killed process runs; ids are resolved before. */
struct killing {
    const struct repo *repo;
    enum apply_how how;
    char base[OID_MAX];
    char tip[OID_MAX];
};

static struct killing killing_of(const struct repo *repo, enum apply_how how)
{
    struct killing killing = { .repo = repo, .how = how };

    oid_of("base", killing.base);
    oid_of("task-T-run-R", killing.tip);
    return killing;
}

static int applying(void *context)
{
    const struct killing *killing = context;
    struct apply_outcome outcome = { 0 };

    return apply_result(killing->repo, state_here(), NULL, killing->base, killing->tip,
            killing->how, &outcome, &err);
}

static int recovering(void *context)
{
    const struct killing *killing = context;

    return apply_recover(killing->repo, &err) < 0;
}

/* Names of the files in the current directory with sums of their bytes. */
#define SUMS "find . -path ./.git -prune -o -type f -exec sha1sum {} +"

/* Copies of the work tree before and after: old/ and new/. The sums of both are in sums. */
static void keep_copies(const struct repo *repo, enum apply_how how)
{
    SHELL("cp -a user old");
    CHECK_EQ(apply(repo, how), 0);
    SHELL("cp -a user new; cd new; git status --porcelain | tr '\\n' ';' > ../expected");
    SHELL("(cd old; " SUMS "; cd ../new; " SUMS ") | LC_ALL=C sort > sums; test -s sums");
    SHELL("rm -rf user state; cp -a old user");
}

/* Every file is whole: it equals the one in old/ or the one in new/, byte for byte. */
static void check_whole(void)
{
    SHELL("cd user; " SUMS " | LC_ALL=C sort | LC_ALL=C comm -13 ../sums - > ../broken;"
          "test ! -s ../broken || { cat ../broken; exit 1; }");
}

/* No file of ours is left. Returns "old" or "new", according to the whole tree. */
static const char *verdict(void)
{
    return printed(
            "cd user; test ! -e .git/carrel-apply; test ! -e .git/index.lock;"
            "test -z \"$(find . -name '.carrel*')\"; git status --porcelain |"
            "tr '\\n' ';' > ../status;"
            "if diff -r -x .git . ../old >/dev/null; then echo old; test ! -s ../status;"
            "else diff -r -x .git . ../new >&2; cmp ../status ../expected; echo new; fi");
}

static void check_killed(enum apply_how how)
{
    SET_UP();
    struct killing killing = killing_of(repo, how);
    int n_old = 0;
    int n_new = 0;
    int step = 8; /* before the journal and after it there are many similar steps */

    keep_copies(repo, how);
    for (int nth = 1; kill_before(applying, &killing, nth); nth += step) {
        if (step > 1 && n_new == 0 && access("user/.git/carrel-apply/journal", F_OK) == 0) {
            nth -= step; /* back to the start of the interesting part */
            step = 1;
        }
        check_whole();
        CHECK(apply_recover(repo, &err) >= 0);
        const char *which = verdict();
        CHECK(strcmp(which, "old") == 0 || strcmp(which, "new") == 0);
        n_old += *which == 'o';
        n_new += *which == 'n';
        if (n_new == 4)
            step = 10;
        SHELL("rm -rf user state; cp -a old user");
    }
    CHECK(n_old > 10);
    CHECK(n_new > 4);
    CHECK_STR(verdict(), "new");
    SHELL("git -C user fsck --strict 2>/dev/null");
}

TEST(files_killed_at_any_step_are_all_old_or_all_new_after_recovery)
{
    check_killed(APPLY_FILES);
}

TEST(a_squash_killed_at_any_step_is_undone_or_finished)
{
    check_killed(APPLY_SQUASH);
}

TEST(a_merge_killed_at_any_step_is_undone_or_finished)
{
    check_killed(APPLY_MERGE);
}

/* Kills an apply during the exchange: some directory of the result exists. */
static void kill_in_the_middle(const struct repo *repo)
{
    struct killing killing = killing_of(repo, APPLY_FILES);

    static int middle = 1; /* once found it is the same in every run */
    SHELL("cp -a user pristine");
    for (;; middle++) {
        CHECK(kill_before(applying, &killing, middle));
        if (shell("cd user; test -f .git/carrel-apply/journal -a -f file/in") == 0)
            break;
        middle += access("user/.git/carrel-apply/journal", F_OK) == 0 ? 0 : 4;
        SHELL("rm -r user; cp -a pristine user");
    }
    SHELL("rm -r pristine");
}

TEST(a_recovery_that_is_killed_itself_can_be_done_again)
{
    SET_UP();
    struct killing recovery = { .repo = repo };
    bool is_killed = true;

    keep_copies(repo, APPLY_FILES);
    for (int nth = 1; is_killed; nth += nth < 20 ? 1 : 10) {
        SHELL("rm -rf user; cp -a old user");
        kill_in_the_middle(repo);
        is_killed = kill_before(recovering, &recovery, nth);
        check_whole();
        CHECK(apply_recover(repo, &err) >= 0);
        CHECK_STR(verdict(), "old");
    }
}

TEST(what_the_user_did_after_a_crash_is_left_alone)
{
    SET_UP();
    kill_in_the_middle(repo);
    SHELL("cd user; echo mine > a; echo mine >> new/deep/n; mkdir gone; echo mine > gone/g");
    CHECK_EQ(apply_recover(repo, &err), 1);
    SHELL("cd user; test ! -e .git/carrel-apply; grep -qx mine a; grep -qx mine new/deep/n; "
          "grep -qx mine gone/g;"
          "grep -qx f file; grep -qx b dir/b");
    CHECK_EQ(apply_recover(repo, &err), 0);
}

TEST(a_file_changed_at_the_last_moment_goes_back_and_so_does_everything)
{
    SET_UP();
    AUTO(swap_free) struct swap *swap = NULL;
    struct swap_item items[] = {
        { .path = "a", .kind = SWAP_PUT, .is_there = true },
        { .path = "dir/b", .kind = SWAP_REMOVE, .is_there = true },
        { .path = "dir/sub/c", .kind = SWAP_PUT, .is_there = true },
    };
    size_t culprit = 9;

    CHECK_EQ(swap_open(repo, state_here(), &swap, &err), 0);
    SHELL("mkdir -p %s/dir/sub; echo new > %s/a; echo new > %s/dir/sub/c", swap->new, swap->new,
            swap->new);
    for (size_t i = 0; i < ARRAY_LEN(items); i++) {
        char path[64];
        (void)snprintf(path, sizeof(path), "user/%s", items[i].path);
        CHECK_EQ(lstat(path, &items[i].was), 0);
    }
    SHELL("cd user/dir/sub; echo saved by an editor > tmp; mv tmp c");
    CHECK_EQ(swap_exchange(swap, items, ARRAY_LEN(items), "", &culprit, &err), -ESTALE);
    CHECK_EQ(culprit, 2);
    SHELL("cd user; grep -qx 'saved by an editor' dir/sub/c; grep -qx b dir/b; test $(wc -l < "
          "a) = 20");

    SHELL("echo one more >> user/dir/b"); /* now a removal */
    CHECK_EQ(lstat("user/dir/sub/c", &items[2].was), 0);
    CHECK_EQ(swap_exchange(swap, items, ARRAY_LEN(items), "", &culprit, &err), -ESTALE);
    CHECK_EQ(culprit, 1);
    swap_free(ptr_steal(&swap));
    SHELL("cd user; tail -1 dir/b | grep -qx 'one more'; test $(wc -l < a) = 20");
    SHELL("test ! -e user/.git/carrel-apply; test ! -e user/.git/index.lock");
}

TEST(two_at_a_time_are_refused)
{
    SET_UP();
    AUTO(swap_free) struct swap *one = NULL;
    AUTO(swap_free) struct swap *two = NULL;

    CHECK_EQ(swap_open(repo, state_here(), &one, &err), 0);
    CHECK_EQ(swap_open(repo, state_here(), &two, &err), -EBUSY);
    CHECK_EQ(swap_recover(repo, &err), -EBUSY);
    CHECK(shell("cd user; echo x >> a; git add a 2>/dev/null") != 0); /* git waits as well */
    swap_free(ptr_steal(&one));
    SHELL("cd user; git add a");
}

/* From here on renameat2 supports no flags, as on NFS. */
static void forbid_rename_flags(void)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_renameat2, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[4])),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EINVAL),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog filter = { .len = ARRAY_LEN(code), .filter = code };

    CHECK_EQ(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
    CHECK_EQ(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter), 0);
    CHECK_EQ(renameat2(AT_FDCWD, "x", AT_FDCWD, "y", RENAME_EXCHANGE), -1);
    CHECK_EQ(errno, EINVAL);
}

TEST(a_file_system_without_exchange_works_too)
{
    forbid_rename_flags();
    check_killed(APPLY_FILES);
}

TEST(a_git_dir_on_another_file_system_works)
{
    AUTO(fixture_close) struct fixture at = fixture_open();
    AUTO(repo_free) struct repo *repo = NULL;
    char other[] = "/dev/shm/carrel-swap-test-XXXXXX";
    struct stat here;
    struct stat there;

    if (!test_mkdtemp(other) || stat(other, &there) < 0 || stat(".", &here) < 0 ||
            here.st_dev == there.st_dev) {
        (void)rmdir(other);
        SKIP("no second file system at /dev/shm");
    }
    SHELL("git init -q --separate-git-dir %s/git user; cd user;"
          "git config core.worktree \"$PWD\"; echo a > a; git add .;"
          "git commit -q -m base; git tag base; git checkout -q -b task-T-run-R; echo r >> a;"
          "mkdir d; echo r > d/r; git add .; git commit -q -m run; git checkout -q main",
            other);
    CHECK_EQ(repo_open("user", &repo, &err), 0);
    CHECK_EQ(apply(repo, APPLY_FILES), 0);
    CHECK_STR(
            printed("cd user; git status --porcelain --ignored | tr '\\n' ';'"), " M a;?? d/;");
    SHELL("test ! -e %s/git/carrel-apply; cd user; git reset -q --hard; rm -r d", other);
    struct killing killing = killing_of(repo, APPLY_FILES);
    int nth = 1;
    for (; kill_before(applying, &killing, nth); nth++) {
        CHECK(apply_recover(repo, &err) >= 0);
        SHELL("cd user; test -z \"$(find . -name '.carrel*')\"; git reset -q --hard; rm -rf d");
    }
    CHECK(nth > 10);
    SHELL("rm -r %s", other);
}
