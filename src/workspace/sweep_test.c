/*
 * The kill tests run a creation or a discard under ptrace and kill it before its first, second,
 * third ... system call that changes something, until it gets through. After each kill one
 * sweep must bring repository and state back to the one or the other side.
 */
#include "workspace/place_fixture.h"
#include <dirent.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>

/* Calls before which the world is the same as before the next one: no use in stopping there. */
static bool is_harmless(uint64_t number, const uint64_t *args)
{
    static const long harmless[] = { SYS_read, SYS_close, SYS_lseek, SYS_fcntl, SYS_fstat,
        SYS_newfstatat, SYS_statx, SYS_getdents64, SYS_mmap, SYS_munmap, SYS_mprotect, SYS_brk,
        SYS_madvise, SYS_getrandom, SYS_faccessat, SYS_faccessat2, SYS_clock_gettime,
        SYS_rt_sigaction, SYS_rt_sigprocmask, SYS_getpid, SYS_geteuid, SYS_getuid, SYS_pread64,
        SYS_ppoll, SYS_openat2, SYS_readlinkat, SYS_prlimit64, SYS_waitid, SYS_wait4,
        SYS_futex };

    if (number == SYS_openat)
        return !(args[2] & O_CREAT);
    for (size_t i = 0; i < ARRAY_LEN(harmless); i++) {
        if ((uint64_t)harmless[i] == number)
            return true;
    }
    return false;
}

/* Lets the child go to the beginning or end of a system call. `matters`: one that may change
 * something begins. False: it ended. */
static bool step(pid_t pid, bool *matters)
{
    struct __ptrace_syscall_info info = { 0 };
    int status;

    CHECK_EQ(ptrace(PTRACE_SYSCALL, pid, NULL, NULL), 0);
    CHECK_EQ(waitpid(pid, &status, 0), pid);
    if (WIFEXITED(status)) {
        CHECK_EQ(WEXITSTATUS(status), 0);
        return false;
    }
    CHECK(WIFSTOPPED(status));
    CHECK(ptrace(PTRACE_GET_SYSCALL_INFO, pid, (void *)sizeof(info), &info) > 0);
    *matters = info.op == PTRACE_SYSCALL_INFO_ENTRY &&
               !is_harmless(info.entry.nr, info.entry.args);
    return true;
}

/* Runs `act` in a child and kills it before its nth call that matters. False: it got through.
 */
static bool kill_at(struct fixture *fx, void (*act)(struct fixture *fx), int nth)
{
    int status;
    int seen = 0;
    bool matters;
    bool is_killed = false;
    pid_t pid = fork();

    CHECK(pid >= 0);
    if (pid == 0) {
        CHECK_EQ(ptrace(PTRACE_TRACEME, 0, NULL, NULL), 0);
        CHECK_EQ(raise(SIGSTOP), 0);
        act(fx);
        _exit(0);
    }
    CHECK_EQ(waitpid(pid, &status, 0), pid);
    CHECK_EQ(ptrace(PTRACE_SETOPTIONS, pid, NULL,
                     (void *)(PTRACE_O_EXITKILL | PTRACE_O_TRACESYSGOOD)),
            0);
    while (!is_killed && step(pid, &matters)) {
        if (!matters || ++seen < nth)
            continue;
        CHECK_EQ(kill(pid, SIGKILL), 0);
        is_killed = true;
    }
    /* Its children too, which have become ours: a git that was at work ends by itself. */
    while (waitpid(-1, &status, 0) > 0)
        ;
    CHECK_EQ(errno, ECHILD);
    return is_killed;
}

/* Every name below `path`, sorted; for the git dir without what changes anyway. */
static void add_names(const char *path, struct buf *out)
{
    struct dirent **entries;
    int n = scandir(path, &entries, NULL, alphasort);

    CHECK(n >= 0);
    for (int i = 0; i < n; i++) {
        char below[4096];
        (void)snprintf(below, sizeof(below), "%s/%s", path, entries[i]->d_name);
        if (strcmp(entries[i]->d_name, ".") != 0 && strcmp(entries[i]->d_name, "..") != 0) {
            buf_addf(out, "%s\n", below);
            if (entries[i]->d_type == DT_DIR)
                add_names(below, out);
        }
        free(entries[i]);
    }
    free(entries);
}

