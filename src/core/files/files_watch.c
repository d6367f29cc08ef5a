/* files_watch.c - turns inotify events into events with paths. */
#include "core/files/files_watch.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/loop.h"
#include "core/files/files.h"
#include "core/files/watch_share.h"
#include "runtime/runtime.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <unistd.h>

#define EVENTS                                                                                 \
    (IN_CREATE | IN_MODIFY | IN_ATTRIB | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO |             \
            IN_DELETE_SELF | IN_EXCL_UNLINK)
#define PAIR_NS (20 * 1000 * 1000) /* how long the second half of a rename may take */
#define LOOK_S 1 /* the kernel does not report the removal of a directory that we hold open */
#define MAX_TOLD 16384 /* events that wait for the caller: as many as the kernel keeps */

/* A watched directory. */
struct watched {
    int number;
    char *path;   /* below the top; "" is the top itself */
    bool is_away; /* it was moved elsewhere: its further events are ignored */
};

/* An event that was not returned yet. */
struct told {
    enum carrel_watch_kind kind;
    bool is_directory;
    char *path, *to;
};

struct carrel_watch {
    struct file_access access;
    char *path;
    bool is_deep;
    struct loop loop;
    struct loop_io on_notes, on_sandbox, on_silence;
    int notes;
    int timer;
    int top; /* -1: a single file is watched */
    struct told *told;
    size_t n_told, room_told;
    size_t next; /* in `told` */
    struct carrel_watch_event event;
    bool has_ended, has_told_end;
    struct carrel_error failure; /* after what was told */
    struct watched *list;
    size_t n, room;
    size_t most; /* of them */
    int share;   /* see watch_share.h; -1: it needs none */
    /* The first half of a rename; path is NULL if there is none. */
    struct {
        uint32_t cookie;
        char *path;
        bool is_directory;
    } moved;
};

const char *carrel_watch_kind_name(enum carrel_watch_kind kind)
{
    static const char *const names[] = {
        [CARREL_WATCH_READY] = "ready",
        [CARREL_WATCH_CREATE] = "create",
        [CARREL_WATCH_WRITE] = "write",
        [CARREL_WATCH_REMOVE] = "remove",
        [CARREL_WATCH_RENAME] = "rename",
        [CARREL_WATCH_CHMOD] = "chmod",
        [CARREL_WATCH_OVERFLOW] = "overflow",
        [CARREL_WATCH_END] = "end",
    };

    return (size_t)kind < ARRAY_LEN(names) ? names[kind] : "unknown";
}

static void forget_told(struct carrel_watch *w)
{
    for (size_t i = 0; i < w->n_told; i++) {
        free(w->told[i].path);
        free(w->told[i].to);
    }
    w->n_told = w->next = 0;
}

void carrel_watch_free(struct carrel_watch *w)
{
    if (!w)
        return;
    loop_io_stop(&w->on_notes);
    loop_io_stop(&w->on_sandbox);
    loop_io_stop(&w->on_silence);
    loop_finish(&w->loop);
    forget_told(w);
    free(w->told);
    for (size_t i = 0; i < w->n; i++)
        free(w->list[i].path);
    free(w->list);
    free(w->moved.path);
    free(w->path);
    fd_close(w->notes);
    fd_close(w->timer);
    fd_close(w->top);
    fd_close(w->share);
    file_access_close(&w->access);
    free(w);
}

/* "a" and "b" -> "a/b"; either may be empty. NULL: out of memory. */
static char *join(const char *above, const char *name)
{
    size_t left = strlen(above);
    size_t right = strlen(name);
    bool has_slash = left > 0 && right > 0 && above[left - 1] != '/';
    size_t size = left + has_slash + right + 1;
    char *path = malloc(size);

    if (path)
        (void)snprintf(path, size, "%s%s%s", above, has_slash ? "/" : "", name);
    return path;
}

static struct told *add_told(struct carrel_watch *w)
{
    if (w->n_told == w->room_told) {
        size_t room = w->room_told ? 2 * w->room_told : 64;
        struct told *told = realloc(w->told, room * sizeof(*told));
        if (!told)
            return NULL;
        w->told = told;
        w->room_told = room;
    }
    w->told[w->n_told] = (struct told){ 0 };
    return &w->told[w->n_told++];
}

