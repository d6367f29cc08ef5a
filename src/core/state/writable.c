/* writable.c - one locked file for each sandbox. */
#include "core/state/writable.h"
#include "base/buf.h"
#include "base/dir.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/rundir.h"
#include "core/state/place.h"
#include "core/state/state.h"
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define NOTE_MAX ((size_t)1 << 20)
/* Of one other user, who could hold root up with them. */
#define NOTES_MAX 4096
#define FOREIGN_MAX ((size_t)256 << 10)

enum purpose { WRITES = 'w', HOLDS_STILL = 'h' };

/* What a note says of a place. */
enum manner { PLACE = 'p', STILL = 's' };

/* The places of a note that is about to be written. */
struct own {
    enum purpose purpose;
    const char *run;
    struct place *places;
    char *manners;
    size_t n;
};
static void own_finish(struct own own)
{
    for (size_t i = 0; i < own.n; i++)
        place_finish(own.places[i]);
    free(own.places);
    free(own.manners);
}
DEFINE_AUTO(struct own, own_finish)

/* A directory of notes that others wrote. */
struct others {
    int dir;
    const char *skip; /* our own note; NULL: it is not among them */
    bool is_foreign;  /* another user's: they count for files of that user alone */
    uid_t uid;
    size_t *left; /* what is still read of a foreign one's */
};

/* A line of a note: "p <device> <inode> <path>" and NUL. */
struct line {
    char manner;
    struct named_id id;
    const char *path;
};

