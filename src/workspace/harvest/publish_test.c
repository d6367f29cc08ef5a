#include "workspace/harvest_fixture.h"
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/ptrace.h>

#define BRANCH "refs/heads/task-T-run-R"

/* The run committed; its objects are in the quarantine; its branch is at base. */
static void harvest(struct fixture *fx, char tip[static OID_MAX])
{
    const struct harvest_limits limits = HARVEST_LIMITS_INIT;
    char path[128];

    sh(NULL, 0,
            "cd %s/run && echo x >a && git commit -qam 1 && echo y >new && git add . && git"
            " commit -qm 2",
            fx->top);
    sh(tip, OID_MAX, "git --git-dir=%s rev-parse main", fx->run_git);
    sh(NULL, 0,
            "printf '%%s\\n^%%s\\n' %s %s | git --git-dir=%s pack-objects -q --revs --thin"
            " --stdout >%s/pack",
            tip, fx->base, fx->run_git, fx->top);
    (void)snprintf(path, sizeof(path), "%s/pack", fx->top);
    AUTO(fd_close) int pack = open(path, O_RDONLY | O_CLOEXEC);
    CHECK(pack >= 0);
    CHECK_EQ(harvest_take_pack(
                     &fx->repo, fx->quarantine, pack, tip, fx->base, &limits, &fx->err),
            0);
    sh(NULL, 0, "git --git-dir=%s update-ref " BRANCH " %s", fx->git_dir, fx->base);
}

static int publish(struct fixture *fx, const char *tip)
{
    return harvest_publish(&fx->repo, fx->quarantine, BRANCH, fx->base, tip, tip, fx->base,
            "carrel: commit", &fx->err);
}

static void check_published(struct fixture *fx, const char *tip)
{
    char text[256];

    sh(text, sizeof(text), "git --git-dir=%s rev-parse " BRANCH, fx->git_dir);
    CHECK_STR(text, tip);
    sh(text, sizeof(text), "git --git-dir=%s fsck --strict --no-dangling 2>&1", fx->git_dir);
    CHECK_STR(text, "");
    sh(text, sizeof(text), "git --git-dir=%s show " BRANCH ":new", fx->git_dir);
    CHECK_STR(text, "y");
    sh(text, sizeof(text), "find %s -name '*.keep' -o -name 'tmp_*'", fx->objects);
    CHECK_STR(text, "");
}

TEST(objects_and_branch_arrive)
{
    AUTO(fixture_finish) struct fixture fx;
    char tip[OID_MAX];
    char text[128];

    fixture_init(&fx, "");
    harvest(&fx, tip);
    CHECK_EQ(publish(&fx, tip), 0);
    check_published(&fx, tip);
    sh(text, sizeof(text), "git --git-dir=%s reflog show --format=%%gs " BRANCH " | head -1",
            fx.git_dir);
    CHECK_STR(text, "carrel: commit");
    CHECK_EQ(publish(&fx, tip), 0); /* once more is fine */
    check_published(&fx, tip);
    CHECK(quarantined(&fx) > 0); /* whatever happened to the branch */
}

TEST(a_branch_that_is_not_there_is_made_and_another_is_not_overwritten)
{
    AUTO(fixture_finish) struct fixture fx;
    char tip[OID_MAX];
    char text[OID_MAX];

    fixture_init(&fx, "");
    harvest(&fx, tip);
    CHECK_EQ(harvest_publish(
                     &fx.repo, fx.quarantine, BRANCH, fx.base, tip, tip, "", "m", &fx.err),
            -EEXIST);
    sh(text, sizeof(text), "git --git-dir=%s rev-parse " BRANCH, fx.git_dir);
    CHECK_STR(text, fx.base);
    sh(NULL, 0, "git --git-dir=%s update-ref -d " BRANCH, fx.git_dir);
    CHECK_EQ(harvest_publish(
                     &fx.repo, fx.quarantine, BRANCH, fx.base, tip, tip, "", "m", &fx.err),
            0);
    check_published(&fx, tip);
}

