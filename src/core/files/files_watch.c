/* files_watch.c - turns inotify events into events with paths. */
#include "core/files/files_watch.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/loop.h"
#include "core/files/files.h"
#include "runtime/runtime.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#define EVENTS                                                                                 \
    (IN_CREATE | IN_MODIFY | IN_ATTRIB | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO |             \
            IN_DELETE_SELF | IN_EXCL_UNLINK)
#define NS_PER_MS UINT64_C(1000000)
#define PAIR_MS 20 /* how long the second half of a rename may take */
#define LOOK_MS                                                                                \
    1000 /* the kernel does not report the removal of a directory that we hold open */

/* A watched directory. */
struct watched {
    int number;
    char *path;   /* below the top; "" is the top itself */
    bool is_away; /* it was moved elsewhere: its further events are ignored */
};

struct watcher {
    struct file_access *access;
    const char *path;
    bool is_deep;
    watch_each each;
    void *context;
    struct loop loop;
    struct loop_io on_notes, on_sandbox;
    struct loop_timer silence;
    int notes;
    int top; /* -1: a single file is watched */
    struct watched *list;
    size_t n, room;
    /* The first half of a rename; path is NULL if there is none. */
    struct {
        uint32_t cookie;
        char *path;
        bool is_directory;
    } moved;
};

const char *watch_kind_name(enum watch_kind kind)
{
    static const char *const names[] = {
        [WATCH_READY] = "ready",
        [WATCH_CREATE] = "create",
        [WATCH_WRITE] = "write",
        [WATCH_REMOVE] = "remove",
        [WATCH_RENAME] = "rename",
        [WATCH_CHMOD] = "chmod",
        [WATCH_OVERFLOW] = "overflow",
    };

    return names[kind];
}

