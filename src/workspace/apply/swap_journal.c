/*
 * swap_journal.c - "carrel-apply 1 <commit or ->" and then, for every file, a line of numbers
 * and its path, each terminated by a NUL because a path may contain any other byte.
 */
#include "workspace/apply/swap_journal.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "git/beneath.h"
#include "git/gitdir.h"
#include "git/name.h"
#include "workspace/apply/swap_copy.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <unistd.h>

#define JOURNAL_MAX_BYTES ((size_t)1 << 30)
#define JOURNAL_HEAD "carrel-apply 1 "

void swap_journal_finish(struct swap_journal *journal)
{
    for (size_t i = 0; i < journal->n; i++)
        free(journal->items[i].path);
    free(journal->items);
    *journal = (struct swap_journal){ 0 };
}

/*
 * Whether `len` bytes of `path` are the path of a removal, or (is_below) of a directory in
 * which something is removed.
 */
static bool is_removed(
        const struct swap_item *items, size_t n, const char *path, size_t len, bool is_below)
{
    size_t low = 0;
    size_t high = n;

    while (low < high) { /* the first item that is not before path[0..len) and its '/' */
        size_t middle = low + (high - low) / 2;
        const char *other = items[middle].path;
        int order = strncmp(other, path, len);
        if (order == 0 && is_below)
            order = (unsigned char)other[len] - '/';
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    for (; low < n && strncmp(items[low].path, path, len) == 0; low++) {
        if (items[low].path[len] != (is_below ? '/' : '\0'))
            return false;
        if (items[low].kind == SWAP_REMOVE)
            return true;
        if (!is_below)
            return false;
    }
    return false;
}

static bool must_wait(const struct swap_item *items, size_t n, const struct swap_item *item)
{
    for (const char *slash = item->path; (slash = strchr(slash, '/')); slash++)
        if (is_removed(items, n, item->path, (size_t)(slash - item->path), false))
            return true;
    return is_removed(items, n, item->path, strlen(item->path), true);
}

size_t *swap_journal_order(const struct swap_item *items, size_t n)
{
    size_t *order = calloc(n + 1, sizeof(*order));
    size_t used = 0;

    for (int turn = 0; order && turn < 3; turn++)
        for (size_t i = 0; i < n; i++) {
            int when = items[i].kind == SWAP_REMOVE     ? 1
                       : must_wait(items, n, &items[i]) ? 2
                                                        : 0;
            if (when == turn)
                order[used++] = i;
        }
    return order;
}

static int add_record(struct buf *text, int new, const struct swap_item *item)
{
    struct stat st = { 0 };

    if (item->kind == SWAP_PUT) {
        int r = beneath_stat(new, item->path, &st);
        if (r < 0)
            return r;
    }
    buf_addf(text, "%c %d %" PRIu64 " %" PRIu64 " %" PRId64, item->kind == SWAP_PUT ? 'P' : 'R',
            item->is_there, (uint64_t)st.st_ino, (uint64_t)st.st_size,
            (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec);
    buf_add(text, "", 1);
    buf_add(text, item->path, strlen(item->path) + 1);
    return 0;
}

/* Under another name first: a journal is complete. */
static int write_whole(int dir, const struct buf *text)
{
    AUTO(fd_close)
    int fd = openat(dir, "journal.new",
            O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
    if (fd < 0)
        return -errno;
    int r = fd_write_all(fd, text->data, text->len);
    if (r == 0 && (fsync(fd) < 0 || renameat(dir, "journal.new", dir, "journal") < 0 ||
                          fsync(dir) < 0))
        r = -errno;
    return r;
}

int swap_journal_write(int dir, int stage, const struct swap_item *items, const size_t *order,
        size_t n, const char *commit, struct carrel_error *err)
{
    AUTO(buf_finish) struct buf text = BUF_INIT(JOURNAL_MAX_BYTES);
    AUTO(fd_close) int new = swap_part(stage, "new");
    if (new < 0)
        return err_set_errno(err, new, "open the new files");

    buf_addf(&text, JOURNAL_HEAD "%s", commit[0] ? commit : "-");
    buf_add(&text, "", 1);
    for (size_t i = 0; i < n; i++) {
        int r = add_record(&text, new, &items[order[i]]);
        if (r < 0)
            return err_set_errno(err, r, "find the new '%s'", items[order[i]].path);
    }
    int r = text.is_short ? -ENOMEM : write_whole(dir, &text);
    return r < 0 ? err_set_errno(err, r, "write the journal of an apply") : 0;
}

static int load(int dir, struct buf *text, struct carrel_error *err)
{
    char chunk[16384];
    ssize_t n;
    AUTO(fd_close) int fd = gitdir_open_file(dir, "journal");
    if (fd < 0)
        return err_set_errno(err, fd, "open the journal of an apply");

    while ((n = fd_read_all(fd, chunk, sizeof(chunk))) > 0)
        buf_add(text, chunk, (size_t)n);
    if (n < 0 || text->is_short)
        return err_set_errno(err, n < 0 ? (int)n : -EFBIG, "read the journal of an apply");
    if (text->len == 0 || text->data[text->len - 1] ||
            strncmp(text->data, JOURNAL_HEAD, strlen(JOURNAL_HEAD)) != 0)
        return err_set(err, -EBADMSG, "the journal of an apply is not one of ours");
    return 0;
}

int swap_journal_commit(int dir, char commit[static OID_MAX], struct carrel_error *err)
{
    AUTO(buf_finish) struct buf text = BUF_INIT(JOURNAL_MAX_BYTES);
    int r = load(dir, &text, err);
    if (r < 0)
        return r;

    const char *word = text.data + strlen(JOURNAL_HEAD);
    (void)snprintf(commit, OID_MAX, "%s", name_is_oid(word) ? word : "");
    return 0;
}

static bool parse(const char *line, struct swap_record *out)
{
    char kind;
    int is_there;

    if (sscanf(line, "%c %d %" SCNu64 " %" SCNu64 " %" SCNd64, &kind, &is_there, &out->inode,
                &out->bytes, &out->modified_ns) != 5)
        return false;
    out->kind = kind == 'P' ? SWAP_PUT : SWAP_REMOVE;
    out->is_there = is_there != 0;
    return kind == 'P' || kind == 'R';
}

int swap_journal_read(int dir, struct swap_journal *out, struct carrel_error *err)
{
    AUTO(buf_finish) struct buf text = BUF_INIT(JOURNAL_MAX_BYTES);
    struct swap_journal journal = { 0 };
    int r = load(dir, &text, err);
    if (r < 0)
        return r;

    size_t n = 0;
    for (size_t i = 0; i < text.len; i++)
        n += text.data[i] == '\0';
    journal.items = calloc(n, sizeof(*journal.items));
    if (!journal.items)
        return err_set_errno(err, -ENOMEM, "read the journal of an apply");

    const char *end = text.data + text.len;
    const char *at = text.data + strlen(text.data) + 1;
    while (at < end) {
        struct swap_record *record = &journal.items[journal.n];
        const char *path = at + strlen(at) + 1;
        if (path >= end || !*path || !parse(at, record) || !(record->path = strdup(path))) {
            swap_journal_finish(&journal);
            return err_set(err, -EBADMSG, "the journal of an apply cannot be read");
        }
        record->number = journal.n++;
        at = path + strlen(path) + 1;
    }
    *out = journal;
    return 0;
}

static bool is_new(const struct swap_record *record, const struct stat *st)
{
    return st->st_ino == record->inode && (uint64_t)st->st_size == record->bytes &&
           (int64_t)st->st_mtim.tv_sec * 1000000000 + st->st_mtim.tv_nsec ==
                   record->modified_ns;
}

/* Renames the old file, which was taken out or has a second name, back to its path. */
static int restore_old(
        const struct swap_record *record, int top, int taken, const char *old, unsigned flags)
{
    const char *name;
    AUTO(fd_close) int to = beneath_make_parent(top, record->path, &name);
    if (to < 0)
        return to;

    return renameat2(taken, old, to, name, flags) < 0 ? -errno : 0;
}

/* The parent directories of the record's path in the work tree and in new/. */
static int open_parents(const struct swap_record *record, int top, int new, int *in_top,
        int *in_new, const char **name)
{
    *in_top = beneath_parent(top, record->path, name);
    if (*in_top < 0)
        return *in_top;
    *in_new = beneath_parent(new, record->path, name);
    return *in_new < 0 ? *in_new : 0;
}

/*
 * Takes out a new file that replaced nothing. If it was put in by a link, it may still have its
 * first name, and a rename from one name to the other does nothing.
 */
static int remove_new(const struct swap_record *record, int top, int new, bool is_staged)
{
    const char *name;
    AUTO(fd_close) int from = -1;
    AUTO(fd_close) int to = -1;

    int r = open_parents(record, top, new, &from, &to, &name);
    if (r < 0)
        return r;
    if (is_staged ? unlinkat(from, name, 0) < 0 : renameat(from, name, to, name) < 0)
        return -errno;
    beneath_prune_parents(top, record->path);
    return 0;
}

static int exchange_back(const struct swap_record *record, int top, int new)
{
    const char *name;
    AUTO(fd_close) int from = -1;
    AUTO(fd_close) int to = -1;

    int r = open_parents(record, top, new, &from, &to, &name);
    if (r < 0)
        return r;
    return renameat2(from, name, to, name, RENAME_EXCHANGE) < 0 ? -errno : 0;
}

static int undo_put(const struct swap_record *record, int top, int stage, const char *old)
{
    struct stat st;
    AUTO(fd_close) int new = swap_part(stage, "new");
    AUTO(fd_close) int taken = swap_part(stage, "old");
    if (new < 0 || taken < 0)
        return new < 0 ? new : taken;
    bool is_staged = beneath_stat(new, record->path, &st) == 0 && is_new(record, &st);
    bool is_in = beneath_stat(top, record->path, &st) == 0 && is_new(record, &st);

    if (!is_in) { /* it was not put in, or was changed since and belongs to the user now */
        if (is_staged && !record->is_there)
            beneath_prune_parents(top, record->path); /* created for it, perhaps over a file */
        return 0;
    }
    if (!record->is_there)
        return remove_new(record, top, new, is_staged);
    if (faccessat(taken, old, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
        return restore_old(record, top, taken, old, 0);
    return exchange_back(record, top, new);
}

static int undo_removal(const struct swap_record *record, int top, int stage, const char *old)
{
    AUTO(fd_close) int taken = swap_part(stage, "old");
    if (taken < 0)
        return taken;
    if (faccessat(taken, old, F_OK, AT_SYMLINK_NOFOLLOW) < 0)
        return 0; /* it was not taken out */
    int r = restore_old(record, top, taken, old, RENAME_NOREPLACE);
    if (r == -EINVAL || r == -ENOSYS || r == -EOPNOTSUPP) {
        struct stat st;
        r = beneath_stat(top, record->path, &st) == 0 ? -EEXIST
                                                      : restore_old(record, top, taken, old, 0);
    }
    /* Another file has the path now: it is newer than what git has. */
    return r == -EEXIST || r == -ENOTDIR || r == -ELOOP ? 0 : r;
}

int swap_journal_undo(
        const struct swap_record *record, int top, int stage, struct carrel_error *err)
{
    char old[32];

    (void)snprintf(old, sizeof(old), "%zu", record->number);
    int r = record->kind == SWAP_PUT ? undo_put(record, top, stage, old)
                                     : undo_removal(record, top, stage, old);
    return r < 0 ? err_set_errno(err, r, "put '%s' back", record->path) : 0;
}