static int open_notes(int run)
{
    if (mkdirat(run, "writable", 0700) < 0 && errno != EEXIST)
        return -errno;
    int notes = openat(run, "writable", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return notes < 0 ? -errno : notes;
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

/* --- comparing --- */

static bool parse_line(char *text, struct line *out)
{
    char *end;

    out->manner = text[0];
    if ((text[0] != PLACE && text[0] != STILL) || text[1] != ' ')
        return false;
    out->id.dev = (dev_t)strtoull(text + 2, &end, 16);
    if (*end != ' ')
        return false;
    out->id.ino = (ino_t)strtoull(end + 1, &end, 16);
    out->path = end + 1;
    return end[0] == ' ' && end[1] == '/';
}

static int refuse(const struct own *own, const char *run, const char *path, bool is_lost,
        struct carrel_error *err)
{
    if (own->purpose == WRITES)
        return err_set(err, -EBUSY,
                "carrel is at work in '%s' for run '%s', and no sandbox may write there "
                "meanwhile: try again",
                path, run);
    return err_set(err, -EBUSY,
            "the sandbox of run '%s' may write to '%s', %s: end it first, or wait for its end",
            run, path,
            is_lost ? "which is no longer there and might be anywhere"
                    : "and could exchange files meanwhile");
}

/* Whether what lies in our place `i` cannot be written to there. */
static bool is_still(const struct own *own, size_t i, const struct place *place)
{
    for (i++; i < own->n && own->manners[i] == STILL; i++)
        if (place_is_in(place, own->places[i].path, &own->places[i].id))
            return true;
    return false;
}

/* Whether the place of the line and ours have a part in common. 2: it cannot be found. */
static int meets(
        const struct line *line, const struct own *own, size_t i, const struct others *others)
{
    const struct place *ours = &own->places[i];
    AUTO(place_finish) struct place now = PLACE_INIT;

    bool is_there = place_open(line->path, -1, &now) == 0 && now.id.dev == line->id.dev &&
                    now.id.ino == line->id.ino;
    if (others->is_foreign && ours->owner != others->uid &&
            !(is_there && now.owner == others->uid))
        return 0;
    if (place_is_in(ours, line->path, &line->id))
        return 1;
    if (!is_there)
        return 2;
    return place_is_in(&now, ours->path, &ours->id) && !is_still(own, i, &now);
}

/*
 * `text` is the lines of a note. The lines after one, up to the next one of its kind, name what
 * cannot be written to in it; only a place that lies there entirely is not met.
 */
static int compare(const struct buf *text, const char *run, const struct own *own,
        const struct others *others, struct carrel_error *err)
{
    for (size_t i = 0; i < own->n; i++) {
        const struct place *ours = &own->places[i];
        struct line line;
        char met[PATH_MAX] = "";
        int how = 0;
        if (own->manners[i] == STILL)
            continue;
        for (size_t at = 0; at < text->len; at += strlen(text->data + at) + 1) {
            if (!parse_line(text->data + at, &line))
                return others->is_foreign
                               ? 0
                               : err_set(err, -EBADMSG,
                                         "the note of run '%s' in the run directory is damaged",
                                         run);
            if (line.manner == STILL) {
                how = how == 1 && place_is_in(ours, line.path, &line.id) ? 0 : how;
                continue;
            }
            if (how)
                break;
            how = meets(&line, own, i, others);
            (void)snprintf(met, sizeof(met), "%s", line.path);
        }
        if (how)
            return refuse(own, run, met, how == 2, err);
    }
    return 0;
}

/* --- the notes of others --- */

/* -EAGAIN: its process has ended. */
static int read_note(const struct others *others, const char *name, struct buf *text)
{
    char chunk[8192];
    struct stat st;
    ssize_t n;

    AUTO(fd_close)
    int fd = openat(others->dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT ? -EAGAIN : -errno;
    if (fstat(fd, &st) < 0)
        return -errno;
    if (!S_ISREG(st.st_mode))
        return -EINVAL;
    if (flock(fd, LOCK_SH | LOCK_NB) == 0)
        return -EAGAIN;
    while ((n = fd_read_all(fd, chunk, sizeof(chunk))) > 0)
        buf_add(text, chunk, (size_t)n);
    return n < 0 ? (int)n : text->is_short ? -EFBIG : 0;
}

static int look_at(const struct others *others, const char *name, const struct own *own,
        struct carrel_error *err)
{
    AUTO(buf_finish)
    struct buf text = BUF_INIT(others->is_foreign ? *others->left : 2 * NOTE_MAX);

    int r = read_note(others, name, &text);
    if (others->is_foreign)
        *others->left = r == -EFBIG ? 0 : *others->left - text.len;
    if (r == -EAGAIN) {
        if (!others->is_foreign)
            (void)unlinkat(others->dir, name, 0); /* at worst the next one does */
        return 0;
    }
    size_t first = r == 0 && text.len > 1 ? strlen(text.data + 1) + 2 : 0;
    if (r < 0 || first == 0 || first > text.len || text.data[text.len - 1] != '\0')
        return others->is_foreign ? 0 /* not of a carrel: it says nothing */
                                  : err_set(err, r < 0 ? r : -EBADMSG,
                                            "the note 'writable/%s' in the run directory is "
                                            "damaged",
                                            name);
    const struct buf lines = { .data = text.data + first, .len = text.len - first };
    return text.data[0] == (char)own->purpose
                   ? 0
                   : compare(&lines, text.data + 1, own, others, err);
}

/* The rest says nothing where no file of that user is concerned. */
static int refuse_flood(
        const struct others *others, const struct own *own, struct carrel_error *err)
{
    for (size_t i = 0; i < own->n; i++)
        if (own->places[i].owner == others->uid)
            return err_set(err, -E2BIG, "user %u has too many notes of sandboxes",
                    (unsigned)others->uid);
    return 0;
}

static int look_at_all(
        const struct others *others, const struct own *own, struct carrel_error *err)
{
    AUTO(dir_close) DIR *list = dir_open(others->dir, ".");
    int r = list ? 0 : err_set_errno(err, -errno, "list sandboxes");
    unsigned n = 0;

    for (const char *name; r == 0 && (name = dir_next(list));) {
        if (name[0] == '.' || (others->skip && strcmp(name, others->skip) == 0))
            continue;
        r = look_at(others, name, own, err);
        if (r == 0 && others->is_foreign && (++n > NOTES_MAX || *others->left == 0))
            return refuse_flood(others, own, err);
    }
    return r;
}

/* The notes in other directories. */
struct visit {
    const struct own *own;
    const char *skip;
    struct carrel_error *err;
};

static int visit_user(int run, uid_t uid, void *context)
{
    const struct visit *visit = context;

    AUTO(fd_close)
    int notes = openat(run, "writable", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (notes < 0)
        return 0; /* there are none */
    size_t left = FOREIGN_MAX;
    const struct others others = {
        .dir = notes,
        .skip = visit->skip,
        .is_foreign = uid != geteuid(),
        .uid = uid,
        .left = &left,
    };
    return look_at_all(&others, visit->own, visit->err);
}

/* --- our own --- */

static void write_lines(const struct own *own, struct buf *text)
{
    buf_addf(text, "%c%s", (char)own->purpose, own->run);
    buf_add(text, "", 1);
    for (size_t i = 0; i < own->n; i++) {
        const struct place *place = &own->places[i];
        buf_addf(text, "%c %jx %jx %s", own->manners[i], (uintmax_t)place->id.dev,
                (uintmax_t)place->id.ino, place->path);
        buf_add(text, "", 1);
    }
}

static int begin(const struct own *own, struct carrel_error *err)
{
    AUTO(buf_finish) struct buf text = BUF_INIT(NOTE_MAX);
    struct visit visit = { .own = own, .err = err };
    char id[ID_SIZE];

    AUTO(fd_close) int run = rundir_open_shared(err);
    if (run < 0)
        return run;
    AUTO(fd_close) int notes = open_notes(run);
    if (notes < 0)
        return err_set_errno(err, notes, "open 'writable' in the run directory");
    write_lines(own, &text);
    int r = text.is_short ? err_set_errno(err, -E2BIG, "mounts") : state_new_id('M', id, err);
    if (r < 0)
        return r;
    AUTO(fd_close) int fd = write_note(notes, id, &text);
    if (fd < 0)
        return err_set_errno(err, fd, "note which directories a sandbox may write to");
    const struct others others = { .dir = notes, .skip = id };
    r = look_at_all(&others, own, err);
    visit.skip = id;
    if (r == 0)
        r = rundir_each_own(visit_user, &visit);
    if (r == 0 && geteuid() == 0)
        r = rundir_each_user(visit_user, &visit);
    if (r < 0)
        (void)unlinkat(notes, id, 0); /* else the next one does */
    return r < 0 ? r : fd_steal(&fd);
}

static int open_all(struct own *own, const struct writable_place *places, size_t n,
        struct carrel_error *err)
{
    own->places = calloc(n + 1, sizeof(*own->places));
    own->manners = calloc(n + 1, 1);
    if (!own->places || !own->manners)
        return err_set_errno(err, -ENOMEM, "mounts");
    for (size_t i = 0; i < n; i++) {
        int r = place_open(places[i].path, places[i].fd, &own->places[own->n]);
        if (r == -ENOENT)
            continue; /* what does not exist is not mounted: its user says that it is missing */
        if (r < 0)
            return err_set_errno(err, r, "open '%s'", places[i].path);
        own->manners[own->n++] = places[i].is_still ? STILL : PLACE;
    }
    return 0;
}

int writable_note(const char *run, const struct writable_place *places, size_t n,
        struct carrel_error *err)
{
    AUTO(own_finish) struct own own = { .purpose = WRITES, .run = run };
    int r = open_all(&own, places, n, err);

    return r < 0 ? r : begin(&own, err);
}

int writable_forbid(
        const char *run, const char *const *dirs, size_t n, struct carrel_error *err)
{
    AUTO(own_finish) struct own own = { .purpose = HOLDS_STILL, .run = run };
    AUTO(free) struct writable_place *places = calloc(n + 1, sizeof(*places));

    if (!places)
        return err_set_errno(err, -ENOMEM, "mounts");
    for (size_t i = 0; i < n; i++)
        places[i] = (struct writable_place){ .path = dirs[i], .fd = -1 };
    int r = open_all(&own, places, n, err);
    return r < 0 ? r : begin(&own, err);
}
