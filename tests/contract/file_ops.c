/* file_ops.c - operations on files of a sandbox from outside, one request at a time. */
#include "base/clock.h"
#include "base/fd.h"
#include "harness.h"
#include "place.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static struct file_answer answer;

/* The request that most tests make: an operation on a path. */
static int ask(struct sandbox *box, enum file_op op, const char *path, const char *other)
{
    struct file_request request = FILE_REQUEST_INIT;

    request.op = op;
    request.path = path;
    request.other = other;
    request.mode = 0755;
    return sandbox_file(box, &request, &answer, &err);
}

static int ask_flags(struct sandbox *box, enum file_op op, int dir, const char *path, int flags)
{
    struct file_request request = FILE_REQUEST_INIT;

    request.op = op;
    request.dir = dir;
    request.path = path;
    request.flags = flags;
    return sandbox_file(box, &request, &answer, &err);
}

static void check_shell(struct sandbox *box, const char *line, const char *expected)
{
    AUTO(outcome_finish) struct outcome got = run_shell(box, line);

    CHECK_EQ(got.status, 0);
    CHECK_STR(got.out.data ? got.out.data : "", expected);
}

CONTRACT(names_are_made_moved_and_removed_from_outside)
{
    AUTO(sandbox_free) struct sandbox *box = make_sandbox();

    CHECK_EQ(ask(box, FILE_MAKE_DIR, "a", NULL), 0);
    CHECK_EQ(ask(box, FILE_MAKE_DIR, "a/b/", NULL), 0);
    CHECK_EQ(ask(box, FILE_MAKE_DIR, "a/b", NULL), -EEXIST);
    CHECK_EQ(ask(box, FILE_MAKE_DIR, "none/b", NULL), -ENOENT);
    CHECK_EQ(ask(box, FILE_MAKE_DIR, ".", NULL), -EEXIST);
    CHECK_EQ(ask(box, FILE_SYMLINK, "a/link", "b"), 0);
    CHECK_EQ(ask(box, FILE_SYMLINK, "a/link", "b"), -EEXIST);
    check_shell(box, "echo text >a/b/file; readlink a/link; stat -c %a a", "b\n755\n");

    CHECK_EQ(ask(box, FILE_LINK, "a/link/file", "a/second"), 0);
    check_shell(box, "cat a/second; stat -c %h a/second", "text\n2\n");
    CHECK_EQ(ask(box, FILE_RENAME, "a/second", "a/third"), 0);
    check_shell(box, "ls a", "b\nlink\nthird\n");
    CHECK_EQ(ask(box, FILE_RENAME, "a/second", "a/fourth"), -ENOENT);

    CHECK_EQ(ask(box, FILE_REMOVE, "a/b", NULL), -EISDIR);
    CHECK_EQ(ask(box, FILE_REMOVE_DIR, "a/b", NULL), -ENOTEMPTY);
    CHECK_EQ(ask(box, FILE_REMOVE_DIR, "a/third", NULL), -ENOTDIR);
    CHECK_EQ(ask(box, FILE_REMOVE, "a/link/file", NULL), 0);
    CHECK_EQ(ask(box, FILE_REMOVE, "a/link", NULL), 0); /* the link, not its target */
    CHECK_EQ(ask(box, FILE_REMOVE_DIR, "a/b", NULL), 0);
    check_shell(box, "ls a", "third\n");
    CHECK(ask(box, FILE_REMOVE_DIR, "/", NULL) < 0);
    CHECK(ask(box, FILE_REMOVE_DIR, "a/.", NULL) < 0);
    CHECK(ask(box, FILE_REMOVE_DIR, "a/..", NULL) < 0);
}

CONTRACT(a_rename_replaces_only_when_it_may)
{
    AUTO(sandbox_free) struct sandbox *box = make_sandbox();
    struct file_request request = FILE_REQUEST_INIT;

    check_shell(box, "echo one >one; echo two >two", "");
    request.op = FILE_RENAME;
    request.path = "one";
    request.other = "two";
    request.flags = FILE_NO_REPLACE;
    CHECK_EQ(sandbox_file(box, &request, &answer, &err), -EEXIST);
    check_shell(box, "cat one two", "one\ntwo\n");
    request.flags = 0;
    CHECK_EQ(sandbox_file(box, &request, &answer, &err), 0);
    check_shell(box, "cat two; test ! -e one", "one\n");
}

