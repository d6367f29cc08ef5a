/* pack.c - trees as a tar, out of a sandbox and into it, where there are no descriptors. */
#include "base/fd.h"
#include "files/tar_plain.h"
#include "harness.h"
#include "place.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static int ask(struct sandbox *box, enum file_op op, const char *path, int flags, int *fd)
{
    struct file_request request = FILE_REQUEST_INIT;
    struct file_answer answer = FILE_ANSWER_INIT;

    request.op = op;
    request.path = path;
    request.flags = flags;
    int r = sandbox_file(box, &request, &answer, &err);
    *fd = answer.fd;
    return r;
}

/* A sandbox without descriptors; where there are some, these requests are refused by name. */
static struct sandbox *make_far(void)
{
    static const enum file_op ops[] = { FILE_PACK, FILE_UNPACK, FILE_REMOVE_TREE };
    AUTO(sandbox_free) struct sandbox *box = make_sandbox();
    int fd;

    if (!(box->can & CAN_DESCRIPTORS))
        return ptr_steal(&box);
    for (size_t i = 0; i < ARRAY_LEN(ops); i++) {
        CHECK_EQ(ask(box, ops[i], ".", 0, &fd), -ENOTSUP);
        CHECK(strstr(err.message, runtime_name(subject)));
    }
    return NULL;
}