static void finish(struct watcher *w)
{
    for (size_t i = 0; i < w->n; i++)
        free(w->list[i].path);
    free(w->list);
    free(w->moved.path);
    fd_close(w->notes);
    fd_close(w->top);
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

static int tell(struct watcher *w, enum watch_kind kind, const char *below, const char *to,
        bool is_directory, struct carrel_error *err)
{
    AUTO(free) char *path = join(w->path, below);
    AUTO(free) char *other = to ? join(w->path, to) : NULL;

    if (!path || (to && !other))
        return err_set_errno(err, -ENOMEM, "watch");
    const struct watch_event event = {
        .kind = kind,
        .path = path,
        .to = other,
        .is_directory = is_directory,
    };
    return w->each(&event, w->context, err);
}

static struct watched *find(struct watcher *w, int number)
{
    for (size_t i = 0; i < w->n; i++)
        if (w->list[i].number == number)
            return &w->list[i];
    return NULL;
}

/* A directory that came back under another name keeps its watch number. */
static int note_watch(
        struct watcher *w, int number, const char *below, struct carrel_error *err)
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
static int add_watch(struct watcher *w, const char *below, struct carrel_error *err)
{
    struct file_request request = FILE_REQUEST_INIT;
    struct file_answer answer = FILE_ANSWER_INIT;

    request.op = FILE_WATCH;
    request.dir = w->top;
    request.path = w->top < 0 ? w->path : below[0] ? below : ".";
    request.flags = w->top < 0 ? 0 : FILE_NO_FOLLOW;
    request.watch = w->notes;
    request.events = EVENTS | (w->top < 0 ? 0U : IN_ONLYDIR);
    int r = file_access_ask(w->access, &request, &answer, err);
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

static int look_into(struct watcher *w, const char *below, unsigned depth, enum telling telling,
        struct carrel_error *err);

static int look_at(struct watcher *w, int dir, const char *below, const char *name,
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
        r = tell(w, WATCH_CREATE, path, NULL, S_ISDIR(st.st_mode), err);
    return r == 0 && S_ISDIR(st.st_mode) ? look_into(w, path, depth + 1, telling, err) : r;
}

static int read_through(struct watcher *w, int fd, const char *below, unsigned depth,
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
static int look_into(struct watcher *w, const char *below, unsigned depth, enum telling telling,
        struct carrel_error *err)
{
    struct file_request request = FILE_REQUEST_INIT;
    struct file_answer answer = FILE_ANSWER_INIT;

    int r = add_watch(w, below, err);
    if (r == 0) {
        request.op = FILE_OPEN;
        request.dir = w->top;
        request.path = below[0] ? below : ".";
        request.flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW;
        r = file_access_ask(w->access, &request, &answer, err);
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
        struct watcher *w, const char *from, const char *to, struct carrel_error *err)
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
static void drop_watches(struct watcher *w, const char *top)
{
    for (size_t i = 0; i < w->n; i++) {
        if (!w->list[i].path[0] || !below_of(w->list[i].path, top))
            continue;
        w->list[i].is_away = true;
        (void)inotify_rm_watch(w->notes, w->list[i].number); /* its end is reported, too */
    }
}

static int forget_moved(struct watcher *w, struct carrel_error *err)
{
    AUTO(free) char *path = ptr_steal(&w->moved.path);

    if (!path)
        return 0;
    if (w->moved.is_directory)
        drop_watches(w, path);
    return tell(w, WATCH_REMOVE, path, NULL, w->moved.is_directory, err);
}

static int on_created(
        struct watcher *w, const char *path, bool is_directory, struct carrel_error *err)
{
    int r = tell(w, WATCH_CREATE, path, NULL, is_directory, err);

    return r == 0 && is_directory && w->is_deep ? look_into(w, path, 1, TELL_CREATED, err) : r;
}

static int on_moved_to(
        struct watcher *w, const char *path, bool is_directory, struct carrel_error *err)
{
    AUTO(free) char *from = ptr_steal(&w->moved.path);

    if (!from)
        return on_created(w, path, is_directory, err);
    int r = is_directory ? rename_watches(w, from, path, err) : 0;
    return r < 0 ? r : tell(w, WATCH_RENAME, from, path, is_directory, err);
}

static int on_overflow(struct watcher *w, struct carrel_error *err)
{
    int r = tell(w, WATCH_OVERFLOW, "", NULL, false, err);

    return r == 0 && w->is_deep ? look_into(w, "", 0, TELL_NOTHING, err) : r;
}

/* The watch ended, by itself or by drop_watches(). 1: it was the first one. */
static int on_ended(struct watcher *w, struct watched *watched)
{
    const bool is_top = !watched->path[0];

    free(watched->path);
    *watched = w->list[--w->n];
    return is_top;
}

static int on_note(
        struct watcher *w, const struct inotify_event *note, struct carrel_error *err)
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
        return tell(w, WATCH_WRITE, path, NULL, false, err);
    if (note->mask & IN_ATTRIB && (is_top || note->len > 0))
        return tell(w, WATCH_CHMOD, path, NULL, is_directory, err);
    if (note->mask & IN_DELETE || (is_top && note->mask & IN_DELETE_SELF))
        return tell(w, WATCH_REMOVE, path, NULL, is_directory, err);
    return note->mask & (IN_IGNORED | IN_UNMOUNT) ? on_ended(w, find(w, note->wd)) : 0;
}

static int read_notes(struct watcher *w, struct carrel_error *err)
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
static int look_at_sandbox(struct watcher *w, struct carrel_error *err)
{
    struct sandbox_event event;

    int r = sandbox_next_event(w->access->box, &event, err);
    return r < 0 ? r : event.kind == EVENT_GONE;
}

/* No event for a while. */
static int on_silence(struct watcher *w, struct carrel_error *err)
{
    struct stat st;

    if (w->moved.path)
        return forget_moved(w, err);
    if (w->top < 0 || fstat(w->top, &st) < 0 || st.st_nlink > 0)
        return 0;
    int r = tell(w, WATCH_REMOVE, "", NULL, true, err);
    return r < 0 ? r : 1;
}

/* What a callback of the loop found: 1 ends the watch. */
static int end_or_go_on(struct watcher *w, int r)
{
    if (r == 1)
        loop_stop(&w->loop);
    return r < 0 ? r : 0;
}

/* Anything but silence starts the wait for silence anew. */
static void wait_for_silence(struct watcher *w)
{
    loop_timer_set(&w->silence, clock_ns() + (w->moved.path ? PAIR_MS : LOOK_MS) * NS_PER_MS);
}

static int on_notes(struct loop_io *io, uint32_t events, struct carrel_error *err)
{
    struct watcher *w = container_of(io, struct watcher, on_notes);

    (void)events;
    int r = read_notes(w, err);
    wait_for_silence(w);
    return end_or_go_on(w, r);
}

static int on_sandbox(struct loop_io *io, uint32_t events, struct carrel_error *err)
{
    struct watcher *w = container_of(io, struct watcher, on_sandbox);

    (void)events;
    return end_or_go_on(w, look_at_sandbox(w, err));
}

static int on_timer(struct loop_timer *timer, struct carrel_error *err)
{
    struct watcher *w = container_of(timer, struct watcher, silence);

    int r = on_silence(w, err);
    wait_for_silence(w);
    return end_or_go_on(w, r);
}

static int follow(struct watcher *w, struct carrel_error *err)
{
    int r = loop_init(&w->loop, err);

    loop_io_init(&w->on_notes, &w->loop, on_notes);
    loop_io_init(&w->on_sandbox, &w->loop, on_sandbox);
    loop_timer_init(&w->silence, &w->loop, on_timer);
    if (r == 0)
        r = loop_io_watch(&w->on_notes, w->notes, EPOLLIN, err);
    if (r == 0)
        r = loop_io_watch(
                &w->on_sandbox, w->access->box ? w->access->box->event_fd : -1, EPOLLIN, err);
    wait_for_silence(w);
    if (r == 0)
        r = loop_run(&w->loop, err);
    loop_finish(&w->loop);
    return r;
}

static int open_top(struct watcher *w, struct carrel_error *err)
{
    struct file_request request = FILE_REQUEST_INIT;
    struct file_answer answer = FILE_ANSWER_INIT;

    w->notes = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    if (w->notes < 0)
        return err_set_errno(err, -errno, "inotify_init1");
    request.op = FILE_OPEN;
    request.path = w->path;
    request.flags = O_RDONLY | O_DIRECTORY;
    int r = file_access_ask(w->access, &request, &answer, err);
    w->top = r < 0 ? -1 : answer.fd;
    return r == -ENOTDIR ? 0 : r;
}

int files_watch(struct file_access *access, const char *path, bool with_subdirectories,
        watch_each each, void *context, struct carrel_error *err)
{
    struct watcher w = {
        .access = access,
        .path = path,
        .each = each,
        .context = context,
        .notes = -1,
        .top = -1,
    };

    int r = open_top(&w, err);
    w.is_deep = with_subdirectories && w.top >= 0;
    if (r == 0)
        r = w.is_deep ? look_into(&w, "", 0, TELL_NOTHING, err) : add_watch(&w, "", err);
    if (r == 0)
        r = tell(&w, WATCH_READY, "", NULL, w.top >= 0, err);
    if (r == 0)
        r = follow(&w, err);
    finish(&w);
    return r < 0 ? r : 0;
}
