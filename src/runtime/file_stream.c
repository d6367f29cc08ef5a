/* file_stream.c - see file_stream.h; the asking side is below, in the order of files.h. */
#include "runtime/file_stream.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/str.h"
#include "base/tree.h"
#include "files/pack.h"
#include "files/tar_plain.h"
#include "runtime/file_act.h"
#include "runtime/file_unpack.h"
#include "runtime/files.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define CHUNK 16384

/* What file_stream_list() sends for each entry, before its name. */
struct entry_head {
    struct file_stat stat;
    uint32_t name_len;
};

int file_stream_open(int *serving, int *theirs)
{
    int ends[2];

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
        return -errno;
    int r = fd_write_all(ends[1], "", 1); /* the receipt */
    if (r < 0) {
        fd_close(ends[0]);
        fd_close(ends[1]);
        return r;
    }
    *serving = ends[0];
    *theirs = ends[1];
    return 0;
}

static int take_receipt(int stream)
{
    char byte;

    ssize_t n = fd_read_all(stream, &byte, 1);
    return n < 0 ? (int)n : n == 1 ? 0 : -EPIPE;
}

int file_stream_send(int file, int stream)
{
    char chunk[CHUNK];
    off_t at = 0;

    for (;;) {
        ssize_t n = pread(file, chunk, sizeof(chunk), at);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n < 0 ? -errno : take_receipt(stream);
        int r = fd_send_all(stream, chunk, (size_t)n);
        if (r < 0)
            return r;
        at += n;
    }
}

/* The last word of a stream to the sandbox: a number, and text for a message if there is any.
 */
static int send_result(int stream, int result, const char *text)
{
    const int32_t number = result;

    int r = fd_send_all(stream, &number, sizeof(number));
    if (r == 0)
        r = fd_send_all(stream, text, strlen(text));
    return result < 0 ? result : r;
}

int file_stream_take(int stream, int file)
{
    char chunk[CHUNK];
    ssize_t n;

    int r = take_receipt(stream);
    while ((n = fd_read_all(stream, chunk, sizeof(chunk))) > 0)
        if (r == 0)
            r = fd_write_all(file, chunk, (size_t)n);
    return n < 0 ? (int)n : send_result(stream, r, "");
}

/* One that is removed meanwhile is left out. */
static int send_entry(int dir, const char *name, int stream)
{
    struct entry_head head;
    struct stat st;

    if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
        return 0;
    if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT ? 0 : -errno;
    memset(&head, 0, sizeof(head)); /* nothing of our memory in its gaps */
    file_stat_fill(&st, &head.stat);
    head.name_len = (uint32_t)strlen(name);
    int r = fd_send_all(stream, &head, sizeof(head));
    return r < 0 ? r : fd_send_all(stream, name, head.name_len);
}

int file_stream_list(int dir, int stream)
{
    char chunk[CHUNK] __attribute__((aligned(8)));

    for (;;) {
        long n = syscall(SYS_getdents64, dir, chunk, sizeof(chunk));
        if (n <= 0)
            return n < 0 ? -errno : take_receipt(stream);
        for (long at = 0; at < n;) {
            const struct dirent64 *entry =
                    (const struct dirent64 *)__builtin_assume_aligned(chunk + at, 8);
            int r = send_entry(dir, entry->d_name, stream);
            if (r < 0)
                return r;
            at += entry->d_reclen;
        }
    }
}

static int pack(int fd, const char *name, struct tar_writer *writer, struct carrel_error *err)
{
    AUTO(free) struct pack *pack = calloc(1, sizeof(*pack));
    AUTO(free) struct walk *walk = calloc(1, sizeof(*walk));
    struct files_count count = { 0 };

    if (!pack || !walk)
        return err_set_errno(err, -ENOMEM, "pack");
    pack_init(pack, writer, PACK_OTHERS);
    *walk = walk_begin(&pack->base, &count, NULL);
    return pack_opened(pack, fd, name, walk, err);
}

int file_stream_pack(int fd, const char *name, int stream)
{
    AUTO(tar_writer_free) struct tar_writer *writer = NULL;
    struct carrel_error err = { 0 };

    int r = tar_writer_open(stream, &writer, &err);
    if (r < 0)
        return r;
    r = pack(fd, name, writer, &err);
    r = r < 0 ? tar_writer_fail(writer, r, err.message, &err) : tar_writer_finish(writer, &err);
    return r < 0 ? r : take_receipt(stream);
}

struct unpacking {
    struct file_unpack base;
    struct tar_plain tar;
};

static struct unpacking *unpacking_of(struct file_unpack *base)
{
    return container_of(base, struct unpacking, base);
}

