/* files.c - files of a sandbox, opened from outside; the programs in it are hostile. */
#include "base/fd.h"
#include "harness.h"
#include "place.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

CONTRACT(a_file_that_is_opened_from_outside_is_the_programs_file)
{
    AUTO(sandbox_free) struct sandbox *box = make_sandbox();
    char text[64] = "";
    char path[4200];

    AUTO(fd_close) int out = sandbox_open_file(box, "made", O_WRONLY | O_CREAT, 0644, &err);
    if (out == -ENOTSUP)
        SKIP("%s", err.message);
    CHECK(out >= 0);
    CHECK_EQ(fcntl(out, F_GETFD), FD_CLOEXEC);
    CHECK_EQ(fd_write_all(out, "from outside", 12), 0);
    CHECK_EQ(file_end(out, &err), 0);
    AUTO(outcome_finish) struct outcome got = run_shell(box, "cat made; echo inside >other");
    CHECK_STR(got.out.data, "from outside");

    (void)snprintf(path, sizeof(path), "%s/other", box->workspace);
    AUTO(fd_close) int in = sandbox_open_file(box, path, O_RDONLY, 0, &err);
    CHECK(in >= 0);
    CHECK_EQ(fcntl(in, F_GETFL) & O_NONBLOCK, 0);
    CHECK_EQ(fd_read_all(in, text, sizeof(text) - 1), 7);
    CHECK_STR(text, "inside\n");
    CHECK_EQ(sandbox_open_file(box, "missing", O_RDONLY, 0, &err), -ENOENT);
    CHECK_EQ(sandbox_open_file(box, "", O_RDONLY, 0, &err), -EINVAL);
    CHECK_EQ(sandbox_open_file(box, "made", O_RDONLY | O_PATH, 0, &err), -EINVAL);
}

/*
 * A caller that passes a file and reads it later keeps a descriptor: the path is not used
 * again, and what the program wrote outlives the sandbox.
 */
CONTRACT(a_file_in_the_home_can_be_handed_over_and_read_after_the_end)
{
    AUTO(sandbox_free) struct sandbox *box = make_sandbox();
    struct sandbox_usage usage;
    struct stat st;
    char text[64] = "";
    char path[4200];
    char line[13000];

    (void)snprintf(path, sizeof(path), "%s/handed-over", box->home);
    AUTO(fd_close)
    int fd = sandbox_open_file(box, path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, 0600, &err);
    if (fd == -ENOTSUP)
        SKIP("%s", err.message);
    CHECK(fd >= 0);
    CHECK_EQ(sandbox_open_file(box, path, O_RDWR | O_CREAT | O_EXCL, 0600, &err), -EEXIST);
    CHECK_EQ(fd_write_all(fd, "question", 8), 0);
    (void)snprintf(
            line, sizeof(line), "cat '%s' && echo answer >'%s' && rm '%s'", path, path, path);
    AUTO(outcome_finish) struct outcome got = run_shell(box, line);
    CHECK_STR(got.out.data, "question");
    CHECK_EQ(sandbox_stop(box, &usage, &err), 0);
    CHECK_EQ(fstat(fd, &st), 0);
    CHECK_EQ(st.st_nlink, 0);
    CHECK_EQ(pread(fd, text, sizeof(text) - 1, 0), 7);
    CHECK_STR(text, "answer\n");
}

/* A file of the host that no path of a sandbox may reach. */
static void make_secret(char path[static 256])
{
    (void)snprintf(path, 256, "%s/secret-XXXXXX", getenv("TMPDIR"));
    AUTO(fd_close) int fd = mkostemp(path, O_CLOEXEC);
    CHECK(fd >= 0);
    CHECK_EQ(fchmod(fd, 0644), 0);
    CHECK_EQ(fd_write_all(fd, "secret", 6), 0);
}

static void check_not_secret(struct sandbox *box, const char *path)
{
    char text[64] = "";
    AUTO(fd_close) int fd = sandbox_open_file(box, path, O_RDONLY, 0, &err);

    if (fd >= 0)
        (void)read(fd, text, sizeof(text) - 1); /* a directory reads as an error: fine */
    if (strstr(text, "secret"))
        test_fail(__FILE__, __LINE__, "'%s' led to a file of the host", path);
}

CONTRACT(no_path_leads_to_a_file_of_the_host)
{
    AUTO(sandbox_free) struct sandbox *box = make_sandbox();
    char secret[256];
    char line[2048];
    char climb[512];

    make_secret(secret);
    (void)snprintf(line, sizeof(line),
            "ln -s %s link; ln -s / root; mkdir d; ln -s ../../../../../..%s d/up;"
            "ln -s /proc/self/root/%s magic",
            secret, secret, secret);
    AUTO(outcome_finish) struct outcome made = run_shell(box, line);
    CHECK_EQ(made.status, 0);
    (void)snprintf(climb, sizeof(climb), "../../../../../../..%s", secret);
    check_not_secret(box, secret);
    check_not_secret(box, climb);
    check_not_secret(box, "link");
    check_not_secret(box, "d/up");
    check_not_secret(box, "magic");
    (void)snprintf(climb, sizeof(climb), "root%s", secret);
    check_not_secret(box, climb);
    (void)snprintf(climb, sizeof(climb), "%s/../../../../../..%s", "/workspace", secret);
    check_not_secret(box, climb);
    CHECK_EQ(unlink(secret), 0);
}

CONTRACT(opening_a_fifo_does_not_block)
{
    AUTO(sandbox_free) struct sandbox *box = make_sandbox();
    AUTO(outcome_finish) struct outcome made = run_shell(box, "mkfifo fifo");

    CHECK_EQ(made.status, 0);
    CHECK(sandbox_open_file(box, "fifo", O_RDONLY, 0, &err) < 0);
    CHECK(sandbox_open_file(box, "fifo", O_WRONLY, 0, &err) < 0);
}