CONTRACT(what_a_file_is_comes_back_as_the_program_sees_it)
{
    AUTO(sandbox_free) struct sandbox *box = make_sandbox();
    struct file_request request = FILE_REQUEST_INIT;
    char expected[128];

    check_shell(box,
            "printf 12345 >file; chmod 640 file; ln -s file link; ln -s none lost;"
            "touch -d @1000000000 file; mkfifo fifo",
            "");
    CHECK_EQ(ask(box, FILE_STAT, "file", NULL), 0);
    CHECK_EQ(answer.fd, -1);
    CHECK_EQ(answer.stat.mode, S_IFREG | 0640);
    CHECK_EQ(answer.stat.size, 5);
    CHECK_EQ(answer.stat.links, 1);
    CHECK_EQ(answer.stat.mtime.tv_sec, 1000000000);
    (void)snprintf(expected, sizeof(expected), "%u:%u\n", answer.stat.uid, answer.stat.gid);
    check_shell(box, "stat -c %u:%g file", expected);

    CHECK_EQ(ask(box, FILE_STAT, "link", NULL), 0);
    CHECK(S_ISREG(answer.stat.mode));
    CHECK_EQ(ask_flags(box, FILE_STAT, -1, "link", FILE_NO_FOLLOW), 0);
    CHECK(S_ISLNK(answer.stat.mode));
    CHECK_EQ(ask(box, FILE_STAT, "lost", NULL), -ENOENT);
    CHECK_EQ(ask_flags(box, FILE_STAT, -1, "lost", FILE_NO_FOLLOW), 0);
    CHECK_EQ(ask(box, FILE_STAT, "fifo", NULL), 0); /* stat does not open it */
    CHECK(S_ISFIFO(answer.stat.mode));
    CHECK_EQ(ask(box, FILE_STAT, "file/below", NULL), -ENOTDIR);

    request.op = FILE_SET_MODE;
    request.path = "link";
    request.mode = 06755;
    CHECK_EQ(sandbox_file(box, &request, &answer, &err), 0);
    check_shell(box, "stat -c %a file", "755\n"); /* never set-uid */
    request.flags = FILE_NO_FOLLOW;
    CHECK_EQ(sandbox_file(box, &request, &answer, &err), -ELOOP);

    request = FILE_REQUEST_INIT;
    request.op = FILE_SET_TIMES;
    request.path = "file";
    request.times[0].tv_nsec = UTIME_OMIT;
    request.times[1].tv_sec = 1234567890;
    CHECK_EQ(sandbox_file(box, &request, &answer, &err), 0);
    check_shell(box, "stat -c %Y file", "1234567890\n");
}

CONTRACT(a_link_can_be_read_without_being_followed)
{
    AUTO(sandbox_free) struct sandbox *box = make_sandbox();
    char text[PATH_MAX];
    char small[4];

    check_shell(box, "ln -s /etc/../else where; echo >file", "");
    CHECK_EQ(ask(box, FILE_READ_LINK, "where", NULL), 0);
    AUTO(fd_close) int fd = answer.fd;
    CHECK(fd >= 0);
    CHECK_EQ(file_read_link(fd, text, sizeof(text), &err), 12);
    CHECK_STR(text, "/etc/../else");
    CHECK_EQ(ask(box, FILE_READ_LINK, "where", NULL), 0);
    AUTO(fd_close) int again = answer.fd;
    CHECK_EQ(file_read_link(again, small, sizeof(small), &err), -ENAMETOOLONG);
    CHECK_EQ(ask(box, FILE_READ_LINK, "file", NULL), -EINVAL);
    CHECK(ask(box, FILE_READ_LINK, "/proc/self/root", NULL) < 0);
}

