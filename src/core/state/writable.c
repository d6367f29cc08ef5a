/* writable.c - one locked file for each sandbox. */
#include "core/state/writable.h"
#include "base/buf.h"
#include "base/dir.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/path.h"
#include "core/state/state.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define NOTE_MAX ((size_t)1 << 20)

static int open_place(struct carrel_error *err)
{
    char state[PATH_MAX];
    int r = state_path(state, sizeof(state), err);

    if (r == 0)
        r = state_make(state, err);
    if (r < 0)
        return r;
    AUTO(fd_close) int dir = open(state, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0 || (mkdirat(dir, "writable", 0700) < 0 && errno != EEXIST))
        return err_set_errno(err, -errno, "make '%s/writable'", state);
    int place = openat(dir, "writable", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return place < 0 ? err_set_errno(err, -errno, "open '%s/writable'", state) : place;
}

/* Under a name that no reader looks at, until it is locked and complete. */
static int write_note(int place, const char *id, const struct buf *text)
{
    char draft[ID_SIZE + 1];

    (void)snprintf(draft, sizeof(draft), ".%s", id);
    AUTO(fd_close) int fd = openat(place, draft, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return -errno;
    int r = flock(fd, LOCK_EX | LOCK_NB) < 0 ? -errno : fd_write_all(fd, text->data, text->len);
    if (r == 0 && renameat(place, draft, place, id) < 0)
        r = -errno;
    if (r < 0) {
        (void)unlinkat(place, draft, 0); /* the failure above is what matters */
        return r;
    }
    return fd_steal(&fd);
}

enum purpose { WRITES = 'w', HOLDS_STILL = 'h' };

static int compare(const struct buf *theirs, const char *run, const struct buf *ours,
        enum purpose purpose, struct carrel_error *err)
{
    for (size_t at = 0; at < theirs->len; at += strlen(theirs->data + at) + 1)
        for (size_t of = 0; of < ours->len; of += strlen(ours->data + of) + 1) {
            const char *path = theirs->data + at;
            const char *own = ours->data + of;
            if (!path_is_below(own, path) && !path_is_below(path, own))
                continue;
            if (purpose == WRITES)
                return err_set(err, -EBUSY,
                        "carrel is at work in '%s' for run '%s', and no sandbox may write "
                        "there meanwhile: try again",
                        path, run);
            return err_set(err, -EBUSY,
                    "the sandbox of run '%s' may write to '%s', and could exchange files "
                    "meanwhile: end it first, or wait for its end",
                    run, path);
        }
    return 0;
}

static int look_at(int place, const char *name, const struct buf *ours, enum purpose purpose,
        struct carrel_error *err)
{
    AUTO(buf_finish) struct buf text = BUF_INIT(NOTE_MAX);
    AUTO(fd_close) int fd = openat(place, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);

    if (fd < 0)
        return errno == ENOENT ? 0 : err_set_errno(err, -errno, "open 'writable/%s'", name);
    if (flock(fd, LOCK_SH | LOCK_NB) == 0) {
        (void)unlinkat(place, name, 0); /* at worst the next one does */
        return 0;
    }
    int r = fd_add_file(place, name, &text, err);
    if (r < 0 || text.len == 0) /* it was removed meanwhile */
        return r;
    size_t first = text.len > 1 ? strlen(text.data + 1) + 2 : 0;
    if (first == 0 || first > text.len || text.data[text.len - 1] != '\0')
        return err_set(err, -EBADMSG, "'writable/%s' in the state directory is damaged", name);
    const struct buf theirs = { .data = text.data + first, .len = text.len - first };
    return text.data[0] == (char)purpose ? 0
                                         : compare(&theirs, text.data + 1, ours, purpose, err);
}

static int look_at_all(int place, const char *own, const struct buf *ours, enum purpose purpose,
        struct carrel_error *err)
{
    AUTO(dir_close) DIR *list = dir_open(place, ".");
    int r = list ? 0 : err_set_errno(err, -errno, "list sandboxes");

    for (const char *name; r == 0 && (name = dir_next(list));)
        if (name[0] != '.' && strcmp(name, own) != 0)
            r = look_at(place, name, ours, purpose, err);
    return r;
}

static int begin(
        enum purpose purpose, const char *run, const struct buf *dirs, struct carrel_error *err)
{
    AUTO(buf_finish) struct buf text = BUF_INIT(2 * NOTE_MAX);
    char id[ID_SIZE];
    AUTO(fd_close) int place = open_place(err);
    if (place < 0)
        return place;

    buf_addf(&text, "%c%s", (char)purpose, run);
    buf_add(&text, "", 1);
    buf_add(&text, dirs->data, dirs->len);
    int r = text.is_short || dirs->is_short ? err_set_errno(err, -E2BIG, "mounts")
                                            : state_new_id('M', id, err);
    if (r < 0)
        return r;
    AUTO(fd_close) int fd = write_note(place, id, &text);
    if (fd < 0)
        return err_set_errno(err, fd, "note which directories a sandbox may write to");
    r = look_at_all(place, id, dirs, purpose, err);
    if (r < 0)
        (void)unlinkat(place, id, 0); /* else the next one does */
    return r < 0 ? r : fd_steal(&fd);
}

static int begin_with(enum purpose purpose, const char *run, const char *const *dirs, size_t n,
        struct carrel_error *err)
{
    AUTO(buf_finish) struct buf list = BUF_INIT(NOTE_MAX);

    for (size_t i = 0; i < n; i++)
        buf_add(&list, dirs[i], strlen(dirs[i]) + 1);
    return begin(purpose, run, &list, err);
}

int writable_note(const char *run, const char *const *dirs, size_t n, struct carrel_error *err)
{
    return begin_with(WRITES, run, dirs, n, err);
}

int writable_forbid(
        const char *run, const char *const *dirs, size_t n, struct carrel_error *err)
{
    return begin_with(HOLDS_STILL, run, dirs, n, err);
}
