/* swap_test.c - an exchange that is killed, raced or refused. */
#include "base/err.h"
#include "workspace/apply.h"
#include "workspace/git_fixture.h"
#include "workspace/swap.h"
#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>

static struct carrel_error err;

static struct repo *set_up(void)
{
    struct repo *repo = NULL;

    SHELL("git init -q user; cd user; mkdir -p dir/sub gone; seq 1 20 > a; echo b > dir/b;"
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
    int r = apply_result(repo, NULL, base, tip, how, &outcome, &err);
    CHECK_EQ(outcome.n_conflicts, 0);
    apply_outcome_finish(&outcome);
    return r;
}

/* Calls by which the process itself changes the file system. */
static bool is_change(long long number)
{
    switch (number) {
    case SYS_renameat:
    case SYS_renameat2:
    case SYS_linkat:
    case SYS_unlinkat:
    case SYS_mkdirat:
    case SYS_symlinkat:
#ifdef SYS_rename
    case SYS_rename:
    case SYS_unlink:
    case SYS_rmdir:
    case SYS_mkdir:
#endif
        return true;
    default:
        return false;
    }
}

struct killing {
    const struct repo *repo;
    enum apply_how how;
    bool is_recovery;
};

static void be_killed(const struct killing *killing)
{
    char base[OID_MAX];
    char tip[OID_MAX];
    struct apply_outcome outcome = { 0 };

    oid_of("base", base);
    oid_of("task-T-run-R", tip);
    if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) < 0)
        _exit(77);
    (void)raise(SIGSTOP);
    int r = killing->is_recovery ? apply_recover(killing->repo, &err)
                                 : apply_result(killing->repo, NULL, base, tip, killing->how,
                                           &outcome, &err);
    _exit(r < 0);
}

/* Runs it and kills it before its nth change. False: it came to its end before. */
static bool kill_before(const struct killing *killing, int nth)
{
    struct __ptrace_syscall_info info;
    int status;
    pid_t pid = fork();

    CHECK(pid >= 0);
    if (pid == 0)
        be_killed(killing);
    CHECK_EQ(waitpid(pid, &status, 0), pid);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
        SKIP("no process may be traced here");
    CHECK(WIFSTOPPED(status));
    CHECK_EQ(
            ptrace(PTRACE_SETOPTIONS, pid, NULL, PTRACE_O_EXITKILL | PTRACE_O_TRACESYSGOOD), 0);
    for (int pass = 0;;) {
        CHECK_EQ(ptrace(PTRACE_SYSCALL, pid, NULL, pass), 0);
        CHECK_EQ(waitpid(pid, &status, 0), pid);
        if (WIFEXITED(status)) {
            CHECK_EQ(WEXITSTATUS(status), 0);
            return false;
        }
        CHECK(WIFSTOPPED(status));
        pass = WSTOPSIG(status) == (SIGTRAP | 0x80) ? 0 : WSTOPSIG(status);
        if (pass)
            continue;
        CHECK(ptrace(PTRACE_GET_SYSCALL_INFO, pid, (void *)sizeof(info), &info) > 0);
        if (info.op == PTRACE_SYSCALL_INFO_ENTRY && is_change((long long)info.entry.nr) &&
                --nth == 0)
            break;
    }
    CHECK_EQ(kill(pid, SIGKILL), 0);
    CHECK_EQ(waitpid(pid, &status, 0), pid);
    return true;
}

static const char *tree_of_files(void)
{
    return printed("cd user; export GIT_INDEX_FILE=../probe; rm -f ../probe; git add -A;"
                   "git write-tree");
}

/* Every file that either side has is whole: what is there is old or new, byte for byte. */
static void check_whole(void)
{
    SHELL("cd user; git ls-tree -r base > ../known; git ls-tree -r task-T-run-R >> ../known;"
          "find . -type f ! -path './.git/*' | cut -c3- > ../there;"
          "git hash-object --no-filters --stdin-paths < ../there | paste - ../there |"
          "while read i f; do grep -q \"$i.$f$\" ../known || exit 1; done");
}

static void check_tidy(void)
{
    SHELL("cd user; test ! -e .git/carrel-apply; test ! -e .git/index.lock;"
          "test -z \"$(find . -name '.carrel*')\"; git fsck --strict 2>/dev/null >/dev/null");
}

static void check_killed(enum apply_how how, const char *finished_status)
{
    SET_UP();
    char old[OID_MAX];
    char new[OID_MAX];
    int n_undone = 0;
    int n_finished = 0;

    (void)snprintf(old, sizeof(old), "%s", printed("git -C user rev-parse main^{tree}"));
    (void)snprintf(
            new, sizeof(new), "%s", printed("git -C user rev-parse task-T-run-R^{tree}"));
    SHELL("cp -a user pristine");
    int step = 1;
    /* Before the journal and when it is done with, the steps are many and all alike. */
    for (int nth = 1;; nth += step) {
        const struct killing killing = { .repo = repo, .how = how };
        if (!kill_before(&killing, nth))
            break;
        step = access("user/.git/carrel-apply/journal", F_OK) == 0 || n_finished < 3 ? 1 : 6;
        if (n_undone < 2)
            step = 5;
        check_whole();
        CHECK(apply_recover(repo, &err) >= 0);
        check_tidy();
        char tree[OID_MAX];
        (void)snprintf(tree, sizeof(tree), "%s", tree_of_files());
        const char *status = printed("cd user; git status --porcelain | tr '\\n' ';'");
        if (strcmp(tree, old) == 0) {
            CHECK_STR(status, "");
            CHECK_EQ(apply(repo, how), 0);
            n_undone++;
        } else {
            CHECK_STR(status, finished_status);
            n_finished++;
        }
        CHECK_STR(tree_of_files(), new);
        CHECK_STR(printed("cd user; git status --porcelain | tr '\\n' ';'"), finished_status);
        SHELL("rm -r user; cp -a pristine user");
    }
    CHECK(n_undone > 10);
    CHECK(n_finished > 3);
}