CONTRACT(requests_that_make_no_sense_are_refused)
{
    AUTO(sandbox_free) struct sandbox *box = make_sandbox();
    char longest[PATH_MAX + 1];
    struct file_request request = FILE_REQUEST_INIT;

    memset(longest, 'x', sizeof(longest) - 1);
    longest[sizeof(longest) - 1] = '\0';
    CHECK_EQ(ask(box, FILE_STAT, "", NULL), -EINVAL);
    CHECK_EQ(ask(box, FILE_STAT, longest, NULL), -ENAMETOOLONG);
    CHECK_EQ(ask(box, FILE_MAKE_DIR, longest + 1, NULL), -ENAMETOOLONG);
    CHECK_EQ(ask(box, FILE_RENAME, "a", NULL), -EINVAL);
    CHECK_EQ(ask(box, FILE_SYMLINK, "a", ""), -EINVAL);
    CHECK_EQ(ask(box, FILE_OP_COUNT, "a", NULL), -EINVAL);
    CHECK_EQ(ask_flags(box, FILE_REMOVE, -1, "a", FILE_NO_FOLLOW), -EINVAL);
    CHECK_EQ(ask_flags(box, FILE_OPEN, -1, "a", O_PATH), -EINVAL);
    request.op = FILE_WATCH;
    request.path = ".";
    request.events = IN_CREATE;
    CHECK_EQ(sandbox_file(box, &request, &answer, &err), -EINVAL); /* no descriptor */
    AUTO(fd_close) int other = open("/dev/null", O_RDONLY | O_CLOEXEC);
    request.watch = other;
    int r = sandbox_file(box, &request, &answer, &err); /* not an inotify descriptor */
    CHECK_EQ(r, box->can & CAN_DESCRIPTORS ? -EINVAL : -ENOTSUP);
}

CONTRACT(names_in_messages_do_not_speak_to_a_terminal)
{
    AUTO(sandbox_free) struct sandbox *box = make_sandbox();

    CHECK_EQ(ask(box, FILE_STAT, "no\033[2J\nsuch", NULL), -ENOENT);
    CHECK(strstr(err.message, "no\\x1b[2J\\x0asuch"));
    CHECK(!strchr(err.message, '\033'));
}

/*
 * Every way to use a magic link: /proc/self/root and the like are as powerful as a foreign
 * descriptor.
 */
CONTRACT(magic_links_are_refused_by_every_operation)
{
    AUTO(sandbox_free) struct sandbox *box = make_sandbox();
    static const char *const ways[] = { "/proc/self/root/tmp", "/proc/self/cwd/x",
        "/proc/1/root/tmp", "/proc/self/fd/0", "magic/tmp", "fd" };

    check_shell(box, "ln -s /proc/self/root magic; ln -s /proc/self/fd/0 fd; mkdir d", "");
    for (size_t i = 0; i < ARRAY_LEN(ways); i++) {
        char below[128];
        (void)snprintf(below, sizeof(below), "%s/made", ways[i]);
        CHECK(ask(box, FILE_STAT, ways[i], NULL) < 0);
        CHECK(ask(box, FILE_OPEN, ways[i], NULL) < 0);
        CHECK(ask(box, FILE_SET_MODE, ways[i], NULL) < 0);
        CHECK(ask(box, FILE_SET_TIMES, ways[i], NULL) < 0);
        CHECK(ask(box, FILE_MAKE_DIR, below, NULL) < 0);
        CHECK(ask(box, FILE_SYMLINK, below, "x") < 0);
        CHECK(ask(box, FILE_REMOVE, below, NULL) < 0);
        CHECK(ask(box, FILE_RENAME, "d", below) < 0);
        CHECK(ask(box, FILE_RENAME, below, "e") < 0);
        CHECK(ask(box, FILE_LINK, below, "e") < 0);
    }
    check_shell(box, "ls", "d\nfd\nmagic\n");
}

CONTRACT(what_is_no_file_is_a_typed_error_and_nothing_waits)
{
    AUTO(sandbox_free) struct sandbox *box = make_sandbox();

    check_shell(box,
            "mkfifo fifo; echo >secret; chmod 000 secret; python3 -c "
            "'import socket; socket.socket(socket.AF_UNIX).bind(\"socket\")'",
            "");
    CHECK_EQ(ask_flags(box, FILE_OPEN, -1, "fifo", O_RDONLY), -EINVAL);
    CHECK_EQ(ask_flags(box, FILE_OPEN, -1, "fifo", O_WRONLY), -EINVAL);
    CHECK_EQ(ask_flags(box, FILE_OPEN, -1, "fifo", O_RDWR),
            box->can & CAN_DESCRIPTORS ? -EINVAL : -ENOTSUP);
    CHECK_EQ(ask_flags(box, FILE_OPEN, -1, "socket", O_RDONLY), -EINVAL);
    CHECK_EQ(ask_flags(box, FILE_OPEN, -1, ".", O_WRONLY), -EISDIR);
    static const char *const devices[] = { "/dev/null", "/dev/tty" };
    for (size_t i = 0; i < ARRAY_LEN(devices); i++) {
        int r = ask_flags(box, FILE_OPEN, -1, devices[i], O_RDWR);
        CHECK(r == -EINVAL || r == -ENOTSUP); /* it may reach the sandbox's own files alone */
    }
    if (runtime_isolation(subject) != ISOLATION_NONE || geteuid() != 0)
        CHECK_EQ(ask_flags(box, FILE_OPEN, -1, "secret", O_RDONLY), -EACCES);
}

