/* files_far.c - reads and writes the tars of a sandbox without descriptors. */
#include "core/files/files_far.h"
#include "archive/tar_apart.h"
#include "base/auto.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/str.h"
#include "core/files/files_sink.h"
#include "files/pack.h"
#include "files/tar_plain.h"
#include "runtime/file_unpack.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define CHUNK ((size_t)64 << 10)

/* A tar on its way out of the sandbox. */
struct incoming {
    int fd;
    uint64_t max_entries;
    struct data_budget data;
    struct files_count *count;
    struct tar_plain tar;
};

static void incoming_free(struct incoming *in)
{
    if (!in)
        return;
    fd_close(in->fd);
    free(in);
}
DEFINE_AUTO(struct incoming *, incoming_free)

static int open_stream(struct file_access *access, enum file_op op, const char *path, int flags,
        struct carrel_error *err)
{
    struct file_request request = FILE_REQUEST_INIT;
    struct file_answer answer = FILE_ANSWER_INIT;

    request.op = op;
    request.path = path;
    request.flags = flags;
    int r = file_access_ask(access, &request, &answer, err);
    return r < 0 ? r : answer.fd;
}

static int open_incoming(struct file_access *access, const char *path,
        const struct files_limits *limits, struct files_count *count, struct incoming **out,
        struct carrel_error *err)
{
    AUTO(incoming_free) struct incoming *in = calloc(1, sizeof(*in));

    if (!in)
        return err_set_errno(err, -ENOMEM, "read a tree");
    in->fd = -1;
    in->count = count;
    in->max_entries = limits && limits->entries ? limits->entries : FILES_MAX_ENTRIES;
    in->data.max = limits && limits->bytes ? limits->bytes : FILES_MAX_BYTES;
    int fd = open_stream(access, FILE_PACK, path, 0, err);
    if (fd < 0)
        return fd;
    in->fd = fd;
    tar_plain_init(&in->tar, fd, FILES_MAX_DEPTH + 1);
    *out = ptr_steal(&in);
    return 0;
}

static int at_entry(const char *top, const char *path, int code, struct carrel_error *err)
{
    char joined[TAR_PATH_MAX + NAME_MAX + 2];
    char shown[300];

    if (strcmp(path, ".") == 0)
        path = "";
    (void)snprintf(joined, sizeof(joined), "%s%s%s", top, top[0] && path[0] ? "/" : "", path);
    return err_wrap(
            err, code, "'%s'", str_escape(joined, strlen(joined), shown, sizeof(shown)));
}

static bool is_top(const struct tar_entry *entry)
{
    return strcmp(entry->path, ".") == 0;
}

static unsigned depth_of(const char *path)
{
    unsigned depth = 0;

    for (; (path = strchr(path, '/')); path++)
        depth++;
    return depth;
}

static int count_entry(
        struct incoming *in, const struct tar_entry *entry, struct carrel_error *err)
{
    const struct files_count *count = in->count;

    if (is_top(entry))
        return 0;
    if (count->files + count->directories + count->links + count->skipped +
                    count->stray_links >=
            in->max_entries)
        return err_set(
                err, -EFBIG, "these are more than %ju entries", (uintmax_t)in->max_entries);
    return entry->kind == TAR_FILE ? data_spend(&in->data, entry->bytes, err) : 0;
}

/* As tar_plain_next(), within the limits. Why a tree is incomplete is said by the far side. */
static int next_entry(struct incoming *in, struct tar_entry *out, struct carrel_error *err)
{
    char shown[sizeof(err->message)];

    int r = tar_plain_next(&in->tar, out, err);
    if (r <= 0)
        return r;
    if (out->kind == TAR_FAILED)
        return err_set(err, out->mode > 0 ? -(int)out->mode : -EPROTO, "%s",
                str_escape(out->target, strlen(out->target), shown, sizeof(shown)));
    if (out->kind == TAR_HARDLINK || (is_top(out) && out->kind != TAR_DIRECTORY))
        return err_set(err, -EPROTO, "the sandbox sent what is in no tree");
    r = count_entry(in, out, err);
    return r < 0 ? at_entry("", out->path, r, err) : 1;
}

/* The data of the current file, in pieces; `put` gets the offset of each. */
static int pass_data(struct incoming *in,
        int (*put)(void *to, const char *data, size_t len, struct carrel_error *err), void *to,
        struct carrel_error *err)
{
    char chunk[CHUNK];
    ssize_t n;
    int r = 0;

    while (r == 0 && (n = tar_plain_read(&in->tar, chunk, sizeof(chunk), err)) != 0)
        r = n < 0 ? (int)n : put(to, chunk, (size_t)n, err);
    return r;
}

static int put_out(void *to, const char *data, size_t len, struct carrel_error *err)
{
    int r = fd_send_all(*(const int *)to, data, len);

    return r < 0 ? err_set_errno(err, r, "write") : 0;
}