TEST(only_what_the_branch_reaches_arrives)
{
    AUTO(fixture_finish) struct fixture fx;
    char tip[OID_MAX];
    char first[OID_MAX];
    char text[OID_MAX];

    fixture_init(&fx, "");
    harvest(&fx, tip);
    sh(first, sizeof(first), "git --git-dir=%s rev-parse main~1", fx.run_git);
    CHECK_EQ(harvest_publish(&fx.repo, fx.quarantine, BRANCH, fx.base, first, tip, fx.base, "m",
                     &fx.err),
            0);
    sh(text, sizeof(text), "git --git-dir=%s rev-parse " BRANCH, fx.git_dir);
    CHECK_STR(text, first);
    sh(text, sizeof(text), "git --git-dir=%s fsck --strict --unreachable 2>&1", fx.git_dir);
    CHECK_STR(text, "");
    sh(NULL, 0, "! git --git-dir=%s cat-file -e %s 2>/dev/null", fx.git_dir, tip);
    CHECK_EQ(harvest_publish(
                     &fx.repo, fx.quarantine, BRANCH, fx.base, tip, tip, first, "m", &fx.err),
            0);
    check_published(&fx, tip);
}

TEST(loose_objects_arrive_too)
{
    AUTO(fixture_finish) struct fixture fx;
    char tip[OID_MAX];

    fixture_init(&fx, "");
    harvest(&fx, tip);
    sh(NULL, 0,
            "cd %s && mv pack ../loose && mkdir pack && cat ../loose/*.pack |"
            " GIT_OBJECT_DIRECTORY=$PWD git --git-dir=%s unpack-objects -q && rm -r ../loose &&"
            " test -n \"$(find . -path './[0-9a-f]*')\"",
            fx.quarantine, fx.git_dir);
    CHECK_EQ(publish(&fx, tip), 0);
    check_published(&fx, tip);
}

TEST(a_branch_that_moved_meanwhile_is_left_alone)
{
    AUTO(fixture_finish) struct fixture fx;
    char tip[OID_MAX];
    char other[OID_MAX];
    char text[OID_MAX];

    fixture_init(&fx, "");
    harvest(&fx, tip);
    sh(other, sizeof(other),
            "cd %s/repo && c=$(git commit-tree -p HEAD -m o HEAD:) && git update-ref " BRANCH
            " $c && echo $c",
            fx.top);
    CHECK(publish(&fx, tip) < 0);
    sh(text, sizeof(text), "git --git-dir=%s rev-parse " BRANCH, fx.git_dir);
    CHECK_STR(text, other);
    CHECK(quarantined(&fx) > 0); /* nothing is lost */
    sh(text, sizeof(text), "find %s -name '*.keep'", fx.objects);
    CHECK_STR(text, "");

    sh(NULL, 0, "git --git-dir=%s update-ref " BRANCH " %s", fx.git_dir, fx.base);
    sh(NULL, 0, "git --git-dir=%s gc -q --prune=now", fx.git_dir); /* takes the first attempt */
    CHECK_EQ(publish(&fx, tip), 0);
    check_published(&fx, tip);
}

TEST(only_full_ids_are_published)
{
    static const char *const names[] = { "HEAD", "--all", "0123456789abcdef" };
    AUTO(fixture_finish) struct fixture fx;
    char tip[OID_MAX];
    char text[128];

    fixture_init(&fx, "");
    harvest(&fx, tip);
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        CHECK_EQ(publish(&fx, names[i]), -EINVAL);
        CHECK_EQ(harvest_publish(&fx.repo, fx.quarantine, BRANCH, fx.base, tip, tip, names[i],
                         "carrel", &fx.err),
                -EINVAL);
    }
    sh(text, sizeof(text), "git --git-dir=%s rev-parse " BRANCH, fx.git_dir);
    CHECK_STR(text, fx.base);
}

TEST(a_harvest_that_lost_an_object_is_not_published)
{
    AUTO(fixture_finish) struct fixture fx;
    char tip[OID_MAX];
    char text[OID_MAX];

    fixture_init(&fx, "");
    harvest(&fx, tip);
    sh(NULL, 0, "rm %s/pack/*", fx.quarantine);
    CHECK(publish(&fx, tip) < 0);
    sh(text, sizeof(text), "git --git-dir=%s rev-parse " BRANCH, fx.git_dir);
    CHECK_STR(text, fx.base);
}