static void add_file(const struct fixture *fx, const char *name, struct buf *out)
{
    char path[256];
    char text[4096];

    (void)snprintf(path, sizeof(path), "%s/%s", fx->top, name);
    CHECK(fd_read_file(AT_FDCWD, path, text, sizeof(text)) > 0);
    buf_add_str(out, text);
}

/* All that can be seen of the repository. */
static void picture(struct fixture *fx, struct buf *out)
{
    fixture_git(fx, GIT_WORDS("fsck", "--strict", "--no-progress"), out);
    fixture_git(fx, GIT_WORDS("for-each-ref"), out);
    fixture_git(fx, GIT_WORDS("worktree", "list", "--porcelain"), out);
    add_file(fx, "repo/.git/config", out);
    add_file(fx, "repo/.git/HEAD", out);
    add_names(fx->repo->common_dir, out);
}

/* Git leaves this directory when the last ref below it is deleted. */
static void make_namespace(const struct fixture *fx)
{
    char path[256];

    (void)snprintf(path, sizeof(path), "%s/refs/carrel", fx->repo->common_dir);
    CHECK_EQ(mkdir(path, 0755), 0);
}

/* What may lie about in the state directory when there is no workspace. */
static void check_state_is_empty(const struct fixture *fx)
{
    AUTO(buf_finish) struct buf names = BUF_INIT(65536);
    char path[512];
    char expected[600];

    (void)snprintf(path, sizeof(path), "%s/workspaces", fx->state);
    (void)snprintf(expected, sizeof(expected), "%s/.tmp\n", path);
    add_names(path, &names);
    CHECK_STR(names.data, expected);
}

static void create_one(struct fixture *fx)
{
    workspace_free(fixture_create_loose(fx, "T", "R"));
}

static void discard_one(struct fixture *fx)
{
    AUTO(workspace_free) struct workspace *ws = NULL;

    CHECK_EQ(workspace_find(fx->state, "T/R", &ws, &fx->err), 0);
    CHECK_EQ(workspace_discard(fx->state, ws, &fx->err), 0);
}

static void sweep(struct fixture *fx)
{
    if (workspace_sweep(fx->state, &fx->err) < 0)
        test_fail(__FILE__, __LINE__, "sweep: %s", fx->err.message);
    CHECK_EQ(workspace_sweep(fx->state, &fx->err), 0); /* and then nothing is left to do */
}