int far_read_whole(struct file_access *access, const char *path, int out,
        const struct files_limits *limits, struct carrel_error *err)
{
    AUTO(incoming_free) struct incoming *in = NULL;
    struct files_count count = { 0 };
    struct tar_entry entry;

    int r = open_incoming(access, path, limits, &count, &in, err);
    if (r < 0)
        return r;
    r = next_entry(in, &entry, err);
    if (r == 0 || (r == 1 && entry.kind != TAR_FILE))
        r = err_set(err, -EISDIR, "this is a directory");
    if (r == 1)
        r = pass_data(in, put_out, &out, err);
    if (r == 0)
        r = next_entry(in, &entry, err); /* that it changed meanwhile is said after it */
    return r < 0    ? at_entry("", path, r, err)
           : r == 1 ? err_set(err, -EPROTO, "the sandbox sent more than a file")
                    : 0;
}

static int put_tar(void *to, const char *data, size_t len, struct carrel_error *err)
{
    return tar_writer_data(to, data, len, err);
}

static int export_entry(struct incoming *in, struct tar_writer *writer,
        const struct tar_entry *entry, struct carrel_error *err)
{
    struct files_count *count = in->count;
    const bool is_stray = entry->kind == TAR_SYMLINK &&
                          !walk_is_link_inside(entry->target, depth_of(entry->path));

    count->skipped += entry->kind == TAR_OTHER;
    count->stray_links += is_stray;
    if (entry->kind == TAR_OTHER || is_stray)
        return 0;
    int r = tar_writer_add(writer, entry, err);
    if (r == 0 && entry->kind == TAR_FILE)
        r = pass_data(in, put_tar, writer, err);
    if (r < 0 || is_top(entry))
        return r;
    count->files += entry->kind == TAR_FILE;
    count->directories += entry->kind == TAR_DIRECTORY;
    count->links += entry->kind == TAR_SYMLINK;
    count->bytes += entry->bytes;
    return 0;
}

int far_export(struct file_access *access, const char *path, int out,
        const struct files_limits *limits, struct files_count *count, struct carrel_error *err)
{
    AUTO(incoming_free) struct incoming *in = NULL;
    AUTO(tar_writer_free) struct tar_writer *writer = NULL;
    struct tar_entry entry;

    int r = open_incoming(access, path, limits, count, &in, err);
    if (r == 0)
        r = tar_writer_open(out, &writer, err);
    if (r < 0)
        return r;
    while ((r = next_entry(in, &entry, err)) == 1) {
        r = export_entry(in, writer, &entry, err);
        if (r < 0)
            return r;
    }
    return r < 0 ? r : tar_writer_finish(writer, err);
}

/* --- out, to a directory --- */

struct copy_out {
    struct incoming *in;
    struct tree_sink *sink;
    const char *name;
    bool keeps_links_in;
    unsigned depth; /* directories that were entered, the top included */
    struct stat stats[FILES_MAX_DEPTH + 2];
    char at[TAR_PATH_MAX + 1]; /* the current directory, below the top */
};

static struct stat stat_of(const struct tar_entry *entry)
{
    return (struct stat){
        .st_mode = (entry->kind == TAR_DIRECTORY ? S_IFDIR : S_IFREG) | (entry->mode & 0777),
        .st_atim = entry->mtime,
        .st_mtim = entry->mtime,
    };
}

static int leave(struct copy_out *out, struct carrel_error *err)
{
    char *slash = strrchr(out->at, '/');

    *(slash ? slash : out->at) = '\0';
    out->depth--;
    return out->sink->base.ops->leave(&out->sink->base, &out->stats[out->depth], err);
}

static int enter(struct copy_out *out, const char *name, const struct tar_entry *entry,
        struct carrel_error *err)
{
    const struct stat st = stat_of(entry);

    if (out->depth >= ARRAY_LEN(out->stats))
        return err_set(err, -ELOOP, "it is deeper than %d directories", FILES_MAX_DEPTH);
    int r = out->sink->base.ops->enter(&out->sink->base, name, &st, err);
    if (r < 0)
        return r;
    out->stats[out->depth++] = st;
    if (!is_top(entry))
        (void)snprintf(out->at, sizeof(out->at), "%s", entry->path);
    out->in->count->directories++;
    return 0;
}

/* Leaves directories until the current one is that of the entry, which is entered already. */
static int go_to_parent(struct copy_out *out, const char *path, struct carrel_error *err)
{
    const char *slash = strrchr(path, '/');
    const size_t len = slash ? (size_t)(slash - path) : 0;

    while (out->at[0] &&
            (strlen(out->at) > len || strncmp(out->at, path, strlen(out->at)) != 0 ||
                    (path[strlen(out->at)] != '/'))) {
        int r = leave(out, err);
        if (r < 0)
            return r;
    }
    return strlen(out->at) == len
                   ? 0
                   : err_set(err, -EPROTO, "the sandbox sent it before its directory");
}