/* A new directory may hold any number of entries: what is not kept is told as an overflow. */
static int tell(struct carrel_watch *w, enum carrel_watch_kind kind, const char *below,
        const char *to, bool is_directory, struct carrel_error *err)
{
    if (w->n_told == MAX_TOLD)
        return 0;
    if (w->n_told == MAX_TOLD - 1) {
        kind = CARREL_WATCH_OVERFLOW;
        below = "";
        to = NULL;
        is_directory = false;
    }
    struct told *told = add_told(w);
    if (!told)
        return err_set_errno(err, -ENOMEM, "watch");
    told->kind = kind;
    told->is_directory = is_directory;
    told->path = join(w->path, below);
    told->to = to ? join(w->path, to) : NULL;
    if (told->path && (!to || told->to))
        return 0;
    free(told->path);
    free(told->to);
    w->n_told--;
    return err_set_errno(err, -ENOMEM, "watch");
}

static struct watched *find(struct carrel_watch *w, int number)
{
    for (size_t i = 0; i < w->n; i++)
        if (w->list[i].number == number)
            return &w->list[i];
    return NULL;
}

/* A directory that came back under another name keeps its watch number. */
static int note_watch(
        struct carrel_watch *w, int number, const char *below, struct carrel_error *err)
{
    struct watched *known = find(w, number);
    char *path = strdup(below);

    if (path && known) {
        free(known->path);
        *known = (struct watched){ .number = number, .path = path };
        return 0;
    }
    if (path && w->n == w->room) {
        size_t room = w->room ? 2 * w->room : 16;
        struct watched *list = realloc(w->list, room * sizeof(*list));
        if (list) {
            w->list = list;
            w->room = room;
        }
    }
    if (!path || w->n == w->room) {
        free(path);
        return err_set_errno(err, -ENOMEM, "watch");
    }
    w->list[w->n++] = (struct watched){ .number = number, .path = path };
    return 0;
}

/* -ENOENT and the like: it was removed, or has another type by now. */
static int add_watch(struct carrel_watch *w, const char *below, struct carrel_error *err)
{
    struct file_request request = FILE_REQUEST_INIT;
    struct file_answer answer = FILE_ANSWER_INIT;

    if (w->n >= w->most)
        return err_set(err, -E2BIG,
                "more than %zu directories; one watch takes no more of this user's", w->most);
    request.op = FILE_WATCH;
    request.dir = w->top;
    request.path = w->top < 0 ? w->path : below[0] ? below : ".";
    request.flags = w->top < 0 ? 0 : FILE_NO_FOLLOW;
    request.watch = w->notes;
    request.events = EVENTS | (w->top < 0 ? 0U : IN_ONLYDIR);
    int r = file_access_ask(&w->access, &request, &answer, err);
    if (r == -ENOSPC)
        return err_set(err, r,
                "more directories than this user may watch; see fs.inotify.max_user_watches");
    return r < 0 ? r : note_watch(w, answer.watch, below, err);
}

static bool has_gone(int code)
{
    return code == -ENOENT || code == -ENOTDIR || code == -ELOOP || code == -EACCES;
}

enum telling { TELL_CREATED, TELL_NOTHING };

static int look_into(struct carrel_watch *w, const char *below, unsigned depth,
        enum telling telling, struct carrel_error *err);

static int look_at(struct carrel_watch *w, int dir, const char *below, const char *name,
        unsigned depth, enum telling telling, struct carrel_error *err)
{
    struct stat st;
    int r = 0;

    if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return 0; /* removed: an event tells it */
    AUTO(free) char *path = join(below, name);
    if (!path)
        return err_set_errno(err, -ENOMEM, "watch");
    if (telling == TELL_CREATED)
        r = tell(w, CARREL_WATCH_CREATE, path, NULL, S_ISDIR(st.st_mode), err);
    return r == 0 && S_ISDIR(st.st_mode) ? look_into(w, path, depth + 1, telling, err) : r;
}

static int read_through(struct carrel_watch *w, int fd, const char *below, unsigned depth,
        enum telling telling, struct carrel_error *err)
{
    int r = 0;
    int own = fcntl(fd, F_DUPFD_CLOEXEC, 3);
    DIR *dir = own < 0 ? NULL : fdopendir(own);

    if (!dir) {
        r = err_set_errno(err, -errno, "read a directory");
        fd_close(own);
        return r;
    }
    for (const struct dirent *entry; r == 0 && (entry = readdir(dir));)
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            r = look_at(w, fd, below, entry->d_name, depth, telling, err);
    (void)closedir(dir);
    return r;
}

