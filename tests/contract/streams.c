/* streams.c - content of files in either form: a descriptor of the file, or a stream of it. */
#include "base/fd.h"
#include "harness.h"
#include "place.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>

#define LARGE (3U << 20) /* more than a pipe or a socket holds */

static int ask(struct sandbox *box, enum file_op op, const char *path, int dir,
        struct file_answer *answer)
{
    struct file_request request = FILE_REQUEST_INIT;

    request.op = op;
    request.path = path;
    request.dir = dir;
    return sandbox_file(box, &request, answer, &err);
}

CONTRACT(a_large_file_is_read_whole)
{
    AUTO(sandbox_free) struct sandbox *box = make_sandbox();
    AUTO(outcome_finish)
    struct outcome made = run_shell(box, "yes 0123456789 | head -c 3145728 >large; : >empty");
    AUTO(buf_finish) struct buf got = BUF_INIT(2 * LARGE);
    AUTO(buf_finish) struct buf none = BUF_INIT(16);

    AUTO(fd_close) int large = sandbox_open_file(box, "large", O_RDONLY, 0, &err);
    CHECK(large >= 0);
    read_to_end(large, &got);
    CHECK_EQ(got.len, LARGE);
    for (size_t i = 0; i < got.len; i++)
        CHECK(got.data[i] == "0123456789\n"[i % 11]);
    AUTO(fd_close) int empty = sandbox_open_file(box, "empty", O_RDONLY, 0, &err);
    CHECK(empty >= 0);
    read_to_end(empty, &none);
    CHECK_EQ(none.len, 0);
}

CONTRACT(what_was_written_is_stored_when_its_end_is_confirmed)
{
    AUTO(sandbox_free) struct sandbox *box = make_sandbox();
    AUTO(free) char *bytes = malloc(LARGE);

    CHECK(bytes);
    memset(bytes, 'x', LARGE);
    AUTO(fd_close) int fd = sandbox_open_file(box, "made", O_WRONLY | O_CREAT, 0640, &err);
    CHECK(fd >= 0);
    CHECK_EQ(fd_write_all(fd, bytes, LARGE), 0);
    CHECK_EQ(file_end(fd, &err), 0);
    AUTO(fd_close) int more = sandbox_open_file(box, "made", O_WRONLY | O_APPEND, 0, &err);
    CHECK(more >= 0);
    CHECK_EQ(fd_write_all(more, "end", 3), 0);
    CHECK_EQ(file_end(more, &err), 0);
    AUTO(outcome_finish)
    struct outcome got =
            run_shell(box, "wc -c <made; stat -c %a made; tr -d x <made; tail -c 5 made");
    CHECK_STR(got.out.data, "3145731\n640\nendxxend");
}

/* A reader may leave, and a writer may never come: neither holds the sandbox. */
CONTRACT(streams_that_are_left_alone_end_with_the_sandbox)
{
    const int before = count_descriptors();
    struct sandbox *box = make_sandbox();
    AUTO(outcome_finish)
    struct outcome made = run_shell(box, "head -c 3145728 /dev/zero >large");
    int in = sandbox_open_file(box, "large", O_RDONLY, 0, &err);
    int out = sandbox_open_file(box, "made", O_WRONLY | O_CREAT, 0600, &err);
    int left = sandbox_open_file(box, "large", O_RDONLY, 0, &err);
    char byte;

    CHECK(in >= 0 && out >= 0 && left >= 0);
    CHECK_EQ(fd_read_all(in, &byte, 1), 1);
    fd_close(in);
    sandbox_free(box);
    fd_close(out);
    fd_close(left);
    CHECK_EQ(count_descriptors(), before);
}

/* What is in the directory `path`, in either way; types are of links themselves. */
static unsigned list(struct sandbox *box, const char *path, const char *const *names, size_t n)
{
    struct file_answer answer = FILE_ANSWER_INIT;
    struct file_entry entry;
    unsigned found = 0;
    int r;

    CHECK_EQ(ask(box, FILE_LIST, path, -1, &answer), 0);
    AUTO(fd_close) int fd = answer.fd;
    while ((r = file_list_next(fd, &entry, &err)) == 1)
        for (size_t i = 0; i < n; i++)
            if (strcmp(entry.name, names[i]) == 0) {
                CHECK(!(found & (1U << i)));
                found |= 1U << i;
                CHECK_EQ(S_ISLNK(entry.stat.mode), i == 1);
                CHECK_EQ(S_ISDIR(entry.stat.mode), i == 2);
                CHECK(i != 0 || entry.stat.size == 5);
            }
    CHECK_EQ(r, 0);
    return found;
}

CONTRACT(a_directory_is_listed_by_its_descriptor_or_by_a_request)
{
    static const char *const names[] = { "five\nbytes", "link", "dir", ".hidden" };
    AUTO(sandbox_free) struct sandbox *box = make_sandbox();
    struct file_answer answer = FILE_ANSWER_INIT;
    AUTO(outcome_finish)
    struct outcome made = run_shell(box,
            "mkdir d d/dir; printf 12345 >d/'five\nbytes'; ln -s /etc d/link; : >d/.hidden;"
            "mkdir many && cd many && seq 3000 | xargs touch");

    CHECK_EQ(made.status, 0);
    if (box->can & CAN_DESCRIPTORS) {
        CHECK_EQ(ask(box, FILE_LIST, "d", -1, &answer), -ENOTSUP);
        CHECK(strstr(err.message, runtime_name(subject)));
        return;
    }
    CHECK_EQ(list(box, "d", names, ARRAY_LEN(names)), 15);
    CHECK_EQ(list(box, "d/dir", names, ARRAY_LEN(names)), 0);
    CHECK_EQ(ask(box, FILE_LIST, "none", -1, &answer), -ENOENT);
    CHECK_EQ(ask(box, FILE_LIST, "d/.hidden", -1, &answer), -ENOTDIR);
    CHECK_EQ(sandbox_open_file(box, "d", O_RDONLY, 0, &err), -EISDIR);
    CHECK_EQ(ask(box, FILE_LIST, "many", -1, &answer), 0);
    AUTO(fd_close) int fd = answer.fd;
    struct file_entry entry;
    int n = 0;
    while (file_list_next(fd, &entry, &err) == 1)
        n++;
    CHECK_EQ(n, 3000);
}

CONTRACT(without_descriptors_what_needs_them_is_refused)
{
    AUTO(sandbox_free) struct sandbox *box = make_sandbox();
    struct file_request request = FILE_REQUEST_INIT;
    struct file_answer answer = FILE_ANSWER_INIT;

    if (box->can & CAN_DESCRIPTORS)
        SKIP("it has them");
    AUTO(fd_close) int dir = open("/usr", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    CHECK_EQ(ask(box, FILE_STAT, "bin", dir, &answer), -ENOTSUP);
    CHECK(strstr(err.message, runtime_name(subject)));
    AUTO(fd_close) int notes = inotify_init1(IN_CLOEXEC);
    request.op = FILE_WATCH;
    request.path = ".";
    request.watch = notes;
    request.events = IN_CREATE;
    CHECK_EQ(sandbox_file(box, &request, &answer, &err), -ENOTSUP);
    CHECK_EQ(sandbox_open_file(box, "x", O_RDWR | O_CREAT, 0600, &err), -ENOTSUP);
}
