/* What one process holds, in ways that a program of a run can think of. */
#include "base/fd.h"
#include "core/disk/nameless.h"
#include "harness.h"
#include "runtime/runtime.h"
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#define KB 256

/* A sandbox with one process, or with a new one whenever somebody asks. */
static pid_t held_by;
static bool is_restless;

static int list(struct sandbox *box, pid_t *pids, size_t max, struct carrel_error *err)
{
    (void)box;
    (void)err;
    if (max < 1)
        return -E2BIG;
    pids[0] = held_by;
    if (is_restless)
        held_by++;
    return 1;
}

static const struct runtime_ops ops = { .name = "puppet", .pids = list };
static struct sandbox box = { .ops = &ops };
static char dir_path[] = "/tmp/nameless-XXXXXX";
static int dir = -1;

static const char *const no_targets[] = { NULL };

static struct nameless count(void)
{
    struct nameless found = { 0 };

    CHECK_EQ(nameless_count(&box, no_targets, dir, &found), 0);
    return found;
}

/* A file of KB kilobytes without a name. */
static int make(void)
{
    char data[KB * 1024];

    memset(data, 'x', sizeof(data));
    int fd = openat(dir, "file", O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    CHECK(fd >= 0);
    CHECK_EQ(fd_write_all(fd, data, sizeof(data)), 0);
    CHECK_EQ(unlinkat(dir, "file", 0), 0);
    return fd;
}

/* A child that does `hold` and then waits until we end it. */
static pid_t begin(void (*hold)(void))
{
    int ready[2];
    char byte;

    CHECK(test_mkdtemp(dir_path));
    dir = open(dir_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    CHECK(dir >= 0);
    CHECK_EQ(pipe2(ready, O_CLOEXEC), 0);
    pid_t pid = fork();
    if (pid == 0) {
        fd_close(ready[0]);
        hold();
        (void)write(ready[1], "", 1);
        for (;;)
            (void)pause();
    }
    fd_close(ready[1]);
    CHECK_EQ(read(ready[0], &byte, 1), 1);
    fd_close(ready[0]);
    held_by = pid;
    return pid;
}

static void end(pid_t pid)
{
    CHECK_EQ(kill(pid, SIGKILL), 0);
    CHECK_EQ(waitpid(pid, NULL, 0), pid);
}

static bool is_about(uint64_t bytes, uint64_t kilobytes)
{
    return bytes >= kilobytes * 1024 && bytes <= kilobytes * 1024 + (64U << 10);
}

static void hold_two(void)
{
    (void)make();
    (void)make();
}

TEST(open_files_without_a_name_are_counted)
{
    pid_t pid = begin(hold_two);
    struct nameless found = count();

    CHECK_EQ(found.inodes, 2);
    CHECK(is_about(found.bytes, 2 * KB));
    CHECK(!found.is_doubtful);
    end(pid);
}

static void hold_named(void)
{
    int fd = make();
    char path[64];

    fd_close(fd);
    CHECK(openat(dir, "named", O_RDWR | O_CREAT, 0600) >= 0);
    fd = openat(dir, "linked", O_RDWR | O_CREAT, 0600);
    CHECK(fd >= 0);
    CHECK_EQ(linkat(dir, "linked", dir, "other", 0), 0);
    CHECK_EQ(unlinkat(dir, "linked", 0), 0); /* it has another name */
    (void)snprintf(path, sizeof(path), "/dev/shm/nameless-%d", (int)getpid());
    fd = open(path, O_RDWR | O_CREAT | O_EXCL, 0600);
    if (fd >= 0) /* on another mount */
        CHECK_EQ(unlink(path), 0);
}

TEST(what_has_a_name_is_closed_or_lies_elsewhere_is_not_counted)
{
    pid_t pid = begin(hold_named);
    struct nameless found = count();

    CHECK_EQ(found.inodes, 0);
    CHECK_EQ(found.bytes, 0);
    CHECK(!found.is_doubtful);
    end(pid);
    CHECK_EQ(unlinkat(dir, "named", 0), 0);
    CHECK_EQ(unlinkat(dir, "other", 0), 0);
}

static void hold_often(void)
{
    int fd = make();

    for (int i = 0; i < 50; i++)
        CHECK(dup(fd) >= 0);
    CHECK(mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0) != MAP_FAILED);
}

TEST(a_file_counts_once_however_often_it_is_held)
{
    pid_t pid = begin(hold_often);
    struct nameless found = count();

    CHECK_EQ(found.inodes, 1);
    CHECK(is_about(found.bytes, KB));
    CHECK(!found.is_doubtful);
    end(pid);
}

/* Of the whole file, though only a page of it is mapped. */
static void hold_mapped(void)
{
    int fd = make();

    CHECK(mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0) != MAP_FAILED);
    fd_close(fd);
}