static int take_link(struct copy_out *out, const char *name, const struct tar_entry *entry,
        struct carrel_error *err)
{
    const struct stat st = stat_of(entry);

    if (out->keeps_links_in && !walk_is_link_inside(entry->target, depth_of(entry->path))) {
        out->in->count->stray_links++;
        return 0;
    }
    int r = out->sink->base.ops->link(&out->sink->base, name, entry->target, &st, err);
    out->in->count->links += r == 0;
    return r;
}

static int take_file(struct copy_out *out, const char *name, const struct tar_entry *entry,
        struct carrel_error *err)
{
    const struct stat st = stat_of(entry);

    int r = sink_tar(out->sink, name, &out->in->tar, &st, err);
    if (r < 0)
        return r;
    out->in->count->files++;
    out->in->count->bytes += entry->bytes;
    return 0;
}

static int take(struct copy_out *out, const struct tar_entry *entry, struct carrel_error *err)
{
    const char *slash = strrchr(entry->path, '/');
    const char *name = slash ? slash + 1 : entry->path;

    int r = go_to_parent(out, entry->path, err);
    if (r < 0)
        return r;
    switch (entry->kind) {
    case TAR_DIRECTORY:
        return enter(out, name, entry, err);
    case TAR_FILE:
        return take_file(out, name, entry, err);
    case TAR_SYMLINK:
        return take_link(out, name, entry, err);
    case TAR_HARDLINK:
    case TAR_FAILED:
    case TAR_OTHER:
        break;
    }
    out->in->count->skipped++;
    return 0;
}

/* The first entry: the directory itself, or the only file. */
static int take_first(struct copy_out *out, bool is_directory, struct carrel_error *err)
{
    struct tar_entry entry;

    int r = next_entry(out->in, &entry, err);
    if (r < 0)
        return r;
    if (r == 0 || is_top(&entry) != is_directory || (!is_directory && entry.kind != TAR_FILE))
        return err_set(err, -EBUSY, "it was something else at each look");
    if (!is_directory)
        return take_file(out, out->name, &entry, err);
    if (!out->name[0])
        return 0;
    return enter(out, out->name, &entry, err);
}

static int take_rest(struct copy_out *out, struct carrel_error *err)
{
    struct tar_entry entry;
    int r;

    while ((r = next_entry(out->in, &entry, err)) == 1) {
        r = is_top(&entry) ? err_set(err, -EPROTO, "the sandbox sent the top twice")
                           : take(out, &entry, err);
        if (r < 0)
            return at_entry(out->name, entry.path, r, err);
    }
    while (r == 0 && out->depth > 0)
        r = leave(out, err);
    return r;
}

int far_copy_out(const struct far_copy *copy, struct tree_sink *sink, const char *name,
        struct carrel_error *err)
{
    AUTO(incoming_free) struct incoming *in = NULL;
    AUTO(free) struct copy_out *out = calloc(1, sizeof(*out));

    if (!out)
        return err_set_errno(err, -ENOMEM, "copy");
    int r = open_incoming(copy->access, copy->path, copy->limits, copy->count, &in, err);
    if (r < 0)
        return r;
    out->in = in;
    out->sink = sink;
    out->name = name;
    out->keeps_links_in = copy->keeps_links_in;
    r = take_first(out, copy->is_directory, err);
    if (r < 0)
        r = at_entry(name, ".", r, err);
    if (r == 0)
        r = take_rest(out, err);
    while (r < 0 && out->depth > 0)
        (void)leave(out, NULL); /* the error above is what matters */
    return r;
}

/* --- in --- */

/* A tar on its way into the sandbox, and the result of the far side. */
struct outgoing {
    int fd;
    struct tar_writer *writer;
};

static int open_outgoing(struct file_access *access, const char *path, int flags,
        struct outgoing *out, struct carrel_error *err)
{
    AUTO(fd_close) int fd = open_stream(access, FILE_UNPACK, path, flags, err);
    if (fd < 0)
        return fd;
    int r = tar_writer_open(fd, &out->writer, err);
    if (r < 0)
        return r;
    out->fd = fd_steal(&fd);
    return 0;
}

/*
 * `r` is what came of the writing. After a failure the far side is waited for as well: it
 * removes what is incomplete.
 */
static int close_outgoing(struct outgoing *out, int r, struct carrel_error *err)
{
    if (r == 0)
        r = tar_writer_finish(out->writer, err);
    int stored = file_end(out->fd, r < 0 ? NULL : err);
    tar_writer_free(out->writer);
    fd_close(out->fd);
    return r < 0 ? r : stored;
}