/*
 * Watches a directory and its subdirectories. First the watch, then the listing: nothing is
 * missed.
 */
static int look_into(struct carrel_watch *w, const char *below, unsigned depth,
        enum telling telling, struct carrel_error *err)
{
    struct file_request request = FILE_REQUEST_INIT;
    struct file_answer answer = FILE_ANSWER_INIT;

    int r = add_watch(w, below, err);
    if (r == 0) {
        request.op = FILE_OPEN;
        request.dir = w->top;
        request.path = below[0] ? below : ".";
        request.flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW;
        r = file_access_ask(&w->access, &request, &answer, err);
    }
    if (depth > 0 && has_gone(r))
        return 0;
    if (r < 0)
        return r;
    AUTO(fd_close) int fd = answer.fd;
    if (depth >= FILES_MAX_DEPTH)
        return err_set(err, -ELOOP, "the tree is deeper than %d directories", FILES_MAX_DEPTH);
    return read_through(w, fd, below, depth, telling, err);
}

static const char *below_of(const char *path, const char *top)
{
    size_t len = strlen(top);

    return strncmp(path, top, len) == 0 && (path[len] == '/' || !path[len]) ? path + len : NULL;
}

/* A directory was renamed, and with it all paths below it. */
static int rename_watches(
        struct carrel_watch *w, const char *from, const char *to, struct carrel_error *err)
{
    for (size_t i = 0; i < w->n; i++) {
        const char *rest = below_of(w->list[i].path, from);
        if (!rest)
            continue;
        char *path = join(to, rest[0] ? rest + 1 : "");
        if (!path)
            return err_set_errno(err, -ENOMEM, "watch");
        free(w->list[i].path);
        w->list[i].path = path;
    }
    return 0;
}

/* It was moved away: further events in it are not ours. */
static void drop_watches(struct carrel_watch *w, const char *top)
{
    for (size_t i = 0; i < w->n; i++) {
        if (!w->list[i].path[0] || !below_of(w->list[i].path, top))
            continue;
        w->list[i].is_away = true;
        (void)inotify_rm_watch(w->notes, w->list[i].number); /* its end is reported, too */
    }
}

static int forget_moved(struct carrel_watch *w, struct carrel_error *err)
{
    AUTO(free) char *path = ptr_steal(&w->moved.path);

    if (!path)
        return 0;
    if (w->moved.is_directory)
        drop_watches(w, path);
    return tell(w, CARREL_WATCH_REMOVE, path, NULL, w->moved.is_directory, err);
}

static int on_created(
        struct carrel_watch *w, const char *path, bool is_directory, struct carrel_error *err)
{
    int r = tell(w, CARREL_WATCH_CREATE, path, NULL, is_directory, err);

    return r == 0 && is_directory && w->is_deep ? look_into(w, path, 1, TELL_CREATED, err) : r;
}

static int on_moved_to(
        struct carrel_watch *w, const char *path, bool is_directory, struct carrel_error *err)
{
    AUTO(free) char *from = ptr_steal(&w->moved.path);

    if (!from)
        return on_created(w, path, is_directory, err);
    int r = is_directory ? rename_watches(w, from, path, err) : 0;
    return r < 0 ? r : tell(w, CARREL_WATCH_RENAME, from, path, is_directory, err);
}

static int on_overflow(struct carrel_watch *w, struct carrel_error *err)
{
    int r = tell(w, CARREL_WATCH_OVERFLOW, "", NULL, false, err);

    return r == 0 && w->is_deep ? look_into(w, "", 0, TELL_NOTHING, err) : r;
}

/* The watch ended, by itself or by drop_watches(). 1: it was the first one. */
static int on_ended(struct carrel_watch *w, struct watched *watched)
{
    const bool is_top = !watched->path[0];

    free(watched->path);
    *watched = w->list[--w->n];
    return is_top;
}

static int on_note(
        struct carrel_watch *w, const struct inotify_event *note, struct carrel_error *err)
{
    const bool is_directory = note->mask & IN_ISDIR;

