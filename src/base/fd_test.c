#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "harness.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

static char dir[] = "/tmp/carrel-fd-test.XXXXXX";

static void leave(void)
{
    if (chdir("/") == 0)
        (void)rmdir(dir); /* if it is not empty, the harness removes it */
}

/* Creates an empty directory and makes it the working directory. */
static void enter(void)
{
    CHECK(test_mkdtemp(dir));
    CHECK_EQ(chdir(dir), 0);
    CHECK_EQ(atexit(leave), 0);
}

static int count_entries(const char *path)
{
    int count = 0;
    DIR *entries = opendir(path);

    CHECK(entries);
    while (readdir(entries))
        count++;
    closedir(entries);
    return count - 2; /* . and .. */
}

static void check_content(const char *path, const char *expected)
{
    char text[100];
    ssize_t n = fd_read_file(AT_FDCWD, path, text, sizeof(text));

    CHECK_EQ(n, strlen(expected));
    CHECK_STR(text, expected);
}

TEST(closing_keeps_errno_and_takes_minus_one)
{
    errno = EMLINK;
    fd_close(-1);
    CHECK_EQ(errno, EMLINK);
    fd_close(4000); /* not open: close fails with EBADF */
    CHECK_EQ(errno, EMLINK);
}

TEST(a_descriptor_is_closed_where_its_scope_ends)
{
    int number;
    {
        AUTO(fd_close) int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
        CHECK(fd >= 0);
        number = fd;
    }
    CHECK_EQ(fcntl(number, F_GETFD), -1);
    CHECK_EQ(errno, EBADF);
}

TEST(a_stolen_descriptor_stays_open)
{
    int number;
    {
        AUTO(fd_close) int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
        CHECK(fd >= 0);
        number = fd_steal(&fd);
        CHECK_EQ(fd, -1);
    }
    CHECK(fcntl(number, F_GETFD) >= 0);
    fd_close(number);
}

static void do_nothing(int signal)
{
    (void)signal;
}

/* Signals without SA_RESTART: blocking reads and writes fail with EINTR. */
static void interrupt_often(void)
{
    struct sigaction action = { .sa_handler = do_nothing };
    struct itimerval often = { { 0, 500 }, { 0, 500 } };

    CHECK_EQ(sigaction(SIGVTALRM, &action, NULL), 0);
    CHECK_EQ(sigaction(SIGPROF, &action, NULL), 0);
    CHECK_EQ(sigaction(SIGUSR1, &action, NULL), 0);
    CHECK_EQ(setitimer(ITIMER_PROF, &often, NULL), 0);
}

TEST(more_than_a_pipe_holds_passes_whole_despite_signals)
{
    enum { SIZE = 1 << 20 };
    int ends[2];
    AUTO(free) unsigned char *data = malloc(SIZE);
    AUTO(free) unsigned char *back = malloc(SIZE + 1);

    CHECK(data && back);
    for (size_t i = 0; i < SIZE; i++)
        data[i] = (unsigned char)(i * 31 >> 3);
    CHECK_EQ(pipe2(ends, O_CLOEXEC), 0);
    interrupt_often();
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        close(ends[0]);
        interrupt_often();
        _exit(fd_write_all(ends[1], data, SIZE) == 0 ? 0 : 1);
    }
    close(ends[1]);
    for (int i = 0; i < 100; i++)
        (void)kill(pid, SIGUSR1);
    CHECK_EQ(fd_read_all(ends[0], back, SIZE + 1), SIZE); /* end of file before `max` */
    CHECK(memcmp(data, back, SIZE) == 0);
    close(ends[0]);

    int status;
    while (waitpid(pid, &status, 0) < 0)
        CHECK_EQ(errno, EINTR);
    CHECK_EQ(status, 0);
}

TEST(reading_stops_at_the_maximum)
{
    char data[8] = "zzzzzzz";
    int ends[2];

    CHECK_EQ(pipe2(ends, O_CLOEXEC), 0);
    CHECK_EQ(fd_write_all(ends[1], "abcdef", 6), 0);
    CHECK_EQ(fd_read_all(ends[0], data, 4), 4);
    CHECK_STR(data, "abcdzzz");
    CHECK_EQ(fd_read_all(ends[0], data, 0), 0);
    close(ends[1]);
    CHECK_EQ(fd_read_all(ends[0], data, sizeof(data)), 2);
    CHECK_EQ(fd_read_all(ends[0], data, sizeof(data)), 0);
    close(ends[0]);
}