static int import_data(
        struct tar_apart *tar, struct tar_writer *writer, struct carrel_error *err)
{
    char chunk[CHUNK];
    ssize_t n;
    int r = 0;

    while (r == 0 && (n = tar_apart_read(tar, chunk, sizeof(chunk), err)) != 0)
        r = n < 0 ? (int)n : tar_writer_data(writer, chunk, (size_t)n, err);
    return r;
}

static int import_entry(struct tar_apart *tar, const struct tar_entry *entry,
        struct tar_writer *writer, struct files_count *count, struct carrel_error *err)
{
    count->skipped += entry->kind == TAR_OTHER;
    if (entry->kind == TAR_OTHER || is_top(entry))
        return 0;
    int r = tar_writer_add(writer, entry, err);
    if (r == 0 && entry->kind == TAR_FILE)
        r = import_data(tar, writer, err);
    if (r < 0)
        return r;
    count->files += entry->kind == TAR_FILE;
    count->directories += entry->kind == TAR_DIRECTORY;
    count->links += entry->kind == TAR_SYMLINK || entry->kind == TAR_HARDLINK;
    count->bytes += entry->kind == TAR_FILE ? entry->bytes : 0;
    return 0;
}

int far_import(struct file_access *access, const char *path, struct tar_apart *tar,
        struct files_count *count, struct carrel_error *err)
{
    struct outgoing out = { .fd = -1 };
    struct tar_entry entry;

    int r = open_outgoing(access, path, 0, &out, err);
    if (r < 0)
        return r;
    while ((r = tar_apart_next(tar, &entry, err)) == 1) {
        r = import_entry(tar, &entry, out.writer, count, err);
        if (r < 0)
            break;
    }
    return close_outgoing(&out, r, err);
}

int far_copy_in(const struct far_copy *copy, int fd, const char *name, struct carrel_error *err)
{
    AUTO(free) struct pack *pack = calloc(1, sizeof(*pack));
    AUTO(free) struct walk *walk = calloc(1, sizeof(*walk));
    struct outgoing out = { .fd = -1 };

    if (!pack || !walk)
        return err_set_errno(err, -ENOMEM, "copy");
    int r = open_outgoing(copy->access, copy->path, FILE_KEEP_DIRS, &out, err);
    if (r < 0)
        return r;
    pack_init(pack, out.writer, PACK_OTHERS_NOT);
    *walk = walk_begin(&pack->base, copy->count, copy->limits);
    r = name[0] ? walk_one(walk, name, fd, err) : walk_contents(walk, fd, err);
    return close_outgoing(&out, r, err);
}

static int ask(struct file_access *access, enum file_op op, const char *path, const char *other,
        mode_t mode, struct carrel_error *err)
{
    struct file_request request = FILE_REQUEST_INIT;
    struct file_answer answer = FILE_ANSWER_INIT;

    request.op = op;
    request.path = path;
    request.other = other;
    request.mode = mode;
    return file_access_ask(access, &request, &answer, err);
}

static int store_stream(struct file_access *access, const char *path, int in,
        struct data_budget *budget, struct carrel_error *err)
{
    struct file_request request = FILE_REQUEST_INIT;
    struct file_answer answer = FILE_ANSWER_INIT;

    request.op = FILE_OPEN;
    request.path = path;
    request.flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW;
    request.mode = 0600;
    int r = file_access_ask(access, &request, &answer, err);
    if (r < 0)
        return r;
    r = data_pump(in, answer.fd, budget, err);
    int stored = file_end(answer.fd, r < 0 ? NULL : err);
    fd_close(answer.fd);
    return r < 0 ? r : stored;
}

int far_copy_stream(
        const struct far_copy *copy, int in, const char *name, struct carrel_error *err)
{
    struct data_budget budget = {
        .max = copy->limits && copy->limits->bytes ? copy->limits->bytes : FILES_MAX_BYTES,
    };
    char temporary[32];
    char from[PATH_MAX];
    char to[PATH_MAX];

    file_temporary_name(temporary);
    int n = snprintf(from, sizeof(from), "%s/%s", copy->path, temporary);
    int m = snprintf(to, sizeof(to), "%s/%s", copy->path, name);
    if ((size_t)n >= sizeof(from) || (size_t)m >= sizeof(to))
        return err_set_errno(err, -ENAMETOOLONG, "copy");
    int r = store_stream(copy->access, from, in, &budget, err);
    if (r == 0)
        r = ask(copy->access, FILE_SET_MODE, from, NULL, 0644, err);
    if (r == 0)
        r = ask(copy->access, FILE_RENAME, from, to, 0, err);
    if (r < 0) {
        (void)ask(copy->access, FILE_REMOVE, from, NULL, 0, NULL); /* it is incomplete */
        return r;
    }
    copy->count->files++;
    copy->count->bytes += budget.used;
    return 0;
}