    /* Only the matching second half may follow the first half of a rename. */
    int r = note->mask & IN_MOVED_TO && note->cookie == w->moved.cookie ? 0
                                                                        : forget_moved(w, err);
    if (r != 0)
        return r;
    if (note->mask & IN_Q_OVERFLOW)
        return on_overflow(w, err);
    struct watched *watched = find(w, note->wd);
    if (!watched || (watched->is_away && !(note->mask & IN_IGNORED)))
        return 0;
    AUTO(free) char *path = join(watched->path, note->len > 0 ? note->name : "");
    if (!path)
        return err_set_errno(err, -ENOMEM, "watch");
    const bool is_top = !path[0];
    if (note->mask & IN_MOVED_TO)
        return on_moved_to(w, path, is_directory, err);
    if (note->mask & IN_MOVED_FROM) {
        w->moved.cookie = note->cookie;
        w->moved.is_directory = is_directory;
        w->moved.path = ptr_steal(&path);
        return 0;
    }
    if (note->mask & IN_CREATE)
        return on_created(w, path, is_directory, err);
    if (note->mask & IN_MODIFY)
        return tell(w, CARREL_WATCH_WRITE, path, NULL, false, err);
    if (note->mask & IN_ATTRIB && (is_top || note->len > 0))
        return tell(w, CARREL_WATCH_CHMOD, path, NULL, is_directory, err);
    if (note->mask & IN_DELETE || (is_top && note->mask & IN_DELETE_SELF))
        return tell(w, CARREL_WATCH_REMOVE, path, NULL, is_directory, err);
    return note->mask & (IN_IGNORED | IN_UNMOUNT) ? on_ended(w, find(w, note->wd)) : 0;
}

static int read_notes(struct carrel_watch *w, struct carrel_error *err)
{
    char space[16384] __attribute__((aligned(8)));
    int r = 0;

    ssize_t n = read(w->notes, space, sizeof(space));
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    if (n < 0)
        return err_set_errno(err, -errno, "read what was noted");
    for (size_t at = 0; r == 0 && at + sizeof(struct inotify_event) <= (size_t)n;) {
        const struct inotify_event *note = (const void *)(space + at);
        at += sizeof(*note) + note->len;
        r = on_note(w, note, err);
    }
    return r;
}

/* 1: the sandbox has ended. */
static int look_at_sandbox(struct carrel_watch *w, struct carrel_error *err)
{
    struct sandbox_event event;

    int r = sandbox_next_event(w->access.box, &event, err);
    return r < 0 ? r : event.kind == EVENT_GONE;
}

/* No event for a while. */
static int look_after_silence(struct carrel_watch *w, struct carrel_error *err)
{
    struct stat st;

    if (w->moved.path)
        return forget_moved(w, err);
    if (w->top < 0 || fstat(w->top, &st) < 0 || st.st_nlink > 0)
        return 0;
    int r = tell(w, CARREL_WATCH_REMOVE, "", NULL, true, err);
    return r < 0 ? r : 1;
}

/* What a callback of the loop found: 1 ends the watch. */
static int end_or_go_on(struct carrel_watch *w, int r)
{
    w->has_ended |= r == 1;
    return r < 0 ? r : 0;
}

/* Anything but silence starts the wait for silence anew. */
static int wait_for_silence(struct carrel_watch *w, struct carrel_error *err)
{
    const struct itimerspec when = {
        .it_value = { .tv_sec = w->moved.path ? 0 : LOOK_S,
                .tv_nsec = w->moved.path ? PAIR_NS : 0 },
    };

    return timerfd_settime(w->timer, 0, &when, NULL) < 0
                   ? err_set_errno(err, -errno, "set a timer")
                   : 0;
}

static int on_notes(struct loop_io *io, uint32_t events, struct carrel_error *err)
{
    struct carrel_watch *w = container_of(io, struct carrel_watch, on_notes);

    (void)events;
    int r = end_or_go_on(w, read_notes(w, err));
    return r < 0 ? r : wait_for_silence(w, err);
}

static int on_sandbox(struct loop_io *io, uint32_t events, struct carrel_error *err)
{
    struct carrel_watch *w = container_of(io, struct carrel_watch, on_sandbox);

    (void)events;
    return end_or_go_on(w, look_at_sandbox(w, err));
}

static int on_silence(struct loop_io *io, uint32_t events, struct carrel_error *err)
{
    struct carrel_watch *w = container_of(io, struct carrel_watch, on_silence);
    uint64_t times;

    (void)events;
    if (read(w->timer, &times, sizeof(times)) != sizeof(times))
        return 0; /* it was set anew */
    int r = end_or_go_on(w, look_after_silence(w, err));
    return r < 0 ? r : wait_for_silence(w, err);
}

