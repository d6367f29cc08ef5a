/* file.c - appends records, and finds the last one on resume. */
#include "journal/file.h"
#include "base/err.h"
#include "base/fd.h"
#include "journal/line.h"
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

void journal_file_init(struct journal_file *file, int fd, const char *name)
{
    *file = (struct journal_file){
        .fd = fd,
        .name = name,
        .line = BUF_INIT(JOURNAL_RECORD_MAX),
    };
    memcpy(file->head, journal_no_hash, JOURNAL_HASH);
}

void journal_file_finish(struct journal_file file)
{
    buf_finish(file.line);
    fd_close(file.fd);
}

static int pread_all(int fd, char *data, size_t len, uint64_t at)
{
    while (len > 0) {
        ssize_t n = pread(fd, data, len, (off_t)at);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n < 0 ? -errno : -EIO; /* shorter than it was a moment ago */
        data += n;
        at += (uint64_t)n;
        len -= (size_t)n;
    }
    return 0;
}

/*
 * The last line of `text`, which begins in the middle of a file unless `is_whole`. NULL: the
 * line does not begin in `text`. *after is its end, including the newline.
 */
static const char *last_line(const char *text, size_t len, bool is_whole, size_t *after)
{
    const char *newline = memrchr(text, '\n', len);

    *after = newline ? (size_t)(newline - text) + 1 : 0;
    if (!newline)
        return is_whole ? text : NULL;
    const char *before = memrchr(text, '\n', (size_t)(newline - text));
    if (before)
        return before + 1;
    return is_whole ? text : NULL;
}

static void sum_up(const char *text, size_t len, struct journal_torn *torn)
{
    torn->bytes = len;
    sha256_hex(text, len, torn->sha256);
}

static int take_last(struct journal_file *file, const char *run, const char *line, size_t len,
        struct carrel_error *err)
{
    struct journal_line last;
    struct journal_chain chain = { .has_many_runs = !run };

    /* As a chain of this one line: verify checks what is before it. */
    int r = journal_line_parse(line, len, &last, err);
    if (r == 0) {
        chain.seq = last.seq - 1;
        memcpy(chain.head, last.prev, JOURNAL_HASH - 1);
        chain.head[JOURNAL_HASH - 1] = '\0';
        if (run)
            (void)stpcpy(chain.run, run);
        r = journal_line_check(&chain, NULL, line, len, &last, err);
    }
    if (r < 0)
        return err_wrap(err, r, "the last record of '%s' is invalid", file->name);
    file->seq = chain.seq;
    memcpy(file->head, chain.head, JOURNAL_HASH);
    return 0;
}

/* Looks for the last record in the last `len` bytes. Returns 1 if it begins before them. */
static int look(struct journal_file *file, const char *run, char *text, size_t len,
        uint64_t size, struct journal_torn *torn, struct carrel_error *err)
{
    size_t after = 0;

    int r = pread_all(file->fd, text, len, size - len);
    if (r < 0)
        return err_set_errno(err, r, "read '%s'", file->name);
    const char *line = last_line(text, len, len == size, &after);
    if (!line)
        return 1;
    if (after > 0) {
        r = take_last(file, run, line, (size_t)(text + after - 1 - line), err);
        if (r < 0)
            return r;
    }
    file->size = size - (len - after);
    if (len > after)
        sum_up(text + after, len - after, torn);
    return 0;
}

int journal_file_resume(struct journal_file *file, const char *run, struct journal_torn *torn,
        struct carrel_error *err)
{
    char near_end[4096]; /* enough for the index, whose lines are short */
    const size_t far = 2 * (size_t)JOURNAL_RECORD_MAX + 2;

