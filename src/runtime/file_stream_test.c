/* Both ends of a stream in one process: a short content needs no reader meanwhile. */
#include "base/err.h"
#include "base/fd.h"
#include "harness.h"
#include "runtime/file_stream.h"
#include "runtime/files.h"
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static struct carrel_error err;

struct pair {
    int serving;
    int theirs;
};

static struct pair make_pair(void)
{
    struct pair pair = { -1, -1 };

    CHECK_EQ(file_stream_open(&pair.serving, &pair.theirs), 0);
    return pair;
}

static int make_file(const char *text)
{
    int fd = memfd_create("file", MFD_CLOEXEC);

    CHECK(fd >= 0);
    CHECK_EQ(fd_write_all(fd, text, strlen(text)), 0);
    return fd;
}

TEST(a_stream_that_was_served_to_its_end_ends)
{
    const struct pair pair = make_pair();
    char text[64];

    CHECK_EQ(file_stream_send(make_file("content"), pair.serving), 0);
    fd_close(pair.serving);
    CHECK_EQ(fd_read_all(pair.theirs, text, sizeof(text)), 7);
}

TEST(a_stream_that_ended_early_is_reset)
{
    const struct pair pair = make_pair();
    char text[64];

    CHECK_EQ(fd_write_all(pair.serving, "con", 3), 0);
    fd_close(pair.serving); /* as the kernel does for a server that is killed */
    CHECK_EQ(read(pair.theirs, text, sizeof(text)), 3);
    CHECK_EQ(fd_read_all(pair.theirs, text, sizeof(text)), -ECONNRESET);
}

TEST(what_cannot_be_read_resets_the_stream)
{
    const struct pair pair = make_pair();
    AUTO(fd_close) int dir = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    char text[64];

    CHECK_EQ(file_stream_send(dir, pair.serving), -EISDIR);
    fd_close(pair.serving);
    CHECK_EQ(fd_read_all(pair.theirs, text, sizeof(text)), -ECONNRESET);
}

/* In a child: the writer waits for the result. */
static void take_in_child(struct pair pair, int file, int status)
{
    pid_t pid = fork();

    CHECK(pid >= 0);
    if (pid == 0) {
        fd_close(pair.theirs);
        _exit(file_stream_take(pair.serving, file) < 0);
    }
    fd_close(pair.serving);
    const int r = file_end(pair.theirs, &err);
    int got;
    CHECK_EQ(waitpid(pid, &got, 0), pid);
    CHECK_EQ(r, status);
    CHECK_EQ(WEXITSTATUS(got), status < 0);
}

TEST(what_was_written_is_confirmed)
{
    const struct pair pair = make_pair();
    AUTO(fd_close) int file = make_file("");
    char text[64];

    CHECK_EQ(fd_write_all(pair.theirs, "content", 7), 0);
    take_in_child(pair, file, 0);
    CHECK_EQ(pread(file, text, sizeof(text), 0), 7);
}

TEST(a_write_that_fails_is_told_and_raises_no_signal)
{
    const struct pair pair = make_pair();
    AUTO(fd_close) int full = open("/dev/full", O_WRONLY | O_CLOEXEC);

    CHECK_EQ(fd_write_all(pair.theirs, "content", 7), 0);
    take_in_child(pair, full, -ENOSPC);
    CHECK(strstr(err.message, "store the file"));
}

TEST(a_server_that_is_gone_confirms_nothing)
{
    const struct pair pair = make_pair();

    fd_close(pair.serving);
    CHECK(file_end(pair.theirs, &err) < 0);
}

TEST(a_descriptor_of_the_file_itself_has_nothing_to_wait_for)
{
    AUTO(fd_close) int file = make_file("content");

    CHECK_EQ(file_end(file, &err), 0);
}

TEST(a_directory_is_listed_with_what_its_entries_are)
{
    char top[] = "/tmp/file-stream-XXXXXX";
    const struct pair pair = make_pair();
    struct file_entry entry;

    CHECK(test_mkdtemp(top));
    AUTO(fd_close) int dir = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    CHECK_EQ(fd_write_new_text(dir, "name", "content"), 0);
    CHECK_EQ(file_stream_list(dir, pair.serving), 0);
    fd_close(pair.serving);
    CHECK_EQ(file_list_next(pair.theirs, &entry, &err), 1);
    CHECK_STR(entry.name, "name");
    CHECK_EQ(entry.stat.size, 7);
    CHECK(S_ISREG(entry.stat.mode));
    CHECK_EQ(file_list_next(pair.theirs, &entry, &err), 0);
}

TEST(a_list_that_is_none_is_refused)
{
    struct pair pair = make_pair();
    struct file_entry entry;
    char junk[4096];

    memset(junk, 0xff, sizeof(junk));
    CHECK_EQ(fd_write_all(pair.serving, junk, sizeof(junk)), 0);
    CHECK_EQ(file_list_next(pair.theirs, &entry, &err), -EPROTO); /* a name of 4 GB */
    pair = make_pair();
    CHECK_EQ(fd_write_all(pair.serving, junk, 10), 0);
    fd_close(pair.serving);
    CHECK(file_list_next(pair.theirs, &entry, &err) < 0);
}