TEST(a_creation_killed_anywhere_is_undone)
{
    AUTO(buf_finish) struct buf before = BUF_INIT(1 << 20);
    struct fixture fx;
    int nth = 1;

    fixture_init(&fx);
    CHECK_EQ(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
    fixture_git(&fx, GIT_WORDS("worktree", "add", "-q", "../other"), NULL); /* a neighbour */
    CHECK_EQ(workspace_sweep(fx.state, &fx.err), 0);
    make_namespace(&fx);
    picture(&fx, &before);
    for (; kill_at(&fx, create_one, nth); nth++) {
        AUTO(buf_finish) struct buf after = BUF_INIT(1 << 20);
        AUTO(workspace_free) struct workspace *ws = NULL;
        sweep(&fx);
        if (workspace_find(fx.state, "T/R", &ws, NULL) == 0) {
            /* Killed when all was done: it is a workspace like any other. */
            CHECK_EQ(ws->phase, WORKSPACE_READY);
            CHECK_EQ(workspace_discard(fx.state, ws, &fx.err), 0);
        }
        picture(&fx, &after);
        CHECK_STR(after.data, before.data);
        check_state_is_empty(&fx);
    }
    CHECK(nth > 20); /* it was stopped often enough to mean something */
    discard_one(&fx);
    fixture_finish(&fx);
}

static void check_discard(bool has_work)
{
    AUTO(buf_finish) struct buf before = BUF_INIT(1 << 20);
    struct fixture fx;
    char work[OID_MAX];
    bool is_killed;
    int nth = 1;

    fixture_init(&fx);
    CHECK_EQ(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
    fixture_make_work(&fx, work);
    CHECK_EQ(workspace_sweep(fx.state, &fx.err), 0);
    make_namespace(&fx);
    picture(&fx, &before);
    do {
        AUTO(buf_finish) struct buf after = BUF_INIT(1 << 20);
        AUTO(workspace_free) struct workspace *ws = fixture_create_loose(&fx, "T", "R");
        CHECK_EQ(mkdirat(ws->dir, "upper/shut", 0700), 0);
        CHECK_EQ(mkdirat(ws->dir, "upper/shut/in", 0), 0);
        CHECK_EQ(fchmodat(ws->dir, "upper/shut", 0, 0), 0);
        fixture_publish(&fx, ws, has_work ? work : fx.base);
        workspace_free(ptr_steal(&ws));

        is_killed = kill_at(&fx, discard_one, nth++);
        sweep(&fx);
        if (workspace_find(fx.state, "T/R", &ws, NULL) == 0) {
            CHECK(is_killed);
            CHECK(fixture_has(&fx, "state/workspaces/T/R/upper/shut"));
            CHECK(fixture_has_branch(&fx, ws->branch, has_work ? work : fx.base));
            CHECK_EQ(workspace_discard(fx.state, ws, &fx.err), 0);
        }
        if (has_work) {
            CHECK(fixture_has_branch(&fx, "task-T-run-R", work));
            fixture_git(&fx, GIT_WORDS("update-ref", "-d", "refs/heads/task-T-run-R"), NULL);
        }
        picture(&fx, &after);
        CHECK_STR(after.data, before.data);
        CHECK(!fixture_has(&fx, "state/workspaces/T/R"));
    } while (is_killed);
    CHECK(nth > 20);
    fixture_finish(&fx);
}

TEST(a_discard_killed_anywhere_is_finished_or_never_was)
{
    check_discard(false);
}

TEST(a_discard_killed_anywhere_keeps_a_branch_with_work)
{
    check_discard(true);
}

static void sweep_once(struct fixture *fx)
{
    CHECK_EQ(workspace_sweep(fx->state, &fx->err), 1);
}

TEST(a_sweep_killed_anywhere_is_finished_by_the_next)
{
    AUTO(buf_finish) struct buf before = BUF_INIT(1 << 20);
    struct fixture fx;
    bool is_killed;
    int nth = 1;

    fixture_init(&fx);
    CHECK_EQ(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
    make_namespace(&fx);
    picture(&fx, &before);
    do {
        AUTO(buf_finish) struct buf after = BUF_INIT(1 << 20);
        create_one(&fx);
        fixture_write(&fx, "state/workspaces/T/R/creating", ""); /* as if not finished */
        is_killed = kill_at(&fx, sweep_once, nth++);
        sweep(&fx);
        picture(&fx, &after);
        CHECK_STR(after.data, before.data);
        check_state_is_empty(&fx);
    } while (is_killed);
    CHECK(nth > 20);
    fixture_finish(&fx);
}

TEST(a_finished_workspace_with_or_without_work_is_kept)
{
    struct fixture fx;

    fixture_init(&fx);
    workspace_free(fixture_create(&fx, "T", "R"));
    CHECK_EQ(workspace_sweep(fx.state, &fx.err), 0);
    CHECK(fixture_has(&fx, "state/workspaces/T/R/meta"));
    fixture_finish(&fx);
}

TEST(a_half_made_one_in_the_hands_of_a_living_process_is_left_alone)
{
    struct fixture fx;

    fixture_init(&fx);
    AUTO(workspace_free) struct workspace *ws = fixture_create(&fx, "T", "R");
    fixture_write(&fx, "state/workspaces/T/R/creating", "");
    CHECK_EQ(workspace_sweep(fx.state, &fx.err), 0);
    CHECK(fixture_has(&fx, "state/workspaces/T/R/meta"));
    workspace_free(ptr_steal(&ws));
    CHECK_EQ(workspace_sweep(fx.state, &fx.err), 1);
    CHECK(!fixture_has(&fx, "state/workspaces/T"));
    fixture_finish(&fx);
}

TEST(a_half_made_one_with_files_in_it_is_kept_all_the_same)
{
    struct fixture fx;

    fixture_init(&fx);
    workspace_free(fixture_create(&fx, "T", "R"));
    fixture_write(&fx, "state/workspaces/T/R/creating", "");
    fixture_write(&fx, "state/workspaces/T/R/upper/file", "work");
    CHECK_EQ(workspace_sweep(fx.state, &fx.err), 0);
    CHECK(fixture_has(&fx, "state/workspaces/T/R/upper/file"));
    fixture_finish(&fx);
}

/* As it is when whoever discards it has come no further. */
static void move_to_tmp(struct fixture *fx, const char *name)
{
    char from[256];
    char to[256];

    (void)snprintf(from, sizeof(from), "%s/workspaces/T/R", fx->state);
    (void)snprintf(to, sizeof(to), "%s/workspaces/.tmp/%s", fx->state, name);
    CHECK_EQ(rename(from, to), 0);
}

TEST(work_that_came_after_a_discard_was_killed_stays)
{
    struct fixture fx;
    char work[OID_MAX];

    fixture_init(&fx);
    AUTO(workspace_free) struct workspace *ws = fixture_create(&fx, "T", "R");
    fixture_publish(&fx, ws, fx.base);
    workspace_free(ptr_steal(&ws));
    move_to_tmp(&fx, "0123");
    fixture_make_work(&fx, work);
    fixture_git(&fx, GIT_WORDS("update-ref", "refs/heads/task-T-run-R", work), NULL);
    CHECK_EQ(workspace_sweep(fx.state, &fx.err), 1);
    CHECK(!fixture_has(&fx, "state/workspaces/.tmp/0123"));
    CHECK(fixture_has_branch(&fx, "task-T-run-R", work));
    fixture_finish(&fx);
}

TEST(one_that_a_living_process_removes_is_left_to_it)
{
    struct fixture fx;
    char path[256];

    fixture_init(&fx);
    workspace_free(fixture_create(&fx, "T", "R"));
    move_to_tmp(&fx, "0123");
    (void)snprintf(path, sizeof(path), "%s/workspaces/.tmp/0123", fx.state);
    int other = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    CHECK_EQ(flock(other, LOCK_EX | LOCK_NB), 0);
    CHECK_EQ(workspace_sweep(fx.state, &fx.err), 0);
    CHECK(fixture_has(&fx, "state/workspaces/.tmp/0123/meta"));
    fd_close(other);
    CHECK_EQ(workspace_sweep(fx.state, &fx.err), 1);
    CHECK(!fixture_has(&fx, "state/workspaces/.tmp/0123"));
    fixture_finish(&fx);
}

TEST(a_removed_one_of_a_taken_id_does_not_harm_the_new_one)
{
    struct fixture fx;

    fixture_init(&fx);
    AUTO(workspace_free) struct workspace *old = fixture_create_loose(&fx, "T", "R");
    fixture_publish(&fx, old, fx.base);
    workspace_free(ptr_steal(&old));
    move_to_tmp(&fx, "0123");
    fixture_git(&fx, GIT_WORDS("branch", "-D", "task-T-run-R"), NULL);
    AUTO(workspace_free) struct workspace *ws = fixture_create_loose(&fx, "T", "R");
    fixture_publish(&fx, ws, fx.base);
    workspace_free(ptr_steal(&ws));

    CHECK_EQ(workspace_sweep(fx.state, &fx.err), 1);
    CHECK(!fixture_has(&fx, "state/workspaces/.tmp/0123"));
    CHECK(fixture_has(&fx, "state/workspaces/T/R/meta"));
    CHECK(fixture_has_branch(&fx, "task-T-run-R", fx.base));
    CHECK_EQ(fixture_count_refs(&fx, "refs/carrel/"), 1);
    fixture_finish(&fx);
}

static void make_opened(struct fixture *fx, const char *run, bool is_opened)
{
    AUTO(workspace_free) struct workspace *ws = fixture_create(fx, "T", run);
    char path[PATH_MAX];

    (void)snprintf(path, sizeof(path), "%s/workspaces/T/runs", fx->state);
    CHECK(mkdir(path, 0700) == 0 || errno == EEXIST);
    CHECK_EQ(workspace_opened_path(ws, path, sizeof(path), &fx->err), 0);
    CHECK_EQ(mkdir(path, 0700), 0);
    ws->is_opened = is_opened;
    CHECK_EQ(workspace_save(ws, &fx->err), 0);
}

static bool is_opened(struct fixture *fx, const char *run)
{
    AUTO(workspace_free) struct workspace *ws = NULL;

    CHECK_EQ(workspace_find(fx->state, run, &ws, &fx->err), 0);
    return ws->is_opened;
}

/* Whoever opens it has said so before the place is there. */
TEST(one_that_a_living_process_is_opening_is_left_alone)
{
    struct fixture fx;
    AUTO(workspace_free) struct workspace *ws = NULL;

    fixture_init(&fx);
    make_opened(&fx, "R", true);
    CHECK_EQ(workspace_find(fx.state, "R", &ws, &fx.err), 0);
    CHECK_EQ(workspace_take_lock(ws, &fx.err), 0);
    CHECK_EQ(workspace_sweep(fx.state, &fx.err), 0);
    CHECK(is_opened(&fx, "R"));
    CHECK(fixture_has(&fx, "state/workspaces/T/runs/R"));
    workspace_free(ptr_steal(&ws));
    CHECK_EQ(workspace_sweep(fx.state, &fx.err), 1);
    CHECK(!is_opened(&fx, "R"));
    fixture_finish(&fx);
}

TEST(an_opened_one_that_a_restart_closed_is_closed)
{
    struct fixture fx;

    fixture_init(&fx);
    make_opened(&fx, "restarted", true);
    make_opened(&fx, "checked-out", true);
    make_opened(&fx, "never-opened", false);
    make_opened(&fx, "precious", false);
    fixture_write(&fx, "state/workspaces/T/runs/checked-out/file", "");
    fixture_write(&fx, "state/workspaces/T/runs/precious/file", "");
    CHECK_EQ(workspace_sweep(fx.state, &fx.err), 2);
    CHECK(!is_opened(&fx, "restarted"));
    CHECK(!fixture_has(&fx, "state/workspaces/T/runs/restarted"));
    CHECK(!fixture_has(&fx, "state/workspaces/T/runs/never-opened"));
    CHECK(is_opened(&fx, "checked-out"));
    CHECK(fixture_has(&fx, "state/workspaces/T/runs/checked-out/file"));
    CHECK(fixture_has(&fx, "state/workspaces/T/runs/precious/file"));
    CHECK_EQ(workspace_sweep(fx.state, &fx.err), 0);
    fixture_finish(&fx);
}

TEST(a_mount_that_no_workspace_has_open_goes_and_one_that_is_open_stays)
{
    struct fixture fx;
    char path[256];

    if (unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0)
        SKIP("no user namespace may be made here");
    fixture_init(&fx);
    make_opened(&fx, "open", true);
    make_opened(&fx, "stale", false);
    (void)snprintf(path, sizeof(path), "%s/workspaces/T/runs/stale", fx.state);
    CHECK_EQ(mount("none", path, "tmpfs", 0, NULL), 0);
    (void)snprintf(path, sizeof(path), "%s/workspaces/T/runs/open", fx.state);
    CHECK_EQ(mount("none", path, "tmpfs", 0, NULL), 0);
    CHECK_EQ(workspace_sweep(fx.state, &fx.err), 1);
    CHECK(!fixture_has(&fx, "state/workspaces/T/runs/stale"));
    CHECK(is_opened(&fx, "open"));
    CHECK_EQ(umount2(path, 0), 0); /* it was still there */
    fixture_finish(&fx);
}

TEST(a_disk_that_was_being_made_goes_and_the_workspace_stays)
{
    struct fixture fx;
    char path[256];

    if (unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0)
        SKIP("no user namespace may be made here");
    fixture_init(&fx);
    AUTO(workspace_free) struct workspace *ws = fixture_create(&fx, "T", "R");
    fixture_write(&fx, "state/workspaces/T/R/disk.new", "half");
    (void)snprintf(path, sizeof(path), "%s/workspaces/T/R/disk", fx.state);
    CHECK_EQ(mkdir(path, 0700), 0);
    for (int i = 0; i < 2; i++) /* of two killed processes */
        CHECK_EQ(mount("none", path, "tmpfs", 0, NULL), 0);
    CHECK_EQ(workspace_sweep(fx.state, &fx.err), 0); /* it is in use */
    CHECK(fixture_has(&fx, "state/workspaces/T/R/disk.new"));
    workspace_free(ptr_steal(&ws));
    CHECK_EQ(workspace_sweep(fx.state, &fx.err), 1);
    CHECK(!fixture_has(&fx, "state/workspaces/T/R/disk"));
    CHECK(!fixture_has(&fx, "state/workspaces/T/R/disk.new"));
    CHECK(fixture_has(&fx, "state/workspaces/T/R/meta"));
    CHECK_EQ(workspace_sweep(fx.state, &fx.err), 0);
    fixture_finish(&fx);
}