static int by_bytes(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Adds a sorted line for each entry: kind, permissions, path, and its target or content. */
static int read_pack(struct sandbox *box, const char *path, struct buf *out)
{
    char *lines[64];
    size_t n = 0;
    struct tar_plain tar;
    struct tar_entry entry;
    int fd;
    int r = ask(box, FILE_PACK, path, 0, &fd);

    if (r < 0)
        return r;
    tar_plain_init(&tar, fd, 256);
    while ((r = tar_plain_next(&tar, &entry, &err)) == 1 && entry.kind != TAR_FAILED) {
        AUTO(buf_finish) struct buf line = BUF_INIT(8192);
        char data[64];
        ssize_t len = 0;
        buf_addf(&line, "%c %o %s ", "fdlho"[entry.kind], (unsigned)entry.mode, entry.path);
        if (entry.target)
            buf_addf(&line, "%s", entry.target);
        while (entry.kind == TAR_FILE &&
                (len = tar_plain_read(&tar, data, sizeof(data), &err)) > 0)
            buf_add(&line, data, (size_t)len);
        CHECK_EQ(len, 0);
        CHECK(n < ARRAY_LEN(lines));
        lines[n] = strdup(line.data);
        CHECK(lines[n++]);
    }
    if (r == 1)
        r = err_set(&err, -(int)entry.mode, "%s", entry.target);
    fd_close(fd);
    qsort(lines, n, sizeof(lines[0]), by_bytes);
    for (size_t i = 0; i < n; i++) {
        buf_addf(out, "%s\n", lines[i]);
        free(lines[i]);
    }
    return r;
}

CONTRACT(a_tree_comes_as_a_tar)
{
    AUTO(sandbox_free) struct sandbox *box = make_far();
    AUTO(buf_finish) struct buf got = BUF_INIT(1U << 16);

    if (!box)
        return;
    AUTO(outcome_finish)
    struct outcome made = run_shell(box,
            "umask 022; mkdir -p d/sub; printf one >d/a; chmod 4751 d/a; ln -s /etc d/out;"
            "mkfifo d/fifo; printf two >d/sub/b; chmod 700 d/sub; ln -s d way");
    CHECK_EQ(made.status, 0);
    CHECK_EQ(read_pack(box, "d", &got), 0);
    CHECK_STR(got.data, "d 700 sub \nd 755 . \nf 644 sub/b two\nf 751 a one\nl 777 out /etc\n"
                        "o 0 fifo \n");
    buf_clear(&got);
    CHECK_EQ(read_pack(box, "d/sub/b", &got), 0);
    CHECK_STR(got.data, "f 644 b two\n");
    buf_clear(&got);
    CHECK_EQ(read_pack(box, "way/sub", &got), 0);
    CHECK_STR(got.data, "d 700 . \nf 644 b two\n");
    CHECK_EQ(read_pack(box, "none", &got), -ENOENT);
    CHECK_EQ(read_pack(box, "d/fifo", &got), -EINVAL);
}

CONTRACT(a_tree_that_cannot_be_read_says_why)
{
    AUTO(sandbox_free) struct sandbox *box = make_far();
    AUTO(buf_finish) struct buf got = BUF_INIT(1U << 20);

    if (!box)
        return;
    AUTO(outcome_finish)
    struct outcome made = run_shell(box,
            "p=.; for i in $(seq 210); do p=$p/d; done; mkdir -p deep; cd deep; mkdir -p $p");
    CHECK_EQ(made.status, 0);
    struct tar_plain tar;
    struct tar_entry entry = { .kind = TAR_OTHER };
    int fd;
    CHECK_EQ(ask(box, FILE_PACK, "deep", 0, &fd), 0);
    tar_plain_init(&tar, fd, 256);
    int r;
    while ((r = tar_plain_next(&tar, &entry, &err)) == 1 && entry.kind != TAR_FAILED)
        ;
    CHECK_EQ(r, 1);
    CHECK_EQ(entry.mode, ELOOP);
    CHECK(strstr(entry.target, "'d/d/"));
    fd_close(fd);
}

struct unpack {
    int fd;
    struct tar_writer *writer;
};

static struct unpack open_unpack(struct sandbox *box, const char *path, int flags)
{
    struct unpack unpack = { .fd = -1 };

    CHECK_EQ(ask(box, FILE_UNPACK, path, flags, &unpack.fd), 0);
    CHECK_EQ(tar_writer_open(unpack.fd, &unpack.writer, &err), 0);
    return unpack;
}

static void add(struct unpack *unpack, enum tar_kind kind, const char *path, mode_t mode,
        const char *text)
{
    const struct tar_entry entry = {
        .kind = kind,
        .path = path,
        .mode = mode,
        .target = text,
        .bytes = kind == TAR_FILE ? strlen(text) : 0,
        .mtime.tv_sec = 1000000000,
    };

    CHECK_EQ(tar_writer_add(unpack->writer, &entry, &err), 0);
    if (kind == TAR_FILE)
        CHECK_EQ(tar_writer_data(unpack->writer, text, strlen(text), &err), 0);
}

static int end_unpack(struct unpack *unpack)
{
    int r = tar_writer_finish(unpack->writer, &err);

    if (r == 0)
        r = file_end(unpack->fd, &err);
    tar_writer_free(unpack->writer);
    fd_close(unpack->fd);
    return r;
}

CONTRACT(a_tar_becomes_a_tree)
{
    AUTO(sandbox_free) struct sandbox *box = make_far();

    if (!box)
        return;
    AUTO(outcome_finish)
    struct outcome made = run_shell(box, "mkdir -p d/old d/kept; chmod 700 d/*; ln -s x d/a");
    for (int keeps = 0; keeps < 2; keeps++) {
        struct unpack unpack = open_unpack(box, "d", keeps ? FILE_KEEP_DIRS : 0);
        add(&unpack, TAR_DIRECTORY, ".", 0700, NULL);
        add(&unpack, TAR_FILE, "a", 0751, "one");
        add(&unpack, TAR_DIRECTORY, keeps ? "kept" : "old", 0555, NULL);
        add(&unpack, TAR_DIRECTORY, "new", 0555, NULL);
        add(&unpack, TAR_FILE, "new/deep/b", 0644, "two");
        add(&unpack, TAR_SYMLINK, "new/l", 0777, "/etc");
        add(&unpack, TAR_HARDLINK, "h", 0644, "a");
        add(&unpack, TAR_OTHER, "fifo", 0, NULL);
        CHECK_EQ(end_unpack(&unpack), 0);
        AUTO(outcome_finish)
        struct outcome seen = run_shell(box,
                "cd d; cat a new/deep/b; readlink new/l; stat -c '%n %a %h' a new old kept;"
                "stat -c %Y a new; test -e fifo; echo $?; chmod 755 new");
        CHECK_STR(seen.out.data, "onetwo/etc\na 751 2\nnew 555 3\nold 555 2\nkept 700 2\n"
                                 "1000000000\n1000000000\n1\n");
        AUTO(outcome_finish)
        struct outcome clean = run_shell(box, "chmod -R u+w d/new && rm -r d/new d/a d/h");
        CHECK_EQ(clean.status, 0);
    }
}

CONTRACT(a_tar_does_not_leave_its_directory)
{
    AUTO(sandbox_free) struct sandbox *box = make_far();

    if (!box)
        return;
    AUTO(outcome_finish)
    struct outcome made =
            run_shell(box, "mkdir d e; ln -s ../e d/l; echo old >v; ln -s ../v d/v; : >f");
    struct unpack unpack = open_unpack(box, "d", 0);
    add(&unpack, TAR_FILE, "l/x", 0644, "new");
    CHECK(end_unpack(&unpack) < 0);
    CHECK(strstr(err.message, "'l/x'")); /* the far side's words */
    unpack = open_unpack(box, "d", 0);
    add(&unpack, TAR_FILE, "v", 0644, "new");
    CHECK_EQ(end_unpack(&unpack), 0);
    unpack = open_unpack(box, "d", 0);
    add(&unpack, TAR_FILE, "../v", 0644, "new");
    CHECK_EQ(end_unpack(&unpack), -EINVAL);
    unpack = open_unpack(box, "d", 0);
    add(&unpack, TAR_SYMLINK, "n", 0777, "../e");
    add(&unpack, TAR_FILE, "n/x", 0644, "new");
    CHECK(end_unpack(&unpack) < 0);
    int fd;
    CHECK_EQ(ask(box, FILE_UNPACK, "none", 0, &fd), -ENOENT);
    CHECK_EQ(ask(box, FILE_UNPACK, "f", 0, &fd), -ENOTDIR);
    AUTO(outcome_finish) struct outcome seen = run_shell(box, "cat v; ls e; cat d/v");
    CHECK_STR(seen.out.data, "old\nnew");
}

CONTRACT(a_tar_that_is_cut_off_is_not_confirmed)
{
    AUTO(sandbox_free) struct sandbox *box = make_far();

    if (!box)
        return;
    AUTO(outcome_finish) struct outcome made = run_shell(box, "mkdir d");
    int fd;
    CHECK_EQ(ask(box, FILE_UNPACK, "d", 0, &fd), 0);
    CHECK_EQ(file_end(fd, &err), -EBADMSG);
    fd_close(fd);
    CHECK_EQ(ask(box, FILE_UNPACK, "d", 0, &fd), 0);
    CHECK_EQ(fd_write_all(fd, "some text that is no tar", 24), 0);
    CHECK_EQ(file_end(fd, &err), -EBADMSG);
    fd_close(fd);
}

CONTRACT(a_tree_is_removed_and_no_link_followed)
{
    AUTO(sandbox_free) struct sandbox *box = make_far();

    if (!box)
        return;
    AUTO(outcome_finish)
    struct outcome made = run_shell(box, "mkdir -p d/e/f keep; : >keep/it; ln -s ../keep d/l");
    int fd;
    CHECK_EQ(ask(box, FILE_REMOVE_TREE, "d", 0, &fd), 0);
    CHECK_EQ(file_end(fd, &err), 0);
    fd_close(fd);
    AUTO(outcome_finish) struct outcome seen = run_shell(box, "ls; ls keep");
    CHECK_STR(seen.out.data, "keep\nit\n");
}