static int begin_loop(struct carrel_watch *w, struct carrel_error *err)
{
    w->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    if (w->timer < 0)
        return err_set_errno(err, -errno, "make a timer");
    int r = loop_init(&w->loop, err);
    if (r == 0)
        r = loop_io_watch(&w->on_notes, w->notes, EPOLLIN, err);
    if (r == 0)
        r = loop_io_watch(&w->on_silence, w->timer, EPOLLIN, err);
    if (r == 0)
        r = loop_io_watch(
                &w->on_sandbox, w->access.box ? w->access.box->event_fd : -1, EPOLLIN, err);
    return r < 0 ? r : wait_for_silence(w, err);
}

static int open_top(struct carrel_watch *w, struct carrel_error *err)
{
    struct file_request request = FILE_REQUEST_INIT;
    struct file_answer answer = FILE_ANSWER_INIT;

    w->notes = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    if (w->notes < 0)
        return err_set_errno(err, -errno, "inotify_init1");
    request.op = FILE_OPEN;
    request.path = w->path;
    request.flags = O_RDONLY | O_DIRECTORY;
    int r = file_access_ask(&w->access, &request, &answer, err);
    w->top = r < 0 ? -1 : answer.fd;
    return r == -ENOTDIR ? 0 : r;
}

static struct carrel_watch *new_watch(const struct file_access *access, const char *path)
{
    struct carrel_watch *w = calloc(1, sizeof(*w));

    if (!w)
        return NULL;
    w->notes = w->timer = w->top = w->share = -1;
    w->access = *access;
    w->most = 16; /* of a single file or directory, more than enough */
    loop_io_init(&w->on_notes, &w->loop, on_notes);
    loop_io_init(&w->on_sandbox, &w->loop, on_sandbox);
    loop_io_init(&w->on_silence, &w->loop, on_silence);
    w->path = strdup(path);
    if (w->path)
        return w;
    free(w);
    return NULL;
}

int files_watch_open(struct file_access *access, const char *path, bool with_subdirectories,
        struct carrel_watch **out, struct carrel_error *err)
{
    AUTO(carrel_watch_free)
    struct carrel_watch *w = file_access_far(access) ? NULL : new_watch(access, path);

    if (file_access_far(access))
        return file_access_refuse(access, "watch files", err);
    if (!w)
        return err_set_errno(err, -ENOMEM, "watch");
    int r = open_top(w, err);
    w->is_deep = with_subdirectories && w->top >= 0;
    if (r == 0 && w->is_deep)
        r = w->share = watch_share_take(&w->most, err);
    if (r >= 0)
        r = w->is_deep ? look_into(w, "", 0, TELL_NOTHING, err) : add_watch(w, "", err);
    if (r == 0)
        r = tell(w, CARREL_WATCH_READY, "", NULL, w->top >= 0, err);
    if (r == 0)
        r = begin_loop(w, err);
    if (r < 0) {
        w->access = FILE_ACCESS_INIT; /* the caller's */
        return r;
    }
    *access = FILE_ACCESS_INIT;
    *out = ptr_steal(&w);
    return 0;
}

int carrel_watch_fd(const struct carrel_watch *watch)
{
    return watch->loop.epoll;
}

static bool is_readable(const struct carrel_watch *w)
{
    struct pollfd fd = { .fd = w->loop.epoll, .events = POLLIN };

    return poll(&fd, 1, 0) > 0;
}

static int give(
        struct carrel_watch *w, const struct told *told, const struct carrel_watch_event **out)
{
    w->event = (struct carrel_watch_event){
        .size = sizeof(w->event),
        .kind = told->kind,
        .path = told->path,
        .to = told->to,
        .is_directory = told->is_directory,
    };
    *out = &w->event;
    return 1;
}

int carrel_watch_next(struct carrel_watch *watch, const struct carrel_watch_event **out,
        struct carrel_error *err)
{
    err = ERR_OR_IGNORED(err);
    for (;;) {
        if (watch->next < watch->n_told)
            return give(watch, &watch->told[watch->next++], out);
        forget_told(watch);
        if (watch->failure.code < 0) {
            *err = watch->failure;
            return err->code;
        }
        if (watch->has_told_end)
            return err_set(err, -ESHUTDOWN, "the watch has ended");
        if (watch->has_ended) {
            watch->has_told_end = true;
            return give(watch, &(struct told){ .kind = CARREL_WATCH_END, .path = watch->path },
                    out);
        }
        if (!is_readable(watch))
            return 0;
        (void)loop_turn(&watch->loop, &watch->failure); /* returned after what was told */
    }
}