/* For what is about descriptors; streams.c has the rest. */
static struct sandbox *make_near(void)
{
    struct sandbox *box = make_sandbox();

    if (box->can & CAN_DESCRIPTORS)
        return box;
    sandbox_free(box);
    SKIP("it has streams instead of descriptors");
}

CONTRACT(paths_below_a_directory_that_was_opened_follow_no_link)
{
    AUTO(sandbox_free) struct sandbox *box = make_near();
    struct file_request request = FILE_REQUEST_INIT;

    check_shell(box,
            "mkdir -p top/in other; echo in >top/in/file; echo other >other/file;"
            "ln -s ../other top/link; ln -s in top/inner",
            "");
    CHECK_EQ(ask_flags(box, FILE_OPEN, -1, "top", O_RDONLY | O_DIRECTORY), 0);
    AUTO(fd_close) int top = answer.fd;

    CHECK_EQ(ask_flags(box, FILE_STAT, top, "in/file", 0), 0);
    CHECK_EQ(answer.stat.size, 3);
    CHECK_EQ(ask_flags(box, FILE_STAT, top, ".", 0), 0);
    CHECK_EQ(ask_flags(box, FILE_STAT, top, "link/file", 0), -ELOOP);
    CHECK_EQ(ask_flags(box, FILE_STAT, top, "inner/file", 0), -ELOOP);
    CHECK_EQ(ask_flags(box, FILE_STAT, top, "link", 0), -ELOOP);
    CHECK_EQ(ask_flags(box, FILE_STAT, top, "link", FILE_NO_FOLLOW), 0);
    CHECK(S_ISLNK(answer.stat.mode));
    CHECK_EQ(ask_flags(box, FILE_STAT, top, "../other/file", 0), -EXDEV);
    CHECK_EQ(ask_flags(box, FILE_STAT, top, "/etc/passwd", 0), -EXDEV);
    CHECK_EQ(ask_flags(box, FILE_REMOVE, top, "link/file", 0), -ELOOP);
    CHECK_EQ(ask_flags(box, FILE_REMOVE, top, "../other/file", 0), -EXDEV);
    CHECK_EQ(ask_flags(box, FILE_REMOVE, top, "link", 0), 0);
    request.op = FILE_RENAME;
    request.dir = top;
    request.path = "in/file";
    request.other = "../other/file";
    CHECK_EQ(sandbox_file(box, &request, &answer, &err), -EXDEV);
    request.other = "moved";
    CHECK_EQ(sandbox_file(box, &request, &answer, &err), 0);

    /* The descriptor is the same directory, whatever its name is now. */
    check_shell(box, "mv top gone; mkdir top", "");
    CHECK_EQ(ask_flags(box, FILE_STAT, top, "moved", 0), 0);
    check_shell(box, "cat gone/moved other/file", "in\nother\n");
}

static void await_readable(int fd)
{
    struct pollfd watch = { .fd = fd, .events = POLLIN };

    CHECK(poll(&watch, 1, 20000) == 1);
}

CONTRACT(changes_inside_are_seen_through_a_watch)
{
    AUTO(sandbox_free) struct sandbox *box = make_near();
    struct file_request request = FILE_REQUEST_INIT;
    char space[4096] __attribute__((aligned(8)));

    AUTO(fd_close) int notes = inotify_init1(IN_CLOEXEC);
    CHECK(notes >= 0);
    check_shell(box, "mkdir seen; ln -s seen link", "");
    request.op = FILE_WATCH;
    request.path = "seen";
    request.watch = notes;
    request.events = IN_CREATE | IN_CLOSE_WRITE;
    CHECK_EQ(sandbox_file(box, &request, &answer, &err), 0);
    CHECK_EQ(answer.watch, 1);
    request.path = "link";
    request.flags = FILE_NO_FOLLOW;
    CHECK_EQ(sandbox_file(box, &request, &answer, &err), 0);
    CHECK_EQ(answer.watch, 2); /* the link itself, which does not change */
    request.path = "none";
    CHECK_EQ(sandbox_file(box, &request, &answer, &err), -ENOENT);
    request.path = "/proc/self/root/tmp";
    CHECK(sandbox_file(box, &request, &answer, &err) < 0);

    check_shell(box, "echo >seen/made", "");
    await_readable(notes);
    ssize_t n = read(notes, space, sizeof(space));
    CHECK(n > (ssize_t)sizeof(struct inotify_event));
    const struct inotify_event *event = (const struct inotify_event *)(const void *)space;
    CHECK_EQ(event->wd, 1);
    CHECK_EQ(event->mask, IN_CREATE);
    CHECK_STR(event->name, "made");
}