/* A run's commit may depend on an unreferenced object of the user's repository. */
TEST(a_harvest_that_leaned_on_what_was_collected_since_is_not_published)
{
    AUTO(fixture_finish) struct fixture fx;
    const struct harvest_limits limits = HARVEST_LIMITS_INIT;
    char tip[OID_MAX];
    char text[OID_MAX];

    fixture_init(&fx, "");
    sh(tip, sizeof(tip),
            "cd %s/run && b=$(echo lost | git --git-dir=%s hash-object -w --stdin) && "
            "t=$(printf"
            " '100644 blob %%s\\ta\\n' $b | git mktree) && git commit-tree -p %s -m x $t",
            fx.top, fx.git_dir, fx.base);
    sh(NULL, 0,
            "cd %s/run && printf '%%s\\n%%s\\n' %s $(git rev-parse %s:) | git pack-objects -q"
            " --stdout >../pack",
            fx.top, tip, tip);
    char path[128];
    (void)snprintf(path, sizeof(path), "%s/pack", fx.top);
    AUTO(fd_close) int pack = open(path, O_RDONLY | O_CLOEXEC);
    CHECK_EQ(harvest_take_pack(&fx.repo, fx.quarantine, pack, tip, fx.base, &limits, &fx.err),
            0);
    sh(NULL, 0, "cd %s/repo && git update-ref " BRANCH " %s && git prune --expire=now", fx.top,
            fx.base);
    CHECK_EQ(publish(&fx, tip), -EBADMSG);
    sh(text, sizeof(text), "git --git-dir=%s rev-parse " BRANCH, fx.git_dir);
    CHECK_STR(text, fx.base);
}

TEST(a_shared_repository_gets_files_its_group_can_read)
{
    AUTO(fixture_finish) struct fixture fx;
    char tip[OID_MAX];
    char text[64];

    fixture_init(&fx, "--shared=group");
    harvest(&fx, tip);
    sh(NULL, 0, "chmod 0400 %s/pack/*", fx.quarantine);
    CHECK_EQ(publish(&fx, tip), 0);
    check_published(&fx, tip);
    sh(text, sizeof(text), "find %s/pack -name 'pack-*' ! -perm -0440", fx.objects);
    CHECK_STR(text, "");
}

static void write_map(const char *path, const char *text)
{
    if (fd_write_file(AT_FDCWD, path, text) < 0)
        _exit(77);
}

/* Between two file systems there are no hard links. */
static void publish_across(struct fixture *fx, char *tip)
{
    char uids[64];
    char gids[64];

    (void)snprintf(uids, sizeof(uids), "%u %u 1", geteuid(), geteuid());
    (void)snprintf(gids, sizeof(gids), "%u %u 1", getegid(), getegid());
    if (unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0)
        _exit(77);
    write_map("/proc/self/setgroups", "deny");
    write_map("/proc/self/uid_map", uids);
    write_map("/proc/self/gid_map", gids);
    if (mount("tmpfs", fx->quarantine, "tmpfs", 0, NULL) < 0)
        _exit(77);
    CHECK_EQ(harvest_open(fx->quarantine, &fx->err), 0);
    harvest(fx, tip);
    CHECK_EQ(publish(fx, tip), 0);
    _exit(0);
}

TEST(another_file_system_gets_copies)
{
    AUTO(fixture_finish) struct fixture fx;
    char tip[OID_MAX] = "";
    int status;

    fixture_init(&fx, "");
    pid_t pid = fork();
    if (pid == 0)
        publish_across(&fx, tip);
    CHECK_EQ(waitpid(pid, &status, 0), pid);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
        SKIP("no file system may be mounted here");
    CHECK_EQ(status, 0);
    sh(tip, sizeof(tip), "git --git-dir=%s rev-parse main", fx.run_git);
    check_published(&fx, tip);
}