TEST(files_killed_at_any_step_are_all_old_or_all_new_after_recovery)
{
    check_killed(APPLY_FILES, " M a; D dir/b; D dir/sub/c; D file; D gone/g;?? dir;?? new/;");
}

TEST(a_squash_killed_at_any_step_is_undone_or_finished)
{
    check_killed(APPLY_SQUASH,
            "M  a;A  dir;D  dir/b;D  dir/sub/c;D  file;A  file/in;D  gone/g;A  new/deep/n;");
}

TEST(a_merge_killed_at_any_step_is_undone_or_finished)
{
    check_killed(APPLY_MERGE, "");
}

TEST(a_recovery_that_is_killed_itself_can_be_done_again)
{
    SET_UP();
    char old[OID_MAX];

    (void)snprintf(old, sizeof(old), "%s", printed("git -C user rev-parse main^{tree}"));
    const struct killing first = { .repo = repo, .how = APPLY_FILES };
    const struct killing second = { .repo = repo, .is_recovery = true };
    int middle = 1;
    SHELL("cp -a user pristine");
    for (;; middle++) { /* until just before the journal is done with */
        CHECK(kill_before(&first, middle));
        bool is_in_the_middle =
                shell("cd user; test -f .git/carrel-apply/journal -a -d new") == 0;
        SHELL("rm -r user; cp -a pristine user");
        if (is_in_the_middle)
            break;
    }
    for (int nth = 1;; nth += nth < 15 ? 1 : 5) {
        CHECK(kill_before(&first, middle + 3));
        bool is_killed = kill_before(&second, nth);
        check_whole();
        CHECK(apply_recover(repo, &err) >= 0);
        check_tidy();
        CHECK_STR(tree_of_files(), old);
        SHELL("rm -r user; cp -a pristine user");
        if (!is_killed)
            break;
        CHECK(nth < 200);
    }
}

TEST(what_the_user_did_after_a_crash_is_left_alone)
{
    SET_UP();
    const struct killing killing = { .repo = repo, .how = APPLY_FILES };
    int nth = 1;

    SHELL("cp -a user pristine");
    for (;; nth++) {
        CHECK(kill_before(&killing, nth));
        if (shell("cd user; test -f .git/carrel-apply/journal -a -f file/in") == 0)
            break;
        SHELL("rm -r user; cp -a pristine user");
    }
    SHELL("cd user; echo mine > a; echo mine >> new/deep/n; mkdir gone; echo mine > gone/g");
    CHECK_EQ(apply_recover(repo, &err), 1);
    check_tidy();
    SHELL("cd user; grep -qx mine a; grep -qx mine new/deep/n; grep -qx mine gone/g;"
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

    CHECK_EQ(swap_open(repo, &swap, &err), 0);
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
    check_tidy();
}

TEST(two_at_a_time_are_refused)
{
    SET_UP();
    AUTO(swap_free) struct swap *one = NULL;
    AUTO(swap_free) struct swap *two = NULL;

    CHECK_EQ(swap_open(repo, &one, &err), 0);
    CHECK_EQ(swap_open(repo, &two, &err), -EBUSY);
    CHECK_EQ(swap_recover(repo, &err), -EBUSY);
    CHECK(shell("cd user; echo x >> a; git add a 2>/dev/null") != 0); /* git waits as well */
    swap_free(ptr_steal(&one));
    SHELL("cd user; git add a");
}

TEST(a_git_dir_on_another_file_system_works)
{
    AUTO(fixture_close) struct fixture at = fixture_open();
    AUTO(repo_free) struct repo *repo = NULL;
    char other[] = "/dev/shm/carrel-swap-test-XXXXXX";
    struct stat here;
    struct stat there;

    if (!mkdtemp(other) || stat(other, &there) < 0 || stat(".", &here) < 0 ||
            here.st_dev == there.st_dev) {
        (void)rmdir(other);
        SKIP("no second file system at /dev/shm");
    }
    SHELL("git init -q --separate-git-dir %s/git user; cd user; echo a > a; git add .;"
          "git commit -q -m base; git tag base; git checkout -q -b task-T-run-R; echo r >> a;"
          "mkdir d; echo r > d/r; git add .; git commit -q -m run; git checkout -q main",
            other);
    CHECK_EQ(repo_open("user", &repo, &err), 0);
    CHECK_EQ(apply(repo, APPLY_FILES), 0);
    CHECK_STR(
            printed("cd user; git status --porcelain --ignored | tr '\\n' ';'"), " M a;?? d/;");
    SHELL("test ! -e %s/git/carrel-apply; cd user; git reset -q --hard; rm -r d", other);
    const struct killing killing = { .repo = repo, .how = APPLY_FILES };
    int nth = 1;
    for (; kill_before(&killing, nth); nth++) {
        CHECK(apply_recover(repo, &err) >= 0);
        SHELL("cd user; test -z \"$(find . -name '.carrel*')\"; git reset -q --hard; rm -rf d");
    }
    CHECK(nth > 10);
    SHELL("rm -r %s", other);
}
