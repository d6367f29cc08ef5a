#include "base/auto.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/named.h"
#include "harness.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char top[] = "/tmp/carrel-named-test.XXXXXX";
static char top_path[PATH_MAX];

/* A directory with: file, dir/inner, link -> file, way -> dir, out -> /etc, fifo. */
static void enter(void)
{
    CHECK(test_mkdtemp(top));
    CHECK_EQ(chdir(top), 0);
    CHECK(getcwd(top_path, sizeof(top_path)));
    CHECK_EQ(fd_write_new_text(AT_FDCWD, "file", "hello"), 0);
    CHECK_EQ(mkdir("dir", 0700), 0);
    CHECK_EQ(fd_write_new_text(AT_FDCWD, "dir/inner", "inner"), 0);
    CHECK_EQ(symlink("file", "link"), 0);
    CHECK_EQ(symlink("dir", "way"), 0);
    CHECK_EQ(symlink("/etc", "out"), 0);
    CHECK_EQ(mkfifo("fifo", 0600), 0);
}

static const char *absolute(const char *name)
{
    static char path[2 * PATH_MAX];

    (void)snprintf(path, sizeof(path), "%s/%s", top_path, name);
    return path;
}

/* What named_open() gives; a descriptor is closed and becomes 0. */
static int try(const char *path, enum named_kind kind, struct carrel_error *err)
{
    int fd = named_open(path, kind, err);

    if (fd < 0)
        return fd;
    CHECK(fcntl(fd, F_GETFD) & FD_CLOEXEC);
    fd_close(fd);
    return 0;
}

static int try_beneath(int dir, const char *path, enum named_kind kind)
{
    int fd = named_open_beneath(dir, path, kind, NULL);

    fd_close(fd < 0 ? -1 : fd);
    return fd < 0 ? fd : 0;
}

TEST(a_file_is_opened_for_reading)
{
    char text[16] = "";
    enter();
    AUTO(fd_close) int fd = named_open("file", NAMED_FILE, NULL);
    CHECK_EQ(fd_read_all(fd, text, sizeof(text)), 5);
    CHECK_STR(text, "hello");
    CHECK_EQ(try("dir/inner", NAMED_FILE, NULL), 0);
    CHECK_EQ(try("dir/../file", NAMED_FILE, NULL), 0);
    CHECK_EQ(try("./dir//inner", NAMED_FILE, NULL), 0);
    CHECK_EQ(try(absolute("file"), NAMED_FILE, NULL), 0);
}

TEST(the_last_component_is_never_a_link)
{
    struct carrel_error err = { 0 };
    enter();
    CHECK_EQ(try("link", NAMED_FILE, &err), -ELOOP);
    CHECK_STR(err.message, "'link': is a link; carrel does not follow links there, since an "
                           "earlier program may "
                           "have made it: name its target");
    CHECK_EQ(try("way", NAMED_DIRECTORY, NULL), -ELOOP);
    CHECK_EQ(try("way/", NAMED_DIRECTORY, NULL), -ELOOP);
    CHECK_EQ(try("way/.", NAMED_DIRECTORY, NULL), -ELOOP);
    CHECK_EQ(try("way/./", NAMED_ANY, NULL), -ELOOP);
    CHECK_EQ(try("out", NAMED_ANY, NULL), -ELOOP);
    CHECK_EQ(try(absolute("link"), NAMED_FILE, NULL), -ELOOP);
    CHECK_EQ(try(absolute("out/"), NAMED_ANY, NULL), -ELOOP);
    CHECK_EQ(try(absolute("out/."), NAMED_DIRECTORY, NULL), -ELOOP);
}

TEST(no_path_passes_a_link_that_a_run_could_have_made)
{
    struct carrel_error err = { 0 };
    enter();
    CHECK_EQ(try("way/inner", NAMED_FILE, &err), -ELOOP);
    CHECK(strstr(err.message, "'way/inner': passes a link"));
    CHECK_EQ(try("out/passwd", NAMED_FILE, NULL), -ELOOP);
    CHECK_EQ(try("way/../file", NAMED_FILE, NULL), -ELOOP);
    CHECK_EQ(try(absolute("way/inner"), NAMED_FILE, &err), -ELOOP);
    char expected[2 * PATH_MAX];
    (void)snprintf(
            expected, sizeof(expected), "passes the link '%s/way'; carrel does", top_path);
    CHECK(strstr(err.message, expected));
    CHECK_EQ(try(absolute("way/../file"), NAMED_FILE, NULL), -ELOOP);
    CHECK_EQ(try(absolute("dir/../out/passwd"), NAMED_FILE, NULL), -ELOOP);
    CHECK_EQ(try(absolute("way/nothing"), NAMED_FILE, NULL), -ELOOP);
    CHECK_EQ(try(absolute("file/inner"), NAMED_FILE, NULL), -ENOTDIR);
    CHECK_EQ(try(absolute("dir/../dir/./inner"), NAMED_FILE, NULL), 0);
}