TEST(a_mapped_file_is_counted_or_in_doubt)
{
    pid_t pid = begin(hold_mapped);
    struct nameless found = count();

    CHECK(found.is_doubtful || is_about(found.bytes, KB));
    if (geteuid() == 0)
        CHECK_EQ(found.inodes, 1);
    end(pid);
}

static void hold_memory(void)
{
    int fd = memfd_create("nameless", MFD_CLOEXEC);

    CHECK_EQ(ftruncate(fd, 1 << 20), 0);
    CHECK(mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) != MAP_FAILED);
    CHECK(mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0) !=
            MAP_FAILED);
}

TEST(shared_memory_is_nobodys_disk)
{
    pid_t pid = begin(hold_memory);
    struct nameless found = count();

    CHECK_EQ(found.inodes, 0);
    CHECK(!found.is_doubtful);
    end(pid);
}

static void send_away(void)
{
    int fd = make();
    int pair[2];
    char byte = 0;
    struct iovec iov = { &byte, 1 };
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control = { 0 };
    struct msghdr message = { .msg_iov = &iov,
        .msg_iovlen = 1,
        .msg_control = control.bytes,
        .msg_controllen = sizeof(control.bytes) };
    struct cmsghdr *head = CMSG_FIRSTHDR(&message);

    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(head), &fd, sizeof(int));
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    CHECK_EQ(sendmsg(pair[0], &message, 0), 1);
    fd_close(fd);
}

TEST(a_descriptor_that_nobody_has_received_is_a_doubt)
{
    pid_t pid = begin(send_away);
    struct nameless found = count();

    CHECK_EQ(found.inodes, 0);
    CHECK(found.is_doubtful);
    end(pid);
}

static int thread_ready[2];

static void *hold_apart(void *unused)
{
    CHECK_EQ(unshare(CLONE_FILES), 0);
    (void)make();
    (void)write(thread_ready[1], "", 1);
    for (;;)
        (void)pause();
    return unused;
}

static void hold_in_thread(void)
{
    pthread_t thread;
    char byte;

    CHECK_EQ(pipe2(thread_ready, O_CLOEXEC), 0);
    CHECK_EQ(pthread_create(&thread, NULL, hold_apart, NULL), 0);
    CHECK_EQ(read(thread_ready[0], &byte, 1), 1);
}

TEST(a_thread_may_have_descriptors_of_its_own)
{
    pid_t pid = begin(hold_in_thread);
    struct nameless found = count();

    CHECK_EQ(found.inodes, 1);
    CHECK(!found.is_doubtful);
    end(pid);
}

static int last_word;

/* The first thread ends; the process goes on, and shows nothing under its own number. */
static void *outlive(void *first)
{
    char path[64];
    char text[512];

    (void)first;
    int fd = make();
    CHECK(mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0) != MAP_FAILED);
    (void)snprintf(path, sizeof(path), "/proc/self/task/%d/stat", (int)getpid());
    do
        CHECK(fd_read_file(AT_FDCWD, path, text, sizeof(text)) > 0);
    while (!strstr(text, ") Z "));
    (void)write(last_word, "", 1);
    for (;;)
        (void)pause();
    return NULL;
}