    *torn = (struct journal_torn){ 0 };
    off_t end = lseek(file->fd, 0, SEEK_END);
    if (end < 0)
        return err_set_errno(err, -errno, "seek in '%s'", file->name);
    uint64_t size = (uint64_t)end;
    if (size == 0)
        return 0;
    size_t len = size < sizeof(near_end) ? (size_t)size : sizeof(near_end);
    int r = look(file, run, near_end, len, size, torn, err);
    if (r == 1) {
        len = size < far ? (size_t)size : far;
        AUTO(free) char *text = malloc(len);
        if (!text)
            return err_set_errno(err, -ENOMEM, "read '%s'", file->name);
        r = look(file, run, text, len, size, torn, err);
        if (r == 1)
            r = err_set(err, -EBADMSG, "'%s' does not end in a record", file->name);
    }
    if (r < 0)
        return r;
    if (torn->bytes > 0 && ftruncate(file->fd, (off_t)file->size) < 0)
        return err_set_errno(err, -errno, "cut a torn record off '%s'", file->name);
    return 0;
}

struct json *journal_file_begin(struct journal_file *file, const char *run, const char *event)
{
    journal_line_begin(&file->line, &file->json, file->seq + 1, run, event);
    return &file->json;
}

/* One write as long as there is space; a second one only to learn the error. */
static int append(int fd, const char *text, size_t len)
{
    while (len > 0) {
        ssize_t n = write(fd, text, len);
        if (n < 0 && errno != EINTR)
            return -errno;
        if (n > 0) {
            text += n;
            len -= (size_t)n;
        }
    }
    return 0;
}

int journal_file_add(struct journal_file *file, struct carrel_error *err)
{
    char hash[JOURNAL_HASH];

    if (file->error < 0)
        return err_set(err, file->error, "'%s' takes no more records", file->name);
    journal_line_end(&file->line, file->head, hash);
    if (file->line.is_short) {
        file->error = -EMSGSIZE;
        return err_set(err, file->error, "a record of '%s' is too long", file->name);
    }
    int r = append(file->fd, file->line.data, file->line.len);
    if (r < 0) {
        file->error = r;
        (void)ftruncate(file->fd, (off_t)file->size); /* else the next line is torn */
        return err_set_errno(err, r, "write to '%s'", file->name);
    }
    file->size += file->line.len;
    file->seq++;
    memcpy(file->head, hash, JOURNAL_HASH);
    return 0;
}

int journal_file_note_torn(struct journal_file *file, const char *run, const char *event,
        const struct journal_torn *torn, struct carrel_error *err)
{
    if (torn->bytes == 0)
        return 0;
    struct json *json = journal_file_begin(file, run, event);
    json_u64(json, "dropped_bytes", torn->bytes);
    json_str(json, "dropped_sha256", torn->sha256);
    return journal_file_add(file, err);
}

int journal_file_sync(struct journal_file *file, struct carrel_error *err)
{
    if (fdatasync(file->fd) == 0)
        return 0;
    file->error = -errno;
    return err_set_errno(err, file->error, "write '%s' to the disk", file->name);
}

/* Open file description locks: they end with the last descriptor, and can be queried. */
static int lock(int fd, int command, short type)
{
    struct flock all = { .l_type = type, .l_whence = SEEK_SET };
    int r;

    do
        r = fcntl(fd, command, &all);
    while (r < 0 && errno == EINTR);
    if (r == 0)
        return 0;
    return errno == EACCES ? -EWOULDBLOCK : -errno;
}

int journal_lock_try(int fd)
{
    return lock(fd, F_OFD_SETLK, F_WRLCK);
}

int journal_lock_wait(int fd)
{
    return lock(fd, F_OFD_SETLKW, F_WRLCK);
}

int journal_lock_shared(int fd)
{
    return lock(fd, F_OFD_SETLKW, F_RDLCK);
}

void journal_unlock(int fd)
{
    /* Closing would not do: a child that another thread forked may have the descriptor, too. */
    (void)lock(fd, F_OFD_SETLK, F_UNLCK);
}

bool journal_lock_is_held(int fd)
{
    struct flock all = { .l_type = F_RDLCK, .l_whence = SEEK_SET };

    return fcntl(fd, F_OFD_GETLK, &all) == 0 && all.l_type != F_UNLCK;
}