/* Lets the child make `n` system calls and stops it at the next. False: it exited before. */
static bool stop_at_call(pid_t pid, int n)
{
    int status;

    CHECK_EQ(waitpid(pid, &status, 0), pid); /* its own stop, before it begins */
    CHECK_EQ(ptrace(PTRACE_SETOPTIONS, pid, NULL, PTRACE_O_EXITKILL), 0);
    for (int stops = 0; stops < 2 * n; stops++) { /* one on entry, one on return */
        CHECK_EQ(ptrace(PTRACE_SYSCALL, pid, NULL, NULL), 0);
        CHECK_EQ(waitpid(pid, &status, 0), pid);
        if (WIFEXITED(status)) {
            CHECK_EQ(WEXITSTATUS(status), 0);
            return false;
        }
        CHECK(WIFSTOPPED(status));
    }
    return true;
}

static bool kill_at_call(pid_t pid, int n)
{
    int status;

    if (!stop_at_call(pid, n))
        return false;
    CHECK_EQ(kill(pid, SIGKILL), 0);
    CHECK_EQ(waitpid(pid, &status, 0), pid);
    return true;
}

static pid_t publish_traced(struct fixture *fx, const char *tip)
{
    pid_t pid = fork();

    if (pid == 0) {
        CHECK_EQ(ptrace(PTRACE_TRACEME, 0, NULL, NULL), 0);
        CHECK_EQ(raise(SIGSTOP), 0);
        _exit(publish(fx, tip) < 0);
    }
    return pid;
}

static void save(const struct fixture *fx)
{
    sh(NULL, 0, "cd %s && cp -a quarantine saved && cp -a repo/.git/objects before", fx->top);
}

/* Restores the saved state: nothing is published. */
static void restore(const struct fixture *fx)
{
    sh(NULL, 0,
            "cd %s && rm -rf quarantine repo/.git/objects && cp -a saved quarantine &&"
            " cp -a before repo/.git/objects && cd repo && git update-ref -d " BRANCH
            " && git update-ref " BRANCH " %s",
            fx->top, fx->base);
}

TEST(after_a_kill_at_any_call_the_next_attempt_finishes)
{
    AUTO(fixture_finish) struct fixture fx;
    char tip[OID_MAX];
    bool was_killed = true;

    fixture_init(&fx, "");
    harvest(&fx, tip);
    save(&fx);
    for (int n = 0; was_killed; n += 3) {
        restore(&fx);
        was_killed = kill_at_call(publish_traced(&fx, tip), n);
        sh(NULL, 0, "git --git-dir=%s fsck --connectivity-only --no-dangling", fx.git_dir);
        CHECK_EQ(publish(&fx, tip), 0);
        check_published(&fx, tip);
    }
}

/* Half of them loose, like those of a commit of ours, and one in the repository already. */
static void make_loose(struct fixture *fx, char tip[static OID_MAX])
{
    sh(tip, OID_MAX,
            "cd %s && export GIT_OBJECT_DIRECTORY=%s GIT_ALTERNATE_OBJECT_DIRECTORIES=%s &&"
            " git --git-dir=%s commit-tree -p %s -m loose %s^{tree}",
            fx->top, fx->quarantine, fx->objects, fx->git_dir, tip, tip);
    sh(NULL, 0, "echo y | git --git-dir=%s hash-object -w --stdin >%s/blob", fx->git_dir,
            fx->top);
}

TEST(a_gc_of_the_users_takes_nothing_at_any_call)
{
    AUTO(fixture_finish) struct fixture fx;
    char tip[OID_MAX];
    bool was_stopped = true;

    fixture_init(&fx, "");
    harvest(&fx, tip);
    make_loose(&fx, tip);
    save(&fx);
    for (int n = 0; was_stopped; n += 5) {
        restore(&fx);
        pid_t pid = publish_traced(&fx, tip);
        was_stopped = stop_at_call(pid, n);
        sh(NULL, 0, "cd %s/repo && git prune --expire=now && git repack -adq", fx.top);
        if (was_stopped) {
            int status;
            CHECK_EQ(ptrace(PTRACE_DETACH, pid, NULL, NULL), 0);
            CHECK_EQ(waitpid(pid, &status, 0), pid);
            CHECK_EQ(status, 0);
        }
        check_published(&fx, tip);
    }
}