TEST(a_process_may_outlive_its_first_thread)
{
    int ready[2];
    char byte;
    pthread_t thread;

    CHECK(test_mkdtemp(dir_path));
    dir = open(dir_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    CHECK_EQ(pipe2(ready, O_CLOEXEC), 0);
    last_word = ready[1];
    held_by = fork();
    if (held_by == 0) {
        CHECK_EQ(pthread_create(&thread, NULL, outlive, NULL), 0);
        (void)syscall(SYS_exit, 0); /* this thread only */
    }
    CHECK_EQ(read(ready[0], &byte, 1), 1);
    struct nameless found = count();
    CHECK_EQ(found.inodes, 1);
    CHECK(is_about(found.bytes, KB));
    end(held_by);
}

static void hold_shut(void)
{
    (void)make();
    CHECK_EQ(prctl(PR_SET_DUMPABLE, 0), 0);
}

TEST(a_process_that_may_not_be_looked_at_is_a_doubt)
{
    pid_t pid = begin(hold_shut);
    struct nameless found = count();

    if (geteuid() == 0)
        CHECK_EQ(found.inodes, 1);
    else
        CHECK(found.is_doubtful);
    end(pid);
}

TEST(a_process_that_has_ended_is_none)
{
    pid_t pid = begin(hold_two);

    CHECK_EQ(kill(pid, SIGKILL), 0);
    siginfo_t info;
    CHECK_EQ(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
    struct nameless found = count(); /* not reaped yet */
    CHECK_EQ(found.inodes, 0);
    CHECK(!found.is_doubtful);
    CHECK_EQ(waitpid(pid, NULL, 0), pid);
    found = count();
    CHECK_EQ(found.inodes, 0);
    CHECK(!found.is_doubtful);
}

TEST(a_list_that_never_ends_is_a_doubt)
{
    pid_t pid = begin(hold_two);

    held_by = 0x3fffff00; /* above any number that a process can have */
    is_restless = true;
    CHECK(count().is_doubtful);
    end(pid);
}

/* A copy of the table for each thread: more descriptors than one process may have. */
static void hold_no_end(void)
{
    struct rlimit limit;
    pthread_t thread;
    char byte;
    int fd = make();

    CHECK_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
    limit.rlim_cur = limit.rlim_max;
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
    CHECK_EQ(pipe2(thread_ready, O_CLOEXEC), 0);
    for (int n = 0; n < 4000; n++)
        CHECK(dup(fd) >= 0);
    for (int i = 0; i < 17; i++) {
        CHECK_EQ(pthread_create(&thread, NULL, hold_apart, NULL), 0);
        CHECK_EQ(read(thread_ready[0], &byte, 1), 1);
    }
}

TEST(more_than_anybody_needs_is_not_counted_to_the_end)
{
    struct rlimit limit;

    CHECK_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
    if (limit.rlim_max < 4050)
        SKIP("a process here may have %lu files open at most", (unsigned long)limit.rlim_max);
    pid_t pid = begin(hold_no_end);
    CHECK(count().is_cut);
    end(pid);
}

TEST(mounts_are_found_by_where_they_are)
{
    static const char text[] =
            "41 28 0:40 / / ro,relatime - tmpfs none ro\n"
            "134 42 0:48 /space/04 /workspace rw - tmpfs none rw\n"
            "140 134 0:53 / /workspace rw,nosuid shared:3 master:1 - overlay none rw,upper=x\n"
            "141 134 254:0 /a\\040b /workspace/.git ro - ext4 /dev/vda rw\n"
            "142 42 0:60 / /run/carrel/git rw - fuse.fuse-overlayfs fuse-overlayfs rw\n"
            "143 42 0:61 / /workspaces rw - overlay none rw\n";
    static const char *const targets[] = { "/workspace", "/run/carrel/git", NULL };
    struct nameless_mounts mounts = { 0 };

    CHECK_EQ(nameless_add_mounts(&mounts, text, targets), 0);
    CHECK_EQ(mounts.n, 2);
    CHECK_EQ(mounts.items[0].id, 134);
    CHECK_EQ(mounts.items[1].id, 140);
    CHECK_EQ(mounts.items[1].dev, makedev(0, 53));
    for (int i = 0; i < 3; i++)
        CHECK_EQ(nameless_add_mounts(&mounts, text, targets), 0);
    CHECK_EQ(nameless_add_mounts(&mounts, text, targets), -E2BIG);
}