static int act(struct file_unpack *base, const struct file_request *request,
        struct file_answer *answer, struct carrel_error *err)
{
    const struct file_where where[2] = { { base->top, request->path },
        { base->top, request->other } };

    return file_act(request, where, file_resolve_beneath(), answer, err);
}

static int next_entry(struct file_unpack *base, struct tar_entry *out, struct carrel_error *err)
{
    return tar_plain_next(&unpacking_of(base)->tar, out, err);
}

static ssize_t read_entry_data(
        struct file_unpack *base, void *data, size_t size, struct carrel_error *err)
{
    return tar_plain_read(&unpacking_of(base)->tar, data, size, err);
}

int file_stream_unpack(int stream, int dir, int flags)
{
    static const struct file_unpack_ops ops = {
        .ask = act, .next = next_entry, .read = read_entry_data
    };
    struct files_count count = { 0 };
    struct unpacking unpacking = {
        .base = { .ops = &ops,
                .top = dir,
                .keeps_dirs = flags & FILE_KEEP_DIRS,
                .count = &count },
    };
    struct carrel_error err = { 0 };
    char chunk[CHUNK];
    ssize_t n;

    tar_plain_init(&unpacking.tar, stream, FILES_MAX_DEPTH + 1);
    int r = take_receipt(stream);
    if (r == 0)
        r = file_unpack(&unpacking.base, &err);
    while ((n = fd_read_all(stream, chunk, sizeof(chunk))) > 0)
        ;
    return n < 0 ? (int)n : send_result(stream, r, r < 0 ? err.message : "");
}

int file_stream_remove(int dir, const char *name, int stream)
{
    struct carrel_error err = { 0 };
    char byte;

    int r = take_receipt(stream);
    if (r == 0)
        r = tree_remove(dir, name, &err);
    if (fd_read_all(stream, &byte, 1) != 0)
        r = r < 0 ? r : -EPROTO;
    return send_result(stream, r, r < 0 ? err.message : "");
}

int file_stream_text(const char *text, int stream)
{
    int r = fd_send_all(stream, text, strlen(text));

    return r < 0 ? r : take_receipt(stream);
}

/* --- the asking side --- */

static bool is_stream(int fd)
{
    int type;
    socklen_t len = sizeof(type);

    return getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &len) == 0;
}

int file_end(int fd, struct carrel_error *err)
{
    char text[sizeof(err->message)];
    char shown[sizeof(text)];
    int32_t result = 0;

    if (!is_stream(fd))
        return 0;
    if (shutdown(fd, SHUT_WR) < 0)
        return err_set_errno(err, -errno, "end the file");
    ssize_t n = fd_read_all(fd, &result, sizeof(result));
    if (n != (ssize_t)sizeof(result))
        return err_set_errno(err, n < 0 ? (int)n : -EPIPE, "store the file");
    if (result >= 0)
        return 0;
    n = fd_read_all(fd, text, sizeof(text));
    if (n <= 0 || result < -4095)
        return err_set_errno(err, result < -4095 ? -EPROTO : result, "store the file");
    return err_set(err, result, "%s", str_escape(text, (size_t)n, shown, sizeof(shown)));
}

/* The far side is not trusted: a name is one component, or nothing of it is used. */
static int read_entry(int fd, struct file_entry *out)
{
    struct entry_head head;
    struct file_entry got = { 0 };

    ssize_t n = fd_read_all(fd, &head, sizeof(head));
    if (n <= 0)
        return (int)n;
    if (n != (ssize_t)sizeof(head) || head.name_len >= sizeof(got.name))
        return -EPROTO;
    n = fd_read_all(fd, got.name, head.name_len);
    if (n < 0)
        return (int)n;
    if (n != (ssize_t)head.name_len || strlen(got.name) != head.name_len ||
            !path_is_name(got.name))
        return -EPROTO;
    got.stat = head.stat;
    *out = got;
    return 1;
}

int file_list_next(int fd, struct file_entry *out, struct carrel_error *err)
{
    int r = read_entry(fd, out);

    return r < 0 ? err_set_errno(err, r, "list the directory") : r;
}

int file_read_link(int fd, char *text, size_t size, struct carrel_error *err)
{
    ssize_t len = is_stream(fd) ? fd_read_all(fd, text, size) : readlinkat(fd, "", text, size);

    if (len < 0)
        return err_set_errno(err, is_stream(fd) ? (int)len : -errno, "read link");
    if ((size_t)len >= size)
        return err_set_errno(err, -ENAMETOOLONG, "read link");
    text[len] = '\0';
    return (int)len;
}