static bool is_link(const char *path)
{
    struct stat st;

    return lstat(path, &st) == 0 && S_ISLNK(st.st_mode);
}

TEST(an_absolute_path_passes_links_of_the_system)
{
    char path[PATH_MAX];
    enter();
    if (!is_link("/bin") && !is_link("/var/run"))
        SKIP("neither /bin nor /var/run is a link here");
    if (is_link("/bin")) { /* relative */
        AUTO(fd_close) int fd = named_open("/bin/env", NAMED_FILE, NULL);
        CHECK_EQ(named_path(fd, path, sizeof(path)), 0);
        CHECK_STR(path, "/usr/bin/env");
        CHECK_EQ(try("/bin/../bin/env", NAMED_FILE, NULL), 0);
        CHECK_EQ(try("/bin", NAMED_ANY, NULL), -ELOOP);
        CHECK_EQ(try("/bin/", NAMED_DIRECTORY, NULL), -ELOOP);
        CHECK_EQ(try("/bin/env/x", NAMED_ANY, NULL), -ENOTDIR);
        CHECK_EQ(try("/bin/carrel-has-none", NAMED_ANY, NULL), -ENOENT);
    }
    if (is_link("/var/run")) /* absolute */
        CHECK_EQ(try("/var/run/../etc/passwd", NAMED_FILE, NULL), 0);
}

TEST(a_fifo_or_a_device_is_refused_at_once)
{
    struct carrel_error err = { 0 };
    enter();
    CHECK_EQ(try("fifo", NAMED_FILE, &err), -EINVAL);
    CHECK_STR(err.message, "'fifo': is a FIFO; expected a regular file");
    CHECK_EQ(try("/dev/null", NAMED_FILE, &err), -EINVAL);
    CHECK_STR(err.message, "'/dev/null': is a device; expected a regular file");
    CHECK_EQ(try("dir", NAMED_FILE, &err), -EISDIR);
    CHECK_EQ(try("file", NAMED_DIRECTORY, &err), -ENOTDIR);
    CHECK_STR(err.message, "'file': is a file; expected a directory");
    CHECK_EQ(try("fifo", NAMED_ANY, NULL), 0);
}

TEST(a_magic_link_is_not_followed_but_a_descriptor_is_the_callers)
{
    char path[64];
    int pipe_fds[2];
    char byte;
    enter();
    CHECK_EQ(try("/proc/self/cwd", NAMED_DIRECTORY, NULL), -ELOOP);
    CHECK_EQ(try("/proc/self/cwd/dir", NAMED_DIRECTORY, NULL), -ELOOP);
    CHECK_EQ(pipe(pipe_fds), 0);
    CHECK_EQ(write(pipe_fds[1], "x", 1), 1);
    (void)snprintf(path, sizeof(path), "/dev/fd/%d", pipe_fds[0]);
    AUTO(fd_close) int fd = named_open(path, NAMED_FILE, NULL);
    CHECK_EQ(read(fd, &byte, 1), 1);
    CHECK_EQ(byte, 'x');
    CHECK_EQ(try("/dev/fd/4000", NAMED_FILE, NULL), -EBADF);
}

TEST(nothing_leaves_the_directory_that_it_is_looked_up_below)
{
    enter();
    AUTO(fd_close) int dir = named_open("dir", NAMED_DIRECTORY, NULL);
    CHECK_EQ(try_beneath(dir, "inner", NAMED_FILE), 0);
    CHECK_EQ(try_beneath(dir, "../file", NAMED_FILE), -EXDEV);
    CHECK_EQ(try_beneath(dir, "/etc/passwd", NAMED_FILE), -EXDEV);
    CHECK_EQ(symlink("inner", "dir/link"), 0);
    CHECK_EQ(try_beneath(dir, "link", NAMED_FILE), -ELOOP);
    CHECK_EQ(try_beneath(dir, "nothing", NAMED_FILE), -ENOENT);
    CHECK_EQ(try_beneath(dir, "", NAMED_FILE), -ENOENT);
}

/* Exchanges `name` for a link out of the directory, and for a FIFO, until it is killed. */
static pid_t start_swapping(const char *name)
{
    pid_t pid = fork();

    CHECK(pid >= 0);
    if (pid > 0)
        return pid;
    CHECK_EQ(symlink("/etc/passwd", "bad"), 0);
    for (;;) {
        (void)renameat2(AT_FDCWD, name, AT_FDCWD, "bad", RENAME_EXCHANGE);
        (void)renameat2(AT_FDCWD, name, AT_FDCWD, "fifo", RENAME_EXCHANGE);
    }
}