TEST(a_socket_that_is_closed_at_its_other_end_raises_no_signal)
{
    int ends[2];
    char text[8];

    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    CHECK_EQ(fd_send_all(ends[0], "abc", 3), 0);
    CHECK_EQ(read(ends[1], text, sizeof(text)), 3);
    fd_close(ends[1]);
    CHECK_EQ(fd_send_all(ends[0], "abc", 3), -EPIPE);
    CHECK_EQ(pipe2(ends, O_CLOEXEC), 0);
    CHECK_EQ(fd_send_all(ends[1], "abc", 3), 0);
    CHECK_EQ(read(ends[0], text, sizeof(text)), 3);
}

TEST(a_failing_read_or_write_gives_its_errno)
{
    int ends[2];
    char byte = 'x';

    CHECK_EQ(fd_write_all(-1, "x", 1), -EBADF);
    CHECK_EQ(fd_read_all(-1, &byte, 1), -EBADF);
    CHECK_EQ(fd_write_all(-1, "", 0), 0);
    CHECK(signal(SIGPIPE, SIG_IGN) != SIG_ERR);
    CHECK_EQ(pipe2(ends, O_CLOEXEC), 0);
    close(ends[0]);
    CHECK_EQ(fd_write_all(ends[1], "x", 1), -EPIPE);
    close(ends[1]);

    AUTO(fd_close) int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
    CHECK(full >= 0);
    CHECK_EQ(fd_write_all(full, "x", 1), -ENOSPC);
}

TEST(a_descriptor_that_does_not_block_says_so)
{
    int ends[2];
    char byte;

    CHECK_EQ(pipe2(ends, O_CLOEXEC), 0);
    CHECK_EQ(fd_set_nonblocking(ends[0]), 0);
    CHECK(fcntl(ends[0], F_GETFL) & O_NONBLOCK);
    CHECK(!(fcntl(ends[1], F_GETFL) & O_NONBLOCK));
    CHECK_EQ(fd_read_all(ends[0], &byte, 1), -EAGAIN);
    CHECK_EQ(fd_set_nonblocking(-1), -EBADF);
    close(ends[0]);
    close(ends[1]);
}

TEST(a_kernel_file_must_exist_to_be_written)
{
    enter();
    CHECK_EQ(fd_write_file(AT_FDCWD, "file", "text"), -ENOENT);
    CHECK_EQ(count_entries("."), 0);
}

