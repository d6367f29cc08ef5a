/* index.c - appends a record to the index. */
#include "journal/index.h"
#include "base/err.h"
#include "base/fd.h"
#include "journal/file.h"
#include "journal/line.h"
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

int journal_open_runs(const char *path, struct carrel_error *err)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    return fd < 0 ? err_set_errno(err, -errno, "open '%s'", path) : fd;
}

int journal_make_runs(const char *path, struct carrel_error *err)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (fd >= 0 || errno != ENOENT)
        return fd < 0 ? err_set_errno(err, -errno, "open '%s'", path) : fd;
    if (mkdir(path, 0700) < 0 && errno != EEXIST)
        return err_set_errno(err, -errno, "create '%s'", path);
    return journal_open_runs(path, err);
}

/* Whether the file we have locked still has its name. */
static bool is_current(int runs, int fd)
{
    struct stat ours;
    struct stat named;

    return fstat(fd, &ours) == 0 &&
           fstatat(runs, JOURNAL_INDEX, &named, AT_SYMLINK_NOFOLLOW) == 0 &&
           ours.st_dev == named.st_dev && ours.st_ino == named.st_ino;
}

/* Opens and locks it. If the file was moved away while we waited, a new one is created. */
static int open_index(int runs, struct carrel_error *err)
{
    for (int tries = 0; tries < 100; tries++) {
        AUTO(fd_close)
        int fd = openat(runs, JOURNAL_INDEX,
                O_RDWR | O_APPEND | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (fd < 0)
            return err_set_errno(err, -errno, "open '%s'", JOURNAL_INDEX);
        int r = journal_lock_wait(fd);
        if (r < 0)
            return err_set_errno(err, r, "lock '%s'", JOURNAL_INDEX);
        if (is_current(runs, fd))
            return fd_steal(&fd);
    }
    return err_set(err, -EBUSY, "'%s' is replaced again and again", JOURNAL_INDEX);
}

static int add(struct journal_file *file, const struct journal_index_record *record,
        struct carrel_error *err)
{
    struct json *json = journal_file_begin(file, record->run, record->event);

    if (record->task)
        json_str(json, "task", record->task);
    if (record->seal) {
        json_str(json, "reason", record->reason);
        json_u64(json, "records", record->records);
        json_str(json, "seal", record->seal);
    }
    return journal_file_add(file, err);
}

static int add_to(struct journal_file *file, const struct journal_index_record *record,
        bool must_sync, struct carrel_error *err)
{
    struct journal_torn torn;

    int r = journal_file_resume(file, NULL, &torn, err);
    if (r == -EBADMSG)
        return err_wrap(err, r,
                "the index of runs cannot be continued; see 'carrel journal verify', "
                "and move the file away to begin a new one");
    if (r == 0)
        r = journal_file_note_torn(file, record->run, "torn", &torn, err);
    if (r == 0)
        r = add(file, record, err);
    if (r == 0 && must_sync)
        r = journal_file_sync(file, err);
    return r;
}

int journal_index_add(int runs, const struct journal_index_record *record, bool must_sync,
        struct carrel_error *err)
{
    AUTO(journal_file_finish) struct journal_file file = { .fd = -1 };

    int fd = open_index(runs, err);
    if (fd < 0)
        return fd;
    journal_file_init(&file, fd, JOURNAL_INDEX);
    int r = add_to(&file, record, must_sync, err);
    journal_unlock(fd);
    return r;
}

int journal_note_pruned(const char *runs, const char *run, struct carrel_error *err)
{
    if (!journal_is_run(run, strlen(run)))
        return err_set(err, -EINVAL, "not a valid run id");
    AUTO(fd_close) int dir = journal_open_runs(runs, err);
    if (dir < 0)
        return dir;
    const struct journal_index_record record = { .event = "run_pruned", .run = run };
    return journal_index_add(dir, &record, false, err);
}
