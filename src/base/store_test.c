#include "base/err.h"
#include "base/fd.h"
#include "base/store.h"
#include "harness.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static struct carrel_error err;
static char top[64];
static struct store store = { .top = -1, .tmp = -1 };

static void begin(void)
{
    char path[PATH_MAX];

    (void)snprintf(top, sizeof(top), "/tmp/store-test-XXXXXX");
    CHECK(test_mkdtemp(top));
    (void)snprintf(path, sizeof(path), "%s/state/store", top);
    CHECK_EQ(store_open(path, &store, &err), -ENOENT);
    CHECK_EQ(store_make(path, &store, &err), 0);
}

static bool is_there(const char *name)
{
    return faccessat(store.top, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

static struct store_draft fill_draft(void)
{
    struct store_draft draft = STORE_DRAFT_INIT;

    CHECK_EQ(store_draft(&store, &draft, &err), 0);
    CHECK_EQ(mkdirat(draft.dir, "files", 0755), 0);
    return draft;
}

/* An entry that no process holds. */
static void add(const char *name)
{
    struct store_draft draft = fill_draft();

    CHECK_EQ(store_publish(&store, &draft, name, &err), 0);
    store_drop(&store, &draft);
}

static int count(enum store_depth depth)
{
    AUTO(store_names_finish) struct store_names names = { 0 };

    CHECK_EQ(store_list(&store, depth, &names, &err), 0);
    return (int)names.n;
}

static int retire_all(enum store_depth depth, store_namer *namer, void *context)
{
    AUTO(store_names_finish) struct store_names names = { 0 };

    CHECK_EQ(store_list(&store, depth, &names, &err), 0);
    return store_retire(&store, &names, namer, context, &err);
}

TEST(a_draft_is_an_entry_once_it_is_published)
{
    begin();
    struct store_draft draft = fill_draft();
    struct store_draft second = fill_draft();
    CHECK_EQ(count(STORE_PLAIN), 0);
    CHECK_EQ(store_hold(&store, "one"), -ENOENT);
    CHECK_EQ(store_publish(&store, &draft, "one", &err), 0);
    CHECK(store_is_named(draft.dir, store.top, "one"));
    CHECK_EQ(store_publish(&store, &second, "one", &err), -EEXIST);
    store_drop(&store, &second);
    CHECK_EQ(retire_all(STORE_PLAIN, NULL, NULL), 0); /* the draft's lock is the entry's now */
    store_drop(&store, &draft);
    CHECK(is_there("one/files"));
    CHECK_EQ(store_sweep(&store, &err), 0);
}

TEST(a_sweep_removes_the_draft_of_a_killed_process_alone)
{
    int ready[2];

    begin();
    struct store_draft living = fill_draft();
    CHECK_EQ(pipe(ready), 0);
    pid_t pid = fork();
    if (pid == 0) {
        (void)fill_draft();
        CHECK_EQ(write(ready[1], "x", 1), 1);
        for (;;)
            (void)pause();
    }
    char byte;
    CHECK_EQ(read(ready[0], &byte, 1), 1);
    CHECK_EQ(store_sweep(&store, &err), 0);
    CHECK_EQ(kill(pid, SIGKILL), 0);
    CHECK_EQ(waitpid(pid, NULL, 0), pid);
    CHECK_EQ(mknodat(store.tmp, "stray", S_IFREG | 0600, 0), 0);
    CHECK_EQ(store_sweep(&store, &err), 2);
    CHECK_EQ(store_publish(&store, &living, "one", &err), 0);
    store_drop(&store, &living);
}

TEST(an_entry_that_is_held_is_not_removed)
{
    begin();
    add("one");
    AUTO(fd_close) int first = store_hold(&store, "one");
    AUTO(fd_close) int second = store_hold(&store, "one");
    CHECK(first >= 0 && second >= 0);
    CHECK_EQ(store_remove(&store, "one", first, &err), -EBUSY);
    CHECK_EQ(retire_all(STORE_PLAIN, NULL, NULL), 0);
    fd_close(fd_steal(&second));
    CHECK_EQ(retire_all(STORE_PLAIN, NULL, NULL), 0); /* refused, and held as before */
    CHECK_EQ(store_remove(&store, "one", first, &err), 0);
    CHECK_EQ(store_remove(&store, "one", first, &err), -ENOENT);
    CHECK_EQ(count(STORE_PLAIN), 0);
    CHECK_EQ(store_sweep(&store, &err), 0);
}

static int refuse_once(int dir, void *context)
{
    CHECK_EQ(faccessat(dir, "files", F_OK, 0), 0);
    return (*(int *)context)++ == 0 ? -EROFS : 0;
}

TEST(a_sweep_leaves_what_cannot_be_finished_to_the_next_one)
{
    char id[ID_SIZE];
    int calls = 0;

    begin();
    add("one");
    int dir = store_hold(&store, "one");
    CHECK_EQ(store_unname(&store, "one", dir, id, &err), 0);
    CHECK_EQ(store_sweep_with(&store, refuse_once, &calls, &err), 0);
    CHECK_EQ(calls, 0); /* it is still held */
    fd_close(dir);
    CHECK_EQ(store_sweep_with(&store, refuse_once, &calls, &err), 0);
    CHECK_EQ(store_sweep_with(&store, refuse_once, &calls, &err), 1);
    CHECK_EQ(calls, 2);
    CHECK_EQ(store_sweep(&store, &err), 0);
}

static int fail(struct store_names *needed, void *context, struct carrel_error *why)
{
    (void)needed;
    (void)context;
    return err_set(why, -EIO, "cannot tell");
}

static int need_all(struct store_names *needed, void *context, struct carrel_error *why)
{
    (void)context;
    (void)why;
    needed->has_all = true;
    return 0;
}

/* Names "two", and checks that all are locked. */
static int need_two(struct store_names *needed, void *context, struct carrel_error *why)
{
    (void)context;
    (void)why;
    AUTO(fd_close) int dir = openat(store.top, "one", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    CHECK(dir >= 0);
    CHECK_EQ(flock(dir, LOCK_SH | LOCK_NB), -1);
    return store_names_add(needed, "two");
}

TEST(an_entry_that_is_needed_is_not_removed)
{
    begin();
    add("one");
    add("two");
    CHECK_EQ(retire_all(STORE_PLAIN, fail, NULL), -EIO);
    CHECK_EQ(retire_all(STORE_PLAIN, need_all, NULL), 0);
    CHECK_EQ(count(STORE_PLAIN), 2);
    CHECK_EQ(retire_all(STORE_PLAIN, need_two, NULL), 1);
    CHECK(!is_there("one") && is_there("two"));
}

TEST(more_entries_than_one_batch_are_removed)
{
    begin();
    for (int i = 0; i < 150; i++) {
        char name[16];
        (void)snprintf(name, sizeof(name), "%d", i);
        add(name);
    }
    add("two");
    add("one");
    CHECK_EQ(retire_all(STORE_PLAIN, NULL, NULL), 152);
    CHECK_EQ(store_sweep(&store, &err), 0);
}

/* Forks a process that waits for the entry, and answers its status in *context. */
static int fork_holder(struct store_names *needed, void *context, struct carrel_error *why)
{
    pid_t *pid = context;

    (void)needed;
    (void)why;
    *pid = fork();
    if (*pid == 0) {
        fd_close_all_but((const int[]){ 2, store.top }, 2); /* the locks are the parent's */
        _exit(store_hold(&store, "one") == -ENOENT ? 0 : 1);
    }
    return *pid < 0 ? -errno : 0;
}

TEST(a_process_that_waits_for_a_removed_entry_does_not_find_it)
{
    pid_t pid;
    int status;

    begin();
    add("one");
    CHECK_EQ(retire_all(STORE_PLAIN, fork_holder, &pid), 1);
    CHECK_EQ(waitpid(pid, &status, 0), pid);
    CHECK_EQ(status, 0);
}

TEST(a_group_exists_while_it_has_an_entry)
{
    begin();
    add("g/one");
    add("g/two");
    CHECK_EQ(count(STORE_GROUPS), 2);
    AUTO(fd_close) int dir = store_hold(&store, "g/one");
    CHECK_EQ(retire_all(STORE_GROUPS, NULL, NULL), 1);
    CHECK(is_there("g"));
    CHECK_EQ(store_remove(&store, "g/one", dir, &err), 0);
    CHECK(!is_there("g"));
}

TEST(a_claim_ends_with_its_process)
{
    int ready[2];
    char byte;

    begin();
    CHECK_EQ(pipe(ready), 0);
    pid_t pid = fork();
    if (pid == 0) {
        CHECK(store_claim(&store, "one", &err) >= 0);
        CHECK_EQ(write(ready[1], "x", 1), 1);
        for (;;)
            (void)pause();
    }
    CHECK_EQ(read(ready[0], &byte, 1), 1);
    AUTO(fd_close) int other = store_claim(&store, "two", &err);
    CHECK(other >= 0);
    AUTO(fd_close) int claims = openat(store.top, ".claims", O_RDWR | O_CLOEXEC);
    struct flock all = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
    CHECK_EQ(fcntl(claims, F_OFD_SETLK, &all), -1);
    CHECK_EQ(kill(pid, SIGKILL), 0);
    CHECK_EQ(waitpid(pid, NULL, 0), pid);
    AUTO(fd_close) int mine = store_claim(&store, "one", &err);
    CHECK(mine >= 0);
}

TEST(the_lock_of_the_store_is_shared_or_exclusive)
{
    begin();
    AUTO(fd_close) int shared = store_lock(&store, LOCK_SH, &err);
    AUTO(fd_close) int second = store_lock(&store, LOCK_SH | LOCK_NB, &err);
    CHECK(shared >= 0 && second >= 0);
    CHECK_EQ(store_lock(&store, LOCK_EX | LOCK_NB, &err), -EWOULDBLOCK);
    struct store_draft draft = fill_draft(); /* entries have locks of their own */
    store_drop(&store, &draft);
}

TEST(makers_and_sweepers_do_not_disturb_each_other)
{
    const int n = TEST_IS_SLOW ? 50 : 300;
    pid_t pids[3];

    begin();
    for (int p = 0; p < 3; p++) {
        pids[p] = fork();
        for (int i = 0; pids[p] == 0 && i < n; i++) {
            struct store_draft draft = fill_draft();
            int r = store_publish(&store, &draft, "g/one", &err);
            CHECK(r == 0 || r == -EEXIST);
            if (r == 0)
                CHECK_EQ(faccessat(draft.dir, "files", F_OK, 0), 0);
            store_drop(&store, &draft);
        }
        if (pids[p] == 0)
            _exit(0);
    }
    for (int left = 3, status; left > 0;) {
        CHECK(store_sweep(&store, &err) >= 0);
        CHECK(retire_all(STORE_GROUPS, NULL, NULL) >= 0);
        pid_t pid = waitpid(-1, &status, WNOHANG);
        if (pid > 0)
            CHECK_EQ(status, 0);
        left -= pid > 0;
    }
}