TEST(a_name_that_is_exchanged_all_the_time_gives_the_file_or_nothing)
{
    enter();
    pid_t pid = start_swapping("file");
    for (int i = 0; i < 5000; i++) {
        char text[16] = "";
        AUTO(fd_close) int fd = named_open("file", NAMED_FILE, NULL);
        if (fd < 0) {
            CHECK(fd == -ELOOP || fd == -EINVAL);
            fd = -1;
            continue;
        }
        CHECK_EQ(fd_read_all(fd, text, sizeof(text) - 1), 5);
        CHECK_STR(text, "hello");
    }
    CHECK_EQ(kill(pid, SIGKILL), 0);
    CHECK_EQ(waitpid(pid, NULL, 0), pid);
}

static void check_content(const char *path, const char *expected)
{
    char text[100];

    CHECK_EQ(fd_read_file(AT_FDCWD, path, text, sizeof(text)), strlen(expected));
    CHECK_STR(text, expected);
}

TEST(a_file_is_replaced_and_what_is_no_file_is_refused)
{
    struct carrel_error err = { 0 };
    enter();
    CHECK_EQ(named_replace("file", "new", 3, 0644, &err), 0);
    check_content("file", "new");
    CHECK_EQ(named_replace("dir/more", "more", 4, 0644, &err), 0);
    check_content("dir/more", "more");
    CHECK_EQ(named_replace("link", "x", 1, 0644, &err), -ELOOP);
    CHECK(strstr(err.message, "write: 'link': is a link; carrel does not follow links there"));
    check_content("file", "new");
    CHECK_EQ(named_replace("fifo", "x", 1, 0644, &err), -EINVAL);
    CHECK_STR(err.message, "write: 'fifo': is a FIFO; expected a regular file");
    CHECK_EQ(named_replace("dir", "x", 1, 0644, &err), -EISDIR);
    CHECK_EQ(named_replace("way/x", "x", 1, 0644, &err), -ELOOP);
    CHECK_EQ(named_replace(absolute("way/x"), "x", 1, 0644, &err), -ELOOP);
    CHECK(strstr(err.message, "/way'; carrel does not follow links there"));
    CHECK_EQ(named_replace(absolute("dir/y"), "y", 1, 0644, &err), 0);
    check_content("dir/y", "y");
    CHECK_EQ(access("dir/x", F_OK), -1);
    CHECK_EQ(named_replace("dir/..", "x", 1, 0644, &err), -EINVAL);
    CHECK_EQ(named_replace("/dev/null", "x", 1, 0644, &err), 0);
    CHECK_EQ(named_replace("no/x", "x", 1, 0644, &err), -ENOENT);
}

TEST(a_descriptor_is_written_to)
{
    char path[64];
    char byte;
    int pipe_fds[2];
    enter();
    CHECK_EQ(pipe(pipe_fds), 0);
    (void)snprintf(path, sizeof(path), "/dev/fd/%d", pipe_fds[1]);
    CHECK_EQ(named_replace(path, "x", 1, 0644, NULL), 0);
    CHECK_EQ(read(pipe_fds[0], &byte, 1), 1);
}

TEST(the_path_of_a_descriptor_is_where_the_file_is_now)
{
    char path[PATH_MAX];
    enter();
    AUTO(fd_close) int dir = named_open("dir", NAMED_DIRECTORY, NULL);
    CHECK_EQ(named_path(dir, path, sizeof(path)), 0);
    CHECK_STR(path, absolute("dir"));
    CHECK_EQ(rename("dir", "moved"), 0);
    CHECK_EQ(named_path(dir, path, sizeof(path)), 0);
    CHECK_STR(path, absolute("moved"));
    AUTO(fd_close) int file = named_open("file", NAMED_FILE, NULL);
    CHECK_EQ(unlink("file"), 0);
    CHECK_EQ(named_path(file, path, sizeof(path)), -ENOENT);
}

TEST(a_directory_is_below_another_by_what_they_are)
{
    struct stat st;
    enter();
    CHECK_EQ(mkdir("dir/deep", 0700), 0);
    AUTO(fd_close) int deep = named_open("dir/deep", NAMED_DIRECTORY, NULL);
    AUTO(fd_close) int above = named_open(".", NAMED_DIRECTORY, NULL);
    CHECK_EQ(stat("way", &st), 0); /* another name of dir */
    struct named_id id = named_id_of(&st);
    CHECK(named_is_below(deep, &id));
    CHECK(!named_is_below(above, &id));
    CHECK_EQ(stat("/", &st), 0);
    id = named_id_of(&st);
    CHECK(named_is_below(above, &id));
}

TEST(an_id_tells_one_file_from_another)
{
    struct stat a;
    struct stat b;
    enter();
    CHECK_EQ(stat("file", &a), 0);
    CHECK_EQ(stat("dir", &b), 0);
    struct named_id id = named_id_of(&a);
    CHECK(named_id_is(&id, &a));
    CHECK(!named_id_is(&id, &b));
}