CONTRACT(files_are_reached_as_the_user_that_was_asked_for_or_not_at_all)
{
    AUTO(sandbox_free) struct sandbox *box = make_sandbox();
    struct file_request request = FILE_REQUEST_INIT;

    check_shell(box, "mkdir -m 777 shared; mkdir -m 700 own", "");
    CHECK_EQ(ask(box, FILE_STAT, "own", NULL), 0);
    const struct file_stat own = answer.stat;

    request.op = FILE_MAKE_DIR;
    request.path = "shared/mine";
    request.mode = 0755;
    request.has_user = true;
    request.uid = own.uid;
    request.gid = own.gid;
    CHECK_EQ(sandbox_file(box, &request, &answer, &err), 0);

    request.path = "shared/theirs";
    request.uid = own.uid + 1;
    request.gid = own.gid + 1;
    int r = sandbox_file(box, &request, &answer, &err);
    if (r == 0) {
        CHECK_EQ(ask(box, FILE_STAT, "shared/theirs", NULL), 0);
        CHECK_EQ(answer.stat.uid, own.uid + 1);
        CHECK_EQ(answer.stat.gid, own.gid + 1);
        request.path = "own/theirs";
        CHECK_EQ(sandbox_file(box, &request, &answer, &err), -EACCES);
        request.path = "shared/nobodys";
        request.uid = 1000000; /* beyond the ids of a sandbox */
        CHECK_EQ(sandbox_file(box, &request, &answer, &err), -EPERM);
        CHECK_EQ(ask(box, FILE_STAT, "shared/nobodys", NULL), -ENOENT);
    } else {
        CHECK_EQ(r, -EPERM);
    }
    check_shell(box, "mkdir shared/again && echo fine",
            "fine\n"); /* and our own ids are in force again */
    CHECK_EQ(ask(box, FILE_MAKE_DIR, "own/again", NULL), 0);
}

/*
 * A program swaps a directory for a link as fast as it can, while every operation uses it. The
 * link leads to a file of the host; the same path inside has another one.
 */
CONTRACT(a_storm_of_swaps_never_leads_outside)
{
    AUTO(sandbox_free) struct sandbox *box = make_sandbox();
    char secret[256];
    char line[1024];
    struct stat st;
    static const char *const storm =
            "import os, ctypes\n"
            "libc = ctypes.CDLL(None, use_errno=True)\n"
            "print('begun', flush=True)\n"
            "while True:\n"
            "    libc.renameat2(-100, b'a', -100, b'b', 2)\n"; /* RENAME_EXCHANGE */
    size_t calls = 0;

    (void)snprintf(secret, sizeof(secret), "%s/outside", getenv("TMPDIR"));
    CHECK_EQ(mkdir(secret, 0777), 0);
    CHECK_EQ(chmod(secret, 0777), 0);
    (void)snprintf(line, sizeof(line), "mkdir a; ln -s %s b; echo inside >a/file", secret);
    check_shell(box, line, "");
    const char *const argv[] = { "python3", "-c", storm, NULL };
    struct process_spec spec = plain_process(argv);
    AUTO(process_close) struct process swapper = start(box, &spec);
    AUTO(buf_finish) struct buf said = BUF_INIT(4096);
    read_until(swapper.stdout_fd, &said, "begun");

    while (calls < 3000) { /* the escape suite makes 10^5 of them */
        calls += 5;
        if (ask_flags(box, FILE_OPEN, -1, "a/made", O_WRONLY | O_CREAT) == 0)
            fd_close(answer.fd);
        (void)ask(box, FILE_MAKE_DIR, "a/dir", NULL);
        (void)ask(box, FILE_STAT, "a/file", NULL);
        (void)ask(box, FILE_REMOVE_DIR, "a/dir", NULL);
        (void)ask(box, FILE_REMOVE, "a/made", NULL);
    }
    CHECK_EQ(sandbox_stop(box, NULL, &err), 0);
    CHECK_EQ(stat(secret, &st), 0);
    CHECK_EQ(st.st_nlink, 2);
    CHECK_EQ(rmdir(secret), 0); /* nothing was ever created in it */
}
