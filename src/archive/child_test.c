#include "archive/child.h"
#include "archive/entries.h"
#include "base/err.h"
#include "base/fd.h"
#include "harness.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/pidfd.h>
#include <unistd.h>

static struct carrel_error err;

static int pid_of(int process)
{
    char path[64];
    char text[512];
    int pid = 0;

    (void)snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", process);
    CHECK(fd_read_file(AT_FDCWD, path, text, sizeof(text)) > 0);
    const char *line = strstr(text, "\nPid:");
    CHECK(line && sscanf(line, "\nPid: %d", &pid) == 1);
    return pid;
}

/* "3 4 5 " */
static void list_fds(int pid, char *out, size_t size)
{
    char path[64];
    bool is_open[64] = { false };
    size_t len = 0;

    (void)snprintf(path, sizeof(path), "/proc/%d/fd", pid);
    DIR *dir = opendir(path);
    CHECK(dir);
    for (const struct dirent *entry; (entry = readdir(dir));) {
        int fd = 0;
        if (sscanf(entry->d_name, "%d", &fd) == 1) {
            CHECK(fd < 64);
            is_open[fd] = true;
        }
    }
    (void)closedir(dir);
    for (int i = 0; i < 64; i++)
        if (is_open[i])
            len += (size_t)snprintf(out + len, size - len, "%d ", i);
}

static bool has_line(const char *status, const char *name, const char *value)
{
    const char *line = strstr(status, name);

    return line && strncmp(line + strlen(name), value, strlen(value)) == 0;
}

/* The beginning of an archive: what its writer does not keep back fits into a pipe. */
static void send_beginning(int fd)
{
    AUTO(tar_writer_free) struct tar_writer *writer = NULL;
    static const char data[70000];
    const struct tar_entry entry = { .kind = TAR_FILE, .path = "f", .bytes = 2 * sizeof(data) };

    CHECK_EQ(tar_writer_open(fd, &writer, &err), 0);
    CHECK_EQ(tar_writer_add(writer, &entry, &err), 0);
    CHECK_EQ(tar_writer_data(writer, data, sizeof(data), &err), 0);
}

TEST(a_parser_has_its_descriptors_and_no_rights)
{
    AUTO(child_finish) struct child child = CHILD_INIT;
    AUTO(fd_close) int inherited = open("/", O_RDONLY | O_DIRECTORY); /* not close-on-exec */
    struct entry_record record;
    char status[8192];
    char path[64];
    char fds[256] = "";
    int ends[2];

    CHECK(inherited >= 0);
    CHECK_EQ(pipe2(ends, O_CLOEXEC), 0);
    AUTO(fd_close) int from = ends[0];
    AUTO(fd_close) int to = ends[1];
    CHECK_EQ(setenv("SECRET", "of the caller", 1), 0);
    CHECK_EQ(child_start(JOB_ENTRIES, from, NULL, &child, &err), 0);
    send_beginning(to);
    CHECK_EQ(fd_read_all(child.stream, &record, sizeof(record)), sizeof(record));
    CHECK_EQ(record.kind, TAR_FILE); /* it parses, so it is confined */

    int pid = pid_of(child.process);
    list_fds(pid, fds, sizeof(fds));
    CHECK_STR(fds, "3 4 5 ");
    (void)snprintf(path, sizeof(path), "/proc/%d/status", pid);
    CHECK(fd_read_file(AT_FDCWD, path, status, sizeof(status)) > 0);
    CHECK(has_line(status, "\nNoNewPrivs:\t", "1"));
    CHECK(has_line(status, "\nSeccomp:\t", "2"));
    CHECK(has_line(status, "\nCapPrm:\t", "0000000000000000"));
    CHECK(has_line(status, "\nCapEff:\t", "0000000000000000"));
    (void)snprintf(path, sizeof(path), "/proc/%d/environ", pid);
    CHECK_EQ(fd_read_file(AT_FDCWD, path, status, sizeof(status)), 0);
}

TEST(a_parser_that_is_killed_has_failed)
{
    AUTO(child_finish) struct child child = CHILD_INIT;
    int ends[2];

    CHECK_EQ(pipe2(ends, O_CLOEXEC), 0);
    AUTO(fd_close) int from = ends[0];
    AUTO(fd_close) int to = ends[1];
    CHECK_EQ(child_start(JOB_ENTRIES, from, NULL, &child, &err), 0);
    CHECK_EQ(pidfd_send_signal(child.process, SIGKILL, NULL, 0), 0);
    CHECK_EQ(child_ask(&child, NULL, &err), -EIO);
    CHECK_STR(err.message, "the process that read it was ended by signal 9");
}

static int start_with(const char *program, struct child *child)
{
    CHECK_EQ(setenv("CARREL_PROGRAM", program, 1), 0);
    return child_start(JOB_INFLATE, STDIN_FILENO, NULL, child, &err);
}

TEST(a_program_that_is_not_carrel_is_told)
{
    AUTO(child_finish) struct child none = CHILD_INIT;
    AUTO(child_finish) struct child other = CHILD_INIT;

    CHECK_EQ(start_with("/no/such/carrel", &none), -ENOPKG);
    CHECK_STR(err.message,
            "read an archive: CARREL_PROGRAM is '/no/such/carrel', which is no program; "
            "expected the absolute path of carrel");
    CHECK_EQ(start_with("/bin/true", &other), 0);
    CHECK_EQ(child_ask(&other, NULL, &err), -EIO);
    CHECK_STR(err.message,
            "the process that read it ended without an answer (status 0); libcarrel and the "
            "program carrel may be of different versions");
}