TEST(a_kernel_file_takes_its_text_and_gives_it_back)
{
    char text[100];

    enter();
    fd_close(open("file", O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    CHECK_EQ(fd_write_file(AT_FDCWD, "file", "100 200"), 0);
    check_content("file", "100 200");
    CHECK_EQ(fd_write_file(AT_FDCWD, "file", ""), 0);
    check_content("file", "100 200");

    AUTO(fd_close) int here = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
    CHECK(here >= 0);
    CHECK_EQ(chdir("/"), 0);
    CHECK_EQ(fd_write_file(here, "file", "999"), 0);
    CHECK_EQ(fd_read_file(here, "file", text, sizeof(text)), 7);
    CHECK_STR(text, "999 200"); /* written over, as sysfs would have it, not truncated */
    CHECK_EQ(unlinkat(here, "file", 0), 0);
}

TEST(an_empty_file_reads_as_empty_text)
{
    char text[4] = "abc";

    CHECK_EQ(fd_read_file(AT_FDCWD, "/dev/null", text, sizeof(text)), 0);
    CHECK_STR(text, "");
}

TEST(a_file_is_read_up_to_the_room_there_is)
{
    char text[6];

    enter();
    CHECK_EQ(fd_replace_file("file", "1234567", 7, 0600, NULL), 0);
    CHECK_EQ(fd_read_file(AT_FDCWD, "file", text, sizeof(text)), 5);
    CHECK_STR(text, "12345");
    CHECK_EQ(fd_read_file(AT_FDCWD, "file", text, 1), 0);
    CHECK_STR(text, "");
    CHECK_EQ(unlink("file"), 0);
}

TEST(a_file_that_cannot_be_read_gives_its_errno)
{
    char text[10];

    CHECK_EQ(fd_read_file(AT_FDCWD, "/no/such/file", text, sizeof(text)), -ENOENT);
    CHECK_EQ(fd_read_file(AT_FDCWD, "/", text, sizeof(text)), -EISDIR);
}

TEST(a_file_is_replaced_whole_and_nothing_else_is_left)
{
    struct carrel_error err = { 0 };
    struct stat st;

    enter();
    (void)umask(022);
    CHECK_EQ(fd_replace_file("file", "first and long", 14, 0640, &err), 0);
    check_content("file", "first and long");
    CHECK_EQ(fd_replace_file("file", "second", 6, 0600, &err), 0);
    check_content("file", "second");
    CHECK_EQ(stat("file", &st), 0);
    CHECK_EQ(st.st_mode & 07777, 0600);
    CHECK_EQ(count_entries("."), 1);
    CHECK_EQ(fd_replace_file("file", NULL, 0, 0600, &err), 0);
    check_content("file", "");
    CHECK_EQ(unlink("file"), 0);
}

TEST(a_reader_of_the_old_file_keeps_the_old_bytes)
{
    char text[10] = "";

    enter();
    CHECK_EQ(fd_replace_file("file", "old", 3, 0600, NULL), 0);
    AUTO(fd_close) int before = open("file", O_RDONLY | O_CLOEXEC);
    CHECK_EQ(fd_replace_file("file", "new", 3, 0600, NULL), 0);
    CHECK_EQ(fd_read_all(before, text, sizeof(text)), 3);
    CHECK_STR(text, "old");
    CHECK_EQ(unlink("file"), 0);
}

TEST(a_link_is_replaced_and_not_followed)
{
    struct stat st;

    enter();
    CHECK_EQ(fd_replace_file("target", "precious", 8, 0600, NULL), 0);
    CHECK_EQ(symlink("target", "link"), 0);
    CHECK_EQ(fd_replace_file("link", "new", 3, 0600, NULL), 0);
    check_content("target", "precious");
    check_content("link", "new");
    CHECK_EQ(lstat("link", &st), 0);
    CHECK(S_ISREG(st.st_mode));
    CHECK_EQ(unlink("link"), 0);
    CHECK_EQ(unlink("target"), 0);
}

TEST(a_missing_directory_is_named_in_the_refusal)
{
    struct carrel_error err = { 0 };

    CHECK_EQ(fd_replace_file("/no/such/file", "x", 1, 0600, &err), -ENOENT);
    CHECK_STR(err.message, "write '/no/such/file': its directory: No such file or directory");
    CHECK_EQ(err.code, -ENOENT);
}

TEST(a_name_that_is_a_directory_is_refused_and_nothing_is_left)
{
    struct carrel_error err = { 0 };

    enter();
    CHECK_EQ(mkdir("sub", 0700), 0);
    CHECK_EQ(fd_replace_file("sub", "x", 1, 0600, &err), -EISDIR);
    CHECK_STR(err.message, "write 'sub': Is a directory");
    CHECK(fd_replace_file("sub/", "x", 1, 0600, &err) < 0);
    CHECK(fd_replace_file("", "x", 1, 0600, &err) < 0);
    CHECK_EQ(count_entries("."), 1);
    CHECK_EQ(count_entries("sub"), 0);
    CHECK_EQ(rmdir("sub"), 0);
}

TEST(a_path_too_long_is_refused)
{
    struct carrel_error err = { 0 };
    char path[2 * PATH_MAX];

    memset(path, 'a', sizeof(path) - 1);
    path[0] = '/';
    path[sizeof(path) - 2] = '/';
    path[sizeof(path) - 1] = '\0';
    CHECK_EQ(fd_replace_file(path, "x", 1, 0600, &err), -ENAMETOOLONG);
}

TEST(the_longest_name_works_and_one_more_does_not)
{
    struct carrel_error err = { 0 };
    char name[NAME_MAX + 2];

    enter();
    memset(name, 'a', sizeof(name));
    name[NAME_MAX] = '\0';
    CHECK_EQ(fd_replace_file(name, "x", 1, 0600, &err), 0);
    CHECK_EQ(unlink(name), 0);
    name[NAME_MAX] = 'a';
    name[NAME_MAX + 1] = '\0';
    CHECK_EQ(fd_replace_file(name, "x", 1, 0600, &err), -ENAMETOOLONG);
    CHECK_EQ(count_entries("."), 0);
}

TEST(a_write_that_fails_leaves_the_old_file_and_nothing_else)
{
    struct carrel_error err = { 0 };
    const struct rlimit small = { 4, 4 };

    enter();
    CHECK_EQ(fd_replace_file("file", "old", 3, 0600, &err), 0);
    CHECK(signal(SIGXFSZ, SIG_IGN) != SIG_ERR);
    CHECK_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
    int r = fd_replace_file("file", "much too long", 13, 0600, &err);
    struct rlimit large = { RLIM_INFINITY, 4 };
    (void)setrlimit(RLIMIT_FSIZE, &large); /* best effort: messages go to a file */
    CHECK_EQ(r, -EFBIG);
    CHECK_STR(err.message, "write 'file': File too large");
    check_content("file", "old");
    CHECK_EQ(count_entries("."), 1);
    CHECK_EQ(unlink("file"), 0);
}

TEST(what_a_killed_writer_left_does_not_stop_the_next_one)
{
    char stale[NAME_MAX];

    /* Pids are reused, in a container at once. */
    enter();
    snprintf(stale, sizeof(stale), ".file.%d", (int)getpid());
    CHECK_EQ(fd_replace_file(stale, "half", 4, 0600, NULL), 0);
    CHECK_EQ(fd_replace_file("file", "whole", 5, 0600, NULL), 0);
    check_content("file", "whole");
    CHECK_EQ(unlink(stale), 0);
    CHECK_EQ(unlink("file"), 0);
}

TEST(a_file_in_the_root_directory_has_a_directory)
{
    struct carrel_error err = { 0 };

    /* Only the name fails, as / is a directory; its parent was found. */
    CHECK(fd_replace_file("/", "x", 1, 0600, &err) < 0);
    CHECK(!strstr(err.message, "its directory"));
}

TEST(a_whole_file_is_added_to_text_and_a_missing_one_adds_nothing)
{
    struct carrel_error err = { 0 };
    AUTO(buf_finish) struct buf text = BUF_INIT(64);
    char path[] = "/tmp/fd-test-XXXXXX";

    AUTO(fd_close) int fd = mkostemp(path, O_CLOEXEC);
    CHECK_EQ(fd_write_all(fd, "one\n", 4), 0);
    CHECK_EQ(fd_add_file(AT_FDCWD, path, &text, &err), 0);
    CHECK_EQ(fd_add_file(AT_FDCWD, path, &text, &err), 0);
    CHECK_STR(text.data, "one\none\n");
    text.max = 10;
    CHECK_EQ(fd_add_file(AT_FDCWD, path, &text, &err), -EFBIG);
    CHECK_EQ(unlink(path), 0);
    CHECK_EQ(fd_add_file(AT_FDCWD, path, &text, &err), 0);
}

TEST(a_pipe_that_nothing_reads_is_an_error_without_a_signal)
{
    int ends[2];
    sigset_t pending;

    CHECK(signal(SIGPIPE, SIG_DFL) != SIG_ERR);
    CHECK_EQ(pipe2(ends, O_CLOEXEC), 0);
    CHECK_EQ(fd_write_no_signal(ends[1], "ab", 2), 2);
    CHECK_EQ(close(ends[0]), 0);
    CHECK_EQ(fd_write_no_signal(ends[1], "c", 1), -1);
    CHECK_EQ(errno, EPIPE);
    CHECK_EQ(sigpending(&pending), 0);
    CHECK_EQ(sigismember(&pending, SIGPIPE), 0);
    CHECK_EQ(close(ends[1]), 0);
}

/* Of 2,000 opens some meet a rename before they are tried again. */
TEST(a_path_with_dots_is_opened_while_others_rename)
{
    const struct open_how how = { .flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_BENEATH };
    char top[] = "/tmp/carrel-fd-test.XXXXXX";

    CHECK(test_mkdtemp(top));
    AUTO(fd_close) int at = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    CHECK(mkdirat(at, "a", 0700) == 0 && mkdirat(at, "b", 0700) == 0);
    const pid_t other = fork();
    CHECK(other >= 0);
    if (other == 0)
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    while (other == 0)
        (void)syscall(SYS_renameat2, at, "a", at, "b", RENAME_EXCHANGE);
    for (int i = 0; i < 2000; i++) {
        AUTO(fd_close) int fd = fd_open_how(at, "a/../b/../a", &how);
        CHECK(fd >= 0);
    }
    CHECK_EQ(kill(other, SIGKILL), 0);
    CHECK_EQ(waitpid(other, NULL, 0), other);
    CHECK(unlinkat(at, "a", AT_REMOVEDIR) == 0 && unlinkat(at, "b", AT_REMOVEDIR) == 0);
    CHECK_EQ(rmdir(top), 0);
}
